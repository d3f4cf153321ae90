/* test_nvrtc.c — CUDA C compiled by NVRTC into cubins for every architecture, without a GPU. If NVRTC is absent, only
 * the absence test runs. */
#include "tests/support/assertions.h"
#include "tests/support/cubin_fixture.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Kernels with countable resources. One has shared memory and a barrier. One calls a function with an array on the
 * stack, because it is indexed at run time. One has eight matrix multiplications. One has more live values than a
 * thread's 64 registers (1024 threads). */
static const char *const parts[] = {
    "struct arguments { float *out; const unsigned *in; int stride; unsigned char rest[44]; };\n"
    "__device__ inline void product(float *c, const unsigned *w)\n"
    "{\n"
    "#if __CUDA_ARCH__ >= 800\n"
    "    asm volatile(\"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},\"\n"
    "                 \"{%0,%1,%2,%3};\" : \"+f\"(c[0]), \"+f\"(c[1]), \"+f\"(c[2]), \"+f\"(c[3])\n"
    "                 : \"r\"(w[0]), \"r\"(w[1]), \"r\"(w[2]), \"r\"(w[3]), \"r\"(w[4]), \"r\"(w[5]));\n"
    "#else\n"
    "    asm volatile(\"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5},{%6},{%0,%1,%2,%3};\"\n"
    "                 : \"+f\"(c[0]), \"+f\"(c[1]), \"+f\"(c[2]), \"+f\"(c[3]) : \"r\"(w[0]), \"r\"(w[1]), "
    "\"r\"(w[2]));\n"
    "#endif\n"
    "}\n",
    "extern \"C\" __global__ void __launch_bounds__(64) exchange(const __grid_constant__ arguments a)\n"
    "{\n"
    "    __shared__ float value[64];\n"
    "    value[threadIdx.x] = a.out[threadIdx.x];\n"
    "    __syncthreads();\n"
    "    a.out[threadIdx.x] = value[63 - threadIdx.x];\n"
    "}\n"
    "__device__ __noinline__ void mix(float *out, int stride)\n"
    "{\n"
    "    float value[100];\n"
    "    for (int i = 0; i < 100; i++) value[i] = out[i];\n"
    "    for (int i = 0; i < 100; i++) value[i * stride % 100] += value[i];\n"
    "    for (int i = 0; i < 100; i++) out[i] = value[i];\n"
    "}\n"
    "extern \"C\" __global__ void __launch_bounds__(256) on_the_stack(const __grid_constant__ arguments a)\n"
    "{\n"
    "    mix(a.out, a.stride);\n"
    "}\n"
    "extern \"C\" __global__ void __launch_bounds__(1024) too_many_values(const __grid_constant__ arguments a)\n"
    "{\n"
    "    float value[120];\n"
    "#pragma unroll\n"
    "    for (int i = 0; i < 120; i++) value[i] = a.out[i * 1024 + threadIdx.x];\n"
    "    __syncthreads();\n"
    "#pragma unroll\n"
    "    for (int i = 0; i < 120; i++) a.out[(119 - i) * 1024 + threadIdx.x] = value[i] * value[i * 7 % 120];\n"
    "}\n"
    "extern \"C\" __global__ void __launch_bounds__(256) eight_products(const __grid_constant__ arguments a)\n"
    "{\n"
    "    float c[4] = {0, 0, 0, 0};\n"
    "#pragma unroll\n"
    "    for (int i = 0; i < 8; i++) product(c, a.in + 6 * i);\n"
    "    for (int i = 0; i < 4; i++) a.out[4 * threadIdx.x + i] = c[i];\n"
    "}\n"};
enum { PARTS = sizeof parts / sizeof parts[0] };

static cu_cubin compile_for(const cu_nvrtc *nvrtc, const cubin_architecture *architecture, ir_arena *arena)
{
    cu_cubin cubin = {0};
    mdot_error err;
    if (cu_nvrtc_compile(nvrtc, parts, PARTS, architecture->sm, architecture->is_accelerated, arena, &cubin, &err) !=
        MDOT_OK)
        fail_msg("%s", err.message);
    return cubin;
}

/* Returns the number before `unit` in ptxas's report on a kernel, two lines after the name, or 0 if the report lacks
 * it. */
