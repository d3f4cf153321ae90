/* sharding.c — see sharding.h.
 *
 * Tensor parallelism follows Megatron-LM (Shoeybi et al., 2019). Of two matmuls in a chain, each GPU has columns of
 * the first one's parameters and rows of the second one's. The operators between them work on a slice of the channels
 * or on some of the attention heads. The results of the second matmul are summed over the GPUs. The backward pass
 * sums the gradients of the operands of column-sharded matmuls. Embedding tables are sharded by rows. So is the last
 * matmul, whose result is read only by a loss. All other operators are computed on every GPU.
 *
 * The graph decides how a matmul is sharded. It is sharded by columns if all readers of its result can work on a
 * slice, up to the matmuls that sum it. Two kinds of readers need the whole tensor: operators that work along the
 * channels, and operators that combine a sharded tensor with a whole one that depends on parameters, such as a
 * residual sum.
 *
 * A low-rank adapter (LoRA; Hu et al., 2021) is sharded on its large sides, as Megatron-LM and peft do. Beside a base
 * matmul by columns, each GPU computes all of the few columns of the first factor and some columns of the second one.
 * Beside a base matmul by rows, the first factor is sharded by rows, and each GPU computes all of the second one.
 * Therefore the rank needs no common divisor with the degree.
 */
#include "runtime/perf/sharding.h"
#include "runtime/perf/common_divisor.h"
#include "runtime/perf/operator_traits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Operators and slices --------------------------------------------------------------------------------------- */

typedef enum kind {
    KIND_WHOLE,     /* needs all channels */
    KIND_SLICEABLE, /* works on a slice as on the whole tensor */
    KIND_MATMUL,    /* matmul of one operand with parameters */
    KIND_TABLE,
    KIND_LOSS /* accepts slices of the classes and returns a whole result */
} kind;

static double weights_of(const mdot_job_operator *op)
{
    return op->parameters + op->frozen_parameters;
}

/* Weights of its own, or weights tied to another operator's, which are counted there. */
static bool has_weights(const mdot_job_operator *op)
{
    return weights_of(op) > 0 || op->per_sample[MDOT_PHASE_WEIGHT_GRADIENT].flops > 0;
}

/* Does a matmul multiply by weights? Each step reads them, even if they are frozen and tied. */
static bool multiplies_by_weights(const mdot_job_operator *op)
{
    return has_weights(op) || op->per_step[MDOT_PHASE_FORWARD].bytes_read > 0;
}

/* True if the operator normalises or reduces over an axis whose length differs from that of an attention head. */
static bool works_along_channels(const mdot_job_operator *op, int64_t head_size)
{
    bool has_axis = op->setting[MDOT_SETTING_AXIS] > 0 || op->setting[MDOT_SETTING_EXTENT] > 0;
    return has_axis && !rt_has_trait(op, MDOT_TRAIT_PARTS) &&
           (head_size == 0 || op->setting[MDOT_SETTING_EXTENT] != head_size);
}

static kind kind_of(const mdot_job_operator *op, int64_t head_size)
{
    const int64_t *setting = op->setting;
    if (!op->known || setting[MDOT_SETTING_KERNEL_W] > 0 || setting[MDOT_SETTING_DIRECTIONS] > 0) return KIND_WHOLE;
    if (rt_has_trait(op, MDOT_TRAIT_SUMS_PARTS)) return KIND_LOSS;
    if (rt_has_trait(op, MDOT_TRAIT_PICKS)) return weights_of(op) > 0 ? KIND_TABLE : KIND_WHOLE;
    bool multiplies = setting[MDOT_SETTING_CHANNELS_IN] > 0 && setting[MDOT_SETTING_CHANNELS_OUT] > 0;
    if (multiplies && multiplies_by_weights(op)) return op->input_count <= 1 ? KIND_MATMUL : KIND_WHOLE;
    return works_along_channels(op, head_size) ? KIND_WHOLE : KIND_SLICEABLE;
}

/* ---- Roles ------------------------------------------------------------------------------------------------------ */

enum { MAX_SWEEPS = 64 };

typedef struct search {
    const mdot_job *job;
    size_t count;
    uint8_t *kind;
    bool *trains;    /* this operator or one before it has trained parameters */
    bool *depends;   /* this operator or one before it has parameters, trained or frozen */
    bool *shardable; /* its result may be sharded */
    bool *sharded;   /* its result is sharded */
    uint32_t
        *base; /* for a sum of a base matmul and its adapter: index of the base matmul + 1; 0 for other operators */
} search;

