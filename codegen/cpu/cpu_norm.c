/* cpu_norm.c — layer normalisation, RMS normalisation, softmax and log-softmax of a matrix's rows.
 *
 * Rows are processed one at a time. A row's values are computed once from the input expression and then kept: in
 * registers if the row is short and its length known, otherwise in scratch, padded to whole vectors. Statistics are
 * computed from the kept values (the variance in two passes, as it is defined), and a last pass writes the results.
 * Neighbouring rows are independent, so the processor overlaps one row's reductions across lanes with the next row's
 * instructions. */
#include "codegen/cpu/cpu_kind.h"
#include "codegen/cpu/cpu_target.h"
#include "codegen/cpu/cpu_values.h"
#include "codegen/cpu/dot_products.h"
#include "codegen/cpu/emit.h"
#include "codegen/cpu/real_functions.h"
#include "codegen/cpu/signatures.h"
#include "plan/expr.h"
#include "plan/kernel_kind.h"

#include <math.h>

enum { MAX_KEPT_VECTORS = 16, CHAINS = 4 }; /* CHAINS: partial reduction results, which hide the latency of addition */

typedef struct norm {
    const pl_plan *plan;
    const pl_norm *k;
    const LLVMValueRef *buffers;
    LLVMValueRef columns, whole; /* row length; length in whole vectors */
    LLVMValueRef row;            /* index of the row */

    int kept_count; /* vectors in registers, including the tail; 0 if the row is in `line` */
    LLVMValueRef kept[MAX_KEPT_VECTORS];
    LLVMValueRef line; /* scratch, a vector longer than the row */

    LLVMValueRef shift;          /* subtracted from each value by the reductions */
    LLVMValueRef factor, offset; /* the result is value * factor or, if factor is NULL, value - offset */
} norm;

static LLVMTypeRef vector_type(cg_emitter *e) { return cg_vector(e, e->f32, e->target->lanes); }

static unsigned vector_bytes(const cg_emitter *e) { return 4 * (unsigned)e->target->lanes; }

static bool columns_known(const norm *n) { return ir_dim_is_number(n->k->columns); }

/* Number of tail columns, if the row's length is known. */
static int tail_columns(const cg_emitter *e, const norm *n) { return (int)(n->k->columns.offset % e->target->lanes); }

/* A tail of unknown length may be empty; it is then a vector without valid lanes. */
static bool has_tail(const cg_emitter *e, const norm *n) { return !columns_known(n) || tail_columns(e, n) > 0; }

/* `value` in tail lanes that are columns, else `other_values`. */
static LLVMValueRef select_tail(cg_emitter *e, const norm *n, LLVMValueRef value, double other_values)
{
    int lanes = e->target->lanes;
    LLVMValueRef left = cg_splat(e, cg_isub(e, n->columns, n->whole), lanes);
    LLVMValueRef valid = LLVMBuildICmp(e->builder, LLVMIntSLT, cg_iota(e, e->i64, lanes), left, "");
    return cg_select(e, valid, value, cg_const(e, LLVMTypeOf(value), other_values));
}

/* Value of the padding lanes while the row is in registers or scratch. It leaves sums and maxima unchanged. */
static double padding(const norm *n)
{
    return n->k->mode == PL_NORM_SOFTMAX || n->k->mode == PL_NORM_LOG_SOFTMAX ? -INFINITY : 0;
}

static void store_columns(cg_emitter *e, const norm *n, const pl_matrix *matrix, LLVMValueRef column,
                          LLVMValueRef value)
{
    LLVMTypeRef type = cg_stored_type(e, n->plan, matrix->buffer);
    LLVMValueRef offset = cg_dim(e, matrix->offset);
    offset = cg_iadd(e, offset, cg_imul(e, n->row, cg_dim(e, matrix->row_stride)));
    LLVMValueRef address = cg_at(e, type, n->buffers[matrix->buffer], cg_iadd(e, offset, column));
    cg_store_elements(e, n->plan, matrix->buffer, value, address);
}

static LLVMValueRef line_pointer(cg_emitter *e, const norm *n, LLVMValueRef column)
{
    return cg_at(e, e->f32, n->line, column);
}

/* Evaluates an expression for `lanes` columns from `column` on. */
static LLVMValueRef evaluate(cg_emitter *e, const norm *n, const pl_expr *expr, LLVMValueRef column, int lanes,
                             LLVMValueRef acc)
{
    cg_scope scope = {.buffers = n->buffers, .loops = {n->row, column}, .vector_loop = 1, .lanes = lanes, .acc = {acc}};
    LLVMValueRef value = cg_expr(e, &scope, n->plan, expr);
    return cg_lanes(value) == lanes ? value : cg_splat(e, value, lanes);
}

