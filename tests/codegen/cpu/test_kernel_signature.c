/* test_kernel_signature.c — kernels that differ in any field have different signatures; with equal signatures they
 * would share code. test_kernel_signature_buffers.c tests the buffer fields.
 *
 * Every structure in plan.h that is a kernel part is listed here field by field, with a value and a kind. The list
 * initialises the test's start value by position, so a missing field fails to compile. Each field is then changed in
 * every way allowed by the kind, and each change must change the signature. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plan/kernel_kind.h"
#include "tests/support/assertions.h"
#include "tests/support/mutate.h"
#include "tests/support/signature_fixture.h"

#pragma GCC diagnostic error "-Wmissing-field-initializers"

#define FIELD_VALUE(type, kind, name, ...) __VA_ARGS__,
#define FIELD_ROW(type, kind, name, ...) {#name, offsetof(type, name), mutate_##kind},
#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

/* ---- Parts of kernels -------------------------------------------------------------------------------------------- */

#define MATRIX(X)                                                                                                      \
    X(pl_matrix, buffer, buffer, 0)                                                                                    \
    X(pl_matrix, dim, offset, {.offset = 3}) X(pl_matrix, dim, row_stride, {.offset = 8})
#define HEADS(X)                                                                                                       \
    X(pl_heads, buffer, buffer, 0)                                                                                     \
    X(pl_heads, dim, offset, {.offset = 3})                                                                            \
    X(pl_heads, dim, batch_stride, {.scale = 64})                                                                      \
    X(pl_heads, dim, head_stride, {.offset = 8})                                                                       \
    X(pl_heads, dim, row_stride, {.offset = 32})
#define STORE(X)                                                                                                       \
    X(pl_store, buffer, buffer, 0)                                                                                     \
    X(pl_store, expr, index, mutate_other_expr) X(pl_store, expr, value, mutate_other_expr)

static int mutate_matrix(void *at, int step)
{
    static const mutate_field fields[] = {MATRIX(FIELD_ROW)};
    return mutate_fields(fields, COUNT(fields), at, step, NULL);
}

static int mutate_heads(void *at, int step)
{
    static const mutate_field fields[] = {HEADS(FIELD_ROW)};
    return mutate_fields(fields, COUNT(fields), at, step, NULL);
}

/* Of the masks in use, because a signature leaves out the others. */
enum { MASKS = 2 };
static int mutate_masks(void *at, int step)
{
    int own = mutate_heads(at, -1);
    if (step >= 0) mutate_heads((pl_heads *)at + step / own, step % own);
    return MASKS * own;
}

static int mutate_replaces(void *at, int step)
{
    int own = mutate_real(at, -1);
    if (step >= 0) mutate_real((double *)at + step / own, step % own);
    return MASKS * own;
}

static int mutate_store(void *at, int step)
{
    static const mutate_field fields[] = {STORE(FIELD_ROW)};
    return mutate_fields(fields, COUNT(fields), at, step, NULL);
}

static int mutate_window_dims(pl_window_dims *dims, int step)
{
    int own = mutate_dim(&dims->extent[0], -1), half = PL_MAX_WINDOW_DIMS * own;
    if (step == 2 * half)
        dims->count--;
    else if (step >= 0)
        mutate_dim((step < half ? dims->extent : dims->stride) + step % half / own, step % own);
    return 2 * half + 1;
}

/* Windows in another form, and none. */
static int mutate_windows(void *at, int step)
{
    static pl_windows changed;
    const pl_windows **windows = at;
    int own = mutate_window_dims(&changed.rows, -1);
    if (step < 0) return 2 * own + 1;
    changed = **windows;
    if (step < 2 * own) mutate_window_dims(step < own ? &changed.rows : &changed.columns, step % own);
    *windows = step < 2 * own ? &changed : NULL;
    return 2 * own + 1;
}

static pl_matrix matrix(int buffer)
{
    pl_matrix m = {MATRIX(FIELD_VALUE)};
    m.buffer = buffer;
    return m;
}

