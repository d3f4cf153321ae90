/* cuda_norm.c — layer and RMS normalisation and softmax of rows. A warp takes a row, and a lane takes every 32nd
 * column, which it keeps in registers. Therefore the input is computed once, and the mean is subtracted before
 * squaring. */
#include "codegen/cuda/cuda_stages.h"
#include "codegen/cuda/cuda_step.h"
#include "codegen/cuda/cuda_text.h"
#include "codegen/cuda/memory_placement.h"

#include <inttypes.h>

enum { MAX_COLUMNS = 2048 }; /* 64 registers per lane */

typedef struct row {         /* the row shape that all parts use */
    int64_t columns, values; /* values: number per lane */
    const char *guard;       /* "" if every value of all lanes has a column */
} row;

static void put_loop(cu_function *f, const row *w)
{
    cu_put(&f->body,
           "#pragma unroll\n"
           "        for (int v = 0; v < %" PRId64 "; v++) {\n"
           "            const int i1 = lane + v * 32;\n",
           w->values);
}

static void put_input(cu_function *f, const row *w)
{
    const pl_norm *k = &f->step->kernel->norm;
    cu_put(&f->body, "        float x[%" PRId64 "];\n", w->values);
    put_loop(f, w);
    if (w->guard[0] != 0) cu_put(&f->body, "            x[v] = 0.0f;\n            %s{\n", w->guard);
    cu_put(&f->body, "            x[v] = %s;\n", cu_expression(f, k->input, ""));
    if (k->sum.buffer >= 0) cu_store(f, k->sum.buffer, cu_matrix_index(f, &k->sum), "x[v]", "            ");
    cu_put(&f->body, "%s        }\n", w->guard[0] != 0 ? "            }\n" : "");
}

/* Reduces a row into `name`: lanes run `statement`, then `what` (warp_sum or warp_max) combines them. */
static void put_reduction(cu_function *f, const row *w, const char *name, const char *start, const char *statement,
                          const char *what)
{
    cu_put(&f->body, "        float %s = %s;\n", name, start);
    put_loop(f, w);
    cu_put(&f->body, "            %s%s;\n        }\n        %s = %s(%s);\n", w->guard, statement, name, what, name);
}

static void put_moments(cu_function *f, const row *w)
{
    const pl_norm *k = &f->step->kernel->norm;
    const char *weight = cu_float_text(f->arena, 1.0 / (double)w->columns);
    if (k->mode == PL_NORM_LAYER) {
        put_reduction(f, w, "mean", "0.0f", "mean += x[v]", "warp_sum");
        cu_put(&f->body, "        mean *= %s;\n", weight);
        put_reduction(f, w, "square", "0.0f", "square += (x[v] - mean) * (x[v] - mean)", "warp_sum");
    } else {
        put_reduction(f, w, "square", "0.0f", "square += x[v] * x[v]", "warp_sum");
    }
    cu_put(&f->body, "        const float scale = 1.0f / sqrtf(square * %s + %s);\n", weight,
           cu_float_text(f->arena, k->epsilon));
}

static void put_exponentials(cu_function *f, const row *w)
{
    put_reduction(f, w, "most", "-INFINITE", "most = fmaxf(most, x[v])", "warp_max");
    put_reduction(f, w, "total", "0.0f", "total += expf(x[v] - most)", "warp_sum");
    if (f->step->kernel->norm.mode == PL_NORM_LOG_SOFTMAX)
        cu_put(&f->body, "        const float shift = most + logf(total);\n");
    else
        cu_put(&f->body, "        const float scale = 1.0f / total;\n");
}

static const char *affine_parameter(cu_function *f, int buffer, const char *name_hint)
{
    return cu_pointer(f, buffer, &cu_placement_of(f, buffer)->plain, name_hint);
}

static const char *normalised(cu_function *f)
{
    const pl_norm *k = &f->step->kernel->norm;
    const char *text = NULL;
    switch (k->mode) {
    case PL_NORM_LAYER: text = "(x[v] - mean) * scale"; break;
    case PL_NORM_RMS: text = "x[v] * scale"; break;
    case PL_NORM_SOFTMAX: text = "expf(x[v] - most) * scale"; break;
    case PL_NORM_LOG_SOFTMAX: text = "x[v] - shift"; break;
    }
    if (k->gamma >= 0) text = ir_arena_printf(f->arena, "%s * %s[i1]", text, affine_parameter(f, k->gamma, "gamma"));
    if (k->beta >= 0) text = ir_arena_printf(f->arena, "%s + %s[i1]", text, affine_parameter(f, k->beta, "beta"));
    return text;
}

static void emit(cu_function *f)
{
    const pl_norm *k = &f->step->kernel->norm;
    if (!ir_dim_is_number(k->columns) || k->columns.offset > MAX_COLUMNS) {
        cu_refuse(f, "a norm requires rows of a fixed length of at most %d", MAX_COLUMNS);
        return;
    }
    row w = {.columns = k->columns.offset, .values = (k->columns.offset + 31) / 32, .guard = ""};
    if (w.columns % 32 != 0) w.guard = ir_arena_printf(f->arena, "if (i1 < %" PRId64 ") ", w.columns);
    cu_put(&f->body,
           "    const int lane = threadIdx.x %% 32, rows = t.count * %" PRId64 ";\n"
           "    for (int r = threadIdx.x / 32; r < rows; r += %d) {\n"
           "        const int i0 = t.first * %" PRId64 " + r;\n",
           f->step->scale, cu_warps(f), f->step->scale);
    put_input(f, &w);
    if (k->mode == PL_NORM_LAYER || k->mode == PL_NORM_RMS)
        put_moments(f, &w);
    else
        put_exponentials(f, &w);
    put_loop(f, &w);
    if (w.guard[0] != 0) cu_put(&f->body, "            %s{\n", w.guard);
    cu_put(&f->body, "            const float acc = %s;\n", normalised(f));
    const char *value = k->epilogue != NULL ? cu_expression(f, k->epilogue, "acc") : "acc";
    cu_put(&f->body, "            const float value = %s;\n", value);
    cu_store(f, k->out.buffer, cu_matrix_index(f, &k->out), "value", "            ");
    cu_put(&f->body, "%s        }\n    }\n", w.guard[0] != 0 ? "            }\n" : "");
}

static void note_accesses(cu_step_finder *f)
{
    const cu_step *s = f->step;
    const pl_norm *k = &s->kernel->norm;
    f->step->access_count = 0;
    cu_note_loads(f, k->input);
    cu_note_loads(f, k->epilogue);
    cu_note_matrix(f, &k->out, true, s->space.loop[1]);
    cu_note_matrix(f, &k->sum, true, s->space.loop[1]);
}

static bool find_steps(cu_step_finder *f, const pl_kernel *kernel)
{
    if (cu_add_step(f, kernel, CU_WHOLE) == NULL) return false;
    cu_distribute_rows(f, kernel->norm.rows, kernel->norm.columns, note_accesses);
    return true;
}

static void visit_strides(const pl_kernel *kernel, cu_stride_visitor *visitor)
{
    const pl_norm *k = &kernel->norm;
    cu_visit_stride(visitor, k->out.buffer, k->out.row_stride);
    cu_visit_stride(visitor, k->sum.buffer, k->sum.row_stride);
}

static const char *print_row_count(cu_function *f, const pl_kernel *kernel)
{
    return cu_dim_text(f, kernel->norm.rows);
}

const cu_step_kind cu_norm_kind = {
    .find_steps = find_steps,
    .visit_strides = visit_strides,
    .row_count = print_row_count,
    .emit = emit,
};
