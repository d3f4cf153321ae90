/* plan.h — the input of both backends: a list of kernels over buffers, for one graph bound to one bucket.
 *
 * The planner (plan/build.c) builds the plan from a graph after all passes. Fusion is decided here, once, for
 * every backend. A plan is independent of instruction sets and thread layouts.
 *
 * Length: every extent is a dimension in L (ir_dim), the run-time length (1 … max_length). Tensors are dense and
 * row-major *at the run-time length*. Therefore a reshape never copies, inputs and outputs look like internal buffers,
 * and the work is proportional to L. Kernels access only elements within a buffer's run-time size.
 */
#pragma once

#include "plan/expr.h"

/* ---- Buffers ---------------------------------------------------------------------------------------------------- */

typedef enum pl_buffer_kind { PL_INPUT, PL_OUTPUT, PL_WEIGHT, PL_SCRATCH } pl_buffer_kind;

/* How kernels read a constant. PL_ELEMENTS: one element at a time, so it is dense. PL_MATRIX: only as a K × columns
 * operand of matrix kernels (a vector is a matrix of one row); each backend chooses the layout that it needs. PL_TAPS:
 * such a matrix of a linear with 3x3 windows (pl_taps_of), so a backend may store the weights transformed. */
typedef enum pl_weight_use { PL_ELEMENTS, PL_MATRIX, PL_TAPS, PL_TAPS_BY_TWO, PL_WEIGHT_USE_COUNT } pl_weight_use;

/* How kernels read a buffer in images with 16-bit precision. Matrix kernels (pl_is_matrix) round the factors of their
 * products; all other reads use full values. This decides the buffer's element type. Images that compute in f32
 * ignore it. */
enum { PL_READ_WHOLE = 1, PL_READ_HALF = 2 };

typedef struct pl_buffer {
    pl_buffer_kind kind;
    const char *name; /* the value's name, for human readers */
    ir_type type;
    int index;                 /* INPUT, OUTPUT: position in the entry's list */
    const ir_tensor *constant; /* WEIGHT */
    pl_weight_use use;         /* WEIGHT */
    int64_t offset_bytes;      /* SCRATCH: offset in the scratch memory, 64-byte aligned */
    int64_t max_bytes;         /* size at max_length; SCRATCH and WEIGHT */
    int first_use, last_use;   /* the kernels between which it is live, inclusive; -1: unused */
    unsigned reads;            /* PL_READ_…, combined over all kernels */
} pl_buffer;

/* Do images with 16-bit precision hold the buffer in 16 bits? Only matrix kernels may read it, and it must be internal,
 * that is, neither an input nor an output. A buffer read in both ways is kept in f32; a backend may keep a rounded copy
 * beside it. */
static inline bool pl_is_half(const pl_buffer *buffer)
{
    return buffer->reads == PL_READ_HALF && (buffer->kind == PL_SCRATCH || buffer->kind == PL_WEIGHT);
}

static inline bool pl_has_length(const ir_type *type)
{
    for (int d = 0; d < type->rank; d++)
        if (!ir_dim_is_number(type->dim[d])) return true;
    return false;
}

/* Elements per unit of a tensor with L + offset units; 0: it has no length, or another number of units (units.c). */
int64_t pl_unit_elements(const ir_type *type, int64_t offset);

/* A strided matrix view into a buffer: element (row r, column c) is at offset + r * row_stride + c, in elements. */
typedef struct pl_matrix {
    int buffer;
    ir_dim offset;
    ir_dim row_stride;
} pl_matrix;

/* Windows of an array as a matrix: row r is a position in the dimensions `rows`, in row-major order, and column c is a
 * position in `columns`. The element is at the sum of position * stride over both. For example, rows are the positions
 * of a convolution's kernel (image, y, x), and columns are its taps and their channels. */
enum { PL_MAX_WINDOW_DIMS = 3 };
typedef struct pl_window_dims {
    int count; /* at least 1 */
    ir_dim extent[PL_MAX_WINDOW_DIMS], stride[PL_MAX_WINDOW_DIMS];
} pl_window_dims;
typedef struct pl_windows {
    pl_window_dims rows, columns; /* extents of columns are numbers, and the last stride is 1 */
} pl_windows;

/* ---- Kernels ---------------------------------------------------------------------------------------------------- */

/* PL_LINEAR, PL_ATTENTION … (kernel_kinds.def) */
typedef enum pl_kind {
#define PL_KERNEL_KIND(identifier, name) PL_##identifier,
#include "plan/kernel_kinds.def"
    PL_KIND_COUNT
} pl_kind;

/* out[r, c] = epilogue(sum_k a[r, k] * weight[k, c] + bias[c]), f32. INDEX 0 is r, INDEX 1 is c, ACC 0 the sum with
 * the bias. The epilogue may load other buffers. It may load `out`'s own buffer only at exactly (r, c). Offsets and
 * row strides may have any alignment. */