static pl_heads heads(int buffer)
{
    pl_heads h = {HEADS(FIELD_VALUE)};
    h.buffer = buffer;
    return h;
}

static pl_store store(int buffer, const pl_expr *index, const pl_expr *value)
{
    pl_store s = {STORE(FIELD_VALUE)};
    s.buffer = buffer;
    s.index = index;
    s.value = value;
    return s;
}

/* The used array elements. */
enum { LOOPS = 3, STORES = 2 };

static int mutate_extents(void *at, int step)
{
    int own = mutate_dim(at, -1);
    if (step >= 0) mutate_dim((ir_dim *)at + step / own, step % own);
    return own * LOOPS;
}

static int mutate_stores(void *at, int step)
{
    int own = mutate_store(at, -1);
    if (step >= 0) mutate_store((pl_store *)at + step / own, step % own);
    return STORES * own;
}

static int mutate_inputs(void *at, int step)
{
    if (step >= 0) mutate_optional((int *)at + step / 2, step % 2);
    return 2 * 4;
}

static int mutate_outputs(void *at, int step)
{
    if (step >= 0) mutate_optional((int *)at + step / 2, step % 2);
    return 2 * 2;
}

static int mutate_operands(void *at, int step)
{
    const pl_expr **operands = at;
    if (step >= 0) operands[step] = mutate_moved(operands[step]);
    return 3;
}

/* ---- Keys -------------------------------------------------------------------------------------------------------- */

/* Operands on two buffers: the signature must contain each operand's buffer. `numbers` are in operand order, and the
 * first operand reads buffer 0. Both buffers are visited in the same order for every choice of the tested operand, so
 * only this choice distinguishes the kernels. */
static void assert_numbers_count(signature_fixture *s, const pl_kernel *kernel, int *const *numbers, int count)
{
    for (int i = 1; i < count; i++) {
        for (int k = 0; k < count; k++) *numbers[k] = 0;
        *numbers[i == count - 1 ? 1 : count - 1] = 1;
        *numbers[i] = 0;
        cg_signature first = signature_fixture_of(s, kernel);
        *numbers[i] = 1;
        cg_signature second = signature_fixture_of(s, kernel);
        if (cg_signature_equal(&first, &second))
            fail_msg("%s kernels share code whose operand %d is on another buffer", pl_kind_name(kernel->kind), i);
    }
}

/* A load whose buffer the test can change. */
static pl_expr *loose_load(signature_fixture *s)
{
    pl_expr *copy = IR_NEW(s->arena, pl_expr);
    assert_non_null(copy);
    *copy = *signature_fixture_load(s, 0);
    return copy;
}

/* Tests every change in every field of a structure at `offset` in the kernel. */
static void assert_all_count(signature_fixture *s, const pl_kernel *kernel, size_t offset, const mutate_field *fields,
                             int count)
{
    int steps = mutate_fields(fields, count, (char *)&(pl_kernel){0} + offset, -1, NULL);
    assert_compare(steps, >=, count);
    for (int step = 0; step < steps; step++) {
        pl_kernel changed = *kernel;
        const char *name = NULL;
        mutate_fields(fields, count, (char *)&changed + offset, step, &name);
        assert_non_null(name);
        if (signature_fixture_same(s, kernel, &changed))
            fail_msg("%s kernels that differ in %s share code", pl_kind_name(kernel->kind), name);
    }
}

/* ---- Kernels ----------------------------------------------------------------------------------------------------- */

static const pl_windows windows = {{3, {{.offset = 2}, {.offset = 3}, {.offset = 4}}, {{.offset = 5}}},
                                   {3, {{.offset = 6}, {.offset = 7}, {.offset = 8}}, {{.offset = 9}}}};

#define LINEAR(X)                                                                                                      \
    X(pl_linear, matrix, a, matrix(0))                                                                                 \
    X(pl_linear, windows, windows, &windows)                                                                           \
    X(pl_linear, dim, rows, {.scale = 1})                                                                              \
    X(pl_linear, i64, k, 32)                                                                                           \
    X(pl_linear, i64, columns, 16)                                                                                     \
    X(pl_linear, buffer, weight, 1)                                                                                    \
    X(pl_linear, optional, bias, 2)                                                                                    \
    X(pl_linear, optional_expr, epilogue, signature_fixture_load(&s, 3))                                               \
    X(pl_linear, matrix, out, matrix(4))