/* ---- Low-rank adapters ------------------------------------------------------------------------------------------ */

/* The operator behind operators of one operand, such as a scaling, and behind sums with an adapter. */
static size_t skip_to_matmul(const search *s, size_t i)
{
    for (;;) {
        const mdot_job_operator *op = &s->job->operators[i];
        if (s->base[i] != 0) {
            i = s->base[i] - 1;
        } else if (s->kind[i] == KIND_SLICEABLE && op->input_count == 1) {
            i = op->inputs[0];
        } else {
            return i;
        }
    }
}

static bool read_same_operand(const mdot_job_operator *a, const mdot_job_operator *b)
{
    return a->input_count == b->input_count && (a->input_count == 0 || a->inputs[0] == b->inputs[0]);
}

/* Marks the first factor of an adapter `up(down(x))` that is summed with `base(x)`, if these are such matmuls. The
 * factor's result stays whole. */
static void mark_adapter(search *s, size_t sum, size_t base, size_t up)
{
    const mdot_job_operator *operators = s->job->operators;
    if (s->kind[base] != KIND_MATMUL || s->kind[up] != KIND_MATMUL || operators[up].input_count != 1) return;
    size_t down = skip_to_matmul(s, operators[up].inputs[0]);
    const int64_t *large = operators[base].setting, *small = operators[down].setting;
    if (s->kind[down] != KIND_MATMUL || !read_same_operand(&operators[down], &operators[base]) ||
        small[MDOT_SETTING_CHANNELS_OUT] >= large[MDOT_SETTING_CHANNELS_IN] ||
        small[MDOT_SETTING_CHANNELS_OUT] >= large[MDOT_SETTING_CHANNELS_OUT])
        return;
    s->shardable[down] = false;
    s->base[sum] = (uint32_t)base + 1;
}

/* Marks the adapter that ends in operator i, if there is one. The operators before i are described. Of two operands, at
 * most one is an adapter of the other, because the base reads the adapter's own operand. */
static void find_adapter(search *s, size_t i)
{
    const mdot_job_operator *op = &s->job->operators[i];
    if (s->kind[i] != KIND_SLICEABLE || op->input_count != 2) return;
    size_t a = skip_to_matmul(s, op->inputs[0]), b = skip_to_matmul(s, op->inputs[1]);
    mark_adapter(s, i, a, b);
    mark_adapter(s, i, b, a);
}

/* ---- The search for roles --------------------------------------------------------------------------------------- */

static void begin(search *s)
{
    int64_t head_size = 0;
    for (size_t i = 0; i < s->count && head_size == 0; i++)
        head_size = s->job->operators[i].setting[MDOT_SETTING_HEAD_SIZE];
    for (size_t i = 0; i < s->count; i++) {
        const mdot_job_operator *op = &s->job->operators[i];
        s->kind[i] = (uint8_t)kind_of(op, head_size);
        s->shardable[i] = s->kind[i] == KIND_SLICEABLE || s->kind[i] == KIND_MATMUL;
        s->trains[i] = op->parameters > 0 || op->per_sample[MDOT_PHASE_WEIGHT_GRADIENT].flops > 0;
        s->depends[i] = s->trains[i] || has_weights(op);
        for (size_t k = 0; k < op->input_count; k++) {
            s->trains[i] = s->trains[i] || s->trains[op->inputs[k]];
            s->depends[i] = s->depends[i] || s->depends[op->inputs[k]];
        }
        find_adapter(s, i);
    }
}

static bool accepts_slices(const search *s, size_t i)
{
    return s->kind[i] == KIND_MATMUL || s->kind[i] == KIND_LOSS || (s->kind[i] == KIND_SLICEABLE && s->shardable[i]);
}

/* A tensor stays whole if any of its readers needs the whole of it. Readers come before their operands here. */
static void sweep_backward(search *s)
{
    for (size_t i = s->count; i-- > 0;) {
        if (accepts_slices(s, i)) continue;
        const mdot_job_operator *op = &s->job->operators[i];
        for (size_t k = 0; k < op->input_count; k++) s->shardable[op->inputs[k]] = false;
    }
}

static bool reads(const search *s, size_t i, bool sharded)
{
    const mdot_job_operator *op = &s->job->operators[i];
    for (size_t k = 0; k < op->input_count; k++) {
        size_t operand = op->inputs[k];
        if (s->sharded[operand] == sharded && (sharded || s->depends[operand])) return true;
    }
    return false;
}

/* Propagates sharding along the graph. Returns true if it found an operator that combines a slice with a whole
 * tensor. */
