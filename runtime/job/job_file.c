/* job_file.c — `.job` files: a job extracted once from its ONNX file, to be evaluated where that file is absent.
 *
 * docs/reference/formats/job.md specifies the format, and tests/formats has a second reader, which is written from the
 * specification alone. Change both together with this file.
 *
 * Growth without a new version: append fields to section 1 or to a record, use further bits of the masks, or add a
 * section. Mark a section as required if ignoring it would change the prediction, for example the types of parameters.
 * Any other change needs a new version.
 */
#include "runtime/job/job_file.h"
#include "base/file.h"
#include "mdot/mdot_abi.h"
#include "runtime/core/core.h"

#include <stdlib.h>
#include <string.h>

static const char magic[8] = "MDOTJOB";
enum {
    VERSION = 3,
    VERSION_AT = 8,
    COUNT_AT = 12,
    SIZE_AT = 16,
    CHECKSUM_AT = 24,
    CHECKSUM_END = 32,
    SECTIONS_AT = 32,
    HEADER_BYTES = 40
};
enum { ENTRY_BYTES = 16, ENTRY_FLAGS_AT = 4, ENTRY_SIZE_AT = 8, FLAG_REQUIRED = 1 }; /* for the section table */
enum {
    SECTION_JOB = 1,
    SECTION_TYPES,
    SECTION_OPERATORS,
    SECTION_MODULES,
    SECTION_PROGRAM,
    SECTION_LENGTHS,
    SECTION_COUNT = SECTION_LENGTHS
};
enum { TRAIT_COUNT = 7 };

_Static_assert(MDOT_SETTING_COUNT <= 63, "settings of an operator are masked in one varint");

static uint64_t checksum(const unsigned char *bytes, size_t size_bytes)
{
    uint64_t head = mdot_abi_checksum(bytes, CHECKSUM_AT, 0);
    return mdot_abi_checksum(bytes + CHECKSUM_END, size_bytes - CHECKSUM_END, head);
}

static uint32_t *trait_at(mdot_operator_traits *traits, int i)
{
    uint32_t *const numbers[TRAIT_COUNT] = {&traits->number,      &traits->autocast,         &traits->saved_written,
                                            &traits->saved_fused, &traits->saved_recomputed, &traits->reserve,
                                            &traits->traits};
    return numbers[i];
}

/* The type or module of each operator as a number. Equal ones share a number. */
typedef struct numbering {
    const mdot_job_operator **first; /* an operator of each number */
    uint32_t *of;                    /* number of each operator */
    size_t count;
} numbering;

/* A job holds each string once, in alphabetical order (string_pool.c), so that addresses compare as the strings do.
 * Long strings are thus read only once. */
static int compare_strings(const char *x, const char *y) { return (x > y) - (x < y); }

static int compare_types(const void *a, const void *b)
{
    const mdot_job_operator *x = *(const mdot_job_operator *const *)a, *y = *(const mdot_job_operator *const *)b;
    int order = compare_strings(x->type, y->type);
    if (order == 0) order = (int)x->known - (int)y->known;
    return order != 0 ? order : memcmp(&x->traits, &y->traits, sizeof x->traits);
}

static int compare_modules(const void *a, const void *b)
{
    const mdot_job_operator *x = *(const mdot_job_operator *const *)a, *y = *(const mdot_job_operator *const *)b;
    return compare_strings(x->module, y->module);
}

static bool has_module(const mdot_job_operator *op) { return op->module != NULL; }

static bool has_type(const mdot_job_operator *op) { return op->type != NULL; }

