/* test_cli_serving.c — `mdot predict --output-tokens`: the time of output tokens, and the cache of keys and values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/assertions.h"
#include "tests/support/json.h"
#include "tests/support/predict_command.h"

typedef struct serving {
    double step, first, token, total, cache;
} serving;

static serving ask(predict_command *f, const char *job, const char *gpu, int length, int batch, int output)
{
    char text[3][16];
    snprintf(text[0], sizeof text[0], "%d", length);
    snprintf(text[1], sizeof text[1], "%d", batch);
    snprintf(text[2], sizeof text[2], "%d", output);
    RUN(f, job, "--gpu", gpu, "--mode", "inference", "--precision", "bf16", "--length", text[0], "--batch", text[1],
        "--output-tokens", text[2], "--json", "-q");
    assert_int_equal(f->result.status, OK);
    assert_true(json_is_valid(f->result.out));
    serving s;
    assert_int_equal(json_numbers(f->result.out, "step_ms", &s.step, 1), 1);
    assert_int_equal(json_numbers(f->result.out, "first_token_ms", &s.first, 1), 1);
    assert_int_equal(json_numbers(f->result.out, "token_ms", &s.token, 1), 1);
    assert_int_equal(json_numbers(f->result.out, "total_ms", &s.total, 1), 1);
    assert_int_equal(json_numbers(f->result.out, "cache_bytes", &s.cache, 1), 1);
    return s;
}

/* The cache has 2 * layers * key heads * head size elements for each token: grouped queries in llama-3-8b and
 * qwen2-0.5b, one matmul for queries, keys and values in gpt2. */
static void the_cache_has_the_size_of_keys_and_values(void **state)
{
    static const struct {
        const char *job;
        double elements;
    } models[] = {{"llama-3-8b", 2 * 32 * 8 * 128}, {"llama-2-7b", 2 * 32 * 32 * 128}, {"gpt2", 2 * 12 * 768}};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        serving s = ask(*state, models[i].job, "H100", 512, 3, 100);
        assert_float_equal(s.cache, 3 * 612 * models[i].elements * 2, 1e-6 * s.cache);
    }
}

/* A token reads all weights and the cache, and no GPU reads faster than its memory. */
static void a_token_takes_at_least_its_reads(void **state)
{
    static const struct {
        const char *gpu;
        double gbps;
    } gpus[] = {{"H100", 3350}, {"A100-80GB", 2039}, {"L4", 300}};
    for (size_t i = 0; i < sizeof gpus / sizeof *gpus; i++) {
        serving s = ask(*state, "llama-3-8b", gpus[i].gpu, 1024, 4, 64);
        double reads_ms = (7.5e9 * 2 + s.cache * 0.9) / (gpus[i].gbps * 1e6);
        assert_compare(s.token, >, reads_ms);
        assert_compare(s.token, <, 2 * reads_ms);
    }
}

static void times_add_up_and_grow(void **state)
{
    serving s = ask(*state, "gpt2", "A100", 256, 1, 1);
    assert_compare(s.first, ==, s.step);
    assert_compare(s.total, ==, s.step);
    serving more = ask(*state, "gpt2", "A100", 256, 1, 200);
    assert_float_equal(more.total, more.first + 199 * more.token, 1e-6 * more.total);
    assert_compare(more.token, >, s.token);
    assert_compare(ask(*state, "gpt2", "A100", 512, 1, 200).token, >, more.token);
    assert_compare(ask(*state, "gpt2", "A100", 256, 64, 200).token, >, more.token);
}

static void other_jobs_and_modes_are_refused(void **state)
{
    predict_command *f = *state;
    RUN(f, resnet, "--gpu", "H100", "--mode", "inference", "--output-tokens", "8");
    assert_int_equal(f->result.status, 1);
    expect_contains(f->result.err, "--output-tokens requires --mode inference and a language model");
    RUN(f, "gpt2", "--gpu", "H100", "--output-tokens", "8");
    assert_int_equal(f->result.status, 1);
    expect_contains(f->result.err, "--mode inference");
    RUN(f, "gpt2", "--gpu", "H100,T4", "--mode", "inference", "--output-tokens", "8", "-q");
    assert_int_equal(f->result.status, OK);
    expect_contains(f->result.out, "T4, batch 1: first token after");
}

int main(void)
{
#define SERVING_TEST(name) cmocka_unit_test_setup_teardown(name, predict_command_set_up, predict_command_tear_down)
    const struct CMUnitTest tests[] = {
        SERVING_TEST(the_cache_has_the_size_of_keys_and_values),
        SERVING_TEST(a_token_takes_at_least_its_reads),
        SERVING_TEST(times_add_up_and_grow),
        SERVING_TEST(other_jobs_and_modes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