static LLVMValueRef read_input(cg_emitter *e, const norm *n, LLVMValueRef column, int lanes)
{
    LLVMValueRef value = evaluate(e, n, n->k->input, column, lanes, NULL);
    if (n->k->sum.buffer >= 0) store_columns(e, n, &n->k->sum, column, value);
    return value;
}

static void hold_row(cg_emitter *e, norm *n)
{
    int lanes = e->target->lanes, tail = tail_columns(e, n);
    int whole = (int)(n->k->columns.offset / lanes);
    for (int i = 0; i < whole; i++) n->kept[i] = read_input(e, n, cg_int(e, (int64_t)i * lanes), lanes);
    if (tail > 0) n->kept[whole] = cg_resize(e, read_input(e, n, n->whole, tail), lanes, padding(n));
}

static void write_line(cg_emitter *e, norm *n)
{
    int lanes = e->target->lanes;
    LLVMValueRef pad = cg_const(e, vector_type(e), padding(n));
    CG_FOR (e, loop, cg_int(e, 0), n->whole, lanes) {
        LLVMValueRef whole = read_input(e, n, loop.index, lanes);
        cg_store(e, whole, line_pointer(e, n, loop.index), vector_bytes(e));
    }
    if (!has_tail(e, n)) return;
    LLVMValueRef tail = line_pointer(e, n, n->whole);
    if (columns_known(n)) {
        LLVMValueRef value = read_input(e, n, n->whole, tail_columns(e, n));
        cg_store(e, cg_resize(e, value, lanes, padding(n)), tail, vector_bytes(e));
        return;
    }
    cg_store(e, pad, tail, vector_bytes(e));
    CG_FOR (e, loop, n->whole, n->columns, 1) {
        LLVMValueRef single = read_input(e, n, loop.index, 1);
        cg_store(e, single, line_pointer(e, n, loop.index), 0);
    }
}

/* A reduction over the row: `map` replaces the kept values, `term` computes the summand of each value, and `combine`
 * joins the terms. A NULL function returns the value itself. */
typedef LLVMValueRef (*value_function)(cg_emitter *e, const norm *n, LLVMValueRef value);
typedef struct reduction {
    value_function map, term;
    cg_combine combine;
    double identity;
} reduction;

static LLVMValueRef shifted(cg_emitter *e, const norm *n, LLVMValueRef value) { return cg_fsub(e, value, n->shift); }

static LLVMValueRef shifted_exp(cg_emitter *e, const norm *n, LLVMValueRef value)
{
    return cg_exp(e, shifted(e, n, value));
}

static LLVMValueRef exponential(cg_emitter *e, const norm *n, LLVMValueRef value) { return cg_exp(e, value); }

static LLVMValueRef square(cg_emitter *e, const norm *n, LLVMValueRef value) { return cg_fmul(e, value, value); }

/* x + -0 is x, even for x = -0, so the first addition folds away */
static const reduction sum_of_values = {NULL, NULL, cg_fadd, -0.0};
static const reduction sum_of_squares = {NULL, square, cg_fadd, -0.0};
static const reduction sum_of_shifted_squares = {shifted, square, cg_fadd, -0.0};
static const reduction largest_value = {NULL, NULL, cg_fmax, -INFINITY};
static const reduction sum_of_new_exponentials = {shifted_exp, NULL, cg_fadd, -0.0};
static const reduction sum_of_exponentials_of_shifted = {shifted, exponential, cg_fadd, -0.0};

static void reduce_kept(cg_emitter *e, norm *n, const reduction *r, LLVMValueRef *chain)
{
    for (int i = 0; i < n->kept_count; i++) {
        if (r->map != NULL) n->kept[i] = r->map(e, n, n->kept[i]);
        LLVMValueRef term = r->term != NULL ? r->term(e, n, n->kept[i]) : n->kept[i];
        if (i == n->kept_count - 1 && has_tail(e, n)) term = select_tail(e, n, term, r->identity);
        chain[i % CHAINS] = r->combine(e, term, chain[i % CHAINS]);
    }
}

static LLVMValueRef line_term(cg_emitter *e, const norm *n, const reduction *r, LLVMValueRef column)
{
    LLVMValueRef address = line_pointer(e, n, column);
    LLVMValueRef value = cg_load(e, vector_type(e), address, vector_bytes(e));
    if (r->map != NULL) {
        value = r->map(e, n, value);
        cg_store(e, value, address, vector_bytes(e));
    }
    return r->term != NULL ? r->term(e, n, value) : value;
}

