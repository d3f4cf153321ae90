/* cpu_trees.c — kernels of decision trees, by two methods.
 *
 * A few rows walk: each step loads a node and moves to its child without a branch. The step count is the same for every
 * row, so nothing is mispredicted, and the processor works on several trees at a time.
 *
 * Blocks of rows, one per lane, make all comparisons of a tree (pl_trees.tests). Each comparison that is false removes
 * leaves from the row's set, and the first leaf that remains is the row's. A comparison takes a vector comparison and
 * one or two masked ANDs for all rows of the block, and its operands do not depend on other comparisons.
 *
 * Both methods add the trees in the same order, so a row's result is the same in any block. */
#include "codegen/cpu/cpu_kind.h"
#include "codegen/cpu/cpu_values.h"
#include "codegen/cpu/emit.h"
#include "codegen/cpu/signatures.h"
#include "ir/ops/mdot_ops.h"
#include "plan/kernel_kind.h"

enum {
    FEWEST_ROWS = 4,    /* of a block; fewer rows walk, because a block takes about as long as four rows */
    MOST_UNROLLED = 16, /* steps */
    MASK_BITS = 32
};

typedef struct trees {
    cg_emitter *e;
    const pl_trees *k;
    const LLVMValueRef *buffers;
    mdot_dtype dtype;
    LLVMTypeRef type;  /* of one element */
    int words;         /* of a node or a test */
    int lanes;         /* rows of a block */
    LLVMValueRef row;  /* scratch: x and -x for one row, or a block of rows: [2 * features][lanes] */
    LLVMValueRef sums; /* scratch: sums of a block, [targets][lanes] */
    cg_combine combine;
} trees;

/* Word `word` of record `index` in an i32 table, extended to i64. */
static LLVMValueRef load_word(const trees *t, int buffer, LLVMValueRef index, int words, int word)
{
    cg_emitter *e = t->e;
    LLVMValueRef address = cg_iadd(e, cg_imul(e, index, cg_int(e, words)), cg_int(e, word));
    LLVMValueRef value = cg_load(e, e->i32, cg_at(e, e->i32, t->buffers[buffer], address), 0);
    return LLVMBuildSExt(e->builder, value, e->i64, "");
}

/* The threshold, before the other words of a node or test. */
static LLVMValueRef load_threshold(const trees *t, int buffer, LLVMValueRef index)
{
    cg_emitter *e = t->e;
    LLVMValueRef address = cg_imul(e, index, cg_int(e, t->words));
    return cg_load(e, t->type, cg_at(e, e->i32, t->buffers[buffer], address), 4);
}

static int first_word(const trees *t) { return t->dtype == MDOT_DTYPE_F64 ? 2 : 1; }

/* Address for x[row, feature] or out[row, target] */
static LLVMValueRef element(const trees *t, int buffer, LLVMValueRef row, int64_t columns, LLVMValueRef column)
{
    cg_emitter *e = t->e;
    LLVMValueRef address = cg_iadd(e, cg_imul(e, row, cg_int(e, columns)), column);
    return cg_at(e, t->type, t->buffers[buffer], address);
}

static LLVMValueRef identity(const trees *t, int lanes)
{
    return cg_reducer_identity(t->e, t->k->reducer, t->dtype, lanes);
}

/* Writes x[f] and -x[f] of a row to scratch. */
static void prepare_row(const trees *t, LLVMValueRef row)
{
    cg_emitter *e = t->e;
    CG_FOR (e, loop, cg_int(e, 0), cg_int(e, t->k->features), 1) {
        LLVMValueRef x = cg_load(e, t->type, element(t, t->k->x, row, t->k->features, loop.index), 0);
        LLVMValueRef address = cg_imul(e, loop.index, cg_int(e, 2));
        cg_store(e, x, cg_at(e, t->type, t->row, address), 0);
        LLVMValueRef negated = LLVMBuildFNeg(e->builder, x, "");
        cg_store(e, negated, cg_at(e, t->type, t->row, cg_iadd(e, address, cg_int(e, 1))), 0);
    }
}

