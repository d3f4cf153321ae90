/* test_foreign_file.c — files mistaken for models and jobs are recognised by content. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "tests/support/assertions.h"

static void expect_in(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) fail_msg("\"%s\" lacks \"%s\"", text, part);
}

/* Looks at a heap copy of exactly this size, so that a sanitizer detects every read beyond it. */
static bs_foreign look(const char *bytes, size_t size, bs_expected expected)
{
    char *copy = malloc(size > 0 ? size : 1);
    assert_non_null(copy);
    if (size > 0) memcpy(copy, bytes, size);
    bs_foreign foreign = bs_recognise_foreign(copy, size, expected);
    free(copy);
    return foreign;
}

typedef struct sample {
    const char *bytes;
    size_t size;
    const char *kind, *job_remedy, *model_remedy;
} sample;

#define SAMPLE(text, kind, job_remedy, model_remedy)                                                                   \
    {                                                                                                                  \
        text, sizeof(text) - 1, kind, job_remedy, model_remedy                                                         \
    }

static const char torch[] = "mdot.Job.from_torch(", transformers[] = "mdot.Job.from_transformers(",
                  export[] = "torch.onnx.export(";
static const sample samples[] = {
    SAMPLE("PK\3\4 archive", "a file of torch.save", torch, export),
    SAMPLE("\x80\2}q\0.", "a file of torch.save", torch, export),
    SAMPLE("GGUF\3\0\0\0", "a GGUF file", transformers, export),
    SAMPLE("\x10\0\0\0\0\0\0\0{\"__metadata__\"", "a safetensors file", transformers, export),
    SAMPLE("\x93NUMPY\1\0", "a NumPy file", transformers, export),
    SAMPLE("\211HDF\r\n\032\n", "an HDF5 file", "as ONNX", "as ONNX"),
    SAMPLE("\x1c\0\0\0TFL3", "a TensorFlow Lite file", "tf2onnx", "tf2onnx"),
    SAMPLE("version https://git-lfs.github.com/spec/v1\n", "Git LFS", "git lfs pull", "git lfs pull"),
    SAMPLE("MDOTJOB\0", "a job file of mdot", "must end in .job", "mdot predict"),
    SAMPLE("\177ELF\2\1\1", "an ELF file", "--model", export),
    SAMPLE("\x1f\x8b\x08", "gzip", "gunzip", "gunzip"),
    SAMPLE("\n<!DOCTYPE html>", "HTML", "download the file again", "download the file again"),
    SAMPLE("{\"hidden_size\": 8}", "a text", "--config", export),
    SAMPLE("[1, 2]", "a text", "--config", export),
    SAMPLE("base_model: x\nbf16: auto\n", "a text", "--config", export),
    SAMPLE("[1, 2]\1", "", "", ""),
    SAMPLE("{\"architectures\": [\"\33[2Jx\"]}", "", "", ""), /* control characters are not shown */
    SAMPLE("{\"architectures\": null}", "a text", "--config", export),
    SAMPLE("{\"architectures\": [\"Cut", "a text", "--config", export),
    SAMPLE("\10\7\22\7pytorch", "", "", ""), /* the begin of an ONNX file */
    SAMPLE("plain text", "a text", "--config", export),
    SAMPLE("", "", "", ""),
};

static void known_formats_get_a_kind_and_a_remedy(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        const sample *s = &samples[i];
        bs_foreign job = look(s->bytes, s->size, BS_EXPECT_JOB), model = look(s->bytes, s->size, BS_EXPECT_MODEL);
        expect_in(job.text, s->kind);
        expect_in(job.text, s->job_remedy);
        expect_in(model.text, s->kind);
        expect_in(model.text, s->model_remedy);
        if (*s->kind == '\0' && (job.text[0] != '\0' || model.text[0] != '\0')) fail_msg("sample %zu: %s", i, job.text);
        assert_null(strchr(job.text, '\33'));
    }
}

static void messages_are_complete(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        assert_compare(strlen(look(samples[i].bytes, samples[i].size, BS_EXPECT_JOB).text), <, sizeof(bs_foreign) - 1);
        assert_compare(strlen(look(samples[i].bytes, samples[i].size, BS_EXPECT_MODEL).text), <,
                       sizeof(bs_foreign) - 1);
    }
}

static void truncated_content_is_safe(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++)
        for (size_t size = 0; size < samples[i].size; size++) look(samples[i].bytes, size, BS_EXPECT_JOB);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_formats_get_a_kind_and_a_remedy),
        cmocka_unit_test(messages_are_complete),
        cmocka_unit_test(truncated_content_is_safe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
