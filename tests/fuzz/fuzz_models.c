/* fuzz_models.c — compiled code against the evaluator: the bytes choose a valid model (tests/support/random_model.h),
 * which is compiled for every CPU level and verified on those of this machine, in f32.
 *
 *     scripts/fuzz.sh 600 models
 */
#include "mdot/mdotc.h"
#include "tests/support/random_model.h"

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

static void write_file(const char *path, const pb_buffer *bytes)
{
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(bytes->data, 1, bytes->size, file) != bytes->size || fclose(file) != 0) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int64_t buckets[] = {20};
    char model[64], artefact[64];
    pb_buffer bytes = random_model(data, size);
    snprintf(model, sizeof model, "/tmp/fuzz_models.%d.onnx", (int)getpid());
    snprintf(artefact, sizeof artefact, "/tmp/fuzz_models.%d.mdot", (int)getpid());
    write_file(model, &bytes);
    const mdotc_entry entry = {sizeof entry, "run", model};
    const mdotc_options options = {.struct_size = sizeof options, .buckets = buckets, .bucket_count = 1};
    const mdotc_verify_options verify = {.struct_size = sizeof verify, .row = show_row};
    mdot_error err = {0};
    bool passed = false;
    mdot_status status = mdotc_compile(&entry, 1, artefact, &options, &err);
    if (status == MDOT_OK) status = mdotc_verify(artefact, model, &verify, &passed, &err);
    if (status != MDOT_OK) fprintf(stderr, "%s: %s\n", mdot_status_name(status), err.message);
    unlink(model);
    unlink(artefact);
    pb_free(&bytes);
    if (!passed) abort();
    return 0;
}