static LLVMValueRef step(const trees *t, LLVMValueRef node)
{
    cg_emitter *e = t->e;
    int rest = first_word(t);
    LLVMValueRef limit = load_threshold(t, t->k->nodes, node);
    LLVMValueRef feature = load_word(t, t->k->nodes, node, t->words, rest);
    LLVMValueRef child = load_word(t, t->k->nodes, node, t->words, rest + 1);
    LLVMValueRef x = cg_load(e, t->type, cg_at(e, t->type, t->row, feature), 0);
    LLVMValueRef is_false = LLVMBuildFCmp(e->builder, LLVMRealUGT, x, limit, "");
    return cg_iadd(e, child, LLVMBuildZExt(e->builder, is_false, e->i64, ""));
}

/* Position in `values` of the prepared row's leaf. */
static LLVMValueRef walk(const trees *t, LLVMValueRef tree, int64_t depth)
{
    cg_emitter *e = t->e;
    LLVMValueRef node = load_word(t, t->k->trees, tree, IR_TREE_WORDS, IR_TREE_ROOT);
    if (depth <= MOST_UNROLLED) {
        for (int64_t i = 0; i < depth; i++) node = step(t, node);
    } else {
        cg_loop loop;
        cg_loop_begin(e, &loop, cg_int(e, 0), cg_int(e, depth), 1, 1, &node, false);
        node = step(t, loop.carried[0]);
        cg_loop_end(e, &loop, &node);
        node = loop.out[0];
    }
    return load_word(t, t->k->nodes, node, t->words, first_word(t) + 2);
}

static LLVMValueRef load_value(const trees *t, int buffer, LLVMValueRef address)
{
    return cg_load(t->e, t->type, cg_at(t->e, t->type, t->buffers[buffer], address), 0);
}

/* Adds values[leaf] to a target in memory. */
static void add_to(const trees *t, LLVMValueRef address, LLVMValueRef value)
{
    cg_store(t->e, t->combine(t->e, cg_load(t->e, t->type, address, 0), value), address, 0);
}

/* One target: its sum is in a register. */
static void walk_to_sum(const trees *t, LLVMValueRef row)
{
    cg_emitter *e = t->e;
    LLVMValueRef sum = identity(t, 1);
    for (int g = 0; g < t->k->group_count; g++) {
        const pl_tree_group *group = &t->k->groups[g];
        cg_loop loop;
        LLVMValueRef first = cg_int(e, group->first);
        cg_loop_begin(e, &loop, first, cg_int(e, group->first + group->count), 1, 1, &sum, false);
        LLVMValueRef leaf = walk(t, loop.index, group->depth);
        LLVMValueRef next_value = t->combine(e, loop.carried[0], load_value(t, t->k->values, leaf));
        cg_loop_end(e, &loop, &next_value);
        sum = loop.out[0];
    }
    cg_store(e, sum, element(t, t->k->out, row, 1, cg_int(e, 0)), 0);
}

static void walk_group_to_targets(const trees *t, const pl_tree_group *group, LLVMValueRef row)
{
    cg_emitter *e = t->e;
    int64_t targets = t->k->targets;
    CG_FOR_NONEMPTY (e, loop, cg_int(e, group->first), cg_int(e, group->first + group->count), 1) {
        LLVMValueRef leaf = walk(t, loop.index, group->depth);
        if (group->is_row) {
            CG_FOR (e, part, cg_int(e, 0), cg_int(e, targets), 1) {
                LLVMValueRef value = load_value(t, t->k->values, cg_iadd(e, leaf, part.index));
                add_to(t, element(t, t->k->out, row, targets, part.index), value);
            }
        } else {
            LLVMValueRef target = load_word(t, t->k->trees, loop.index, IR_TREE_WORDS, IR_TREE_TARGET);
            LLVMValueRef value = load_value(t, t->k->values, leaf);
            add_to(t, element(t, t->k->out, row, targets, target), value);
        }
    }
}

static void walk_to_targets(const trees *t, LLVMValueRef row)
{
    cg_emitter *e = t->e;
    CG_FOR (e, part, cg_int(e, 0), cg_int(e, t->k->targets), 1)
        cg_store(e, identity(t, 1), element(t, t->k->out, row, t->k->targets, part.index), 0);
    for (int g = 0; g < t->k->group_count; g++) walk_group_to_targets(t, &t->k->groups[g], row);
}