/* Reduces the whole vectors from..to; each iteration adds one vector to each of `chains` chains. */
static void reduce_vectors(cg_emitter *e, const norm *n, const reduction *r, LLVMValueRef source, LLVMValueRef target,
                           int chains, LLVMValueRef *chain)
{
    int lanes = e->target->lanes;
    LLVMValueRef next_value[CHAINS];
    cg_loop loop;
    cg_loop_begin(e, &loop, source, target, (int64_t)chains * lanes, chains, chain, true);
    for (int i = 0; i < chains; i++) {
        LLVMValueRef column = cg_iadd(e, loop.index, cg_int(e, (int64_t)i * lanes));
        next_value[i] = r->combine(e, line_term(e, n, r, column), loop.carried[i]);
    }
    cg_loop_end(e, &loop, next_value);
    for (int i = 0; i < chains; i++) chain[i] = loop.out[i];
}

static void reduce_line(cg_emitter *e, const norm *n, const reduction *r, LLVMValueRef *chain)
{
    LLVMValueRef iterations = cg_round_down(e, n->whole, (int64_t)CHAINS * e->target->lanes);
    reduce_vectors(e, n, r, cg_int(e, 0), iterations, CHAINS, chain);
    reduce_vectors(e, n, r, iterations, n->whole, 1, chain);
    if (!has_tail(e, n)) return;
    LLVMValueRef tail = select_tail(e, n, line_term(e, n, r, n->whole), r->identity);
    chain[0] = r->combine(e, tail, chain[0]);
}

/* Reduces the row to a scalar. */
static LLVMValueRef reduce_row(cg_emitter *e, norm *n, const reduction *r)
{
    LLVMValueRef chain[CHAINS];
    for (int i = 0; i < CHAINS; i++) chain[i] = cg_const(e, vector_type(e), r->identity);
    if (n->kept_count > 0)
        reduce_kept(e, n, r, chain);
    else
        reduce_line(e, n, r, chain);
    for (int width = CHAINS / 2; width > 0; width /= 2)
        for (int i = 0; i < width; i++) chain[i] = r->combine(e, chain[i], chain[i + width]);
    return cg_reduce(e, chain[0], r->combine);
}

static LLVMValueRef reciprocal(cg_emitter *e, LLVMValueRef x) { return cg_fdiv(e, cg_const(e, e->f32, 1), x); }

static LLVMValueRef mean(cg_emitter *e, norm *n, const reduction *r)
{
    LLVMValueRef weight = reciprocal(e, LLVMBuildSIToFP(e->builder, n->columns, e->f32, ""));
    return cg_fmul(e, reduce_row(e, n, r), weight);
}

static LLVMValueRef inverse_deviation(cg_emitter *e, norm *n, const reduction *squares)
{
    LLVMValueRef variance = cg_fadd(e, mean(e, n, squares), cg_const(e, e->f32, n->k->epsilon));
    return reciprocal(e, cg_sqrt(e, variance));
}

/* Sets factor and offset, and maps the kept values to the values that these apply to. */
static void find_statistics(cg_emitter *e, norm *n)
{
    int lanes = e->target->lanes;
    n->factor = n->offset = NULL;
    switch (n->k->mode) {
    case PL_NORM_LAYER:
        n->shift = cg_splat(e, mean(e, n, &sum_of_values), lanes);
        n->factor = cg_splat(e, inverse_deviation(e, n, &sum_of_shifted_squares), lanes);
        return;
    case PL_NORM_RMS: n->factor = cg_splat(e, inverse_deviation(e, n, &sum_of_squares), lanes); return;
    case PL_NORM_SOFTMAX:
        n->shift = cg_splat(e, reduce_row(e, n, &largest_value), lanes);
        n->factor = cg_splat(e, reciprocal(e, reduce_row(e, n, &sum_of_new_exponentials)), lanes);
        return;
    case PL_NORM_LOG_SOFTMAX:
        n->shift = cg_splat(e, reduce_row(e, n, &largest_value), lanes);
        n->offset = cg_splat(e, cg_log(e, reduce_row(e, n, &sum_of_exponentials_of_shifted)), lanes);
        return;
    }
}

static LLVMValueRef normalise(cg_emitter *e, const norm *n, LLVMValueRef value)
{
    return n->factor != NULL ? cg_fmul(e, value, n->factor) : cg_fsub(e, value, n->offset);
}

static LLVMValueRef column_parameter(cg_emitter *e, const norm *n, int buffer, LLVMValueRef column, int lanes)
{
    return cg_load(e, cg_vector(e, e->f32, lanes), cg_at(e, e->f32, n->buffers[buffer], column), 0);
}