static void signatures_include_every_field_of_a_linear(void **state)
{
    (void)state;
    signature_fixture s;
    signature_fixture_begin(&s);
    static const mutate_field fields[] = {LINEAR(FIELD_ROW)};
    pl_kernel kernel = {.kind = PL_LINEAR, .linear = {LINEAR(FIELD_VALUE)}};
    assert_all_count(&s, &kernel, offsetof(pl_kernel, linear), fields, COUNT(fields));
    pl_linear *k = &kernel.linear;
    pl_expr *in_epilogue = loose_load(&s);
    k->epilogue = in_epilogue;
    int *const numbers[] = {&k->a.buffer, &k->weight, &k->bias, &in_epilogue->i, &k->out.buffer};
    assert_numbers_count(&s, &kernel, numbers, COUNT(numbers));
    ir_arena_destroy(s.arena);
}

#define ATTENTION(X)                                                                                                   \
    X(pl_attention, dim, batch, {.offset = 2})                                                                         \
    X(pl_attention, i64, heads, 4)                                                                                     \
    X(pl_attention, i64, kv_heads, 2)                                                                                  \
    X(pl_attention, dim, queries, {.scale = 1})                                                                        \
    X(pl_attention, dim, keys, {.scale = 1})                                                                           \
    X(pl_attention, i64, dim, 8)                                                                                       \
    X(pl_attention, i64, value_dim, 16)                                                                                \
    X(pl_attention, real, scale, 0.25)                                                                                 \
    X(pl_attention, real, softcap, 30)                                                                                 \
    X(pl_attention, heads, q, heads(0))                                                                                \
    X(pl_attention, heads, k, heads(1))                                                                                \
    X(pl_attention, heads, v, heads(2))                                                                                \
    X(pl_attention, heads, out, heads(3))                                                                              \
    X(pl_attention, i32, mask_count, MASKS)                                                                            \
    X(pl_attention, masks, mask, {heads(4), heads(5), heads(6)})                                                       \
    X(pl_attention, replaces, replaces, {-1e4, -5, 0})                                                                 \
    X(pl_attention, flag, causal, false)

static void signatures_include_every_field_of_an_attention(void **state)
{
    (void)state;
    signature_fixture s;
    signature_fixture_begin(&s);
    static const mutate_field fields[] = {ATTENTION(FIELD_ROW)};
    pl_kernel kernel = {.kind = PL_ATTENTION, .attention = {ATTENTION(FIELD_VALUE)}};
    assert_all_count(&s, &kernel, offsetof(pl_kernel, attention), fields, COUNT(fields));
    pl_attention *k = &kernel.attention;
    int *const numbers[] = {&k->q.buffer,       &k->k.buffer,       &k->v.buffer,
                            &k->mask[0].buffer, &k->mask[1].buffer, &k->out.buffer};
    assert_numbers_count(&s, &kernel, numbers, COUNT(numbers));
    ir_arena_destroy(s.arena);
}

#define NORM(X)                                                                                                        \
    X(pl_norm, choice, mode, PL_NORM_LAYER)                                                                            \
    X(pl_norm, dim, rows, {.scale = 1})                                                                                \
    X(pl_norm, dim, columns, {.offset = 32})                                                                           \
    X(pl_norm, expr, input, signature_fixture_load(&s, 0))                                                             \
    X(pl_norm, real, epsilon, 1e-5)                                                                                    \
    X(pl_norm, optional, gamma, 1)                                                                                     \
    X(pl_norm, optional, beta, 2)                                                                                      \
    X(pl_norm, optional_expr, epilogue, signature_fixture_load(&s, 3))                                                 \
    X(pl_norm, matrix, out, matrix(4))                                                                                 \
    X(pl_norm, matrix, sum, matrix(5))

