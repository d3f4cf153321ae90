/* rename_buffer.c — see plan_builder.h. */
#include "plan/plan_builder.h"

#include "plan/expr.h"

typedef struct renaming {
    pl_builder *b;
    int from, to;
    int done_count;
} renaming;

static const pl_expr *rename_expr(renaming *r, const pl_expr *e)
{
    const pl_expr *arg[3] = {NULL};
    for (int k = 0; k < r->done_count; k++)
        if (r->b->rewrites[k].from == e) return r->b->rewrites[k].to;
    if (pl_expr_operand_count(e->op) == 0) return e;
    for (int k = 0; k < pl_expr_operand_count(e->op); k++) arg[k] = rename_expr(r, e->arg[k]);
    const pl_expr *result = pl_with_operands(r->b->arena, e, arg);
    if (result != NULL && e->op == PL_LOAD && e->i == r->from)
        result = pl_load(r->b->arena, r->to, e->dtype, result->arg[0]);
    if (r->done_count < PL_MAX_REWRITES) r->b->rewrites[r->done_count++] = (pl_rewrite){e, result};
    return result;
}

static bool rename_in(renaming *r, const pl_expr **e)
{
    if (*e != NULL) *e = rename_expr(r, *e);
    return *e != NULL;
}

static void rename_number(const renaming *r, int *buffer)
{
    if (*buffer == r->from) *buffer = r->to;
}

bool pl_can_rename(const pl_kernel *kernel) { return kernel->kind == PL_NEST || kernel->kind == PL_LINEAR; }

bool pl_rename_buffer(pl_builder *b, pl_kernel *kernel, int source, int target)
{
    renaming r = {.b = b, .from = source, .to = target};
    if (b->rewrites == NULL && (b->rewrites = IR_NEW_ARRAY(b->arena, pl_rewrite, PL_MAX_REWRITES)) == NULL)
        return false;
    if (kernel->kind == PL_LINEAR) {
        rename_number(&r, &kernel->linear.a.buffer);
        rename_number(&r, &kernel->linear.out.buffer);
        return kernel->linear.epilogue == NULL || rename_in(&r, &kernel->linear.epilogue);
    }
    if (kernel->kind != PL_NEST) return true;
    pl_nest *nest = &kernel->nest;
    if (nest->body != NULL && !rename_in(&r, &nest->body)) return false;
    for (int s = 0; s < nest->store_count; s++) {
        rename_number(&r, &nest->store[s].buffer);
        if (!rename_in(&r, &nest->store[s].index) || !rename_in(&r, &nest->store[s].value)) return false;
    }
    return true;
}
