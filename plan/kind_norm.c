/* kind_norm.c — norm kernels: normalisations and softmax over the rows of a matrix. */
#include "plan/kernel_kind.h"
#include "plan/plan_checker.h"
#include "plan/plan_machine.h"
#include "plan/plan_text.h"
#include "plan/units.h"
#include "plan/visit.h"

#include <math.h>

static void visit(const pl_kernel *kernel, const pl_visitor *v)
{
    const pl_norm *k = &kernel->norm;
    pl_visit_loads(v, k->input);
    pl_visit_read(v, k->gamma);
    pl_visit_read(v, k->beta);
    pl_visit_loads(v, k->epilogue);
    pl_visit_write(v, k->out.buffer);
    pl_visit_write(v, k->sum.buffer);
}

static void print(const pl_kernel *kernel, pl_text *t)
{
    const pl_norm *k = &kernel->norm;
    static const char *const modes[] = {"layer", "rms", "softmax", "log_softmax"};
    pl_put(t, "  %s rows ", modes[k->mode]);
    pl_put_dim(t, k->rows);
    pl_put_named_dim(t, "columns", k->columns);
    if (k->mode == PL_NORM_LAYER || k->mode == PL_NORM_RMS) pl_put_real(t, " epsilon", k->epsilon, 6);
    if (k->gamma >= 0) pl_put(t, " gamma b%d", k->gamma);
    if (k->beta >= 0) pl_put(t, " beta b%d", k->beta);
    pl_put(t, "\n  input ");
    pl_put_expr(t, k->input);
    pl_put(t, "\n");
    pl_put_epilogue(t, k->epilogue);
    pl_put_output(t, "out", &k->out);
    pl_put_output(t, "sum", &k->sum);
}

static void verify(const pl_kernel *kernel, pl_checker *c)
{
    const pl_norm *k = &kernel->norm;
    pl_check_set_matrix_loops(c, k->rows, k->columns);
    if (k->epilogue != NULL) pl_check_expr(c, k->epilogue);
    c->acc_count = 0;
    pl_check_expr(c, k->input);
    pl_check_matrix(c, &k->out, k->rows, k->columns);
    if (k->sum.buffer >= 0) pl_check_matrix(c, &k->sum, k->rows, k->columns);
    pl_check_whole_vector(c, k->gamma, k->columns);
    pl_check_whole_vector(c, k->beta, k->columns);
}

/* ---- Interpretation ---------------------------------------------------------------------------------------------- */

static void normalise(const pl_norm *k, double *x, int64_t count)
{
    if (k->mode == PL_NORM_SOFTMAX || k->mode == PL_NORM_LOG_SOFTMAX) {
        pl_machine_softmax(x, count, k->mode == PL_NORM_LOG_SOFTMAX);
        return;
    }
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < count; i++) sum += x[i];
    double mean = k->mode == PL_NORM_LAYER ? sum / (double)count : 0;
    for (int64_t i = 0; i < count; i++) squares += (x[i] - mean) * (x[i] - mean);
    double deviation = sqrt(squares / (double)count + k->epsilon);
    for (int64_t i = 0; i < count; i++) x[i] = (x[i] - mean) / deviation;
}

static void interpret(const pl_kernel *kernel, pl_machine *m)
{
    const pl_norm *k = &kernel->norm;
    int64_t rows = pl_machine_dim(m, k->rows), columns = pl_machine_dim(m, k->columns);
    double *x = IR_NEW_ARRAY(m->arena, double, columns);
    if (x == NULL) {
        pl_machine_out_of_memory(m);
        return;
    }
    for (int64_t r = 0; r < rows && m->status == MDOT_OK; r++) {
        for (int64_t c = 0; c < columns; c++) {
            m->index[0] = r;
            m->index[1] = c;
            x[c] = pl_machine_evaluate(m, k->input).f;
            if (k->sum.buffer >= 0) pl_machine_store_matrix(m, &k->sum, r, c, x[c]);
        }
        normalise(k, x, columns);
        for (int64_t c = 0; c < columns; c++) {
            double value = x[c];
            if (k->gamma >= 0) value *= pl_machine_load(m, k->gamma, c).f;
            if (k->beta >= 0) value += pl_machine_load(m, k->beta, c).f;
            pl_machine_finish_element(m, k->epilogue, &k->out, r, c, value);
        }
    }
}

/* ---- Properties -------------------------------------------------------------------------------------------------- */

static bool is_rowwise(const pl_kernel *kernel, pl_units *u)
{
    const pl_norm *k = &kernel->norm;
    return pl_begin_units(u, 0, k->rows) && ir_dim_is_number(k->columns) && pl_is_of_unit(u, k->input) &&
           pl_is_of_unit(u, k->epilogue) && pl_access_follows(u, k->gamma, 0) && pl_access_follows(u, k->beta, 0) &&
           pl_matrix_follows(u, &k->out) && pl_matrix_follows(u, &k->sum);
}

static bool is_split(const pl_kernel *kernel, const pl_plan *plan)
{
    (void)plan;
    return pl_is_split_extent(kernel->norm.rows);
}

const pl_kind_ops pl_norm_kind = {
    .visit = visit,
    .print = print,
    .verify = verify,
    .interpret = interpret,
    .is_rowwise = is_rowwise,
    .is_split = is_split,
};
