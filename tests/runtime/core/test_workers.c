/* test_workers.c — calls shared by several threads. The results are bit-identical to one thread's, for any set and
 * order of threads. The threads sleep between calls, and one system call wakes them. */
#include "mdot/mdotc.h"
#include "tests/support/artefact_fixture.h"
#include "tests/support/assertions.h"
#include "tests/support/encoder_model.h"
#include "tests/support/process.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- Replacements of libc functions, which count the library's system calls -------------------------------------- */

static atomic_int waits, wakes;
static atomic_int *calls_of(long operation) { return (operation & FUTEX_CMD_MASK) == FUTEX_WAKE ? &wakes : &waits; }

long syscall(long number, ...)
{
    long a[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++) a[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_futex) atomic_fetch_add(calls_of(a[1]), 1);
    register long r10 __asm__("r10") = a[3], r8 __asm__("r8") = a[4], r9 __asm__("r9") = a[5];
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

/* ---- A predictor ------------------------------------------------------------------------------------------------- */

enum { LAYERS = 2, LONGEST = 512, LEAST_SHARED = 256 };

static mdot_predictor *predictor;

static int setup(void **state)
{
    (void)state;
    if (!fixture_machine_runs(MDOT_CPU_X86_64_V3)) {
        print_message("skipped: this machine does not run x86-64-v3\n");
        exit(77);
    }
    static const int64_t buckets[] = {64, LONGEST};
    char *folder = process_make_folder(), path[512];
    char *model = write_model(folder, "encoder.onnx", encoder_model(LAYERS));
    snprintf(path, sizeof path, "%s/encoder.mdot", folder);
    mdot_error err = {0};
    const mdotc_entry entry = {sizeof entry, "predict", model};
    const mdotc_options options = {.struct_size = sizeof options, .buckets = buckets, .bucket_count = 2};
    mdot_status status = mdotc_compile(&entry, 1, path, &options, &err);
    if (status == MDOT_OK) status = mdot_predictor_open(path, NULL, &predictor, &err);
    if (status != MDOT_OK) print_error("%s\n", err.message);
    free(model);
    process_remove_folder(folder);
    return status == MDOT_OK ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    mdot_predictor_close(predictor);
    return 0;
}

typedef struct input {
    int64_t type[LONGEST];
    float load[LONGEST][ENCODER_FEATURES];
    bool mask[LONGEST];
} input;

static void fill(input *in, unsigned seed)
{
    for (int i = 0; i < LONGEST; i++) {
        seed = seed * 1664525u + 1013904223u; /* constants from Numerical Recipes */
        in->type[i] = seed >> 8 & 7;
        for (int k = 0; k < ENCODER_FEATURES; k++) in->load[i][k] = (float)(seed >> (4 * k + 8) & 15) / 8 - 1;
        in->mask[i] = i == 0 || (seed >> 24 & 3) != 0;
    }
}

static uint32_t answer(mdot_context *context, const input *in, int64_t length)
{
    uint32_t bits = 0;
    const void *inputs[] = {in->type, in->load, in->mask};
    void *outputs[] = {&bits};
    mdot_error err = {0};
    if (mdot_run_ordered(context, 0, length, inputs, outputs, &err) != MDOT_OK) fail_msg("%s", err.message);
    return bits;
}

static mdot_context *make_context(mdot_context_options options)
{
    mdot_context *context = NULL;
    mdot_error err = {0};
    options.struct_size = sizeof options;
    if (mdot_context_create_with(predictor, &options, &context, &err) != MDOT_OK) fail_msg("%s", err.message);
    return context;
}

/* ---- Steps ------------------------------------------------------------------------------------------------------- */

static size_t count_steps(size_t bucket)
{
    mdot_bucket_info info = MDOT_INIT(mdot_bucket_info);
    mdot_predictor_get_bucket(predictor, 0, bucket, &info);
    size_t step = 0, joined = 0;
    for (size_t i = 0; i < info.kernel_count; i++) {
        mdot_kernel_info kernel = MDOT_INIT(mdot_kernel_info);
        assert_int_equal(mdot_predictor_get_kernel(predictor, 0, bucket, i, &kernel), MDOT_OK);
        if (i == 0) assert_int_equal(kernel.step, 0);
        assert_true(kernel.step == step || kernel.step == step + 1);
        if (i > 0 && kernel.step == step) joined++;
        step = kernel.step;
    }
    assert_compare(joined, >, 0); /* the encoder has small kernels that run side by side */
    return step + 1;
}

static void ordered_steps_give_the_bits_of_a_call(void **state)
{
    (void)state;
    static const int64_t step_lengths[] = {1, 64, 65, 300, LONGEST};
    mdot_context *context = make_context((mdot_context_options){0});
    input *in = calloc(1, sizeof *in);
    assert_non_null(in);
    for (size_t i = 0; i < sizeof step_lengths / sizeof step_lengths[0]; i++) {
        int64_t length = step_lengths[i];
        fill(in, (unsigned)i + 77);
        uint32_t want = answer(context, in, length), got = 0;
        const void *inputs[] = {in->type, in->load, in->mask};
        void *outputs[] = {&got};
        size_t bucket = 0, count;
        assert_int_equal(mdot_predictor_find_bucket(predictor, 0, length, &bucket), MDOT_OK);
        count = count_steps(bucket);
        for (size_t step = 0; step < count; step++) {
            assert_int_equal(got, 0); /* only the last step writes the answer */
            assert_int_equal(mdot_run_step(context, 0, length, inputs, outputs, step, NULL), MDOT_OK);
        }
        assert_int_equal(got, want);
        mdot_error err = {0};
        assert_int_equal(mdot_run_step(context, 0, length, inputs, outputs, count, &err), MDOT_OUT_OF_RANGE);
        assert_non_null(strstr(err.message, "entry predict has"));
    }
    free(in);
    mdot_context_destroy(context);
}

/* ---- The same bits ----------------------------------------------------------------------------------------------- */

static const int64_t lengths[] = {1, 64, 255, 256, 257, 300, 384, 511, 512};
enum { LENGTHS = sizeof lengths / sizeof lengths[0], ROUNDS = 5 };

static void expect_same_bits(mdot_context_options options)
{
    mdot_context *alone = make_context((mdot_context_options){0}), *shared = make_context(options);
    input *in = calloc(1, sizeof *in);
    assert_non_null(in);
    for (int i = 0; i < LENGTHS * ROUNDS; i++) {
        fill(in, (unsigned)i);
        uint32_t want = answer(alone, in, lengths[i % LENGTHS]), got = answer(shared, in, lengths[i % LENGTHS]);
        if (got != want)
            fail_msg("%u threads, length %d: %08x, not %08x", options.threads, (int)lengths[i % LENGTHS], got, want);
    }
    free(in);
    mdot_context_destroy(shared);
    mdot_context_destroy(alone);
}

static void any_number_of_threads_gives_the_same_bits(void **state)
{
    (void)state;
    static const uint32_t counts[] = {1, 2, 3, 7, 64};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        expect_same_bits((mdot_context_options){.threads = counts[i]});
}

typedef void (*piece_fn)(void *argument, uint32_t i);

static int callbacks;
static void one_after_the_other(void *user, piece_fn piece, void *argument, uint32_t count)
{
    callbacks += *(int *)user;
    for (uint32_t i = 0; i < count; i++) piece(argument, i);
}
static void last_first(void *user, piece_fn piece, void *argument, uint32_t count)
{
    callbacks += *(int *)user;
    while (count-- > 0) piece(argument, count);
}
static void nobody(void *user, piece_fn piece, void *argument, uint32_t count)
{
    (void)piece;
    (void)argument;
    callbacks += count > 0 ? *(int *)user : 0;
}

typedef struct errand {
    piece_fn piece;
    void *argument;
    uint32_t i;
} errand;
static void *run_errand(void *argument)
{
    const errand *e = argument;
    e->piece(e->argument, e->i);
    return NULL;
}
static void side_by_side(void *user, piece_fn piece, void *argument, uint32_t count)
{
    enum { MOST = 8 };
    pthread_t threads[MOST];
    errand errands[MOST];
    callbacks += *(int *)user;
    assert_compare(count, <=, MOST);
    for (uint32_t i = 0; i < count; i++) {
        errands[i] = (errand){piece, argument, i};
        assert_int_equal(pthread_create(&threads[i], NULL, run_errand, &errands[i]), 0);
    }
    for (uint32_t i = 0; i < count; i++) pthread_join(threads[i], NULL);
}

static void callers_threads_give_the_same_bits_in_any_order(void **state)
{
    (void)state;
    static const mdot_parallel_for_fn ways[] = {one_after_the_other, last_first, nobody, side_by_side};
    int one = 1;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        callbacks = 0;
        expect_same_bits((mdot_context_options){.threads = 5, .parallel_for = ways[i], .user = &one});
        int shared = 0;
        for (int k = 0; k < LENGTHS; k++) shared += lengths[k] >= LEAST_SHARED;
        assert_int_equal(callbacks, shared * ROUNDS); /* one callback per call that is shared */
    }
}

