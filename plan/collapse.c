/* collapse.c — merges adjacent loops of a nest that run through memory like one loop, because short inner dimensions
 * would give short vectors.
 *
 * Loops a and b = a + 1, with b's extent E, are one loop n = a E + b if every expression uses them only as (Z + a) E
 * + b or as Z + a (E S) + b S, with a number S. The first is Horner's form of a dense access, and the second that of a
 * transposed one; they become Z E + n and Z + n S. Any other use of a or b prevents the merge.
 */
#include "plan/emitters.h"

#include "plan/expr.h"

/* One attempt to merge loop `loop` + 1 into `loop`. */
typedef struct rewrite {
    pl_builder *b;
    int loop;
    const pl_expr *outer_extent, *extent, *merged_extent; /* extents of the outer, the inner and the merged loop */
    bool failed;
    pl_rewrite *done; /* shared sub-trees stay shared */
    int done_count, done_capacity;
} rewrite;

static bool is_index(const pl_expr *e, int loop) { return e->op == PL_INDEX && e->i == loop; }

/* Z for (Z + a) E + b; the constant zero for a E + b. NULL: another form. */
static const pl_expr *outer_part(const rewrite *r, const pl_expr *e)
{
    if (e->op != PL_ADD || !is_index(e->arg[1], r->loop + 1) || e->arg[0]->op != PL_MUL) return NULL;
    const pl_expr *product = e->arg[0];
    if (!pl_expr_equal(product->arg[1], r->extent)) return NULL;
    if (is_index(product->arg[0], r->loop)) return r->b->zero;
    const pl_expr *sum = product->arg[0];
    return sum->op == PL_ADD && is_index(sum->arg[1], r->loop) ? sum->arg[0] : NULL;
}

static const pl_expr *rewrite_expr(rewrite *r, const pl_expr *e);

static const pl_expr *rewrite_operands(rewrite *r, const pl_expr *e)
{
    const pl_expr *arg[3] = {NULL};
    for (int k = 0; k < pl_expr_operand_count(e->op); k++) arg[k] = rewrite_expr(r, e->arg[k]);
    return pl_with_operands(r->b->arena, e, arg);
}

/* Z E. For Z = Y F with the outer loop's extent F, returns Y (F E), which is Horner's form again. */
static const pl_expr *scale_outer(rewrite *r, const pl_expr *outer)
{
    if (outer == NULL) return NULL;
    if (outer->op == PL_MUL && pl_expr_equal(outer->arg[1], r->outer_extent))
        return pl_binary(r->b->arena, PL_MUL, outer->arg[0], r->merged_extent);
    return pl_binary(r->b->arena, PL_MUL, outer, r->extent);
}

/* S of the term loop * S; 0: the expression is another one. */
static int64_t stride_of_term(const pl_expr *e, int loop)
{
    if (e->op == PL_MUL && is_index(e->arg[0], loop) && e->arg[1]->op == PL_CONST) return e->arg[1]->n;
    return is_index(e, loop) ? 1 : 0;
}

/* Z + n S for Z + a (E S) + b S. NULL: another form. */
static const pl_expr *rewrite_strides(rewrite *r, const pl_expr *e)
{
    int64_t both, stride = e->op == PL_ADD ? stride_of_term(e->arg[1], r->loop + 1) : 0;
    if (stride == 0 || r->extent->op != PL_CONST || __builtin_mul_overflow(stride, r->extent->n, &both)) return NULL;
    bool has_more = e->arg[0]->op == PL_ADD;
    if (stride_of_term(has_more ? e->arg[0]->arg[1] : e->arg[0], r->loop) != both) return NULL;
    const pl_expr *sum = pl_binary(r->b->arena, PL_MUL, pl_index(r->b->arena, r->loop), pl_int(r->b, stride));
    return has_more ? pl_binary(r->b->arena, PL_ADD, rewrite_expr(r, e->arg[0]->arg[0]), sum) : sum;
}

static const pl_expr *rewrite_new(rewrite *r, const pl_expr *e)
{
    ir_arena *arena = r->b->arena;
    if (e->op == PL_INDEX) {
        if (e->i == r->loop || e->i == r->loop + 1) r->failed = true;
        return e->i > r->loop ? pl_index(arena, e->i - 1) : e;
    }
    const pl_expr *outer = outer_part(r, e);
    const pl_expr *strided = outer == NULL ? rewrite_strides(r, e) : NULL;
    if (outer == NULL) return strided != NULL ? strided : rewrite_operands(r, e);
    return pl_binary(arena, PL_ADD, scale_outer(r, rewrite_expr(r, outer)), pl_index(arena, r->loop));
}

static const pl_expr *rewrite_expr(rewrite *r, const pl_expr *e)
{
    for (int k = 0; k < r->done_count; k++)
        if (r->done[k].from == e) return r->done[k].to;
    const pl_expr *result = r->failed ? e : rewrite_new(r, e);
    if (result == NULL || pl_expr_operand_count(e->op) == 0) return result;
    if (r->done_count == r->done_capacity) return result; /* a sub-tree may be built twice */
    r->done[r->done_count++] = (pl_rewrite){e, result};
    return result;
}

/* True if the loops were merged. */
static bool merge_into(pl_builder *b, pl_nest *nest, int loop)
{
    pl_nest merged = *nest;
    rewrite r = {.b = b, .loop = loop, .done = b->rewrites, .done_capacity = PL_MAX_REWRITES};
    if (!ir_dim_mul(nest->extent[loop], nest->extent[loop + 1], &merged.extent[loop])) return false;
    r.outer_extent = pl_extent(b, nest->extent[loop]);
    r.extent = pl_extent(b, nest->extent[loop + 1]);
    r.merged_extent = pl_extent(b, merged.extent[loop]);
    if (r.outer_extent == NULL || r.extent == NULL || r.merged_extent == NULL) return false;
    if (nest->body != NULL) merged.body = rewrite_expr(&r, nest->body);
    bool complete = nest->body == NULL || merged.body != NULL;
    for (int s = 0; s < nest->store_count; s++) {
        merged.store[s].index = rewrite_expr(&r, nest->store[s].index);
        merged.store[s].value = rewrite_expr(&r, nest->store[s].value);
        complete = complete && merged.store[s].index != NULL && merged.store[s].value != NULL;
    }
    if (!complete || r.failed) return false;
    int loops = nest->loop_count + nest->reduce_count;
    for (int k = loop + 1; k + 1 < loops; k++) merged.extent[k] = nest->extent[k + 1];
    if (loop < nest->loop_count)
        merged.loop_count--;
    else
        merged.reduce_count--;
    *nest = merged;
    return true;
}

void pl_collapse_loops(pl_builder *b, pl_nest *nest)
{
    if (b->rewrites == NULL && (b->rewrites = IR_NEW_ARRAY(b->arena, pl_rewrite, PL_MAX_REWRITES)) == NULL) return;
    for (int loop = nest->loop_count + nest->reduce_count - 2; loop >= 0; loop--) {
        bool is_border = loop == nest->loop_count - 1 && nest->reduce_count > 0;
        if (!is_border) merge_into(b, nest, loop);
    }
}
