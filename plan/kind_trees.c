/* kind_trees.c — kernels of decision trees: every row walks every tree. */
#include "ir/ops/trees.h"
#include "plan/kernel_kind.h"
#include "plan/plan_checker.h"
#include "plan/plan_machine.h"
#include "plan/plan_text.h"
#include "plan/units.h"
#include "plan/visit.h"

#include <math.h>
#include <string.h>

static void visit(const pl_kernel *kernel, const pl_visitor *v)
{
    const pl_trees *k = &kernel->trees;
    const int read[] = {k->x, k->nodes, k->trees, k->values, k->tests, k->spans, k->leaves};
    for (size_t i = 0; i < sizeof read / sizeof *read; i++) pl_visit_read(v, read[i]);
    pl_visit_write(v, k->out);
}

static void print(const pl_kernel *kernel, pl_text *t)
{
    const pl_trees *k = &kernel->trees;
    pl_put(t, "  %s rows ", pl_reducer_name(k->reducer));
    pl_put_dim(t, k->rows);
    pl_put(t, " features %lld targets %lld\n  in b%d nodes b%d trees b%d values b%d", (long long)k->features,
           (long long)k->targets, k->x, k->nodes, k->trees, k->values);
    if (k->tests >= 0)
        pl_put(t, " tests b%d spans b%d leaves b%d of at most %lld", k->tests, k->spans, k->leaves,
               (long long)k->most_leaves);
    pl_put(t, " out b%d\n", k->out);
    for (int g = 0; g < k->group_count; g++)
        pl_put(t, "  %lld trees of depth %lld%s\n", (long long)k->groups[g].count, (long long)k->groups[g].depth,
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

/* ---- Interpretation ---------------------------------------------------------------------------------------------- */

static double threshold_at(pl_machine *m, int nodes, int64_t first, bool is_single)
{
    uint64_t bits = (uint32_t)pl_machine_load(m, nodes, first).n;
    if (is_single) {
        uint32_t low = (uint32_t)bits;
        float single;
        memcpy(&single, &low, sizeof single);
        return single;
    }
    bits |= (uint64_t)(uint32_t)pl_machine_load(m, nodes, first + 1).n << 32;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static int64_t walk(pl_machine *m, const pl_trees *k, int64_t tree, int64_t depth, int64_t row)
{
    bool is_single = m->plan->buffers[k->x].type.dtype == MDOT_DTYPE_F32;
    int64_t words = is_single ? 4 : 6, node = pl_machine_load(m, k->trees, tree * IR_TREE_WORDS + IR_TREE_ROOT).n;
    for (int64_t step = 0; step < depth && m->status == MDOT_OK; step++) {
        int64_t first = node * words, rest = first + (is_single ? 1 : 2);
        int64_t feature = pl_machine_load(m, k->nodes, rest).n;
        double x = pl_machine_load(m, k->x, row * k->features + feature / 2).f;
        double value = feature % 2 == 0 ? x : -x;
        if (is_single) value = (float)value;
        int64_t is_false = value <= threshold_at(m, k->nodes, first, is_single) ? 0 : 1;
        node = pl_machine_load(m, k->nodes, rest + 1).n + is_false;
    }
    return pl_machine_load(m, k->nodes, node * words + (is_single ? 3 : 4)).n;
}

static void add_leaf(pl_machine *m, const pl_trees *k, double *to, int64_t value)
{
    double leaf = pl_machine_load(m, k->values, value).f;
    if (k->reducer == PL_REDUCE_SUM)
        *to += leaf;
    else if (k->reducer == PL_REDUCE_MIN ? leaf < *to : leaf > *to)
        *to = leaf;
}

static void interpret(const pl_kernel *kernel, pl_machine *m)
{
    const pl_trees *k = &kernel->trees;
    int64_t rows = pl_machine_dim(m, k->rows);
    double *sums = IR_NEW_ARRAY(m->arena, double, k->targets);
    double neutral = k->reducer == PL_REDUCE_SUM ? 0 : k->reducer == PL_REDUCE_MIN ? INFINITY : -INFINITY;
    if (sums == NULL) {
        pl_machine_out_of_memory(m);
        return;
    }
    for (int64_t r = 0; r < rows && m->status == MDOT_OK; r++) {
        for (int64_t t = 0; t < k->targets; t++) sums[t] = neutral;
        for (int g = 0; g < k->group_count; g++)
            for (int64_t i = 0; i < k->groups[g].count; i++) {
                int64_t tree = k->groups[g].first + i, leaf = walk(m, k, tree, k->groups[g].depth, r);
                int64_t target = pl_machine_load(m, k->trees, tree * IR_TREE_WORDS + IR_TREE_TARGET).n;
                int64_t width = target < 0 ? k->targets : 1;
                for (int64_t t = 0; t < width; t++) add_leaf(m, k, &sums[target < 0 ? t : target], leaf + t);
            }
        for (int64_t t = 0; t < k->targets; t++)
            pl_machine_store(m, k->out, r * k->targets + t, (pl_scalar){.f = sums[t]});
    }
}

/* ---- Properties -------------------------------------------------------------------------------------------------- */

static bool is_rowwise(const pl_kernel *kernel, pl_units *u)
{
    const pl_trees *k = &kernel->trees;
    return pl_begin_units(u, 0, k->rows) && pl_stride_follows(u, k->x, ir_dim_number(0), ir_dim_number(k->features)) &&
           pl_stride_follows(u, k->out, ir_dim_number(0), ir_dim_number(k->targets));
}

static bool is_split(const pl_kernel *kernel, const pl_plan *plan)
{
    (void)plan;
    return pl_is_split_extent(kernel->trees.rows);
}

const pl_kind_ops pl_trees_kind = {
    .visit = visit,
    .print = print,
    .verify = verify,
    .interpret = interpret,
    .is_rowwise = is_rowwise,
    .is_split = is_split,
};