/* Returns false if memory runs out. The caller frees both arrays in either case. */
static bool number_all(const mdot_job *job, bool (*has)(const mdot_job_operator *),
                       int (*compare)(const void *, const void *), numbering *n)
{
    size_t count = job->info.operator_count, sorted = 0, number = 0;
    n->first = calloc(count, sizeof(*n->first));
    n->of = calloc(count, sizeof *n->of);
    if (n->first == NULL || n->of == NULL) return false;
    for (size_t i = 0; i < count; i++)
        if (has(&job->operators[i])) n->first[sorted++] = &job->operators[i];
    qsort(n->first, sorted, sizeof(*n->first), compare);
    for (size_t i = 0; i < sorted; i++) {
        const mdot_job_operator *op = n->first[i];
        if (i > 0 && compare(&n->first[number - 1], &op) == 0) {
            n->of[op - job->operators] = (uint32_t)(number - 1);
            continue;
        }
        n->of[op - job->operators] = (uint32_t)number;
        n->first[number++] = op;
    }
    n->count = number;
    return true;
}

static void free_numbering(numbering *n)
{
    free(n->first);
    free(n->of);
}

/* The sections of a file, indexed by tag - 1, and a buffer for one record. */
typedef struct parts {
    rt_writer section[SECTION_COUNT], record;
} parts;

static void put_job(rt_writer *w, const mdot_job_info *info)
{
    rt_put(w, (uint64_t)info->batch);
    rt_put(w, info->has_optimizer ? (uint64_t)info->optimizer + 1 : 0);
    rt_put(w, info->notes);
}

static void put_types(rt_writer *w, const numbering *types, rt_writer *record)
{
    rt_put(w, types->count);
    for (size_t t = 0; t < types->count; t++) {
        mdot_operator_traits traits = types->first[t]->traits;
        rt_put_text(record, types->first[t]->type);
        rt_put(record, types->first[t]->known);
        for (int i = 0; i < TRAIT_COUNT; i++) rt_put(record, *trait_at(&traits, i));
        rt_put_part(w, record);
    }
}

static void put_operator(rt_writer *w, const mdot_job_operator *source, size_t index, size_t type)
{
    mdot_job_operator op = *source;
    rt_put(w, type);
    rt_put(w, (uint64_t)op.parameters);
    uint64_t settings = 0, loads = 0;
    for (int s = 0; s < MDOT_SETTING_COUNT; s++) settings |= (uint64_t)(op.setting[s] != 0) << s;
    rt_put(w, settings);
    for (int s = 0; s < MDOT_SETTING_COUNT; s++)
        if (op.setting[s] != 0) rt_put_signed(w, op.setting[s]);
    for (int k = 0; k < RT_LOAD_COUNT; k++) loads |= (uint64_t)(*rt_load_at(&op, k) > 0) << k;
    rt_put(w, loads);
    for (int k = 0; k < RT_LOAD_COUNT; k++)
        if (*rt_load_at(&op, k) > 0) rt_put(w, (uint64_t)*rt_load_at(&op, k));
    rt_put(w, op.input_count);
    for (size_t i = 0; i < op.input_count; i++) rt_put(w, index - op.inputs[i]);
    rt_put(w, op.block);
    rt_put(w, (uint64_t)op.frozen_parameters);
    rt_put(w, op.flags);
    if (op.batch_settings != 0) rt_put(w, op.batch_settings);
}

static void put_modules(rt_writer *w, const mdot_job *job, const numbering *modules)
{
    rt_put(w, modules->count);
    for (size_t m = 0; m < modules->count; m++) rt_put_text(w, modules->first[m]->module);
    for (size_t i = 0; i < job->info.operator_count; i++)
        rt_put(w, has_module(&job->operators[i]) ? (uint64_t)modules->of[i] + 1 : 0);
}

static void fill_sections(const mdot_job *job, const numbering *types, const numbering *modules, parts *p)
{
    rt_writer *operators = &p->section[SECTION_OPERATORS - 1];
    put_job(&p->section[SECTION_JOB - 1], &job->info);
    put_types(&p->section[SECTION_TYPES - 1], types, &p->record);
    for (size_t i = 0; i < job->info.operator_count; i++) {
        put_operator(&p->record, &job->operators[i], i, types->of[i]);
        rt_put_part(operators, &p->record);
    }
    if (modules->count > 0) put_modules(&p->section[SECTION_MODULES - 1], job, modules);
    if (job->program != NULL) rt_put_program(&p->section[SECTION_PROGRAM - 1], job->program);
    if (job->lengths != NULL) rt_put_lengths(&p->section[SECTION_LENGTHS - 1], job->lengths);
}

