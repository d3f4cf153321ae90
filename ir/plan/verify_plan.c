/* verify_plan.c — checks the rules of plan.h: buffer numbers, types, operands of kernels, and index bounds that are
 * affine in the loops. For debug builds and tests. */
#include "ir/ops/families.h"
#include "ir/plan/plan.h"

#include <inttypes.h>
#include <string.h>

typedef struct checker {
    const pl_plan *plan;
    const pl_kernel *kernel;
    ir_dim extent[PL_MAX_LOOPS]; /* extents of the kernel's loops */
    int loop_count;
    ir_dim steps; /* steps of the enclosing recurrence; 0: none */
    int acc_count;
    mdot_dtype acc_dtype;
    mdot_status status;
    mdot_error *err;
} checker;

static void report(checker *c, const char *what, int buffer)
{
    if (c->status != MDOT_OK) return;
    c->status = mdot_fail(c->err, MDOT_MALFORMED, "plan: kernel \"%s\": %s (b%d)", c->kernel->name, what, buffer);
}

static const pl_buffer *buffer_of(checker *c, int number)
{
    if (number >= 0 && number < c->plan->buffer_count) return &c->plan->buffers[number];
    report(c, "there is no such buffer", number);
    return NULL;
}

/* Checks that the buffer's `reads` include this read, of whole values or of factors that a matrix kernel rounds,
 * because `reads` decided the buffer's element type. */
static void check_read(checker *c, int number, bool is_factor)
{
    const pl_buffer *buffer = number >= 0 ? buffer_of(c, number) : NULL;
    if (buffer == NULL) return;
    if (!(buffer->reads & (is_factor ? PL_READ_HALF : PL_READ_WHOLE)))
        report(c,
               is_factor ? "a matrix kernel reads what is not noted as its factor"
                         : "a value is read whole that is kept in 16 bits",
               number);
    if (is_factor && buffer->type.dtype != MDOT_DTYPE_F32) report(c, "a factor is not f32", number);
}

/* ---- Bounds ------------------------------------------------------------------------------------------------------ */

__extension__ typedef __int128 wide_int;

/* Minimum and maximum of an index expression at one length. False: not affine (data, quotients). */
typedef struct range {
    wide_int least, most;
} range;

static bool find_range(const checker *c, const pl_expr *e, int64_t length, range *out)
{
    range a, b;
    switch (e->op) {
    case PL_CONST:
        *out = (range){e->n, e->n};
        return true;
    case PL_LENGTH:
        *out = (range){length, length};
        return true;
    case PL_INDEX:
        *out = (range){0, (wide_int)ir_dim_at(c->extent[e->i], length) - 1};
        return true;
    case PL_STEP:
        *out = (range){0, (wide_int)ir_dim_at(c->steps, length) - 1};
        return true;
    case PL_ADD:
        if (!find_range(c, e->arg[0], length, &a) || !find_range(c, e->arg[1], length, &b)) return false;
        *out = (range){a.least + b.least, a.most + b.most};
        return true;
    case PL_MUL:
        if (!find_range(c, e->arg[0], length, &a) || !find_range(c, e->arg[1], length, &b)) return false;
        if (b.least != b.most) return false;
        *out =
            b.least < 0 ? (range){a.most * b.least, a.least * b.least} : (range){a.least * b.least, a.most * b.least};
        return true;
    default:
        return false;
    }
}

static bool has_points(const checker *c, int64_t length)
{
    for (int k = 0; k < c->loop_count; k++)
        if (ir_dim_at(c->extent[k], length) <= 0) return false;
    return true;
}

static void check_position(checker *c, int number, const pl_expr *index)
{
    const pl_buffer *buffer = buffer_of(c, number);
    if (buffer == NULL) return;
    int64_t first = ir_first_length(c->plan->graph);
    int64_t lengths[] = {first, first + 1, c->plan->max_length ? c->plan->max_length : 1};
    for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
        range r;
        if (lengths[k] > lengths[2] || !has_points(c, lengths[k])) continue;
        if (!find_range(c, index, lengths[k], &r)) return;
        if (r.least < 0 || r.most >= ir_type_count_at(&buffer->type, lengths[k]))
            report(c, "an index leaves its buffer", number);
    }
}

