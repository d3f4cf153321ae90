/* job_totals.c — sums over a job's operators that predictions need, independent of the configuration. */
#include "runtime/job/job_model.h"
#include "runtime/perf/analysis_parts.h"
#include "runtime/perf/operator_traits.h"

/* Smaller results that do not depend on the batch, for example a loss, are left out of the memory. */
enum { LARGE_CONSTANT_BYTES = 1 << 20 };

/* Attention reads queries, keys and values, and writes a result of the queries' size. A ring passes no masks on. */
static void add_attention(rt_job_totals *t, const mdot_job_operator *op)
{
    const mdot_load *forward = &op->per_sample[MDOT_PHASE_FORWARD];
    t->has_attention = true;
    t->attention_count++;
    t->attention_flops += forward->flops;
    if (rt_has_mask(op)) t->causal_flops += forward->flops;
    double key_values = forward->bytes_read - forward->bytes_written - rt_mask_bytes(op);
    t->key_value_bytes += key_values > 0 ? key_values : forward->bytes_read;
}

/* The matmul whose result reaches operator `loss` through operators that keep its size, such as views and casts. */
static size_t find_logits(const mdot_job *job, size_t loss)
{
    const mdot_job_operator *op = &job->operators[loss];
    double smallest = 0;
    while (op->input_count > 0) {
        size_t producer = op->inputs[0];
        op = &job->operators[producer];
        if (op->per_sample[MDOT_PHASE_FORWARD].bytes_written < smallest) return 0;
        smallest = op->per_sample[MDOT_PHASE_FORWARD].bytes_written;
        if (rt_uses_tensor_cores(op)) return producer + 1;
    }
    return 0;
}

/* Of several losses, the one with the largest logits counts. */
static size_t larger_logits(const mdot_job *job, size_t a, size_t b)
{
    if (a == 0 || b == 0) return a + b;
    const mdot_job_operator *first = &job->operators[a - 1], *second = &job->operators[b - 1];
    double bytes = first->per_sample[MDOT_PHASE_FORWARD].bytes_written;
    return second->per_sample[MDOT_PHASE_FORWARD].bytes_written > bytes ? b : a;
}

double rt_loss_part(const mdot_job *job, size_t logits, mdot_loss loss)
{
    enum { CHUNKS = 8 };
    if (logits == 0 || loss == MDOT_LOSS_WHOLE) return 1;
    if (loss == MDOT_LOSS_CHUNKED) return 1.0 / CHUNKS;
    const int64_t *setting = job->operators[logits - 1].setting;
    double hidden = (double)setting[MDOT_SETTING_CHANNELS_IN], classes = (double)setting[MDOT_SETTING_CHANNELS_OUT];
    return hidden > 0 && hidden < classes ? hidden / classes : 1;
}

rt_job_totals rt_sum_job(const mdot_job *job, const double *costs)
{
    rt_job_totals t = {0};
    double convolution_flops = 0, tensor_core_flops = 0;
    for (size_t i = 0; i < job->info.operator_count; i++) {
        const mdot_job_operator *op = &job->operators[i];
        double flops = rt_uses_tensor_cores(op) ? op->per_sample[MDOT_PHASE_FORWARD].flops : 0;
        tensor_core_flops += flops;
        if (op->setting[MDOT_SETTING_KERNEL_W] > 0) convolution_flops += flops;
        t.is_recomputed = t.is_recomputed || (op->flags & MDOT_OPERATOR_RECOMPUTED) != 0;
        t.mixes_types = t.mixes_types || rt_ran_in_other_type(op);
        if (rt_is_loss(op)) t.logits = larger_logits(job, t.logits, find_logits(job, i));
        if (rt_score_bytes(op) > 0) add_attention(&t, op);
        uint32_t type_id = op->traits.number;
        t.lacks_type_id = t.lacks_type_id || type_id == 0;
        if (type_id > t.highest_type_id) t.highest_type_id = type_id;
        for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++) {
            t.flops_per_sample += op->per_sample[phase].flops;
            t.flops_per_square += op->per_square[phase].flops;
        }
        t.forward_flops_per_sample += op->per_sample[MDOT_PHASE_FORWARD].flops;
        t.forward_flops_per_square += op->per_square[MDOT_PHASE_FORWARD].flops;
        t.has_squares = t.has_squares || rt_has_squares(op);
        t.has_constants = t.has_constants || rt_constant_result_bytes(op) > LARGE_CONSTANT_BYTES;
        t.cost += costs[i];
        if (type_id == 0) t.cost_without_type_id += costs[i];
    }
    t.is_convolutional = convolution_flops > tensor_core_flops / 2;
    for (int mode = 0; mode < 2; mode++) t.compiles_in_nhwc[mode] = rt_compiles_in_nhwc(job, (mdot_mode)mode);
    return t;
}
