/* mutate.c — see mutate.h. */
#include "tests/support/mutate.h"

const pl_expr *mutate_other_expr, *mutate_other_load;
static ir_arena *arena;

void mutate_begin(ir_arena *expressions)
{
    arena = expressions;
    mutate_other_expr = pl_const_f(arena, MDOT_DTYPE_F32, 77);
    mutate_other_load = pl_load(arena, 1, MDOT_DTYPE_F32, pl_const_i(arena, MDOT_DTYPE_I64, 77));
}

int mutate_i64(void *at, int step)
{
    if (step == 0) ++*(int64_t *)at;
    return 1;
}

int mutate_i32(void *at, int step)
{
    if (step == 0) ++*(int *)at;
    return 1;
}

int mutate_choice(void *at, int step)
{
    int *choice = at; /* takes the previous choice, because the last one may have no successor */
    if (step == 0) *choice = *choice > 0 ? *choice - 1 : 1;
    return 1;
}

int mutate_flag(void *at, int step)
{
    if (step == 0) *(bool *)at = !*(bool *)at;
    return 1;
}

int mutate_real(void *at, int step)
{
    double *x = at;
    if (step == 0) *x *= 1.5;
    if (step == 1) *x = 0;
    if (step == 2) *x += 1e-12;
    return 3;
}

int mutate_dim(void *at, int step)
{
    ir_dim *dim = at;
    if (step == 0) dim->scale++;
    if (step == 1) dim->offset++;
    if (step == 2) { /* half the length more; an existing floor gets another factor */
        dim->times++;
        dim->step = 1;
        dim->divisor = 2;
    }
    return 3;
}

int mutate_buffer(void *at, int step)
{
    int *buffer = at;
    if (step == 0) *buffer = *buffer == 0;
    return 1;
}

int mutate_optional(void *at, int step)
{
    if (step == 1) *(int *)at = -1;
    mutate_buffer(at, step);
    return 2;
}

const pl_expr *mutate_moved(const pl_expr *load)
{
    return pl_load(arena, load->i, load->dtype, pl_const_i(arena, MDOT_DTYPE_I64, 78));
}

int mutate_expr(void *at, int step)
{
    const pl_expr **expr = at;
    if (step == 0) *expr = mutate_other_expr;
    if (step == 1) *expr = mutate_other_load;
    if (step == 2) *expr = mutate_moved(*expr);
    return 3;
}

int mutate_optional_expr(void *at, int step)
{
    if (step == 3) *(const pl_expr **)at = NULL;
    mutate_expr(at, step);
    return 4;
}

int mutate_fields(const mutate_field *fields, int count, void *object, int step, const char **out_name)
{
    int steps = 0;
    for (int i = 0; i < count; i++) {
        void *at = (char *)object + fields[i].offset;
        int own = fields[i].mutate(at, -1);
        if (step >= steps && step < steps + own) {
            fields[i].mutate(at, step - steps);
            if (out_name) *out_name = fields[i].name;
        }
        steps += own;
    }
    return steps;
}
