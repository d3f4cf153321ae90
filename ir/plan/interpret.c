/* interpret.c — runs a plan on concrete data with naive loops (see interpret.h). */
#include "ir/plan/interpret.h"

#include <inttypes.h>
#include <math.h>

#include "ir/ops/families.h"
#include "ir/plan/scalar.h"

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

void pl_machine_fault(pl_machine *m, const char *what, int buffer, int64_t at, int64_t count)
{
    if (m->status != MDOT_OK) return;
    m->status =
        mdot_fail(m->err, MDOT_OUT_OF_RANGE, "kernel \"%s\": %s b%d[%" PRId64 "], which has %" PRId64 " elements",
                  m->kernel->name, what, buffer, at, count);
}

static bool is_inside(pl_machine *m, const char *what, int buffer, int64_t at)
{
    int64_t count = m->memory[buffer]->count;
    if (at >= 0 && at < count) return true;
    pl_machine_fault(m, what, buffer, at, count);
    return false;
}

static pl_scalar load(pl_machine *m, int buffer, int64_t at)
{
    const ir_wide *wide = m->memory[buffer];
    if (!is_inside(m, "reads", buffer, at)) return (pl_scalar){0};
    return wide->f != NULL ? (pl_scalar){.f = wide->f[at]} : (pl_scalar){.n = wide->i[at]};
}

static void store(pl_machine *m, int buffer, int64_t at, pl_scalar value)
{
    ir_wide *wide = m->memory[buffer];
    if (!is_inside(m, "writes", buffer, at)) return;
    if (wide->f != NULL)
        wide->f[at] = ir_round_float(pl_is_half(&m->plan->buffers[buffer]) ? m->half : wide->dtype, value.f);
    else
        wide->i[at] = ir_wrap_integer(wide->dtype, value.n);
}

/* A factor of a product, which matrix kernels round. */
static double factor(const pl_machine *m, double value)
{
    return m->is_matrix && m->half != MDOT_DTYPE_F32 ? ir_round_float(m->half, value) : value;
}

static double load_factor(pl_machine *m, int buffer, int64_t at)
{
    return factor(m, load(m, buffer, at).f);
}

static int64_t at_length(const pl_machine *m, ir_dim d)
{
    return ir_dim_at(d, m->length);
}

static void destroy(ir_wide *wide)
{
    for (int64_t k = 0; k < wide->count; k++) {
        if (wide->f != NULL)
            wide->f[k] = NAN;
        else
            wide->i[k] = ir_wrap_integer(wide->dtype, 0x5a5a5a5a5a5a5a5a);
    }
}

/* Buffers that become live at kernel `number` overwrite the buffers below them. */
static void bring_to_life(pl_machine *m, int number)
{
    const pl_plan *plan = m->plan;
    for (int a = 0; a < plan->buffer_count; a++) {
        const pl_buffer *young = &plan->buffers[a];
        if (young->kind != PL_SCRATCH || young->first_use != number) continue;
        for (int b = 0; b < plan->buffer_count; b++) {
            const pl_buffer *old = &plan->buffers[b];
            if (old->kind != PL_SCRATCH || old->first_use < 0 || (old->first_use == number && a != b)) continue;
            bool apart = old->offset_bytes >= young->offset_bytes + pl_capacity_bytes(plan, young) ||
                         young->offset_bytes >= old->offset_bytes + pl_capacity_bytes(plan, old);
            if (!apart) destroy(m->memory[b]);
        }
    }
}

static bool make_memory(pl_machine *m, const ir_wide *const *inputs)
{
    const pl_plan *plan = m->plan;
    m->memory = IR_NEW_ARRAY(m->arena, ir_wide *, plan->buffer_count + 1);
    if (m->memory == NULL) return false;
    for (int k = 0; k < plan->buffer_count; k++) {
        const pl_buffer *buffer = &plan->buffers[k];
        int64_t dims[MDOT_MAX_RANK];
        for (int d = 0; d < buffer->type.rank; d++) dims[d] = at_length(m, buffer->type.dim[d]);
        if (buffer->kind == PL_INPUT)
            m->memory[k] = (ir_wide *)(uintptr_t)inputs[buffer->index]; /* read only */
        else if (buffer->kind == PL_WEIGHT)
            m->memory[k] = ir_wide_from_tensor(m->arena, buffer->constant);
        else
            m->memory[k] = ir_wide_create(m->arena, buffer->type.dtype, buffer->type.rank, dims);
        if (m->memory[k] == NULL) return false;
        if (buffer->kind == PL_OUTPUT || buffer->kind == PL_SCRATCH) destroy(m->memory[k]);
    }
    return true;
}