/* ---- System calls ------------------------------------------------------------------------------------------------ */

static void short_calls_and_one_thread_use_no_workers(void **state)
{
    (void)state;
    input *in = calloc(1, sizeof *in);
    assert_non_null(in);
    fill(in, 1);
    mdot_context *alone = make_context((mdot_context_options){.threads = 1}),
                 *shared = make_context((mdot_context_options){.threads = 4});
    int before = atomic_load(&wakes);
    for (int i = 0; i < 20; i++) {
        answer(alone, in, LONGEST);
        answer(alone, in, LEAST_SHARED);
        answer(shared, in, LEAST_SHARED - 1);
        answer(shared, in, 1);
    }
    assert_int_equal(atomic_load(&wakes), before);
    free(in);
    mdot_context_destroy(alone);
    mdot_context_destroy(shared);
}

static void idle_threads_sleep_and_one_call_wakes_them(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    input *in = calloc(1, sizeof *in);
    assert_non_null(in);
    fill(in, 1);
    int asleep = atomic_load(&waits);
    mdot_context *shared = make_context((mdot_context_options){.threads = THREADS});
    for (int run = 0; run < 3; run++) {
        asleep += THREADS - 1;
        while (atomic_load(&waits) < asleep)
            sched_yield(); /* waits until all three threads sleep; a thread that
                                                             * stays awake hangs the test */
        asleep = atomic_load(&waits);
        int before = atomic_load(&wakes);
        answer(shared, in, LONGEST);
        assert_compare(atomic_load(&wakes), <=, before + 1);
    }
    free(in);
    mdot_context_destroy(shared);
}