/* Checks that a view of rows and columns is inside its buffer. */
static void check_matrix(checker *c, const pl_matrix *m, ir_dim rows, ir_dim columns)
{
    const pl_buffer *buffer = buffer_of(c, m->buffer);
    if (buffer == NULL) return;
    int64_t lengths[] = {ir_first_length(c->plan->graph), c->plan->max_length ? c->plan->max_length : 1};
    for (int k = 0; k < 2; k++) {
        wide_int last_row = ir_dim_at(rows, lengths[k]) - 1, last_column = ir_dim_at(columns, lengths[k]) - 1;
        wide_int first = ir_dim_at(m->offset, lengths[k]);
        wide_int last = first + last_row * ir_dim_at(m->row_stride, lengths[k]) + last_column;
        if (last_row < 0 || last_column < 0) continue;
        if (first < 0 || last >= ir_type_count_at(&buffer->type, lengths[k]))
            report(c, "a matrix leaves its buffer", m->buffer);
    }
    if (buffer->type.dtype != MDOT_DTYPE_F32) report(c, "a matrix is not f32", m->buffer);
}

/* ---- Expressions ------------------------------------------------------------------------------------------------- */

static void check_leaf(checker *c, const pl_expr *e)
{
    const pl_buffer *buffer;
    switch (e->op) {
    case PL_INDEX:
        if (e->i < 0 || e->i >= c->loop_count) report(c, "an expression reads a loop that is not there", e->i);
        break;
    case PL_STEP:
        if (ir_dim_is(c->steps, 0)) report(c, "an expression reads the step of no recurrence", -1);
        break;
    case PL_ACC:
        if (e->i >= c->acc_count)
            report(c, "an expression reads an accumulator that is not there", e->i);
        else if (e->dtype != c->acc_dtype)
            report(c, "an accumulator is read as another type", e->i);
        break;
    case PL_LOAD:
        buffer = buffer_of(c, e->i);
        if (buffer == NULL) return;
        if (buffer->type.dtype != e->dtype) report(c, "a load has another type than its buffer", e->i);
        if (buffer->kind == PL_WEIGHT && buffer->use != PL_ELEMENTS) report(c, "a load reads a matrix operand", e->i);
        if (e->arg[0]->dtype != MDOT_DTYPE_I64) report(c, "an index is not i64", e->i);
        check_read(c, e->i, false);
        break;
    default:
        break;
    }
}

/* Checks that operands have one type, apart from a selection's condition. */
static void check_types(checker *c, const pl_expr *e)
{
    int count = pl_expr_operand_count(e->op), first = e->op == PL_SELECT ? 1 : 0;
    if (e->op == PL_SELECT && e->arg[0]->dtype != MDOT_DTYPE_BOOL) report(c, "a condition is not bool", -1);
    for (int k = first + 1; k < count; k++)
        if (e->arg[k]->dtype != e->arg[first]->dtype) report(c, pl_expr_op_name(e->op), -1);
}

static void check_expr(checker *c, const pl_expr *e)
{
    check_leaf(c, e);
    check_types(c, e);
    for (int k = 0; k < pl_expr_operand_count(e->op) && c->status == MDOT_OK; k++) check_expr(c, e->arg[k]);
    if (e->op == PL_LOAD && c->status == MDOT_OK) check_position(c, e->i, e->arg[0]);
}

/* ---- Kernels ----------------------------------------------------------------------------------------------------- */

static void set_matrix_loops(checker *c, ir_dim rows, ir_dim columns)
{
    c->extent[0] = rows;
    c->extent[1] = columns;
    c->loop_count = 2;
    c->acc_count = 1;
    c->acc_dtype = MDOT_DTYPE_F32;
}

static void check_vector(checker *c, int number, ir_dim count)
{
    const pl_buffer *buffer = number >= 0 ? buffer_of(c, number) : NULL;
    if (buffer == NULL) return;
    int64_t length = c->plan->max_length ? c->plan->max_length : 1;
    if (ir_type_count_at(&buffer->type, length) != ir_dim_at(count, length))
        report(c, "a vector has another size", number);
}

static void check_whole_vector(checker *c, int number, ir_dim count)
{
    check_vector(c, number, count);
    check_read(c, number, false);
}

static bool is_matrix_operand(const pl_buffer *buffer)
{
    return buffer->kind == PL_WEIGHT && buffer->use == PL_MATRIX;
}

