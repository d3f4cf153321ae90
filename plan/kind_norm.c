/* kind_norm.c — norm kernels: normalisations and softmax over a matrix's rows. */
#include "plan/kernel_kind.h"
#include "plan/kind_tools.h"

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

static void print(const pl_kernel *kernel, FILE *t)
{
    const pl_norm *k = &kernel->norm;
    static const char *const modes[] = {"layer", "rms", "softmax", "log_softmax"};
    fprintf(t, "  %s rows ", modes[k->mode]);
    pl_put_dim(t, k->rows);
    pl_put_named_dim(t, "columns", k->columns);
    if (k->mode == PL_NORM_LAYER || k->mode == PL_NORM_RMS) pl_put_real(t, " epsilon", k->epsilon, 6);
    if (k->gamma >= 0) fprintf(t, " gamma b%d", k->gamma);
    if (k->beta >= 0) fprintf(t, " beta b%d", k->beta);
    fprintf(t, "\n  input ");
    pl_put_expr(t, k->input);
    fprintf(t, "\n");
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

static bool is_rowwise(const pl_kernel *kernel, pl_units *u)
{
    const pl_norm *k = &kernel->norm;
    return pl_begin_units(u, 0, k->rows) && ir_dim_is_number(k->columns) && pl_is_of_unit(u, k->input) &&
           pl_is_of_unit(u, k->epilogue) && pl_access_follows(u, k->gamma, 0) && pl_access_follows(u, k->beta, 0) &&
           pl_matrix_follows(u, &k->out) && pl_matrix_follows(u, &k->sum);
}

static bool is_split(const pl_kernel *kernel, const pl_plan *plan) { return pl_is_split_extent(kernel->norm.rows); }

const pl_kind_ops pl_norm_kind = {
    .visit = visit,
    .print = print,
    .verify = verify,
    .is_rowwise = is_rowwise,
    .is_split = is_split,
};
