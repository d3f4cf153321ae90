/* plan.h — what both backends consume: a list of kernels over buffers, for one graph bound to one bucket.
 *
 * The planner (ir/plan/build.c) turns a graph into it once all passes ran; the choice of what is fused with what is
 * made here, once, for every backend. A plan names no instruction set and no thread layout.
 *
 * Length: every extent is affine in L, the run-time length (1 … max_length). Tensors are dense and row-major *at the
 * run-time length*, so a reshape never copies, inputs and outputs look like internal buffers, and work is that of L.
 * Kernels touch no element beyond a buffer's run-time size.
 */
#ifndef IR_PLAN_PLAN_H
#define IR_PLAN_PLAN_H

#include "ir/plan/expr.h"

/* ---- Buffers ---------------------------------------------------------------------------------------------------- */

typedef enum pl_buffer_kind { PL_INPUT, PL_OUTPUT, PL_WEIGHT, PL_SCRATCH } pl_buffer_kind;

/* How kernels read a constant: one element at a time, so that it is dense, or as a K × columns operand of matrix
 * kernels and nothing else (a vector is a matrix of one row), which each backend lays out as its kernels want it. */
typedef enum pl_weight_use { PL_ELEMENTS, PL_MATRIX } pl_weight_use;

/* How kernels read a buffer, where an image computes in 16 bits: matrix kernels (pl_is_matrix) round the factors of
 * their products, everything else takes values as they are. It decides the buffer's element type, and means nothing
 * to an image that computes in f32. */
enum { PL_READ_WHOLE = 1, PL_READ_HALF = 2 };

typedef struct pl_buffer {
    pl_buffer_kind kind;
    const char *name; /* of the value, for people */
    ir_type type;
    int index;                 /* INPUT, OUTPUT: position in the entry's list */
    const ir_tensor *constant; /* WEIGHT */
    pl_weight_use use;         /* WEIGHT */
    int64_t offset_bytes;      /* SCRATCH: in the scratch memory, 64-byte aligned */
    int64_t max_bytes;         /* at max_length; SCRATCH and WEIGHT */
    int first_use, last_use;   /* kernels between which it is live, both included; -1: never used */
    unsigned reads;            /* PL_READ_…, by all kernels together */
} pl_buffer;

/* Whether images that compute in 16 bits hold it in 16 bits: only matrix kernels read it, and neither does it come from
 * the caller nor go there. A buffer that is read in both ways is whole; a backend may keep a rounded copy beside it. */
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

/* A strided matrix view into a buffer: element (row r, column c) lies at offset + r * row_stride + c, in elements. */
typedef struct pl_matrix {
    int buffer;
    ir_dim offset;
    ir_dim row_stride;
} pl_matrix;

/* ---- Kernels ---------------------------------------------------------------------------------------------------- */

typedef enum pl_kind { PL_LINEAR, PL_ATTENTION, PL_NORM, PL_NEST, PL_SEQUENTIAL, PL_RECURRENCE } pl_kind;
const char *pl_kind_name(pl_kind kind);

/* out[r, c] = epilogue(sum_k a[r, k] * weight[k, c] + bias[c]), f32. INDEX 0 is r, INDEX 1 is c, ACC 0 the sum with the
 * bias. The epilogue may load other buffers; it may load `out`'s own buffer at exactly (r, c), never elsewhere.
 * Offsets and row strides are multiples of nothing in particular. */
typedef struct pl_linear {
    pl_matrix a;
    ir_dim rows;
    int64_t k, columns;
    int weight;              /* buffer, a constant of use MATRIX */
    int bias;                /* the same, of one row; -1: none */
    const pl_expr *epilogue; /* NULL: the sum itself */
    pl_matrix out;
} pl_linear;

/* One operand of attention: element (batch b, head h, position n, channel d) at
 * offset + b * batch_stride + h * head_stride + n * row_stride + d. */
typedef struct pl_heads {
    int buffer;
    ir_dim offset;
    ir_dim batch_stride, head_stride, row_stride;
} pl_heads;

/* out = softmax(cap(scale * q kᵀ) + mask) v for every batch and head, f32, streaming over keys; cap(s) is softcap *
 * tanh(s / softcap). Query head h reads key head h / (heads / kv_heads). A query all of whose keys are masked by -inf
 * gives zeros (ONNX Attention, opset 24). */
typedef struct pl_attention {
    ir_dim batch;
    int64_t heads, kv_heads;
    ir_dim queries, keys;
    int64_t dim, value_dim; /* channels of q and k, of v and out */
    double scale;
    double softcap; /* 0: none */
    pl_heads q, k, v, out;
    int mask; /* f32 buffer added to the scaled scores at b * mask_batch + h * mask_head + q * mask_query + key;
                 -1: none. Strides are 0 where the mask broadcasts; -inf and large negative numbers both mask. */
    ir_dim mask_batch, mask_head, mask_query;
    double replaces; /* negative: an element of the mask that is no greater stands instead of the score; 0: all add */
    bool causal;     /* query i sees keys up to i + keys - queries */
} pl_attention;

typedef enum pl_norm_mode { PL_NORM_LAYER, PL_NORM_RMS, PL_NORM_SOFTMAX, PL_NORM_LOG_SOFTMAX } pl_norm_mode;

