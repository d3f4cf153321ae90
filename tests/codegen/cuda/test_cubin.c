/* test_cubin.c — reading valid and invalid cubins. test_nvrtc.c tests real cubins. */
#include "tests/support/cubin_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static ir_arena *arena;
static const unsigned char *made;
static size_t made_bytes;

static int setup(void **state)
{
    (void)state;
    arena = ir_arena_create(0);
    made = cubin_by_hand(arena, &made_bytes);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    ir_arena_destroy(arena);
    return 0;
}

static cu_cubin read_made(const char *log)
{
    cu_cubin cubin;
    mdot_error err;
    if (cu_cubin_read(made, made_bytes, log, arena, &cubin, &err) != MDOT_OK) fail_msg("%s", err.message);
    return cubin;
}

static void every_field_is_parsed(void **state)
{
    (void)state;
    cu_cubin cubin = read_made(NULL);
    assert_int_equal(cubin.sm, 90);
    assert_string_equal(cubin.log, "");
    assert_ptr_equal(cubin.bytes, made);
    assert_int_equal(cubin.size_bytes, made_bytes);
    assert_int_equal(cubin.kernel_count, 1);
    const cu_cubin_kernel *kernel = cu_cubin_find(&cubin, "scale");
    assert_non_null(kernel);
    assert_int_equal(kernel->registers, 40);
    assert_int_equal(kernel->max_threads, 128);
    assert_int_equal(kernel->shared_bytes, 768);
    assert_int_equal(kernel->local_bytes, 16);
    assert_int_equal(kernel->parameter_bytes, 32);
    assert_int_equal(kernel->barriers, 2);
    assert_int_equal(kernel->tensor_instructions, 3);
    assert_int_equal(kernel->code_bytes, 80);
    assert_null(cu_cubin_find(&cubin, "scal"));
}

static void spills_are_read_from_the_log(void **state)
{
    (void)state;
    static const char log[] = "ptxas info    : Function properties for scale_more\n"
                              "ptxas         .     0 bytes stack frame, 700 bytes spill stores, 900 bytes spill loads\n"
                              "ptxas info    : Function properties for scale\n"
                              "ptxas         .     16 bytes stack frame, 12 bytes spill stores, 20 bytes spill loads\n"
                              "ptxas info    : Used 40 registers\n";
    assert_int_equal(read_made(log).kernels[0].spill_bytes, 32);
}

/* An overestimate is safe: spilled registers are on the stack, so the whole stack counts. */
static void the_whole_stack_counts_without_a_spill_log(void **state)
{
    (void)state;
    static const char *const logs[] = {
        NULL,
        "",
        "Function properties for scale",
        "Function properties for scale\n",
        "Function properties for scale\n    16 bytes stack frame\n",
        "Function properties for scale\nnothing\n    0 bytes stack frame, 1 bytes spill stores, 2 bytes spill loads\n",
        "Function properties for other\n    0 bytes stack frame, 1 bytes spill stores, 2 bytes spill loads\n",
    };
    for (size_t i = 0; i < sizeof logs / sizeof logs[0]; i++)
        assert_int_equal(read_made(logs[i]).kernels[0].spill_bytes, 16);
}

/* The copy has an exact block, so a sanitizer detects the first byte beyond. */
static mdot_status read_copy(const unsigned char *bytes, size_t size_bytes, mdot_error *err)
{
    unsigned char *copy = malloc(size_bytes > 0 ? size_bytes : 1);
    assert_non_null(copy);
    memcpy(copy, bytes, size_bytes);
    ir_arena *own = ir_arena_create(0);
    cu_cubin cubin;
    mdot_status status = cu_cubin_read(copy, size_bytes, NULL, own, &cubin, err);
    ir_arena_destroy(own);
    free(copy);
    return status;
}

static void other_file_types_are_refused(void **state)
{
    (void)state;
    mdot_error err;
    assert_int_equal(read_copy((const unsigned char *)"", 0, &err), MDOT_MALFORMED);
    assert_int_equal(
        read_copy((const unsigned char *)".version 8.0 // PTX, which is text and more than a header", 57, &err),
        MDOT_MALFORMED);
    unsigned char *changed = malloc(made_bytes);
    memcpy(changed, made, made_bytes);
    changed[18] = 62; /* e_machine: x86-64 */
    changed[19] = 0;
    assert_int_equal(read_copy(changed, made_bytes, &err), MDOT_MALFORMED);
    free(changed);
}

static void truncated_cubin_is_malformed(void **state)
{
    (void)state;
    for (size_t size = 0; size < made_bytes; size++) {
        mdot_error err;
        assert_int_equal(read_copy(made, size, &err), MDOT_MALFORMED);
    }
}

/* Every byte takes each of these values in turn. The result may be wrong, but all reads stay inside the file (checked
 * by the sanitizers), and a refusal has a reason. */
static void damaged_bytes_are_read_within_bounds(void **state)
{
    (void)state;
    static const unsigned char values[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
    unsigned char *changed = malloc(made_bytes);
    for (size_t i = 0; i < made_bytes; i++) {
        for (size_t v = 0; v < sizeof values; v++) {
            memcpy(changed, made, made_bytes);
            changed[i] = values[v];
            mdot_error err = {0};
            mdot_status status = read_copy(changed, made_bytes, &err);
            assert_true(status == MDOT_OK || (status == MDOT_MALFORMED && err.message[0] != '\0'));
        }
    }
    free(changed);
}

static void kernel_without_code_or_registers_is_malformed(void **state)
{
    (void)state;
    static const struct {
        const char *find, *replace;
    } cases[] = {{".text.scale", ".texx.scale"}, {".nv.info\0.nv.info.scale", ".nv.inf0\0.nv.info.scale"}};
    static const char *const reasons[] = {"no code for kernel scale", "the number of registers of kernel scale"};
    unsigned char *changed = malloc(made_bytes);
    for (size_t i = 0; i < 2; i++) {
        memcpy(changed, made, made_bytes);
        unsigned char *at = memmem(changed, made_bytes, cases[i].find, strlen(cases[i].find) + 1);
        assert_non_null(at);
        memcpy(at, cases[i].replace, strlen(cases[i].find));
        mdot_error err;
        assert_int_equal(read_copy(changed, made_bytes, &err), MDOT_MALFORMED);
        assert_non_null(strstr(err.message, reasons[i]));
    }
    free(changed);
}

static void exhausted_memory_is_reported(void **state)
{
    (void)state;
    ir_arena *small = ir_arena_create(32);
    cu_cubin cubin = {.size_bytes = 7};
    assert_int_equal(cu_cubin_read(made, made_bytes, NULL, small, &cubin, NULL), MDOT_OUT_OF_MEMORY);
    assert_int_equal(cubin.size_bytes, 7);
    ir_arena_destroy(small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_is_parsed),
        cmocka_unit_test(spills_are_read_from_the_log),
        cmocka_unit_test(the_whole_stack_counts_without_a_spill_log),
        cmocka_unit_test(other_file_types_are_refused),
        cmocka_unit_test(truncated_cubin_is_malformed),
        cmocka_unit_test(damaged_bytes_are_read_within_bounds),
        cmocka_unit_test(kernel_without_code_or_registers_is_malformed),
        cmocka_unit_test(exhausted_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
