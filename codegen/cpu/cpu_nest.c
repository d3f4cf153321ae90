/* cpu_nest.c — the general loop nest: pointwise chains, moves, reductions, matmuls without packed weights.
 *
 * One loop becomes vectors (vectorise.c chooses it) and runs innermost. Along an output loop, the last vector is moved
 * back to end with the loop, so some points are computed twice and the scalar remainder disappears. Only an extent
 * below one vector, or an in-place nest, needs scalar iterations. A reduction keeps its accumulators in registers.
 * Along outputs, these are several vectors of outputs side by side. Along a reduction loop, they are several vectors of
 * partial results, which are folded at the end, with a scalar accumulator for the remainder. In a sum of products,
 * points of an output loop often share one factor, for example the weights of a depthwise convolution. Several of them
 * are computed side by side, so that one load serves all, also of an element that several windows overlap.
 *
 * Two forms have code of their own: products of two matrices (cpu_product.c) and transposes (cpu_transpose.c). If their
 * extents depend on the length, the nest also has the general form, because lengths below one vector need it. */
#include "codegen/cpu/cpu_kind.h"
#include "codegen/cpu/cpu_values.h"
#include "codegen/cpu/emit.h"
#include "codegen/cpu/signatures.h"
#include "codegen/cpu/tiles.h"
#include "plan/expr.h"
#include "plan/kernel_kind.h"

#include <assert.h>
#include <string.h>

/* Accumulators: one per vector of the block, and one scalar. An arg-reduction has values first, then indices. */
enum { MAX_ACCUMULATORS = 16, MOST_UNROLLED = 64 };

typedef struct nest {
    cg_emitter *e;
    const pl_plan *plan;
    const pl_kernel *kernel;
    const pl_nest *k;
    cg_vectorisation by;
    cg_scope scope;
    int order[PL_MAX_LOOPS];   /* reduction loops, the vector loop last */
    int sliced;                /* output loop that is divided among calls; -1 if there is none */
    int side_loop[2], side[2]; /* output loops with `side` points at once; -1 and 1 if there is none */
    int sliding, moving;       /* loop over taps of overlapping windows (-1: none), and the side that moves them */
    int64_t step, only;        /* taps from a point to the next; the only point of that side to visit (-1: all) */
} nest;

static bool reduces_in_lanes(const nest *n) { return n->by.loop >= n->k->loop_count; }

static bool is_limited(const nest *n, int loop) { return n->kernel->limit != NULL && n->kernel->limit->loop == loop; }

static LLVMValueRef extent_of(const nest *n, int loop)
{
    return cg_loop_extent(n->e, n->kernel, loop, n->k->extent[loop], n->scope.buffers);
}

typedef struct nest_loop { /* closed for an extent of one */
    bool open;
    cg_loop loop;
} nest_loop;

static void open_loop(nest *n, nest_loop *l, int number, int count, LLVMValueRef *carried)
{
    cg_emitter *e = n->e;
    ir_dim extent = n->k->extent[number];
    l->open = !ir_dim_is(extent, 1);
    n->scope.loops[number] = cg_int(e, 0);
    if (!l->open) return;
    bool guarded = !ir_dim_is_number(extent) || extent.offset < 1 || number == n->sliced || is_limited(n, number);
    cg_range range = {cg_int(e, 0), extent_of(n, number)};
    int64_t step = number == n->side_loop[0] ? n->side[0] : number == n->side_loop[1] ? n->side[1] : 1;
    if (number == n->sliced) range = cg_slice_by_grain(e, range.to, step);
    cg_loop_begin(e, &l->loop, range.from, range.to, step, count, carried, guarded);
    n->scope.loops[number] = l->loop.index;
    for (int i = 0; i < count; i++) carried[i] = l->loop.carried[i];
}

static void close_loop(nest *n, nest_loop *l, int count, LLVMValueRef *carried)
{
    if (!l->open) return;
    cg_loop_end(n->e, &l->loop, carried);
    for (int i = 0; i < count; i++) carried[i] = l->loop.out[i];
}

static bool known_empty(LLVMValueRef source, LLVMValueRef target)
{
    return LLVMIsAConstantInt(source) != NULL && LLVMIsAConstantInt(target) != NULL &&
           LLVMConstIntGetSExtValue(source) >= LLVMConstIntGetSExtValue(target);
}

