/* fuzz_job.c — libFuzzer over what reads jobs: any bytes are refused with a message, or become a job whose every
 * accessor stays inside it. Bytes that begin like a `.job` file are one, with size and checksum put right, else nothing
 * would get beyond them; all others are an ONNX model.
 *
 *     cmake --preset fuzz && cmake --build --preset fuzz --target fuzz_job make_corpus
 *     mkdir corpus && build/fuzz/tests/fuzz/make_corpus corpus && build/fuzz/tests/fuzz/fuzz_job corpus
 */
#include "mdot/mdot_abi.h"
#include "mdot/mdotjob.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SIZE_AT = 16, CHECKSUM_AT = 24, HEADER_BYTES = 32 };

static void seal(unsigned char *file, size_t size)
{
    uint64_t file_bytes = size;
    memcpy(file + SIZE_AT, &file_bytes, sizeof file_bytes);
    uint64_t sum = mdot_abi_checksum(file, CHECKSUM_AT, 0);
    sum = mdot_abi_checksum(file + HEADER_BYTES, size - HEADER_BYTES, sum);
    memcpy(file + CHECKSUM_AT, &sum, sizeof sum);
}

static void visit(const mdot_job *job)
{
    mdot_job_info info;
    mdot_job_get_info(job, &info);
    for (size_t i = 0; i < info.operator_count; i++) {
        mdot_job_operator op;
        if (mdot_job_get_operator(job, i, &op) != MDOT_OK || strlen(op.type) == 0) abort();
        for (size_t k = 0; k < op.input_count; k++) {
            if (op.inputs[k] >= i) abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mdot_job *job = NULL;
    mdot_error err = {0};
    unsigned char *copy = malloc(size + 1);
    if (copy == NULL) return 0;
    memcpy(copy, data, size);
    bool is_file = size >= HEADER_BYTES && memcmp(copy, "MDOTJOB", 8) == 0;
    if (is_file) seal(copy, size);
    mdot_status status =
        is_file ? mdot_job_parse(copy, size, &job, &err) : mdot_job_read_bytes(copy, size, "fuzz", NULL, &job, &err);
    free(copy);
    if (status == MDOT_OK) {
        visit(job);
    } else if (job != NULL || err.message[0] == '\0') {
        abort();
    }
    mdot_job_destroy(job);
    return 0;
}