typedef struct pl_linear {
    pl_matrix a;
    const pl_windows *windows; /* the rows of `a`, from a.offset on; NULL: `a` is a matrix */
    ir_dim rows;
    int64_t k, columns;
    int weight;              /* buffer of a constant with use MATRIX */
    int bias;                /* buffer of such a constant with one row; -1: none */
    const pl_expr *epilogue; /* NULL: the sum is stored as it is */
    pl_matrix out;
} pl_linear;

/* One operand of attention: element (batch b, head h, position n, channel d) is at offset + b * batch_stride + h *
 * head_stride + n * row_stride + d. */
typedef struct pl_heads {
    int buffer;
    ir_dim offset;
    ir_dim batch_stride, head_stride, row_stride;
} pl_heads;

/* out = softmax(cap(scale * q kᵀ) + mask) v for every batch and head, f32, streaming over keys; cap(s) is softcap *
 * tanh(s / softcap). Query head h reads key head h / (heads / kv_heads). A query whose keys are all masked by -inf
 * gives zeros (ONNX Attention, opset 24). */
enum { PL_MAX_MASKS = 3 };
typedef struct pl_attention {
    ir_dim batch;
    int64_t heads, kv_heads;
    ir_dim queries, keys;
    int64_t dim, value_dim; /* channels of q and k; of v and out */
    double scale;
    double softcap; /* 0: no cap */
    pl_heads q, k, v, out;
    /* f32 numbers by query and key, which apply to the scaled scores in this order. Strides are 0 where a mask
     * broadcasts. -inf and large negative numbers both mask. */
    int mask_count;
    pl_heads mask[PL_MAX_MASKS];
    /* negative: the mask's elements up to this number replace the score; 0: all elements are added */
    double replaces[PL_MAX_MASKS];
    bool causal; /* query i reads keys up to i + keys - queries */
} pl_attention;

typedef enum pl_norm_mode { PL_NORM_LAYER, PL_NORM_RMS, PL_NORM_SOFTMAX, PL_NORM_LOG_SOFTMAX } pl_norm_mode;

/* Row-wise over a rows × columns matrix, f32: x = input(r, c). LAYER: (x - mean) / sqrt(var + epsilon). RMS: x /
 * sqrt(mean of squares + epsilon). Then * gamma[c] + beta[c] if present; SOFTMAX and LOG_SOFTMAX lack both.
 *
 * INDEX 0 is r, INDEX 1 is c. In the epilogue ACC 0 is the result so far. The input expression is evaluated once per
 * element.
 */
typedef struct pl_norm {
    pl_norm_mode mode;
    ir_dim rows;
    ir_dim columns;
    const pl_expr *input;
    double epsilon;
    int gamma, beta;         /* buffers of `columns` elements; -1: none */
    const pl_expr *epilogue; /* NULL: none */
    pl_matrix out;
    pl_matrix sum; /* buffer -1: none; otherwise the input expression's value is also stored here (residual sums) */
} pl_norm;

typedef enum pl_reducer {
    PL_REDUCE_NONE,
    PL_REDUCE_SUM,
    PL_REDUCE_PROD,
    PL_REDUCE_MAX,
    PL_REDUCE_MIN,
    PL_REDUCE_ARGMAX_FIRST, /* the accumulator is I64: the row-major index in the reduction space */
    PL_REDUCE_ARGMAX_LAST,
    PL_REDUCE_ARGMIN_FIRST,
    PL_REDUCE_ARGMIN_LAST
} pl_reducer;

typedef struct pl_store { /* buffer[index] = value; the dtype of value equals the buffer's */
    int buffer;
    const pl_expr *index;
    const pl_expr *value;
} pl_store;

/* A general loop nest. For every point of the outer loops (INDEX 0 … loop_count-1), `body` is reduced over the
 * reduction loops (INDEX loop_count …) into ACC 0, of body's dtype. Then the stores are done, whose values may use
 * ACC 0. If there are no reduction loops, body is NULL. Points are independent: loops may run in any order and in
 * vectors. SUM and PROD of f32 may be reassociated. */
enum { PL_MAX_LOOPS = 2 * MDOT_MAX_RANK, PL_MAX_STORES = 4 };
typedef struct pl_nest {
    int loop_count, reduce_count;
    ir_dim extent[PL_MAX_LOOPS];
    pl_reducer reducer;
    const pl_expr *body;
    int store_count;
    pl_store store[PL_MAX_STORES];
} pl_nest;

