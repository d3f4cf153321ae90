/* fuzz_job.c — libFuzzer on the job readers. Any bytes are refused with a message, or become a job whose accessors stay
 * inside it, with finite operator features that fit a predictor's smallest bucket. hostile_job.h maps bytes to kinds of
 * jobs.
 *
 *     scripts/fuzz.sh 600 job */
#include "runtime/job/job_model.h"
#include "runtime/perf/analysis.h"
#include "runtime/perf/peak_memory.h"
#include "runtime/predict/predictor_tensors.h"
#include "tests/fuzz/hostile_job.h"
#include "tests/fuzz/hostile_mutate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

HOSTILE_MUTATORS(0)

#define MOST_SETTING 2147483648.0F /* limit in rows.c */

static void visit(const mdot_job *job)
{
    mdot_job_info info = MDOT_INIT(mdot_job_info);
    mdot_job_get_info(job, &info);
    for (size_t i = 0; i < info.operator_count; i++) {
        mdot_job_operator op = MDOT_INIT(mdot_job_operator);
        if (mdot_job_get_operator(job, i, &op) != MDOT_OK || strlen(op.type) == 0) abort();
        for (size_t k = 0; k < op.input_count; k++) {
            if (op.inputs[k] >= i) abort();
        }
    }
}

/* Writes the features as a multiset without counts, which gives the largest numbers, and as a sequence. */
static void write_rows(const mdot_job *job)
{
    enum { CAPACITY = 3 };
    int64_t type[CAPACITY];
    float setting[CAPACITY * MDOT_SETTING_COUNT], load[CAPACITY * RT_LOAD_COLUMNS];
    float position[CAPACITY * RT_POSITION_COLUMNS];
    const rt_sharding *sharding = &job->analysis->sharding;
    const rt_shard shard = {.tensor = sharding->common > 0 ? (double)sharding->common : 1,
                            .experts = sharding->experts.common_count > 0 ? (double)sharding->experts.common_count : 1,
                            .of = {1, 0.5, 0},
                            .square_batch = 2};
    for (int in_order = 0; in_order < 2; in_order++) {
        rt_job_tensors tensors = {
            .schema =
                {.row_capacity = CAPACITY,
                 .columns =
                     {[RT_JOB_INPUT_SETTING] = MDOT_SETTING_COUNT, [RT_JOB_INPUT_POSITION] = RT_POSITION_COLUMNS},
                 .known = {[RT_JOB_INPUT_SETTING] = MDOT_SETTING_COUNT, [RT_JOB_INPUT_POSITION] = RT_POSITION_COLUMNS},
                 .type_count = RT_JOB_MAX_TYPE + 1},
            .rows = {[RT_JOB_INPUT_TYPE] = type,
                     [RT_JOB_INPUT_SETTING] = setting,
                     [RT_JOB_INPUT_LOAD] = load,
                     [RT_JOB_INPUT_POSITION] = in_order ? position : NULL}};
        rt_write_operator_features(job, &shard, &tensors);
        if (tensors.row_count < 1 || tensors.row_count > CAPACITY) abort();
        for (size_t i = 0; i < tensors.row_count * RT_LOAD_COLUMNS; i++) {
            if (!isfinite(load[i]) || load[i] < 0) abort();
        }
        for (size_t i = 0; i < tensors.row_count * MDOT_SETTING_COUNT; i++) {
            if (!(fabsf(setting[i]) <= MOST_SETTING)) abort();
        }
    }
    rt_configuration configuration = {
        .c = {.batch = 1 << 24, .gpu_count = 4, .precision = MDOT_PRECISION_AMP, .zero_stage = 1}};
    if (rt_configuration_complete(&configuration, NULL) != MDOT_OK) abort();
    rt_resolved_configuration resolved;
    rt_resolve(job, &configuration, &resolved);
    rt_memory memory = rt_measure_memory(job, &resolved);
    if (rt_sum_memory(&memory) == 0 && job->info.parameters > 0) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mdot_job *job = NULL;
    if (hostile_job(data, size, &job) == MDOT_OK) {
        visit(job);
        write_rows(job);
    }
    mdot_job_destroy(job);
    return 0;
}
