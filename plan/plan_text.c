/* plan_text.c — see kind_tools.h. */
#include "plan/kind_tools.h"

#include "base/text.h"
#include "ir/ops/families.h"
#include "plan/expr.h"

#include <inttypes.h>
#include <stdio.h>

void pl_put_dim(FILE *t, ir_dim d)
{
    char buffer[IR_DIM_TEXT_BYTES];
    fprintf(t, "%s", ir_dim_text(d, NULL, buffer, sizeof buffer));
}

static void put_infix(FILE *t, const pl_expr *e, const char *sign)
{
    fprintf(t, "(");
    pl_put_expr(t, e->arg[0]);
    fprintf(t, " %s ", sign);
    pl_put_expr(t, e->arg[1]);
    fprintf(t, ")");
}

static const char *infix_sign(const pl_expr *e)
{
    switch (e->op) {
    case PL_ADD: return "+";
    case PL_SUB: return "-";
    case PL_MUL: return "*";
    case PL_FLOORDIV: return "/";
    case PL_PYMOD: return "%";
    default: return NULL;
    }
}

void pl_put_real(FILE *t, const char *word, double value, int digits)
{
    char buffer[BS_NUMBER_BYTES];
    fprintf(t, "%s %s", word, bs_number_print(value, digits, buffer));
}

static void put_constant(FILE *t, const pl_expr *e)
{
    if (e->dtype == MDOT_DTYPE_I64)
        fprintf(t, "%" PRId64, e->n);
    else if (ir_dtype_is_float(e->dtype))
        pl_put_real(t, mdot_dtype_name(e->dtype), e->f, PL_F32_DIGITS);
    else
        fprintf(t, "%s %" PRId64, mdot_dtype_name(e->dtype), e->n);
}

static void put_call(FILE *t, const pl_expr *e)
{
    fprintf(t, "%s", pl_expr_op_name(e->op));
    if (e->op == PL_CAST) fprintf(t, " %s", mdot_dtype_name(e->dtype));
    for (int k = 0; k < pl_expr_operand_count(e->op); k++) {
        fprintf(t, k ? ", " : "(");
        pl_put_expr(t, e->arg[k]);
    }
    fprintf(t, ")");
}

void pl_put_expr(FILE *t, const pl_expr *e)
{
    const char *sign = e->dtype == MDOT_DTYPE_I64 ? infix_sign(e) : NULL;
    switch (e->op) {
    case PL_CONST: put_constant(t, e); break;
    case PL_INDEX: fprintf(t, "i%d", e->i); break;
    case PL_STEP: fprintf(t, "step"); break;
    case PL_LENGTH: fprintf(t, "L"); break;
    case PL_ACC: fprintf(t, e->i ? "acc%d" : "acc", e->i); break;
    case PL_LOAD:
        fprintf(t, "b%d[", e->i);
        pl_put_expr(t, e->arg[0]);
        fprintf(t, "]");
        break;
    default:
        if (sign != NULL)
            put_infix(t, e, sign);
        else
            put_call(t, e);
    }
}

void pl_put_matrix(FILE *t, const pl_matrix *m)
{
    fprintf(t, "b%d[", m->buffer);
    if (!ir_dim_is(m->offset, 0)) {
        pl_put_dim(t, m->offset);
        fprintf(t, " + ");
    }
    fprintf(t, "row*");
    pl_put_dim(t, m->row_stride);
    fprintf(t, " + col]");
}

void pl_put_named_dim(FILE *t, const char *name, ir_dim d)
{
    fprintf(t, " %s ", name);
    pl_put_dim(t, d);
}

void pl_put_epilogue(FILE *t, const pl_expr *epilogue)
{
    if (epilogue == NULL) return;
    fprintf(t, "  epilogue ");
    pl_put_expr(t, epilogue);
    fprintf(t, "\n");
}

void pl_put_output(FILE *t, const char *name, const pl_matrix *m)
{
    if (m->buffer < 0) return;
    fprintf(t, "  %s ", name);
    pl_put_matrix(t, m);
    fprintf(t, "\n");
}

const char *pl_reducer_name(pl_reducer reducer)
{
    static const char *const names[] = {"none",         "sum",         "prod",         "max",        "min",
                                        "argmax_first", "argmax_last", "argmin_first", "argmin_last"};
    return names[reducer];
}
