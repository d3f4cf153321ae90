/* plan_interpreter_kinds.c — kernels of each kind with naive loops (see plan_interpreter.h). */
#include "tests/support/plan_interpreter.h"

#include <math.h>
#include <string.h>

#include "ir/ops/mdot_ops.h"

typedef void (*interpret_kind)(const pl_kernel *kernel, pl_machine *machine);

static int64_t heads_at(const pl_machine *m, const pl_heads *h, int64_t batch, int64_t head, int64_t position)
{
    return pl_machine_dim(m, h->offset) + batch * pl_machine_dim(m, h->batch_stride) +
           head * pl_machine_dim(m, h->head_stride) + position * pl_machine_dim(m, h->row_stride);
}

static double attention_score(pl_machine *m, const pl_attention *k, int64_t b, int64_t h, int64_t query, int64_t key)
{
    double sum = 0;
    int64_t q = heads_at(m, &k->q, b, h, query), t = heads_at(m, &k->k, b, h / (k->heads / k->kv_heads), key);
    if (k->causal && key > query + pl_machine_dim(m, k->keys) - pl_machine_dim(m, k->queries)) return -INFINITY;
    for (int64_t d = 0; d < k->dim; d++)
        sum += pl_machine_load_factor(m, k->q.buffer, q + d) * pl_machine_load_factor(m, k->k.buffer, t + d);
    sum *= k->scale;
    if (k->softcap > 0) sum = k->softcap * tanh(sum / k->softcap);
    for (int i = 0; i < k->mask_count; i++) {
        double mask = pl_machine_load(m, k->mask[i].buffer, heads_at(m, &k->mask[i], b, h, query) + key).f;
        sum = k->replaces[i] < 0 && mask <= k->replaces[i] ? mask : sum + mask;
    }
    return sum;
}

static void attend(pl_machine *m, const pl_attention *k, int64_t b, int64_t h, int64_t query, double *weight)
{
    int64_t keys = pl_machine_dim(m, k->keys);
    bool sees_any = k->mask_count == 0 && !k->causal; /* otherwise keys whose scores are -inf count as masked */
    for (int64_t key = 0; key < keys; key++) {
        weight[key] = attention_score(m, k, b, h, query, key);
        sees_any = sees_any || weight[key] != -INFINITY;
    }
    if (sees_any) pl_machine_softmax(weight, keys, false);
    for (int64_t key = 0; key < keys && !sees_any; key++) weight[key] = 0;
    for (int64_t d = 0; d < k->value_dim; d++) {
        double sum = 0;
        for (int64_t key = 0; key < keys; key++) {
            int64_t at = heads_at(m, &k->v, b, h / (k->heads / k->kv_heads), key) + d;
            sum += pl_machine_factor(m, weight[key]) * pl_machine_load_factor(m, k->v.buffer, at);
        }
        pl_machine_store(m, k->out.buffer, heads_at(m, &k->out, b, h, query) + d, (pl_scalar){.f = sum});
    }
}

static void interpret_attention(const pl_kernel *kernel, pl_machine *m)
{
    const pl_attention *k = &kernel->attention;
    double *weight = IR_NEW_ARRAY(m->arena, double, pl_machine_dim(m, k->keys) + 1);
    if (weight == NULL) {
        pl_machine_out_of_memory(m);
        return;
    }
    for (int64_t b = 0; b < pl_machine_dim(m, k->batch); b++)
        for (int64_t h = 0; h < k->heads; h++)
            for (int64_t query = 0; query < pl_machine_dim(m, k->queries) && m->status == MDOT_OK; query++)
                attend(m, k, b, h, query, weight);
}

/* The distance of position `index`, in row-major order, from the first one. */
static int64_t distance_at(const pl_machine *m, const pl_window_dims *dims, int64_t index)
{
    int64_t distance = 0;
    for (int d = dims->count - 1; d >= 0; d--) {
        int64_t extent = pl_machine_dim(m, dims->extent[d]);
        distance += index % extent * pl_machine_dim(m, dims->stride[d]);
        index /= extent;
    }
    return distance;
}

