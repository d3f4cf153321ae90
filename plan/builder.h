/* builder.h — the state of a plan that is being built. Internal to plan/.
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
 *   3  pointwise.c math_lowering.c move.c gather_nests.c    definitions of inlinable operators, one expression each
 *   2  value.c        a value at an index, as an expression: loads, inlined definitions
 *      output_placement.c    the placement of a computed value
 *      view.c         strided views
 *   1  kernel.c       buffers, kernels, names
 *      rename_buffer.c    kernels that use another buffer
 *      collapse.c     loops that run as one
 *      precision.c    the buffers that images with 16-bit precision keep in 16 bits
 */
#ifndef IR_PLAN_BUILDER_H
#define IR_PLAN_BUILDER_H

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
    int memo;             /* index of its last memo in the current kernel; see last_memo */
    int depth;            /* number of inlined values on the longest path into its expression */
    int order;            /* position of its node in the graph */
    int output;           /* index of the graph output that it is, the first of several; -1: none */
    int loop;             /* number of the loop whose steps compute it, from 1 on; 0: none (loop.c) */
    bool ends_step;       /* each element is read only for the same element of results of the step */
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
typedef struct pl_rewrite {
    const pl_expr *from, *to;
} pl_rewrite;
enum { PL_MAX_REWRITES = 1024 };

/* Limits for one expression: its nodes as a tree, and the values on a path through it. They keep code small, and
 * recursion shallow for every model. */
enum { PL_MAX_TREE = 256, PL_MAX_DEPTH = 64 };

/* Keys with a number each: a hash table with open addressing, whose `size` is a power of two (kernel.c). */
typedef struct pl_hash_entry {
    uint64_t hash;
    const void *key; /* NULL: free */
    int number;
} pl_hash_entry;
typedef struct pl_hash_map {
    size_t size, count;
    pl_hash_entry *entries;
} pl_hash_map;

typedef struct pl_builder pl_builder;
/* Element `index` of an output of a node, computed from its operands. */
typedef const pl_expr *(*pl_define_fn)(pl_builder *b, const ir_node *node, int output, const pl_expr *const *index);

typedef struct pl_loop pl_loop;
struct pl_builder {
    const ir_graph *graph;
    ir_node **nodes; /* all nodes, in an order in which the body of each loop is behind its LoopBegin */
    int node_count;
    const ir_node **loop_ends; /* by number of the loop, from 1 on */
    pl_loop *loop;             /* the loop whose body is being planned; NULL: none */
    ir_arena *arena;
    pl_plan *plan;
    mdot_error *err;
    mdot_status status; /* status of the first error; expression functions then return NULL */
    pl_value *values;   /* indexed by value id */
    int buffer_capacity, kernel_capacity;
    pl_hash_map constants[PL_WEIGHT_USE_COUNT]; /* by use: tensors and their buffers */
    pl_hash_map names;                          /* of kernels, with the highest suffix used for each */
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

#endif
