/* kind_trees.c — kernels of decision trees: every row walks every tree. */
#include "plan/kernel_kind.h"
#include "plan/kind_tools.h"

static void visit(const pl_kernel *kernel, const pl_visitor *v)
{
    const pl_trees *k = &kernel->trees;
    const int read[] = {k->x, k->nodes, k->trees, k->values, k->tests, k->spans, k->leaves};
    for (size_t i = 0; i < sizeof read / sizeof *read; i++) pl_visit_read(v, read[i]);
    pl_visit_write(v, k->out);
}

static void print(const pl_kernel *kernel, FILE *t)
{
    const pl_trees *k = &kernel->trees;
    fprintf(t, "  %s rows ", pl_reducer_name(k->reducer));
    pl_put_dim(t, k->rows);
    fprintf(t, " features %lld targets %lld\n  in b%d nodes b%d trees b%d values b%d", (long long)k->features,
            (long long)k->targets, k->x, k->nodes, k->trees, k->values);
    if (k->tests >= 0)
        fprintf(t, " tests b%d spans b%d leaves b%d of at most %lld", k->tests, k->spans, k->leaves,
                (long long)k->most_leaves);
    fprintf(t, " out b%d\n", k->out);
    for (int g = 0; g < k->group_count; g++)
        fprintf(t, "  %lld trees of depth %lld%s\n", (long long)k->groups[g].count, (long long)k->groups[g].depth,
                k->groups[g].is_row ? ", all targets" : "");
}

/* A dense table of f32 or f64. */
static void check_table(pl_checker *c, int number, ir_dim rows, int64_t columns)
{
    const pl_buffer *buffer = pl_check_buffer(c, number);
    if (buffer == NULL) return;
    const ir_type *type = &buffer->type;
    bool fits = type->rank == 2 && ir_dim_equal(type->dim[0], rows) && ir_dim_is(type->dim[1], columns);
    if (!fits || (type->dtype != MDOT_DTYPE_F32 && type->dtype != MDOT_DTYPE_F64))
        pl_check_fail(c, "a table of rows must be f32 or f64 and have the kernel's rows and columns", number);
}

static void verify(const pl_kernel *kernel, pl_checker *c)
{
    const pl_trees *k = &kernel->trees;
    const int whole[] = {k->nodes, k->trees, k->values, k->tests, k->spans, k->leaves};
    pl_check_read(c, k->x, false);
    check_table(c, k->x, k->rows, k->features);
    check_table(c, k->out, k->rows, k->targets);
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) pl_check_read(c, whole[i], false);
    if ((k->tests < 0) != (k->spans < 0) || (k->tests < 0) != (k->leaves < 0))
        pl_check_fail(c, "tests, spans and leaves belong together", k->tests);
    const pl_buffer *trees = pl_check_buffer(c, k->trees);
    int64_t count = 0;
    for (int g = 0; g < k->group_count; g++) count += k->groups[g].count;
    if (trees != NULL && !ir_dim_is(trees->type.dim[0], count))
        pl_check_fail(c, "the groups must contain every tree", k->trees);
}

static bool is_rowwise(const pl_kernel *kernel, pl_units *u)
{
    const pl_trees *k = &kernel->trees;
    return pl_begin_units(u, 0, k->rows) && pl_stride_follows(u, k->x, ir_dim_number(0), ir_dim_number(k->features)) &&
           pl_stride_follows(u, k->out, ir_dim_number(0), ir_dim_number(k->targets));
}

static bool is_split(const pl_kernel *kernel, const pl_plan *plan) { return pl_is_split_extent(kernel->trees.rows); }

const pl_kind_ops pl_trees_kind = {
    .visit = visit,
    .print = print,
    .verify = verify,
    .is_rowwise = is_rowwise,
    .is_split = is_split,
};