/* Row-wise over a rows × columns matrix, f32: x = input(r, c); LAYER: (x - mean) / sqrt(var + epsilon), RMS: x /
 * sqrt(mean of squares + epsilon); then * gamma[c] + beta[c] where present; SOFTMAX and LOG_SOFTMAX have neither. INDEX
 * 0 is r, INDEX 1 is c; in the epilogue ACC 0 is the result so far. The input expression is evaluated once per element.
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
    pl_matrix sum; /* buffer -1: none; else the input expression's value is stored here too (residual sums) */
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

typedef struct pl_store { /* buffer[index] = value; value's dtype is the buffer's */
    int buffer;
    const pl_expr *index;
    const pl_expr *value;
} pl_store;

/* A general loop nest. For every point of the outer loops (INDEX 0 … loop_count-1): reduce `body` over the reduction
 * loops (INDEX loop_count …) into ACC 0, of body's dtype, then do the stores, whose values may use ACC 0. Without
 * reduction loops body is NULL. Points are independent: loops may run in any order and in vectors. SUM and PROD of f32
 * may be reassociated. */
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
    PL_SEQ_TOP_K,    /* flags largest, sorted; second output the I64 indices */
    PL_SEQ_SCATTER_ELEMENTS,
    PL_SEQ_SCATTER_ND,
    PL_SEQ_TENSOR_SCATTER
} pl_sequence;

/* What is no loop nest. Operands are whole dense buffers in ONNX's input order; shapes come from their types. */
typedef struct pl_sequential {
    pl_sequence what;
    int input[4], output[2]; /* buffers; -1: absent */
    int axis;
    bool exclusive, reverse, largest, sorted, circular;
    pl_reducer reduction; /* scatter: NONE overwrites; SUM, PROD, MAX, MIN combine */
} pl_sequential;

/* Kernels that are done in order, all of them once for each step 0 … steps - 1: linears and nests, whose expressions
 * have the step as STEP. What one step writes the next one reads. All of it is computed in f32, also where an image
 * computes in 16 bits: a rounding would be carried from step to step. */
typedef struct pl_recurrence {
    ir_dim steps;
    int kernel_count;
    const struct pl_kernel *kernels;
} pl_recurrence;

typedef struct pl_kernel {
    pl_kind kind;
    const char *name;   /* "linear.layers_0_f1", a C identifier but for the dots; unique in the plan */
    const char *origin; /* the ONNX nodes it stands for, for people */
    double flops;       /* at max_length */
    bool
        is_rowwise; /* the units of several items may stand behind one another in a call (ir/plan/batched_kernels.c) … */
    int64_t unit_offset; /* … of which there are length + unit_offset */
    union {
        pl_linear linear;
        pl_attention attention;
        pl_norm norm;
        pl_nest nest;
        pl_sequential sequential;
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
    int most_items;      /* that the scratch memory has room for; 0: items are not taken together … */
    int64_t unit_offset; /* … if their lengths, and this for each but the first, add up to no more than max_length */
} pl_plan;

/* Lengths that a tensor's extents are the product of, where items are taken together. */
enum { PL_MOST_LENGTHS = 2 };

/* What a SCRATCH buffer takes for all items of a call: with a length, they take no more than one item at max_length. */
static inline int64_t pl_capacity_bytes(const pl_plan *plan, const pl_buffer *buffer)
{
    bool is_of_each = plan->most_items > 0 && !pl_has_length(&buffer->type);
    return is_of_each ? buffer->max_bytes * plan->most_items : buffer->max_bytes;
}

/* Plans a graph after all passes: inferred, supported, every symbol bound but L. UNSUPPORTED names the node. */
mdot_status pl_build(const ir_graph *graph, ir_arena *arena, pl_plan **out_plan, mdot_error *err);

/* Calls `visit` for every buffer that a kernel reads or writes, as often as it occurs (ir/plan/visit.c). */
void pl_kernel_visit_buffers(const pl_kernel *kernel, void (*visit)(void *user, int buffer, bool is_written),
                             void *user);

/* Whether a kernel multiplies 16-bit factors, with f32 sums, where an image computes in 16 bits (ir/plan/precision.c):
 * `a` and the weight of a linear; q, k, v and the softmax weights of attention. */
bool pl_is_matrix(const pl_plan *plan, const pl_kernel *kernel);
/* Sets every buffer's `reads`, once all kernels are there. */
void pl_decide_precision(pl_plan *plan);

/* Sets every kernel's is_rowwise and the plan's most_items, once all kernels are there (ir/plan/batched_kernels.c). */
void pl_decide_items(pl_plan *plan);

/* Assigns scratch offsets so that buffers that live at the same time do not overlap (ir/plan/buffer_assignment.c). */
bool pl_assign_memory(pl_plan *plan);

/* The plan as text, a line a buffer and a block a kernel; for --dump plan and golden tests. */
char *pl_print(const pl_plan *plan, ir_arena *arena);

/* Checks what plan.h promises: buffer numbers, dtypes, index bounds where they are affine. For debug builds and tests.
 */
mdot_status pl_verify(const pl_plan *plan, mdot_error *err);

#endif
