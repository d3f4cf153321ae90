/* signature_fixture.h — a plan with some buffers, for tests of kernel signatures. */
#pragma once

#include "codegen/cpu/signatures.h"

enum { SIGNATURE_FIXTURE_BUFFERS = 12 };

typedef struct signature_fixture {
    ir_arena *arena; /* destroyed by the caller */
    pl_buffer buffers[SIGNATURE_FIXTURE_BUFFERS];
    const cg_cpu_target *target; /* x86-64-v3 in f32 */
    pl_plan plan;
} signature_fixture;

/* Also begins the changes of mutate.h. */
void signature_fixture_begin(signature_fixture *f);

/* An f32 load of a buffer. */
const pl_expr *signature_fixture_load(signature_fixture *f, int buffer);

cg_signature signature_fixture_of(signature_fixture *f, const pl_kernel *kernel);
bool signature_fixture_same(signature_fixture *f, const pl_kernel *a, const pl_kernel *b);
