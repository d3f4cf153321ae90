/* batched_kernels.c — selects the kernels that process the rows of several items at once, in a call with several items. The
 * decision is common to all backends.
 *
 * Items are calls of one entry at individual lengths. Their tensors are concatenated without padding. A kernel that
 * computes each unit of the length from that unit alone sees them as one call at the sum of the lengths: its matrices
 * have that many more rows, and its weights are read once. Kernels that combine units across the length, for example
 * attention, run item by item.
 *
 * A kernel can process items together if advancing by one unit moves every access of a tensor with the length by that
 * tensor's unit, and changes nothing else. Then each index differs between an item's own call and the joint call by
 * the units of the preceding items, which is the position of the item's tensor. Extents may exceed the length by a
 * number of units, for example behind a token that is put in front of the sequence. The number must be equal in the
 * kernel and in all its tensors.
 */
#include "ir/plan/plan.h"

enum { MOST_ITEMS = 64 };

/* The meaning of one unit of the length in the current kernel. */
typedef struct units {
    const pl_plan *plan;
    int loop;       /* the loop over the units */
    int64_t scale;  /* points of the loop per unit */
    int64_t offset; /* units beyond the length */
} units;

/* ---- Tensors ----------------------------------------------------------------------------------------------------- */

/* Matches scale * (L + offset). False: another form, or a number. */
static bool find_units(ir_dim d, int64_t *out_offset)
{
    if (d.scale <= 0 || d.offset % d.scale != 0) return false;
    *out_offset = d.offset / d.scale;
    return true;
}

/* Elements per unit of a tensor with as many units as the kernel; 0: it has another number of units. */
static int64_t unit_elements(const units *u, int buffer)
{
    const ir_type *type = &u->plan->buffers[buffer].type;
    int64_t elements = 1, offset;
    bool has_units = false;
    for (int d = 0; d < type->rank; d++) {
        ir_dim dim = type->dim[d];
        bool is_length = !ir_dim_is_number(dim);
        if (is_length && (has_units || !find_units(dim, &offset) || offset != u->offset)) return 0;
        if (__builtin_mul_overflow(elements, is_length ? dim.scale : dim.offset, &elements)) return 0;
        has_units = has_units || is_length;
    }
    return has_units ? elements : 0;
}

/* Does the access advance by `step` elements per unit, as the tensor does? Constants are equal for every item. */
static bool access_follows(const units *u, int buffer, int64_t step)
{
    if (buffer < 0) return true;
    if (u->plan->buffers[buffer].kind == PL_WEIGHT) return step == 0;
    int64_t elements = unit_elements(u, buffer);
    return elements > 0 && step == elements;
}

/* ---- Expressions ------------------------------------------------------------------------------------------------- */

/* The increase of the expression's value from unit to unit. False: it is not a number, or unknown. */
static bool find_step(const units *u, const pl_expr *e, int64_t *out_step);

static bool is_number(const pl_expr *e, int64_t *out_number)
{
    *out_number = e->n;
    return e->op == PL_CONST && e->dtype == MDOT_DTYPE_I64;
}

/* Rounded quotients and remainders have a constant step if the operand's step is a multiple of the divisor. */
static bool divide_step(const pl_expr *e, int64_t step, int64_t *out_step)
{
    int64_t divisor;
    if (!is_number(e->arg[1], &divisor) || divisor <= 0 || step % divisor != 0) return false;
    *out_step = e->op == PL_FLOORDIV ? step / divisor : 0;
    return true;
}

static bool combine_steps(const pl_expr *e, const int64_t *step, int64_t *out_step)
{
    int64_t factor;
    switch (e->op) {
    case PL_ADD:
        return !__builtin_add_overflow(step[0], step[1], out_step);
    case PL_SUB:
        return !__builtin_sub_overflow(step[0], step[1], out_step);
    case PL_MUL:
        if (is_number(e->arg[1], &factor)) return !__builtin_mul_overflow(step[0], factor, out_step);
        return is_number(e->arg[0], &factor) && !__builtin_mul_overflow(step[1], factor, out_step);
    case PL_FLOORDIV:
    case PL_PYMOD:
        return step[1] == 0 && divide_step(e, step[0], out_step);
    default:
        return false;
    }
}

static bool find_step(const units *u, const pl_expr *e, int64_t *out_step)
{
    int64_t step[3] = {0};
    bool stays = true;
    *out_step = 0;
    if (e->op == PL_LENGTH || e->op == PL_STEP) return false;
    if (e->op == PL_INDEX) *out_step = e->i == u->loop ? u->scale : 0;
    for (int k = 0; k < pl_expr_operand_count(e->op); k++) {
        if (!find_step(u, e->arg[k], &step[k])) return false;
        stays = stays && step[k] == 0;
    }
    if (e->op == PL_LOAD) return access_follows(u, e->i, step[0]);
    return stays || (e->dtype == MDOT_DTYPE_I64 && combine_steps(e, step, out_step));
}

/* Is the value equal for equal rows, at any position? */
static bool is_of_unit(const units *u, const pl_expr *e)
{
    int64_t step;
    return e == NULL || (find_step(u, e, &step) && step == 0);
}

/* ---- Kernels ----------------------------------------------------------------------------------------------------- */

static bool begin_units(units *u, int loop, ir_dim extent)
{
    u->loop = loop;
    u->scale = extent.scale;
    return find_units(extent, &u->offset);
}

static bool stride_follows(const units *u, int buffer, ir_dim offset, ir_dim stride)
{
    int64_t step;
    return ir_dim_is_number(offset) && ir_dim_is_number(stride) &&
           !__builtin_mul_overflow(u->scale, stride.offset, &step) && access_follows(u, buffer, step);
}

