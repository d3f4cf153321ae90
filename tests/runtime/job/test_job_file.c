/* test_job_file.c — runtime/job/job.c, job_file.c and job_file_1.c: jobs in memory and in `.job` files of both
 * versions, whole and damaged.
 */
#include "mdot/mdot.h"
#include "mdot/mdot_abi.h"
#include "mdot/mdotjob.h"
#include "tests/support/process.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- A job of a fork and a join --------------------------------------------------------------------------------- */

static const uint32_t first[] = {0}, both[] = {1, 2};

static mdot_job_description describe(mdot_job_operator operators[4])
{
    memset(operators, 0, 4 * sizeof *operators);
    operators[0] = (mdot_job_operator){
        .struct_size = sizeof(mdot_job_operator), .type = "Conv", .known = true, .parameters = 1728};
    operators[0].setting[MDOT_SETTING_KERNEL_H] = 3;
    operators[0].setting[MDOT_SETTING_PADDING_W] = -2;
    operators[0].per_sample[MDOT_PHASE_FORWARD] = (mdot_load){9007199254740992.0, 602112, 3211264};
    operators[0].per_step[MDOT_PHASE_WEIGHT_GRADIENT].bytes_written = 6912;
    operators[0].facts = (mdot_operator_facts){.number = 125,
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

static mdot_job *make_job(void)
{
    mdot_job_operator operators[4];
    mdot_job_description description = describe(operators);
    mdot_job *job = NULL;
    mdot_error err = {0};
    if (mdot_job_create(&description, &job, &err) != MDOT_OK) fail_msg("%s", err.message);
    return job;
}

static bool equal_texts(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static bool equal_operators(const mdot_job_operator *p, const mdot_job_operator *q)
{
    return equal_texts(p->type, q->type) && p->known == q->known && equal_texts(p->module, q->module) &&
           memcmp(p->setting, q->setting, sizeof p->setting) == 0 &&
           memcmp(p->per_sample, q->per_sample, sizeof p->per_sample) == 0 &&
           memcmp(p->per_step, q->per_step, sizeof p->per_step) == 0 && p->parameters == q->parameters &&
           p->input_count == q->input_count && memcmp(p->inputs, q->inputs, p->input_count * sizeof *p->inputs) == 0 &&
           p->depth == q->depth && p->height == q->height && p->out_degree == q->out_degree &&
           memcmp(&p->facts, &q->facts, sizeof p->facts) == 0 && p->block == q->block &&
           p->equal_blocks == q->equal_blocks;
}

static bool equal_jobs(const mdot_job *a, const mdot_job *b)
{
    mdot_job_info x = MDOT_INIT(mdot_job_info), y = MDOT_INIT(mdot_job_info);
    mdot_job_get_info(a, &x);
    mdot_job_get_info(b, &y);
    bool equal = x.operator_count == y.operator_count && x.unknown_count == y.unknown_count && x.batch == y.batch &&
                 x.has_optimizer == y.has_optimizer && x.optimizer == y.optimizer && x.parameters == y.parameters &&
                 x.block_count == y.block_count;
    for (size_t i = 0; i < x.operator_count && equal; i++) {
        mdot_job_operator p = MDOT_INIT(mdot_job_operator), q = MDOT_INIT(mdot_job_operator);
        assert_int_equal(mdot_job_get_operator(a, i, &p), MDOT_OK);
        assert_int_equal(mdot_job_get_operator(b, i, &q), MDOT_OK);
        equal = equal_operators(&p, &q);
    }
    return equal;
}

static void expect_same(const mdot_job *a, const mdot_job *b)
{
    assert_true(equal_jobs(a, b));
}

/* ---- In memory -------------------------------------------------------------------------------------------------- */

static void positions_follow_from_dependencies(void **state)
{
    (void)state;
    mdot_job *job = make_job();
    static const uint32_t depth[] = {0, 1, 1, 2}, height[] = {2, 1, 1, 0}, readers[] = {2, 1, 1, 0};
    for (size_t i = 0; i < 4; i++) {
        mdot_job_operator op = MDOT_INIT(mdot_job_operator);
        assert_int_equal(mdot_job_get_operator(job, i, &op), MDOT_OK);
        assert_int_equal(op.depth, depth[i]);
        assert_int_equal(op.height, height[i]);
        assert_int_equal(op.out_degree, readers[i]);
    }
    mdot_job_operator beyond = MDOT_INIT(mdot_job_operator);
    assert_int_equal(mdot_job_get_operator(job, 4, &beyond), MDOT_OUT_OF_RANGE);
    mdot_job_info info = MDOT_INIT(mdot_job_info);
    mdot_job_get_info(job, &info);
    assert_int_equal(info.unknown_count, 1);
    assert_true(info.parameters == 1728);
    mdot_job_destroy(job);
    mdot_job_destroy(NULL);
}

static void expect_invalid(const mdot_job_description *description, const char *part)
{
    mdot_job *job = NULL;
    mdot_error err = {0};
    assert_int_equal(mdot_job_create(description, &job, &err), MDOT_INVALID_ARGUMENT);
    assert_null(job);
    if (!strstr(err.message, part)) fail_msg("\"%s\" is not in: %s", part, err.message);
}

static void descriptions_that_are_no_jobs_are_refused(void **state)
{
    (void)state;
    static const uint32_t itself[] = {3}, falling[] = {2, 1}, twice[] = {1, 1};
    mdot_job_operator operators[4];
    mdot_job_description d = describe(operators);
    d.operator_count = 0;
    expect_invalid(&d, "no operators");
    d = describe(operators);
    operators[3].inputs = itself;
    operators[3].input_count = 1;
    expect_invalid(&d, "do not ascend");
    operators[3].inputs = falling;
    operators[3].input_count = 2;
    expect_invalid(&d, "do not ascend");
    operators[3].inputs = twice;
    expect_invalid(&d, "do not ascend");
    d = describe(operators);
    operators[1].per_step[MDOT_PHASE_FORWARD].flops = NAN;
    expect_invalid(&d, "operator 1 of the job (Relu)");
    operators[1].per_step[MDOT_PHASE_FORWARD].flops = -1;
    expect_invalid(&d, "no count");
    operators[1].per_step[MDOT_PHASE_FORWARD].flops = INFINITY;
    expect_invalid(&d, "no count");
    d = describe(operators);
    operators[2].type = "";
    expect_invalid(&d, "has no type");
    d = describe(operators);
    operators[2].facts.number = 65536;
    expect_invalid(&d, "number 65536");
    d = describe(operators);
    operators[1].block = 2;
    expect_invalid(&d, "block 2 stands before block 1");
    d = describe(operators);
    d.batch = -1;
    expect_invalid(&d, "batch");
}

static void what_later_versions_may_say_is_refused(void **state)
{
    (void)state;
    enum { FACTS = sizeof(mdot_operator_facts){0}.reserved / sizeof(uint32_t) };
    for (int i = 0; i < 1 + FACTS + MDOT_SETTING_CAPACITY - MDOT_SETTING_COUNT; i++) {
        mdot_job_operator operators[4];
        mdot_job_description d = describe(operators);
        if (i == 0) {
            operators[2].reserved = 1;
        } else if (i <= FACTS) {
            operators[2].facts.reserved[i - 1] = 1;
        } else {
            operators[2].setting[MDOT_SETTING_COUNT + i - 1 - FACTS] = 1;
        }
        mdot_job *job = NULL;
        mdot_error err = {0};
        assert_int_equal(mdot_job_create(&d, &job, &err), MDOT_INCOMPATIBLE);
        assert_non_null(strstr(err.message, "operator 2 of the job (com.example:Fancy) says what mdot "));
        assert_null(job);
    }
}

static void optimizers_cost_what_their_update_rule_reads_and_writes(void **state)
{
    (void)state;
    mdot_load sgd = mdot_optimizer_load(MDOT_OPTIMIZER_SGD, 10), adam = mdot_optimizer_load(MDOT_OPTIMIZER_ADAM, 10);
    assert_true(sgd.bytes_read == 120 && sgd.bytes_written == 80);
    assert_true(adam.bytes_read == 160 && adam.bytes_written == 120);
    assert_true(mdot_optimizer_load(MDOT_OPTIMIZER_ADAMW, 10).flops > adam.flops && adam.flops > sgd.flops);
    assert_true(mdot_optimizer_load((mdot_optimizer)77, 10).flops == 0);
}

static void settings_have_names(void **state)
{
    (void)state;
    assert_string_equal(mdot_setting_name(MDOT_SETTING_KERNEL_D), "kernel_d");
    assert_string_equal(mdot_setting_name(MDOT_SETTING_INPUTS), "inputs");
    assert_string_equal(mdot_setting_name(MDOT_SETTING_COUNT), "?");
    assert_string_equal(mdot_setting_name((mdot_setting)-1), "?");
}

/* ---- Files ------------------------------------------------------------------------------------------------------ */

enum { HEADER_BYTES = 32, CHECKSUM_AT = 24, MAX_FILE_BYTES = 4096 };

typedef struct file {
    char *folder, *path;
    unsigned char bytes[MAX_FILE_BYTES];
    size_t size;
} file;

static int set_up(void **state)
{
    file *f = calloc(1, sizeof *f);
    if (!f) return -1;
    f->folder = process_make_folder();
    if (asprintf(&f->path, "%s/net.job", f->folder) < 0) return -1;
    mdot_job *job = make_job();
    mdot_error err = {0};
    if (mdot_job_save(job, f->path, &err) != MDOT_OK) fail_msg("%s", err.message);
    mdot_job_destroy(job);
    FILE *stream = fopen(f->path, "rb");
    assert_non_null(stream);
    f->size = fread(f->bytes, 1, sizeof f->bytes, stream);
    fclose(stream);
    assert_true(f->size > HEADER_BYTES && f->size < MAX_FILE_BYTES);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    file *f = *state;
    process_remove_folder(f->folder);
    free(f->path);
    free(f);
    return 0;
}

/* In a block of just that size, so that a read beyond it is seen. */
static mdot_status parse(const unsigned char *bytes, size_t size, mdot_job **out_job, mdot_error *err)
{
    unsigned char *exact = malloc(size ? size : 1);
    assert_non_null(exact);
    memcpy(exact, bytes, size);
    mdot_status status = mdot_job_parse(exact, size, out_job, err);
    free(exact);
    return status;
}

static void expect_parse_fault(const unsigned char *bytes, size_t size, mdot_status expected)
{
    mdot_job *job = NULL;
    mdot_error err = {0};
    mdot_status status = parse(bytes, size, &job, &err);
    assert_null(job);
    assert_int_equal(status, expected);
    assert_int_equal(err.status, expected);
    assert_true(err.message[0] != '\0');
}

static void a_saved_job_loads_as_it_was(void **state)
{
    file *f = *state;
    mdot_job *job = make_job(), *loaded = NULL;
    mdot_error err = {0};
    if (mdot_job_load(f->path, &loaded, &err) != MDOT_OK) fail_msg("%s", err.message);
    expect_same(job, loaded);
    assert_int_equal(mdot_job_save(loaded, f->path, &err), MDOT_OK); /* over itself */
    mdot_job_destroy(loaded);
    assert_int_equal(mdot_job_load(f->path, &loaded, &err), MDOT_OK);
    expect_same(job, loaded);
    mdot_job_destroy(loaded);
    mdot_job_destroy(job);
}

/* ---- Every field ----------------------------------------------------------------------------------------------------
 */

/* Change number `which` of a job; false: there are no more. */
static bool change(mdot_job_description *d, mdot_job_operator *operators, int which)
{
    enum { SETTINGS = MDOT_SETTING_COUNT, LOADS = 6 * MDOT_PHASE_COUNT };
    static const uint32_t other[] = {0, 1};
    mdot_job_operator *op = &operators[2];
    if (which < SETTINGS) {
        op->setting[which]--;
        return true;
    }
    which -= SETTINGS;
    if (which < LOADS) {
        mdot_load *load = &(which % 2 ? op->per_sample : op->per_step)[which / 6];
        *(which / 2 % 3 == 0 ? &load->flops : which / 2 % 3 == 1 ? &load->bytes_read : &load->bytes_written) += 5;
        return true;
    }
    uint32_t *const facts[] = {&op->facts.number,      &op->facts.autocast,         &op->facts.saved_written,
                               &op->facts.saved_fused, &op->facts.saved_recomputed, &op->facts.reserve,
                               &op->facts.traits};
    which -= LOADS;
    if (which < 7) {
        *facts[which] += 1000;
        return true;
    }
    switch (which - 7) {
    case 0:
        return op->type = "com.example:Fancier", true;
    case 1:
        return op->known = !op->known, true;
    case 2:
        return op->parameters = 1, true;
    case 3:
        return op->inputs = other, op->input_count = 2, true;
    case 4:
        return op->block = 0, true;
    case 5:
        return op->module = NULL, true;
    case 6:
        return op->module = "decoder", true;
    case 7:
        return d->batch++, true;
    case 8:
        return d->optimizer = MDOT_OPTIMIZER_ADAM, true;
    case 9:
        return d->has_optimizer = false, true;
    default:
        return false;
    }
}

static mdot_job *create(const mdot_job_description *d)
{
    mdot_job *job = NULL;
    mdot_error err = {0};
    if (mdot_job_create(d, &job, &err) != MDOT_OK) fail_msg("%s", err.message);
    return job;
}

static void every_field_comes_back_from_a_file(void **state)
{
    file *f = *state;
    mdot_job *plain = make_job();
    int count = 0;
    for (;; count++) {
        mdot_job_operator operators[4];
        mdot_job_description d = describe(operators);
        if (!change(&d, operators, count)) break;
        mdot_job *job = create(&d), *loaded = NULL;
        if (equal_jobs(plain, job)) fail_msg("change %d makes no difference", count);
        assert_int_equal(mdot_job_save(job, f->path, NULL), MDOT_OK);
        assert_int_equal(mdot_job_load(f->path, &loaded, NULL), MDOT_OK);
        if (!equal_jobs(job, loaded)) fail_msg("change %d does not come back", count);
        mdot_job_destroy(loaded);
        mdot_job_destroy(job);
    }
    assert_true(count >= 60);
    mdot_job_destroy(plain);
}

static void a_job_without_names_has_no_section_for_them(void **state)
{
    file *f = *state;
    mdot_job_operator operators[4];
    mdot_job_description d = describe(operators);
    for (int i = 0; i < 4; i++) operators[i].module = NULL;
    mdot_job *job = create(&d);
    assert_non_null(memmem(f->bytes, f->size, "encoder", 7));
    assert_int_equal(mdot_job_save(job, f->path, NULL), MDOT_OK);
    FILE *stream = fopen(f->path, "rb");
    assert_non_null(stream);
    size_t size = fread(f->bytes, 1, sizeof f->bytes, stream);
    fclose(stream);
    assert_true(size > HEADER_BYTES && size < f->size);
    assert_null(memmem(f->bytes, size, "encoder", 7));
    mdot_job_destroy(job);
}

/* ---- Damage ---------------------------------------------------------------------------------------------------------
 */

static void a_cut_file_is_refused_at_every_byte(void **state)
{
    file *f = *state;
    for (size_t size = 0; size < f->size; size++) expect_parse_fault(f->bytes, size, MDOT_MALFORMED);
    expect_parse_fault(f->bytes, f->size + 1, MDOT_MALFORMED);
}

static void every_flipped_bit_is_found(void **state)
{
    file *f = *state;
    for (size_t bit = 0; bit < 8 * f->size; bit++) {
        f->bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        size_t at = bit / 8;
        mdot_status expected = at < 8                ? MDOT_MALFORMED    /* magic */
                               : at < 12             ? MDOT_INCOMPATIBLE /* version */
                               : at >= 16 && at < 24 ? MDOT_MALFORMED    /* size */
                                                     : MDOT_CORRUPT;
        expect_parse_fault(f->bytes, f->size, expected);
        f->bytes[at] ^= (unsigned char)(1u << bit % 8);
    }
}

static void sign(unsigned char *bytes, size_t size)
{
    uint64_t file_bytes = size;
    memcpy(bytes + 16, &file_bytes, sizeof file_bytes);
    uint64_t sum = mdot_abi_checksum(bytes, CHECKSUM_AT, 0);
    sum = mdot_abi_checksum(bytes + HEADER_BYTES, size - HEADER_BYTES, sum);
    memcpy(bytes + CHECKSUM_AT, &sum, sizeof sum);
}

/* Damage that a checksum does not find, because it was computed afterwards. */
static void broken_content_is_refused_or_a_job(void **state)
{
    file *f = *state;
    int refused = 0;
    for (size_t at = 12; at < f->size; at++) {
        if (at == 16) at = HEADER_BYTES;
        unsigned char whole = f->bytes[at];
        for (int value = 0; value < 256; value++) {
            mdot_job *job = NULL;
            mdot_error err = {0};
            f->bytes[at] = (unsigned char)value;
            sign(f->bytes, f->size);
            mdot_status status = parse(f->bytes, f->size, &job, &err);
            assert_true(status == MDOT_OK || status == MDOT_MALFORMED);
            assert_int_equal(status == MDOT_OK, job != NULL);
            refused += status != MDOT_OK;
            mdot_job_destroy(job);
        }
        f->bytes[at] = whole;
    }
    assert_true(refused > 1000);
    int whole = 0;
    for (size_t size = HEADER_BYTES; size < f->size; size++) { /* cut, and signed again */
        unsigned char bytes[MAX_FILE_BYTES];
        mdot_job *job = NULL;
        memcpy(bytes, f->bytes, size);
        sign(bytes, size);
        mdot_status status = parse(bytes, size, &job, NULL);
        assert_true(status == MDOT_OK || status == MDOT_MALFORMED);
        whole += status == MDOT_OK;
        mdot_job_destroy(job);
    }
    assert_int_equal(whole, 1); /* without the last section, which not every job has */
}

/* ---- Versions -------------------------------------------------------------------------------------------------------
 */

/* A file as a later mdot may write it: the section with this tag has bytes more behind each of its records, or, with
 * tag 0, there is a section more. Sizes and records of the test's job fit in a byte each. */
static size_t append_to_section(const file *f, int tag, unsigned char *out)
{
    size_t size = HEADER_BYTES, at = HEADER_BYTES;
    memcpy(out, f->bytes, HEADER_BYTES);
    while (at < f->size) {
        const unsigned char *section = f->bytes + at;
        size_t end = at + 2 + section[1];
        assert_true(section[1] < 0x80);
        out[size++] = section[0];
        size_t size_at = size++, from = size;
        at += 2;
        if (section[0] == tag && tag == 1) {
            memcpy(out + size, f->bytes + at, end - at);
            size += end - at;
            out[size++] = 77;
            at = end;
        }
        if (section[0] == tag && tag == 2) out[size++] = f->bytes[at++]; /* how many */
        while (at < end) {
            size_t record = section[0] == tag ? 1u + f->bytes[at] : end - at;
            memcpy(out + size, f->bytes + at, record);
            at += record;
            if (section[0] == tag) out[size] += 2;
            size += record;
            if (section[0] != tag) continue;
            out[size++] = 5;
            out[size++] = 9;
        }
        assert_true(size - from < 0x80);
        out[size_at] = (unsigned char)(size - from);
    }
    if (tag == 0) {
        static const unsigned char later[] = {9, 3, 1, 2, 3};
        memcpy(out + size, later, sizeof later);
        size += sizeof later;
    }
    return size;
}

static void what_a_later_version_appends_is_skipped(void **state)
{
    file *f = *state;
    mdot_job *job = make_job();
    for (int tag = 0; tag <= 3; tag++) {
        unsigned char bytes[MAX_FILE_BYTES];
        size_t size = append_to_section(f, tag, bytes);
        assert_true(size > f->size);
        sign(bytes, size);
        mdot_job *later = NULL;
        mdot_error err = {0};
        if (parse(bytes, size, &later, &err) != MDOT_OK) fail_msg("section %d: %s", tag, err.message);
        expect_same(job, later);
        mdot_job_destroy(later);
    }
    mdot_job_destroy(job);
}

/* As mdot 0.1 wrote the job of this test, less what that had no words for. */
static const unsigned char version_1[] = {
    0x4d, 0x44, 0x4f, 0x54, 0x4a, 0x4f, 0x42, 0x00, 0x01, 0x00, 0x00, 0x00, 0x04, 0x00, 0x00, 0x00, 0x76,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xc6, 0x7c, 0x8f, 0x3d, 0x8d, 0x57, 0xd9, 0x71, 0x08, 0x03,
    0x04, 0x04, 0x43, 0x6f, 0x6e, 0x76, 0x04, 0x52, 0x65, 0x6c, 0x75, 0x11, 0x63, 0x6f, 0x6d, 0x2e, 0x65,
    0x78, 0x61, 0x6d, 0x70, 0x6c, 0x65, 0x3a, 0x46, 0x61, 0x6e, 0x63, 0x79, 0x03, 0x41, 0x64, 0x64, 0x01,
    0xc0, 0x0d, 0x82, 0x04, 0x06, 0x03, 0x87, 0x80, 0x08, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x10,
    0x80, 0xe0, 0x24, 0x80, 0x80, 0xc4, 0x01, 0x80, 0x36, 0x00, 0x03, 0x00, 0x00, 0x00, 0x01, 0x01, 0x04,
    0x00, 0x00, 0x00, 0x01, 0x02, 0x07, 0x00, 0x80, 0x80, 0x80, 0x08, 0x04, 0x00, 0x02, 0x02, 0x01};

/* Facts of its types follow from their names. */
static void files_of_version_1_are_read(void **state)
{
    (void)state;
    mdot_job_operator operators[4];
    mdot_job_description d = describe(operators);
    for (int i = 0; i < 4; i++) {
        operators[i].facts = (mdot_operator_facts){0};
        operators[i].block = 0;
        operators[i].module = NULL;
        if (operators[i].known) mdot_operator_facts_find(operators[i].type, &operators[i].facts);
        /* version 1 knew one way of saving */
        operators[i].facts.saved_written = operators[i].facts.saved_recomputed = operators[i].facts.saved_fused;
    }
    mdot_job *job = create(&d), *old = NULL;
    mdot_error err = {0};
    if (parse(version_1, sizeof version_1, &old, &err) != MDOT_OK) fail_msg("%s", err.message);
    expect_same(job, old);
    mdot_job_destroy(old);
    mdot_job_destroy(job);
    for (size_t size = HEADER_BYTES; size < sizeof version_1; size++) {
        unsigned char bytes[sizeof version_1];
        memcpy(bytes, version_1, size);
        sign(bytes, size);
        expect_parse_fault(bytes, size, MDOT_MALFORMED);
    }
}

/* What version 1 says of each type is what the table says today. */
static void types_of_version_1_are_those_of_the_table(void **state)
{
    (void)state;
    static const struct {
        const char *name, *autocast;
    } rows[] = {
#define TYPE_1(name, autocast, ...) {name, #autocast},
#include "runtime/job/job_types_1.def"
#undef TYPE_1
    };
    static const char *const classes[] = {"WIDEST", "HALF", "FULL", "DATA"};
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        mdot_operator_facts facts;
        assert_int_equal(mdot_operator_facts_find(rows[i].name, &facts), MDOT_OK);
        if (facts.number != i + 1) fail_msg("%s had number %u", rows[i].name, (unsigned)i + 1);
        assert_string_equal(rows[i].autocast, classes[facts.autocast]);
    }
}

static void files_of_later_versions_are_named(void **state)
{
    file *f = *state;
    mdot_job *job = NULL;
    mdot_error err = {0};
    f->bytes[8] = 3;
    sign(f->bytes, f->size);
    assert_int_equal(parse(f->bytes, f->size, &job, &err), MDOT_INCOMPATIBLE);
    assert_non_null(strstr(err.message, "version 3 of its format; this mdot reads those up to 2"));
}

static void files_that_cannot_be_read_or_written_are_named(void **state)
{
    file *f = *state;
    mdot_job *job = make_job(), *none = NULL;
    mdot_error err = {0};
    char path[512];
    snprintf(path, sizeof path, "%s/absent.job", f->folder);
    assert_int_equal(mdot_job_load(path, &none, &err), MDOT_NOT_FOUND);
    assert_non_null(strstr(err.message, path));
    assert_int_equal(mdot_job_load(f->folder, &none, &err), MDOT_IO);
    snprintf(path, sizeof path, "%s/absent/net.job", f->folder);
    assert_int_equal(mdot_job_save(job, path, &err), MDOT_NOT_FOUND);
    assert_non_null(strstr(err.message, path));
    assert_null(none);
    mdot_job_destroy(job);
}

/* Neither waits for another end, nor puts a file where the pipe was. */
static void a_pipe_is_no_job(void **state)
{
    file *f = *state;
    mdot_job *job = NULL, *made = make_job();
    mdot_error err = {0};
    struct stat info;
    assert_int_equal(unlink(f->path), 0);
    assert_int_equal(mkfifo(f->path, 0600), 0);
    alarm(20);
    assert_int_equal(mdot_job_load(f->path, &job, &err), MDOT_IO);
    expect_contains(err.message, "not a regular file");
    assert_int_equal(mdot_job_save(made, f->path, &err), MDOT_INVALID_ARGUMENT);
    alarm(0);
    expect_contains(err.message, "not a regular file");
    assert_int_equal(lstat(f->path, &info), 0);
    assert_true(S_ISFIFO(info.st_mode));
    assert_int_equal(process_count_files(f->folder), 1);
    mdot_job_destroy(made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(positions_follow_from_dependencies),
        cmocka_unit_test(descriptions_that_are_no_jobs_are_refused),
        cmocka_unit_test(what_later_versions_may_say_is_refused),
        cmocka_unit_test(optimizers_cost_what_their_update_rule_reads_and_writes),
        cmocka_unit_test(settings_have_names),
        cmocka_unit_test_setup_teardown(a_saved_job_loads_as_it_was, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_field_comes_back_from_a_file, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_job_without_names_has_no_section_for_them, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_a_later_version_appends_is_skipped, set_up, tear_down),
        cmocka_unit_test(files_of_version_1_are_read),
        cmocka_unit_test(types_of_version_1_are_those_of_the_table),
        cmocka_unit_test_setup_teardown(files_of_later_versions_are_named, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_cut_file_is_refused_at_every_byte, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_flipped_bit_is_found, set_up, tear_down),
        cmocka_unit_test_setup_teardown(broken_content_is_refused_or_a_job, set_up, tear_down),
        cmocka_unit_test_setup_teardown(files_that_cannot_be_read_or_written_are_named, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_pipe_is_no_job, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
