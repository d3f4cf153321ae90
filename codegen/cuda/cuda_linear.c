/* cuda_linear.c — out = epilogue(a weight + bias) for a tile's rows.
 *
 * There are three forms. With matrix instructions, a warp takes 16 columns and steps through k by 16. Weights come from
 * global memory as fragments (fragments.c), with the loads of eight steps in flight; `a` comes from shared memory by
 * ldmatrix. In f32, a thread takes one column of eight rows. For few rows (the head), k is split over the threads
 * instead. */
#include "codegen/cuda/cuda_program.h"
#include "codegen/cuda/cuda_stages.h"
#include "codegen/cuda/cuda_step.h"
#include "codegen/cuda/cuda_target.h"
#include "codegen/cuda/cuda_text.h"
#include "codegen/cuda/memory_placement.h"
#include "plan/expr.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    MIN_ROWS = 8,      /* with fewer rows, distributing only rows would leave most threads idle */
    MAX_ROW_TILES = 4, /* tiles of 16 rows whose sums a warp keeps at once */
    STEPS_AHEAD = 8, /* steps of k whose weights are loaded together; twice as many in a cluster, with fewer columns */
    STAGE_PAD = 8    /* elements after a staged row, against bank conflicts */
};

static int64_t tile_rows(const cu_step *step, const cu_schedule *schedule)
{
    return step->distribution == CU_SINGLE ? step->scale : step->scale * schedule->tile_units;
}

static int64_t row_tiles(const cu_step *step, const cu_schedule *schedule)
{
    int64_t tiles = (tile_rows(step, schedule) + CU_ROWS - 1) / CU_ROWS;
    return tiles < MAX_ROW_TILES ? tiles : MAX_ROW_TILES;
}

/* Few rows, computed once: a shape that matrix kernels never have, in any mode. */
static bool is_vector(const cu_step *step) { return step->distribution == CU_SINGLE && step->scale < MIN_ROWS; }

static int64_t whole_k(const pl_linear *k) { return (k->k + CU_FRAGMENT - 1) / CU_FRAGMENT * CU_FRAGMENT; }

/* True if ldmatrix can read `a` in place: 16-bit rows in shared memory, whole steps of k, 16-byte aligned. */
static bool reads_in_place(const pl_linear *k, const cu_location *a)
{
    if (k->windows != NULL || a->kind != CU_SHARED || k->k % CU_FRAGMENT != 0) return false;
    if (!ir_dim_is_number(k->a.offset) || !ir_dim_is_number(k->a.row_stride)) return false;
    int64_t offset = k->a.offset.offset, stride = k->a.row_stride.offset;
    bool is_aligned = offset % 8 == 0 && a->width % 8 == 0 && a->pitch % 8 == 0 && a->unit % 8 == 0;
    return is_aligned && stride % a->width == 0 && offset % a->width + k->k <= a->width;
}

/* Columns that threads take side by side. A block's remaining threads split k. */
static int64_t vector_columns(const pl_linear *k, int threads)
{
    int64_t columns = (k->columns + CU_WARP - 1) / CU_WARP * CU_WARP;
    while (threads % columns != 0 && columns < threads) columns += CU_WARP;
    return columns < threads ? columns : threads;
}

static size_t work_bytes(const cu_step *step, const cu_layout *layout)
{
    const pl_linear *k = &step->kernel->linear;
    const cu_schedule *schedule = layout->stages->schedule;
    if (!cu_is_matrix(layout, step)) {
        if (!is_vector(step)) return 0;
        int64_t parts = schedule->threads / vector_columns(k, schedule->threads);
        return parts > 1 ? (size_t)(parts * tile_rows(step, schedule) * k->columns) * sizeof(float) : 0;
    }
    if (reads_in_place(k, &layout->placements[k->a.buffer].half)) return 0;
    return (size_t)(row_tiles(step, schedule) * CU_ROWS * (whole_k(k) + STAGE_PAD)) * sizeof(uint16_t);
}

static bool loads_buffer(const pl_expr *e, int buffer)
{
    if (e == NULL) return false;
    if (e->op == PL_LOAD && e->i == buffer) return true;
    for (int k = 0; k < pl_expr_operand_count(e->op); k++)
        if (loads_buffer(e->arg[k], buffer)) return true;
    return false;
}

/* `a` is read first, into shared memory or into sums. The epilogue's operands are read after the barrier. */
static unsigned reads(const cu_step *step, int buffer)
{
    const pl_linear *k = &step->kernel->linear;
    if (buffer != k->a.buffer) return CU_AFTER_BARRIER;
    return loads_buffer(k->epilogue, buffer) ? CU_BEFORE_BARRIER | CU_AFTER_BARRIER : CU_BEFORE_BARRIER;
}

