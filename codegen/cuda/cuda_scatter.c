/* cuda_scatter.c — scatters: the data with updates at places that other data name.
 *
 * ScatterElements and ScatterND take two steps: the first copies the data, and the second updates the copy. Updates may
 * collide, so a thread takes all updates that could, in order: those of a line of ScatterElements' axis, or those of
 * one element of ScatterND's slices. The result is that of the CPU, with every reduction. For TensorScatter, a thread
 * takes an element of the result and finds its source.
 */
#include "codegen/cuda/cuda_step.h"

#include "codegen/cuda/cuda_text.h"

#include <inttypes.h>

static const ir_type *type_of(const cu_function *f, int buffer) { return &cu_buffer(f, buffer)->type; }

static void emit_copy(cu_function *f)
{
    const pl_sequential *k = &f->step->kernel->sequential;
    cu_axis a = cu_axis_of(f, type_of(f, k->input[0]), k->axis);
    cu_put_points(f, ir_arena_printf(f->arena, "%s * %s * %s", a.outer_count, a.extent, a.inner));
    cu_put(&f->body, "        const int at = %s * %s * %s + point;\n", a.outer_start, a.extent, a.inner);
    cu_store_at(f, k->output[0], "at", cu_element_at(f, k->input[0], "at", "x"), "        ");
    cu_put(&f->body, "    }\n");
}

/* The place of index number `cursor` in a dimension. */
static const char *place(cu_function *f, const char *cursor, ir_dim extent)
{
    const pl_sequential *k = &f->step->kernel->sequential;
    return ir_arena_printf(f->arena, "data_index(%s, %s)", cu_element_at(f, k->input[1], cursor, "index"),
                           cu_dim_text(f, extent));
}

/* Updates element `to` with element `from` of the updates. */
static void put_update(cu_function *f)
{
    static const char *const of_floats[] = {[PL_REDUCE_NONE] = "x",
                                            [PL_REDUCE_SUM] = "before + x",
                                            [PL_REDUCE_PROD] = "before * x",
                                            [PL_REDUCE_MAX] = "largest(before, x)",
                                            [PL_REDUCE_MIN] = "least(before, x)"};
    static const char *const of_integers[] = {[PL_REDUCE_NONE] = "x",
                                              [PL_REDUCE_SUM] = "wrap_add(before, x)",
                                              [PL_REDUCE_PROD] = "wrap_mul(before, x)",
                                              [PL_REDUCE_MAX] = "largest(before, x)",
                                              [PL_REDUCE_MIN] = "least(before, x)"};
    const pl_sequential *k = &f->step->kernel->sequential;
    const char *type = cu_checked_type(f, k->output[0]);
    bool is_float = type_of(f, k->output[0])->dtype == MDOT_DTYPE_F32;
    cu_put(&f->body, "            const %s x = %s;\n", type, cu_element_at(f, k->input[2], "from", "updates"));
    if (k->reduction != PL_REDUCE_NONE)
        cu_put(&f->body, "            const %s before = %s;\n", type, cu_element_at(f, k->output[0], "to", "out"));
    cu_put(&f->body, "            const %s value = %s;\n", type, (is_float ? of_floats : of_integers)[k->reduction]);
    cu_store_at(f, k->output[0], "to", "value", "            ");
}

/* True if the dimensions before the axis are those of the data, so both have the same outer indices. */
static bool has_same_outer(const ir_type *indices, const ir_type *data, int axis)
{
    for (int d = 0; d < axis; d++)
        if (!ir_dim_equal(indices->dim[d], data->dim[d])) return false;
    return true;
}

/* Splits `rest` into indices up to dimension `d`, and adds their contributions to both places. */
static void put_dimension(cu_function *f, const ir_type *indices, const ir_type *data, int d)
{
    cu_put(&f->body,
           "        to_start += rest %% %s * %s;\n"
           "        from_start += rest %% %s * %s;\n"
           "        rest /= %s;\n",
           cu_dim_text(f, indices->dim[d]), cu_product_text(f, data, d + 1, data->rank),
           cu_dim_text(f, indices->dim[d]), cu_product_text(f, indices, d + 1, indices->rank),
           cu_dim_text(f, indices->dim[d]));
}

