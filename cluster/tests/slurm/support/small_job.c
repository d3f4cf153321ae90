#include "tests/slurm/support/small_job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

mdot_job *small_job_make(size_t operators)
{
    mdot_job_operator *entries = calloc(operators, sizeof *entries);
    uint32_t *inputs = calloc(operators, sizeof *inputs);
    assert_true(entries != NULL && inputs != NULL);
    for (size_t i = 0; i < operators; i++) {
        double width = 64 * (double)(i + 1);
        entries[i] = (mdot_job_operator){
            .struct_size = sizeof *entries, .type = "Linear", .known = true, .parameters = width * 64};
        entries[i].setting[MDOT_SETTING_CHANNELS_IN] = 64;
        entries[i].setting[MDOT_SETTING_CHANNELS_OUT] = (int64_t)width;
        for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++)
            entries[i].per_sample[phase] = (mdot_load){2e4 * width, 4e3 * width, 4e3 * width};
        inputs[i] = (uint32_t)i - 1;
        entries[i].inputs = &inputs[i];
        entries[i].input_count = i > 0;
    }
    mdot_job_description description = {.struct_size = sizeof description,
                                        .operators = entries,
                                        .operator_count = operators,
                                        .batch = 16,
                                        .has_optimizer = true,
                                        .optimizer = MDOT_OPTIMIZER_ADAM};
    mdot_job *job = NULL;
    mdot_error err = {0};
    if (mdot_job_create(&description, &job, &err) != MDOT_OK) fail_msg("%s", err.message);
    free(inputs);
    free(entries);
    return job;
}

void small_job_save(size_t operators, const char *path, unsigned char **out_bytes, size_t *out_count)
{
    mdot_job *job = small_job_make(operators);
    assert_int_equal(mdot_job_save(job, path, NULL), MDOT_OK);
    mdot_job_destroy(job);
    if (out_bytes == NULL) return;
    small_job_read_file(path, out_bytes, out_count);
}

void small_job_read_file(const char *path, unsigned char **out_bytes, size_t *out_count)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    *out_count = (size_t)ftell(file);
    rewind(file);
    *out_bytes = malloc(*out_count);
    assert_non_null(*out_bytes);
    assert_int_equal(fread(*out_bytes, 1, *out_count, file), *out_count);
    fclose(file);
}

void small_job_write_file(const char *path, const void *bytes, size_t count)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}
