/* job_file.c — `.job` files: a job extracted once from its ONNX file, to be evaluated where that file is absent.
 *
 *   magic "MDOTJOB\0" | version u32 | operators u32 | file bytes u64 | checksum u64 | content
 *
 * All numbers are little-endian. The checksum (mdot_abi.h) covers the file except the checksum itself. The content
 * consists of varints (job_bytes.h) in sections. A section starts with its tag and its size in bytes. Tags ascend.
 *
 *   1 JOB        batch, optimizer + 1 (0: none), notes (MDOT_JOB_…)
 *   2 TYPES      count of types; a type: size, length and bytes of its name, known, and mdot_operator_traits in its order
 *   3 OPERATORS  an operator: size, index of its type, parameters, a bit mask of the settings other than 0 and their
 *                values, a bit mask of the loads other than 0 and their values, the count of its inputs and their
 *                distances back in operators; its block; its frozen parameters
 *   4 MODULES    only if names were kept: count of modules, each as length and bytes; for each operator the index of its
 *                module + 1, or 0
 *
 * Positions and equal blocks are derived and therefore omitted. Later additions are appended to a record, or as a
 * section, setting or load. Readers skip unknown ones and take absent ones to be 0. Any other change needs a new
 * version. Version 1 is read by job_file_1.c.
 */
#include "runtime/job/job_file.h"
#include "base/file.h"
#include "mdot/mdot_abi.h"
#include "runtime/core/core.h"
#include "runtime/job/job_bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char magic[8] = "MDOTJOB";
enum { VERSION = 2, VERSION_AT = 8, COUNT_AT = 12, SIZE_AT = 16, CHECKSUM_AT = 24, HEADER_BYTES = 32 };
enum { SECTION_JOB = 1, SECTION_TYPES, SECTION_OPERATORS, SECTION_MODULES };
enum { FACT_COUNT = 7 };

_Static_assert(MDOT_SETTING_COUNT <= 63, "settings of an operator are masked in one varint");

static uint64_t checksum(const unsigned char *bytes, size_t size_bytes)
{
    uint64_t head = mdot_abi_checksum(bytes, CHECKSUM_AT, 0);
    return mdot_abi_checksum(bytes + HEADER_BYTES, size_bytes - HEADER_BYTES, head);
}

static uint32_t *fact_at(mdot_operator_traits *traits, int i)
{
    uint32_t *const numbers[FACT_COUNT] = {&traits->number,      &traits->autocast,         &traits->saved_written,
                                           &traits->saved_fused, &traits->saved_recomputed, &traits->reserve,
                                           &traits->traits};
    return numbers[i];
}

/* ---- Numbering shared types and modules
 * ---------------------------------------------------------------------------- */

/* The type or module of each operator as a number. Equal ones share a number. */
typedef struct numbering {
    const mdot_job_operator **first; /* an operator of each number */
    uint32_t *of;                    /* number of each operator */
    size_t count;
} numbering;

/* A job holds each text once, in alphabetical order (string_pool.c), so that addresses compare as the texts do. Long texts
 * are thus read only once. */
static int compare_texts(const char *x, const char *y)
{
    return (x > y) - (x < y);
}

static int compare_types(const void *a, const void *b)
{
    const mdot_job_operator *x = *(const mdot_job_operator *const *)a, *y = *(const mdot_job_operator *const *)b;
    int order = compare_texts(x->type, y->type);
    if (order == 0) order = (int)x->known - (int)y->known;
    return order != 0 ? order : memcmp(&x->traits, &y->traits, sizeof x->traits);
}

static int compare_modules(const void *a, const void *b)
{
    const mdot_job_operator *x = *(const mdot_job_operator *const *)a, *y = *(const mdot_job_operator *const *)b;
    return compare_texts(x->module, y->module);
}

static bool has_module(const mdot_job_operator *op)
{
    return op->module != NULL;
}

static bool has_type(const mdot_job_operator *op)
{
    return op->type != NULL;
}

