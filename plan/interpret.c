/* interpret.c — runs a plan on concrete data with naive loops (see interpret.h). */
#include "plan/interpret.h"

#include <math.h>

#include "ir/ops/families.h"
#include "plan/kernel_kind.h"
#include "plan/plan_machine.h"

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
        pl_kinds[m.kernel->kind]->interpret(m.kernel, &m);
    }
    if (m.status != MDOT_OK) return m.status;
    for (int k = 0; k < plan->buffer_count; k++)
        if (plan->buffers[k].kind == PL_OUTPUT) out_outputs[plan->buffers[k].index] = m.memory[k];
    return MDOT_OK;
}
