/* sharded_operator.c — an operator as one GPU of a shard computes it. */
#include "runtime/job/job_model.h"
#include "runtime/perf/operator_traits.h"
#include "runtime/perf/sharding.h"

#include <math.h>

static void divide_load(mdot_load *load, double flops, double read, double written)
{
    *load = (mdot_load){load->flops / flops, load->bytes_read / read, load->bytes_written / written};
}

static void shard_matmul(mdot_job_operator *op, bool by_columns, double tensor)
{
    mdot_load *forward = &op->per_sample[MDOT_PHASE_FORWARD], *weight = &op->per_sample[MDOT_PHASE_WEIGHT_GRADIENT];
    double operand_divisor = by_columns ? 1 : tensor, result_divisor = by_columns ? tensor : 1;
    /* The weight gradient reads the operand and the result's gradient, one of which is sharded. */
    double sharded_bytes = by_columns ? forward->bytes_written : forward->bytes_read;
    weight->bytes_read = fmax(weight->bytes_read - sharded_bytes * (1 - 1 / tensor), 0);
    weight->flops /= tensor;
    divide_load(forward, tensor, operand_divisor, result_divisor);
    divide_load(&op->per_sample[MDOT_PHASE_DATA_GRADIENT], tensor, result_divisor, operand_divisor);
    op->setting[by_columns ? MDOT_SETTING_CHANNELS_OUT : MDOT_SETTING_CHANNELS_IN] /= (int64_t)tensor;
}

/* Each GPU has fewer experts, each with more tokens. */
static void shard_experts(mdot_job_operator *op, double experts)
{
    int64_t degree = (int64_t)experts, *setting = op->setting;
    for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++) divide_load(&op->per_step[phase], experts, experts, experts);
    op->parameters /= experts;
    op->frozen_parameters /= experts;
    int64_t maximum = INT64_MAX / degree;
    if (setting[MDOT_SETTING_GROUPS] % degree != 0) return;
    if (setting[MDOT_SETTING_SIZE_IN] > maximum || setting[MDOT_SETTING_SIZE_OUT] > maximum) return;
    setting[MDOT_SETTING_GROUPS] /= degree;
    setting[MDOT_SETTING_SIZE_IN] *= degree;
    setting[MDOT_SETTING_SIZE_OUT] *= degree;
}

static void shard_channels(mdot_job_operator *op, rt_role role, double tensor)
{
    if (role == RT_ROLE_COLUMNS || role == RT_ROLE_ROWS) shard_matmul(op, role == RT_ROLE_COLUMNS, tensor);
    for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++) {
        if (role == RT_ROLE_SHARDED) divide_load(&op->per_sample[phase], tensor, tensor, tensor);
        divide_load(&op->per_step[phase], tensor, tensor, tensor); /* parameters */
    }
    op->parameters /= tensor;
    op->frozen_parameters /= tensor;
    if (role == RT_ROLE_SHARDED) op->setting[MDOT_SETTING_HEADS] /= (int64_t)tensor;
}

/* The operator at one batch: squares become work per sample, and settings that multiply with the batch are whole. */
static void fold_squares(mdot_job_operator *op, double batch)
{
    for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++) {
        mdot_load *sample = &op->per_sample[phase], *square = &op->per_square[phase];
        sample->flops += batch * square->flops;
        sample->bytes_read += batch * square->bytes_read;
        sample->bytes_written += batch * square->bytes_written;
    }
    for (int s = 0; s < MDOT_SETTING_COUNT && op->batch_settings >> s != 0; s++)
        if (op->batch_settings >> s & 1)
            op->setting[s] = (int64_t)fmin((double)op->setting[s] * batch, (double)RT_JOB_MAX_SETTING);
}

/* Jobs record a mask for each sample or for a step, once or twice, by how they were traced. Fused attention reads none
 * of them, and other kernels read their scores many times. Predictors learned from two masks for a step. */
static void read_mask_as_learned(mdot_job_operator *op)
{
    double mask = rt_mask_bytes(op), queries = (double)op->setting[MDOT_SETTING_QUERIES];
    for (int phase = 0; phase < MDOT_PHASE_WEIGHT_GRADIENT; phase++) {
        op->per_sample[phase].bytes_read = fmax(op->per_sample[phase].bytes_read - mask, 0);
        op->per_step[phase].bytes_read = 2 * sizeof(float) * queries * (double)op->setting[MDOT_SETTING_KEYS];
    }
}

double rt_shard_divisor(const rt_sharding *sharding, size_t index, const rt_shard *shard)
{
    double tensor = sharding->role[index] != RT_ROLE_REPLICATED ? shard->tensor : 1;
    return tensor * (sharding->experts.is_expert[index] ? shard->experts : 1);
}

const mdot_job_operator *rt_sharded_operator(const mdot_job *job, const rt_sharding *sharding, size_t index,
                                             const rt_shard *shard, mdot_job_operator *buffer)
{
    rt_role role = (rt_role)sharding->role[index];
    bool folds = shard->square_batch > 0 && rt_has_squares(&job->operators[index]);
    bool is_masked = rt_has_mask(&job->operators[index]);
    if (rt_shard_divisor(sharding, index, shard) == 1 && !folds && !is_masked) return &job->operators[index];
    *buffer = job->operators[index];
    if (is_masked) read_mask_as_learned(buffer);
    if (folds) fold_squares(buffer, shard->square_batch);
    if (role != RT_ROLE_REPLICATED) shard_channels(buffer, role, shard->tensor);
    if (sharding->experts.is_expert[index]) shard_experts(buffer, shard->experts);
    return buffer;
}
