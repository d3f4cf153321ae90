/* sharding_roles.c — the role of each operator under tensor parallelism, and the bytes that are summed.
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
#include "runtime/job/job_model.h"
#include "runtime/perf/operator_traits.h"
#include "runtime/perf/sharding.h"

#include <stdlib.h>

typedef enum kind {
    KIND_WHOLE,     /* needs all channels */
    KIND_SLICEABLE, /* works on a slice as on the whole tensor */
    KIND_MATMUL,    /* matmul of one operand with parameters */
    KIND_TABLE,
    KIND_LOSS /* accepts slices of the classes and returns a whole result */
} kind;

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
    if (rt_has_trait(op, MDOT_TRAIT_PICKS)) return rt_weights_of(op) > 0 ? KIND_TABLE : KIND_WHOLE;
    bool multiplies = setting[MDOT_SETTING_CHANNELS_IN] > 0 && setting[MDOT_SETTING_CHANNELS_OUT] > 0;
    if (multiplies && rt_multiplies_by_weights(op)) return op->input_count <= 1 ? KIND_MATMUL : KIND_WHOLE;
    return works_along_channels(op, head_size) ? KIND_WHOLE : KIND_SLICEABLE;
}

enum { MAX_SWEEPS = 64 };

typedef struct node {
    uint8_t kind;
    bool trains;    /* this operator or one before it has trained parameters */
    bool depends;   /* this operator or one before it has parameters, trained or frozen */
    bool shardable; /* its result may be sharded */
    bool sharded;   /* its result is sharded */
    bool summed;    /* the gradient of its result is counted already */
    uint32_t base;  /* for a sum of base matmul and adapter: 1 + index of the base matmul; otherwise 0 */
} node;

typedef struct search {
    const mdot_job *job;
    size_t count;
    node *node; /* of each operator */
} search;

