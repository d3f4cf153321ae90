/* index.c — tensors viewed around an axis and through strides; see operands.h. */
#include "ir/ops/operands.h"

#include "ir/ops/families.h"

#include <string.h>

ir_axis_view ir_view_axis(const ir_wide *wide, int axis)
{
    return (ir_axis_view){ir_product(wide->dims, 0, axis), wide->dims[axis],
                          ir_product(wide->dims, axis + 1, wide->rank)};
}

mdot_status ir_wrap_index(const ir_node *node, int64_t index, int64_t extent, int64_t *out_index, mdot_error *err)
{
    if (index < -extent || index >= extent)
        return ir_fail(node, err, MDOT_OUT_OF_RANGE, "index %lld is outside of a dimension of %lld", (long long)index,
                       (long long)extent);
    *out_index = index < 0 ? index + extent : index;
    return MDOT_OK;
}

void ir_copy_elements(ir_wide *target, int64_t to, const ir_wide *source, int64_t from, int64_t count)
{
    if (count == 0) return;
    if (target->f != NULL)
        memcpy(target->f + to, source->f + from, (size_t)count * sizeof *target->f);
    else
        memcpy(target->i + to, source->i + from, (size_t)count * sizeof *target->i);
}

void ir_copy_strided(ir_wide *target, const ir_wide *source, int64_t base, const int64_t *strides)
{
    int64_t index[MDOT_MAX_RANK] = {0};
    for (int64_t k = 0; k < target->count; k++) {
        ir_copy_element(target, k, source, base + ir_dot_index(target->rank, index, strides));
        ir_next_index(target->rank, target->dims, index);
    }
}
