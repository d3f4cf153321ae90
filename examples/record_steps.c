/* record_steps.c — a training loop records its steps. The program stands in for one: it reads the times of steps in
 * milliseconds from stdin, and appends their summary as a row to a table that `mdot calibrate` reads.
 *
 *     record_steps TABLE.csv JOB.onnx GPU BATCH < STEP_MILLISECONDS
 */
#include "mdot/mdot.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    if (argc != 5) return fprintf(stderr, "usage: record_steps TABLE.csv JOB.onnx GPU BATCH < STEP_MILLISECONDS\n"), 2;
    /* [example: mdot_recorder_create, mdot_recorder_step, mdot_recorder_finish, mdot_recorder_destroy,
     *           mdot_measured_append] */
    mdot_recorder *recorder = NULL;
    mdot_recorded recorded = MDOT_INIT(mdot_recorded);
    mdot_error err = {0};
    double step_ms;

    mdot_status status = mdot_recorder_create(NULL, &recorder, &err);
    while (status == MDOT_OK && scanf("%lf", &step_ms) == 1) mdot_recorder_step(recorder, step_ms);
    if (status == MDOT_OK) status = mdot_recorder_finish(recorder, &recorded, &err);
    if (status == MDOT_OK) {
        const mdot_configuration configuration = {.struct_size = sizeof configuration,
                                                  .batch = atoll(argv[4]),
                                                  .gpu = argv[3],
                                                  .precision = MDOT_PRECISION_AMP};
        const mdot_measured_row row = {.struct_size = sizeof row,
                                       .job = argv[2],
                                       .configuration = &configuration,
                                       .step_ms = recorded.step_ms,
                                       .note = "recorded by record_steps"};
        status = mdot_measured_append(argv[1], &row, &err);
    }
    mdot_recorder_destroy(recorder);
    /* [end of example] */
    if (status == MDOT_OK)
        printf("%.3f ms per step, from %llu steps\n", recorded.step_ms, (unsigned long long)recorded.step_count);
    else
        fprintf(stderr, "%s: %s\n", mdot_status_name(status), err.message);
    return status == MDOT_OK ? 0 : 1;
}