static void walk_rows(const trees *t, LLVMValueRef source, LLVMValueRef target)
{
    CG_FOR (t->e, rows, source, target, 1) {
        prepare_row(t, rows.index);
        if (t->k->targets == 1)
            walk_to_sum(t, rows.index);
        else
            walk_to_targets(t, rows.index);
    }
}

/* Writes x and -x of `count` rows to scratch, feature by feature. Further lanes repeat the last row. */
static void prepare_block(const trees *t, LLVMValueRef first, LLVMValueRef count)
{
    cg_emitter *e = t->e;
    LLVMTypeRef vector = cg_vector(e, t->type, t->lanes);
    LLVMValueRef last_value = cg_isub(e, count, cg_int(e, 1));
    CG_FOR (e, feature, cg_int(e, 0), cg_int(e, t->k->features), 1) {
        LLVMValueRef plain = cg_imul(e, feature.index, cg_int(e, 2 * t->lanes));
        CG_FOR (e, lane, cg_int(e, 0), cg_int(e, t->lanes), 1) {
            LLVMValueRef row = cg_iadd(e, first, cg_imin(e, lane.index, last_value));
            LLVMValueRef x = cg_load(e, t->type, element(t, t->k->x, row, t->k->features, feature.index), 0);
            cg_store(e, x, cg_at(e, t->type, t->row, cg_iadd(e, plain, lane.index)), 0);
        }
        LLVMValueRef whole = cg_load(e, vector, cg_at(e, t->type, t->row, plain), 0);
        LLVMValueRef negated = cg_at(e, t->type, t->row, cg_iadd(e, plain, cg_int(e, t->lanes)));
        cg_store(e, LLVMBuildFNeg(e->builder, whole, ""), negated, 0);
    }
}

/* The sets of leaves after one comparison: one or two masks per row. */
static void make_test(const trees *t, LLVMValueRef test, const LLVMValueRef *sets, int masks, LLVMValueRef *out)
{
    cg_emitter *e = t->e;
    int rest = first_word(t);
    LLVMValueRef limit = cg_splat(e, load_threshold(t, t->k->tests, test), t->lanes);
    LLVMValueRef feature = load_word(t, t->k->tests, test, t->words, rest);
    LLVMValueRef address = cg_imul(e, feature, cg_int(e, t->lanes));
    LLVMValueRef x = cg_load(e, cg_vector(e, t->type, t->lanes), cg_at(e, t->type, t->row, address), 0);
    LLVMValueRef is_false = LLVMBuildFCmp(e->builder, LLVMRealUGT, x, limit, "");
    for (int m = 0; m < masks; m++) {
        LLVMValueRef word = load_word(t, t->k->tests, test, t->words, rest + 1 + m);
        LLVMValueRef mask = cg_splat(e, LLVMBuildTrunc(e->builder, word, e->i32, ""), t->lanes);
        out[m] = cg_select(e, is_false, LLVMBuildAnd(e->builder, sets[m], mask, ""), sets[m]);
    }
}

/* Each lane's lowest set bit; undefined for 0. */
static LLVMValueRef lowest_bit(const trees *t, LLVMValueRef set)
{
    cg_emitter *e = t->e;
    LLVMValueRef args[] = {set, LLVMConstInt(e->i1, 0, 0)};
    return cg_intrinsic(e, "llvm.cttz", LLVMTypeOf(set), args, 2);
}