/* Applies scale, shift and epilogue to the columns from `column` on, and stores them. */
static void write_result(cg_emitter *e, const norm *n, LLVMValueRef column, LLVMValueRef value)
{
    const pl_norm *k = n->k;
    int lanes = cg_lanes(value);
    LLVMValueRef gamma = k->gamma >= 0 ? column_parameter(e, n, k->gamma, column, lanes) : NULL;
    LLVMValueRef beta = k->beta >= 0 ? column_parameter(e, n, k->beta, column, lanes) : NULL;
    if (gamma != NULL && beta != NULL)
        value = cg_fma(e, value, gamma, beta);
    else if (gamma != NULL)
        value = cg_fmul(e, value, gamma);
    else if (beta != NULL)
        value = cg_fadd(e, value, beta);
    if (k->epilogue != NULL) value = evaluate(e, n, k->epilogue, column, lanes, value);
    store_columns(e, n, &k->out, column, value);
}

static void write_kept(cg_emitter *e, const norm *n)
{
    int lanes = e->target->lanes, tail = tail_columns(e, n);
    for (int i = 0; i < n->kept_count; i++) {
        LLVMValueRef value = normalise(e, n, n->kept[i]);
        if (tail > 0 && i == n->kept_count - 1) value = cg_resize(e, value, tail, 0);
        write_result(e, n, cg_int(e, (int64_t)i * lanes), value);
    }
}

static LLVMValueRef read_line(cg_emitter *e, const norm *n, LLVMValueRef column)
{
    return cg_load(e, vector_type(e), line_pointer(e, n, column), vector_bytes(e));
}

static void write_from_line(cg_emitter *e, const norm *n)
{
    CG_FOR (e, loop, cg_int(e, 0), n->whole, e->target->lanes)
        write_result(e, n, loop.index, normalise(e, n, read_line(e, n, loop.index)));
    if (!has_tail(e, n)) return;
    LLVMValueRef tail = normalise(e, n, read_line(e, n, n->whole));
    if (columns_known(n)) {
        write_result(e, n, n->whole, cg_resize(e, tail, tail_columns(e, n), 0));
        return;
    }
    cg_store(e, tail, line_pointer(e, n, n->whole), vector_bytes(e));
    CG_FOR (e, loop, n->whole, n->columns, 1)
        write_result(e, n, loop.index, cg_load(e, e->f32, line_pointer(e, n, loop.index), 0));
}

/* Row vectors kept in registers; 0 if the row goes through scratch. A tile's accumulators are the registers that a loop
 * may fill. A third is reserved for the passes. */
static int kept_vectors(const pl_norm *k, const cg_cpu_target *target)
{
    int capacity = target->tile_rows * target->tile_vectors * 2 / 3;
    if (!ir_dim_is_number(k->columns)) return 0;
    int64_t vectors = (k->columns.offset + target->lanes - 1) / target->lanes;
    return vectors <= capacity && vectors <= MAX_KEPT_VECTORS ? (int)vectors : 0;
}

static int64_t scratch_bytes(const pl_plan *plan, const pl_kernel *kernel, const cg_cpu_target *target)
{
    const pl_norm *k = &kernel->norm;
    if (kept_vectors(k, target) > 0) return 0;
    return (ir_dim_most(k->columns, 1, plan->max_length) + target->lanes) * 4;
}

static void emit(cg_emitter *e, const pl_plan *plan, const pl_kernel *kernel, const LLVMValueRef *buffers,
                 LLVMValueRef scratch)
{
    const pl_norm *k = &kernel->norm;
    norm n = {.plan = plan, .k = k, .buffers = buffers, .line = scratch, .columns = cg_dim(e, k->columns)};
    n.whole = cg_round_down(e, n.columns, e->target->lanes);
    n.kept_count = kept_vectors(k, e->target);
    LLVMValueRef row_count = cg_loop_extent(e, kernel, 0, k->rows, buffers);
    cg_range slice = pl_is_split(plan, kernel) ? cg_slice_of(e, row_count) : (cg_range){cg_int(e, 0), row_count};
    CG_FOR (e, rows, slice.from, slice.to, 1) {
        n.row = rows.index;
        (n.kept_count > 0 ? hold_row : write_line)(e, &n);
        find_statistics(e, &n);
        (n.kept_count > 0 ? write_kept : write_from_line)(e, &n);
    }
}

static void sign(const pl_kernel *kernel, cg_signature_writer *w)
{
    const pl_norm *k = &kernel->norm;
    cg_signature_add(w, k->mode);
    cg_signature_add_dim(w, k->rows);
    cg_signature_add_dim(w, k->columns);
    cg_signature_add_expr(w, k->input);
    cg_signature_add_real(w, k->epsilon);
    cg_signature_add_buffer(w, k->gamma);
    cg_signature_add_buffer(w, k->beta);
    cg_signature_add_expr(w, k->epilogue);
    cg_signature_add_matrix(w, &k->out);
    cg_signature_add_matrix(w, &k->sum);
}

const cg_kind_ops cg_norm_kind = {.emit = emit, .scratch_bytes = scratch_bytes, .sign = sign};
