/* plan_builder.h — the state of a plan that is being built. Internal to plan/.
 *
 * Every value of the graph ends up in one of these states:
 *
 *   placed   it has an address: a buffer of its own, or a strided view into another value's buffer (a transpose, slice
 *            or reshape that costs nothing)
 *   inlined  it has no address; each reader computes it as an expression of the index
 *   chained  it is computed inside the kernel of another value: a link of the chain of pointwise operators that
 *            continues a matmul, a norm or a reduction up to the chain's tail, which is placed
 *
 * Files form layers and call only functions of their own or a lower layer:
 *
 *   5  build.c        the order of everything: users, chains, states, kernels, memory
 *   4  chain.c        the pointwise operators that continue each root
 *      decide.c       whether a value is placed or inlined
 *      fused.c        linear, norm and attention kernels; reduce_nests.c plan_matmul.c norm_nests.c
 *      sequence.c plan_trees.c
 *      recurrence.c loop.c   all others
 *      nest.c         nests of values and the ends of reductions
 *   3  pointwise.c formula.c move.c gather_nests.c          definitions of inlinable operators, one expression each
 *   2  value.c        a value at an index, as an expression: loads, inlined definitions
 *      output_placement.c    the placement of a computed value
 *      view.c         strided views
 *   1  kernel.c       buffers, kernels, names
 *      rename_buffer.c    kernels that use another buffer
 *      collapse.c     loops that run as one
 *      precision.c    the buffers that images with 16-bit precision keep in 16 bits
 */
#pragma once

#include "ir/hash_map.h"
#include "ir/ops.h"
#include "ir/ops/families.h"
#include "plan/plan.h"

/* The address of a value. A dense placement is row-major for the value's type, and its strides may be polynomials in L.
 * In a strided placement, element `index` is at offset + sum of index[k] * stride[k]. A placement as windows has no
 * strides for the value's own dimensions: only linears read it, as a matrix whose columns are the last dimension. */
typedef struct pl_placement {
    int buffer;
    bool dense;
    ir_dim offset;
    ir_dim stride[MDOT_MAX_RANK];
    const pl_windows *windows; /* NULL: dense or strided */
} pl_placement;

typedef enum pl_state { PL_UNDECIDED, PL_PLACED, PL_INLINED, PL_CHAINED } pl_state;

typedef struct pl_use {
    const ir_node *node;
    int operand;
} pl_use;

typedef struct pl_value {
    pl_state state;
    pl_placement placement;
    int use_count; /* node inputs only */
    pl_use *uses;
    int memo;             /* index of the last memo in the current kernel; see last_memo */
    int depth;            /* number of inlined values on the longest path into its expression */
    int order;            /* position of its node in the graph */
    int output;           /* index of the first graph output with this value; -1: none */
    int loop;             /* number of the loop whose steps compute it, from 1 on; 0: none (loop.c) */
    bool ends_step;       /* each element is read only for the same element of results of the step */
    const ir_value *root; /* of a link or tail: the value whose kernel computes it */
    const ir_value *tail; /* of a root: the end of the chain, possibly itself */
} pl_value;

typedef struct pl_memo {
    const ir_value *value;
    const pl_expr *index[MDOT_MAX_RANK];
    const pl_expr *result;
    int before; /* the previous memo of the same value; -1: none */
} pl_memo;

/* An expression and its rewritten form. */
typedef struct pl_rewrite {
    const pl_expr *from, *to;
} pl_rewrite;
enum { PL_MAX_REWRITES = 1024 };

/* Limits for one expression: its nodes as a tree, and the values on a path through it. They keep code small, and
 * recursion shallow for every model. */
enum { PL_MAX_TREE = 256, PL_MAX_DEPTH = 64 };

typedef struct pl_builder pl_builder;
/* Element `index` of an output of a node, computed from the operands. */
typedef const pl_expr *(*pl_define_fn)(pl_builder *b, const ir_node *node, int output, const pl_expr *const *index);