static bool sweep_forward(search *s)
{
    bool changed = false;
    for (size_t i = 0; i < s->count; i++) {
        bool reads_part = reads(s, i, true);
        s->sharded[i] = s->shardable[i] && (s->kind[i] == KIND_MATMUL ? !reads_part : reads_part);
        if (s->kind[i] != KIND_SLICEABLE || !s->sharded[i] || !reads(s, i, false)) continue;
        s->shardable[i] = s->sharded[i] = false;
        changed = true;
    }
    return changed;
}

/* Returns false if the sweeps do not converge to a consistent sharding, because the graph keeps changing it. */
static bool find_roles(search *s)
{
    begin(s);
    for (int sweep = 0; sweep < MAX_SWEEPS; sweep++) {
        sweep_backward(s);
        if (!sweep_forward(s)) return true;
    }
    return false;
}

static rt_role role_of(const search *s, size_t i)
{
    if (s->kind[i] == KIND_TABLE) return RT_ROLE_TABLE;
    if (s->kind[i] == KIND_MATMUL) {
        if (reads(s, i, true)) return RT_ROLE_ROWS;
        return s->sharded[i] ? RT_ROLE_COLUMNS : RT_ROLE_REPLICATED;
    }
    return s->sharded[i] || (s->kind[i] == KIND_LOSS && reads(s, i, true)) ? RT_ROLE_SHARDED : RT_ROLE_REPLICATED;
}

/* ---- Exchanged bytes -------------------------------------------------------------------------------------------- */

static double result_bytes(const mdot_job_operator *op)
{
    return op->per_sample[MDOT_PHASE_FORWARD].bytes_written;
}

/* `summed` marks operands whose gradients are already counted, because several column-sharded matmuls may read one
 * tensor. */
static void count_sums(search *s, rt_sharding *out, bool *summed)
{
    for (size_t i = 0; i < s->count; i++) {
        const mdot_job_operator *op = &s->job->operators[i];
        if (out->role[i] == RT_ROLE_ROWS || out->role[i] == RT_ROLE_TABLE) {
            out->summed_forward_bytes += result_bytes(op);
            out->summed_count++;
        }
        if (out->role[i] == RT_ROLE_ROWS)
            out->common = rt_common_divisor(out->common, (uint64_t)op->setting[MDOT_SETTING_CHANNELS_IN]);
        if (out->role[i] == RT_ROLE_SHARDED) /* every number divides 0 heads */
            out->common = rt_common_divisor(out->common, (uint64_t)op->setting[MDOT_SETTING_HEADS]);
        if (out->role[i] != RT_ROLE_COLUMNS || op->input_count == 0) continue;
        size_t operand = op->inputs[0];
        if (summed[operand] || !s->trains[operand]) continue;
        summed[operand] = true;
        out->summed_backward_bytes += result_bytes(&s->job->operators[operand]);
        out->summed_count++;
    }
}

/* ---- Pipeline positions ----------------------------------------------------------------------------------------- */

void rt_add_parts(const rt_sharding *sharding, size_t index, double elements, rt_parts *out)
{
    bool sharded = sharding->role[index] != RT_ROLE_REPLICATED, expert = sharding->experts.is_expert[index] != 0;
    rt_pipeline_position position = (rt_pipeline_position)sharding->position[index];
    out->all[position] += elements;
    if (sharded) out->sharded[position] += elements;
    if (expert) out->experts[position] += elements;
    if (sharded && expert) out->sharded_experts[position] += elements;
}

static void add_sparse_table(const mdot_job_operator *op, rt_sparse_tables *out)
{
    if (!rt_has_sparse_gradient(op)) return;
    out->parameters += op->parameters;
    out->picked += op->per_sample[MDOT_PHASE_WEIGHT_GRADIENT].bytes_written / sizeof(float);
}

/* A head behind the blocks without weights of its own multiplies by those of a table before them. */
static void add_tied_head(const mdot_job_operator *op, size_t index, rt_sharding *out)
{
    const int64_t *setting = op->setting;
    bool is_matmul = op->input_count <= 1 && multiplies_by_weights(op); /* other operators lack channels */
    if (out->position[index] != RT_PIPELINE_AFTER || weights_of(op) > 0 || !is_matmul) return;
    bool is_trained = op->per_sample[MDOT_PHASE_WEIGHT_GRADIENT].flops > 0;
    double elements = (double)setting[MDOT_SETTING_CHANNELS_IN] * (double)setting[MDOT_SETTING_CHANNELS_OUT];
    rt_add_parts(out, index, elements, is_trained ? &out->tied : &out->frozen_tied);
}

