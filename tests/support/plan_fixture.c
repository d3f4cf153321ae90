/* plan_fixture.c — see plan_fixture.h. */
#include "tests/support/plan_fixture.h"
#include "tests/support/assertions.h"

#include "tests/support/plan_interpreter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

void plan_begin(plan_fixture *f, int64_t max_length)
{
    memset(f, 0, sizeof *f);
    f->arena = ir_arena_create(0);
    assert_non_null(f->arena);
    f->plan = (pl_plan){.arena = f->arena, .max_length = max_length, .buffers = f->buffers, .kernels = f->kernels};
}

void plan_end(plan_fixture *f) { ir_arena_destroy(f->arena); }

static int add_buffer(plan_fixture *f, pl_buffer_kind kind, mdot_dtype dtype, int rank, const ir_dim *dims, int index)
{
    int number = f->plan.buffer_count++;
    assert_compare(number, <, PLAN_MAX_BUFFERS);
    f->buffers[number] = (pl_buffer){.kind = kind, .name = "b", .type = {.dtype = dtype, .rank = rank}, .index = index};
    for (int d = 0; d < rank; d++) f->buffers[number].type.dim[d] = dims[d];
    return number;
}

int plan_input_between(plan_fixture *f, mdot_dtype dtype, double low, double high, int rank, const ir_dim *dims)
{
    int number = add_buffer(f, PL_INPUT, dtype, rank, dims, f->input_count++);
    f->low[number] = low;
    f->high[number] = high;
    return number;
}

int plan_input(plan_fixture *f, mdot_dtype dtype, int rank, const ir_dim *dims)
{
    double low = ir_dtype_is_unsigned(dtype) ? 0 : -4, high = dtype == MDOT_DTYPE_BOOL ? 1 : 4;
    return plan_input_between(f, dtype, low, high, rank, dims);
}

int plan_output(plan_fixture *f, mdot_dtype dtype, int rank, const ir_dim *dims)
{
    return add_buffer(f, PL_OUTPUT, dtype, rank, dims, f->output_count++);
}

static pl_kernel *add_kernel(plan_fixture *f, pl_kind kind)
{
    int number = f->plan.kernel_count++;
    assert_compare(number, <, PLAN_MAX_KERNELS);
    f->kernels[number] = (pl_kernel){.kind = kind, .name = ir_arena_printf(f->arena, "k%d", number), .origin = ""};
    return &f->kernels[number];
}

void plan_nest(plan_fixture *f, pl_nest nest) { add_kernel(f, PL_NEST)->nest = nest; }

void plan_sequential(plan_fixture *f, pl_sequential sequential)
{
    add_kernel(f, PL_SEQUENTIAL)->sequential = sequential;
}

static double random_between(double low, double high) { return low + (high - low) * (rand() / (double)RAND_MAX); }

static void fill(const plan_fixture *f, int buffer, ir_wide *wide)
{
    double low = f->low[buffer], high = f->high[buffer];
    for (int64_t i = 0; i < wide->count; i++) {
        if (wide->i) {
            int64_t value = (int64_t)floor(random_between(low, high + 1));
            wide->i[i] = ir_wrap_integer(wide->dtype, value > (int64_t)high ? (int64_t)high : value);
        } else {
            /* few distinct values, so some are equal and some are integers */
            wide->f[i] = ldexp(floor(ldexp(random_between(low, high), 5)), -5);
        }
    }
}

static double tolerance(mdot_dtype dtype)
{
    switch (dtype) {
    case MDOT_DTYPE_F16: return 4e-3;
    case MDOT_DTYPE_BF16: return 3e-2;
    case MDOT_DTYPE_F32: return 5e-6;
    case MDOT_DTYPE_F64: return 2e-12;
    default: return 0;
    }
}

static bool is_close(double got, double want, mdot_dtype dtype)
{
    if (isnan(want) || isinf(want)) return isnan(want) ? isnan(got) : got == want;
    return fabs(got - want) <= tolerance(dtype) * fmax(1, fabs(want));
}

static void compare(const ir_wide *got, const ir_wide *want, int output, int64_t length, mdot_cpu_isa level)
{
    for (int64_t i = 0; i < want->count; i++) {
        bool same = want->i ? got->i[i] == want->i[i] : is_close(got->f[i], want->f[i], want->dtype);
        if (!same)
            fail_msg("output %d (%s), length %lld, level %d, element %lld: %.17g, expected %.17g", output,
                     mdot_dtype_name(want->dtype), (long long)length, (int)level, (long long)i, ir_wide_get(got, i),
                     ir_wide_get(want, i));
    }
}