static int64_t element_of_a(const pl_machine *m, const pl_linear *k, int64_t row, int64_t column)
{
    int64_t first = pl_machine_dim(m, k->a.offset);
    if (k->windows == NULL) return first + row * pl_machine_dim(m, k->a.row_stride) + column;
    return first + distance_at(m, &k->windows->rows, row) + distance_at(m, &k->windows->columns, column);
}

/* The end of a loop. Rows that a kernel may leave out keep the NaNs that fill a new machine's memory. */
static int64_t loop_end(const pl_machine *m, const pl_kernel *kernel, int loop, ir_dim extent)
{
    int64_t all = pl_machine_dim(m, extent);
    if (kernel->limit == NULL || kernel->limit->loop != loop) return all;
    int64_t end = m->memory[kernel->limit->count]->i[0] * kernel->limit->points;
    return end < all ? end : all;
}

static void interpret_linear(const pl_kernel *kernel, pl_machine *m)
{
    const pl_linear *k = &kernel->linear;
    int64_t rows = loop_end(m, kernel, 0, k->rows);
    const double *weight = m->memory[k->weight]->f, *bias = k->bias >= 0 ? m->memory[k->bias]->f : NULL;
    for (int64_t r = 0; r < rows && m->status == MDOT_OK; r++) {
        for (int64_t c = 0; c < k->columns; c++) {
            double sum = bias != NULL ? bias[c] : 0;
            for (int64_t i = 0; i < k->k; i++)
                sum += pl_machine_load_factor(m, k->a.buffer, element_of_a(m, k, r, i)) *
                       pl_machine_factor(m, weight[i * k->columns + c]);
            pl_machine_finish_element(m, k->epilogue, &k->out, r, c, sum);
        }
    }
}

static bool advance_loops(const pl_machine *m, const ir_dim *extent, int64_t *index, int count)
{
    for (int k = count - 1; k >= 0; k--) {
        if (++index[k] < pl_machine_dim(m, extent[k])) return true;
        index[k] = 0;
    }
    return false;
}

/* Sets the loop indices to zero. False: the loops have no point. */
static bool begin_loops(const pl_machine *m, const ir_dim *extent, int64_t *index, int count)
{
    bool any = true;
    for (int k = 0; k < count; k++) {
        index[k] = 0;
        any = any && pl_machine_dim(m, extent[k]) > 0;
    }
    return any;
}

static pl_scalar neutral(pl_reducer reducer, mdot_dtype dtype)
{
    bool is_float = ir_dtype_is_float(dtype);
    double sign = reducer == PL_REDUCE_MAX ? -1 : 1;
    int bits = 8 * (int)mdot_dtype_size_bytes(dtype);
    int64_t most = ir_dtype_is_unsigned(dtype) ? (int64_t)(UINT64_MAX >> (64 - bits)) : INT64_MAX >> (64 - bits);
    switch (reducer) {
    case PL_REDUCE_SUM: return (pl_scalar){0};
    case PL_REDUCE_PROD: return is_float ? (pl_scalar){.f = 1} : (pl_scalar){.n = 1};
    default: break;
    }
    if (is_float) return (pl_scalar){.f = sign * INFINITY};
    if (reducer == PL_REDUCE_MIN) return (pl_scalar){.n = most};
    return (pl_scalar){.n = ir_dtype_is_unsigned(dtype) ? 0 : -most - 1};
}

static void reduce_values(pl_machine *m, const pl_nest *k)
{
    static const pl_expr_op steps[] = {
        [PL_REDUCE_SUM] = PL_ADD, [PL_REDUCE_PROD] = PL_MUL, [PL_REDUCE_MAX] = PL_MAX, [PL_REDUCE_MIN] = PL_MIN};
    mdot_dtype dtype = k->body->dtype;
    const ir_dim *extent = k->extent + k->loop_count;
    int64_t *index = m->index + k->loop_count;
    pl_scalar acc = neutral(k->reducer, dtype);
    if (begin_loops(m, extent, index, k->reduce_count)) {
        do {
            acc = pl_scalar_apply(steps[k->reducer], dtype, dtype, (pl_scalar[]){acc, pl_machine_evaluate(m, k->body)});
        } while (advance_loops(m, extent, index, k->reduce_count));
    }
    m->acc_f = acc.f;
    m->acc_n = acc.n;
}

static bool is_nan(pl_scalar x, mdot_dtype dtype) { return ir_dtype_is_float(dtype) && x.f != x.f; }

