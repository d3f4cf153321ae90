/* sharding_parts.c — elements by position and role, and those on one GPU. */
#include "runtime/perf/sharding.h"

void rt_add_parts(const rt_sharding *sharding, size_t index, double elements, rt_parts *out)
{
    bool sharded = sharding->role[index] != RT_ROLE_REPLICATED, expert = sharding->experts.is_expert[index] != 0;
    rt_pipeline_position position = (rt_pipeline_position)sharding->position[index];
    out->all[position] += elements;
    if (sharded) out->sharded[position] += elements;
    if (expert) out->experts[position] += elements;
    if (sharded && expert) out->sharded_experts[position] += elements;
}

rt_elements rt_part_of(const rt_parts *parts, const rt_shard *shard)
{
    double saved = 1 - 1 / shard->tensor;
    rt_elements sum = {0};
    for (int position = 0; position < RT_PIPELINE_POSITIONS; position++) {
        double experts = parts->experts[position] - parts->sharded_experts[position] * saved;
        double elements = parts->all[position] - parts->sharded[position] * saved;
        sum.experts += shard->of[position] * experts / shard->experts;
        sum.others += shard->of[position] * (elements - experts);
    }
    return sum;
}

static rt_elements sum_of_elements(rt_elements a, rt_elements b)
{
    return (rt_elements){a.others + b.others, a.experts + b.experts};
}

/* The elements in a stage. A stage with a tied head, but without the operators before the blocks, has a copy of the
 * tied tables. */
static rt_elements with_tied(const rt_parts *parts, const rt_parts *tied, const rt_shard *shard)
{
    rt_elements untied = rt_part_of(parts, shard);
    return shard->of[RT_PIPELINE_BEFORE] > 0 ? untied : sum_of_elements(untied, rt_part_of(tied, shard));
}

rt_elements rt_trained_part(const rt_sharding *sharding, const rt_shard *shard)
{
    return with_tied(&sharding->parameters, &sharding->tied, shard);
}

rt_elements rt_weights_part(const rt_sharding *sharding, const rt_shard *shard)
{
    return sum_of_elements(rt_trained_part(sharding, shard),
                           with_tied(&sharding->frozen, &sharding->frozen_tied, shard));
}