/* The operator behind operators of one operand, such as a scaling, and behind sums with an adapter. */
static size_t skip_to_matmul(const search *s, size_t i)
{
    for (;;) {
        const mdot_job_operator *op = &s->job->operators[i];
        if (s->node[i].base != 0) {
            i = s->node[i].base - 1;
        } else if (s->node[i].kind == KIND_SLICEABLE && op->input_count == 1) {
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
    if (s->node[base].kind != KIND_MATMUL || s->node[up].kind != KIND_MATMUL || operators[up].input_count != 1) return;
    size_t down = skip_to_matmul(s, operators[up].inputs[0]);
    const int64_t *large = operators[base].setting, *small = operators[down].setting;
    if (s->node[down].kind != KIND_MATMUL || !read_same_operand(&operators[down], &operators[base]) ||
        small[MDOT_SETTING_CHANNELS_OUT] >= large[MDOT_SETTING_CHANNELS_IN] ||
        small[MDOT_SETTING_CHANNELS_OUT] >= large[MDOT_SETTING_CHANNELS_OUT])
        return;
    s->node[down].shardable = false;
    s->node[sum].base = (uint32_t)base + 1;
}

/* Marks the adapter that ends in operator i, if there is one. The operators before i are described. Of two operands, at
 * most one is an adapter of the other, because the base reads the adapter's own operand. */
static void find_adapter(search *s, size_t i)
{
    const mdot_job_operator *op = &s->job->operators[i];
    if (s->node[i].kind != KIND_SLICEABLE || op->input_count != 2) return;
    size_t a = skip_to_matmul(s, op->inputs[0]), b = skip_to_matmul(s, op->inputs[1]);
    mark_adapter(s, i, a, b);
    mark_adapter(s, i, b, a);
}

static void begin(search *s)
{
    int64_t head_size = 0;
    for (size_t i = 0; i < s->count && head_size == 0; i++)
        head_size = s->job->operators[i].setting[MDOT_SETTING_HEAD_SIZE];
    for (size_t i = 0; i < s->count; i++) {
        const mdot_job_operator *op = &s->job->operators[i];
        s->node[i].kind = (uint8_t)kind_of(op, head_size);
        s->node[i].shardable = s->node[i].kind == KIND_SLICEABLE || s->node[i].kind == KIND_MATMUL;
        s->node[i].trains = op->parameters > 0 || op->per_sample[MDOT_PHASE_WEIGHT_GRADIENT].flops > 0;
        s->node[i].depends = s->node[i].trains || rt_has_weights(op);
        for (size_t k = 0; k < op->input_count; k++) {
            s->node[i].trains = s->node[i].trains || s->node[op->inputs[k]].trains;
            s->node[i].depends = s->node[i].depends || s->node[op->inputs[k]].depends;
        }
        find_adapter(s, i);
    }
}

static bool accepts_slices(const search *s, size_t i)
{
    return s->node[i].kind == KIND_MATMUL || s->node[i].kind == KIND_LOSS ||
           (s->node[i].kind == KIND_SLICEABLE && s->node[i].shardable);
}

/* A tensor stays whole if a reader needs the whole tensor. The sweep visits readers before operands. */
static void sweep_backward(search *s)
{
    for (size_t i = s->count; i-- > 0;) {
        if (accepts_slices(s, i)) continue;
        const mdot_job_operator *op = &s->job->operators[i];
        for (size_t k = 0; k < op->input_count; k++) s->node[op->inputs[k]].shardable = false;
    }
}

static bool reads(const search *s, size_t i, bool sharded)
{
    const mdot_job_operator *op = &s->job->operators[i];
    for (size_t k = 0; k < op->input_count; k++) {
        size_t operand = op->inputs[k];
        if (s->node[operand].sharded == sharded && (sharded || s->node[operand].depends)) return true;
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
        s->node[i].sharded = s->node[i].shardable && (s->node[i].kind == KIND_MATMUL ? !reads_part : reads_part);
        if (s->node[i].kind != KIND_SLICEABLE || !s->node[i].sharded || !reads(s, i, false)) continue;
        s->node[i].shardable = s->node[i].sharded = false;
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
    if (s->node[i].kind == KIND_TABLE) return RT_ROLE_TABLE;
    if (s->node[i].kind == KIND_MATMUL) {
        if (reads(s, i, true)) return RT_ROLE_ROWS;
        return s->node[i].sharded ? RT_ROLE_COLUMNS : RT_ROLE_REPLICATED;
    }
    return s->node[i].sharded || (s->node[i].kind == KIND_LOSS && reads(s, i, true)) ? RT_ROLE_SHARDED
                                                                                     : RT_ROLE_REPLICATED;
}

/* Several column-sharded matmuls may read one tensor, whose gradient is summed once. */
static void count_sums(search *s, rt_sharding *out)
{
    for (size_t i = 0; i < s->count; i++) {
        const mdot_job_operator *op = &s->job->operators[i];
        if (out->role[i] == RT_ROLE_ROWS || out->role[i] == RT_ROLE_TABLE) {
            out->summed_forward_bytes += rt_result_bytes(op);
            out->summed_count++;
        }
        if (out->role[i] == RT_ROLE_ROWS)
            out->common = rt_common_divisor(out->common, (uint64_t)op->setting[MDOT_SETTING_CHANNELS_IN]);
        if (out->role[i] == RT_ROLE_SHARDED) /* every number divides 0 heads */
            out->common = rt_common_divisor(out->common, (uint64_t)op->setting[MDOT_SETTING_HEADS]);
        if (out->role[i] != RT_ROLE_COLUMNS || op->input_count == 0) continue;
        size_t operand = op->inputs[0];
        if (s->node[operand].summed || !s->node[operand].trains) continue;
        s->node[operand].summed = true;
        out->summed_backward_bytes += rt_result_bytes(&s->job->operators[operand]);
        out->summed_count++;
    }
}

bool rt_find_sharding_roles(const mdot_job *job, rt_sharding *out)
{
    size_t count = job->info.operator_count;
    search s = {.job = job, .count = count, .node = calloc(count, sizeof *s.node)};
    if (s.node == NULL) return false;
    if (find_roles(&s))
        for (size_t i = 0; i < count; i++) out->role[i] = (uint8_t)role_of(&s, i);
    count_sums(&s, out);
    free(s.node);
    return true;
}
