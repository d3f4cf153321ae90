/* units.c — see kind_tools.h. */
#include "plan/kind_tools.h"

#include "plan/expr.h"

/* Matches scale * (L + offset). False: another form, or a number. */
static bool find_units(ir_dim d, int64_t *out_offset)
{
    if (!ir_dim_is_affine(d) || d.scale <= 0 || d.offset % d.scale != 0) return false;
    *out_offset = d.offset / d.scale;
    return true;
}

int64_t pl_unit_elements(const ir_type *type, int64_t offset)
{
    int64_t elements = 1, own_offset;
    bool has_units = false;
    for (int d = 0; d < type->rank; d++) {
        ir_dim dim = type->dim[d];
        bool is_length = !ir_dim_is_number(dim);
        if (is_length && (has_units || !find_units(dim, &own_offset) || own_offset != offset)) return 0;
        if (__builtin_mul_overflow(elements, is_length ? dim.scale : dim.offset, &elements)) return 0;
        has_units = has_units || is_length;
    }
    return has_units ? elements : 0;
}

bool pl_access_follows(const pl_units *u, int buffer, int64_t step)
{
    if (buffer < 0) return true;
    if (u->plan->buffers[buffer].kind == PL_WEIGHT) return step == 0;
    int64_t elements = pl_unit_elements(&u->plan->buffers[buffer].type, u->offset);
    return elements > 0 && step == elements;
}

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
    case PL_ADD: return !__builtin_add_overflow(step[0], step[1], out_step);
    case PL_SUB: return !__builtin_sub_overflow(step[0], step[1], out_step);
    case PL_MUL:
        if (is_number(e->arg[1], &factor)) return !__builtin_mul_overflow(step[0], factor, out_step);
        return is_number(e->arg[0], &factor) && !__builtin_mul_overflow(step[1], factor, out_step);
    case PL_FLOORDIV:
    case PL_PYMOD: return step[1] == 0 && divide_step(e, step[0], out_step);
    default: return false;
    }
}

bool pl_find_step(const pl_units *u, const pl_expr *e, int64_t *out_step)
{
    int64_t step[3] = {0};
    bool stays = true;
    *out_step = 0;
    if (e->op == PL_LENGTH || e->op == PL_STEP) return false;
    if (e->op == PL_INDEX) *out_step = e->i == u->loop ? u->scale : 0;
    for (int k = 0; k < pl_expr_operand_count(e->op); k++) {
        if (!pl_find_step(u, e->arg[k], &step[k])) return false;
        stays = stays && step[k] == 0;
    }
    if (e->op == PL_LOAD) return pl_access_follows(u, e->i, step[0]);
    return stays || (e->dtype == MDOT_DTYPE_I64 && combine_steps(e, step, out_step));
}

bool pl_is_of_unit(const pl_units *u, const pl_expr *e)
{
    int64_t step;
    return e == NULL || (pl_find_step(u, e, &step) && step == 0);
}

bool pl_begin_units(pl_units *u, int loop, ir_dim extent)
{
    u->loop = loop;
    u->scale = extent.scale;
    return find_units(extent, &u->offset);
}

bool pl_stride_follows(const pl_units *u, int buffer, ir_dim offset, ir_dim stride)
{
    int64_t step;
    return ir_dim_is_number(offset) && ir_dim_is_number(stride) &&
           !__builtin_mul_overflow(u->scale, stride.offset, &step) && pl_access_follows(u, buffer, step);
}

bool pl_matrix_follows(const pl_units *u, const pl_matrix *m)
{
    return m->buffer < 0 || pl_stride_follows(u, m->buffer, m->offset, m->row_stride);
}

/* Windows that start in a unit end in it if the tensor has no units beyond theirs, because the last ones end in the
 * tensor. */
bool pl_windows_follow(const pl_units *u, const pl_matrix *m, const pl_windows *windows)
{
    ir_dim units = windows->rows.extent[0], stride = windows->rows.stride[0];
    int64_t offset, step;
    return find_units(units, &offset) && offset == u->offset && ir_dim_is_number(m->offset) &&
           ir_dim_is_number(stride) && !__builtin_mul_overflow(units.scale, stride.offset, &step) &&
           pl_access_follows(u, m->buffer, step);
}
