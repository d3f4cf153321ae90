/* kind_linear.c — linear kernels: a matrix times a constant, with bias and epilogue. */
#include "ir/plan/kind_linear.h"

#include "ir/plan/kernel_kind.h"
#include "ir/plan/plan_checker.h"
#include "ir/plan/plan_machine.h"
#include "ir/plan/plan_text.h"
#include "ir/plan/units.h"
#include "ir/plan/visit.h"

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

static void print(const pl_kernel *kernel, pl_text *t)
{
    const pl_linear *k = &kernel->linear;
    pl_put(t, "  rows ");
    pl_put_dim(t, k->rows);
    pl_put(t, " k %" PRId64 " columns %" PRId64 "\n  a ", k->k, k->columns);
    pl_put_matrix(t, &k->a);
    pl_put(t, "\n  weight b%d", k->weight);
    if (k->bias >= 0) pl_put(t, " bias b%d", k->bias);
    pl_put(t, "\n");
    pl_put_epilogue(t, k->epilogue);
    pl_put_output(t, "out", &k->out);
}

/* ---- Verification ------------------------------------------------------------------------------------------------ */

static bool is_matrix_operand(const pl_buffer *buffer)
{
    return buffer->kind == PL_WEIGHT && buffer->use == PL_MATRIX;
}

static void verify(const pl_kernel *kernel, pl_checker *c)
{
    const pl_linear *k = &kernel->linear;
    ir_dim columns = ir_dim_number(k->columns);
    const pl_buffer *weight = pl_check_buffer(c, k->weight), *bias = k->bias >= 0 ? pl_check_buffer(c, k->bias) : NULL;
    pl_check_set_matrix_loops(c, k->rows, columns);
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

static void interpret(const pl_kernel *kernel, pl_machine *m)
{
    const pl_linear *k = &kernel->linear;
    int64_t rows = pl_machine_dim(m, k->rows), start = pl_machine_dim(m, k->a.offset),
            stride = pl_machine_dim(m, k->a.row_stride);
    const double *weight = m->memory[k->weight]->f, *bias = k->bias >= 0 ? m->memory[k->bias]->f : NULL;
    for (int64_t r = 0; r < rows && m->status == MDOT_OK; r++) {
        for (int64_t c = 0; c < k->columns; c++) {
            double sum = bias != NULL ? bias[c] : 0;
            for (int64_t i = 0; i < k->k; i++)
                sum += pl_machine_load_factor(m, k->a.buffer, start + r * stride + i) *
                       pl_machine_factor(m, weight[i * k->columns + c]);
            pl_machine_finish_element(m, k->epilogue, &k->out, r, c, sum);
        }
    }
}

/* ---- Properties -------------------------------------------------------------------------------------------------- */

static bool is_matrix(const pl_kernel *kernel, const pl_plan *plan)
{
    enum { FEWEST_ROWS = 8 }; /* with fewer rows, most of a matrix instruction would be wasted, and f32 costs little */
    const pl_linear *k = &kernel->linear;
    (void)plan;
    return !ir_dim_is_number(k->rows) || k->rows.offset >= FEWEST_ROWS;
}

static bool is_rowwise(const pl_kernel *kernel, pl_units *u)
{
    const pl_linear *k = &kernel->linear;
    return pl_begin_units(u, 0, k->rows) && pl_matrix_follows(u, &k->a) && pl_matrix_follows(u, &k->out) &&
           pl_is_of_unit(u, k->epilogue);
}

static bool is_split(const pl_kernel *kernel, const pl_plan *plan)
{
    const pl_linear *k = &kernel->linear;
    (void)plan;
    return !ir_dim_is_number(k->rows) || k->rows.offset > PL_LINEAR_UNSPLIT_ROWS;
}

const pl_kind_ops pl_linear_kind = {
    .visit = visit,
    .print = print,
    .verify = verify,
    .interpret = interpret,
    .is_matrix = is_matrix,
    .is_rowwise = is_rowwise,
    .is_split = is_split,
};
