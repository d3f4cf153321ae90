/* kind_recurrence.c — recurrences: kernels that run in order, once per step. */
#include "plan/kernel_kind.h"
#include "plan/kind_tools.h"

/* Kernel kinds allowed in a step. */
static const pl_kind_ops *const step_kinds[PL_KIND_COUNT] = {
    [PL_LINEAR] = &pl_linear_kind, [PL_ATTENTION] = &pl_attention_kind,   [PL_NORM] = &pl_norm_kind,
    [PL_NEST] = &pl_nest_kind,     [PL_SEQUENTIAL] = &pl_sequential_kind, [PL_TREES] = &pl_trees_kind,
};

static void note_write_and_read(void *user, int buffer, bool is_written)
{
    const pl_visitor *v = user;
    v->visit(v->user, buffer, is_written);
    if (is_written) v->visit(v->user, buffer, false);
}

/* A step that updates outputs also reads them, for example a scatter that adds. */
static void visit(const pl_kernel *kernel, const pl_visitor *v)
{
    const pl_recurrence *k = &kernel->recurrence;
    const pl_visitor of_updates = {.visit = note_write_and_read, .user = (void *)v};
    for (int i = 0; i < k->kernel_count; i++) {
        const pl_kind_ops *kind = step_kinds[k->kernels[i].kind];
        kind->visit(&k->kernels[i], kind->updates_outputs ? &of_updates : v);
    }
}

static void print(const pl_kernel *kernel, FILE *t)
{
    const pl_recurrence *k = &kernel->recurrence;
    fprintf(t, "  for step<");
    pl_put_dim(t, k->steps);
    fprintf(t, "\n");
    for (int i = 0; i < k->kernel_count; i++) {
        fprintf(t, "  %s\n", k->kernels[i].name);
        step_kinds[k->kernels[i].kind]->print(&k->kernels[i], t);
    }
}

static void verify(const pl_kernel *kernel, pl_checker *c)
{
    const pl_recurrence *k = &kernel->recurrence;
    if (k->kernel_count == 0) pl_check_fail(c, "a recurrence must have kernels", -1);
    c->steps = k->steps;
    for (int i = 0; i < k->kernel_count && c->status == MDOT_OK; i++) {
        c->kernel = &k->kernels[i];
        const pl_kind_ops *kind = step_kinds[c->kernel->kind];
        if (kind != NULL)
            kind->verify(c->kernel, c);
        else
            pl_check_fail(c, "a recurrence may not contain another one", -1);
    }
    c->steps = ir_dim_number(0);
}

const pl_kind_ops pl_recurrence_kind = {
    .visit = visit,
    .print = print,
    .verify = verify,
};