/* The result's text, given the text of the sum with the bias. */
static const char *value_text(cu_function *f, const char *acc)
{
    const pl_linear *k = &f->step->kernel->linear;
    return k->epilogue != NULL ? cu_expression(f, k->epilogue, acc) : acc;
}

/* The bias, padded with zeros to whole fragments. */
static const char *bias_pointer(cu_function *f)
{
    const pl_linear *k = &f->step->kernel->linear;
    int64_t padded = cu_fragment_groups(k->columns) * CU_FRAGMENT;
    float *bias = calloc((size_t)padded, sizeof *bias);
    if (bias == NULL) {
        f->status = mdot_fail(f->err, MDOT_OUT_OF_MEMORY, NULL);
        return "";
    }
    memcpy(bias, cu_buffer(f, k->bias)->constant->data, (size_t)k->columns * sizeof *bias);
    const char *name = cu_weight_pointer(f, "bias", "float", bias, (size_t)padded * sizeof *bias);
    free(bias);
    return name;
}

/* True if columns 2c and 2c + 1 can be written at once in every location. */
static bool stores_pairs(const cu_function *f)
{
    const pl_linear *k = &f->step->kernel->linear;
    const cu_placement *placement = cu_placement_of(f, k->out.buffer);
    const cu_location *locations[] = {&placement->plain, &placement->half, &placement->output};
    if (k->columns % 2 != 0 || !ir_dim_is_multiple(k->out.offset, 2) || !ir_dim_is_multiple(k->out.row_stride, 2))
        return false;
    for (int i = 0; i < 3; i++) {
        const cu_location *p = locations[i];
        if (p->kind == CU_SHARED && (p->width % 2 != 0 || p->pitch % 2 != 0 || p->unit % 2 != 0)) return false;
    }
    return true;
}

static void put_pair(cu_function *f, const pl_expr *index, const cu_location *location, const char *name_hint)
{
    if (location->kind == CU_UNPLACED) return;
    const char *element = cu_element(f, f->step->kernel->linear.out.buffer, location, index, name_hint);
    cu_put(&f->body, "%s",
           cu_store_text(f, location, element, "store_pair(&", ", value[0], value[1])", "                    "));
}

/* Applies the epilogue to a warp's 16 columns of sums, which are fragments, and stores them. */
static void put_fragment_results(cu_function *f)
{
    const pl_linear *k = &f->step->kernel->linear;
    const pl_expr *index = cu_matrix_index(f, &k->out);
    bool is_whole = k->columns % CU_FRAGMENT == 0, is_odd = k->columns % 2 != 0;
    const cu_term terms[] = {{"IN_COLUMNS", is_whole ? "" : " && column < COLUMNS"},
                             {"COLUMN", is_odd ? "min(column + e, COLUMNS - 1)" : "column + e"},
                             {"BIAS", k->bias >= 0 ? " + bias_of[j][e]" : ""},
                             {"VALUE", value_text(f, "acc")},
                             {0}};
    cu_put_template(&f->body, cu_linear_results, terms);
    if (stores_pairs(f)) {
        const cu_placement *placement = cu_placement_of(f, k->out.buffer);
        cu_put(&f->body, "                    const int i1 = column;\n");
        put_pair(f, index, &placement->plain, "out");
        put_pair(f, index, &placement->half, "out_half");
        put_pair(f, index, &placement->output, "result");
    } else {
        cu_put(&f->body, "                    for (int e = 0; e < 2; e++) {\n"
                         "                        const int i1 = column + e;\n");
        if (is_odd) cu_put(&f->body, "                        if (i1 == COLUMNS) continue;\n");
        cu_store(f, k->out.buffer, index, "value[e]", "                        ");
        cu_put(&f->body, "                    }\n");
    }
    cu_put(&f->body, "                }\n            }\n");
}

static const char *fragment_pointer(cu_function *f)
{
    const pl_linear *k = &f->step->kernel->linear;
    size_t size_bytes = cu_fragment_bytes(k->k, k->columns);
    void *fragments = malloc(size_bytes);
    if (fragments == NULL) {
        f->status = mdot_fail(f->err, MDOT_OUT_OF_MEMORY, NULL);
        return "";
    }
    cu_pack_fragments(cu_buffer(f, k->weight)->constant, k->k, k->columns, f->layout->kernel_precision, fragments);
    const char *name = cu_weight_pointer(f, "weight", "fragment", fragments, size_bytes);
    free(fragments);
    return name;
}