/* The number of updates along an axis: all, or as many as input 3 says. */
static const char *update_count(cu_function *f, const char *extent)
{
    int count = f->step->kernel->sequential.input[3];
    if (count < 0) return extent;
    return ir_arena_printf(f->arena, "least((long long)(%s), %s)", extent, cu_element_at(f, count, "0", "count"));
}

static void emit_element_updates(cu_function *f)
{
    const pl_sequential *k = &f->step->kernel->sequential;
    const ir_type *indices = type_of(f, k->input[1]), *data = type_of(f, k->input[0]);
    cu_axis a = cu_axis_of(f, indices, k->axis);
    const char *inner = cu_product_text(f, data, k->axis + 1, data->rank);
    cu_put_points(f, ir_arena_printf(f->arena, "%s * %s", a.outer_count, a.inner));
    cu_put(&f->body, "        int rest = %s * %s + point, to_start = 0, from_start = 0;\n", a.outer_start, a.inner);
    for (int d = indices->rank - 1; d > k->axis; d--) put_dimension(f, indices, data, d);
    if (has_same_outer(indices, data, k->axis))
        cu_put(&f->body,
               "        to_start += rest * %s * %s;\n"
               "        from_start += rest * %s * %s;\n",
               cu_dim_text(f, data->dim[k->axis]), inner, a.extent, a.inner);
    else
        for (int d = k->axis - 1; d >= 0; d--) put_dimension(f, indices, data, d);
    cu_put(&f->body,
           "        for (int i = 0; i < %s; i++) {\n"
           "            const int from = from_start + i * %s;\n"
           "            const int to = to_start + %s * %s;\n",
           update_count(f, a.extent), a.inner, place(f, "from", data->dim[k->axis]), inner);
    put_update(f);
    cu_put(&f->body, "        }\n    }\n");
}

static int64_t coordinates(const ir_type *indices)
{
    return indices->dim[indices->rank - 1].offset; /* fixed by the shape rule */
}

static void emit_slice_updates(cu_function *f)
{
    const pl_sequential *k = &f->step->kernel->sequential;
    const ir_type *indices = type_of(f, k->input[1]), *data = type_of(f, k->input[0]);
    int64_t count = coordinates(indices);
    const char *slice = cu_product_text(f, data, (int)count, data->rank);
    cu_put_points(f, slice);
    cu_put(&f->body,
           "        for (int tuple = 0; tuple < %s; tuple++) {\n"
           "            const int from = tuple * %s + point;\n"
           "            int to = point;\n",
           cu_product_text(f, indices, 0, indices->rank - 1), slice);
    if (k->input[3] >= 0)
        cu_put(&f->body, "            if (tuple / (%s) %% %s >= %s) continue;\n",
               cu_product_text(f, indices, k->axis + 1, indices->rank - 1), cu_dim_text(f, indices->dim[k->axis]),
               cu_element_at(f, k->input[3], "0", "count"));
    for (int d = 0; d < count; d++) {
        const char *cursor = ir_arena_printf(f->arena, "tuple * %" PRId64 " + %d", count, d);
        cu_put(&f->body, "            to += %s * %s;\n", place(f, cursor, data->dim[d]),
               cu_product_text(f, data, d + 1, data->rank));
    }
    put_update(f);
    cu_put(&f->body, "        }\n    }\n");
}

/* `place` is the element's, counted from the first update. In a circular cache the last update of an element counts. */
static void emit_cache(cu_function *f)
{
    const pl_sequential *k = &f->step->kernel->sequential;
    const ir_type *cache = type_of(f, k->input[0]), *updates = type_of(f, k->input[1]);
    cu_axis a = cu_axis_of(f, cache, k->axis);
    const char *start = "0";
    if (k->input[2] >= 0)
        start = cu_element_at(
            f, k->input[2], ir_arena_printf(f->arena, "outer / (%s)", cu_product_text(f, cache, 1, k->axis)), "starts");
    cu_put_points(f, ir_arena_printf(f->arena, "%s * %s * %s", a.outer_count, a.extent, a.inner));
    cu_put(&f->body,
           "        const int extent = %s, fresh = %s, inner = %s, outer = point / inner / extent;\n"
           "        const long long start = largest((long long)%s, 0LL);\n",
           a.extent, cu_dim_text(f, updates->dim[k->axis]), a.inner, start);
    if (k->circular)
        cu_put(&f->body, "        int place = point / inner %% extent - (int)(start %% extent);\n"
                         "        if (place < 0) place += extent;\n"
                         "        if (place < fresh) place += (fresh - 1 - place) / extent * extent;\n");
    else
        cu_put(&f->body, "        const int place = point / inner %% extent - (int)least(start, (long long)(extent - "
                         "fresh));\n");
    cu_put(&f->body, "        const %s value = 0 <= place && place < fresh ? %s : %s;\n",
           cu_checked_type(f, k->output[0]),
           cu_element_at(f, k->input[1], "(outer * fresh + place) * inner + point % inner", "updates"),
           cu_element_at(f, k->input[0], "point", "x"));
    cu_store_at(f, k->output[0], "point", "value", "        ");
    cu_put(&f->body, "    }\n");
}

