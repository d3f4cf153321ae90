/* kind_linear.c — linear kernels: a matrix times a constant, with bias and epilogue. */
#include "plan/kernel_kind.h"

#include "plan/kind_tools.h"

#include <inttypes.h>

static void visit(const pl_kernel *kernel, const pl_visitor *v)
{
    const pl_linear *k = &kernel->linear;
    pl_visit_factor(v, k->a.buffer);
    pl_visit_factor(v, k->weight);
    pl_visit_read(v, k->bias);
    pl_visit_loads(v, k->epilogue);
    pl_visit_write(v, k->out.buffer);
}

static void put_window_dims(FILE *t, const char *name, const pl_window_dims *dims)
{
    fprintf(t, "%s", name);
    for (int d = 0; d < dims->count; d++) {
        fprintf(t, d ? ", " : " ");
        pl_put_dim(t, dims->extent[d]);
        fprintf(t, "*");
        pl_put_dim(t, dims->stride[d]);
    }
}

static void put_windows(FILE *t, const pl_matrix *a, const pl_windows *windows)
{
    fprintf(t, "b%d[", a->buffer);
    if (!ir_dim_is(a->offset, 0)) {
        pl_put_dim(t, a->offset);
        fprintf(t, " + ");
    }
    put_window_dims(t, "windows", &windows->rows);
    put_window_dims(t, " of", &windows->columns);
    fprintf(t, "]");
}

static void print(const pl_kernel *kernel, FILE *t)
{
    const pl_linear *k = &kernel->linear;
    fprintf(t, "  rows ");
    pl_put_dim(t, k->rows);
    fprintf(t, " k %" PRId64 " columns %" PRId64 "\n  a ", k->k, k->columns);
    if (k->windows != NULL)
        put_windows(t, &k->a, k->windows);
    else
        pl_put_matrix(t, &k->a);
    fprintf(t, "\n  weight b%d", k->weight);
    if (k->bias >= 0) fprintf(t, " bias b%d", k->bias);
    fprintf(t, "\n");
    pl_put_epilogue(t, k->epilogue);
    pl_put_output(t, "out", &k->out);
}

static bool is_even_number(ir_dim dim) { return ir_dim_is_number(dim) && dim.offset > 0 && dim.offset % 2 == 0; }

bool pl_taps_of(const pl_linear *k, pl_taps *out)
{
    enum { GRAIN = 16 };             /* channels of the widest vector */
    enum { FEWEST_POSITIONS = 16 };  /* per image: with fewer, most tile rows would be surplus */
    enum { MOST_CHANNELS = 512 };    /* the transformed elements of a block take 983 KB */
    enum { MOST_WEIGHTS = 1 << 18 }; /* of a tap; 1 << 15 if windows move by two, because the others gain too little */
    enum { LARGE = 1 << 14, FEWEST_IF_LARGE = 64 }; /* few positions would only wait for larger weights */
    if (k->windows == NULL) return false;
    const pl_window_dims *rows = &k->windows->rows, *columns = &k->windows->columns;
    int x = rows->count - 1, y = x - 1;
    if (y < 0 || columns->count < 2 || !ir_dim_is(columns->extent[0], 3)) return false;
    if (!is_even_number(rows->extent[x]) || !is_even_number(rows->extent[y])) return false;
    if (!ir_dim_is_number(columns->stride[0]) || !ir_dim_is_number(columns->stride[1])) return false;
    bool is_adjacent = columns->count == 2; /* the taps of a row */
    *out = (pl_taps){.height = rows->extent[y].offset,
                     .width = rows->extent[x].offset,
                     .channels = k->k / 9,
                     .y_stride = columns->stride[0].offset,
                     .x_stride = is_adjacent ? k->k / 9 : columns->stride[1].offset,
                     .image_stride = y > 0 ? rows->stride[0] : ir_dim_number(0)};
    out->step = ir_dim_is(rows->stride[y], out->y_stride) ? 1 : 2;
    if (!ir_dim_is(rows->stride[y], out->step * out->y_stride)) return false;
    if (!ir_dim_is(rows->stride[x], out->step * out->x_stride)) return false;
    if (!ir_dim_is(columns->extent[1], is_adjacent ? 3 * out->channels : 3)) return false;
    int64_t weights = out->channels * k->columns, fewest = weights > LARGE ? FEWEST_IF_LARGE : FEWEST_POSITIONS;
    return k->k % 9 == 0 && out->channels % GRAIN == 0 && k->columns % GRAIN == 0 && out->channels <= MOST_CHANNELS &&
           weights <= (out->step == 1 ? MOST_WEIGHTS : MOST_WEIGHTS >> 3) && out->height * out->width >= fewest;
}

static bool is_matrix_operand(const pl_buffer *buffer)
{
    return buffer->kind == PL_WEIGHT && buffer->use != PL_ELEMENTS;
}

