/* plan_checker.c — see kind_tools.h. */
#include "plan/kind_tools.h"

#include "plan/expr.h"

void pl_check_fail(pl_checker *c, const char *what, int buffer)
{
    if (c->status != MDOT_OK) return;
    c->status = mdot_fail(c->err, MDOT_MALFORMED, "plan: kernel \"%s\": %s (b%d)", c->kernel->name, what, buffer);
}

const pl_buffer *pl_check_buffer(pl_checker *c, int number)
{
    if (number >= 0 && number < c->plan->buffer_count) return &c->plan->buffers[number];
    pl_check_fail(c, "the buffer does not exist", number);
    return NULL;
}

void pl_check_read(pl_checker *c, int number, bool is_factor)
{
    const pl_buffer *buffer = number >= 0 ? pl_check_buffer(c, number) : NULL;
    if (buffer == NULL) return;
    if (!(buffer->reads & (is_factor ? PL_READ_HALF : PL_READ_WHOLE)))
        pl_check_fail(c,
                      is_factor ? "a matrix kernel reads a buffer that is not marked as a factor"
                                : "a buffer of 16-bit elements is read in full precision",
                      number);
    if (is_factor && buffer->type.dtype != MDOT_DTYPE_F32) pl_check_fail(c, "a factor must be f32", number);
}

/* Minimum and maximum of an index expression at one length. */
typedef struct range {
    pl_wide_int least, most;
} range;

/* False: the range is unknown (data, remainders). */
static bool find_range(const pl_checker *c, const pl_expr *e, int64_t length, range *out)
{
    range a, b;
    switch (e->op) {
    case PL_CONST: *out = (range){e->n, e->n}; return true;
    case PL_LENGTH: *out = (range){length, length}; return true;
    case PL_INDEX: *out = (range){0, (pl_wide_int)ir_dim_at(c->extent[e->i], length) - 1}; return true;
    case PL_STEP: *out = (range){0, (pl_wide_int)ir_dim_at(c->steps, length) - 1}; return true;
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
    case PL_FLOORDIV: /* pl_wide_int rounds towards zero, which is down for numbers that are not negative */
        if (!find_range(c, e->arg[0], length, &a) || !find_range(c, e->arg[1], length, &b)) return false;
        if (b.least != b.most || b.least <= 0 || a.least < 0) return false;
        *out = (range){a.least / b.least, a.most / b.least};
        return true;
    default: return false;
    }
}

static bool has_points(const pl_checker *c, int64_t length)
{
    for (int k = 0; k < c->loop_count; k++)
        if (ir_dim_at(c->extent[k], length) <= 0) return false;
    return true;
}

void pl_check_position(pl_checker *c, int number, const pl_expr *index)
{
    const pl_buffer *buffer = pl_check_buffer(c, number);
    if (buffer == NULL) return;
    int64_t first = ir_first_length(c->plan->graph);
    int64_t lengths[] = {first, first + 1, c->plan->max_length ? c->plan->max_length : 1};
    for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
        range r;
        if (lengths[k] > lengths[2] || !has_points(c, lengths[k])) continue;
        if (!find_range(c, index, lengths[k], &r)) return;
        if (r.least < 0 || r.most >= ir_type_count_at(&buffer->type, lengths[k]))
            pl_check_fail(c, "an index is outside of its buffer", number);
    }
}