static bool matrix_follows(const units *u, const pl_matrix *m)
{
    return m->buffer < 0 || stride_follows(u, m->buffer, m->offset, m->row_stride);
}

static bool linear_is_rowwise(units *u, const pl_linear *k)
{
    return begin_units(u, 0, k->rows) && matrix_follows(u, &k->a) && matrix_follows(u, &k->out) &&
           is_of_unit(u, k->epilogue);
}

static bool norm_is_rowwise(units *u, const pl_norm *k)
{
    return begin_units(u, 0, k->rows) && ir_dim_is_number(k->columns) && is_of_unit(u, k->input) &&
           is_of_unit(u, k->epilogue) && access_follows(u, k->gamma, 0) && access_follows(u, k->beta, 0) &&
           matrix_follows(u, &k->out) && matrix_follows(u, &k->sum);
}

static bool heads_follow(const units *u, const pl_heads *h)
{
    return ir_dim_is_number(h->head_stride) && ir_dim_is_number(h->row_stride) &&
           stride_follows(u, h->buffer, h->offset, h->batch_stride);
}

/* Attention within each unit, for example among the parts of an operator: the batch runs over the units. */
static bool attention_is_rowwise(units *u, const pl_attention *k)
{
    const pl_heads mask = {k->mask, ir_dim_number(0), k->mask_batch, k->mask_head, k->mask_query};
    return begin_units(u, 0, k->batch) && ir_dim_is_number(k->queries) && ir_dim_is_number(k->keys) &&
           heads_follow(u, &k->q) && heads_follow(u, &k->k) && heads_follow(u, &k->v) && heads_follow(u, &k->out) &&
           (k->mask < 0 || heads_follow(u, &mask));
}

static bool store_follows(const units *u, const pl_store *s)
{
    int64_t step;
    return find_step(u, s->index, &step) && access_follows(u, s->buffer, step) && is_of_unit(u, s->value);
}

/* There must be exactly one loop over the units, and every other loop must have a fixed number of points. */
static bool nest_is_rowwise(units *u, const pl_nest *k)
{
    int loop = -1;
    for (int i = 0; i < k->loop_count + k->reduce_count; i++) {
        if (ir_dim_is_number(k->extent[i])) continue;
        if (loop >= 0 || i >= k->loop_count) return false;
        loop = i;
    }
    if (loop < 0 || !begin_units(u, loop, k->extent[loop]) || !is_of_unit(u, k->body)) return false;
    for (int s = 0; s < k->store_count; s++)
        if (!store_follows(u, &k->store[s])) return false;
    return true;
}

static bool is_rowwise(units *u, const pl_kernel *kernel)
{
    switch (kernel->kind) {
    case PL_LINEAR:
        return linear_is_rowwise(u, &kernel->linear);
    case PL_ATTENTION:
        return attention_is_rowwise(u, &kernel->attention);
    case PL_NORM:
        return norm_is_rowwise(u, &kernel->norm);
    case PL_NEST:
        return nest_is_rowwise(u, &kernel->nest);
    case PL_SEQUENTIAL:
    case PL_RECURRENCE:
        break;
    }
    return false;
}

/* ---- Number of items
 * ------------------------------------------------------------------------------------------------- */

/* Extents are products of scale * (L + r). Suppose that the items' lengths, plus the greatest r for each item except
 * the first, add up to at most max_length. Then the items' tensors need at most the memory of a single call at
 * max_length, because sums of products of non-negative numbers are at most products of sums. */
static bool note_offsets(pl_plan *plan, const ir_type *type)
{
    int lengths = 0;
    for (int d = 0; d < type->rank; d++) {
        ir_dim dim = type->dim[d];
        if (ir_dim_is_number(dim)) continue;
        if (dim.scale < 0 || ++lengths > PL_MOST_LENGTHS) return false;
        int64_t offset = dim.offset > 0 ? (dim.offset + dim.scale - 1) / dim.scale : 0;
        if (offset > plan->unit_offset) plan->unit_offset = offset;
    }
    return true;
}

/* Each item has its own tensors without the length. Together they may take at most as much memory as all tensors with
 * the length. */
static int count_items(pl_plan *plan)
{
    int64_t fixed = 0, growing = 0;
    plan->unit_offset = 0;
    for (int b = 0; b < plan->buffer_count; b++) {
        const pl_buffer *buffer = &plan->buffers[b];
        if (buffer->kind == PL_WEIGHT) continue;
        if (!note_offsets(plan, &buffer->type)) return 0;
        *(pl_has_length(&buffer->type) ? &growing : &fixed) += buffer->max_bytes;
    }
    int64_t most = plan->max_length / ir_first_length(plan->graph);
    if (fixed > 0 && growing / fixed < most) most = growing / fixed;
    return most < 2 ? 0 : most > MOST_ITEMS ? MOST_ITEMS : (int)most;
}

/* Items are combined only if it is worthwhile, because work that is done item by item walks through the memory of all
 * items once per kernel. */
void pl_decide_items(pl_plan *plan)
{
    double together = 0;
    plan->most_items = 0;
    if (plan->max_length == 0) return;
    for (int k = 0; k < plan->kernel_count; k++) {
        units u = {.plan = plan};
        pl_kernel *kernel = &plan->kernels[k];
        kernel->is_rowwise = is_rowwise(&u, kernel);
        kernel->unit_offset = kernel->is_rowwise ? u.offset : 0;
        if (kernel->is_rowwise) together += kernel->flops;
    }
    if (together >= plan->flops / 2) plan->most_items = count_items(plan);
}