static void signatures_include_every_field_of_a_norm(void **state)
{
    (void)state;
    signature_fixture s;
    signature_fixture_begin(&s);
    static const mutate_field fields[] = {NORM(FIELD_ROW)};
    pl_kernel kernel = {.kind = PL_NORM, .norm = {NORM(FIELD_VALUE)}};
    assert_all_count(&s, &kernel, offsetof(pl_kernel, norm), fields, COUNT(fields));
    kernel.norm.sum.buffer = -1; /* absent */
    pl_kernel summed = kernel;
    summed.norm.sum.buffer = 5;
    assert_false(signature_fixture_same(&s, &kernel, &summed));
    pl_norm *k = &kernel.norm;
    pl_expr *in_input = loose_load(&s), *in_epilogue = loose_load(&s);
    k->input = in_input;
    k->epilogue = in_epilogue;
    int *const numbers[] = {&in_input->i, &k->gamma, &k->beta, &in_epilogue->i, &k->out.buffer, &k->sum.buffer};
    assert_numbers_count(&s, &kernel, numbers, COUNT(numbers));
    ir_arena_destroy(s.arena);
}

#define NEST(X)                                                                                                        \
    X(pl_nest, i32, loop_count, 2)                                                                                     \
    X(pl_nest, i32, reduce_count, 1)                                                                                   \
    X(pl_nest, extents, extent, {{.scale = 1}, {.offset = 32}, {.offset = 8}})                                         \
    X(pl_nest, choice, reducer, PL_REDUCE_SUM)                                                                         \
    X(pl_nest, optional_expr, body, signature_fixture_load(&s, 0))                                                     \
    X(pl_nest, i32, store_count, STORES)                                                                               \
    X(pl_nest, stores, store,                                                                                          \
      {store(1, signature_fixture_load(&s, 2), signature_fixture_load(&s, 3)),                                         \
       store(4, signature_fixture_load(&s, 5), signature_fixture_load(&s, 6))})

static void signatures_include_every_field_of_a_nest(void **state)
{
    (void)state;
    signature_fixture s;
    signature_fixture_begin(&s);
    static const mutate_field fields[] = {NEST(FIELD_ROW)};
    pl_kernel kernel = {.kind = PL_NEST, .nest = {NEST(FIELD_VALUE)}};
    assert_all_count(&s, &kernel, offsetof(pl_kernel, nest), fields, COUNT(fields));
    pl_expr *body = loose_load(&s), *index[STORES] = {loose_load(&s), loose_load(&s)};
    pl_expr *value[STORES] = {loose_load(&s), loose_load(&s)};
    kernel.nest.body = body;
    for (int i = 0; i < STORES; i++) kernel.nest.store[i] = store(0, index[i], value[i]);
    pl_store *stores = kernel.nest.store;
    int *const numbers[] = {&body->i,     &index[0]->i, &value[0]->i,     &stores[0].buffer,
                            &index[1]->i, &value[1]->i, &stores[1].buffer};
    assert_numbers_count(&s, &kernel, numbers, COUNT(numbers));
    pl_kernel moved_loop = kernel; /* one outer loop fewer, one reduction loop more */
    moved_loop.nest.loop_count--;
    moved_loop.nest.reduce_count++;
    assert_false(signature_fixture_same(&s, &kernel, &moved_loop));
    ir_arena_destroy(s.arena);
}

#define SEQUENTIAL(X)                                                                                                  \
    X(pl_sequential, choice, operation, PL_SEQ_TOP_K)                                                                  \
    X(pl_sequential, inputs, input, {0, 1, 2, 3})                                                                      \
    X(pl_sequential, outputs, output, {4, 5})                                                                          \
    X(pl_sequential, i32, axis, 1)                                                                                     \
    X(pl_sequential, flag, exclusive, false)                                                                           \
    X(pl_sequential, flag, reverse, false)                                                                             \
    X(pl_sequential, flag, largest, false)                                                                             \
    X(pl_sequential, flag, sorted, false)                                                                              \
    X(pl_sequential, flag, circular, false)                                                                            \
    X(pl_sequential, choice, reduction, PL_REDUCE_NONE)