static void put_table_and_sections(rt_writer *w, const parts *p)
{
    uint32_t count = 0;
    for (uint32_t tag = 1; tag <= SECTION_COUNT; tag++) {
        const rt_writer *section = &p->section[tag - 1];
        if (section->size == 0) continue;
        uint32_t flags = tag != SECTION_MODULES && tag != SECTION_LENGTHS ? FLAG_REQUIRED : 0;
        uint64_t size = section->size;
        rt_put_bytes(w, &tag, sizeof tag);
        rt_put_bytes(w, &flags, sizeof flags);
        rt_put_bytes(w, &size, sizeof size);
        count++;
    }
    for (int i = 0; i < SECTION_COUNT; i++) {
        rt_put_bytes(w, p->section[i].bytes, p->section[i].size);
        w->failed = w->failed || p->section[i].failed;
    }
    if (!w->failed) memcpy(w->bytes + SECTIONS_AT, &count, sizeof count);
}

static void seal(rt_writer *w, uint32_t operator_count)
{
    uint32_t version = VERSION;
    uint64_t size = w->size;
    memcpy(w->bytes, magic, sizeof magic);
    memcpy(w->bytes + VERSION_AT, &version, sizeof version);
    memcpy(w->bytes + COUNT_AT, &operator_count, sizeof operator_count);
    memcpy(w->bytes + SIZE_AT, &size, sizeof size);
    uint64_t sum = checksum(w->bytes, w->size);
    memcpy(w->bytes + CHECKSUM_AT, &sum, sizeof sum);
}

/* Makes the file's bytes. The caller frees w->bytes in either case. */
static mdot_status encode(const mdot_job *job, rt_writer *w, mdot_error *err)
{
    static const unsigned char header[HEADER_BYTES];
    numbering types = {0}, modules = {0};
    parts p = {0};
    w->failed =
        !number_all(job, has_type, compare_types, &types) || !number_all(job, has_module, compare_modules, &modules);
    if (!w->failed) {
        fill_sections(job, &types, &modules, &p);
        rt_put_bytes(w, header, sizeof header);
        put_table_and_sections(w, &p);
    }
    for (int i = 0; i < SECTION_COUNT; i++) free(p.section[i].bytes);
    free(p.record.bytes);
    free_numbering(&types);
    free_numbering(&modules);
    if (w->failed) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    seal(w, (uint32_t)job->info.operator_count);
    return MDOT_OK;
}

mdot_status mdot_job_save(const mdot_job *job, const char *path, mdot_error *err)
{
    if (job == NULL) return BS_INVALID(err, "mdot_job_save: job is NULL");
    rt_writer w = {0};
    mdot_status status = rt_handle_check(job, RT_JOB, __func__, err);
    if (status == MDOT_OK) status = encode(job, &w, err);
    if (status == MDOT_OK && w.size > RT_JOB_MAX_FILE_BYTES)
        status = mdot_fail(err, MDOT_OUT_OF_RANGE,
                           "%s: the job takes %zu bytes, more than the size limit of a job file", path, w.size);
    if (status == MDOT_OK) status = bs_write_file(path, w.bytes, w.size, err);
    free(w.bytes);
    return status;
}

static void get_job(rt_reader *r, rt_decoded *d)
{
    d->description.batch = (int64_t)rt_get_below(r, (uint64_t)INT64_MAX + 1);
    uint64_t optimizer = rt_get_below(r, MDOT_OPTIMIZER_ADAMW + 2);
    d->description.has_optimizer = optimizer > 0;
    d->description.optimizer = optimizer > 0 ? (mdot_optimizer)(optimizer - 1) : MDOT_OPTIMIZER_SGD;
    /* Unknown notes are dropped. */
    if (rt_bytes_left(r) > 0) d->description.notes = (uint32_t)rt_get(r) & MDOT_JOB_NOTES_ALL;
}

