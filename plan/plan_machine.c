/* plan_machine.c — see plan_machine.h. */
#include "plan/plan_machine.h"

#include <inttypes.h>
#include <math.h>

#include "ir/ops/families.h"
#include "plan/expr.h"
#include "plan/expr_ops.h"
#include "plan/scalar.h"

static void fault(pl_machine *m, const char *what, int buffer, int64_t at, int64_t count)
{
    if (m->status != MDOT_OK) return;
    m->status =
        mdot_fail(m->err, MDOT_OUT_OF_RANGE, "kernel \"%s\": %s b%d[%" PRId64 "], which has %" PRId64 " elements",
                  m->kernel->name, what, buffer, at, count);
}

void pl_machine_out_of_memory(pl_machine *m)
{
    if (m->status == MDOT_OK) m->status = mdot_fail(m->err, MDOT_OUT_OF_MEMORY, NULL);
}

static bool is_inside(pl_machine *m, const char *what, int buffer, int64_t at)
{
    int64_t count = m->memory[buffer]->count;
    if (at >= 0 && at < count) return true;
    fault(m, what, buffer, at, count);
    return false;
}

pl_scalar pl_machine_load(pl_machine *m, int buffer, int64_t at)
{
    const ir_wide *wide = m->memory[buffer];
    if (!is_inside(m, "reads", buffer, at)) return (pl_scalar){0};
    return wide->f != NULL ? (pl_scalar){.f = wide->f[at]} : (pl_scalar){.n = wide->i[at]};
}

void pl_machine_store(pl_machine *m, int buffer, int64_t at, pl_scalar value)
{
    ir_wide *wide = m->memory[buffer];
    if (!is_inside(m, "writes", buffer, at)) return;
    if (wide->f != NULL)
        wide->f[at] = ir_round_float(pl_is_half(&m->plan->buffers[buffer]) ? m->half : wide->dtype, value.f);
    else
        wide->i[at] = ir_wrap_integer(wide->dtype, value.n);
}

double pl_machine_factor(const pl_machine *m, double value)
{
    return m->is_matrix && m->half != MDOT_DTYPE_F32 ? ir_round_float(m->half, value) : value;
}

double pl_machine_load_factor(pl_machine *m, int buffer, int64_t at)
{
    return pl_machine_factor(m, pl_machine_load(m, buffer, at).f);
}

int64_t pl_machine_dim(const pl_machine *m, ir_dim d)
{
    return ir_dim_at(d, m->length);
}

pl_scalar pl_machine_evaluate(pl_machine *m, const pl_expr *e)
{
    pl_scalar arg[3] = {{0}};
    switch (e->op) {
    case PL_CONST:
        return ir_dtype_is_float(e->dtype) ? (pl_scalar){.f = e->f} : (pl_scalar){.n = e->n};
    case PL_INDEX:
        return (pl_scalar){.n = m->index[e->i]};
    case PL_STEP:
        return (pl_scalar){.n = m->step};
    case PL_LENGTH:
        return (pl_scalar){.n = m->length};
    case PL_ACC:
        return ir_dtype_is_float(e->dtype) ? (pl_scalar){.f = m->acc_f} : (pl_scalar){.n = m->acc_n};
    case PL_LOAD:
        return pl_machine_load(m, e->i, pl_machine_evaluate(m, e->arg[0]).n);
    default:
        break;
    }
    for (int k = 0; k < pl_expr_operand_count(e->op); k++) arg[k] = pl_machine_evaluate(m, e->arg[k]);
    mdot_dtype from = e->arg[e->op == PL_SELECT ? 1 : 0]->dtype;
    pl_scalar result = pl_scalar_apply(e->op, e->dtype, from, arg);
    if (ir_dtype_is_float(e->dtype)) result.f = ir_round_float(e->dtype, result.f);
    return result;
}

void pl_machine_store_matrix(pl_machine *m, const pl_matrix *out, int64_t row, int64_t column, double value)
{
    int64_t at = pl_machine_dim(m, out->offset) + row * pl_machine_dim(m, out->row_stride) + column;
    pl_machine_store(m, out->buffer, at, (pl_scalar){.f = value});
}

void pl_machine_finish_element(pl_machine *m, const pl_expr *epilogue, const pl_matrix *out, int64_t row,
                               int64_t column, double value)
{
    m->index[0] = row;
    m->index[1] = column;
    m->acc_f = value;
    pl_machine_store_matrix(m, out, row, column, epilogue != NULL ? pl_machine_evaluate(m, epilogue).f : value);
}

void pl_machine_softmax(double *x, int64_t count, bool is_log)
{
    double largest = -INFINITY, total = 0;
    for (int64_t i = 0; i < count; i++) largest = fmax(largest, x[i]);
    for (int64_t i = 0; i < count; i++) total += exp(x[i] - largest);
    for (int64_t i = 0; i < count; i++) x[i] = is_log ? x[i] - largest - log(total) : exp(x[i] - largest) / total;
}