/* Adds the distance to position `index`, in row-major order. */
static const pl_expr *add_distance(cu_function *f, const pl_window_dims *dims, const pl_expr *index, const pl_expr *sum)
{
    for (int d = dims->count - 1; d >= 0; d--) {
        const pl_expr *extent = pl_dim(f->arena, dims->extent[d]), *position = index;
        if (d > 0) {
            position = pl_binary(f->arena, PL_PYMOD, index, extent);
            index = pl_binary(f->arena, PL_FLOORDIV, index, extent);
        }
        const pl_expr *step = pl_binary(f->arena, PL_MUL, position, pl_dim(f->arena, dims->stride[d]));
        sum = pl_binary(f->arena, PL_ADD, sum, step);
    }
    return sum;
}

static const pl_expr *a_index(cu_function *f)
{
    const pl_linear *k = &f->step->kernel->linear;
    if (k->windows == NULL) return cu_matrix_index(f, &k->a);
    const pl_expr *row = pl_index(f->arena, 0), *column = pl_index(f->arena, 1);
    const pl_expr *first = add_distance(f, &k->windows->rows, row, pl_dim(f->arena, k->a.offset));
    return add_distance(f, &k->windows->columns, column, first);
}

/* Element of `a` in row i0 (r in the tile) and column i1, here the index over k. */
static const char *a_element(cu_function *f, const cu_location *location)
{
    const pl_linear *k = &f->step->kernel->linear;
    cu_step reading = *f->step;
    const cu_step *step = f->step;
    reading.space.loop[1] = cu_range_between(0, k->k - 1);
    f->step = &reading;
    const char *element = cu_element(f, k->a.buffer, location, a_index(f), "a");
    f->step = step;
    return element;
}

static bool dims_divide(int64_t divisor, const pl_window_dims *dims, int count)
{
    for (int d = 0; d < count; d++)
        if (!ir_dim_is_multiple(dims->stride[d], divisor)) return false;
    return true;
}

/* True if `count` elements at multiples of `count` are adjacent and aligned in each row of `a`. */
static bool has_aligned_runs(const pl_linear *k, int64_t count)
{
    if (!ir_dim_is_multiple(k->a.offset, count)) return false;
    if (k->windows == NULL) return ir_dim_is_multiple(k->a.row_stride, count);
    const pl_window_dims *rows = &k->windows->rows, *columns = &k->windows->columns;
    return dims_divide(count, rows, rows->count) && dims_divide(count, columns, columns->count - 1) &&
           ir_dim_is_multiple(columns->extent[columns->count - 1], count);
}

/* Copies rows of `a` into shared memory as 16-bit elements, padded with zeros after k. */
static void put_staging(cu_function *f)
{
    enum { PARALLELISM_INPUTS = 8 }; /* elements per cp.async */
    const pl_linear *k = &f->step->kernel->linear;
    const cu_placement *placement = cu_placement_of(f, k->a.buffer);
    const cu_location *source = placement->half.kind != CU_UNPLACED ? &placement->half : &placement->plain;
    bool is_copy = source->is_half && source->kind == CU_SCRATCH && k->k % CU_FRAGMENT == 0 &&
                   has_aligned_runs(k, PARALLELISM_INPUTS);
    const char *element = a_element(f, source), *rounded = source->is_half ? "" : "to_half";
    cu_put(&f->body,
           "        for (int i = threadIdx.x; i < min(rows - first, TILES * 16) * (STEPS * 16 / %d); i += %d) {\n"
           "            const int r = first + i / (STEPS * 16 / %d), i0 = t.first * SCALE + r;\n"
           "            const int i1 = i %% (STEPS * 16 / %d) * %d;\n"
           "            half_t *const to = staged + (r - first) * PITCH + i1;\n",
           is_copy ? PARALLELISM_INPUTS : 1, cu_threads(f), is_copy ? PARALLELISM_INPUTS : 1,
           is_copy ? PARALLELISM_INPUTS : 1, is_copy ? PARALLELISM_INPUTS : 1);
    if (is_copy)
        cu_put(&f->body, "            cp_async_16(to, &%s);\n", element);
    else if (k->k % CU_FRAGMENT == 0)
        cu_put(&f->body, "            *to = %s(%s);\n", rounded, element);
    else
        cu_put(&f->body, "            *to = i1 < %" PRId64 " ? %s(%s) : to_half(0.0f);\n", k->k, rounded, element);
    cu_put(&f->body, "        }\n");
    if (is_copy) cu_put(&f->body, "        cp_async_wait_all();\n");
    cu_put(&f->body, "        __syncthreads(); // a's rows are there\n");
}

