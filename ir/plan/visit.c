/* visit.c — visits the buffers that a kernel accesses. Only this file knows where plan.h stores buffer numbers. */
#include "ir/plan/plan.h"

typedef struct visitor {
    void (*visit)(void *user, int buffer, bool is_written);
    void *user;
} visitor;

static void touch(const visitor *v, int buffer, bool is_written)
{
    if (buffer >= 0) v->visit(v->user, buffer, is_written);
}

static void read_expr(const visitor *v, const pl_expr *expr)
{
    if (expr == NULL) return;
    if (expr->op == PL_LOAD) touch(v, expr->i, false);
    for (int k = 0; k < pl_expr_operand_count(expr->op); k++) read_expr(v, expr->arg[k]);
}

static void visit_linear(const visitor *v, const pl_linear *k)
{
    touch(v, k->a.buffer, false);
    touch(v, k->weight, false);
    touch(v, k->bias, false);
    read_expr(v, k->epilogue);
    touch(v, k->out.buffer, true);
}

static void visit_attention(const visitor *v, const pl_attention *k)
{
    touch(v, k->q.buffer, false);
    touch(v, k->k.buffer, false);
    touch(v, k->v.buffer, false);
    touch(v, k->mask, false);
    touch(v, k->out.buffer, true);
}

static void visit_norm(const visitor *v, const pl_norm *k)
{
    read_expr(v, k->input);
    touch(v, k->gamma, false);
    touch(v, k->beta, false);
    read_expr(v, k->epilogue);
    touch(v, k->out.buffer, true);
    touch(v, k->sum.buffer, true);
}

static void visit_nest(const visitor *v, const pl_nest *k)
{
    read_expr(v, k->body);
    for (int i = 0; i < k->store_count; i++) {
        read_expr(v, k->store[i].index);
        read_expr(v, k->store[i].value);
        touch(v, k->store[i].buffer, true);
    }
}

static void visit_sequential(const visitor *v, const pl_sequential *k)
{
    for (int i = 0; i < 4; i++) touch(v, k->input[i], false);
    for (int i = 0; i < 2; i++) touch(v, k->output[i], true);
}

static void visit_recurrence(const visitor *v, const pl_recurrence *k)
{
    for (int i = 0; i < k->kernel_count; i++) pl_kernel_visit_buffers(&k->kernels[i], v->visit, v->user);
}

void pl_kernel_visit_buffers(const pl_kernel *kernel, void (*visit)(void *user, int buffer, bool is_written),
                             void *user)
{
    visitor v = {visit, user};
    switch (kernel->kind) {
    case PL_LINEAR:
        visit_linear(&v, &kernel->linear);
        break;
    case PL_ATTENTION:
        visit_attention(&v, &kernel->attention);
        break;
    case PL_NORM:
        visit_norm(&v, &kernel->norm);
        break;
    case PL_NEST:
        visit_nest(&v, &kernel->nest);
        break;
    case PL_SEQUENTIAL:
        visit_sequential(&v, &kernel->sequential);
        break;
    case PL_RECURRENCE:
        visit_recurrence(&v, &kernel->recurrence);
        break;
    }
}