/* Returns false if memory runs out, like the readers of the other sections. */
static bool get_types(rt_reader *r, rt_decoded *d)
{
    size_t count = rt_get_below(r, (uint64_t)rt_bytes_left(r) + 1);
    d->types = calloc(count + 1, sizeof *d->types);
    if (d->types == NULL) return false;
    while (d->type_count < count && !r->failed) {
        rt_reader record = rt_get_part(r);
        char *name = rt_get_text(&record);
        r->failed = r->failed || record.failed;
        if (name == NULL) return r->failed;
        rt_job_type *type = &d->types[d->type_count++];
        *type = (rt_job_type){.name = name, .known = rt_get_below(&record, 2) != 0};
        for (int i = 0; i < TRAIT_COUNT; i++)
            *trait_at(&type->traits, i) = (uint32_t)rt_get_below(&record, (uint64_t)UINT32_MAX + 1);
        r->failed = r->failed || record.failed;
    }
    return true;
}

static bool get_operators(rt_reader *r, rt_decoded *d, size_t operator_count)
{
    size_t input_count = 0;
    if (operator_count > rt_bytes_left(r) / RT_MIN_OPERATOR_BYTES) {
        r->failed = true;
        return true;
    }
    if (!rt_make_operators(d, operator_count, rt_bytes_left(r))) return false;
    for (size_t i = 0; i < operator_count && !r->failed; i++) {
        rt_reader record = rt_get_part(r);
        mdot_job_operator *op = &d->operators[i];
        uint64_t type = rt_get_below(&record, d->type_count);
        if (!record.failed) {
            op->type = d->types[type].name;
            op->known = d->types[type].known;
            op->traits = d->types[type].traits;
        }
        rt_get_numbers(&record, d, i, &input_count);
        op->block = (uint32_t)rt_get_below(&record, (uint64_t)operator_count + 1);
        if (rt_bytes_left(&record) > 0) op->frozen_parameters = rt_get_count(&record);
        if (rt_bytes_left(&record) > 0) op->flags = (uint32_t)rt_get_below(&record, (uint64_t)UINT32_MAX + 1);
        if (rt_bytes_left(&record) > 0) /* Unknown settings are skipped. */
            op->batch_settings = rt_get(&record) & ((UINT64_C(1) << MDOT_SETTING_COUNT) - 1);
        r->failed = r->failed || record.failed;
    }
    return true;
}

static bool get_modules(rt_reader *r, rt_decoded *d, size_t operator_count)
{
    size_t count = rt_get_below(r, (uint64_t)rt_bytes_left(r) + 1);
    d->modules = calloc(count + 1, sizeof *d->modules);
    if (d->modules == NULL) return false;
    while (d->module_count < count && !r->failed) {
        char *name = rt_get_text(r);
        if (name == NULL) return r->failed;
        d->modules[d->module_count++] = name;
    }
    for (size_t i = 0; i < operator_count && !r->failed; i++) {
        uint64_t module = rt_get_below(r, (uint64_t)d->module_count + 1);
        if (module > 0) d->operators[i].module = d->modules[module - 1];
    }
    return true;
}

/* Each section requires the sections before it. Returns false if memory runs out. */
static bool get_section(uint64_t tag, rt_reader *section, size_t operator_count, rt_decoded *d)
{
    switch (tag) {
    case SECTION_JOB: get_job(section, d); return true;
    case SECTION_TYPES: return get_types(section, d);
    case SECTION_OPERATORS: return get_operators(section, d, operator_count);
    case SECTION_MODULES: return get_modules(section, d, operator_count);
    case SECTION_PROGRAM:
        d->program = calloc(1, sizeof *d->program);
        if (d->program != NULL) rt_get_program(section, d->program);
        return d->program != NULL;
    case SECTION_LENGTHS: d->lengths = rt_get_lengths(section); return d->lengths != NULL;
    default: return true; /* unknown and optional */
    }
}

/* Walks over the sections of a file. Unknown sections come after all known ones. */
typedef struct section_list {
    rt_reader table, content; /* remaining entries and bytes */
    uint64_t tag;             /* of the current section */
} section_list;

