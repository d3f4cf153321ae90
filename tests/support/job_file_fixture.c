/* job_file_fixture.c — see job_file_fixture.h. */
#include "tests/support/job_file_fixture.h"
#include "tests/support/assertions.h"

#include "mdot/mdot_abi.h"
#include "tests/support/process.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { CHECKSUM_AT = 24 };

static const uint32_t first[] = {0}, both[] = {1, 2};

mdot_job_description job_file_describe(mdot_job_operator operators[4])
{
    memset(operators, 0, 4 * sizeof *operators);
    operators[0] = (mdot_job_operator){
        .struct_size = sizeof(mdot_job_operator), .type = "Conv", .known = true, .parameters = 1728};
    operators[0].setting[MDOT_SETTING_KERNEL_H] = 3;
    operators[0].setting[MDOT_SETTING_PADDING_W] = -2;
    operators[0].per_sample[MDOT_PHASE_FORWARD] = (mdot_load){9007199254740992.0, 602112, 3211264};
    operators[0].per_step[MDOT_PHASE_WEIGHT_GRADIENT].bytes_written = 6912;
    operators[0].traits = (mdot_operator_traits){.number = 125,
                                                 .autocast = MDOT_AUTOCAST_HALF,
                                                 .saved_written = MDOT_SAVES_INPUTS,
                                                 .saved_fused = MDOT_SAVES_INPUTS | MDOT_SAVES_RESULT,
                                                 .saved_recomputed = MDOT_SAVES_NOTHING,
                                                 .reserve = 6,
                                                 .traits = MDOT_TRAIT_VIEW};
    operators[1] = (mdot_job_operator){
        .struct_size = sizeof(mdot_job_operator), .type = "Relu", .known = true, .inputs = first, .input_count = 1};
    operators[2] = (mdot_job_operator){
        .struct_size = sizeof(mdot_job_operator), .type = "com.example:Fancy", .inputs = first, .input_count = 1};
    operators[3] = (mdot_job_operator){
        .struct_size = sizeof(mdot_job_operator), .type = "Add", .known = true, .inputs = both, .input_count = 2};
    operators[3].setting[MDOT_SETTING_INPUTS] = 2;
    operators[1].block = operators[2].block = 1;
    operators[3].block = 2;
    operators[1].module = operators[3].module = "encoder.layer.0";
    operators[2].module = "encoder";
    return (mdot_job_description){.struct_size = sizeof(mdot_job_description),
                                  .operators = operators,
                                  .operator_count = 4,
                                  .batch = 8,
                                  .has_optimizer = true,
                                  .optimizer = MDOT_OPTIMIZER_ADAMW};
}

mdot_job *job_file_create(const mdot_job_description *d)
{
    mdot_job *job = NULL;
    mdot_error err = {0};
    if (mdot_job_create(d, &job, &err) != MDOT_OK) fail_msg("%s", err.message);
    return job;
}

mdot_job *job_file_make(void)
{
    mdot_job_operator operators[JOB_FILE_OPERATORS];
    mdot_job_description description = job_file_describe(operators);
    return job_file_create(&description);
}

static bool equal_texts(const char *a, const char *b) { return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0; }

static bool equal_operators(const mdot_job_operator *p, const mdot_job_operator *q)
{
    return equal_texts(p->type, q->type) && p->known == q->known && equal_texts(p->module, q->module) &&
           memcmp(p->setting, q->setting, sizeof p->setting) == 0 &&
           memcmp(p->per_sample, q->per_sample, sizeof p->per_sample) == 0 &&
           memcmp(p->per_step, q->per_step, sizeof p->per_step) == 0 &&
           memcmp(p->per_square, q->per_square, sizeof p->per_square) == 0 && p->batch_settings == q->batch_settings &&
           p->parameters == q->parameters && p->frozen_parameters == q->frozen_parameters && p->flags == q->flags &&
           p->input_count == q->input_count && memcmp(p->inputs, q->inputs, p->input_count * sizeof *p->inputs) == 0 &&
           p->depth == q->depth && p->height == q->height && p->out_degree == q->out_degree &&
           memcmp(&p->traits, &q->traits, sizeof p->traits) == 0 && p->block == q->block &&
           p->equal_blocks == q->equal_blocks;
}