static void signatures_include_sequential_kernels_and_their_shapes(void **state)
{
    (void)state;
    signature_fixture s;
    signature_fixture_begin(&s);
    static const mutate_field fields[] = {SEQUENTIAL(FIELD_ROW)};
    pl_kernel kernel = {.kind = PL_SEQUENTIAL, .sequential = {SEQUENTIAL(FIELD_VALUE)}};
    assert_all_count(&s, &kernel, offsetof(pl_kernel, sequential), fields, COUNT(fields));
    pl_kernel on_two = kernel;
    pl_sequential *k = &on_two.sequential;
    int *const numbers[] = {&k->input[0], &k->input[1], &k->input[2], &k->input[3], &k->output[0], &k->output[1]};
    assert_numbers_count(&s, &on_two, numbers, COUNT(numbers));
    cg_signature before = signature_fixture_of(&s, &kernel);
    for (int b = 0; b < 6; b++) {
        ir_type *type = &s.buffers[b].type;
        const ir_type kept = *type;
        for (int d = 0; d < 4; d++) {
            mutate_dim(&type->dim[d / 2], d % 2);
            cg_signature after = signature_fixture_of(&s, &kernel);
            assert_false(cg_signature_equal(&before, &after));
            *type = kept;
        }
        type->rank = 1;
        cg_signature after = signature_fixture_of(&s, &kernel);
        assert_false(cg_signature_equal(&before, &after));
        *type = kept;
    }
    ir_arena_destroy(s.arena);
}

static void signatures_include_steps_and_kernels_of_a_recurrence(void **state)
{
    (void)state;
    signature_fixture s;
    signature_fixture_begin(&s);
    pl_kernel inner[] = {{.kind = PL_LINEAR}, {.kind = PL_NEST}}, others[] = {inner[0], inner[1]};
    inner[0].linear = others[0].linear = (pl_linear){LINEAR(FIELD_VALUE)};
    inner[1].nest = others[1].nest = (pl_nest){NEST(FIELD_VALUE)};
    pl_kernel kernel = {.kind = PL_RECURRENCE}, other = kernel;
    kernel.recurrence = other.recurrence =
        (pl_recurrence){.steps = ir_dim_affine(1, 0), .kernel_count = 2, .kernels = inner};
    assert_true(signature_fixture_same(&s, &kernel, &other));
    for (int part = 0; part < 2; part++) {
        other.recurrence = kernel.recurrence;
        mutate_dim(&other.recurrence.steps, part);
        assert_false(signature_fixture_same(&s, &kernel, &other));
    }
    other.recurrence = kernel.recurrence;
    other.recurrence.kernel_count = 1;
    assert_false(signature_fixture_same(&s, &kernel, &other));
    other.recurrence = kernel.recurrence;
    other.recurrence.kernels = others;
    assert_true(signature_fixture_same(&s, &kernel, &other));
    others[0].linear.columns++;
    assert_false(signature_fixture_same(&s, &kernel, &other));
    others[0] = inner[0];
    others[1].nest.loop_count--;
    assert_false(signature_fixture_same(&s, &kernel, &other));
    ir_arena_destroy(s.arena);
}

/* ---- Expressions ------------------------------------------------------------------------------------------------- */

#define EXPR(X)                                                                                                        \
    X(pl_expr, choice, op, PL_SELECT)                                                                                  \
    X(pl_expr, i32, dtype, MDOT_DTYPE_F32)                                                                             \
    X(pl_expr, i32, i, 0)                                                                                              \
    X(pl_expr, real, f, 0.5)                                                                                           \
    X(pl_expr, i64, n, 0)                                                                                              \
    X(pl_expr, operands, arg,                                                                                          \
      {signature_fixture_load(&s, 0), signature_fixture_load(&s, 2), signature_fixture_load(&s, 3)})

