/* runtime_calls.c — libmdot calls without an artefact: the version, the GPU table, a job, and an error. */
#include "mdot/mdot.h"

#include <stdio.h>

int main(void)
{
    mdot_error err = {0};
    mdot_gpu gpu = MDOT_INIT(mdot_gpu);
    size_t gpus = 0;
    while (mdot_gpu_names()[gpus] != NULL) gpus++;
    if (mdot_gpu_find("A100", &gpu, &err) != MDOT_OK) return 1;
    printf("mdot %s, %zu GPUs, %s has %g GB/s\n", mdot_version(), gpus, gpu.name, gpu.memory_gbps);

    mdot_job_operator operators[] = {
        {.struct_size = sizeof operators[0], .type = "Linear", .known = true, .parameters = 3e6},
        {.struct_size = sizeof operators[0],
         .type = "Relu",
         .known = true,
         .input_count = 1,
         .inputs = (const uint32_t[]){0}}};
    operators[0].per_sample[MDOT_PHASE_FORWARD] = (mdot_load){.flops = 6e6, .bytes_read = 8e3};
    mdot_job_description description = {
        .struct_size = sizeof description, .operators = operators, .operator_count = 2, .batch = 1};
    mdot_job *job = NULL;
    mdot_job_info info = MDOT_INIT(mdot_job_info);
    mdot_status status = mdot_job_create(&description, &job, &err);
    if (status == MDOT_OK) status = mdot_job_get_info(job, &info);
    printf("%s: %zu operators, %g parameters\n", mdot_status_name(status), info.operator_count, info.parameters);
    mdot_job_destroy(job);

    mdot_predictor *predictor = NULL;
    status = mdot_predictor_open("/missing/predictor.mdot", NULL, &predictor, &err);
    printf("%s: %s\n", mdot_status_name(status), err.message);
    return status == MDOT_NOT_FOUND ? 0 : 1;
}