void pl_check_matrix(pl_checker *c, const pl_matrix *m, ir_dim rows, ir_dim columns)
{
    const pl_buffer *buffer = pl_check_buffer(c, m->buffer);
    if (buffer == NULL) return;
    int64_t lengths[] = {ir_first_length(c->plan->graph), c->plan->max_length ? c->plan->max_length : 1};
    for (int k = 0; k < 2; k++) {
        pl_wide_int last_row = ir_dim_at(rows, lengths[k]) - 1, last_column = ir_dim_at(columns, lengths[k]) - 1;
        pl_wide_int first = ir_dim_at(m->offset, lengths[k]);
        pl_wide_int last_offset = first + last_row * ir_dim_at(m->row_stride, lengths[k]) + last_column;
        if (last_row < 0 || last_column < 0) continue;
        if (first < 0 || last_offset >= ir_type_count_at(&buffer->type, lengths[k]))
            pl_check_fail(c, "a matrix exceeds its buffer", m->buffer);
    }
    if (buffer->type.dtype != MDOT_DTYPE_F32) pl_check_fail(c, "a matrix must be f32", m->buffer);
}

static void check_leaf(pl_checker *c, const pl_expr *e)
{
    const pl_buffer *buffer;
    switch (e->op) {
    case PL_INDEX:
        if (e->i < 0 || e->i >= c->loop_count) pl_check_fail(c, "an expression reads an undefined loop", e->i);
        break;
    case PL_STEP:
        if (ir_dim_is(c->steps, 0)) pl_check_fail(c, "an expression reads the step outside of a recurrence", -1);
        break;
    case PL_ACC:
        if (e->i >= c->acc_count)
            pl_check_fail(c, "an expression reads an undefined accumulator", e->i);
        else if (e->dtype != c->acc_dtype)
            pl_check_fail(c, "an accumulator is read with a different type", e->i);
        break;
    case PL_LOAD:
        buffer = pl_check_buffer(c, e->i);
        if (buffer == NULL) return;
        if (buffer->type.dtype != e->dtype)
            pl_check_fail(c, "the type of a load differs from that of its buffer", e->i);
        if (buffer->kind == PL_WEIGHT && buffer->use != PL_ELEMENTS)
            pl_check_fail(c, "a load reads a matrix operand", e->i);
        if (e->arg[0]->dtype != MDOT_DTYPE_I64) pl_check_fail(c, "an index must be i64", e->i);
        pl_check_read(c, e->i, false);
        break;
    default: break;
    }
}

/* Checks that operands have one type, apart from a selection's condition. */
static void check_types(pl_checker *c, const pl_expr *e)
{
    int count = pl_expr_operand_count(e->op), first = e->op == PL_SELECT ? 1 : 0;
    if (e->op == PL_SELECT && e->arg[0]->dtype != MDOT_DTYPE_BOOL) pl_check_fail(c, "a condition must be bool", -1);
    for (int k = first + 1; k < count; k++)
        if (e->arg[k]->dtype != e->arg[first]->dtype) pl_check_fail(c, pl_expr_op_name(e->op), -1);
}

void pl_check_expr(pl_checker *c, const pl_expr *e)
{
    check_leaf(c, e);
    check_types(c, e);
    for (int k = 0; k < pl_expr_operand_count(e->op) && c->status == MDOT_OK; k++) pl_check_expr(c, e->arg[k]);
    if (e->op == PL_LOAD && c->status == MDOT_OK) pl_check_position(c, e->i, e->arg[0]);
}

void pl_check_set_matrix_loops(pl_checker *c, ir_dim rows, ir_dim columns)
{
    c->extent[0] = rows;
    c->extent[1] = columns;
    c->loop_count = 2;
    c->acc_count = 1;
    c->acc_dtype = MDOT_DTYPE_F32;
}

void pl_check_vector(pl_checker *c, int number, ir_dim count)
{
    const pl_buffer *buffer = number >= 0 ? pl_check_buffer(c, number) : NULL;
    if (buffer == NULL) return;
    int64_t length = c->plan->max_length ? c->plan->max_length : 1;
    if (ir_type_count_at(&buffer->type, length) != ir_dim_at(count, length))
        pl_check_fail(c, "a vector has the wrong size", number);
}

void pl_check_whole_vector(pl_checker *c, int number, ir_dim count)
{
    pl_check_vector(c, number, count);
    pl_check_read(c, number, false);
}