static void find_positions(const mdot_job *job, const double *costs, rt_sharding *out)
{
    size_t count = job->info.operator_count, first = count, last = 0;
    for (size_t i = 0; i < count; i++) {
        if (job->operators[i].block == 0) continue;
        if (first == count) first = i;
        last = i;
    }
    double cost[RT_PIPELINE_POSITIONS] = {0};
    for (size_t i = 0; i < count; i++) {
        rt_pipeline_position position = first == count ? RT_PIPELINE_BLOCKS
                                        : i < first    ? RT_PIPELINE_BEFORE
                                        : i > last     ? RT_PIPELINE_AFTER
                                                       : RT_PIPELINE_BLOCKS;
        out->position[i] = (uint8_t)position;
        cost[position] += costs[i];
        double parameters = rt_dense_parameters(&job->operators[i]), weights = weights_of(&job->operators[i]);
        add_sparse_table(&job->operators[i], &out->sparse);
        add_tied_head(&job->operators[i], i, out);
        rt_add_parts(out, i, parameters, &out->parameters);
        rt_add_parts(out, i, weights - parameters, &out->frozen);
        if (job->operators[i].traits.autocast == MDOT_AUTOCAST_HALF)
            rt_add_parts(out, i, weights, &out->half_parameters);
    }
    out->heavier_end = cost[RT_PIPELINE_BEFORE] > cost[RT_PIPELINE_AFTER] ? RT_PIPELINE_BEFORE : RT_PIPELINE_AFTER;
}

static void find_largest_block(const mdot_job *job, rt_sharding *out, const double *at)
{
    uint32_t largest = 0;
    for (uint32_t b = 1; b <= job->info.block_count; b++) {
        if (at[b] <= out->largest_block_parameters) continue;
        out->largest_block_parameters = at[b];
        largest = b;
    }
    for (size_t i = 0; largest > 0 && i < job->info.operator_count; i++)
        if (job->operators[i].block == largest && out->experts.is_expert[i])
            out->largest_block_experts += weights_of(&job->operators[i]);
}

/* A result that is read in a later block crosses every border in between. `at` has block_count + 2 zeros. */
static void measure_blocks(const mdot_job *job, rt_sharding *out, double *at, uint32_t *last_block)
{
    size_t count = job->info.operator_count;
    for (size_t i = 0; i < count; i++) {
        const mdot_job_operator *op = &job->operators[i];
        last_block[i] = op->block;
        for (size_t k = 0; k < op->input_count; k++)
            if (op->block > last_block[op->inputs[k]]) last_block[op->inputs[k]] = op->block;
        at[op->block] += weights_of(op);
    }
    find_largest_block(job, out, at);
    memset(at, 0, (job->info.block_count + 2) * sizeof *at);
    for (size_t i = 0; i < count; i++) {
        uint32_t block = job->operators[i].block;
        if (block == 0 || last_block[i] == block) continue;
        at[block] += result_bytes(&job->operators[i]);
        at[last_block[i]] -= result_bytes(&job->operators[i]);
    }
    double crossing = 0;
    for (uint32_t b = 1; b <= job->info.block_count; b++) {
        crossing += at[b];
        out->border_bytes = fmax(out->border_bytes, crossing);
    }
}

bool rt_find_sharding(const mdot_job *job, const double *costs, rt_sharding *out)
{
    size_t count = job->info.operator_count;
    search s = {.job = job,
                .count = count,
                .kind = calloc(count, sizeof *s.kind),
                .trains = calloc(count, sizeof *s.trains),
                .depends = calloc(count, sizeof *s.depends),
                .base = calloc(count, sizeof *s.base),
                .shardable = calloc(count, sizeof *s.shardable),
                .sharded = calloc(count, sizeof *s.sharded)};
    bool *summed = calloc(count, sizeof *summed);
    double *at = calloc((size_t)job->info.block_count + 2, sizeof *at);
    uint32_t *last_block = calloc(count, sizeof *last_block);
    out->role = calloc(count, sizeof *out->role);
    out->position = calloc(count, sizeof *out->position);
    bool allocated = s.kind != NULL && s.trains != NULL && s.depends != NULL && s.base != NULL && s.shardable != NULL &&
                     s.sharded != NULL && summed != NULL && at != NULL && last_block != NULL && out->role != NULL &&
                     out->position != NULL && rt_find_experts(job, &out->experts);
    if (allocated) {
        if (find_roles(&s))
            for (size_t i = 0; i < count; i++) out->role[i] = (uint8_t)role_of(&s, i);
        count_sums(&s, out, summed);
        find_positions(job, costs, out);
        measure_blocks(job, out, at, last_block);
    }
    free(s.kind);
    free(s.trains);
    free(s.depends);
    free(s.base);
    free(s.shardable);
    free(s.sharded);
    free(summed);
    free(at);
    free(last_block);
    return allocated;
}