static void check_linear(checker *c, const pl_linear *k)
{
    ir_dim columns = ir_dim_number(k->columns);
    const pl_buffer *weight = buffer_of(c, k->weight), *bias = k->bias >= 0 ? buffer_of(c, k->bias) : NULL;
    set_matrix_loops(c, k->rows, columns);
    check_matrix(c, &k->a, k->rows, ir_dim_number(k->k));
    check_matrix(c, &k->out, k->rows, columns);
    check_whole_vector(c, k->bias, columns);
    check_vector(c, k->weight, ir_dim_number(k->k * k->columns));
    bool is_matrix = ir_dim_is(c->steps, 0) && pl_is_matrix(c->plan, c->kernel);
    check_read(c, k->a.buffer, is_matrix);
    check_read(c, k->weight, is_matrix);
    if (weight != NULL && !is_matrix_operand(weight)) report(c, "a weight is no matrix operand", k->weight);
    if (bias != NULL && !is_matrix_operand(bias)) report(c, "a bias is no matrix operand", k->bias);
    if (k->epilogue != NULL) check_expr(c, k->epilogue);
}

static void check_norm(checker *c, const pl_norm *k)
{
    set_matrix_loops(c, k->rows, k->columns);
    if (k->epilogue != NULL) check_expr(c, k->epilogue);
    c->acc_count = 0;
    check_expr(c, k->input);
    check_matrix(c, &k->out, k->rows, k->columns);
    if (k->sum.buffer >= 0) check_matrix(c, &k->sum, k->rows, k->columns);
    check_whole_vector(c, k->gamma, k->columns);
    check_whole_vector(c, k->beta, k->columns);
}

static void check_heads(checker *c, const pl_heads *h, ir_dim batch, int64_t heads, ir_dim rows, int64_t dim)
{
    const pl_buffer *buffer = buffer_of(c, h->buffer);
    if (buffer == NULL) return;
    int64_t length = c->plan->max_length ? c->plan->max_length : 1;
    wide_int last = ir_dim_at(h->offset, length) + dim - 1;
    last += (wide_int)(ir_dim_at(batch, length) - 1) * ir_dim_at(h->batch_stride, length);
    last += (wide_int)(heads - 1) * ir_dim_at(h->head_stride, length);
    last += (wide_int)(ir_dim_at(rows, length) - 1) * ir_dim_at(h->row_stride, length);
    if (last >= ir_type_count_at(&buffer->type, length)) report(c, "heads leave their buffer", h->buffer);
    if (buffer->type.dtype != MDOT_DTYPE_F32) report(c, "heads are not f32", h->buffer);
}

static void check_attention(checker *c, const pl_attention *k)
{
    check_heads(c, &k->q, k->batch, k->heads, k->queries, k->dim);
    check_heads(c, &k->k, k->batch, k->kv_heads, k->keys, k->dim);
    check_heads(c, &k->v, k->batch, k->kv_heads, k->keys, k->value_dim);
    check_heads(c, &k->out, k->batch, k->heads, k->queries, k->value_dim);
    if (c->status != MDOT_OK) return;
    bool is_matrix = pl_is_matrix(c->plan, c->kernel);
    check_read(c, k->q.buffer, is_matrix);
    check_read(c, k->k.buffer, is_matrix);
    check_read(c, k->v.buffer, is_matrix);
    check_read(c, k->mask, false);
    if (k->kv_heads <= 0 || k->heads % k->kv_heads != 0) report(c, "heads are no multiple of key heads", k->q.buffer);
    const pl_heads mask = {k->mask, ir_dim_number(0), k->mask_batch, k->mask_head, k->mask_query};
    if (k->mask < 0 || !ir_dim_is_number(k->keys)) return;
    check_heads(c, &mask, k->batch, k->heads, k->queries, k->keys.offset);
}

