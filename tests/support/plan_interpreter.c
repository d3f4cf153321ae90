/* plan_interpreter.c — runs a plan on concrete data with naive loops (see plan_interpreter.h). */
#include "tests/support/plan_interpreter.h"

#include <inttypes.h>
#include <math.h>

#include "ir/ops/families.h"
#include "plan/expr.h"
#include "plan/kernel_kind.h"

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

int64_t pl_machine_dim(const pl_machine *m, ir_dim d) { return ir_dim_at(d, m->length); }

pl_scalar pl_machine_evaluate(pl_machine *m, const pl_expr *e)
{
    pl_scalar arg[3] = {{0}};
    switch (e->op) {
    case PL_CONST: return ir_dtype_is_float(e->dtype) ? (pl_scalar){.f = e->f} : (pl_scalar){.n = e->n};
    case PL_INDEX: return (pl_scalar){.n = m->index[e->i]};
    case PL_STEP: return (pl_scalar){.n = m->step};
    case PL_LENGTH: return (pl_scalar){.n = m->length};
    case PL_ACC: return ir_dtype_is_float(e->dtype) ? (pl_scalar){.f = m->acc_f} : (pl_scalar){.n = m->acc_n};
    case PL_LOAD: return pl_machine_load(m, e->i, pl_machine_evaluate(m, e->arg[0]).n);
    default: break;
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

static void destroy(ir_wide *wide)
{
    for (int64_t k = 0; k < wide->count; k++) {
        if (wide->f != NULL)
            wide->f[k] = NAN;
        else
            wide->i[k] = ir_wrap_integer(wide->dtype, 0x5a5a5a5a5a5a5a5a);
    }
}

/* Buffers that become live at kernel `number` overwrite the buffers below them. */
static void bring_to_life(pl_machine *m, int number)
{
    const pl_plan *plan = m->plan;
    for (int a = 0; a < plan->buffer_count; a++) {
        const pl_buffer *young = &plan->buffers[a];
        if (young->kind != PL_SCRATCH || young->first_use != number) continue;
        for (int b = 0; b < plan->buffer_count; b++) {
            const pl_buffer *old = &plan->buffers[b];
            if (old->kind != PL_SCRATCH || old->first_use < 0 || (old->first_use == number && a != b)) continue;
            bool disjoint = old->offset_bytes >= young->offset_bytes + pl_capacity_bytes(plan, young) ||
                            young->offset_bytes >= old->offset_bytes + pl_capacity_bytes(plan, old);
            if (!disjoint) destroy(m->memory[b]);
        }
    }
}

static bool make_memory(pl_machine *m, const ir_wide *const *inputs)
{
    const pl_plan *plan = m->plan;
    m->memory = IR_NEW_ARRAY(m->arena, ir_wide *, plan->buffer_count + 1);
    if (m->memory == NULL) return false;
    for (int k = 0; k < plan->buffer_count; k++) {
        const pl_buffer *buffer = &plan->buffers[k];
        int64_t dims[MDOT_MAX_RANK];
        for (int d = 0; d < buffer->type.rank; d++) dims[d] = pl_machine_dim(m, buffer->type.dim[d]);
        if (buffer->kind == PL_INPUT)
            m->memory[k] = (ir_wide *)(uintptr_t)inputs[buffer->index]; /* read only */
        else if (buffer->kind == PL_WEIGHT)
            m->memory[k] = ir_wide_from_tensor(m->arena, buffer->constant);
        else
            m->memory[k] = ir_wide_create(m->arena, buffer->type.dtype, buffer->type.rank, dims);
        if (m->memory[k] == NULL) return false;
        if (buffer->kind == PL_OUTPUT || buffer->kind == PL_SCRATCH) destroy(m->memory[k]);
    }
    return true;
}

mdot_status pl_interpret(const pl_plan *plan, int64_t length, const ir_wide *const *inputs, ir_arena *arena,
                         ir_wide **out_outputs, mdot_error *err)
{
    return pl_interpret_in(plan, MDOT_DTYPE_F32, length, inputs, arena, out_outputs, err);
}

mdot_status pl_interpret_in(const pl_plan *plan, mdot_dtype half, int64_t length, const ir_wide *const *inputs,
                            ir_arena *arena, ir_wide **out_outputs, mdot_error *err)
{
    pl_machine m = {.plan = plan, .half = half, .length = length, .arena = arena, .err = err};
    if (!make_memory(&m, inputs)) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    for (int k = 0; k < plan->kernel_count && m.status == MDOT_OK; k++) {
        m.kernel = &plan->kernels[k];
        m.is_matrix = pl_is_matrix(plan, m.kernel);
        bring_to_life(&m, k);
        pl_machine_run(&m, m.kernel);
    }
    if (m.status != MDOT_OK) return m.status;
    for (int k = 0; k < plan->buffer_count; k++)
        if (plan->buffers[k].kind == PL_OUTPUT) out_outputs[plan->buffers[k].index] = m.memory[k];
    return MDOT_OK;
}
