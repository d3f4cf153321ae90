/* fuzz_job.c — libFuzzer on the readers of jobs. Any bytes are refused with a message, or become a job whose
 * accessors stay inside it, and whose operator features are finite and fit the smallest bucket of a predictor. Bytes
 * that begin like a `.job` file are treated as one. Their size and checksum are corrected, because otherwise every
 * input would fail there. All other bytes are an ONNX model.
 *
 *     scripts/fuzz.sh 600 job
 */
#include "mdot/mdot_abi.h"
#include "mdot/mdotjob.h"
#include "runtime/perf/analysis.h"
#include "runtime/perf/peak_memory.h"
#include "runtime/predict/operator_features.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SIZE_AT = 16, CHECKSUM_AT = 24, CHECKSUM_END = 32 };

#define MOST_SETTING 2147483648.0F /* limit in rows.c */

static void seal(unsigned char *file, size_t size)
{
    uint64_t file_bytes = size;
    memcpy(file + SIZE_AT, &file_bytes, sizeof file_bytes);
    uint64_t sum = mdot_abi_checksum(file, CHECKSUM_AT, 0);
    sum = mdot_abi_checksum(file + CHECKSUM_END, size - CHECKSUM_END, sum);
    memcpy(file + CHECKSUM_AT, &sum, sizeof sum);
}

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
    const rt_shard shard = {sharding->common > 0 ? (double)sharding->common : 1,
                            sharding->experts.common_count > 0 ? (double)sharding->experts.common_count : 1,
                            {1, 0.5, 0}};
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
    mdot_error err = {0};
    unsigned char *copy = malloc(size + 1);
    if (copy == NULL) return 0;
    memcpy(copy, data, size);
    bool is_file = size >= CHECKSUM_END && memcmp(copy, "MDOTJOB", 8) == 0;
    if (is_file) seal(copy, size);
    mdot_status status =
        is_file ? mdot_job_parse(copy, size, &job, &err) : mdot_job_read_bytes(copy, size, "fuzz", NULL, &job, &err);
    free(copy);
    if (status == MDOT_OK) {
        visit(job);
        write_rows(job);
    } else if (job != NULL || err.message[0] == '\0') {
        abort();
    }
    mdot_job_destroy(job);
    return 0;
}