/* ---- Expressions ------------------------------------------------------------------------------------------------- */

static pl_scalar evaluate(pl_machine *m, const pl_expr *e)
{
    pl_scalar arg[3] = {{0}};
    switch (e->op) {
    case PL_CONST:
        return ir_dtype_is_float(e->dtype) ? (pl_scalar){.f = e->f} : (pl_scalar){.n = e->n};
    case PL_INDEX:
        return (pl_scalar){.n = m->index[e->i]};
    case PL_STEP:
        return (pl_scalar){.n = m->step};
    case PL_LENGTH:
        return (pl_scalar){.n = m->length};
    case PL_ACC:
        return ir_dtype_is_float(e->dtype) ? (pl_scalar){.f = m->acc_f} : (pl_scalar){.n = m->acc_n};
    case PL_LOAD:
        return load(m, e->i, evaluate(m, e->arg[0]).n);
    default:
        break;
    }
    for (int k = 0; k < pl_expr_operand_count(e->op); k++) arg[k] = evaluate(m, e->arg[k]);
    mdot_dtype from = e->arg[e->op == PL_SELECT ? 1 : 0]->dtype;
    pl_scalar result = pl_scalar_apply(e->op, e->dtype, from, arg);
    if (ir_dtype_is_float(e->dtype)) result.f = ir_round_float(e->dtype, result.f);
    return result;
}

/* ---- Linear ------------------------------------------------------------------------------------------------------ */

static void store_matrix(pl_machine *m, const pl_matrix *out, int64_t row, int64_t column, double value)
{
    int64_t at = at_length(m, out->offset) + row * at_length(m, out->row_stride) + column;
    store(m, out->buffer, at, (pl_scalar){.f = value});
}

/* Passes the value at (row, column) through the epilogue into the result. */
static void finish_element(pl_machine *m, const pl_expr *epilogue, const pl_matrix *out, int64_t row, int64_t column,
                           double value)
{
    m->index[0] = row;
    m->index[1] = column;
    m->acc_f = value;
    store_matrix(m, out, row, column, epilogue != NULL ? evaluate(m, epilogue).f : value);
}

static void run_linear(pl_machine *m, const pl_linear *k)
{
    int64_t rows = at_length(m, k->rows), start = at_length(m, k->a.offset), stride = at_length(m, k->a.row_stride);
    const double *weight = m->memory[k->weight]->f, *bias = k->bias >= 0 ? m->memory[k->bias]->f : NULL;
    for (int64_t r = 0; r < rows && m->status == MDOT_OK; r++) {
        for (int64_t c = 0; c < k->columns; c++) {
            double sum = bias != NULL ? bias[c] : 0;
            for (int64_t i = 0; i < k->k; i++)
                sum += load_factor(m, k->a.buffer, start + r * stride + i) * factor(m, weight[i * k->columns + c]);
            finish_element(m, k->epilogue, &k->out, r, c, sum);
        }
    }
}

/* ---- Norm -------------------------------------------------------------------------------------------------------- */

static void normalise(const pl_norm *k, double *x, int64_t count)
{
    double sum = 0, squares = 0, largest = -INFINITY;
    for (int64_t i = 0; i < count; i++) {
        sum += x[i];
        largest = fmax(largest, x[i]);
    }
    if (k->mode == PL_NORM_LAYER || k->mode == PL_NORM_RMS) {
        double mean = k->mode == PL_NORM_LAYER ? sum / (double)count : 0;
        for (int64_t i = 0; i < count; i++) squares += (x[i] - mean) * (x[i] - mean);
        double deviation = sqrt(squares / (double)count + k->epsilon);
        for (int64_t i = 0; i < count; i++) x[i] = (x[i] - mean) / deviation;
        return;
    }
    double total = 0;
    for (int64_t i = 0; i < count; i++) total += exp(x[i] - largest);
    for (int64_t i = 0; i < count; i++)
        x[i] = k->mode == PL_NORM_SOFTMAX ? exp(x[i] - largest) / total : x[i] - largest - log(total);
}

