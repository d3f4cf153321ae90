/* cuda_sequential.c — running sums, and the k best of each line.
 *
 * Running sums of short lines take a thread per line. Otherwise a warp takes a line: each lane adds up its part of
 * the line, the lanes exchange their sums, and each lane goes through its part again. Floating sums run in f64, as
 * on CPUs, and the order of additions is fixed by the line's extent, so results are reproducible.
 *
 * For the k best, a thread takes an element and counts the elements that rank before it. This number is the
 * element's place in the result. The work is quadratic, but needs neither barriers nor memory, and all threads take
 * part in it. */
#include "codegen/cuda/cuda_stages.h"
#include "codegen/cuda/cuda_step.h"
#include "codegen/cuda/cuda_text.h"

#include <inttypes.h>

enum { SHORT_LINE = 32 }; /* elements that a single thread adds up */

static const ir_type *input_type(const cu_function *f)
{
    return &cu_buffer(f, f->step->kernel->sequential.input[0])->type;
}

static const char *sum_type(cu_function *f, int buffer)
{
    return cu_buffer(f, buffer)->type.dtype == MDOT_DTYPE_F32 ? "double" : cu_checked_type(f, buffer);
}

static void emit_cumulate(cu_function *f)
{
    const pl_sequential *k = &f->step->kernel->sequential;
    const ir_type *type = input_type(f);
    cu_axis a = cu_axis_of(f, type, k->axis);
    int64_t longest = cu_extent_range(type->dim[k->axis], f->layout->stages->plan->max_length).high + 1;
    int lanes = longest > SHORT_LINE ? CU_WARP : 1;
    const char *sum = sum_type(f, k->input[0]), *to_type = cu_checked_type(f, k->output[0]);
    const char *place = k->reverse ? "start + (extent - 1 - i) * inner" : "start + i * inner";
    const char *x = cu_element_at(f, k->input[0], place, "x");
    cu_put_points(f, ir_arena_printf(f->arena, "%s * %s * %d", a.outer_count, a.inner, lanes));
    cu_put(&f->body,
           "        const int extent = %s, inner = %s, line = point / %d, part = (extent + %d) / %d;\n"
           "        const int start = (%s + line / inner) * extent * inner + line %% inner;\n"
           "        const int begin = min(point %% %d * part, extent), end = min(begin + part, extent);\n",
           a.extent, a.inner, lanes, lanes - 1, lanes, a.outer_start, lanes);
    if (lanes == 1)
        cu_put(&f->body, "        %s sum = 0;\n", sum);
    else
        cu_put(&f->body,
               "        %s total = 0;\n"
               "        for (int i = begin; i < end; i++) total = plus(total, (%s)%s);\n"
               "        %s sum = sum_below(total);\n",
               sum, sum, x, sum);
    cu_put(&f->body,
           "        for (int i = begin; i < end; i++) {\n"
           "            const %s after = plus(sum, (%s)%s);\n"
           "            const %s value = (%s)%s;\n",
           sum, sum, x, to_type, to_type, k->exclusive ? "sum" : "after");
    cu_store_at(f, k->output[0], place, "value", "            ");
    cu_put(&f->body, "            sum = after;\n        }\n    }\n");
}

static void emit_top_k(cu_function *f)
{
    const pl_sequential *k = &f->step->kernel->sequential;
    const ir_type *out = &cu_buffer(f, k->output[0] >= 0 ? k->output[0] : k->output[1])->type;
    cu_axis a = cu_axis_of(f, input_type(f), k->axis);
    const char *type = cu_checked_type(f, k->input[0]);
    cu_put_points(f, ir_arena_printf(f->arena, "%s * %s * %s", a.outer_count, a.inner, a.extent));
    cu_put(&f->body,
           "        const int extent = %s, inner = %s, best = %s, own = point / inner %% extent;\n"
           "        const int outer = %s + point / inner / extent, column = point %% inner;\n"
           "        const int start = outer * extent * inner + column;\n"
           "        const %s x = %s;\n",
           a.extent, a.inner, cu_product_text(f, out, k->axis, k->axis + 1), a.outer_start, type,
           cu_element_at(f, k->input[0], "start + own * inner", "in"));
    cu_put(&f->body,
           "        int rank = 0; // the elements before this one\n"
           "        for (int i = 0; i < extent && rank < best; i++) {\n"
           "            const %s y = %s;\n"
           "            rank += %s || (i < own && !%s);\n"
           "        }\n"
           "        if (rank >= best) continue;\n",
           type, cu_element_at(f, k->input[0], "start + i * inner", "in"),
           k->largest ? "ranks_above(y, x)" : "ranks_above(x, y)",
           k->largest ? "ranks_above(x, y)" : "ranks_above(y, x)");
    const char *place = "(outer * best + rank) * inner + column";
    if (k->output[0] >= 0) cu_store_at(f, k->output[0], place, "x", "        ");
    if (k->output[1] >= 0) cu_store_at(f, k->output[1], place, "own", "        ");
    cu_put(&f->body, "    }\n");
}

static void note_accesses(cu_step_finder *f)
{
    const pl_sequential *k = &f->step->kernel->sequential;
    f->step->access_count = 0;
    cu_note_lines(f, k->input[0], false);
    for (int i = 0; i < 2; i++) cu_note_lines(f, k->output[i], true);
}

/* Few lines are summed by block 0, because a warp takes each; few elements are ranked by it. */
static bool is_small(const pl_sequential *k, const ir_type *type)
{
    if (k->operation == PL_SEQ_TOP_K) {
        int64_t elements = cu_fixed_count(type, 0, type->rank);
        return elements >= 0 && elements < CU_MIN_FREE_POINTS;
    }
    int64_t outer = cu_fixed_count(type, 0, k->axis), inner = cu_fixed_count(type, k->axis + 1, type->rank), lines;
    return outer >= 0 && inner >= 0 && !__builtin_mul_overflow(outer, inner, &lines) && lines < CU_MIN_FREE_ROWS;
}

static bool find_lines(cu_step_finder *f, const pl_kernel *kernel)
{
    const pl_sequential *k = &kernel->sequential;
    const ir_type *type = &f->buffers[k->input[0]].type;
    cu_step *s = cu_add_step(f, kernel, CU_WHOLE);
    if (s == NULL) return false;
    if (cu_tile_outer(f, type, k->axis)) {
        note_accesses(f);
        if (cu_writes_locally(s)) return true;
    }
    s->distribution = f->is_one_block || is_small(k, type) ? CU_SINGLE : CU_FREE;
    s->scale = 1;
    note_accesses(f);
    return true;
}

static bool is_along_lines(const pl_kernel *kernel)
{
    return kernel->sequential.operation == PL_SEQ_CUMULATE || kernel->sequential.operation == PL_SEQ_TOP_K;
}

static bool find_steps(cu_step_finder *f, const pl_kernel *kernel)
{
    return is_along_lines(kernel) ? find_lines(f, kernel) : cu_find_scatter(f, kernel);
}

static void emit(cu_function *f)
{
    const pl_kernel *kernel = f->step->kernel;
    if (!is_along_lines(kernel))
        cu_emit_scatter(f);
    else if (kernel->sequential.operation == PL_SEQ_CUMULATE)
        emit_cumulate(f);
    else
        emit_top_k(f);
}

const cu_step_kind cu_sequential_kind = {
    .find_steps = find_steps, .emit = emit, .stores_in_any_order = true, /* the best element may be any thread's */
};