/* Each row's leaf number in the tree, after all comparisons. */
static LLVMValueRef find_leaves(const trees *t, LLVMValueRef begin, LLVMValueRef end)
{
    cg_emitter *e = t->e;
    int masks = t->k->most_leaves > MASK_BITS ? 2 : 1;
    LLVMTypeRef set = cg_vector(e, e->i32, t->lanes);
    LLVMValueRef whole[] = {LLVMConstAllOnes(set), LLVMConstAllOnes(set)}, next_value[2];
    cg_loop loop;
    cg_loop_begin(e, &loop, begin, end, 1, masks, whole, true);
    make_test(t, loop.index, loop.carried, masks, next_value);
    cg_loop_end(e, &loop, next_value);
    LLVMValueRef low = lowest_bit(t, loop.out[0]);
    if (masks == 1) return low;
    LLVMValueRef high = LLVMBuildAdd(e->builder, lowest_bit(t, loop.out[1]), cg_const(e, set, MASK_BITS), "");
    LLVMValueRef is_high = LLVMBuildICmp(e->builder, LLVMIntEQ, loop.out[0], LLVMConstNull(set), "");
    return cg_select(e, is_high, high, low);
}

/* The values of each row's leaf. */
static LLVMValueRef load_leaves(const trees *t, LLVMValueRef first, LLVMValueRef numbers)
{
    cg_emitter *e = t->e;
    LLVMTypeRef vector = cg_vector(e, t->type, t->lanes);
    LLVMValueRef values = LLVMGetUndef(vector);
    LLVMValueRef base = cg_at(e, t->type, t->buffers[t->k->leaves], first);
    for (int lane = 0; lane < t->lanes; lane++) {
        LLVMValueRef position = LLVMConstInt(e->i32, (unsigned)lane, 0);
        LLVMValueRef number = LLVMBuildExtractElement(e->builder, numbers, position, "");
        number = LLVMBuildZExt(e->builder, number, e->i64, "");
        LLVMValueRef value = cg_load(e, t->type, cg_at(e, t->type, base, number), 0);
        values = LLVMBuildInsertElement(e->builder, values, value, position, "");
    }
    return values;
}

/* Begins the loop over all trees, and returns the values of the tree's leaves. */
static LLVMValueRef begin_trees(const trees *t, cg_loop *loop, int carried, const LLVMValueRef *init)
{
    cg_emitter *e = t->e;
    int64_t count = 0;
    for (int g = 0; g < t->k->group_count; g++) count += t->k->groups[g].count;
    cg_loop_begin(e, loop, cg_int(e, 0), cg_int(e, count), 1, carried, init, true);
    LLVMValueRef begin = load_word(t, t->k->spans, loop->index, PL_SPAN_WORDS, 0);
    LLVMValueRef end = load_word(t, t->k->spans, loop->index, PL_SPAN_WORDS, 1);
    LLVMValueRef first = load_word(t, t->k->spans, loop->index, PL_SPAN_WORDS, 2);
    return load_leaves(t, first, find_leaves(t, begin, end));
}

static LLVMValueRef sums_at(const trees *t, LLVMValueRef target)
{
    return cg_at(t->e, t->type, t->sums, cg_imul(t->e, target, cg_int(t->e, t->lanes)));
}

/* Sums of all targets in scratch. */
static void sum_block(const trees *t)
{
    cg_emitter *e = t->e;
    LLVMTypeRef vector = cg_vector(e, t->type, t->lanes);
    LLVMValueRef zero = identity(t, t->lanes);
    cg_loop loop;
    if (t->k->targets == 1) {
        LLVMValueRef values = begin_trees(t, &loop, 1, &zero);
        LLVMValueRef next_value = t->combine(e, loop.carried[0], values);
        cg_loop_end(e, &loop, &next_value);
        cg_store(e, loop.out[0], sums_at(t, cg_int(e, 0)), 0);
        return;
    }
    CG_FOR (e, part, cg_int(e, 0), cg_int(e, t->k->targets), 1) cg_store(e, zero, sums_at(t, part.index), 0);
    LLVMValueRef values = begin_trees(t, &loop, 0, NULL);
    LLVMValueRef address = sums_at(t, load_word(t, t->k->spans, loop.index, PL_SPAN_WORDS, 3));
    cg_store(e, t->combine(e, cg_load(e, vector, address, 0), values), address, 0);
    cg_loop_end(e, &loop, NULL);
}