/* Position of the first or last maximum or minimum. A NaN is more extreme than every number. */
static void reduce_position(pl_machine *m, const pl_nest *k)
{
    mdot_dtype dtype = k->body->dtype;
    const ir_dim *extent = k->extent + k->loop_count;
    int64_t *index = m->index + k->loop_count, position = 0;
    bool last = k->reducer == PL_REDUCE_ARGMAX_LAST || k->reducer == PL_REDUCE_ARGMIN_LAST;
    bool least = k->reducer == PL_REDUCE_ARGMIN_FIRST || k->reducer == PL_REDUCE_ARGMIN_LAST;
    pl_scalar best = {0};
    m->acc_n = 0;
    if (!begin_loops(m, extent, index, k->reduce_count)) return;
    do {
        pl_scalar x = pl_machine_evaluate(m, k->body), pair[2] = {least ? x : best, least ? best : x};
        bool better = pl_scalar_apply(last ? PL_LE : PL_LT, MDOT_DTYPE_BOOL, dtype, pair).n != 0;
        if (is_nan(x, dtype) || is_nan(best, dtype)) better = is_nan(x, dtype) && (last || !is_nan(best, dtype));
        if (position == 0 || better) {
            best = x;
            m->acc_n = position;
        }
        position++;
    } while (advance_loops(m, extent, index, k->reduce_count));
}

static void interpret_nest(const pl_kernel *kernel, pl_machine *m)
{
    const pl_nest *k = &kernel->nest;
    if (!begin_loops(m, k->extent, m->index, k->loop_count)) return;
    do {
        const pl_row_limit *limit = kernel->limit;
        if (limit != NULL && m->index[limit->loop] >= loop_end(m, kernel, limit->loop, k->extent[limit->loop]))
            continue;
        if (k->body != NULL && k->reducer >= PL_REDUCE_ARGMAX_FIRST)
            reduce_position(m, k);
        else if (k->body != NULL)
            reduce_values(m, k);
        pl_scalar value[PL_MAX_STORES];
        for (int s = 0; s < k->store_count; s++) value[s] = pl_machine_evaluate(m, k->store[s].value);
        for (int s = 0; s < k->store_count; s++)
            pl_machine_store(m, k->store[s].buffer, pl_machine_evaluate(m, k->store[s].index).n, value[s]);
    } while (m->status == MDOT_OK && advance_loops(m, k->extent, m->index, k->loop_count));
}

static void normalise(const pl_norm *k, double *x, int64_t count)
{
    if (k->mode == PL_NORM_SOFTMAX || k->mode == PL_NORM_LOG_SOFTMAX) {
        pl_machine_softmax(x, count, k->mode == PL_NORM_LOG_SOFTMAX);
        return;
    }
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < count; i++) sum += x[i];
    double mean = k->mode == PL_NORM_LAYER ? sum / (double)count : 0;
    for (int64_t i = 0; i < count; i++) squares += (x[i] - mean) * (x[i] - mean);
    double deviation = sqrt(squares / (double)count + k->epsilon);
    for (int64_t i = 0; i < count; i++) x[i] = (x[i] - mean) / deviation;
}

static void interpret_norm(const pl_kernel *kernel, pl_machine *m)
{
    const pl_norm *k = &kernel->norm;
    int64_t rows = loop_end(m, kernel, 0, k->rows), columns = pl_machine_dim(m, k->columns);
    double *x = IR_NEW_ARRAY(m->arena, double, columns);
    if (x == NULL) {
        pl_machine_out_of_memory(m);
        return;
    }
    for (int64_t r = 0; r < rows && m->status == MDOT_OK; r++) {
        for (int64_t c = 0; c < columns; c++) {
            m->index[0] = r;
            m->index[1] = c;
            x[c] = pl_machine_evaluate(m, k->input).f;
            if (k->sum.buffer >= 0) pl_machine_store_matrix(m, &k->sum, r, c, x[c]);
        }
        normalise(k, x, columns);
        for (int64_t c = 0; c < columns; c++) {
            double value = x[c];
            if (k->gamma >= 0) value *= pl_machine_load(m, k->gamma, c).f;
            if (k->beta >= 0) value += pl_machine_load(m, k->beta, c).f;
            pl_machine_finish_element(m, k->epilogue, &k->out, r, c, value);
        }
    }
}

