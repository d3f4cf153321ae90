/* cuda_axis.c — see cuda_step.h. */
#include "codegen/cuda/cuda_step.h"

#include <inttypes.h>

/* Outer indices per unit of length; 0 if units do not own whole lines. */
static int64_t outer_per_unit(const ir_type *type, int axis)
{
    ir_type outer = *type;
    outer.rank = axis;
    return pl_unit_elements(type, 0) > 0 ? pl_unit_elements(&outer, 0) : 0;
}

cu_axis cu_axis_of(cu_function *f, const ir_type *type, int axis)
{
    cu_axis a = {.extent = cu_product_text(f, type, axis, axis + 1),
                 .inner = cu_product_text(f, type, axis + 1, type->rank),
                 .outer_count = cu_product_text(f, type, 0, axis),
                 .outer_start = "0"};
    if (f->step->distribution != CU_TILED) return a;
    a.outer_count = ir_arena_printf(f->arena, "t.count * %" PRId64, f->step->scale);
    a.outer_start = ir_arena_printf(f->arena, "t.first * %" PRId64, f->step->scale);
    return a;
}

bool cu_tile_outer(cu_step_finder *f, const ir_type *type, int axis)
{
    int64_t scale = f->is_one_block ? 0 : outer_per_unit(type, axis);
    if (scale == 0) return false;
    f->step->distribution = CU_TILED;
    f->step->scale = scale;
    return true;
}

void cu_note_lines(cu_step_finder *f, int buffer, bool is_written)
{
    if (buffer < 0) return;
    int64_t unit = pl_unit_elements(&f->buffers[buffer].type, 0);
    bool is_unit = f->step->distribution == CU_TILED && unit > 0;
    cu_note_access(f, buffer, is_written,
                   is_unit ? (cu_range){unit, 0, unit - 1} : cu_range_between(INT64_MIN, INT64_MAX));
}

int64_t cu_fixed_count(const ir_type *type, int source, int target)
{
    int64_t count = 1;
    for (int d = source; d < target; d++)
        if (!ir_dim_is_number(type->dim[d]) || __builtin_mul_overflow(count, type->dim[d].offset, &count)) return -1;
    return count;
}

void cu_put_points(cu_function *f, const char *count)
{
    const cu_schedule *schedule = cu_schedule_of(f);
    (f->step->distribution == CU_FREE ? schedule->put_all_points : schedule->put_tile_points)(schedule, &f->body,
                                                                                              count);
}

const char *cu_checked_type(cu_function *f, int buffer)
{
    mdot_dtype dtype = cu_buffer(f, buffer)->type.dtype;
    const char *type = cu_type_name(dtype);
    if (type == NULL) cu_refuse(f, "CUDA code does not support values of type %s", mdot_dtype_name(dtype));
    return type != NULL ? type : "";
}