/* Row-major index in the reduction space. */
static LLVMValueRef reduction_index(nest *n)
{
    cg_emitter *e = n->e;
    LLVMValueRef index = cg_int(e, 0);
    for (int r = 0; r < n->k->reduce_count; r++) {
        int loop = n->k->loop_count + r;
        index = cg_iadd(e, cg_imul(e, index, cg_dim(e, n->k->extent[loop])), n->scope.loops[loop]);
    }
    return index;
}

static void accumulate_arg(nest *n, LLVMValueRef *best, LLVMValueRef *best_index)
{
    cg_emitter *e = n->e;
    const pl_expr *body = n->k->body;
    LLVMValueRef value = cg_expr(e, &n->scope, n->plan, body);
    LLVMValueRef better = cg_reducer_prefers(e, n->k->reducer, body->dtype, value, *best);
    *best = cg_select(e, better, value, *best);
    *best_index = cg_select(e, better, cg_splat(e, reduction_index(n), n->scope.lanes), *best_index);
}

/* A sum of products rounds once per term. */
static LLVMValueRef accumulate(nest *n, LLVMValueRef accumulator)
{
    cg_emitter *e = n->e;
    const pl_expr *body = n->k->body;
    if (n->k->reducer == PL_REDUCE_SUM && body->op == PL_MUL && ir_dtype_is_float(body->dtype)) {
        LLVMValueRef a = cg_expr(e, &n->scope, n->plan, body->arg[0]);
        LLVMValueRef b = cg_expr(e, &n->scope, n->plan, body->arg[1]);
        return cg_fma(e, a, b, accumulator);
    }
    LLVMValueRef value = cg_expr(e, &n->scope, n->plan, body);
    return cg_reducer_combine(n->k->reducer, body->dtype)(e, accumulator, value);
}

/* Calls `visit` for each vector of a block and each point side by side. The loops' indices are those of the first. */
static void for_points(nest *n, int block, void (*visit)(nest *n, int block, int i, LLVMValueRef *acc),
                       LLVMValueRef *acc)
{
    LLVMValueRef first[PL_MAX_LOOPS];
    memcpy(first, n->scope.loops, sizeof first);
    int vectors = block / (n->side[0] * n->side[1]);
    for (int i = 0; i < block; i++) {
        int at[] = {i / vectors % n->side[0], i / vectors / n->side[0]};
        if (n->only >= 0 && at[n->moving] != n->only) continue;
        for (int s = 0; s < 2; s++)
            if (n->side[s] > 1)
                n->scope.loops[n->side_loop[s]] = cg_iadd(n->e, first[n->side_loop[s]], cg_int(n->e, at[s]));
        if (n->scope.lanes > 1)
            n->scope.loops[n->by.loop] =
                cg_iadd(n->e, first[n->by.loop], cg_int(n->e, (int64_t)(i % vectors) * n->scope.lanes));
        visit(n, block, i, acc);
    }
    memcpy(n->scope.loops, first, sizeof first);
}

static void accumulate_point(nest *n, int block, int i, LLVMValueRef *acc)
{
    if (cg_reducer_is_arg(n->k->reducer))
        accumulate_arg(n, &acc[i], &acc[block + i]);
    else
        acc[i] = accumulate(n, acc[i]);
}

/* Visits all points, with the sliding taps unrolled in the order of elements: an element of several windows is loaded
 * once. */
static void accumulate_taps(nest *n, int block, LLVMValueRef *acc)
{
    bool slides = n->sliding >= 0;
    int64_t taps = slides ? n->k->extent[n->sliding].offset : 1, points = slides ? n->side[n->moving] : 1;
    for (int64_t i = 0; i < ((points - 1) * n->step + taps) * points; i++) {
        int64_t tap = i / points - i % points * n->step;
        if (tap < 0 || tap >= taps) continue;
        if (slides) n->scope.loops[n->sliding] = cg_int(n->e, tap);
        n->only = slides ? i % points : -1;
        for_points(n, block, accumulate_point, acc);
    }
    n->only = -1;
}