static double threshold_at(pl_machine *m, int nodes, int64_t first, bool is_single)
{
    uint64_t bits = (uint32_t)pl_machine_load(m, nodes, first).n;
    if (is_single) {
        uint32_t low = (uint32_t)bits;
        float single;
        memcpy(&single, &low, sizeof single);
        return single;
    }
    bits |= (uint64_t)(uint32_t)pl_machine_load(m, nodes, first + 1).n << 32;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static int64_t walk(pl_machine *m, const pl_trees *k, int64_t tree, int64_t depth, int64_t row)
{
    bool is_single = m->plan->buffers[k->x].type.dtype == MDOT_DTYPE_F32;
    int64_t words = is_single ? 4 : 6, node = pl_machine_load(m, k->trees, tree * IR_TREE_WORDS + IR_TREE_ROOT).n;
    for (int64_t step = 0; step < depth && m->status == MDOT_OK; step++) {
        int64_t first = node * words, rest = first + (is_single ? 1 : 2);
        int64_t feature = pl_machine_load(m, k->nodes, rest).n;
        double x = pl_machine_load(m, k->x, row * k->features + feature / 2).f;
        double value = feature % 2 == 0 ? x : -x;
        if (is_single) value = (float)value;
        int64_t is_false = value <= threshold_at(m, k->nodes, first, is_single) ? 0 : 1;
        node = pl_machine_load(m, k->nodes, rest + 1).n + is_false;
    }
    return pl_machine_load(m, k->nodes, node * words + (is_single ? 3 : 4)).n;
}

static void add_leaf(pl_machine *m, const pl_trees *k, double *to, int64_t value)
{
    double leaf = pl_machine_load(m, k->values, value).f;
    if (k->reducer == PL_REDUCE_SUM)
        *to += leaf;
    else if (k->reducer == PL_REDUCE_MIN ? leaf < *to : leaf > *to)
        *to = leaf;
}

static void interpret_trees(const pl_kernel *kernel, pl_machine *m)
{
    const pl_trees *k = &kernel->trees;
    int64_t rows = pl_machine_dim(m, k->rows);
    double *sums = IR_NEW_ARRAY(m->arena, double, k->targets);
    double neutral = k->reducer == PL_REDUCE_SUM ? 0 : k->reducer == PL_REDUCE_MIN ? INFINITY : -INFINITY;
    if (sums == NULL) {
        pl_machine_out_of_memory(m);
        return;
    }
    for (int64_t r = 0; r < rows && m->status == MDOT_OK; r++) {
        for (int64_t t = 0; t < k->targets; t++) sums[t] = neutral;
        for (int g = 0; g < k->group_count; g++)
            for (int64_t i = 0; i < k->groups[g].count; i++) {
                int64_t tree = k->groups[g].first + i, leaf = walk(m, k, tree, k->groups[g].depth, r);
                int64_t target = pl_machine_load(m, k->trees, tree * IR_TREE_WORDS + IR_TREE_TARGET).n;
                int64_t width = target < 0 ? k->targets : 1;
                for (int64_t t = 0; t < width; t++) add_leaf(m, k, &sums[target < 0 ? t : target], leaf + t);
            }
        for (int64_t t = 0; t < k->targets; t++)
            pl_machine_store(m, k->out, r * k->targets + t, (pl_scalar){.f = sums[t]});
    }
}

static void interpret_recurrence(const pl_kernel *kernel, pl_machine *m);

static const interpret_kind interpreters[PL_KIND_COUNT] = {
#define PL_KERNEL_KIND(identifier, name) [PL_##identifier] = interpret_##name,
#include "plan/kernel_kinds.def"
};

static void interpret_recurrence(const pl_kernel *kernel, pl_machine *m)
{
    const pl_recurrence *k = &kernel->recurrence;
    for (m->step = 0; m->step < pl_machine_dim(m, k->steps) && m->status == MDOT_OK; m->step++)
        for (int i = 0; i < k->kernel_count; i++) interpreters[k->kernels[i].kind](&k->kernels[i], m);
}

void pl_machine_run(pl_machine *m, const pl_kernel *kernel) { interpreters[kernel->kind](kernel, m); }