void cu_emit_scatter(cu_function *f)
{
    pl_sequence operation = f->step->kernel->sequential.operation;
    if (operation == PL_SEQ_TENSOR_SCATTER)
        emit_cache(f);
    else if (f->step->part == CU_COPY)
        emit_copy(f);
    else if (operation == PL_SEQ_SCATTER_ELEMENTS)
        emit_element_updates(f);
    else
        emit_slice_updates(f);
}

/* Accesses to inputs `first` to `last_index`, and to the output. */
static void note_accesses(cu_step_finder *f, int first, int last_index)
{
    const pl_sequential *k = &f->step->kernel->sequential;
    f->step->access_count = 0;
    for (int i = first; i <= last_index; i++)
        if (k->input[i] >= 0) cu_note_lines(f, k->input[i], false);
    if (f->step->part == CU_UPDATE) cu_note_lines(f, k->output[0], false);
    cu_note_lines(f, k->output[0], true);
}

/* Few points are work for block 0. */
static cu_distribution distribution_of(const cu_step_finder *f, const ir_type *type, int source, int target)
{
    int64_t points = cu_fixed_count(type, source, target);
    return f->is_one_block || (points >= 0 && points < CU_MIN_FREE_POINTS) ? CU_SINGLE : CU_FREE;
}

static bool find_copy(cu_step_finder *f, const pl_kernel *kernel, bool is_tiled)
{
    const pl_sequential *k = &kernel->sequential;
    const ir_type *data = &f->buffers[k->input[0]].type;
    cu_step *s = cu_add_step(f, kernel, CU_COPY);
    if (s == NULL) return false;
    if (!is_tiled || !cu_tile_outer(f, data, k->axis)) s->distribution = distribution_of(f, data, 0, data->rank);
    note_accesses(f, 0, 0);
    return true;
}

static bool find_updates(cu_step_finder *f, const pl_kernel *kernel, bool is_tiled)
{
    const pl_sequential *k = &kernel->sequential;
    const ir_type *data = &f->buffers[k->input[0]].type, *indices = &f->buffers[k->input[1]].type;
    cu_step *s = cu_add_step(f, kernel, CU_UPDATE);
    if (s == NULL) return false;
    if (k->operation == PL_SEQ_SCATTER_ND)
        s->distribution = distribution_of(f, data, (int)coordinates(indices), data->rank);
    else if (!is_tiled || !cu_tile_outer(f, indices, k->axis))
        s->distribution = distribution_of(f, indices, 0, indices->rank);
    note_accesses(f, 1, 3);
    return true;
}

/* True if units own whole lines in data, indices and updates. */
static bool is_tiled(const cu_step_finder *f, const pl_sequential *k)
{
    const ir_type *data = &f->buffers[k->input[0]].type, *indices = &f->buffers[k->input[1]].type;
    if (k->operation != PL_SEQ_SCATTER_ELEMENTS || !has_same_outer(indices, data, k->axis)) return false;
    return pl_unit_elements(data, 0) > 0 && pl_unit_elements(indices, 0) > 0;
}

bool cu_find_scatter(cu_step_finder *f, const pl_kernel *kernel)
{
    const pl_sequential *k = &kernel->sequential;
    if (k->operation == PL_SEQ_TENSOR_SCATTER) {
        const ir_type *cache = &f->buffers[k->input[0]].type;
        cu_step *s = cu_add_step(f, kernel, CU_WHOLE);
        if (s == NULL) return false;
        s->distribution = distribution_of(f, cache, 0, cache->rank);
        note_accesses(f, 0, 2);
        return true;
    }
    bool tiled = is_tiled(f, k);
    return find_copy(f, kernel, tiled) && find_updates(f, kernel, tiled);
}