static void many_consecutive_calls_match(void **state)
{
    (void)state;
    input *in = calloc(1, sizeof *in);
    assert_non_null(in);
    fill(in, 7);
    mdot_context *shared = make_context((mdot_context_options){.threads = 3});
    uint32_t first = answer(shared, in, 300);
    for (int i = 0; i < 300; i++) assert_int_equal(answer(shared, in, 300), first);
    free(in);
    mdot_context_destroy(shared);
}

/* ---- Children ---------------------------------------------------------------------------------------------------- */

static bool child_is_right(mdot_context *shared, const input *in, uint32_t want)
{
    bool same = answer(shared, in, LONGEST) == want;
    mdot_context_destroy(shared);
#ifndef MDOT_SANITIZED /* ThreadSanitizer ends a thread-starting child if the parent had threads */
    mdot_context *own = make_context((mdot_context_options){.threads = 3});
    same = same && answer(own, in, LONGEST) == want;
    mdot_context_destroy(own);
#endif
    return same;
}

/* The threads stay with the parent. In the child the caller runs all calls alone, and the destructor waits for no
 * thread. */
static void a_forked_child_continues_without_workers(void **state)
{
    (void)state;
#ifdef MDOT_SANITIZED
    skip(); /* a sanitizer thread holds the sanitizer's locks while it starts, and a child forked at that moment never
             * gets them */
#endif
    enum { CHILDREN = 8, PATIENCE_S = 60 }; /* time limit, after which a child counts as hanging */
    input *in = calloc(1, sizeof *in);
    assert_non_null(in);
    fill(in, 3);
    mdot_context *shared = make_context((mdot_context_options){.threads = 4});
    uint32_t want = answer(shared, in, LONGEST);
    for (int i = 0; i < CHILDREN; i++) { /* forks right after a call, so that the threads are awake */
        pid_t child = fork();
        assert_compare(child, >=, 0);
        if (child == 0) {
            alarm(PATIENCE_S);
            _exit(child_is_right(shared, in, want) ? 0 : 1);
        }
        int ended = -1;
        assert_int_equal(waitpid(child, &ended, 0), child);
        assert_int_equal(ended, 0);
        assert_int_equal(answer(shared, in, LONGEST), want); /* the child's exit leaves the parent's context usable */
    }
    free(in);
    mdot_context_destroy(shared);
}

/* ---- Options ----------------------------------------------------------------------------------------------------- */

static void wrong_options_are_refused(void **state)
{
    (void)state;
    mdot_context *context = NULL;
    mdot_error err = {0};
    mdot_context_options options = {.struct_size = sizeof options, .threads = 65};
    assert_int_equal(mdot_context_create_with(predictor, &options, &context, &err), MDOT_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "at most 64"));
    options = (mdot_context_options){.struct_size = sizeof options, .reserved = 1};
    assert_int_equal(mdot_context_create_with(predictor, &options, &context, &err), MDOT_INCOMPATIBLE);
    options = (mdot_context_options){.threads = 2};
    assert_int_equal(mdot_context_create_with(predictor, &options, &context, &err), MDOT_INVALID_ARGUMENT);
    assert_null(context);
    assert_int_equal(mdot_context_create_with(predictor, NULL, &context, &err), MDOT_OK);
    mdot_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ordered_steps_give_the_bits_of_a_call),
        cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
        cmocka_unit_test(callers_threads_give_the_same_bits_in_any_order),
        cmocka_unit_test(short_calls_and_one_thread_use_no_workers),
        cmocka_unit_test(idle_threads_sleep_and_one_call_wakes_them),
        cmocka_unit_test(many_consecutive_calls_match),
        cmocka_unit_test(a_forked_child_continues_without_workers),
        cmocka_unit_test(wrong_options_are_refused),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