typedef struct pl_loop pl_loop;
struct pl_builder {
    const ir_graph *graph;
    ir_node **nodes; /* all nodes, in an order in which each loop's body is behind its LoopBegin */
    int node_count;
    const ir_node **loop_ends; /* by number of the loop, from 1 on */
    pl_loop *loop;             /* the loop whose body is being planned; NULL: none */
    ir_arena *arena;
    pl_plan *plan;
    mdot_error *err;
    mdot_status status; /* status of the first error; expression functions then return NULL */
    pl_value *values;   /* indexed by value id */
    int buffer_capacity, kernel_capacity;
    ir_hash_map constants[PL_WEIGHT_USE_COUNT]; /* by use: tensors and their buffers */
    ir_hash_map names;                          /* of kernels, with the highest suffix used for each */
    const pl_expr *zero;                        /* I64 */
    const pl_define_fn *definitions; /* indexed by lowering; NULL: no definition. Layer 2 calls layer 3 through it */
    /* state of the current kernel */
    const ir_value *acc_value; /* the value that acc_expr represents */
    const pl_expr *acc_expr;
    const ir_node **origins; /* nodes that the kernel computes */
    int origin_count, origin_capacity;
    pl_memo *memo;
    int memo_count, memo_capacity;
    pl_rewrite *rewrites; /* array of PL_MAX_REWRITES entries, for rewriting loops */
};

static inline pl_value *pl_info(const pl_builder *b, const ir_value *v) { return &b->values[v->id]; }
static inline bool pl_is_unit(ir_dim d) { return ir_dim_is(d, 1); }

/* ---- Shorthands -------------------------------------------------------------------------------------------------- */

static inline const pl_expr *pl_op1(pl_builder *b, pl_expr_op op, const pl_expr *x)
{
    return pl_unary(b->arena, op, x);
}
static inline const pl_expr *pl_op2(pl_builder *b, pl_expr_op op, const pl_expr *x, const pl_expr *y)
{
    return pl_binary(b->arena, op, x, y);
}
static inline const pl_expr *pl_int(pl_builder *b, int64_t n) { return pl_const_i(b->arena, MDOT_DTYPE_I64, n); }
static inline const pl_expr *pl_extent(pl_builder *b, ir_dim d) { return pl_dim(b->arena, d); }

/* ---- kernel.c: appends buffers and kernels to the plan that is being built, names kernels, and records errors. */

