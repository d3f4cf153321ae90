/* kind_sequential.c — operators that are not loop nests: cumulative sums, top k, scatters. */
#include "plan/kernel_kind.h"
#include "plan/kind_tools.h"

static void visit(const pl_kernel *kernel, const pl_visitor *v)
{
    const pl_sequential *k = &kernel->sequential;
    for (int i = 0; i < 4; i++) pl_visit_read(v, k->input[i]);
    for (int i = 0; i < 2; i++) pl_visit_write(v, k->output[i]);
}

static void print(const pl_kernel *kernel, FILE *t)
{
    const pl_sequential *k = &kernel->sequential;
    static const char *const names[] = {"cumulate", "top_k", "scatter_elements", "scatter_nd", "tensor_scatter"};
    const struct {
        bool is_on;
        const char *name;
    } flags[] = {{k->exclusive, "exclusive"},
                 {k->reverse, "reverse"},
                 {k->largest, "largest"},
                 {k->sorted, "sorted"},
                 {k->circular, "circular"}};
    fprintf(t, "  %s axis %d", names[k->operation], k->axis);
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (flags[i].is_on) fprintf(t, " %s", flags[i].name);
    if (k->reduction != PL_REDUCE_NONE) fprintf(t, " %s", pl_reducer_name(k->reduction));
    fprintf(t, "\n  in");
    for (int i = 0; i < 4; i++) fprintf(t, k->input[i] < 0 ? " -" : " b%d", k->input[i]);
    fprintf(t, " out");
    for (int i = 0; i < 2; i++) fprintf(t, k->output[i] < 0 ? " -" : " b%d", k->output[i]);
    fprintf(t, "\n");
}

static void verify(const pl_kernel *kernel, pl_checker *c)
{
    const pl_sequential *k = &kernel->sequential;
    for (int i = 0; i < 4; i++) pl_check_read(c, k->input[i], false);
    for (int i = 0; i < 2; i++) pl_check_read(c, k->output[i], false); /* read if it combines with existing content */
    const pl_buffer *input = pl_check_buffer(c, k->input[0]);
    if (input != NULL && k->axis >= input->type.rank && input->type.rank > 0)
        pl_check_fail(c, "the axis is outside of the rank", k->axis);
}

/* Sums and rankings along different lines are independent. Updates of a scatter may collide, so they run in order. */
static bool is_split(const pl_kernel *kernel, const pl_plan *plan)
{
    const pl_sequential *k = &kernel->sequential;
    if (k->operation != PL_SEQ_CUMULATE && k->operation != PL_SEQ_TOP_K) return false;
    const ir_type *type = &plan->buffers[k->input[0]].type;
    for (int d = 0; d < k->axis; d++)
        if (pl_is_split_extent(type->dim[d])) return true;
    return false;
}

const pl_kind_ops pl_sequential_kind = {
    .visit = visit,
    .print = print,
    .verify = verify,
    .is_split = is_split,
    .updates_outputs = true,
};