/* Adds the range of the dimensions' positions at a length to first … last. Returns the number of positions. */
static pl_wide_int add_range(const pl_window_dims *dims, int64_t length, pl_wide_int *first, pl_wide_int *last_offset)
{
    pl_wide_int count = 1;
    for (int d = 0; d < dims->count; d++) {
        pl_wide_int extent = ir_dim_at(dims->extent[d], length), stride = ir_dim_at(dims->stride[d], length);
        *(stride < 0 ? first : last_offset) += (extent - 1) * stride;
        count *= extent;
    }
    return count;
}

static void verify_windows(const pl_linear *k, pl_checker *c)
{
    const pl_buffer *buffer = pl_check_buffer(c, k->a.buffer);
    const pl_windows *w = k->windows;
    if (buffer == NULL) return;
    int64_t lengths[] = {ir_first_length(c->plan->graph), c->plan->max_length ? c->plan->max_length : 1};
    for (int i = 0; i < 2; i++) {
        pl_wide_int first = ir_dim_at(k->a.offset, lengths[i]), last_offset = first;
        pl_wide_int rows = add_range(&w->rows, lengths[i], &first, &last_offset);
        pl_wide_int columns = add_range(&w->columns, lengths[i], &first, &last_offset);
        if (rows != ir_dim_at(k->rows, lengths[i]) || columns != k->k)
            pl_check_fail(c, "windows have other rows or columns than their kernel", k->a.buffer);
        if (rows <= 0 || columns <= 0) continue;
        if (first < 0 || last_offset >= ir_type_count_at(&buffer->type, lengths[i]))
            pl_check_fail(c, "a window exceeds its buffer", k->a.buffer);
    }
    for (int d = 0; d < w->columns.count; d++)
        if (!ir_dim_is_number(w->columns.extent[d])) pl_check_fail(c, "a window's size must be a number", k->a.buffer);
    if (!ir_dim_is(w->columns.stride[w->columns.count - 1], 1))
        pl_check_fail(c, "the last elements of a window must be adjacent", k->a.buffer);
    if (buffer->type.dtype != MDOT_DTYPE_F32) pl_check_fail(c, "a matrix must be f32", k->a.buffer);
}

static void verify(const pl_kernel *kernel, pl_checker *c)
{
    const pl_linear *k = &kernel->linear;
    ir_dim columns = ir_dim_number(k->columns);
    const pl_buffer *weight = pl_check_buffer(c, k->weight), *bias = k->bias >= 0 ? pl_check_buffer(c, k->bias) : NULL;
    pl_check_set_matrix_loops(c, k->rows, columns);
    if (k->windows != NULL)
        verify_windows(k, c);
    else
        pl_check_matrix(c, &k->a, k->rows, ir_dim_number(k->k));
    pl_check_matrix(c, &k->out, k->rows, columns);
    pl_check_whole_vector(c, k->bias, columns);
    pl_check_vector(c, k->weight, ir_dim_number(k->k * k->columns));
    pl_check_read(c, k->a.buffer, c->is_matrix);
    pl_check_read(c, k->weight, c->is_matrix);
    if (weight != NULL && !is_matrix_operand(weight)) pl_check_fail(c, "a weight must be a matrix operand", k->weight);
    if (bias != NULL && !is_matrix_operand(bias)) pl_check_fail(c, "a bias must be a matrix operand", k->bias);
    if (k->epilogue != NULL) pl_check_expr(c, k->epilogue);
}

static bool is_matrix(const pl_kernel *kernel, const pl_plan *plan)
{
    enum { FEWEST_ROWS = 8 }; /* with fewer rows, most of a matrix instruction would be wasted, and f32 costs little */
    const pl_linear *k = &kernel->linear;
    return !ir_dim_is_number(k->rows) || k->rows.offset >= FEWEST_ROWS;
}

static bool is_rowwise(const pl_kernel *kernel, pl_units *u)
{
    const pl_linear *k = &kernel->linear;
    if (!pl_begin_units(u, 0, k->rows)) return false;
    bool a_follows = k->windows != NULL ? pl_windows_follow(u, &k->a, k->windows) : pl_matrix_follows(u, &k->a);
    return a_follows && pl_matrix_follows(u, &k->out) && pl_is_of_unit(u, k->epilogue);
}

static bool is_split(const pl_kernel *kernel, const pl_plan *plan)
{
    const pl_linear *k = &kernel->linear;
    return !ir_dim_is_number(k->rows) || k->rows.offset > PL_LINEAR_UNSPLIT_ROWS;
}

const pl_kind_ops pl_linear_kind = {
    .visit = visit,
    .print = print,
    .verify = verify,
    .is_matrix = is_matrix,
    .is_rowwise = is_rowwise,
    .is_split = is_split,
};