static void check_nest(checker *c, const pl_nest *k)
{
    if (k->loop_count + k->reduce_count > PL_MAX_LOOPS || k->store_count > PL_MAX_STORES) {
        report(c, "too many loops or stores", -1);
        return;
    }
    memcpy(c->extent, k->extent, sizeof c->extent);
    c->acc_count = 0;
    c->loop_count = k->loop_count + k->reduce_count;
    if ((k->body != NULL) != (k->reduce_count > 0) || (k->body != NULL) != (k->reducer != PL_REDUCE_NONE))
        report(c, "reduction loops, body and reducer do not go together", -1);
    if (k->body != NULL) {
        check_expr(c, k->body);
        c->acc_count = 1;
        c->acc_dtype = k->reducer >= PL_REDUCE_ARGMAX_FIRST ? MDOT_DTYPE_I64 : k->body->dtype;
    }
    c->loop_count = k->loop_count;
    for (int s = 0; s < k->store_count && c->status == MDOT_OK; s++) {
        const pl_store *store = &k->store[s];
        const pl_buffer *buffer = buffer_of(c, store->buffer);
        if (buffer == NULL) return;
        if (buffer->kind == PL_INPUT || buffer->kind == PL_WEIGHT)
            report(c, "a store into what is read only", store->buffer);
        if (buffer->type.dtype != store->value->dtype)
            report(c, "a store has another type than its buffer", store->buffer);
        check_expr(c, store->index);
        check_expr(c, store->value);
        check_position(c, store->buffer, store->index);
    }
}

static void check_sequential(checker *c, const pl_sequential *k)
{
    for (int i = 0; i < 4; i++) check_read(c, k->input[i], false);
    for (int i = 0; i < 2; i++) check_read(c, k->output[i], false); /* read if it combines with existing content */
    const pl_buffer *in = buffer_of(c, k->input[0]);
    if (in != NULL && k->axis >= in->type.rank && in->type.rank > 0) report(c, "there is no such axis", k->axis);
}

static void check_recurrence(checker *c, const pl_recurrence *k)
{
    if (k->kernel_count == 0) report(c, "a recurrence of no kernels", -1);
    c->steps = k->steps;
    for (int i = 0; i < k->kernel_count && c->status == MDOT_OK; i++) {
        c->kernel = &k->kernels[i];
        if (c->kernel->kind == PL_LINEAR)
            check_linear(c, &c->kernel->linear);
        else if (c->kernel->kind == PL_NEST)
            check_nest(c, &c->kernel->nest);
        else
            report(c, "a recurrence holds linears and nests alone", -1);
    }
    c->steps = ir_dim_number(0);
}

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

static void check_memory(checker *c)
{
    const pl_plan *plan = c->plan;
    for (int a = 0; a < plan->buffer_count && c->status == MDOT_OK; a++) {
        const pl_buffer *x = &plan->buffers[a];
        if (x->kind != PL_SCRATCH || x->first_use < 0) continue;
        int64_t end = x->offset_bytes + pl_capacity_bytes(plan, x);
        bool fits = x->offset_bytes >= 0 && x->offset_bytes % 64 == 0 && end <= plan->scratch_bytes;
        if (!fits) c->status = mdot_fail(c->err, MDOT_MALFORMED, "plan: b%d is outside of the scratch memory", a);
        for (int b = 0; b < a; b++) {
            const pl_buffer *y = &plan->buffers[b];
            if (y->kind != PL_SCRATCH || y->first_use < 0) continue;
            bool apart = x->last_use < y->first_use || y->last_use < x->first_use ||
                         x->offset_bytes >= y->offset_bytes + pl_capacity_bytes(plan, y) || y->offset_bytes >= end;
            if (!apart)
                c->status = mdot_fail(c->err, MDOT_MALFORMED, "plan: b%d and b%d overlap while both live", b, a);
        }
    }
}

mdot_status pl_verify(const pl_plan *plan, mdot_error *err)
{
    checker c = {.plan = plan, .err = err};
    for (int k = 0; k < plan->kernel_count && c.status == MDOT_OK; k++) {
        c.kernel = &plan->kernels[k];
        switch (c.kernel->kind) {
        case PL_LINEAR:
            check_linear(&c, &c.kernel->linear);
            break;
        case PL_ATTENTION:
            check_attention(&c, &c.kernel->attention);
            break;
        case PL_NORM:
            check_norm(&c, &c.kernel->norm);
            break;
        case PL_NEST:
            check_nest(&c, &c.kernel->nest);
            break;
        case PL_SEQUENTIAL:
            check_sequential(&c, &c.kernel->sequential);
            break;
        case PL_RECURRENCE:
            check_recurrence(&c, &c.kernel->recurrence);
            break;
        }
    }
    if (c.status == MDOT_OK) check_memory(&c);
    return c.status;
}
