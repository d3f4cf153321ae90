/* signature_fixture.c — buffers and signatures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/mutate.h"
#include "tests/support/signature_fixture.h"

void signature_fixture_begin(signature_fixture *f)
{
    *f = (signature_fixture){.arena = ir_arena_create(0)};
    for (int b = 0; b < SIGNATURE_FIXTURE_BUFFERS; b++) {
        f->buffers[b] = (pl_buffer){.kind = PL_SCRATCH, .name = "b", .type = {.dtype = MDOT_DTYPE_F32, .rank = 2}};
        f->buffers[b].type.dim[0] = ir_dim_affine(1, 0);
        f->buffers[b].type.dim[1] = ir_dim_affine(0, 32);
    }
    f->plan = (pl_plan){
        .arena = f->arena, .max_length = 16, .buffers = f->buffers, .buffer_count = SIGNATURE_FIXTURE_BUFFERS};
    f->target = cg_cpu_target_find(MDOT_CPU_X86_64_V3, CG_FP32);
    mutate_begin(f->arena);
}

const pl_expr *signature_fixture_load(signature_fixture *f, int buffer)
{
    return pl_load(f->arena, buffer, MDOT_DTYPE_F32, pl_const_i(f->arena, MDOT_DTYPE_I64, 5));
}

cg_signature signature_fixture_of(signature_fixture *f, const pl_kernel *kernel)
{
    cg_signature signature;
    int *positions = cg_signature_positions(&f->plan, f->arena);
    assert_non_null(positions);
    assert_true(cg_signature_of(f->target, &f->plan, kernel, positions, f->arena, &signature));
    return signature;
}

bool signature_fixture_same(signature_fixture *f, const pl_kernel *a, const pl_kernel *b)
{
    cg_signature first = signature_fixture_of(f, a), second = signature_fixture_of(f, b);
    return cg_signature_equal(&first, &second);
}