static uint64_t get_fixed(rt_reader *r, size_t size_bytes)
{
    uint64_t number = 0;
    memcpy(&number, r->at, size_bytes);
    r->at += size_bytes;
    return number;
}

/* Finds the next section. INCOMPATIBLE for an unknown one that is required. A malformed table or file makes the
 * section fail. */
static mdot_status next_section(section_list *list, rt_reader *out_section, mdot_error *err)
{
    uint64_t tag = get_fixed(&list->table, ENTRY_FLAGS_AT);
    uint64_t flags = get_fixed(&list->table, ENTRY_SIZE_AT - ENTRY_FLAGS_AT);
    uint64_t size = get_fixed(&list->table, ENTRY_BYTES - ENTRY_SIZE_AT);
    if (tag > SECTION_COUNT && flags != 0)
        return mdot_fail(
            err, MDOT_INCOMPATIBLE,
            "the job file has a section of kind %llu, which mdot %s does not know: use the version of mdot "
            "that wrote the file, or read the ONNX file again with `mdot extract`",
            (unsigned long long)tag, MDOT_VERSION_STRING);
    bool in_order = tag > list->tag && (tag == list->tag + 1 || list->tag >= SECTION_OPERATORS);
    *out_section = rt_get_bytes(&list->content, size);
    out_section->failed = out_section->failed || !in_order;
    list->tag = tag;
    return MDOT_OK;
}

static mdot_status decode(section_list *list, size_t operator_count, rt_decoded *d, mdot_error *err)
{
    bool failed = false;
    while (rt_bytes_left(&list->table) > 0 && !failed) {
        rt_reader section;
        BS_TRY(next_section(list, &section, err));
        if (!section.failed && !get_section(list->tag, &section, operator_count, d))
            return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
        failed = section.failed;
    }
    if (failed || list->tag < SECTION_OPERATORS || rt_bytes_left(&list->content) > 0)
        return mdot_fail(err, MDOT_MALFORMED, "the job file is malformed: its content breaks the rules of the format");
    d->description.operator_count = operator_count;
    return MDOT_OK;
}

static mdot_status check_version(uint32_t version, mdot_error *err)
{
    if (version == VERSION) return MDOT_OK;
    return mdot_fail(err, MDOT_INCOMPATIBLE,
                     "the job file has format version %u, and mdot %s reads version %d: use the mdot that wrote it, or "
                     "read the ONNX file again with `mdot extract`",
                     (unsigned)version, MDOT_VERSION_STRING, VERSION);
}

static mdot_status refuse_header(const unsigned char *bytes, size_t size_bytes, mdot_error *err)
{
    bool begins_well = size_bytes >= sizeof magic - 1 && memcmp(bytes, magic, sizeof magic - 1) == 0;
    bs_foreign foreign = {""};
    if (!begins_well) foreign = bs_recognise_foreign(bytes, size_bytes, BS_EXPECT_JOB);
    if (foreign.text[0] != '\0') return mdot_fail(err, MDOT_MALFORMED, "%s", foreign.text);
    return mdot_fail(err, MDOT_MALFORMED,
                     "the file lacks the header of a job file; the name of an ONNX file must end in .onnx");
}

