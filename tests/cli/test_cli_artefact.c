/* test_cli_artefact.c — `mdot inspect` and `mdot bench` on a hand-made artefact, from the user's view. */
#include "tests/support/artefact_fixture.h"
#include "tests/support/assertions.h"
#include "tests/support/json.h"
#include "tests/support/process.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static fixture shared;
static char *artefact;
static process_result result;

static int setup(void **state)
{
    (void)state;
    if (!fixture_machine_runs(MDOT_CPU_X86_64_V3)) {
        print_message("skipped: this machine does not run x86-64-v3\n");
        exit(77);
    }
    fixture_open(&shared);
    artefact = fixture_save(&shared, shared.bytes, shared.size_bytes);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    free(artefact);
    fixture_close(&shared);
    return 0;
}

/* Runs `mdot` with these arguments. The list ends with NULL. */
static void run(const char *const arguments[])
{
    enum { MOST = 16 };
    const char *argv[MOST] = {MDOT_CLI};
    for (int i = 0; arguments[i] != NULL; i++) {
        assert_compare(i + 2, <, MOST);
        argv[i + 1] = arguments[i];
    }
    process_run(argv, &result);
}
#define RUN(...) run((const char *const[]){__VA_ARGS__, NULL})

static void assert_prints(const char *words)
{
    if (strstr(result.out, words) == NULL) fail_msg("\"%s\" is not in:\n%s", words, result.out);
}

/* Returns the number after the first `"name": ` in the JSON. */
static double json_number(const char *name)
{
    char key[64];
    snprintf(key, sizeof key, "\"%s\": ", name);
    const char *at = strstr(result.out, key);
    if (at == NULL) fail_msg("no %s in:\n%s", name, result.out);
    return strtod(at + strlen(key), NULL);
}

/* Asserts balanced brackets and quotes in JSON. The strings here are free of escapes. */
static void assert_balanced(const char *text)
{
    int depth = 0;
    bool quoted = false;
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '"') quoted = !quoted;
        if (quoted) continue;
        depth += (*c == '{' || *c == '[') - (*c == '}' || *c == ']');
        assert_compare(depth, >=, 0);
    }
    assert_int_equal(depth, 0);
    assert_false(quoted);
}

static void inspect_shows_schema_buckets_and_kernels(void **state)
{
    (void)state;
    RUN("inspect", artefact);
    assert_int_equal(result.status, 0);
    assert_string_equal(result.err, "");
    assert_prints("predictor  fixture\n");
    assert_prints("x86-64-v3, x86-64-v4");
    assert_prints(".mdot.weights");
    assert_prints("entry predict, L = 1 … 16");
    assert_prints("[L, 2]");
    assert_prints("kernels of bucket 16");
    assert_prints("linear.y");
    assert_prints("  kernels by kind, with their fraction of the FLOPs: linear 1 (");
    assert_null(strstr(result.out, "kernels of bucket 4"));
    RUN("inspect", "--kernels", artefact);
    assert_prints("kernels of bucket 4");
}

static void inspect_writes_json(void **state)
{
    (void)state;
    RUN("inspect", artefact, "--json");
    assert_int_equal(result.status, 0);
    assert_balanced(result.out);
    assert_prints("\"kind\": \"cpu\", \"target\": \"x86-64-v3\", \"kernel_precision\": \"fp32\"");
    assert_prints("\"kind\": \"cpu\", \"target\": \"x86-64-v4\", \"kernel_precision\": \"fp32\"");
    assert_prints("{\"name\": \"x\", \"dtype\": \"f32\", \"dims\": [{\"scale\": 1, \"offset\": 0}, {\"scale\": 0, "
                  "\"offset\": 2}]}");
    assert_prints("{\"name\": \"linear.y\", \"kind\": \"linear\", \"flops\": 16}");
    assert_compare(json_number("file_bytes"), ==, (double)shared.size_bytes);
    assert_compare(json_number("scratch_bytes"), ==, 4 * FIXTURE_SCRATCH_BYTES_A_STEP);
}

/* For a predictor of jobs. */
static void inspect_lists_the_options_that_are_read(void **state)
{
    (void)state;
    RUN("inspect", MDOT_SHIPPED_PREDICTOR);
    assert_int_equal(result.status, 0);
    const char *reads = strstr(result.out, "\nreads      --batch"), *estimated = strstr(result.out, "\nestimated  --");
    assert_non_null(reads);
    assert_true(estimated != NULL);
    assert_true(reads < estimated);
    const char *torch = strstr(result.out, "--torch"), *zero = strstr(result.out, "--parallel");
    assert_non_null(torch);
    assert_true(torch < estimated);
    assert_non_null(zero);
    assert_true(zero > estimated);
    RUN("inspect", MDOT_SHIPPED_PREDICTOR, "--json");
    assert_prints("\"configuration\": {\"reads\": [\"batch\", ");
    const char *json = strstr(result.out, "\"estimated\": [");
    assert_non_null(json);
    assert_non_null(strstr(json, "\"zero_stage\""));
    RUN("inspect", MDOT_PUBLISHED_PREDICTOR); /* it declares no column names, so it reads the first columns */
    assert_prints("\nreads      --batch");
    RUN("inspect", artefact);
    assert_null(strstr(result.out, "analytic-estimate"));
}