static void write_block(const trees *t, LLVMValueRef first, LLVMValueRef count)
{
    cg_emitter *e = t->e;
    CG_FOR (e, row, cg_int(e, 0), count, 1)
        CG_FOR (e, target, cg_int(e, 0), cg_int(e, t->k->targets), 1) {
            LLVMValueRef source = cg_at(e, t->type, sums_at(t, target.index), row.index);
            LLVMValueRef to = element(t, t->k->out, cg_iadd(e, first, row.index), t->k->targets, target.index);
            cg_store(e, cg_load(e, t->type, source, 0), to, 0);
        }
}

static void emit_blocks(const trees *t, cg_range slice)
{
    cg_emitter *e = t->e;
    CG_FOR (e, blocks, slice.from, slice.to, t->lanes) {
        LLVMValueRef count = cg_imin(e, cg_isub(e, slice.to, blocks.index), cg_int(e, t->lanes));
        LLVMValueRef fewest = cg_int(e, FEWEST_ROWS);
        CG_IF (e, LLVMBuildICmp(e->builder, LLVMIntSGE, count, fewest, "")) {
            prepare_block(t, blocks.index, count);
            sum_block(t);
            write_block(t, blocks.index, count);
        }
        CG_IF (e, LLVMBuildICmp(e->builder, LLVMIntSLT, count, fewest, ""))
            walk_rows(t, blocks.index, cg_iadd(e, blocks.index, count));
    }
}

static int lanes_of(const cg_cpu_target *target, mdot_dtype dtype)
{
    return dtype == MDOT_DTYPE_F64 ? target->lanes / 2 : target->lanes;
}

static int64_t scratch_bytes(const pl_plan *plan, const pl_kernel *kernel, const cg_cpu_target *target)
{
    const pl_trees *k = &kernel->trees;
    mdot_dtype dtype = plan->buffers[k->x].type.dtype;
    int64_t lanes = k->tests >= 0 ? lanes_of(target, dtype) : 1;
    return (2 * k->features + k->targets) * lanes * (int64_t)mdot_dtype_size_bytes(dtype);
}

static void emit(cg_emitter *e, const pl_plan *plan, const pl_kernel *kernel, const LLVMValueRef *buffers,
                 LLVMValueRef scratch)
{
    const pl_trees *k = &kernel->trees;
    mdot_dtype dtype = plan->buffers[k->x].type.dtype;
    trees t = {.e = e,
               .k = k,
               .buffers = buffers,
               .dtype = dtype,
               .type = cg_value_type(e, dtype),
               .words = ir_tree_node_words(dtype),
               .lanes = lanes_of(e->target, dtype),
               .row = scratch,
               .combine = cg_reducer_combine(k->reducer, dtype)};
    t.sums = cg_at(e, t.type, scratch, cg_int(e, 2 * k->features * t.lanes));
    LLVMValueRef rows = cg_dim(e, k->rows);
    bool splits = pl_is_split(plan, kernel), has_blocks = k->tests >= 0;
    cg_range slice = {cg_int(e, 0), rows};
    if (splits) slice = has_blocks ? cg_slice_by_grain(e, rows, t.lanes) : cg_slice_of(e, rows);
    if (has_blocks)
        emit_blocks(&t, slice);
    else
        walk_rows(&t, slice.from, slice.to);
}

static void sign(const pl_kernel *kernel, cg_signature_writer *w)
{
    const pl_trees *k = &kernel->trees;
    const int buffers[] = {k->x, k->nodes, k->trees, k->values, k->tests, k->spans, k->leaves, k->out};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) cg_signature_add_buffer(w, buffers[i]);
    cg_signature_add(w, w->plan->buffers[k->x].type.dtype);
    cg_signature_add_dim(w, k->rows);
    cg_signature_add(w, k->features);
    cg_signature_add(w, k->targets);
    cg_signature_add(w, k->reducer);
    cg_signature_add(w, k->most_leaves);
    cg_signature_add(w, k->group_count);
    for (int g = 0; g < k->group_count; g++) {
        cg_signature_add(w, k->groups[g].first);
        cg_signature_add(w, k->groups[g].count);
        cg_signature_add(w, k->groups[g].depth);
        cg_signature_add(w, k->groups[g].is_row);
    }
}

const cg_kind_ops cg_trees_kind = {.emit = emit, .scratch_bytes = scratch_bytes, .sign = sign};