static mdot_status check_header(const unsigned char *bytes, size_t size_bytes, size_t *out_operators, mdot_error *err)
{
    uint32_t version, operators;
    uint64_t size, sum;
    if (size_bytes < CHECKSUM_END || memcmp(bytes, magic, sizeof magic) != 0)
        return refuse_header(bytes, size_bytes, err);
    memcpy(&version, bytes + VERSION_AT, sizeof version);
    memcpy(&operators, bytes + COUNT_AT, sizeof operators);
    memcpy(&size, bytes + SIZE_AT, sizeof size);
    memcpy(&sum, bytes + CHECKSUM_AT, sizeof sum);
    BS_TRY(check_version(version, err));
    if (size_bytes > RT_JOB_MAX_FILE_BYTES)
        return mdot_fail(err, MDOT_MALFORMED, "the job file has %zu bytes; the limit is %llu", size_bytes,
                         (unsigned long long)RT_JOB_MAX_FILE_BYTES);
    if (size != size_bytes)
        return mdot_fail(err, MDOT_MALFORMED,
                         "the job file has %zu bytes instead of %llu: it is truncated or followed by other data",
                         size_bytes, (unsigned long long)size);
    if (sum != checksum(bytes, size_bytes))
        return mdot_fail(err, MDOT_CORRUPT, "the job file's checksum differs: the file is damaged");
    if (operators > RT_JOB_MAX_OPERATORS)
        return mdot_fail(err, MDOT_MALFORMED, "the job file has %u operators; the limit is %d", (unsigned)operators,
                         RT_JOB_MAX_OPERATORS);
    if (operators > (size_bytes - CHECKSUM_END) / RT_MIN_OPERATOR_BYTES)
        return mdot_fail(err, MDOT_MALFORMED, "the job file's operators extend beyond its end");
    *out_operators = operators;
    return MDOT_OK;
}

/* Finds the table of sections and the bytes behind it. */
static mdot_status open_sections(const unsigned char *bytes, size_t size_bytes, section_list *out_list, mdot_error *err)
{
    const unsigned char *end = bytes + size_bytes;
    uint32_t count = 0;
    if (size_bytes >= HEADER_BYTES) memcpy(&count, bytes + SECTIONS_AT, sizeof count);
    if (size_bytes < HEADER_BYTES || count > (size_bytes - HEADER_BYTES) / ENTRY_BYTES)
        return mdot_fail(err, MDOT_MALFORMED, "the job file's table of sections extends beyond its end");
    const unsigned char *table = bytes + HEADER_BYTES, *content = table + (size_t)count * ENTRY_BYTES;
    *out_list = (section_list){.table = {.at = table, .end = content}, .content = {.at = content, .end = end}};
    return MDOT_OK;
}

static void free_decoded(rt_decoded *d)
{
    for (size_t t = 0; t < d->type_count; t++) free(d->types[t].name);
    for (size_t m = 0; m < d->module_count; m++) free(d->modules[m]);
    free(d->types);
    free(d->modules);
    free(d->operators);
    free(d->inputs);
    free(d->program);
    free(d->lengths);
}

mdot_status rt_job_parse(const rt_components *components, const void *bytes, size_t size_bytes, mdot_job **out_job,
                         mdot_error *err)
{
    if (bytes == NULL || out_job == NULL) return BS_INVALID(err, "mdot_job_parse: bytes or out_job is NULL");
    size_t operator_count = 0;
    BS_TRY(check_header(bytes, size_bytes, &operator_count, err));
    section_list list;
    rt_decoded d = {0};
    mdot_status status = open_sections(bytes, size_bytes, &list, err);
    if (status == MDOT_OK) status = decode(&list, operator_count, &d, err);
    if (status == MDOT_OK) {
        status = rt_job_make(components, &d.description, d.operators, d.program, d.lengths, out_job, err);
        d.operators = NULL;
    }
    /* When a file is read, content that violates a rule makes the file malformed. */
    if (status == MDOT_INVALID_ARGUMENT) status = MDOT_MALFORMED;
    if (status != MDOT_OK && err != NULL) err->status = status;
    free_decoded(&d);
    return status;
}

mdot_status rt_job_load(const rt_components *components, const char *path, mdot_job **out_job, mdot_error *err)
{
    if (out_job == NULL) return BS_INVALID(err, "mdot_job_load: out_job is NULL");
    unsigned char *bytes = NULL;
    size_t size_bytes = 0;
    BS_TRY(bs_read_file_within(path, RT_JOB_MAX_FILE_BYTES, &bytes, &size_bytes, err));
    mdot_error reason = {0};
    mdot_status status = rt_job_parse(components, bytes, size_bytes, out_job, &reason);
    free(bytes);
    return status == MDOT_OK ? MDOT_OK : mdot_fail(err, status, "%s: %s", path, reason.message);
}