static void reduce_outputs(nest *n, int depth, int block, int count, LLVMValueRef *acc)
{
    if (depth == n->k->reduce_count - (n->sliding >= 0)) {
        accumulate_taps(n, block, acc);
        return;
    }
    nest_loop loop;
    int last = n->k->reduce_count - 1 - (n->sliding >= 0);
    ir_dim extent = n->k->extent[n->order[depth]];
    if (depth == last && n->sliding < 0 && ir_dim_is_number(extent) && extent.offset * block <= MOST_UNROLLED) {
        for (int64_t i = 0; i < extent.offset; i++) {
            n->scope.loops[n->order[depth]] = cg_int(n->e, i);
            accumulate_taps(n, block, acc);
        }
        return;
    }
    open_loop(n, &loop, n->order[depth], count, acc);
    reduce_outputs(n, depth + 1, block, count, acc);
    close_loop(n, &loop, count, acc);
}

/* Computes ACC 0 for each vector in the block. */
static void reduce_block(nest *n, int block, LLVMValueRef *out_acc)
{
    cg_emitter *e = n->e;
    LLVMValueRef acc[MAX_ACCUMULATORS];
    bool arg = cg_reducer_is_arg(n->k->reducer);
    int count = arg ? 2 * block : block, lanes = n->scope.lanes;
    assert(count <= MAX_ACCUMULATORS);
    for (int i = 0; i < block; i++) {
        acc[i] = cg_reducer_identity(e, n->k->reducer, n->k->body->dtype, lanes);
        if (arg) acc[block + i] = cg_splat(e, cg_int(e, 0), lanes);
    }
    reduce_outputs(n, 0, block, count, acc);
    for (int i = 0; i < block; i++) out_acc[i] = arg ? acc[block + i] : acc[i];
}

/* Vector loop iterations from `source` to `target`, a block of vectors each, into acc[0 … block-1]. */
static void reduce_strip(nest *n, LLVMValueRef source, LLVMValueRef target, int lanes, int block, LLVMValueRef *acc)
{
    if (known_empty(source, target)) return;
    cg_emitter *e = n->e;
    cg_loop loop;
    cg_loop_begin(e, &loop, source, target, (int64_t)lanes * block, block, acc, true);
    n->scope.lanes = lanes;
    for (int i = 0; i < block; i++) {
        n->scope.loops[n->by.loop] = cg_iadd(e, loop.index, cg_int(e, (int64_t)i * lanes));
        acc[i] = accumulate(n, loop.carried[i]);
    }
    cg_loop_end(e, &loop, acc);
    for (int i = 0; i < block; i++) acc[i] = loop.out[i];
}

/* acc holds the block's vectors, then the scalar for the remainder of the extent. */
static void reduce_lanes(nest *n, int depth, LLVMValueRef *acc)
{
    cg_emitter *e = n->e;
    int block = n->by.block, lanes = n->by.lanes;
    if (depth == n->k->reduce_count - 1) {
        LLVMValueRef extent = cg_dim(e, n->k->extent[n->by.loop]);
        LLVMValueRef blocks_end = cg_round_down(e, extent, (int64_t)block * lanes);
        LLVMValueRef vectors_end = cg_round_down(e, extent, lanes);
        reduce_strip(n, cg_int(e, 0), blocks_end, lanes, block, acc);
        if (block > 1) reduce_strip(n, blocks_end, vectors_end, lanes, 1, acc);
        reduce_strip(n, vectors_end, extent, 1, 1, &acc[block]);
        return;
    }
    nest_loop loop;
    open_loop(n, &loop, n->order[depth], block + 1, acc);
    reduce_lanes(n, depth + 1, acc);
    close_loop(n, &loop, block + 1, acc);
}

static LLVMValueRef reduce_along_vectors(nest *n)
{
    cg_emitter *e = n->e;
    LLVMValueRef acc[MAX_ACCUMULATORS];
    mdot_dtype dtype = n->k->body->dtype;
    int block = n->by.block;
    cg_combine combine = cg_reducer_combine(n->k->reducer, dtype);
    for (int i = 0; i <= block; i++) acc[i] = cg_reducer_identity(e, n->k->reducer, dtype, i < block ? n->by.lanes : 1);
    reduce_lanes(n, 0, acc);
    n->scope.lanes = 1;
    for (int width = block / 2; width > 0; width /= 2)
        for (int i = 0; i < width; i++) acc[i] = combine(e, acc[i], acc[i + width]);
    return combine(e, cg_reduce(e, acc[0], combine), acc[block]);
}