/* While a warp multiplies, it loads the next k steps: for the same columns, or the next column group. */
static void put_sums(cu_function *f, const char *a, const char *row_origin)
{
    int split = cu_split(f->layout, f->step);
    const char *warps = ir_arena_printf(f->arena, "%d", cu_warps(f) * split);
    const char *chains = split > 1 ? "2" : "1"; /* in a cluster, a warp has few sums and would wait for each */
    cu_put(&f->body,
           "        for (int group = warp; group < GROUPS; group += %s) {\n"
           "            float chain[%s][TILES][2][4] = {};\n",
           warps, chains);
    if (f->step->kernel->linear.bias >= 0)
        cu_put_template(&f->body, cu_linear_bias, (const cu_term[]){{"BIAS", bias_pointer(f)}, {0}});
    const cu_term terms[] = {{"WARPS", warps}, {"CHAINS", chains}, {"A", a}, {"ROW_ORIGIN", row_origin}, {0}};
    cu_put_template(&f->body, cu_linear_sums, terms);
}

static void put_shape(cu_function *f, int64_t pitch)
{
    const pl_linear *k = &f->step->kernel->linear;
    int split = cu_split(f->layout, f->step);
    int64_t steps = whole_k(k) / CU_FRAGMENT, ahead = split > 1 ? 2 * STEPS_AHEAD : STEPS_AHEAD;
    if (ahead > steps) ahead = steps;
    while (steps % ahead != 0) ahead--;
    cu_put(&f->body,
           "    enum { COLUMNS = %" PRId64 ", GROUPS = %" PRId64 ", STEPS = %" PRId64 ", AHEAD = %" PRId64
           ", TILES = %" PRId64 ", PITCH = %" PRId64 ", SCALE = %" PRId64 " };\n"
           "    const int lane = threadIdx.x %% 32, warp = threadIdx.x / 32%s, rows = t.count * SCALE;\n"
           "    const fragment *const w = %s + lane;\n",
           k->columns, cu_fragment_groups(k->columns), steps, ahead, row_tiles(f->step, cu_schedule_of(f)), pitch,
           f->step->scale, split > 1 ? ir_arena_printf(f->arena, " * %d + cluster_rank()", split) : "",
           fragment_pointer(f));
}

static void emit_tensor(cu_function *f)
{
    const pl_linear *k = &f->step->kernel->linear;
    const cu_location *location = &cu_placement_of(f, k->a.buffer)->half;
    bool in_place = reads_in_place(k, location),
         several = tile_rows(f->step, cu_schedule_of(f)) > row_tiles(f->step, cu_schedule_of(f)) * CU_ROWS;
    int64_t stride = k->a.row_stride.offset, offset = k->a.offset.offset;
    put_shape(f, in_place ? stride / location->width * location->pitch : whole_k(k) + STAGE_PAD);
    const char *a = "staged";
    if (in_place)
        a = ir_arena_printf(f->arena, "%s + %" PRId64, cu_pointer(f, k->a.buffer, location, "a"),
                            offset / location->width * location->pitch + offset % location->width);
    else
        cu_work_pointer(f, "half_t", "staged");
    cu_put(&f->body, several ? "    for (int first = 0; first < rows; first += TILES * 16) {\n"
                             : "    const int first = 0;\n    {\n");
    cu_put(&f->body, "        fragment b[AHEAD] = {};\n"
                     "        if (warp < GROUPS) {\n"
                     "#pragma unroll\n"
                     "            for (int j = 0; j < AHEAD; j++) b[j] = w[(warp * STEPS + j) * 32];\n"
                     "        }\n");
    cu_sync_first(f, several ? "if (first == 0) " : "");
    if (!in_place) put_staging(f);
    put_sums(f, a, in_place ? "" : " - first");
    put_fragment_results(f);
    cu_put(&f->body, "        }\n");
    if (several && !in_place)
        cu_put(&f->body, "        if (first + TILES * 16 < rows) __syncthreads(); // a's rows are read\n");
    cu_put(&f->body, "    }\n");
}

static const char *dense_weight(cu_function *f)
{
    const pl_linear *k = &f->step->kernel->linear;
    const ir_tensor *weight = cu_buffer(f, k->weight)->constant;
    return cu_weight_pointer(f, "weight", "float", weight->data, (size_t)(k->k * k->columns) * sizeof(float));
}

static const char *plain_a(cu_function *f)
{
    return a_element(f, &cu_placement_of(f, f->step->kernel->linear.a.buffer)->plain);
}