static void inspect_shows_resources_of_gpu_kernels(void **state)
{
    (void)state;
    fixture f;
    fixture_open_with_images(&f);
    char *path = fixture_save(&f, f.bytes, f.size_bytes);
    RUN("inspect", path);
    assert_int_equal(result.status, 0);
    assert_prints("image sm_80, kernel precision bf16, 512 bytes, weights 512\n");
    assert_prints("image sm_90a");
    assert_prints("kernel                   threads registers   shared   local spilled  tensor barriers      code\n");
    assert_prints("predict_16                   256        41     1016       8       4     100        1       128\n");
    RUN("inspect", path, "--json");
    assert_int_equal(result.status, 0);
    assert_balanced(result.out);
    assert_prints("{\"kind\": \"cuda\", \"target\": \"sm_80\", \"kernel_precision\": \"bf16\", \"image_bytes\": 512, "
                  "\"weights_bytes\": 512");
    assert_prints("{\"name\": \"predict_16\", \"entry\": \"predict\", \"max_length\": 16, \"threads\": 256");
    assert_prints("\"tensor_instructions\": 200");
    free(path);
    fixture_close(&f);
}

static void bench_measures_every_bucket(void **state)
{
    (void)state;
    RUN("bench", artefact, "--seconds", "0.01", "--entry", "predict", "--json");
    assert_int_equal(result.status, 0);
    assert_balanced(result.out);
    assert_prints("{\"bucket\": 4, \"length\": 4,");
    assert_prints("{\"bucket\": 16, \"length\": 16,");
    double p50 = json_number("p50_us"), p99 = json_number("p99_us");
    assert_compare(p50, >, 0);
    assert_compare(p50, <=, p99);
    assert_compare(p99, <=, json_number("p999_us"));
    assert_compare(json_number("open_us"), >, 0);
    assert_compare(json_number("first_call_us"), >, 0);
    assert_compare(json_number("gflops"), >, 0);
    assert_compare(json_number("peak_gflops"), >, 0);
    assert_compare(json_number("peak_share"), >, 0);
}

static void bench_profiles_kernels(void **state)
{
    (void)state;
    RUN("bench", artefact, "--seconds", "0.01", "--entry", "predict", "--profile", "--json");
    assert_int_equal(result.status, 0);
    assert_true(json_is_valid(result.out));
    double shares[4], flops[4], sums[2], us[4];
    assert_int_equal(json_numbers(result.out, "share", shares, 4), 4); /* two kernels in each of two buckets */
    assert_int_equal(json_numbers(result.out, "flops", flops, 4), 4);
    assert_int_equal(json_numbers(result.out, "p50_us", us, 4), 4);
    assert_int_equal(json_numbers(result.out, "steps_us", sums, 2), 2);
    for (int i = 0; i < 2; i++) {
        assert_float_equal(shares[2 * i] + shares[2 * i + 1], 1, 1e-3);
        assert_float_equal(us[2 * i] + us[2 * i + 1], sums[i], 2e-3); /* as printed */
        assert_compare(flops[2 * i], ==, 4.0 * (i == 0 ? 4 : 16));
    }
    assert_compare(json_number("call_us"), >, 0);
    assert_compare(json_number("peak_gflops"), >, 0);
    assert_prints("{\"kernels\": [\"linear.y\"], \"kind\": \"linear\"");
    RUN("bench", artefact, "--seconds", "0.01", "--length", "5", "--profile");
    assert_int_equal(result.status, 0);
    assert_prints("bucket 16, length 5");
    assert_prints("nest.about");
    assert_prints("complete call");
    RUN("bench", artefact, "--seconds", "0.01", "--length", "5", "--profile", "--json");
    assert_prints("\"gflops\": null"); /* the FLOPs are known only at a bucket's full length */
    RUN("bench", artefact, "--seconds", "0.01", "--entry", "double", "--profile", "--json");
    assert_compare(result.status, ==, 0);
    assert_true(json_is_valid(result.out)); /* this entry has code but an empty kernel list */
    static const char *const others[] = {"--threads=2", "--workers=2", "--round"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        RUN("bench", artefact, "--profile", others[i]);
        assert_int_equal(result.status, 2);
        assert_non_null(strstr(result.err, "one thread"));
    }
}