/* Returns false if memory runs out. The caller frees both arrays in either case. */
static bool number_all(const mdot_job *job, bool (*has)(const mdot_job_operator *),
                       int (*compare)(const void *, const void *), numbering *n)
{
    size_t count = job->info.operator_count, sorted = 0, number = 0;
    n->first = calloc(count, sizeof(*n->first));
    n->of = calloc(count, sizeof *n->of);
    if (n->first == NULL || n->of == NULL) return false;
    for (size_t i = 0; i < count; i++) {
        if (has(&job->operators[i])) n->first[sorted++] = &job->operators[i];
    }
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

/* ---- Writing ---------------------------------------------------------------------------------------------------- */

/* Buffers for a section and one of its records. */
typedef struct parts {
    rt_writer section, record;
} parts;

static void put_section(rt_writer *w, int tag, rt_writer *section)
{
    rt_put(w, (uint64_t)tag);
    rt_put_part(w, section);
}

static void put_types(const numbering *types, parts *p)
{
    rt_put(&p->section, types->count);
    for (size_t t = 0; t < types->count; t++) {
        mdot_operator_traits traits = types->first[t]->traits;
        rt_put_text(&p->record, types->first[t]->type);
        rt_put(&p->record, types->first[t]->known);
        for (int i = 0; i < FACT_COUNT; i++) rt_put(&p->record, *fact_at(&traits, i));
        rt_put_part(&p->section, &p->record);
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
    rt_put(w, (uint64_t)op.frozen_parameters); /* files of the first releases end before this field */
}

static void put_modules(const mdot_job *job, const numbering *modules, rt_writer *w)
{
    rt_put(w, modules->count);
    for (size_t m = 0; m < modules->count; m++) rt_put_text(w, modules->first[m]->module);
    for (size_t i = 0; i < job->info.operator_count; i++)
        rt_put(w, has_module(&job->operators[i]) ? (uint64_t)modules->of[i] + 1 : 0);
}

static void put_content(rt_writer *w, const mdot_job *job, const numbering *types, const numbering *modules)
{
    parts p = {0};
    rt_put(&p.section, (uint64_t)job->info.batch);
    rt_put(&p.section, job->info.has_optimizer ? (uint64_t)job->info.optimizer + 1 : 0);
    rt_put(&p.section, job->info.notes);
    put_section(w, SECTION_JOB, &p.section);
    put_types(types, &p);
    put_section(w, SECTION_TYPES, &p.section);
    for (size_t i = 0; i < job->info.operator_count; i++) {
        put_operator(&p.record, &job->operators[i], i, types->of[i]);
        rt_put_part(&p.section, &p.record);
    }
    put_section(w, SECTION_OPERATORS, &p.section);
    if (modules->count > 0) {
        put_modules(job, modules, &p.section);
        put_section(w, SECTION_MODULES, &p.section);
    }
    free(p.section.bytes);
    free(p.record.bytes);
}

/* Makes the file's bytes. The caller frees w->bytes in either case. */
static mdot_status encode(const mdot_job *job, rt_writer *w, mdot_error *err)
{
    uint32_t version = VERSION, operators = (uint32_t)job->info.operator_count;
    numbering types = {0}, modules = {0};
    w->failed =
        !number_all(job, has_type, compare_types, &types) || !number_all(job, has_module, compare_modules, &modules);
    if (!w->failed) {
        unsigned char header[HEADER_BYTES] = {0};
        rt_put_bytes(w, header, sizeof header);
        put_content(w, job, &types, &modules);
    }
    free_numbering(&types);
    free_numbering(&modules);
    if (w->failed) return mdot_fail(err, MDOT_OUT_OF_MEMORY, "memory ran out for a job file");
    uint64_t size = w->size;
    memcpy(w->bytes, magic, sizeof magic);
    memcpy(w->bytes + VERSION_AT, &version, sizeof version);
    memcpy(w->bytes + COUNT_AT, &operators, sizeof operators);
    memcpy(w->bytes + SIZE_AT, &size, sizeof size);
    uint64_t sum = checksum(w->bytes, w->size);
    memcpy(w->bytes + CHECKSUM_AT, &sum, sizeof sum);
    return MDOT_OK;
}

mdot_status mdot_job_save(const mdot_job *job, const char *path, mdot_error *err)
{
    if (job == NULL) return mdot_fail(err, MDOT_INVALID_ARGUMENT, "mdot_job_save needs a job");
    rt_writer w = {0};
    mdot_status status = rt_handle_check(job, RT_JOB, __func__, err);
    if (status == MDOT_OK) status = encode(job, &w, err);
    if (status == MDOT_OK && w.size > RT_JOB_MAX_FILE_BYTES)
        status = mdot_fail(err, MDOT_OUT_OF_RANGE, "%s: the job takes %zu bytes, more than a job file may have", path,
                           w.size);
    if (status == MDOT_OK) status = bs_write_file(path, w.bytes, w.size, err);
    free(w.bytes);
    return status;
}

/* ---- Reading ---------------------------------------------------------------------------------------------------- */

static void get_job(rt_reader *r, rt_decoded *d)
{
    d->description.batch = (int64_t)rt_get_below(r, (uint64_t)INT64_MAX);
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
        for (int i = 0; i < FACT_COUNT; i++)
            *fact_at(&type->traits, i) = (uint32_t)rt_get_below(&record, (uint64_t)UINT32_MAX + 1);
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
    if (!rt_make_tensors(d, operator_count, rt_bytes_left(r))) return false;
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

/* Each section requires the sections before it. */
static bool get_content(rt_reader *r, size_t operator_count, rt_decoded *d)
{
    uint64_t last = 0;
    while (r->at < r->end && !r->failed) {
        uint64_t tag = rt_get(r);
        rt_reader section = rt_get_part(r);
        bool in_order = tag > last && (tag == last + 1 || last >= SECTION_OPERATORS);
        last = tag;
        bool allocated = true;
        if (!in_order) section.failed = true;
        if (in_order && tag == SECTION_JOB) get_job(&section, d);
        if (in_order && tag == SECTION_TYPES) allocated = get_types(&section, d);
        if (in_order && tag == SECTION_OPERATORS) allocated = get_operators(&section, d, operator_count);
        if (in_order && tag == SECTION_MODULES) allocated = get_modules(&section, d, operator_count);
        if (!allocated) return false;
        r->failed = r->failed || section.failed;
    }
    if (last < SECTION_OPERATORS) r->failed = true;
    return true;
}

static mdot_status check_header(const unsigned char *bytes, size_t size_bytes, uint32_t *out_version,
                                size_t *out_operators, mdot_error *err)
{
    uint32_t version, operators;
    uint64_t size, sum;
    if (size_bytes < HEADER_BYTES || memcmp(bytes, magic, sizeof magic) != 0)
        return mdot_fail(err, MDOT_MALFORMED, "this is no job file");
    memcpy(&version, bytes + VERSION_AT, sizeof version);
    memcpy(&operators, bytes + COUNT_AT, sizeof operators);
    memcpy(&size, bytes + SIZE_AT, sizeof size);
    memcpy(&sum, bytes + CHECKSUM_AT, sizeof sum);
    if (version < 1 || version > VERSION)
        return mdot_fail(err, MDOT_INCOMPATIBLE,
                         "the job file is of version %u of its format; this mdot reads those up to %d",
                         (unsigned)version, VERSION);
    if (size_bytes > RT_JOB_MAX_FILE_BYTES)
        return mdot_fail(err, MDOT_MALFORMED, "the job file has %zu bytes, more than %llu", size_bytes,
                         (unsigned long long)RT_JOB_MAX_FILE_BYTES);
    if (size != size_bytes)
        return mdot_fail(err, MDOT_MALFORMED, "the job file has %zu bytes instead of %llu: it is cut or overlong",
                         size_bytes, (unsigned long long)size);
    if (sum != checksum(bytes, size_bytes))
        return mdot_fail(err, MDOT_CORRUPT, "the job file's checksum does not match: it is damaged");
    if (operators > RT_JOB_MAX_OPERATORS)
        return mdot_fail(err, MDOT_MALFORMED, "the job file has %u operators, more than %d", (unsigned)operators,
                         RT_JOB_MAX_OPERATORS);
    if (operators > (size_bytes - HEADER_BYTES) / RT_MIN_OPERATOR_BYTES)
        return mdot_fail(err, MDOT_MALFORMED, "the job file's operators do not fit into it");
    *out_version = version;
    *out_operators = operators;
    return MDOT_OK;
}

static mdot_status decode(rt_reader *r, uint32_t version, size_t operator_count, rt_decoded *d, mdot_error *err)
{
    bool allocated = version == 1 ? rt_get_content_1(r, operator_count, d) : get_content(r, operator_count, d);
    if (!allocated) return mdot_fail(err, MDOT_OUT_OF_MEMORY, "memory ran out for a job file");
    if (r->failed) return mdot_fail(err, MDOT_MALFORMED, "the job file's content is broken");
    d->description.operator_count = operator_count;
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
}

mdot_status rt_job_parse(const rt_components *components, const void *bytes, size_t size_bytes, mdot_job **out_job,
                         mdot_error *err)
{
    if (bytes == NULL || out_job == NULL)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "a job file needs bytes and a place for the job");
    uint32_t version = 0;
    size_t operator_count = 0;
    mdot_status status = check_header(bytes, size_bytes, &version, &operator_count, err);
    if (status != MDOT_OK) return status;
    const unsigned char *start = bytes;
    rt_reader r = {.at = start + HEADER_BYTES, .end = start + size_bytes};
    rt_decoded d = {0};
    status = decode(&r, version, operator_count, &d, err);
    if (status == MDOT_OK) {
        status = rt_job_make(components, &d.description, d.operators, out_job, err);
        d.operators = NULL;
    }
    /* For the reader of a file, content that violates a rule is a malformed file. */
    if (status == MDOT_INVALID_ARGUMENT) status = MDOT_MALFORMED;
    if (status != MDOT_OK && err != NULL) err->status = status;
    free_decoded(&d);
    return status;
}

mdot_status rt_job_load(const rt_components *components, const char *path, mdot_job **out_job, mdot_error *err)
{
    if (out_job == NULL) return mdot_fail(err, MDOT_INVALID_ARGUMENT, "mdot_job_load needs a place for the job");
    unsigned char *bytes = NULL;
    size_t size_bytes = 0;
    mdot_status status = bs_read_file_within(path, RT_JOB_MAX_FILE_BYTES, &bytes, &size_bytes, err);
    if (status != MDOT_OK) return status;
    mdot_error reason = {0};
    status = rt_job_parse(components, bytes, size_bytes, out_job, &reason);
    free(bytes);
    return status == MDOT_OK ? MDOT_OK : mdot_fail(err, status, "%s: %s", path, reason.message);
}