void rt_free_sharding(rt_sharding *sharding)
{
    free(sharding->role);
    free(sharding->position);
    free(sharding->experts.is_expert);
}

rt_elements rt_part_of(const rt_parts *parts, const rt_shard *shard)
{
    double saved = 1 - 1 / shard->tensor;
    rt_elements sum = {0};
    for (int at = 0; at < RT_PIPELINE_POSITIONS; at++) {
        double experts = parts->experts[at] - parts->sharded_experts[at] * saved;
        double all = parts->all[at] - parts->sharded[at] * saved;
        sum.experts += shard->of[at] * experts / shard->experts;
        sum.others += shard->of[at] * (all - experts);
    }
    return sum;
}

static rt_elements sum_of_elements(rt_elements a, rt_elements b)
{
    return (rt_elements){a.others + b.others, a.experts + b.experts};
}

/* The elements of a stage. A stage without the operators before the blocks has a copy of the tables that its head is
 * tied to. */
static rt_elements with_tied(const rt_parts *parts, const rt_parts *tied, const rt_shard *shard)
{
    rt_elements own = rt_part_of(parts, shard);
    return shard->of[RT_PIPELINE_BEFORE] > 0 ? own : sum_of_elements(own, rt_part_of(tied, shard));
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

/* ---- Operators on one GPU --------------------------------------------------------------------------------------- */

static void divide_load(mdot_load *load, double flops, double read, double written)
{
    *load = (mdot_load){load->flops / flops, load->bytes_read / read, load->bytes_written / written};
}

static void shard_matmul(mdot_job_operator *op, bool by_columns, double tensor)
{
    mdot_load *forward = &op->per_sample[MDOT_PHASE_FORWARD], *weight = &op->per_sample[MDOT_PHASE_WEIGHT_GRADIENT];
    double in = by_columns ? 1 : tensor, out = by_columns ? tensor : 1;
    /* The parameters' gradient reads the operand and the result's gradient, one of which is sharded. */
    double sharded_bytes = by_columns ? forward->bytes_written : forward->bytes_read;
    weight->bytes_read = fmax(weight->bytes_read - sharded_bytes * (1 - 1 / tensor), 0);
    weight->flops /= tensor;
    divide_load(forward, tensor, in, out);
    divide_load(&op->per_sample[MDOT_PHASE_DATA_GRADIENT], tensor, out, in);
    op->setting[by_columns ? MDOT_SETTING_CHANNELS_OUT : MDOT_SETTING_CHANNELS_IN] /= (int64_t)tensor;
}

/* Each GPU has fewer experts, each with more tokens. */
static void shard_experts(mdot_job_operator *op, double experts)
{
    int64_t degree = (int64_t)experts, *setting = op->setting;
    for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++) divide_load(&op->per_step[phase], experts, experts, experts);
    op->parameters /= experts;
    op->frozen_parameters /= experts;
    int64_t most = INT64_MAX / degree;
    if (setting[MDOT_SETTING_GROUPS] % degree != 0) return;
    if (setting[MDOT_SETTING_SIZE_IN] > most || setting[MDOT_SETTING_SIZE_OUT] > most) return;
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

double rt_shard_divisor(const rt_sharding *sharding, size_t index, const rt_shard *shard)
{
    double tensor = sharding->role[index] != RT_ROLE_REPLICATED ? shard->tensor : 1;
    return tensor * (sharding->experts.is_expert[index] ? shard->experts : 1);
}

const mdot_job_operator *rt_sharded_operator(const mdot_job *job, const rt_sharding *sharding, size_t index,
                                             const rt_shard *shard, mdot_job_operator *buffer)
{
    rt_role role = (rt_role)sharding->role[index];
    if (rt_shard_divisor(sharding, index, shard) == 1) return &job->operators[index];
    *buffer = job->operators[index];
    if (role != RT_ROLE_REPLICATED) shard_channels(buffer, role, shard->tensor);
    if (sharding->experts.is_expert[index]) shard_experts(buffer, shard->experts);
    return buffer;
}