static void run_norm(pl_machine *m, const pl_norm *k)
{
    int64_t rows = at_length(m, k->rows), columns = at_length(m, k->columns);
    double *x = IR_NEW_ARRAY(m->arena, double, columns);
    if (x == NULL) {
        m->status = mdot_fail(m->err, MDOT_OUT_OF_MEMORY, "memory ran out");
        return;
    }
    for (int64_t r = 0; r < rows && m->status == MDOT_OK; r++) {
        for (int64_t c = 0; c < columns; c++) {
            m->index[0] = r;
            m->index[1] = c;
            x[c] = evaluate(m, k->input).f;
            if (k->sum.buffer >= 0) store_matrix(m, &k->sum, r, c, x[c]);
        }
        normalise(k, x, columns);
        for (int64_t c = 0; c < columns; c++) {
            double value = x[c];
            if (k->gamma >= 0) value *= load(m, k->gamma, c).f;
            if (k->beta >= 0) value += load(m, k->beta, c).f;
            finish_element(m, k->epilogue, &k->out, r, c, value);
        }
    }
}

/* ---- Attention --------------------------------------------------------------------------------------------------- */

static int64_t heads_at(const pl_machine *m, const pl_heads *h, int64_t batch, int64_t head, int64_t position)
{
    return at_length(m, h->offset) + batch * at_length(m, h->batch_stride) + head * at_length(m, h->head_stride) +
           position * at_length(m, h->row_stride);
}

static double score(pl_machine *m, const pl_attention *k, int64_t b, int64_t h, int64_t query, int64_t key)
{
    double sum = 0;
    int64_t q = heads_at(m, &k->q, b, h, query), t = heads_at(m, &k->k, b, h / (k->heads / k->kv_heads), key);
    if (k->causal && key > query + at_length(m, k->keys) - at_length(m, k->queries)) return -INFINITY;
    for (int64_t d = 0; d < k->dim; d++) sum += load_factor(m, k->q.buffer, q + d) * load_factor(m, k->k.buffer, t + d);
    sum *= k->scale;
    if (k->softcap > 0) sum = k->softcap * tanh(sum / k->softcap);
    if (k->mask >= 0) {
        int64_t at = b * at_length(m, k->mask_batch) + h * at_length(m, k->mask_head) +
                     query * at_length(m, k->mask_query) + key;
        double mask = load(m, k->mask, at).f;
        sum = k->replaces < 0 && mask <= k->replaces ? mask : sum + mask;
    }
    return sum;
}

static void attend(pl_machine *m, const pl_attention *k, int64_t b, int64_t h, int64_t query, double *weight)
{
    int64_t keys = at_length(m, k->keys);
    bool sees_any = false;
    for (int64_t key = 0; key < keys; key++) {
        weight[key] = score(m, k, b, h, query, key);
        sees_any = sees_any || weight[key] != -INFINITY;
    }
    if (sees_any) normalise(&(pl_norm){.mode = PL_NORM_SOFTMAX}, weight, keys);
    for (int64_t key = 0; key < keys && !sees_any; key++) weight[key] = 0;
    for (int64_t d = 0; d < k->value_dim; d++) {
        double sum = 0;
        for (int64_t key = 0; key < keys; key++) {
            int64_t at = heads_at(m, &k->v, b, h / (k->heads / k->kv_heads), key) + d;
            sum += factor(m, weight[key]) * load_factor(m, k->v.buffer, at);
        }
        store(m, k->out.buffer, heads_at(m, &k->out, b, h, query) + d, (pl_scalar){.f = sum});
    }
}

static void run_attention(pl_machine *m, const pl_attention *k)
{
    double *weight = IR_NEW_ARRAY(m->arena, double, at_length(m, k->keys) + 1);
    if (weight == NULL) {
        m->status = mdot_fail(m->err, MDOT_OUT_OF_MEMORY, "memory ran out");
        return;
    }
    for (int64_t b = 0; b < at_length(m, k->batch); b++)
        for (int64_t h = 0; h < k->heads; h++)
            for (int64_t query = 0; query < at_length(m, k->queries) && m->status == MDOT_OK; query++)
                attend(m, k, b, h, query, weight);
}

/* ---- Nest -------------------------------------------------------------------------------------------------------- */

static bool advance(const pl_machine *m, const ir_dim *extent, int64_t *index, int count)
{
    for (int k = count - 1; k >= 0; k--) {
        if (++index[k] < at_length(m, extent[k])) return true;
        index[k] = 0;
    }
    return false;
}