static void bench_measures_a_round(void **state)
{
    (void)state;
    RUN("bench", MDOT_SHIPPED_PREDICTOR, "--round", MDOT_SOURCE_DIR "/examples/jobs/resnet50.onnx",
        MDOT_SOURCE_DIR "/examples/jobs/bert_base.onnx", "--dim=sequence=128", "--jobs=5", "--configurations=3",
        "--seconds=0.01", "--json");
    if (result.status != 0) fail_msg("%s", result.err);
    assert_balanced(result.out);
    assert_prints("\"jobs\": 5, \"configurations\": 3,");
    assert_prints("\"price\": {\"calls\": 15,");
    assert_compare(json_number("cold_ms"), >, 0);
    assert_compare(json_number("encode_ms"), >, 0);
    assert_compare(json_number("encoded_ms"), >, 0);
    double p50 = json_number("p50_us"), p99 = json_number("p99_us");
    assert_compare(p50, >, 0);
    assert_compare(p50, <=, p99);
    assert_compare(p99, <=, json_number("p999_us"));
    assert_compare(json_number("rounds"), >=, 3);
    RUN("bench", MDOT_SHIPPED_PREDICTOR, "--round", MDOT_SOURCE_DIR "/examples/jobs/resnet50.onnx", "--jobs=2",
        "--configurations=200", "--seconds=0.01");
    assert_int_equal(result.status, 0);
    assert_prints("2 jobs of 121 operators x 200 configurations");
    assert_prints("us per pair");
    RUN("bench", MDOT_SHIPPED_PREDICTOR, "--round");
    assert_int_equal(result.status, 2);
    RUN("bench", artefact, "--round", MDOT_SOURCE_DIR "/examples/jobs/resnet50.onnx");
    assert_int_equal(result.status, 1);
    assert_non_null(strstr(result.err, "unusable for predictions of jobs"));
}

static void bench_accepts_a_length_a_level_and_threads(void **state)
{
    (void)state;
    RUN("bench", artefact, "--seconds=0.01", "--length=5", "--level=x86-64-v3", "--threads=2", "--workers=3");
    assert_int_equal(result.status, 0);
    assert_prints("x86-64-v3, 2 threads");
    assert_prints("\n     16       5 ");
    RUN("bench", artefact, "--seconds=0.01", "--bucket=4", "--json");
    assert_int_equal(result.status, 0);
    assert_null(strstr(result.out, "\"bucket\": 16"));
    RUN("bench", artefact, "--seconds=0.01", "--entry=double", "--json");
    assert_int_equal(result.status, 0);
    assert_prints("{\"bucket\": 0, \"length\": 0,");
}

static void assert_refused(int status, const char *words)
{
    assert_int_equal(result.status, status);
    assert_string_equal(result.out, "");
    if (strstr(result.err, words) == NULL) fail_msg("\"%s\" is not in: %s", words, result.err);
}

static void impossible_requests_fail_with_a_reason(void **state)
{
    (void)state;
    RUN("inspect", "/nonexistent.mdot");
    assert_refused(1, "/nonexistent.mdot");
    RUN("bench", artefact, "--bucket", "5");
    assert_refused(1, "no bucket of length 5");
    RUN("bench", artefact, "--length", "17");
    assert_refused(1, "length 17");
    RUN("bench", artefact, "--length", "17", "--json");
    assert_refused(1, "length 17");
    RUN("bench", artefact, "--length", "5", "--bucket", "4");
    assert_refused(1, "runs in bucket 16");
    RUN("bench", artefact, "--entry", "evaluate");
    assert_refused(1, "no entry evaluate");
    RUN("bench", artefact, "--level", "x86-64-v9");
    assert_refused(1, "x86-64-v9");
}

static void wrong_command_lines_are_usage_errors(void **state)
{
    (void)state;
    RUN("inspect");
    assert_refused(2, "expected one artefact (MODEL.mdot)");
    RUN("inspect", artefact, artefact);
    assert_refused(2, "expected one artefact (MODEL.mdot)");
    RUN("inspect", "--nonsense", artefact);
    assert_refused(2, "--nonsense");
    RUN("bench", artefact, "--threads", "0");
    assert_refused(2, "--threads");
    RUN("bench", artefact, "--seconds", "0");
    assert_refused(2, "--seconds");
    RUN("bench", artefact, "--length", "many");
    assert_refused(2, "--length");
    RUN("bench", artefact, "--seconds");
    assert_refused(2, "needs a value");
}

static void help_succeeds(void **state)
{
    (void)state;
    RUN("inspect", "--help");
    assert_int_equal(result.status, 0);
    assert_prints("Usage: mdot inspect");
    RUN("bench", "-h");
    assert_int_equal(result.status, 0);
    assert_prints("Usage: mdot bench");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inspect_shows_schema_buckets_and_kernels),
        cmocka_unit_test(inspect_writes_json),
        cmocka_unit_test(inspect_lists_the_options_that_are_read),
        cmocka_unit_test(inspect_shows_resources_of_gpu_kernels),
        cmocka_unit_test(bench_measures_every_bucket),
        cmocka_unit_test(bench_profiles_kernels),
        cmocka_unit_test(bench_measures_a_round),
        cmocka_unit_test(bench_accepts_a_length_a_level_and_threads),
        cmocka_unit_test(impossible_requests_fail_with_a_reason),
        cmocka_unit_test(wrong_command_lines_are_usage_errors),
        cmocka_unit_test(help_succeeds),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