static unsigned reported(const char *log, const char *kernel, const char *unit)
{
    char title[128];
    snprintf(title, sizeof title, "Function properties for %s\n", kernel);
    const char *at = strstr(log, title);
    assert_non_null(at);
    at += strlen(title);
    const char *used = strstr(at, ": Used "), *found = strstr(at, unit);
    assert_non_null(used);
    if (found == NULL || found > used + strcspn(used, "\n")) return 0;
    while (found[-1] == ' ') found--;
    while (found[-1] >= '0' && found[-1] <= '9') found--;
    return (unsigned)strtoul(found, NULL, 10);
}

static void resources_match_ptxas_on_every_architecture(void **state)
{
    (void)state;
    cu_nvrtc nvrtc = cubin_nvrtc_or_skip();
    for (int i = 0; i < CUBIN_ARCHITECTURES; i++) {
        if (!cubin_is_known(&nvrtc, &cubin_architectures[i])) continue;
        ir_arena *arena = ir_arena_create(0);
        cu_cubin cubin = compile_for(&nvrtc, &cubin_architectures[i], arena);
        assert_int_equal(cubin.sm, cubin_architectures[i].sm);
        assert_int_equal(cubin.kernel_count, 4);
        for (int k = 0; k < cubin.kernel_count; k++) {
            const cu_cubin_kernel *kernel = &cubin.kernels[k];
            assert_int_equal(kernel->registers, reported(cubin.log, kernel->name, "registers"));
            if (strstr(cubin.log, " barriers") != NULL) /* since CUDA 12 */
                assert_int_equal(kernel->barriers, reported(cubin.log, kernel->name, "barriers"));
            assert_int_equal(kernel->shared_bytes, reported(cubin.log, kernel->name, "bytes smem"));
            assert_int_equal(kernel->local_bytes, reported(cubin.log, kernel->name, "bytes stack frame"));
            assert_int_equal(kernel->parameter_bytes, 64);
            assert_compare(kernel->code_bytes, >, 0);
        }
        const cu_cubin_kernel *exchange = cu_cubin_find(&cubin, "exchange");
        assert_int_equal(exchange->shared_bytes, 256);
        assert_int_equal(exchange->barriers, 1);
        assert_int_equal(exchange->max_threads, 64);
        assert_int_equal(exchange->tensor_instructions, 0);
        assert_int_equal(exchange->local_bytes, 0);
        assert_int_equal(cu_cubin_find(&cubin, "on_the_stack")->local_bytes, 400);
        assert_int_equal(cu_cubin_find(&cubin, "on_the_stack")->spill_bytes, 0);
        assert_int_equal(cu_cubin_find(&cubin, "eight_products")->tensor_instructions, 8);
        assert_compare(cu_cubin_find(&cubin, "too_many_values")->spill_bytes, >, 0);
        assert_int_equal(cu_cubin_find(&cubin, "too_many_values")->registers, 64);
        ir_arena_destroy(arena);
    }
}

/* Bits all over a real cubin are flipped. The reads must stay inside the file (checked by the sanitizers). */
static void damaged_real_cubin_is_read_within_bounds(void **state)
{
    (void)state;
    cu_nvrtc nvrtc = cubin_nvrtc_or_skip();
    ir_arena *arena = ir_arena_create(0);
    cu_cubin cubin = compile_for(&nvrtc, &cubin_architectures[1], arena);
    unsigned char *changed = malloc(cubin.size_bytes);
    memcpy(changed, cubin.bytes, cubin.size_bytes);
    for (size_t i = 0; i < 8 * cubin.size_bytes; i += 61) { /* because 61 is prime, every bit position is covered */
        changed[i / 8] ^= (unsigned char)(1u << i % 8);
        ir_arena *own = ir_arena_create(0);
        cu_cubin damaged;
        mdot_error err = {0};
        mdot_status status = cu_cubin_read(changed, cubin.size_bytes, cubin.log, own, &damaged, &err);
        assert_true(status == MDOT_OK || (status == MDOT_MALFORMED && err.message[0] != '\0'));
        ir_arena_destroy(own);
        changed[i / 8] ^= (unsigned char)(1u << i % 8);
    }
    free(changed);
    ir_arena_destroy(arena);
}

