/* test_random_models.c — compiled code on every CPU level, in f32 and in bf16, compared with the evaluator for
 * randomly generated models. The fuzz target fuzz_models generates more. */
#include "mdot/mdotc.h"
#include "tests/support/assertions.h"
#include "tests/support/encoder_model.h"
#include "tests/support/process.h"
#include "tests/support/random_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { SEEDS = 4, BYTES = 48 };

static void show_row(void *user, const mdotc_verify_row *row)
{
    if (!row->passed)
        print_error("seed %d: %s, bucket %lld: %g at length %lld, at most %g\n", *(int *)user, row->level,
                    (long long)row->max_length, row->worst_error, (long long)row->worst_length, row->bound);
}

static bool agrees(const char *folder, const char *kernel_precision, int seed)
{
    static const int64_t buckets[] = {40};
    uint8_t bytes[BYTES];
    uint32_t random = 1 + (uint32_t)seed;
    for (int i = 0; i < BYTES; i++) {
        random = random * UINT32_C(1664525) + UINT32_C(1013904223); /* constants from Numerical Recipes */
        bytes[i] = (uint8_t)(random >> 24);
    }
    char *model = write_model(folder, "random.onnx", random_model(bytes, BYTES)), *artefact = NULL;
    assert_compare(asprintf(&artefact, "%s/random.mdot", folder), >, 0);
    const mdotc_entry entry = {sizeof entry, "run", model};
    const mdotc_options options = {
        .struct_size = sizeof options, .buckets = buckets, .bucket_count = 1, .kernel_precision = kernel_precision};
    const mdotc_verify_options verify = {.struct_size = sizeof verify, .row = show_row, .user = &seed};
    mdot_error err = {0};
    bool passed = false;
    mdot_status status = mdotc_compile(&entry, 1, artefact, &options, &err);
    if (status == MDOT_OK) status = mdotc_verify(artefact, model, &verify, &passed, &err);
    if (status != MDOT_OK) print_error("seed %d: %s\n", seed, err.message);
    free(artefact);
    free(model);
    return passed;
}

static void compiled_code_agrees_with_the_evaluator(void **state)
{
    (void)state;
    char *folder = process_make_folder();
    int wrong = 0;
    for (int seed = 0; seed < SEEDS; seed++) {
        wrong += !agrees(folder, "cpu=fp32", seed);
        wrong += !agrees(folder, "cpu=bf16", seed);
    }
    process_remove_folder(folder);
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(compiled_code_agrees_with_the_evaluator)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