static void store_point(nest *n, int block, int i, LLVMValueRef *acc)
{
    (void)block;
    n->scope.acc[0] = acc[i];
    cg_expr_stores(n->e, &n->scope, n->plan, n->k->store, n->k->store_count);
}

/* One point, or `block` vectors of points from the vector loop's index on; times the points side by side. */
static void emit_points(nest *n, int lanes, int block)
{
    LLVMValueRef acc[MAX_ACCUMULATORS] = {NULL};
    n->scope.lanes = lanes;
    block *= n->side[0] * n->side[1];
    if (n->k->body != NULL && reduces_in_lanes(n))
        acc[0] = reduce_along_vectors(n);
    else if (n->k->body != NULL)
        reduce_block(n, block, acc);
    for_points(n, block, store_point, acc);
}

/* The vectors of a block stay in the L1 cache while all points pass that share them. */
static void emit_shared(nest *n, int lanes, int block)
{
    nest_loop shared = {.open = false};
    if (n->side[0] > 1) open_loop(n, &shared, n->side_loop[0], 0, NULL);
    emit_points(n, lanes, block);
    close_loop(n, &shared, 0, NULL);
}

static void emit_strip(nest *n, LLVMValueRef source, LLVMValueRef target, LLVMValueRef last_start, int lanes, int block)
{
    if (known_empty(source, target)) return;
    cg_emitter *e = n->e;
    CG_FOR (e, loop, source, target, (int64_t)lanes * block) {
        n->scope.loops[n->by.loop] = last_start != NULL ? cg_imin(e, loop.index, last_start) : loop.index;
        emit_shared(n, lanes, block);
    }
}

/* Slices are whole blocks of vectors (`block_points` points), and the last slice includes the remainder. So the vector
 * that is moved back to end with the loop stays within one call's slice. */
static cg_range slice_of_strips(nest *n, int loop, int64_t block_points)
{
    cg_emitter *e = n->e;
    LLVMValueRef extent = extent_of(n, loop);
    if (loop != n->sliced) return (cg_range){cg_int(e, 0), extent};
    LLVMValueRef grain = cg_int(e, block_points);
    LLVMValueRef units = cg_imax(e, LLVMBuildUDiv(e->builder, extent, grain, ""), cg_int(e, 1));
    cg_range slice = cg_slice_of(e, units);
    LLVMValueRef is_last = LLVMBuildICmp(e->builder, LLVMIntEQ, slice.to, units, "");
    return (cg_range){cg_imul(e, slice.from, grain), cg_select(e, is_last, extent, cg_imul(e, slice.to, grain))};
}

/* The call's slice of an output's vector loop: blocks, single vectors, scalars. */
static void emit_strips(nest *n)
{
    cg_emitter *e = n->e;
    int lanes = n->by.lanes, block = n->by.block;
    ir_dim dim = n->k->extent[n->by.loop];
    cg_range slice = slice_of_strips(n, n->by.loop, (int64_t)block * lanes);
    LLVMValueRef end = slice.to, blocks_end = slice.from;
    LLVMValueRef vectors_end = cg_round_down(e, end, lanes), last_start = NULL;
    if (block > 1) {
        blocks_end = cg_round_down(e, end, (int64_t)block * lanes);
        emit_strip(n, slice.from, blocks_end, NULL, lanes, block);
    }
    bool whole_vectors = ir_dim_is_number(dim) && dim.offset % lanes == 0 && !is_limited(n, n->by.loop);
    if (!n->by.in_place && !whole_vectors) { /* the last vector ends with the loop */
        last_start = cg_isub(e, end, cg_int(e, lanes));
        LLVMValueRef fits = LLVMBuildICmp(e->builder, LLVMIntSGE, end, cg_int(e, lanes), "");
        vectors_end = cg_select(e, fits, end, slice.from);
    }
    emit_strip(n, blocks_end, vectors_end, last_start, lanes, 1);
    emit_strip(n, vectors_end, end, NULL, 1, 1);
}

/* Selects a loop whose points share a factor of the products, one that differs along the vector loop or one that does
 * not; with at most `most` points at once, a divisor of the extent. */
