/* pack.c — see cpu_target.h.
 *
 * Panels are as wide as the widest register tile (four vectors of sixteen floats), so the inner loop of a linear kernel
 * reads one panel in memory order. x86-64-v3, whose tiles are a quarter as wide, reads the same bytes. The padding of
 * pairs to whole tiles precedes the first row, so a linear's first block of k takes the odd part of K, as it does in
 * f32. */
#include "codegen/cpu/cpu_target.h"

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
    const float *source = matrix->data;
    float *target = out;
    for (int64_t first = 0; first < shape.columns; first += CG_PANEL_COLUMNS) {
        int64_t left = shape.columns - first;
        size_t width = (size_t)(left < CG_PANEL_COLUMNS ? left : CG_PANEL_COLUMNS);
        for (int64_t k = 0; k < shape.k; k++, target += CG_PANEL_COLUMNS) {
            memcpy(target, source + k * shape.columns + first, width * sizeof *target);
            memset(target + width, 0, (CG_PANEL_COLUMNS - width) * sizeof *target);
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
    const float *source = matrix->data;
    uint16_t(*to)[CG_PANEL_COLUMNS][2] = out;
    int64_t padding = cg_bf16_padding(shape.k), pairs = (shape.k + padding) / 2;
    for (int64_t first = 0; first < shape.columns; first += CG_PANEL_COLUMNS, to += pairs) {
        int64_t left = shape.columns - first, width = left < CG_PANEL_COLUMNS ? left : CG_PANEL_COLUMNS;
        memset(to, 0, (size_t)pairs * sizeof *to);
        for (int64_t k = 0; k < shape.k; k++)
            for (int64_t c = 0; c < width; c++)
                to[(k + padding) / 2][c][(k + padding) % 2] = ir_f32_to_bf16(source[k * shape.columns + first + c]);
    }
}

const cg_packing cg_pack_bf16 = {.name = "pairs", .matrix_bytes = pairs_bytes, .pack_matrix = pack_pairs};

enum { MOST_ELEMENTS = 5 }; /* of a dimension */

static int64_t elements_bytes(const ir_tensor *matrix, int64_t elements)
{
    int64_t bytes = panel_bytes(matrix);
    return bytes > INT64_MAX / elements ? -1 : bytes < 0 ? bytes : bytes / 9 * elements;
}

/* Multiplies three adjacent weights by G's rows. The outer weights are summed first, so a 0 between them gives equal
 * numbers. */
static void transform_three(const double g[3], bool by_two, double out[MOST_ELEMENTS])
{
    double outer = g[0] + g[2];
    out[0] = g[0];
    out[1] = by_two ? g[1] : (outer + g[1]) / 2;
    out[2] = by_two ? outer : (outer - g[1]) / 2;
    out[3] = g[2];
    out[4] = g[1];
}

static void transform_taps(const double taps[3][3], bool by_two, double out[MOST_ELEMENTS][MOST_ELEMENTS])
{
    double by_column[MOST_ELEMENTS][3], row[MOST_ELEMENTS];
    for (int j = 0; j < 3; j++) {
        transform_three((double[]){taps[0][j], taps[1][j], taps[2][j]}, by_two, row);
        for (int i = 0; i < MOST_ELEMENTS; i++) by_column[i][j] = row[i];
    }
    for (int i = 0; i < MOST_ELEMENTS; i++) transform_three(by_column[i], by_two, out[i]);
}

static void pack_elements(const ir_tensor *matrix, bool by_two, void *out)
{
    assert(matrix->dtype == MDOT_DTYPE_F32);
    matrix_shape shape = shape_of(matrix);
    int side = by_two ? 5 : 4;
    int64_t channels = shape.k / 9, panel = side * side * channels * CG_PANEL_COLUMNS;
    const float *source = matrix->data;
    float *target = out;
    if (shape.columns % CG_PANEL_COLUMNS != 0) memset(out, 0, (size_t)elements_bytes(matrix, side * side));
    for (int64_t c = 0; c < channels; c++) {
        for (int64_t column = 0; column < shape.columns; column++) {
            double taps[3][3], transformed[MOST_ELEMENTS][MOST_ELEMENTS];
            for (int t = 0; t < 9; t++) taps[t / 3][t % 3] = source[(t * channels + c) * shape.columns + column];
            transform_taps((const double(*)[3])taps, by_two, transformed);
            float *first =
                target + column / CG_PANEL_COLUMNS * panel + c * CG_PANEL_COLUMNS + column % CG_PANEL_COLUMNS;
            for (int t = 0; t < side * side; t++)
                first[cg_tap_place(by_two, t / side, t % side) * channels * CG_PANEL_COLUMNS] =
                    (float)transformed[t / side][t % side];
        }
    }
}

static int64_t taps_bytes(const ir_tensor *matrix) { return elements_bytes(matrix, 16); }
static void pack_taps(const ir_tensor *matrix, void *out) { pack_elements(matrix, false, out); }
const cg_packing cg_pack_taps = {.name = "taps", .matrix_bytes = taps_bytes, .pack_matrix = pack_taps};

static int64_t by_two_bytes(const ir_tensor *matrix) { return elements_bytes(matrix, 25); }
static void pack_by_two(const ir_tensor *matrix, void *out) { pack_elements(matrix, true, out); }
const cg_packing cg_pack_taps_by_two = {.name = "by two", .matrix_bytes = by_two_bytes, .pack_matrix = pack_by_two};

const cg_layout cg_layout_f32 = {&cg_pack_panels, &cg_pack_panels, {&cg_pack_taps, &cg_pack_taps_by_two}};
const cg_layout cg_layout_bf16 = {.f32 = &cg_pack_panels, .bf16 = &cg_pack_bf16};

int64_t cg_packed_bytes(const cg_packing *packing, const ir_tensor *tensor, pl_weight_use use)
{
    return use != PL_ELEMENTS ? packing->matrix_bytes(tensor) : element_bytes(tensor, tensor->count);
}

void cg_pack(const cg_packing *packing, const ir_tensor *tensor, pl_weight_use use, void *out)
{
    if (use != PL_ELEMENTS)
        packing->pack_matrix(tensor, out);
    else if (tensor->count > 0)
        memcpy(out, tensor->data, (size_t)element_bytes(tensor, tensor->count));
}
