/* plan_text.c — see kind_tools.h. */
#include "plan/kind_tools.h"

#include "base/text.h"
#include "ir/ops/families.h"
#include "plan/expr.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void pl_put(pl_text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int wanted = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (wanted < 0 || t->failed) return;
    if (t->length + (size_t)wanted + 1 > t->capacity) {
        size_t capacity = 2 * t->capacity + (size_t)wanted + 256;
        char *grown = ir_arena_alloc(t->arena, capacity, 1);
        if (grown == NULL) {
            t->failed = true;
            return;
        }
        if (t->length) memcpy(grown, t->bytes, t->length);
        t->bytes = grown;
        t->capacity = capacity;
    }
    va_start(args, format);
    vsnprintf(t->bytes + t->length, t->capacity - t->length, format, args);
    va_end(args);
    t->length += (size_t)wanted;
}

char *pl_text_finish(pl_text *t)
{
    if (t->bytes == NULL) pl_put(t, "%s", "");
    return t->failed ? NULL : t->bytes;
}

void pl_put_dim(pl_text *t, ir_dim d)
{
    char buffer[IR_DIM_TEXT_BYTES];
    pl_put(t, "%s", ir_dim_text(d, NULL, buffer, sizeof buffer));
}

static void put_infix(pl_text *t, const pl_expr *e, const char *sign)
{
    pl_put(t, "(");
    pl_put_expr(t, e->arg[0]);
    pl_put(t, " %s ", sign);
    pl_put_expr(t, e->arg[1]);
    pl_put(t, ")");
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

void pl_put_real(pl_text *t, const char *word, double value, int digits)
{
    char buffer[BS_NUMBER_BYTES];
    pl_put(t, "%s %s", word, bs_number_print(value, digits, buffer));
}

static void put_constant(pl_text *t, const pl_expr *e)
{
    if (e->dtype == MDOT_DTYPE_I64)
        pl_put(t, "%" PRId64, e->n);
    else if (ir_dtype_is_float(e->dtype))
        pl_put_real(t, mdot_dtype_name(e->dtype), e->f, PL_F32_DIGITS);
    else
        pl_put(t, "%s %" PRId64, mdot_dtype_name(e->dtype), e->n);
}

static void put_call(pl_text *t, const pl_expr *e)
{
    pl_put(t, "%s", pl_expr_op_name(e->op));
    if (e->op == PL_CAST) pl_put(t, " %s", mdot_dtype_name(e->dtype));
    for (int k = 0; k < pl_expr_operand_count(e->op); k++) {
        pl_put(t, k ? ", " : "(");
        pl_put_expr(t, e->arg[k]);
    }
    pl_put(t, ")");
}

void pl_put_expr(pl_text *t, const pl_expr *e)
{
    const char *sign = e->dtype == MDOT_DTYPE_I64 ? infix_sign(e) : NULL;
    switch (e->op) {
    case PL_CONST: put_constant(t, e); break;
    case PL_INDEX: pl_put(t, "i%d", e->i); break;
    case PL_STEP: pl_put(t, "step"); break;
    case PL_LENGTH: pl_put(t, "L"); break;
    case PL_ACC: pl_put(t, e->i ? "acc%d" : "acc", e->i); break;
    case PL_LOAD:
        pl_put(t, "b%d[", e->i);
        pl_put_expr(t, e->arg[0]);
        pl_put(t, "]");
        break;
    default:
        if (sign != NULL)
            put_infix(t, e, sign);
        else
            put_call(t, e);
    }
}

void pl_put_matrix(pl_text *t, const pl_matrix *m)
{
    pl_put(t, "b%d[", m->buffer);
    if (!ir_dim_is(m->offset, 0)) {
        pl_put_dim(t, m->offset);
        pl_put(t, " + ");
    }
    pl_put(t, "row*");
    pl_put_dim(t, m->row_stride);
    pl_put(t, " + col]");
}

void pl_put_named_dim(pl_text *t, const char *name, ir_dim d)
{
    pl_put(t, " %s ", name);
    pl_put_dim(t, d);
}

void pl_put_epilogue(pl_text *t, const pl_expr *epilogue)
{
    if (epilogue == NULL) return;
    pl_put(t, "  epilogue ");
    pl_put_expr(t, epilogue);
    pl_put(t, "\n");
}

void pl_put_output(pl_text *t, const char *name, const pl_matrix *m)
{
    if (m->buffer < 0) return;
    pl_put(t, "  %s ", name);
    pl_put_matrix(t, m);
    pl_put(t, "\n");
}

const char *pl_reducer_name(pl_reducer reducer)
{
    static const char *const names[] = {"none",         "sum",         "prod",         "max",        "min",
                                        "argmax_first", "argmax_last", "argmin_first", "argmin_last"};
    return names[reducer];
}
