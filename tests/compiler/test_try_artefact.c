/* test_try_artefact.c — the compiler opens and runs a written artefact before it reports success. */
#include "codegen/artefact.h"
#include "compiler/compiler.h"
#include "tests/support/graph_notation.h"
#include "tests/support/process.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static mdot_status refuse(const char *path, mdot_error *err)
{
    assert_int_equal(access(path, R_OK), 0);
    return mdot_fail(err, MDOT_MALFORMED, "refused");
}

/* Counts the runs; fails them if `breaks` is set. */
static int runs;
static bool breaks;

mdot_status __real_mdot_run(mdot_context *context, size_t entry, const mdot_input *inputs, size_t input_count,
                            const mdot_output *outputs, size_t output_count, mdot_error *err);
mdot_status __wrap_mdot_run(mdot_context *context, size_t entry, const mdot_input *inputs, size_t input_count,
                            const mdot_output *outputs, size_t output_count, mdot_error *err);
mdot_status __wrap_mdot_run(mdot_context *context, size_t entry, const mdot_input *inputs, size_t input_count,
                            const mdot_output *outputs, size_t output_count, mdot_error *err)
{
    runs++;
    if (breaks) return mdot_fail(err, MDOT_INVALID_ARGUMENT, "broken");
    return __real_mdot_run(context, entry, inputs, input_count, outputs, output_count, err);
}

/* Compiles a model with one or two buckets to `path`. */
static mdot_status write_model_artefact(const char *path, const char *text, const int64_t *buckets, size_t count,
                                        mdot_status (*check)(const char *, mdot_error *), mdot_error *err)
{
    static const co_hooks silent;
    static const char *const cpu[] = {"cpu:x86-64-v3"};
    ir_arena *arena = ir_arena_create(0);
    ir_graph *graph = graph_from_notation(text, INT64_MAX, arena);
    cg_entry entry;
    co_targets targets;
    mdot_status status = co_parse_targets(cpu, 1, "fp32", &targets, err);
    if (status == MDOT_OK) status = co_plan_entry("run", graph, buckets, count, false, &silent, arena, &entry, err);
    const cg_options options = {.predictor_name = "tried",
                                .target_count = targets.count,
                                .targets = targets.target,
                                .check = check,
                                .in_process = true};
    if (status == MDOT_OK) status = cg_write_artefact(&entry, 1, &options, path, arena, err);
    ir_arena_destroy(arena);
    return status;
}

static mdot_status write_artefact(const char *path, mdot_status (*check)(const char *, mdot_error *), mdot_error *err)
{
    const int64_t bucket = 16;
    return write_model_artefact(path, "x = input f32[L,8]\nw = weights f32[8,8]\ny = mdot.Linear(x, w)\nreturn y\n",
                                &bucket, 1, check, err);
}

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

enum { LARGE = 32 << 20 };
static void *large; /* the only large allocation: the context's scratch */
static size_t large_bytes;

static void *map_large(void *user, size_t bytes, size_t alignment)
{
    (void)user;
    if (bytes < LARGE) return aligned_alloc(alignment, bytes);
    assert_null(large);
    large = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    large_bytes = bytes;
    return large != MAP_FAILED ? large : NULL;
}

static void unmap_large(void *user, void *memory)
{
    (void)user;
    if (memory != large)
        free(memory);
    else
        munmap(memory, large_bytes);
}

static size_t resident_bytes(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (large_bytes + page - 1) / page, count = 0;
    unsigned char *states = calloc(pages, 1);
    assert_non_null(states);
    assert_int_equal(mincore(large, large_bytes, states), 0);
    for (size_t i = 0; i < pages; i++) count += states[i] & 1;
    free(states);
    return count * page;
}

/* Maps over pairs of positions: 512 MB for the longest bucket. A short call must not commit them. */
static void memory_follows_the_length_of_calls(void **state)
{
    (void)state;
    static const int64_t buckets[] = {16, 2048};
    char *folder = process_make_folder(), path[256];
    mdot_error err = {0};
    snprintf(path, sizeof path, "%s/pairs.mdot", folder);
    if (write_model_artefact(path,
                             "x = input f32[L,L,4]\nw = weights f32[4,32]\nh = mdot.Linear(x, w)\n"
                             "s = Softmax(h) {axis=1}\na = constant i64[2] [0, 1]\ny = ReduceMax(s, a)\nreturn y\n",
                             buckets, 2, NULL, &err) != MDOT_OK)
        fail_msg("%s", err.message);
    const mdot_open_options options = {
        .struct_size = sizeof options, .device = "cpu", .allocate = map_large, .release = unmap_large};
    mdot_predictor *predictor = NULL;
    mdot_context *context = NULL;
    if (mdot_predictor_open(path, &options, &predictor, &err) != MDOT_OK) fail_msg("%s", err.message);
    assert_int_equal(mdot_context_create(predictor, &context, &err), MDOT_OK);
    assert_true(large_bytes >= (size_t)2048 * 2048 * 32 * 4);
    assert_true(resident_bytes() <= LARGE);
    static float in[8 * 8 * 4], out[32];
    assert_int_equal(mdot_run_ordered(context, 0, 8, (const void *[]){in}, (void *[]){out}, &err), MDOT_OK);
    assert_true(resident_bytes() <= LARGE);
    mdot_context_destroy(context);
    mdot_predictor_close(predictor);
    process_remove_folder(folder);
}