static void errors_in_the_source_name_part_line_and_reason(void **state)
{
    (void)state;
    cu_nvrtc nvrtc = cubin_nvrtc_or_skip();
    ir_arena *arena = ir_arena_create(0);
    const char *const wrong[] = {parts[0],
                                 "__device__ int unused;\n\nextern \"C\" __global__ void k() { nowhere(); }\n"};
    cu_cubin cubin = {.size_bytes = 7};
    mdot_error err;
    assert_int_equal(cu_nvrtc_compile(&nvrtc, wrong, 2, 80, false, arena, &cubin, &err), MDOT_TOOLCHAIN);
    assert_non_null(strstr(err.message, "(3)"));
    assert_non_null(strstr(err.message, "\"nowhere\" is undefined"));
    assert_non_null(strstr(err.message, "sm_80"));
    assert_int_equal(cubin.size_bytes, 7);
    ir_arena_destroy(arena);
}

static void unknown_architecture_lists_the_known(void **state)
{
    (void)state;
    cu_nvrtc nvrtc = cubin_nvrtc_or_skip();
    ir_arena *arena = ir_arena_create(0);
    cu_cubin cubin;
    mdot_error err;
    assert_int_equal(cu_nvrtc_compile(&nvrtc, parts, PARTS, 77, false, arena, &cubin, &err), MDOT_TOOLCHAIN);
    assert_non_null(strstr(err.message, "not support sm_77"));
    assert_non_null(strstr(err.message, "80, "));
    ir_arena_destroy(arena);
}

typedef struct job {
    const cu_nvrtc *nvrtc;
    const cubin_architecture *architecture;
    ir_arena *arena;
    cu_cubin cubin;
    mdot_status status;
} job;

static void *run_job(void *argument)
{
    job *j = argument;
    j->status = cu_nvrtc_compile(j->nvrtc, parts, PARTS, j->architecture->sm, j->architecture->is_accelerated, j->arena,
                                 &j->cubin, NULL);
    return NULL;
}

static void threads_compile_concurrently(void **state)
{
    (void)state;
    cu_nvrtc nvrtc = cubin_nvrtc_or_skip();
    enum { JOBS = 3 };
    job jobs[JOBS];
    pthread_t threads[JOBS];
    for (int i = 0; i < JOBS; i++) {
        jobs[i] = (job){.nvrtc = &nvrtc, .architecture = &cubin_architectures[i], .arena = ir_arena_create(0)};
        assert_int_equal(pthread_create(&threads[i], NULL, run_job, &jobs[i]), 0);
    }
    for (int i = 0; i < JOBS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < JOBS; i++) {
        assert_int_equal(jobs[i].status, MDOT_OK);
        const cu_cubin *cubin = &jobs[i].cubin;
        assert_int_equal(cubin->sm, jobs[i].architecture->sm);
        assert_int_equal(cubin->kernel_count, 4);
        assert_int_equal(cu_cubin_find(cubin, "eight_products")->tensor_instructions, 8);
        assert_int_equal(cu_cubin_find(cubin, "exchange")->shared_bytes, 256);
        ir_arena_destroy(jobs[i].arena);
    }
}

static void missing_library_is_named_by_its_path(void **state)
{
    (void)state;
    setenv("MDOT_NVRTC", "/nonexistent/libnvrtc.so", 1);
    cu_nvrtc nvrtc = {.major = 7};
    mdot_error err;
    assert_int_equal(cu_nvrtc_load(&nvrtc, &err), MDOT_TOOLCHAIN);
    assert_non_null(strstr(err.message, "MDOT_NVRTC"));
    assert_non_null(strstr(err.message, "/nonexistent/libnvrtc.so"));
    assert_non_null(strstr(err.message, "install "));
    assert_int_equal(nvrtc.major, 7);
    unsetenv("MDOT_NVRTC");
}

static void another_library_is_refused(void **state)
{
    (void)state;
    setenv("MDOT_NVRTC", "libm.so.6", 1);
    cu_nvrtc nvrtc;
    mdot_error err;
    assert_int_equal(cu_nvrtc_load(&nvrtc, &err), MDOT_TOOLCHAIN);
    assert_non_null(strstr(err.message, "lacks nvrtc"));
    unsetenv("MDOT_NVRTC");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resources_match_ptxas_on_every_architecture),
        cmocka_unit_test(damaged_real_cubin_is_read_within_bounds),
        cmocka_unit_test(errors_in_the_source_name_part_line_and_reason),
        cmocka_unit_test(unknown_architecture_lists_the_known),
        cmocka_unit_test(threads_compile_concurrently),
        cmocka_unit_test(missing_library_is_named_by_its_path),
        cmocka_unit_test(another_library_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
