/* fuzz_models.c — compiled code against the evaluator. The first byte chooses the precision, f32 or bf16. The other
 * bytes choose a valid model (random_model.h), which is compiled for every CPU level and verified on this machine's
 * levels. In bf16 the tolerance is the model's error with rounded factors.
 *
 *     scripts/fuzz.sh 600 models */
#include "mdot/mdotc.h"
#include "tests/fuzz/model_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void show_row(void *user, const mdotc_verify_row *row)
{
    (void)user;
    if (!row->passed)
        fprintf(stderr, "%s, bucket %lld: %g at length %lld, at most %g\n", row->level, (long long)row->max_length,
                row->worst_error, (long long)row->worst_length, row->bound);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int64_t buckets[] = {20};
    static const char *const precisions[] = {"cpu=fp32", "cpu=bf16"};
    if (size == 0) return -1; /* keeps the input out of the corpus */
    char artefact[64];
    const char *model = model_file(data + 1, size - 1);
    snprintf(artefact, sizeof artefact, "/tmp/fuzz_models.%d.mdot", (int)getpid());
    const mdotc_entry entry = {sizeof entry, "run", model};
    const mdotc_options options = {.struct_size = sizeof options,
                                   .buckets = buckets,
                                   .bucket_count = 1,
                                   .kernel_precision = precisions[data[0] % 2]};
    const mdotc_verify_options verify = {.struct_size = sizeof verify, .row = show_row};
    mdot_error err = {0};
    bool passed = false;
    mdot_status status = mdotc_compile(&entry, 1, artefact, &options, &err);
    if (status == MDOT_OK) status = mdotc_verify(artefact, model, &verify, &passed, &err);
    if (status != MDOT_OK) fprintf(stderr, "%s: %s\n", mdot_status_name(status), err.message);
    unlink(artefact);
    if (!passed) abort();
    return 0;
}