static void choose_side(nest *n, int s, bool is_vector, int most)
{
    n->side_loop[s] = -1;
    n->side[s] = 1;
    for (int loop = n->k->loop_count - 1; loop >= 0 && n->side[s] == 1; loop--) {
        ir_dim extent = n->k->extent[loop];
        bool is_shared = false;
        for (int i = 0; i < 2; i++) {
            const pl_expr *factor = n->k->body->arg[i];
            is_shared =
                is_shared || (!pl_expr_uses_index(factor, loop) && pl_expr_uses_index(factor, n->by.loop) == is_vector);
        }
        bool is_free = loop != n->by.loop && loop != n->side_loop[1 - s] && !is_limited(n, loop);
        if (!is_free || !is_shared || !ir_dim_is_number(extent)) continue;
        for (int points = 2; points <= most; points++)
            if (extent.offset % points == 0) n->side[s] = points;
        n->side_loop[s] = loop;
    }
}

/* A tile of results: points that share the factor with vectors, times two that share the other. */
static void choose_sides(nest *n)
{
    const pl_expr *body = n->k->body;
    const cg_cpu_target *target = n->e->target;
    int most = target->tile_rows * target->tile_vectors, block = n->by.block;
    if (most > MAX_ACCUMULATORS) most = MAX_ACCUMULATORS;
    if (body == NULL || body->op != PL_MUL || cg_reducer_is_arg(n->k->reducer)) return; /* few registers are left */
    if (n->by.in_place || n->by.loop < 0 || reduces_in_lanes(n)) return;
    if (block > 2) n->by.block = 2; /* more points then share a vector, which costs more loads than a scalar */
    choose_side(n, 0, true, most / 2);
    if (n->side[0] == 1 && most >= 4 * block) n->by.block = block;
    choose_side(n, 1, false, most / n->by.block / n->side[0]);
    if (n->side[0] == 1 && n->side[1] == 1) n->by.block = block;
}

/* Selects a loop over taps along which windows of the points side by side overlap. */
static void choose_sliding(nest *n)
{
    enum { MOST_TAPS = 16 };
    for (int i = 0; i < 4 * n->k->reduce_count && n->sliding < 0; i++) {
        int s = i / 2 % 2, loop = n->k->loop_count + i / 4;
        ir_dim taps = n->k->extent[loop];
        int64_t step, tap;
        if (n->side[s] == 1 || !ir_dim_is_number(taps) || taps.offset > MOST_TAPS) continue;
        const pl_expr *factor = n->k->body->arg[i % 2];
        if (factor->op != PL_LOAD || !pl_expr_stride(factor->arg[0], n->side_loop[s], &step)) continue;
        if (!pl_expr_stride(factor->arg[0], loop, &tap) || tap <= 0 || step <= 0 || step % tap != 0) continue;
        if (step / tap >= taps.offset) continue;
        n->sliding = loop;
        n->moving = s;
        n->step = step / tap;
    }
}

static void emit_loops(nest *n)
{
    const pl_nest *k = n->k;
    int ordered = 0;
    n->by = cg_choose_vectorisation(n->plan, k, n->e->target);
    n->scope.vector_loop = n->by.loop;
    n->scope.lanes = 1;
    choose_sides(n);
    choose_sliding(n);
    for (int r = k->loop_count; r < k->loop_count + k->reduce_count; r++)
        if (r != n->by.loop && r != n->sliding) n->order[ordered++] = r;
    if (reduces_in_lanes(n)) n->order[ordered] = n->by.loop;

    nest_loop loops[PL_MAX_LOOPS];
    bool vector_outputs = n->by.loop >= 0 && !reduces_in_lanes(n);
    int shared = n->side[0] > 1 ? n->side_loop[0] : -1;
    for (int i = 0; i < k->loop_count; i++)
        if (i != n->by.loop && i != shared) open_loop(n, &loops[i], i, 0, NULL);
    if (vector_outputs)
        emit_strips(n);
    else
        emit_points(n, 1, 1);
    for (int i = k->loop_count - 1; i >= 0; i--)
        if (i != n->by.loop && i != shared) close_loop(n, &loops[i], 0, NULL);
}

