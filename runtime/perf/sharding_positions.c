/* sharding_positions.c — the operators before, in and after the blocks that a pipeline distributes, with their
 * parameters. */
#include "runtime/job/job_model.h"
#include "runtime/perf/operator_traits.h"
#include "runtime/perf/sharding.h"

static void add_sparse_table(const mdot_job_operator *op, rt_sparse_tables *out)
{
    if (!rt_has_sparse_gradient(op)) return;
    out->parameters += op->parameters;
    out->picked += op->per_sample[MDOT_PHASE_WEIGHT_GRADIENT].bytes_written / sizeof(float);
}

/* A tied output head behind the blocks reuses the weights of a table before them. It has at most a bias of its own. */
static void add_tied_head(const mdot_job_operator *op, size_t index, rt_sharding *out)
{
    const int64_t *setting = op->setting;
    bool is_matmul = op->input_count <= 1 && rt_multiplies_by_weights(op); /* other operators lack channels */
    double bias = (double)setting[MDOT_SETTING_CHANNELS_OUT];
    if (out->position[index] != RT_PIPELINE_AFTER || rt_weights_of(op) > bias || !is_matmul) return;
    bool is_trained = op->per_sample[MDOT_PHASE_WEIGHT_GRADIENT].flops > 0;
    double elements = (double)setting[MDOT_SETTING_CHANNELS_IN] * (double)setting[MDOT_SETTING_CHANNELS_OUT];
    rt_add_parts(out, index, elements, is_trained ? &out->tied : &out->frozen_tied);
}

void rt_find_sharding_positions(const mdot_job *job, const double *costs, rt_sharding *out)
{
    size_t count = job->info.operator_count, first_in_block = count, last_in_block = 0;
    for (size_t i = 0; i < count; i++) {
        if (job->operators[i].block == 0) continue;
        if (first_in_block == count) first_in_block = i;
        last_in_block = i;
    }
    for (size_t i = 0; i < count; i++) {
        rt_pipeline_position position = first_in_block == count ? RT_PIPELINE_BLOCKS
                                        : i < first_in_block    ? RT_PIPELINE_BEFORE
                                        : i > last_in_block     ? RT_PIPELINE_AFTER
                                                                : RT_PIPELINE_BLOCKS;
        out->position[i] = (uint8_t)position;
        out->cost[position] += costs[i];
        for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++)
            out->launches[position] += job->operators[i].per_sample[phase].bytes_written > 0;
        double parameters = rt_dense_parameters(&job->operators[i]), weights = rt_weights_of(&job->operators[i]);
        add_sparse_table(&job->operators[i], &out->sparse);
        add_tied_head(&job->operators[i], i, out);
        rt_add_parts(out, i, parameters, &out->parameters);
        rt_add_parts(out, i, weights - parameters, &out->frozen);
        if (job->operators[i].traits.autocast == MDOT_AUTOCAST_HALF)
            rt_add_parts(out, i, weights, &out->half_parameters);
    }
}