typedef enum pl_sequence {
    PL_SEQ_CUMULATE, /* CumSum: flags exclusive, reverse */
    PL_SEQ_TOP_K,    /* flags largest, sorted; the second output holds the I64 indices */
    PL_SEQ_SCATTER_ELEMENTS,
    PL_SEQ_SCATTER_ND,
    PL_SEQ_TENSOR_SCATTER
} pl_sequence;

/* Operators that are not loop nests. Operands are whole dense buffers in ONNX's input order. Their types give the
 * shapes. A scatter with input 3, an i64, has only that many updates along the axis of the updates. */
typedef struct pl_sequential {
    pl_sequence operation;
    int input[4], output[2]; /* buffers; -1: absent */
    int axis;
    bool exclusive, reverse, largest, sorted, circular;
    pl_reducer reduction; /* scatter: NONE overwrites; SUM, PROD, MAX, MIN combine */
} pl_sequential;

/* out[row, t] = the sum, minimum or maximum of what the leaves of all trees that the row reaches contribute to target
 * t. Nodes, trees and values are those of ir/ops/mdot_ops.h. Tests, spans and leaves describe the same trees by their
 * comparisons (plan/plan_trees.c), or are -1:
 *
 *   tests   {threshold, feature, mask (low word, high word)} of all comparisons: bit b of the mask is 0 if a false
 *           comparison excludes leaf b of its tree
 *   spans   {first test, test behind the last, first leaf, target} of each tree
 *   leaves  values; a row reaches the first leaf that is left when its false comparisons have excluded theirs
 *
 * Trees contribute in their order, in the type of x, so that every method gives the same bits. */
enum { PL_MOST_LEAVES = 64, PL_SPAN_WORDS = 4 };
typedef struct pl_tree_group { /* consecutive trees */
    int64_t first, count, depth;
    bool is_row; /* their leaves contribute to all targets */
} pl_tree_group;
typedef struct pl_trees {
    ir_dim rows;
    int64_t features, targets;
    pl_reducer reducer; /* SUM, MIN, MAX */
    int x, nodes, trees, values, tests, spans, leaves, out;
    int64_t most_leaves; /* of a tree, if there are tests */
    int group_count;
    const pl_tree_group *groups;
} pl_trees;

/* Kernels that run in order, all of them once per step 0 … steps - 1. They are of all other kinds, and their
 * expressions may use the step as STEP. Results of one step are read in the next. Everything is computed in f32, even
 * in images with 16-bit precision, because a rounding error would propagate from step to step. */
typedef struct pl_recurrence {
    ir_dim steps;
    int kernel_count;
    const struct pl_kernel *kernels;
} pl_recurrence;

/* Only the first `count` rows of all results are read. So the kernel may stop at `count` * points of a loop. */
typedef struct pl_row_limit {
    int count; /* buffer of one i64 */
    int loop;  /* linear, norm: 0, over rows; nest: an output loop */
    int64_t points;
} pl_row_limit;

typedef struct pl_kernel {
    pl_kind kind;
    const char *name;          /* "linear.layers_0_f1", a C identifier except for the dots; unique in the plan */
    const char *origin;        /* the ONNX nodes that it implements, for human readers */
    double flops;              /* at max_length; 0 with a limit, because the count is unknown */
    bool is_rowwise;           /* the units of several items may be concatenated in a call (plan/batched_kernels.c) */
    int64_t unit_offset;       /* if is_rowwise: a kernel has length + unit_offset units */
    const pl_row_limit *limit; /* NULL: all rows are read */
    bool is_step;              /* it is part of a recurrence, which computes everything in f32 */
    union {
        pl_linear linear;
        pl_attention attention;
        pl_norm norm;
        pl_nest nest;
        pl_sequential sequential;
        pl_trees trees;
        pl_recurrence recurrence;
    };
} pl_kernel;

typedef struct pl_plan {
    ir_arena *arena;
    const ir_graph *graph;
    int64_t max_length; /* 0: no symbolic length */
    int buffer_count;
    pl_buffer *buffers;
    int kernel_count;
    pl_kernel *kernels;
    int64_t scratch_bytes;
    double flops;
    int most_items;      /* items per call in the scratch memory; 0: each item needs a call */
    int64_t unit_offset; /* items fit together if the sum of the lengths, plus this for each except the first, is at
                          * most max_length */
} pl_plan;

/* Maximum number of lengths in the product of a tensor's extents, if items are combined. */
enum { PL_MOST_LENGTHS = 2 };

/* Size of a SCRATCH buffer for all items of a call. A buffer with a length needs at most as much as one item at
 * max_length. */
static inline int64_t pl_capacity_bytes(const pl_plan *plan, const pl_buffer *buffer)
{
    bool is_of_each = plan->most_items > 0 && !pl_has_length(&buffer->type);
    return is_of_each ? buffer->max_bytes * plan->most_items : buffer->max_bytes;
}
