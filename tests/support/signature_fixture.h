/* signature_fixture.h — a plan with some buffers, for tests of the keys of its kernels. */
#ifndef TEST_SIGNATURE_FIXTURE_H
#define TEST_SIGNATURE_FIXTURE_H

#include "codegen/cpu/kernel_signature.h"

enum { KEY_FIXTURE_BUFFERS = 12 };

typedef struct key_fixture {
    ir_arena *arena; /* destroyed by the caller */
    pl_buffer buffers[KEY_FIXTURE_BUFFERS];
    const cg_cpu_target *target; /* x86-64-v3 in f32 */
    pl_plan plan;
} key_fixture;

/* Also begins the changes of mutate.h. */
void key_fixture_begin(key_fixture *f);

/* An f32 load of a buffer. */
const pl_expr *key_fixture_load(key_fixture *f, int buffer);

cg_signature key_fixture_key(key_fixture *f, const pl_kernel *kernel);
bool key_fixture_same(key_fixture *f, const pl_kernel *a, const pl_kernel *b);

#endif
