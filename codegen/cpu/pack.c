/* pack.c — see pack.h.
 *
 * Panels are as wide as the widest register tile (four vectors of sixteen floats), so that the inner loop of a
 * linear kernel reads one panel in memory order. x86-64-v3, whose tiles are a quarter as wide, reads the same bytes.
 * The padding of pairs to whole tiles precedes the first row, so that a linear's first block of k takes the odd part
 * of K, as it does in f32.
 */
#include "codegen/cpu/pack.h"

#include <assert.h>
#include <string.h>

typedef struct matrix_shape {
    int64_t k, columns;
} matrix_shape;

static matrix_shape shape_of(const ir_tensor *tensor)
{
    if (tensor->rank == 0) return (matrix_shape){1, 1};
    return (matrix_shape){ir_count_elements(tensor->rank - 1, tensor->dims), tensor->dims[tensor->rank - 1]};
}

static int64_t element_bytes(const ir_tensor *tensor, int64_t elements)
{
    int64_t bytes;
    return __builtin_mul_overflow(elements, (int64_t)mdot_dtype_size_bytes(tensor->dtype), &bytes) ? -1 : bytes;
}

static int64_t panel_bytes(const ir_tensor *matrix)
{
    int64_t elements;
    matrix_shape shape = shape_of(matrix);
    if (shape.k < 0 || shape.columns > INT64_MAX - CG_PANEL_COLUMNS) return -1;
    int64_t panels = (shape.columns + CG_PANEL_COLUMNS - 1) / CG_PANEL_COLUMNS;
    if (__builtin_mul_overflow(panels * CG_PANEL_COLUMNS, shape.k, &elements)) return -1;
    return element_bytes(matrix, elements);
}

static void pack_panels(const ir_tensor *matrix, void *out)
{
    assert(matrix->dtype == MDOT_DTYPE_F32);
    matrix_shape shape = shape_of(matrix);
    const float *from = matrix->data;
    float *to = out;
    for (int64_t first = 0; first < shape.columns; first += CG_PANEL_COLUMNS) {
        int64_t left = shape.columns - first;
        size_t width = (size_t)(left < CG_PANEL_COLUMNS ? left : CG_PANEL_COLUMNS);
        for (int64_t k = 0; k < shape.k; k++, to += CG_PANEL_COLUMNS) {
            memcpy(to, from + k * shape.columns + first, width * sizeof *to);
            memset(to + width, 0, (CG_PANEL_COLUMNS - width) * sizeof *to);
        }
    }
}

const cg_packing cg_pack_panels = {.name = "panels", .matrix_bytes = panel_bytes, .pack_matrix = pack_panels};

static int64_t pairs_bytes(const ir_tensor *matrix)
{
    int64_t k = shape_of(matrix).k, bytes = panel_bytes(matrix);
    if (bytes <= 0) return bytes;
    return __builtin_mul_overflow(bytes / k / 2, k + cg_bf16_padding(k), &bytes) ? -1 : bytes;
}

static void pack_pairs(const ir_tensor *matrix, void *out)
{
    assert(matrix->dtype == MDOT_DTYPE_F32);
    matrix_shape shape = shape_of(matrix);
    const float *from = matrix->data;
    uint16_t(*to)[CG_PANEL_COLUMNS][2] = out;
    int64_t padding = cg_bf16_padding(shape.k), pairs = (shape.k + padding) / 2;
    for (int64_t first = 0; first < shape.columns; first += CG_PANEL_COLUMNS, to += pairs) {
        int64_t left = shape.columns - first, width = left < CG_PANEL_COLUMNS ? left : CG_PANEL_COLUMNS;
        memset(to, 0, (size_t)pairs * sizeof *to);
        for (int64_t k = 0; k < shape.k; k++)
            for (int64_t c = 0; c < width; c++)
                to[(k + padding) / 2][c][(k + padding) % 2] = ir_f32_to_bf16(from[k * shape.columns + first + c]);
    }
}

const cg_packing cg_pack_bf16 = {.name = "pairs", .matrix_bytes = pairs_bytes, .pack_matrix = pack_pairs};

const cg_layout cg_layout_f32 = {.f32 = &cg_pack_panels, .bf16 = &cg_pack_panels};
const cg_layout cg_layout_bf16 = {.f32 = &cg_pack_panels, .bf16 = &cg_pack_bf16};

int64_t cg_packed_bytes(const cg_packing *packing, const ir_tensor *tensor, pl_weight_use use)
{
    return use == PL_MATRIX ? packing->matrix_bytes(tensor) : element_bytes(tensor, tensor->count);
}

void cg_pack(const cg_packing *packing, const ir_tensor *tensor, pl_weight_use use, void *out)
{
    if (use == PL_MATRIX)
        packing->pack_matrix(tensor, out);
    else if (tensor->count > 0)
        memcpy(out, tensor->data, (size_t)element_bytes(tensor, tensor->count));
}