/* Records UNSUPPORTED with the node's name. Returns NULL, so expression functions can `return pl_reject(…)`. */
const void *pl_reject(pl_builder *b, const ir_node *node, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The status behind a NULL result: the recorded error, or out of memory. */
mdot_status pl_fault(pl_builder *b);
/* -1: an error is recorded */
int pl_add_buffer(pl_builder *b, pl_buffer_kind kind, const char *name, const ir_type *type);
/* A constant's buffer for one use, created at the first call. */
int pl_constant_buffer(pl_builder *b, const ir_tensor *constant, const char *name, pl_weight_use use);
/* Begins a kernel that originates from `node` (NULL: from those that are noted later). */
void pl_begin_kernel(pl_builder *b, const ir_node *node);
void pl_note_origin(pl_builder *b, const ir_node *node);
/* Appends the kernel and names it after a node or value of that name. The specification is copied. */
mdot_status pl_end_kernel(pl_builder *b, pl_kind kind, const char *name, const pl_kernel *specification);
/* Turns the kernels from number `first` on into the steps of one recurrence, named after `node`. */
mdot_status pl_end_steps(pl_builder *b, const ir_node *node, ir_dim steps, int first);

/* ---- value.c: a value at an index, as an expression -------------------------------------------------------------- */

/* Element `index` (rank expressions) of a value in any state. */
const pl_expr *pl_value_at(pl_builder *b, const ir_value *v, const pl_expr *const *index);
/* Does the same from the value's definition, for placed values under construction. */
const pl_expr *pl_define(pl_builder *b, const ir_value *v, const pl_expr *const *index);
/* An operand that broadcasts to a shape of rank `rank`. */
const pl_expr *pl_operand_at(pl_builder *b, const ir_value *v, int rank, const pl_expr *const *index);
/* The placement of a placed value; a constant gets its buffer now. NULL: the value has no placement, or memory is
 * exhausted. */
const pl_placement *pl_placement_of(pl_builder *b, const ir_value *v);
/* The element's index in the placement's buffer. */
const pl_expr *pl_position(pl_builder *b, const pl_placement *placement, const ir_type *type,
                           const pl_expr *const *index);
const pl_expr *pl_load_at(pl_builder *b, const pl_placement *placement, const ir_type *type,
                          const pl_expr *const *index);
/* Row-major position of an index in a shape, in Horner form; and the inverse. */
const pl_expr *pl_flatten(pl_builder *b, int rank, const ir_dim *dims, const pl_expr *const *index);
bool pl_unflatten(pl_builder *b, const pl_expr *flat, int rank, const ir_dim *dims, const pl_expr **out_index);
/* Operation counts, which decide whether a value may be computed more than once. */
double pl_expr_cost(const pl_expr *expr, int *budget);
double pl_elements(const pl_builder *b, const ir_value *v); /* at full length */

/* ---- view.c: strided views: the placements of values that only re-address another value -------------------------- */

/* The placement of output `k` if the node only re-addresses a placed input. False: the node needs code. */
bool pl_view(pl_builder *b, const ir_node *node, int k, pl_placement *out);
/* Does the same with the input at `source`. */
bool pl_view_from(pl_builder *b, const ir_node *node, int k, const pl_placement *source, pl_placement *out);
/* The placement as a matrix whose columns are the last `trailing` dimensions. */
bool pl_matrix_view(const pl_placement *placement, const ir_type *type, int trailing, pl_matrix *out);
/* The placement of a Reshape's result as windows of its input, which is placed at `source`. False: dimensions of the
 * input are in rows and columns at once, or there are too many, or memory runs out. */
bool pl_window_view(pl_builder *b, const ir_node *node, const pl_placement *source, pl_placement *out);
/* Operand 0, 1 or 2 of an Attention node as heads. */
bool pl_heads_view(const ir_node *node, int operand, const pl_placement *placement, pl_heads *out);
/* Strides of its additive mask over (batch, head, query); keys are adjacent. */
bool pl_mask_view(const ir_type *type, const pl_placement *placement, pl_heads *out);
/* The part that operand `k` fills in the placed result of a Concat. */
bool pl_concat_part(pl_builder *b, const ir_node *node, int k, pl_placement *out);
/* Strides of a placement for a shape that differs only in one-element dimensions. */
void pl_transfer_strides(const ir_type *from, const ir_dim *stride, const ir_type *to, ir_dim *out_stride);
/* Decoded operands of Slice: element i along dimension d is element start[d] + i * step[d]. */
bool pl_slice(pl_builder *b, const ir_node *node, ir_dim *out_start, int64_t *out_step);
/* The start of output k of a Split along the axis. */
bool pl_split(pl_builder *b, const ir_node *node, int k, int *out_axis, ir_dim *out_begin);

/* ---- output_placement.c: chooses the placement of a computed value ----------------------------------------------- */

/* Chooses the placement of a value that is about to be computed: its graph output, else its part of a concatenation
 * that is its only reader, else scratch. `trailing` restricts the placement to those that the kernel can write: dense
 * ones (PL_PLACEMENT_TYPED also requires a buffer of the value's own shape), any, or those where that many last
 * dimensions are a matrix's columns. */
enum { PL_PLACEMENT_TYPED = -2, PL_PLACEMENT_DENSE = -1, PL_PLACEMENT_ANYWHERE = 0 };
bool pl_place_output(pl_builder *b, const ir_value *v, int trailing);

/* ---- formula.c: expressions from text ---------------------------------------------------------------------------- */

/* A name in a formula. */
typedef struct pl_symbol {
    const char *name;
    const pl_expr *value;
} pl_symbol;

/* Makes the expression of a formula such as "a = abs(x); a < 1 ? x : x / a". Formulas consist of definitions and a
 * value: numbers, which have the first symbol's type, names, + - * /, unary -, < <= ==, ?: as in C, and calls of the
 * operators of expr.h by name, or of odd, log1p, expm1, atan, half_exponential and softplus. NULL: out of memory, or
 * the first symbol's value is NULL. */
const pl_expr *pl_formula(ir_arena *arena, const char *text, const pl_symbol *symbols, int count);

/* ---- rename_buffer.c: lets a kernel use another buffer of the same type in place of one of its own --------------- */

/* Is the kernel of a kind that pl_rename_buffer changes? */
bool pl_can_rename(const pl_kernel *kernel);
/* Replaces buffer `from` by `to` in all accesses of a kernel. Shared sub-expressions stay shared. False: out of
 * memory. */
bool pl_rename_buffer(pl_builder *b, pl_kernel *kernel, int from, int to);
