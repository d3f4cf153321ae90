/* planner.h — declarations that the planner's files share while building a plan. Internal to ir/plan/.
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
 *      fused.c        linear, norm and attention kernels; reduce_nests.c matmul.c norm_nests.c sequence.c
 *      recurrence.c   all others
 *      nest.c         nests of values and the ends of reductions
 *   3  pointwise.c math_lowering.c move.c gather_nests.c    definitions of inlinable operators, one expression each
 *   2  value.c        a value at an index, as an expression: places, inlined definitions
 *      output_placement.c         the place of a computed value
 *      view.c         strided views
 *   1  kernel.c       buffers, kernels, names
 *      collapse.c     loops that run as one
 *      precision.c    the buffers that images with 16-bit precision keep in 16 bits
 */
#ifndef IR_PLAN_PLANNER_H
#define IR_PLAN_PLANNER_H

#include "ir/ops.h"
#include "ir/ops/families.h"
#include "ir/plan/plan.h"

/* The address of a value. A dense place is row-major for the value's type, and its strides may be polynomials in L.
 * In a strided place, element `index` is at offset + sum of index[k] * stride[k]. */
typedef struct pl_place {
    int buffer;
    bool dense;
    ir_dim offset;
    ir_dim stride[MDOT_MAX_RANK];
} pl_place;

typedef enum pl_state { PL_UNDECIDED, PL_PLACED, PL_INLINED, PL_CHAINED } pl_state;

typedef struct pl_use {
    const ir_node *node;
    int operand;
} pl_use;

typedef struct pl_value {
    pl_state state;
    pl_place place;
    int use_count; /* node inputs only */
    pl_use *uses;
    int memo;             /* index of its last memo in the current kernel; see last_memo */
    int depth;            /* number of inlined values on the longest path into its expression */
    int order;            /* position of its node in the graph */
    int output;           /* index of the graph output that it is, the first of several; -1: none */
    const ir_value *root; /* of a link or tail: the value whose kernel computes it */
    const ir_value *tail; /* of a root: the end of its chain, possibly itself */
} pl_value;

typedef struct pl_memo {
    const ir_value *value;
    const pl_expr *index[MDOT_MAX_RANK];
    const pl_expr *result;
    int before; /* the previous memo of the same value; -1: none */
} pl_memo;

/* An expression and its rewritten form. */
typedef struct pl_pair {
    const pl_expr *from, *to;
} pl_pair;
enum { PL_BF16_DOT = 1024 };

/* Limits for one expression: its nodes as a tree, and the values on a path through it. They keep code small, and
 * recursion shallow for every model. */
enum { PL_MAX_TREE = 256, PL_MAX_DEPTH = 64 };

/* Keys seen so far with a number each: a hash table with open addressing, whose `size` is a power of two (kernel.c). */
typedef struct pl_seen_entry {
    uint64_t hash;
    const void *key; /* NULL: free */
    int number;
} pl_seen_entry;
typedef struct pl_seen {
    size_t size, count;
    pl_seen_entry *entries;
} pl_seen;

typedef struct pl_builder pl_builder;
/* Element `index` of an output of a node, computed from its operands. */
typedef const pl_expr *(*pl_define_fn)(pl_builder *b, const ir_node *node, int output, const pl_expr *const *index);

struct pl_builder {
    const ir_graph *graph;
    ir_arena *arena;
    pl_plan *plan;
    mdot_error *err;
    mdot_status status; /* status of the first error; expression functions then return NULL */
    pl_value *values;   /* indexed by value id */
    int buffer_capacity, kernel_capacity;
    pl_seen constants[PL_MATRIX + 1]; /* by use: tensors and their buffers */
    pl_seen names;                    /* of kernels, with the highest suffix used for each */
    const pl_expr *zero;              /* I64 */
    const pl_define_fn *definitions;  /* indexed by lowering; NULL: no definition. Layer 2 calls layer 3 through it */
    /* state of the current kernel */
    const ir_value *acc_value; /* the value that acc_expr represents */
    const pl_expr *acc_expr;
    const ir_node **origins; /* nodes that the kernel computes */
    int origin_count, origin_capacity;
    pl_memo *memo;
    int memo_count, memo_capacity;
    pl_pair *pairs; /* array of PL_BF16_DOT entries, for rewriting loops */
};

static inline pl_value *pl_info(const pl_builder *b, const ir_value *v)
{
    return &b->values[v->id];
}
static inline bool pl_is_unit(ir_dim d)
{
    return ir_dim_is(d, 1);
}

/* ---- Shorthands -------------------------------------------------------------------------------------------------- */

static inline const pl_expr *pl_op1(pl_builder *b, pl_expr_op op, const pl_expr *x)
{
    return pl_unary(b->arena, op, x);
}
static inline const pl_expr *pl_op2(pl_builder *b, pl_expr_op op, const pl_expr *x, const pl_expr *y)
{
    return pl_binary(b->arena, op, x, y);
}
static inline const pl_expr *pl_int(pl_builder *b, int64_t n)
{
    return pl_const_i(b->arena, MDOT_DTYPE_I64, n);
}
static inline const pl_expr *pl_extent(pl_builder *b, ir_dim d)
{
    return pl_dim(b->arena, d);
}

