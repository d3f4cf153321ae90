/* hostile_job.c — see hostile_job.h. */
#include "tests/fuzz/hostile_job.h"
#include "mdot/mdot_abi.h"

#include <stdlib.h>
#include <string.h>

enum { SIZE_AT = 16, CHECKSUM_AT = 24, CHECKSUM_END = 32 };

static void seal(unsigned char *file, size_t size)
{
    uint64_t file_bytes = size;
    memcpy(file + SIZE_AT, &file_bytes, sizeof file_bytes);
    uint64_t sum = mdot_abi_checksum(file, CHECKSUM_AT, 0);
    sum = mdot_abi_checksum(file + CHECKSUM_END, size - CHECKSUM_END, sum);
    memcpy(file + CHECKSUM_AT, &sum, sizeof sum);
}

mdot_status hostile_job(const uint8_t *data, size_t size, mdot_job **out_job)
{
    mdot_error err = {0};
    /* A block of the exact size, so the sanitizer detects the first byte beyond it. */
    unsigned char *copy = malloc(size > 0 ? size : 1);
    if (copy == NULL) return MDOT_OUT_OF_MEMORY;
    if (size > 0) memcpy(copy, data, size);
    bool is_file = size >= CHECKSUM_END && memcmp(copy, "MDOTJOB", 8) == 0;
    if (is_file) seal(copy, size);
    mdot_status status = is_file ? mdot_job_parse(copy, size, out_job, &err)
                                 : mdot_job_read_bytes(copy, size, "fuzz", NULL, out_job, &err);
    free(copy);
    if (status != MDOT_OK && (*out_job != NULL || err.message[0] == '\0')) abort();
    return status;
}
