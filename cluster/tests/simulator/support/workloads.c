/* workloads.c — workloads for tests. */
#include "tests/simulator/support/workloads.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "simulator/core/workload.h"
#include "simulator/estimate/estimators.h"
#include "simulator/input/input.h"
#include "simulator/policy/policies.h"
#include "tests/support/process.h"

static void add(sc_workload *workload, double submit_s, int gpus, double duration_s)
{
    char id[24];
    snprintf(id, sizeof id, "%zu", workload->job_count);
    sc_job job = {.id = strdup(id),
                  .submit_s = submit_s,
                  .deadline_s = INFINITY,
                  .weight = 1,
                  .work = duration_s,
                  .gpus = gpus,
                  .kind = SC_NONE};
    assert_int_equal(sc_workload_add(workload, job, NULL), MDOT_OK);
}

sc_workload workload_make(const double (*jobs)[3], size_t count)
{
    sc_workload workload = {0};
    for (size_t i = 0; i < count; i++) add(&workload, jobs[i][0], (int)jobs[i][1], jobs[i][2]);
    return workload;
}

sc_workload workload_random(size_t count, int widest, uint64_t seed)
{
    sc_workload workload = {0};
    double submit_s = 0;
    for (size_t i = 0; i < count; i++) {
        submit_s += (double)(sc_random_next(&seed) % 4) * 50;
        int gpus = 1 + (int)(sc_random_next(&seed) % (unsigned)widest);
        add(&workload, submit_s, gpus, (double)(1 + sc_random_next(&seed) % 40) * 37);
    }
    return workload;
}

sc_result workload_run(const sc_workload *workload, int gpus, const char *policy, const double *factors,
                       sc_errors errors)
{
    mdot_error err = {0};
    sc_cluster cluster;
    const sc_policy *found;
    sc_result result = {0};
    sc_estimator estimator = sc_estimator_oracle();
    assert_int_equal(sc_cluster_make_pool(gpus, &cluster, &err), MDOT_OK);
    assert_int_equal(sc_policy_find(policy, &found, &err), MDOT_OK);
    if (factors != NULL) {
        double *copy = calloc(workload->job_count, sizeof *copy);
        assert_non_null(copy);
        memcpy(copy, factors, workload->job_count * sizeof *copy);
        assert_int_equal(sc_estimator_make_fixed(copy, &estimator, &err), MDOT_OK);
    }
    sc_run_options options = {.errors = errors};
    if (sc_simulate(workload, &cluster, found, &estimator, &options, &result, &err) != MDOT_OK)
        fail_msg("%s: %s", policy, err.message);
    sc_estimator_destroy(&estimator);
    sc_cluster_free(&cluster);
    return result;
}

char *workload_write_file(const char *folder, const char *name, const char *text)
{
    char *path = NULL;
    assert_true(asprintf(&path, "%s/%s", folder, name) > 0);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
    return path;
}

hs_row_model *compile_learned(void)
{
    char *folder = process_make_folder(), *path = NULL;
    process_result result;
    hs_row_model *learned = NULL;
    mdot_error err = {0};
    assert_true(asprintf(&path, "%s/mlfs.mdot", folder) > 0);
    process_run((const char *const[]){MDOT_CLI, "compile", MDOT_CLUSTER_DIR "/tests/simulator/data/mlfs.onnx", "-o",
                                      path, "-q", NULL},
                &result);
    if (result.status != 0) fail_msg("%s", result.err);
    if (sc_learned_open(path, &learned, &err) != MDOT_OK) fail_msg("%s", err.message);
    process_remove_folder(folder);
    free(path);
    return learned;
}