/* Sets the loop indices to zero. False: the loops have no point. */
static bool begin(const pl_machine *m, const ir_dim *extent, int64_t *index, int count)
{
    bool any = true;
    for (int k = 0; k < count; k++) {
        index[k] = 0;
        any = any && at_length(m, extent[k]) > 0;
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
    case PL_REDUCE_SUM:
        return (pl_scalar){0};
    case PL_REDUCE_PROD:
        return is_float ? (pl_scalar){.f = 1} : (pl_scalar){.n = 1};
    default:
        break;
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
    if (begin(m, extent, index, k->reduce_count)) {
        do {
            acc = pl_scalar_apply(steps[k->reducer], dtype, dtype, (pl_scalar[]){acc, evaluate(m, k->body)});
        } while (advance(m, extent, index, k->reduce_count));
    }
    m->acc_f = acc.f;
    m->acc_n = acc.n;
}

/* Position of the first or last maximum or minimum. */
static void reduce_position(pl_machine *m, const pl_nest *k)
{
    mdot_dtype dtype = k->body->dtype;
    const ir_dim *extent = k->extent + k->loop_count;
    int64_t *index = m->index + k->loop_count, position = 0;
    bool last = k->reducer == PL_REDUCE_ARGMAX_LAST || k->reducer == PL_REDUCE_ARGMIN_LAST;
    bool least = k->reducer == PL_REDUCE_ARGMIN_FIRST || k->reducer == PL_REDUCE_ARGMIN_LAST;
    pl_scalar best = {0};
    m->acc_n = 0;
    if (!begin(m, extent, index, k->reduce_count)) return;
    do {
        pl_scalar x = evaluate(m, k->body), pair[2] = {least ? x : best, least ? best : x};
        bool better = pl_scalar_apply(last ? PL_LE : PL_LT, MDOT_DTYPE_BOOL, dtype, pair).n != 0;
        if (position == 0 || better) {
            best = x;
            m->acc_n = position;
        }
        position++;
    } while (advance(m, extent, index, k->reduce_count));
}

static void run_nest(pl_machine *m, const pl_nest *k)
{
    if (!begin(m, k->extent, m->index, k->loop_count)) return;
    do {
        if (k->body != NULL && k->reducer >= PL_REDUCE_ARGMAX_FIRST)
            reduce_position(m, k);
        else if (k->body != NULL)
            reduce_values(m, k);
        pl_scalar value[PL_MAX_STORES];
        for (int s = 0; s < k->store_count; s++) value[s] = evaluate(m, k->store[s].value);
        for (int s = 0; s < k->store_count; s++)
            store(m, k->store[s].buffer, evaluate(m, k->store[s].index).n, value[s]);
    } while (m->status == MDOT_OK && advance(m, k->extent, m->index, k->loop_count));
}

/* ---- Plan -------------------------------------------------------------------------------------------------------- */

static void run_kernel(pl_machine *m, const pl_kernel *k);

static void run_recurrence(pl_machine *m, const pl_recurrence *k)
{
    for (m->step = 0; m->step < at_length(m, k->steps) && m->status == MDOT_OK; m->step++)
        for (int i = 0; i < k->kernel_count; i++) run_kernel(m, &k->kernels[i]);
}

static void run_kernel(pl_machine *m, const pl_kernel *k)
{
    switch (k->kind) {
    case PL_LINEAR:
        run_linear(m, &k->linear);
        break;
    case PL_ATTENTION:
        run_attention(m, &k->attention);
        break;
    case PL_NORM:
        run_norm(m, &k->norm);
        break;
    case PL_NEST:
        run_nest(m, &k->nest);
        break;
    case PL_SEQUENTIAL:
        pl_run_sequential(m, &k->sequential);
        break;
    case PL_RECURRENCE:
        run_recurrence(m, &k->recurrence);
        break;
    }
}

mdot_status pl_interpret(const pl_plan *plan, int64_t length, const ir_wide *const *inputs, ir_arena *arena,
                         ir_wide **out_outputs, mdot_error *err)
{
    return pl_interpret_in(plan, MDOT_DTYPE_F32, length, inputs, arena, out_outputs, err);
}

mdot_status pl_interpret_in(const pl_plan *plan, mdot_dtype half, int64_t length, const ir_wide *const *inputs,
                            ir_arena *arena, ir_wide **out_outputs, mdot_error *err)
{
    pl_machine m = {.plan = plan, .half = half, .length = length, .arena = arena, .err = err};
    if (!make_memory(&m, inputs)) return mdot_fail(err, MDOT_OUT_OF_MEMORY, "memory ran out");
    for (int k = 0; k < plan->kernel_count && m.status == MDOT_OK; k++) {
        m.kernel = &plan->kernels[k];
        m.is_matrix = pl_is_matrix(plan, m.kernel);
        bring_to_life(&m, k);
        run_kernel(&m, m.kernel);
    }
    if (m.status != MDOT_OK) return m.status;
    for (int k = 0; k < plan->buffer_count; k++)
        if (plan->buffers[k].kind == PL_OUTPUT) out_outputs[plan->buffers[k].index] = m.memory[k];
    return MDOT_OK;
}
