/* limit_rows.c — finds kernels whose last rows nobody reads (see planner.h).
 *
 * Behind NonZero, tensors have a row for each element of the mask, and those of the selected elements come first. A
 * scatter reads only these (ir/passes/bound_nonzero.c). A walk from the last kernel to the first finds the buffers of
 * which all readers read only these rows, and the kernels that write nothing else.
 *
 * An access follows the rows if its index grows by a row's elements from row to row. The rest of the index is the same
 * for all rows, and the access is inside the buffer in the first and in the last row. Therefore it is inside its row.
 * This holds only for an access that is made in every row.
 */
#include "plan/planner.h"

#include "ir/ops/families.h"
#include "plan/expr.h"
#include "plan/kernel_kind.h"
#include "plan/kind_tools.h"

/* The part of a buffer that is read: nothing, everything, or the first rows. Buffer `count` holds their number. */
enum { NOTHING = -1, EVERYTHING = -2 };
typedef struct demand {
    int count;
    ir_dim rows; /* all rows, whether read or not */
} demand;

static const demand everything = {.count = EVERYTHING};

typedef struct limiter {
    pl_plan *plan;
    demand *demands; /* by buffer */
    demand wanted;   /* the part of the current kernel's results that is read */
    pl_units units;  /* steps along its limited loop */
    int64_t points;  /* of that loop in a row */
} limiter;

static demand both(demand a, demand b)
{
    if (a.count == NOTHING) return b;
    return b.count == NOTHING || (a.count == b.count && ir_dim_equal(a.rows, b.rows)) ? a : everything;
}

static void note(limiter *l, int buffer, demand read)
{
    if (buffer >= 0) l->demands[buffer] = both(l->demands[buffer], read);
}

static void note_everything(void *user, int buffer, bool is_written)
{
    if (!is_written) note(user, buffer, everything);
}

/* Elements of a row; 0: the buffer has no such rows, or a row's elements depend on the length. */
static int64_t row_elements(const limiter *l, int buffer)
{
    const ir_type *type = &l->plan->buffers[buffer].type;
    int64_t elements = 1;
    int d = 0;
    while (d < type->rank && ir_dim_is(type->dim[d], 1)) d++;
    if (d == type->rank || !ir_dim_equal(type->dim[d], l->wanted.rows)) return 0;
    for (d++; d < type->rank; d++) {
        if (!ir_dim_is_number(type->dim[d])) return 0;
        elements *= type->dim[d].offset;
    }
    return elements;
}

/* A read that moves by `step` elements per point of the loop. */
static void note_access(limiter *l, int buffer, bool follows, int64_t step)
{
    int64_t elements = row_elements(l, buffer);
    note(l, buffer, follows && elements > 0 && step * l->points == elements ? l->wanted : everything);
}

/* Does the value depend on the loop, otherwise than through a buffer? */
static bool depends_on_loop(const pl_expr *e, int loop)
{
    if (e->op == PL_INDEX) return e->i == loop;
    for (int k = 0; e->op != PL_LOAD && k < pl_expr_operand_count(e->op); k++)
        if (depends_on_loop(e->arg[k], loop)) return true;
    return false;
}

/* `is_partial`: only in some rows. */
static void note_loads(limiter *l, const pl_expr *e, bool is_partial)
{
    if (e == NULL) return;
    if (e->op == PL_LOAD) {
        int64_t step = 0;
        bool follows = pl_find_step(&l->units, e->arg[0], &step) && !is_partial;
        note_access(l, e->i, follows, step);
    }
    bool is_choice = e->op == PL_SELECT && depends_on_loop(e->arg[0], l->units.loop);
    for (int k = 0; k < pl_expr_operand_count(e->op); k++) note_loads(l, e->arg[k], is_partial || (is_choice && k > 0));
}

/* Is this a loop over rows, which advances by `step` elements of the result? */
static bool set_loop(limiter *l, int loop, ir_dim extent, int buffer, int64_t step)
{
    ir_dim points;
    int64_t elements = row_elements(l, buffer);
    if (step <= 0 || elements <= 0 || elements % step != 0) return false;
    l->points = elements / step;
    return ir_dim_mul(l->wanted.rows, ir_dim_number(l->points), &points) && ir_dim_equal(points, extent);
}