/* "sum" plus the bias in column i1. */
static const char *biased(cu_function *f, const char *sum)
{
    if (f->step->kernel->linear.bias < 0) return sum;
    return ir_arena_printf(f->arena, "%s + %s[i1]", sum, bias_pointer(f));
}

static const char *number(cu_function *f, int64_t value) { return cu_integer_text(f->arena, value); }

static void emit_rows(cu_function *f)
{
    const pl_linear *k = &f->step->kernel->linear;
    /* in the order in which the kernel declares the pointers */
    const char *weight = dense_weight(f), *a = plain_a(f), *sum = biased(f, "sum[j]");
    const cu_term terms[] = {{"SCALE", number(f, f->step->scale)},
                             {"COLUMNS", number(f, k->columns)},
                             {"THREADS", number(f, cu_threads(f))},
                             {"K", number(f, k->k)},
                             {"WEIGHT", weight},
                             {"A", a},
                             {"SUM", sum},
                             {"VALUE", value_text(f, "acc")},
                             {0}};
    cu_put_template(&f->body, cu_linear_rows, terms);
    cu_store(f, k->out.buffer, cu_matrix_index(f, &k->out), "value", "                ");
    cu_put(&f->body, "            }\n        }\n    }\n");
}

static void put_vector_result(cu_function *f, const char *sum)
{
    const pl_linear *k = &f->step->kernel->linear;
    cu_put(&f->body, "            const int i1 = column;\n");
    cu_put(&f->body, "            const float acc = %s;\n", biased(f, sum));
    cu_put(&f->body, "            const float value = %s;\n", value_text(f, "acc"));
    cu_store(f, k->out.buffer, cu_matrix_index(f, &k->out), "value", "            ");
}

static void emit_vector(cu_function *f)
{
    const pl_linear *k = &f->step->kernel->linear;
    int64_t columns = vector_columns(k, cu_threads(f)), parts = cu_threads(f) / columns,
            rows = tile_rows(f->step, cu_schedule_of(f));
    const char *weight = dense_weight(f);
    if (parts > 1) cu_work_pointer(f, "float", "sums");
    const cu_term terms[] = {{"SIDE_BY_SIDE", number(f, columns)},
                             {"ROWS", number(f, rows)},
                             {"COLUMNS", number(f, k->columns)},
                             {"RESULTS", number(f, rows * k->columns)},
                             {"THREADS", number(f, cu_threads(f))},
                             {"K", number(f, k->k)},
                             {"PARTS", number(f, parts)},
                             {"WEIGHT", weight},
                             {"A", plain_a(f)},
                             {0}};
    cu_put_template(&f->body, cu_linear_vector, terms);
    if (parts > 1) cu_put_template(&f->body, cu_linear_parts, terms);
    put_vector_result(f, "sum");
    cu_put(&f->body, parts > 1 ? "    }\n" : "        }\n    }\n");
}

static void emit(cu_function *f)
{
    if (cu_is_matrix(f->layout, f->step))
        emit_tensor(f);
    else if (is_vector(f->step))
        emit_vector(f);
    else
        emit_rows(f);
}

static void note_accesses(cu_step_finder *f)
{
    const cu_step *s = f->step;
    const pl_linear *k = &s->kernel->linear;
    f->step->access_count = 0;
    if (k->windows != NULL)
        cu_note_access(f, k->a.buffer, false, cu_range_between(INT64_MIN, INT64_MAX));
    else
        cu_note_matrix(f, &k->a, false, cu_columns_range(k->k));
    cu_note_loads(f, k->epilogue);
    cu_note_matrix(f, &k->out, true, s->space.loop[1]);
}

static bool find_steps(cu_step_finder *f, const pl_kernel *kernel)
{
    if (cu_add_step(f, kernel, CU_WHOLE) == NULL) return false;
    cu_distribute_rows(f, kernel->linear.rows, ir_dim_number(kernel->linear.columns), note_accesses);
    return true;
}

static void visit_strides(const pl_kernel *kernel, cu_stride_visitor *visitor)
{
    const pl_linear *k = &kernel->linear;
    if (k->windows == NULL) cu_visit_stride(visitor, k->a.buffer, k->a.row_stride);
    cu_visit_stride(visitor, k->out.buffer, k->out.row_stride);
}

static const char *print_row_count(cu_function *f, const pl_kernel *kernel)
{
    return cu_dim_text(f, kernel->linear.rows);
}

const cu_step_kind cu_linear_kind = {
    .find_steps = find_steps,
    .visit_strides = visit_strides,
    .row_count = print_row_count,
    .work_bytes = work_bytes,
    .reads = reads,
    .emit = emit,
};
