/* pack.c — constants into the form in which an artefact's weights section holds them.
 *
 * Panels are as wide as the widest register tile (four vectors of sixteen floats), so that the inner loop of a linear
 * kernel walks one panel in memory order and every CPU level reads the same bytes.
 */
#include "weights/pack.h"

#include <assert.h>
#include <string.h>

typedef struct matrix_shape {
    int64_t k, columns;
} matrix_shape;

/* The last dimension is columns, all before it are K: a vector is a matrix of one row. */
static matrix_shape shape_of(const ir_tensor *tensor)
{
    if (tensor->rank == 0) return (matrix_shape){1, 1};
    return (matrix_shape){ir_count_elements(tensor->rank - 1, tensor->dims), tensor->dims[tensor->rank - 1]};
}

int64_t wt_packed_bytes(const ir_tensor *tensor, pl_weight_layout layout)
{
    int64_t elements = tensor->count, bytes;
    if (layout == PL_PANELS) {
        matrix_shape shape = shape_of(tensor);
        if (shape.k < 0 || shape.columns > INT64_MAX - PL_PANEL_COLUMNS) return -1;
        int64_t panels = (shape.columns + PL_PANEL_COLUMNS - 1) / PL_PANEL_COLUMNS;
        if (__builtin_mul_overflow(panels * PL_PANEL_COLUMNS, shape.k, &elements)) return -1;
    }
    if (__builtin_mul_overflow(elements, (int64_t)mdot_dtype_size_bytes(tensor->dtype), &bytes)) return -1;
    return bytes;
}

static void pack_panels(const float *matrix, matrix_shape shape, float *out)
{
    for (int64_t first = 0; first < shape.columns; first += PL_PANEL_COLUMNS) {
        int64_t left = shape.columns - first;
        size_t width = (size_t)(left < PL_PANEL_COLUMNS ? left : PL_PANEL_COLUMNS);
        for (int64_t k = 0; k < shape.k; k++, out += PL_PANEL_COLUMNS) {
            memcpy(out, matrix + k * shape.columns + first, width * sizeof *out);
            memset(out + width, 0, (PL_PANEL_COLUMNS - width) * sizeof *out);
        }
    }
}

void wt_pack(const ir_tensor *tensor, pl_weight_layout layout, void *out)
{
    if (layout == PL_PANELS) {
        assert(tensor->dtype == MDOT_DTYPE_F32);
        pack_panels(tensor->data, shape_of(tensor), out);
    } else if (tensor->count > 0) {
        memcpy(out, tensor->data, (size_t)wt_packed_bytes(tensor, layout));
    }
}