static bool set_matrix_loop(limiter *l, ir_dim rows, const pl_matrix *out)
{
    l->units = (pl_units){.plan = l->plan, .scale = 1};
    return ir_dim_is_number(out->row_stride) && set_loop(l, 0, rows, out->buffer, out->row_stride.offset);
}

static bool find_loop(limiter *l, const pl_kernel *kernel)
{
    const pl_linear *linear = &kernel->linear;
    const pl_norm *norm = &kernel->norm;
    const pl_nest *nest = &kernel->nest;
    if (kernel->kind == PL_LINEAR) return linear->windows == NULL && set_matrix_loop(l, linear->rows, &linear->out);
    if (kernel->kind == PL_NORM) return norm->sum.buffer < 0 && set_matrix_loop(l, norm->rows, &norm->out);
    for (int i = 0; kernel->kind == PL_NEST && nest->store_count == 1 && i < nest->loop_count; i++) {
        const pl_store *s = &nest->store[0];
        int64_t step;
        l->units = (pl_units){.plan = l->plan, .loop = i, .scale = 1};
        if (pl_find_step(&l->units, s->index, &step) && set_loop(l, i, nest->extent[i], s->buffer, step)) return true;
    }
    return false;
}

static void note_limited_reads(limiter *l, const pl_kernel *kernel)
{
    const pl_matrix *a = &kernel->linear.a;
    if (kernel->kind == PL_LINEAR) {
        note_access(l, a->buffer, ir_dim_is_number(a->row_stride), a->row_stride.offset);
        note_loads(l, kernel->linear.epilogue, false);
    } else if (kernel->kind == PL_NORM) {
        note_loads(l, kernel->norm.input, false);
        note_loads(l, kernel->norm.epilogue, false);
    } else {
        note_loads(l, kernel->nest.body, false);
        note_loads(l, kernel->nest.store[0].value, false);
    }
}

/* Integers are computed in all rows, because they may become indices. */
static void note_result(void *user, int number, bool is_written)
{
    limiter *l = user;
    const pl_buffer *buffer = &l->plan->buffers[number];
    demand read = l->demands[number];
    if (!is_written) return;
    if (buffer->kind != PL_SCRATCH || !ir_dtype_is_float(buffer->type.dtype) || read.count == NOTHING)
        read = everything;
    l->wanted = both(l->wanted, read);
}

/* A scatter reads as many updates and places as it writes. */
static void note_updates(limiter *l, const pl_sequential *k)
{
    const ir_type *type = &l->plan->buffers[k->input[2]].type;
    demand read = {k->input[3], type->dim[k->axis]};
    for (int d = 0; d < k->axis; d++)
        if (!ir_dim_is(type->dim[d], 1)) read = everything;
    for (int i = 0; i < 4; i++) note(l, k->input[i], i == 1 || i == 2 ? read : everything);
}

bool pl_limit_rows(pl_plan *plan)
{
    limiter l = {.plan = plan, .demands = IR_NEW_ARRAY(plan->arena, demand, plan->buffer_count + 1)};
    if (l.demands == NULL) return false;
    for (int b = 0; b < plan->buffer_count; b++) l.demands[b].count = NOTHING;
    for (int k = plan->kernel_count - 1; k >= 0; k--) {
        pl_kernel *kernel = &plan->kernels[k];
        if (kernel->kind == PL_SEQUENTIAL && kernel->sequential.input[3] >= 0) {
            note_updates(&l, &kernel->sequential);
            continue;
        }
        l.wanted.count = NOTHING;
        pl_kernel_visit_buffers(kernel, note_result, &l);
        pl_buffer *count = l.wanted.count >= 0 ? &plan->buffers[l.wanted.count] : NULL;
        if (count == NULL || count->first_use >= k || !find_loop(&l, kernel)) {
            pl_kernel_visit_buffers(kernel, note_everything, &l);
            continue;
        }
        pl_row_limit *limit = IR_NEW(plan->arena, pl_row_limit);
        if (limit == NULL) return false;
        *limit = (pl_row_limit){.count = l.wanted.count, .loop = l.units.loop, .points = l.points};
        note_limited_reads(&l, kernel);
        kernel->limit = limit;
        plan->flops -= kernel->flops;
        kernel->flops = 0;
        if (count->last_use < k) count->last_use = k;
    }
    return true;
}