typedef struct special_form {
    bool is_product, is_transpose;
    cg_product product;
    cg_transposition transposition;
} special_form;

static special_form special_form_of(const pl_plan *plan, const pl_nest *k, const cg_cpu_target *target)
{
    special_form form = {0};
    form.is_product = cg_product_find(plan, k, target, &form.product);
    form.is_transpose = !form.is_product && cg_transposition_find(plan, k, target, &form.transposition);
    return form;
}

/* Emits the special form for every point in the other loops. */
static void emit_special(nest *n, const special_form *form, LLVMValueRef scratch)
{
    cg_emitter *e = n->e;
    int lanes = e->target->lanes;
    int row_loop = form->is_product ? form->product.row_loop : form->transposition.row_loop;
    int column_loop = form->is_product ? form->product.column_loop : form->transposition.column_loop;
    cg_range rows, columns;
    if (form->is_product && row_loop == n->sliced)
        rows = cg_slice_by_grain(e, cg_dim(e, n->k->extent[row_loop]), e->target->tile_rows);
    else
        rows = slice_of_strips(n, row_loop, lanes);
    columns = slice_of_strips(n, column_loop, form->is_product ? (int64_t)e->target->tile_vectors * lanes : lanes);
    nest_loop loops[PL_MAX_LOOPS];
    for (int i = 0; i < n->k->loop_count; i++)
        if (i != row_loop && i != column_loop) open_loop(n, &loops[i], i, 0, NULL);
    if (form->is_product)
        cg_product_emit(e, n->plan, n->k, &form->product, &n->scope, rows, columns, scratch);
    else
        cg_transposition_emit(e, n->plan, n->k, &form->transposition, &n->scope, rows, columns);
    for (int i = n->k->loop_count - 1; i >= 0; i--)
        if (i != row_loop && i != column_loop) close_loop(n, &loops[i], 0, NULL);
}

static void emit(cg_emitter *e, const pl_plan *plan, const pl_kernel *kernel, const LLVMValueRef *buffers,
                 LLVMValueRef scratch)
{
    const pl_nest *k = &kernel->nest;
    nest n = {.e = e,
              .plan = plan,
              .kernel = kernel,
              .k = k,
              .sliced = pl_nest_split_loop(k),
              .side_loop = {-1, -1},
              .side = {1, 1},
              .sliding = -1,
              .only = -1,
              .scope.buffers = buffers};
    special_form form = special_form_of(plan, k, e->target);
    if (kernel->limit != NULL || (!form.is_product && !form.is_transpose)) {
        emit_loops(&n);
        return;
    }
    LLVMValueRef fits =
        form.is_product ? cg_product_fits(e, k, &form.product) : cg_transposition_fits(e, k, &form.transposition);
    if (LLVMIsAConstantInt(fits) != NULL) { /* the form was found, so known extents fit */
        emit_special(&n, &form, scratch);
        return;
    }
    CG_IF (e, fits) emit_special(&n, &form, scratch);
    CG_IF (e, LLVMBuildNot(e->builder, fits, "")) emit_loops(&n);
}

static int64_t scratch_bytes(const pl_plan *plan, const pl_kernel *kernel, const cg_cpu_target *target)
{
    cg_product product;
    if (!cg_product_find(plan, &kernel->nest, target, &product)) return 0;
    return cg_product_scratch_bytes(plan, &kernel->nest, &product, target);
}

static void sign(const pl_kernel *kernel, cg_signature_writer *w)
{
    const pl_nest *k = &kernel->nest;
    cg_signature_add(w, k->loop_count);
    cg_signature_add(w, k->reduce_count);
    for (int i = 0; i < k->loop_count + k->reduce_count; i++) cg_signature_add_dim(w, k->extent[i]);
    cg_signature_add(w, k->reducer);
    cg_signature_add_expr(w, k->body);
    cg_signature_add(w, k->store_count);
    for (int i = 0; i < k->store_count; i++) {
        cg_signature_add_buffer(w, k->store[i].buffer);
        cg_signature_add_expr(w, k->store[i].index);
        cg_signature_add_expr(w, k->store[i].value);
    }
}

const cg_kind_ops cg_nest_kind = {.emit = emit, .scratch_bytes = scratch_bytes, .sign = sign};