/* ---- 1: errors, buffers, kernels, names (kernel.c) --------------------------------------------------------------- */

/* Records UNSUPPORTED with the node's name. Returns NULL, so that expression functions can `return pl_reject(…)`. */
const void *pl_reject(pl_builder *b, const ir_node *node, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The status behind a NULL result: the recorded error, or out of memory. */
mdot_status pl_fault(pl_builder *b);

/* -1: an error is recorded */
int pl_add_buffer(pl_builder *b, pl_buffer_kind kind, const char *name, const ir_type *type);
/* The buffer of a constant for one use, created at the first call. */
int pl_constant_buffer(pl_builder *b, const ir_tensor *constant, const char *name, pl_weight_use use);
void pl_begin_kernel(pl_builder *b);
void pl_note_origin(pl_builder *b, const ir_node *node);
/* Appends the kernel and names it after a node or value of that name. The specification is copied. */
mdot_status pl_end_kernel(pl_builder *b, pl_kind kind, const char *name, const pl_kernel *specification);
/* Merges loops that can run as one (collapse.c). */
void pl_collapse_loops(pl_builder *b, pl_nest *nest);

/* ---- 2: views (view.c) and the places of computed values (output_placement.c) ------------------------------------------------ */

/* The place of output `k` of a node that only re-addresses its placed input. False: the node needs code. */
bool pl_view(pl_builder *b, const ir_node *node, int k, pl_place *out);
/* Does the same with the input at `source`. */
bool pl_view_from(pl_builder *b, const ir_node *node, int k, const pl_place *source, pl_place *out);
/* A place with explicit strides. False: the strides are not affine. */
bool pl_strided(const pl_place *place, const ir_type *type, pl_place *out);
/* The place as a matrix whose columns are the last `trailing` dimensions. */
bool pl_matrix_view(const pl_place *place, const ir_type *type, int trailing, pl_matrix *out);
/* Operand 0, 1 or 2 of an Attention node as heads. */
bool pl_heads_view(const ir_node *node, int operand, const pl_place *place, pl_heads *out);
/* Strides of its additive mask over (batch, head, query); keys are adjacent. */
bool pl_mask_view(const ir_node *node, const pl_place *place, ir_dim out_stride[3]);
/* Does a reshape only add or remove dimensions of one element? */
bool pl_only_units_differ(const ir_type *from, const ir_type *to);
/* The part that operand `k` fills in the placed result of a Concat. */
bool pl_concat_part(pl_builder *b, const ir_node *node, int k, pl_place *out);
/* Strides of a place for a shape that differs only in dimensions of one element. */
void pl_transfer_strides(const ir_type *from, const ir_dim *stride, const ir_type *to, ir_dim *out_stride);
/* Decoded operands of Slice: element i along dimension d is element start[d] + i * step[d]. */
bool pl_slice(pl_builder *b, const ir_node *node, ir_dim *out_start, int64_t *out_step);
/* The start of output k of a Split along the axis. */
bool pl_split(pl_builder *b, const ir_node *node, int k, int *out_axis, ir_dim *out_begin);
int pl_axis(const ir_node *node, const char *name, int64_t fallback, int rank);

/* Chooses the place of a value that is about to be computed: its graph output, else its part of a concatenation that
 * is its only reader, else scratch. `trailing` restricts the place to those that the kernel can write: dense ones
 * (PL_PLACE_TYPED also requires a buffer of the value's own shape), any, or those where that many last dimensions are
 * the columns of a matrix. */
enum { PL_PLACE_TYPED = -2, PL_PLACE_DENSE = -1, PL_PLACE_ANYWHERE = 0 };
bool pl_place_output(pl_builder *b, const ir_value *v, int trailing);

/* ---- 2: values as expressions (value.c) -------------------------------------------------------------------------- */

/* Element `index` (rank expressions) of a value in any state. */
const pl_expr *pl_value_at(pl_builder *b, const ir_value *v, const pl_expr *const *index);
/* Does the same from the value's definition, for placed values under construction. */
const pl_expr *pl_define(pl_builder *b, const ir_value *v, const pl_expr *const *index);
/* An operand that broadcasts to a shape of rank `rank`. */
const pl_expr *pl_operand_at(pl_builder *b, const ir_value *v, int rank, const pl_expr *const *index);
/* The place of a placed value; a constant gets its buffer now. NULL: the value has no place, or memory is exhausted. */
const pl_place *pl_place_of(pl_builder *b, const ir_value *v);
/* The element's index in the place's buffer. */
const pl_expr *pl_position(pl_builder *b, const pl_place *place, const ir_type *type, const pl_expr *const *index);
const pl_expr *pl_load_at(pl_builder *b, const pl_place *place, const ir_type *type, const pl_expr *const *index);
/* Row-major position of an index in a shape, in Horner form; and the inverse. */
const pl_expr *pl_flatten(pl_builder *b, int rank, const ir_dim *dims, const pl_expr *const *index);
bool pl_unflatten(pl_builder *b, const pl_expr *flat, int rank, const ir_dim *dims, const pl_expr **out_index);
/* Operation counts, which decide whether a value may be computed more than once. */
double pl_expr_cost(const pl_expr *expr, int *budget);
double pl_elements(const pl_builder *b, const ir_value *v); /* at full length */

/* ---- 3: definitions ---------------------------------------------------------------------------------------------- */

const pl_expr *pl_define_pointwise(pl_builder *b, const ir_node *node, int output, const pl_expr *const *index);
/* Size of a pointwise node's formula as a tree: its nodes, and the number of reads of operand `v`. Trees grow
 * multiplicatively along chains. */
typedef struct pl_growth {
    int nodes, copies;
} pl_growth;
pl_growth pl_pointwise_growth(pl_builder *b, const ir_node *node, const ir_value *v);
const pl_expr *pl_define_move(pl_builder *b, const ir_node *node, int output, const pl_expr *const *index);
const pl_expr *pl_define_alias(pl_builder *b, const ir_node *node, int output, const pl_expr *const *index);
extern const pl_define_fn pl_gathers[IR_OP_COUNT]; /* gather_nests.c */

/* math_lowering.c: functions that expr.h lacks, expressed in existing ones */
const pl_expr *pl_log1p(ir_arena *arena, const pl_expr *x);
const pl_expr *pl_expm1(ir_arena *arena, const pl_expr *x);
const pl_expr *pl_atan(ir_arena *arena, const pl_expr *x);

/* move.c: the index into a shape that differs from `from` only in dimensions of one element. */
void pl_transfer_index(pl_builder *b, const ir_type *from, const pl_expr *const *index, const ir_type *to,
                       const pl_expr **out_index);

/* ---- 4: kernels -------------------------------------------------------------------------------------------------- */

/* Every emitter creates the kernels of a node (of a root: with its chain) and places their results. */
mdot_status pl_emit_value(pl_builder *b, const ir_value *v);            /* nest.c: an inlinable value gets a buffer */
mdot_status pl_emit_copy(pl_builder *b, const ir_value *v, int output); /* nest.c: copies a graph output from another
                                                                         * place */
mdot_status pl_emit_reduction(pl_builder *b, const ir_node *node);      /* reduce_nests.c */
mdot_status pl_emit_matmul(pl_builder *b, const ir_node *node);         /* matmul.c: MatMul, Einsum, other linears */
mdot_status pl_emit_linear(pl_builder *b, const ir_node *node);         /* fused.c */
mdot_status pl_emit_norm(pl_builder *b, const ir_node *node);
mdot_status pl_emit_norm_nests(pl_builder *b, const ir_node *node); /* norm_nests.c: other normalisations */
mdot_status pl_emit_attention(pl_builder *b, const ir_node *node);
mdot_status pl_emit_sequential(pl_builder *b, const ir_node *node); /* sequence.c */
mdot_status pl_emit_recurrence(pl_builder *b, const ir_node *node); /* recurrence.c */

/* Is the Linear node a matrix kernel? Its rows must be affine in L. */
bool pl_is_linear(const ir_node *node);
/* Is the normalisation a norm kernel? It must be f32, with rows and columns affine in L and softmax over the last
 * axis. */
bool pl_is_norm(const ir_node *node);
/* Number of dimensions that a norm's rows span. */
int pl_norm_trailing(const ir_node *node);

/* Adds loops over a shape and returns the index that they form. Dimensions of one element get no loop. */
void pl_add_loops(pl_builder *b, pl_nest *nest, int rank, const ir_dim *dims, const pl_expr **out_index);
/* Adds a reduction loop after all others and returns its variable, or zero for a dimension of one element. */
const pl_expr *pl_add_reduction(pl_builder *b, pl_nest *nest, ir_dim dim);
/* Collapses and appends a nest; a nest without points is dropped. */
mdot_status pl_end_nest(pl_builder *b, const char *name, const pl_nest *nest);
/* Ends the nest of a root with the store of its chain's tail. `result` is the root as an expression of ACC 0; `index`
 * is the root's index. */
mdot_status pl_finish_nest(pl_builder *b, const ir_node *node, pl_nest *nest, const pl_expr *result,
                           const pl_expr *const *index);

/* ---- 4: decisions (chain.c, decide.c) ---------------------------------------------------------------------------- */

void pl_claim_chains(pl_builder *b);

/* Decides the state of output `k` of a pointwise, moving or aliasing node, and emits its nest if it gets a buffer. */
mdot_status pl_decide(pl_builder *b, const ir_node *node, int k);

#endif