static void a_good_artefact_is_run_and_accepted(void **state)
{
    (void)state;
    char *folder = process_make_folder(), path[512];
    mdot_error err = {0};
    snprintf(path, sizeof path, "%s/tried.mdot", folder);
    runs = 0;
    assert_int_equal(write_artefact(path, co_try_artefact, &err), MDOT_OK);
    assert_int_equal(runs, 1);
    assert_int_equal(access(path, R_OK), 0);
    process_remove_folder(folder);
}

/* The variable selects code for programs that run the artefact. */
static void the_trial_ignores_the_isa_of_the_environment(void **state)
{
    (void)state;
    char *folder = process_make_folder(), path[512];
    mdot_error err = {0};
    snprintf(path, sizeof path, "%s/tried.mdot", folder);
    setenv("MDOT_CPU_ISA", "x86-64-v9", 1);
    mdot_status status = write_artefact(path, co_try_artefact, &err);
    unsetenv("MDOT_CPU_ISA");
    if (status != MDOT_OK) fail_msg("%s", err.message);
    process_remove_folder(folder);
}

static void an_unreadable_artefact_is_no_fault_of_the_compiler(void **state)
{
    (void)state;
    mdot_error err = {0};
    char *folder = process_make_folder();
    assert_int_equal(co_try_artefact(folder, &err), MDOT_IO);
    assert_null(strstr(err.message, "fault of the compiler"));
    process_remove_folder(folder);
}

static void an_artefact_that_fails_to_run_is_refused(void **state)
{
    (void)state;
    char *folder = process_make_folder(), path[512];
    mdot_error err = {0};
    snprintf(path, sizeof path, "%s/tried.mdot", folder);
    breaks = true;
    mdot_status status = write_artefact(path, co_try_artefact, &err);
    breaks = false;
    assert_int_equal(status, MDOT_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "which is a fault of the compiler: broken"));
    assert_int_equal(process_count_files(folder), 0);
    process_remove_folder(folder);
}

static void a_refused_artefact_leaves_no_file(void **state)
{
    (void)state;
    char *folder = process_make_folder(), path[512];
    mdot_error err = {0};
    snprintf(path, sizeof path, "%s/tried.mdot", folder);
    assert_int_equal(write_artefact(path, refuse, &err), MDOT_MALFORMED);
    assert_string_equal(err.message, "refused");
    assert_int_equal(process_count_files(folder), 0);
    process_remove_folder(folder);
}

static void a_damaged_artefact_is_reported_with_its_reason(void **state)
{
    (void)state;
    char *folder = process_make_folder(), path[512];
    mdot_error err = {0};
    snprintf(path, sizeof path, "%s/tried.mdot", folder);
    assert_int_equal(write_artefact(path, NULL, &err), MDOT_OK);
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    long middle = ftell(file) / 2;
    fseek(file, middle, SEEK_SET);
    int byte = fgetc(file);
    fseek(file, middle, SEEK_SET);
    fputc(byte ^ 1, file);
    fclose(file);
    mdot_status status = co_try_artefact(path, &err);
    if (status != MDOT_CORRUPT) fail_msg("%s: %s", mdot_status_name(status), err.message);
    assert_non_null(strstr(err.message, "the compiled artefact is unusable"));
    process_remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_follows_the_length_of_calls),
        cmocka_unit_test(a_good_artefact_is_run_and_accepted),
        cmocka_unit_test(the_trial_ignores_the_isa_of_the_environment),
        cmocka_unit_test(an_unreadable_artefact_is_no_fault_of_the_compiler),
        cmocka_unit_test(an_artefact_that_fails_to_run_is_refused),
        cmocka_unit_test(a_refused_artefact_leaves_no_file),
        cmocka_unit_test(a_damaged_artefact_is_reported_with_its_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