typedef struct run {
    const ir_wide *inputs[PLAN_MAX_BUFFERS];
    const void *input_bytes[PLAN_MAX_BUFFERS];
    ir_wide *expected[PLAN_MAX_BUFFERS];
} run;

static ir_wide *create_wide(ir_arena *arena, const ir_type *type, int64_t length)
{
    int64_t dims[MDOT_MAX_RANK];
    for (int d = 0; d < type->rank; d++) dims[d] = ir_dim_at(type->dim[d], length);
    ir_wide *wide = ir_wide_create(arena, type->dtype, type->rank, dims);
    assert_non_null(wide);
    return wide;
}

static void prepare(plan_fixture *f, ir_arena *arena, int64_t length, run *r)
{
    mdot_error err;
    for (int b = 0; b < f->plan.buffer_count; b++) {
        const pl_buffer *buffer = &f->buffers[b];
        if (buffer->kind != PL_INPUT) continue;
        ir_wide *wide = create_wide(arena, &buffer->type, length);
        fill(f, b, wide);
        const ir_tensor *tensor = ir_tensor_from_wide(arena, wide);
        r->inputs[buffer->index] =
            ir_wide_from_tensor(arena, tensor); /* rounded to the type, so both sides read the same values */
        r->input_bytes[buffer->index] = tensor->data;
    }
    if (pl_interpret(&f->plan, length, r->inputs, arena, r->expected, &err) != MDOT_OK) fail_msg("%s", err.message);
}

/* Calls that share the kernels' work return the same bits as one call for all. */
static void check_slices(const plan_fixture *f, const harness_plan *code, const run *r, int64_t length,
                         unsigned char *const *whole, const size_t *bytes)
{
    static const int64_t cuts[] = {INT64_C(1) << 28, INT64_C(3) << 30, MDOT_ABI_WHOLE_SLICE - 1};
    unsigned char *outputs[PLAN_MAX_BUFFERS];
    for (int o = 0; o < f->output_count; o++) {
        outputs[o] = malloc(bytes[o] + 1);
        assert_non_null(outputs[o]);
        memset(outputs[o], 0xA7, bytes[o]);
    }
    harness_call_slices(code, r->input_bytes, (void *const *)outputs, length, cuts, 3);
    for (int o = 0; o < f->output_count; o++) {
        assert_memory_equal(outputs[o], whole[o], bytes[o]);
        free(outputs[o]);
    }
}

/* Outputs have the minimum size, so the address sanitizer or a guard detects an overrun. */
static void run_level(plan_fixture *f, const harness_plan *code, ir_arena *arena, const run *r, int64_t length,
                      mdot_cpu_isa level)
{
    enum { GUARD = 64 };
    unsigned char *outputs[PLAN_MAX_BUFFERS];
    size_t bytes[PLAN_MAX_BUFFERS];
    for (int o = 0; o < f->output_count; o++) {
        bytes[o] = (size_t)r->expected[o]->count * mdot_dtype_size_bytes(r->expected[o]->dtype);
        outputs[o] = malloc(bytes[o] + GUARD);
        assert_non_null(outputs[o]);
        memset(outputs[o], 0x5A, bytes[o] + GUARD);
    }
    harness_call_plan(code, r->input_bytes, (void *const *)outputs, length);
    check_slices(f, code, r, length, outputs, bytes);
    for (int o = 0; o < f->output_count; o++) {
        const ir_wide *want = r->expected[o];
        ir_tensor tensor = {.dtype = want->dtype, .rank = want->rank, .count = want->count, .data = outputs[o]};
        memcpy(tensor.dims, want->dims, sizeof tensor.dims);
        compare(ir_wide_from_tensor(arena, &tensor), want, o, length, level);
        for (int i = 0; i < GUARD; i++) assert_int_equal(outputs[o][bytes[o] + (size_t)i], 0x5A);
        free(outputs[o]);
    }
}

void plan_check(plan_fixture *f, const int64_t *lengths)
{
    static const mdot_cpu_isa levels[] = {MDOT_CPU_X86_64_V3, MDOT_CPU_X86_64_V4, MDOT_CPU_AARCH64_NEON};
    for (size_t l = 0; l < sizeof levels / sizeof levels[0]; l++) {
        if (!harness_runs(levels[l])) continue;
        harness_plan code;
        harness_load_plan(&code, &f->plan, levels[l]);
        for (const int64_t *length = lengths; *length; length++) {
            ir_arena *arena = ir_arena_create(0);
            run r;
            assert_non_null(arena);
            prepare(f, arena, *length, &r);
            run_level(f, &code, arena, &r, *length, levels[l]);
            ir_arena_destroy(arena);
        }
        harness_unload_plan(&code);
    }
}