bool job_file_equal(const mdot_job *a, const mdot_job *b)
{
    mdot_job_info x = MDOT_INIT(mdot_job_info), y = MDOT_INIT(mdot_job_info);
    mdot_job_get_info(a, &x);
    mdot_job_get_info(b, &y);
    bool equal = x.operator_count == y.operator_count && x.unknown_count == y.unknown_count && x.batch == y.batch &&
                 x.has_optimizer == y.has_optimizer && x.optimizer == y.optimizer && x.parameters == y.parameters &&
                 x.block_count == y.block_count && x.notes == y.notes && x.length == y.length &&
                 equal_texts(x.length_name, y.length_name);
    for (size_t i = 0; i < x.operator_count && equal; i++) {
        mdot_job_operator p = MDOT_INIT(mdot_job_operator), q = MDOT_INIT(mdot_job_operator);
        assert_int_equal(mdot_job_get_operator(a, i, &p), MDOT_OK);
        assert_int_equal(mdot_job_get_operator(b, i, &q), MDOT_OK);
        equal = equal_operators(&p, &q);
    }
    return equal;
}

void job_file_expect_same(const mdot_job *a, const mdot_job *b) { assert_true(job_file_equal(a, b)); }

void job_file_sign(unsigned char *bytes, size_t size)
{
    uint64_t file_bytes = size;
    memcpy(bytes + 16, &file_bytes, sizeof file_bytes);
    uint64_t sum = mdot_abi_checksum(bytes, CHECKSUM_AT, 0);
    sum = mdot_abi_checksum(bytes + JOB_FILE_CHECKSUM_END, size - JOB_FILE_CHECKSUM_END, sum);
    memcpy(bytes + CHECKSUM_AT, &sum, sizeof sum);
}

mdot_status job_file_parse(const unsigned char *bytes, size_t size, mdot_job **out_job, mdot_error *err)
{
    unsigned char *exact = malloc(size ? size : 1);
    assert_non_null(exact);
    memcpy(exact, bytes, size);
    mdot_status status = mdot_job_parse(exact, size, out_job, err);
    free(exact);
    return status;
}

void job_file_expect_fault(const unsigned char *bytes, size_t size, mdot_status expected)
{
    mdot_job *job = NULL;
    mdot_error err = {0};
    mdot_status status = job_file_parse(bytes, size, &job, &err);
    assert_null(job);
    assert_int_equal(status, expected);
    assert_int_equal(err.status, expected);
    assert_compare(err.message[0], !=, '\0');
}

size_t job_file_list_sections(const unsigned char *bytes, job_file_section out[JOB_FILE_MAX_SECTIONS])
{
    uint32_t count;
    memcpy(&count, bytes + JOB_FILE_CHECKSUM_END, sizeof count);
    assert_compare(count, <=, JOB_FILE_MAX_SECTIONS - 1);
    const unsigned char *content = bytes + JOB_FILE_HEADER_BYTES + count * JOB_FILE_ENTRY_BYTES;
    for (uint32_t i = 0; i < count; i++) {
        memcpy(&out[i], bytes + JOB_FILE_HEADER_BYTES + i * JOB_FILE_ENTRY_BYTES, JOB_FILE_ENTRY_BYTES);
        out[i].bytes = content;
        content += out[i].size;
    }
    return count;
}

size_t job_file_write_sections(const unsigned char *bytes, const job_file_section *sections, size_t section_count,
                               unsigned char *out, size_t capacity)
{
    uint32_t count = (uint32_t)section_count;
    size_t size = JOB_FILE_HEADER_BYTES;
    memcpy(out, bytes, JOB_FILE_HEADER_BYTES);
    memcpy(out + JOB_FILE_CHECKSUM_END, &count, sizeof count);
    for (size_t i = 0; i < count; i++, size += JOB_FILE_ENTRY_BYTES)
        memcpy(out + size, &sections[i], JOB_FILE_ENTRY_BYTES);
    for (size_t i = 0; i < count; i++) {
        assert_compare(size + sections[i].size, <, capacity);
        memcpy(out + size, sections[i].bytes, sections[i].size);
        size += sections[i].size;
    }
    job_file_sign(out, size);
    return size;
}

size_t job_file_bytes_of(const mdot_job *job, unsigned char *out, size_t capacity)
{
    char *folder = process_make_folder(), path[300];
    snprintf(path, sizeof path, "%s/net.job", folder);
    assert_int_equal(mdot_job_save(job, path, NULL), MDOT_OK);
    FILE *stream = fopen(path, "rb");
    assert_non_null(stream);
    size_t size = fread(out, 1, capacity, stream);
    assert_compare(size, <, capacity);
    fclose(stream);
    process_remove_folder(folder);
    return size;
}