static void signatures_include_every_field_of_an_expression(void **state)
{
    (void)state;
    signature_fixture s;
    signature_fixture_begin(&s);
    static const mutate_field fields[] = {EXPR(FIELD_ROW)};
    const pl_expr base = {EXPR(FIELD_VALUE)};
    pl_kernel kernel = {.kind = PL_NEST, .nest = {.loop_count = 1, .extent = {{.scale = 1}}, .store_count = 1}};
    kernel.nest.store[0] = store(1, mutate_other_expr, &base);
    int steps = mutate_fields(fields, COUNT(fields), &(pl_expr){.op = PL_CONST}, -1, NULL);
    for (int step = 0; step < steps; step++) {
        pl_expr changed = base;
        pl_kernel other = kernel;
        const char *name = NULL;
        mutate_fields(fields, COUNT(fields), &changed, step, &name);
        other.nest.store[0].value = &changed;
        if (signature_fixture_same(&s, &kernel, &other)) fail_msg("expressions that differ in %s share code", name);
    }
    ir_arena_destroy(s.arena);
}

static pl_kernel storing(const pl_expr *value)
{
    pl_kernel kernel = {.kind = PL_NEST, .nest = {.loop_count = 1, .extent = {{.scale = 1}}, .store_count = 1}};
    kernel.nest.store[0] = store(1, mutate_other_expr, value);
    return kernel;
}

static void signatures_include_the_operation(void **state)
{
    (void)state;
    signature_fixture s;
    signature_fixture_begin(&s);
    const pl_expr *a = signature_fixture_load(&s, 0), *b = signature_fixture_load(&s, 2);
    pl_kernel sum = storing(pl_binary(s.arena, PL_ADD, a, b)), product = storing(pl_binary(s.arena, PL_MUL, a, b));
    assert_false(signature_fixture_same(&s, &sum, &product));
    ir_arena_destroy(s.arena);
}

/* A repeated node is written once. The second occurrence must still identify the node. */
static void signatures_include_repeated_nodes(void **state)
{
    (void)state;
    signature_fixture s;
    signature_fixture_begin(&s);
    const pl_expr *a = signature_fixture_load(&s, 0), *b = signature_fixture_load(&s, 2),
                  *sum = pl_binary(s.arena, PL_ADD, a, b);
    pl_kernel first = storing(pl_binary(s.arena, PL_MUL, sum, a)), second = storing(pl_binary(s.arena, PL_MUL, sum, b));
    assert_false(signature_fixture_same(&s, &first, &second));
    ir_arena_destroy(s.arena);
}

static void kernel_kinds_never_share_code(void **state)
{
    (void)state;
    signature_fixture s;
    signature_fixture_begin(&s);
    pl_kernel kernels[] = {
        {.kind = PL_LINEAR}, {.kind = PL_ATTENTION}, {.kind = PL_NORM}, {.kind = PL_NEST}, {.kind = PL_RECURRENCE}};
    kernels[0].linear = (pl_linear){LINEAR(FIELD_VALUE)};
    kernels[1].attention = (pl_attention){ATTENTION(FIELD_VALUE)};
    kernels[2].norm = (pl_norm){NORM(FIELD_VALUE)};
    kernels[3].nest = (pl_nest){NEST(FIELD_VALUE)};
    kernels[4].recurrence = (pl_recurrence){.steps = ir_dim_affine(1, 0), .kernel_count = 1, .kernels = &kernels[3]};
    for (int a = 0; a < COUNT(kernels); a++)
        for (int b = 0; b < a; b++) assert_false(signature_fixture_same(&s, &kernels[a], &kernels[b]));
    ir_arena_destroy(s.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signatures_include_every_field_of_a_linear),
        cmocka_unit_test(signatures_include_every_field_of_an_attention),
        cmocka_unit_test(signatures_include_every_field_of_a_norm),
        cmocka_unit_test(signatures_include_every_field_of_a_nest),
        cmocka_unit_test(signatures_include_sequential_kernels_and_their_shapes),
        cmocka_unit_test(signatures_include_steps_and_kernels_of_a_recurrence),
        cmocka_unit_test(signatures_include_every_field_of_an_expression),
        cmocka_unit_test(signatures_include_the_operation),
        cmocka_unit_test(signatures_include_repeated_nodes),
        cmocka_unit_test(kernel_kinds_never_share_code),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
