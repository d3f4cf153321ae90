/* job_file.c — `.job` files: a job tokenised once, to be priced where its ONNX file is not.
 *
 *   magic "MDOTJOB\0" | version u32 | operators u32 | file bytes u64 | checksum u64 | content
 *
 * All little-endian. The checksum (mdot_abi.h) covers the file without itself. The content is a row of varints (seven
 * bits a byte, lowest first, as in Protocol Buffers) in their shortest form:
 *
 *   batch, optimizer + 1 (0: none), count of types, each type as length and bytes;
 *   an operator: its type's number * 2 + known, parameters, and three lists: a bit mask of the settings that are not 0
 *   with their values (zigzag: the sign in the lowest bit), one of the loads that are not 0, and the operators it
 * reads: their count, then how far before it each stands.
 *
 * Positions follow from the dependencies and are not stored. What a version cannot say is a new version.
 */
#include "base/file.h"
#include "mdot/mdot_abi.h"
#include "runtime/job/job_model.h"

#include <stdlib.h>
#include <string.h>

static const char magic[8] = "MDOTJOB";
enum { VERSION = 1, VERSION_AT = 8, COUNT_AT = 12, SIZE_AT = 16, CHECKSUM_AT = 24, HEADER_BYTES = 32 };
/* Of an operator in the file: type, parameters, two masks and a count at least. */
enum { MIN_OPERATOR_BYTES = 5, MAX_TYPE_BYTES = 4096 };
enum { LOADS_PER_PHASE = 6, LOAD_COUNT = MDOT_PHASE_COUNT * LOADS_PER_PHASE };

_Static_assert(MDOT_SETTING_COUNT <= 63, "settings of an operator are masked in one varint");

static uint64_t checksum(const unsigned char *bytes, size_t size_bytes)
{
    uint64_t head = mdot_abi_checksum(bytes, CHECKSUM_AT, 0);
    return mdot_abi_checksum(bytes + HEADER_BYTES, size_bytes - HEADER_BYTES, head);
}

/* Load k of an operator: the numbers of a phase per sample, then per step. */
static double *load_at(mdot_job_operator *op, int k)
{
    int phase = k / LOADS_PER_PHASE, part = k % LOADS_PER_PHASE;
    mdot_load *load = part < 3 ? &op->per_sample[phase] : &op->per_step[phase];
    double *numbers[] = {&load->flops, &load->bytes_read, &load->bytes_written};
    return numbers[part % 3];
}

/* ---- Writing ---------------------------------------------------------------------------------------------------- */

typedef struct writer {
    unsigned char *bytes;
    size_t size, capacity;
    bool failed;
} writer;

static void put_bytes(writer *w, const void *bytes, size_t count)
{
    if (w->capacity - w->size < count) {
        size_t capacity = 2 * w->capacity + count + 256;
        unsigned char *grown = realloc(w->bytes, capacity);
        w->failed = w->failed || grown == NULL;
        if (grown == NULL) return;
        w->bytes = grown;
        w->capacity = capacity;
    }
    memcpy(w->bytes + w->size, bytes, count);
    w->size += count;
}

static void put(writer *w, uint64_t number)
{
    unsigned char bytes[10];
    size_t count = 0;
    for (; number >= 0x80; number >>= 7) bytes[count++] = (unsigned char)(number | 0x80);
    bytes[count++] = (unsigned char)number;
    put_bytes(w, bytes, count);
}

static uint64_t zigzag(int64_t number)
{
    return (uint64_t)number << 1 ^ (number < 0 ? UINT64_MAX : 0);
}

static void put_operator(writer *w, const mdot_job_operator *source, size_t index, size_t type)
{
    mdot_job_operator op = *source;
    put(w, 2 * (uint64_t)type + op.known);
    put(w, (uint64_t)op.parameters);
    uint64_t settings = 0, loads = 0;
    for (int s = 0; s < MDOT_SETTING_COUNT; s++) settings |= (uint64_t)(op.setting[s] != 0) << s;
    put(w, settings);
    for (int s = 0; s < MDOT_SETTING_COUNT; s++)
        if (op.setting[s] != 0) put(w, zigzag(op.setting[s]));
    for (int k = 0; k < LOAD_COUNT; k++) loads |= (uint64_t)(*load_at(&op, k) > 0) << k;
    put(w, loads);
    for (int k = 0; k < LOAD_COUNT; k++)
        if (*load_at(&op, k) > 0) put(w, (uint64_t)*load_at(&op, k));
    put(w, op.input_count);
    for (size_t i = 0; i < op.input_count; i++) put(w, index - op.inputs[i]);
}

/* Each operator's type as a number, in order of first appearance. Types are few: a search over them is short. */
static size_t number_types(const mdot_job *job, const char **types, uint32_t *type_of)
{
    size_t count = 0;
    for (size_t i = 0; i < job->info.operator_count; i++) {
        size_t t = 0;
        while (t < count && strcmp(types[t], job->operators[i].type) != 0) t++;
        if (t == count) types[count++] = job->operators[i].type;
        type_of[i] = (uint32_t)t;
    }
    return count;
}

static void put_content(writer *w, const mdot_job *job, const char **types, uint32_t *type_of)
{
    size_t type_count = number_types(job, types, type_of);
    put(w, (uint64_t)job->info.batch);
    put(w, job->info.has_optimizer ? (uint64_t)job->info.optimizer + 1 : 0);
    put(w, type_count);
    for (size_t t = 0; t < type_count; t++) {
        put(w, strlen(types[t]));
        put_bytes(w, types[t], strlen(types[t]));
    }
    for (size_t i = 0; i < job->info.operator_count; i++) put_operator(w, &job->operators[i], i, type_of[i]);
}

/* The file's bytes; the caller frees w->bytes either way. */
static mdot_status encode(const mdot_job *job, writer *w, mdot_error *err)
{
    size_t count = job->info.operator_count;
    const char **types = calloc(count, sizeof *types);
    uint32_t *type_of = calloc(count, sizeof *type_of), version = VERSION, operators = (uint32_t)count;
    w->failed = types == NULL || type_of == NULL;
    if (!w->failed) {
        unsigned char header[HEADER_BYTES] = {0};
        put_bytes(w, header, sizeof header);
        put_content(w, job, types, type_of);
    }
    free(types);
    free(type_of);
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
    writer w = {0};
    mdot_status status = encode(job, &w, err);
    if (status == MDOT_OK) status = bs_write_file(path, w.bytes, w.size, err);
    free(w.bytes);
    return status;
}

/* ---- Reading ---------------------------------------------------------------------------------------------------- */

/* Reads past the end and overlong numbers make it fail, and give zeros from then on. */
typedef struct reader {
    const unsigned char *at, *end;
    bool failed;
} reader;

static uint64_t get(reader *r)
{
    uint64_t number = 0;
    for (unsigned shift = 0; shift < 64 && r->at < r->end; shift += 7) {
        unsigned char byte = *r->at++;
        if (shift == 63 && byte > 1) break;
        number |= (uint64_t)(byte & 0x7F) << shift;
        if (byte >= 0x80) continue;
        if (byte == 0 && shift > 0) break;
        return number;
    }
    r->at = r->end;
    r->failed = true;
    return 0;
}

/* A number that must be less than `bound`. */
static uint64_t get_below(reader *r, uint64_t bound)
{
    uint64_t number = get(r);
    if (number < bound) return number;
    r->failed = true;
    return 0;
}

static double get_count(reader *r)
{
    return (double)get_below(r, (uint64_t)RT_JOB_MAX_COUNT + 1);
}

static int64_t unzigzag(uint64_t number)
{
    return (int64_t)(number >> 1 ^ (number & 1 ? UINT64_MAX : 0));
}

typedef struct decoded {
    mdot_job_description description;
    mdot_job_operator *operators;
    char **types;
    size_t type_count;
    uint32_t *inputs; /* of all operators, one after the other */
} decoded;

static void get_operator(reader *r, decoded *d, size_t index, size_t *input_count)
{
    mdot_job_operator *op = &d->operators[index];
    uint64_t type = get_below(r, 2 * (uint64_t)d->type_count);
    if (r->failed) return;
    op->struct_size = sizeof *op;
    op->type = d->types[type / 2];
    op->known = type & 1;
    op->parameters = get_count(r);
    uint64_t settings = get_below(r, UINT64_C(1) << MDOT_SETTING_COUNT);
    for (int s = 0; s < MDOT_SETTING_COUNT; s++)
        if (settings >> s & 1) op->setting[s] = unzigzag(get(r));
    uint64_t loads = get_below(r, UINT64_C(1) << LOAD_COUNT);
    for (int k = 0; k < LOAD_COUNT; k++)
        if (loads >> k & 1) *load_at(op, k) = get_count(r);
    op->input_count = get_below(r, (uint64_t)index + 1);
    op->inputs = d->inputs + *input_count;
    if ((uint64_t)(r->end - r->at) < op->input_count) r->failed = true; /* each takes a byte at least */
    for (size_t i = 0; i < op->input_count && !r->failed; i++)
        d->inputs[(*input_count)++] = (uint32_t)(index - get_below(r, (uint64_t)index + 1));
}

static bool get_types(reader *r, decoded *d)
{
    uint64_t count = get_below(r, (uint64_t)(r->end - r->at) + 1);
    d->types = calloc(count + 1, sizeof *d->types);
    if (d->types == NULL) return false;
    for (; d->type_count < count && !r->failed; d->type_count++) {
        size_t length = get_below(r, MAX_TYPE_BYTES + 1);
        if ((size_t)(r->end - r->at) < length || memchr(r->at, '\0', length) != NULL) r->failed = true;
        char *type = r->failed ? NULL : strndup((const char *)r->at, length);
        d->types[d->type_count] = type;
        if (r->failed) return true;
        if (type == NULL) return false;
        r->at += length;
    }
    return true;
}

static mdot_status get_content(reader *r, size_t operator_count, decoded *d, mdot_error *err)
{
    size_t content_bytes = (size_t)(r->end - r->at), input_count = 0;
    if (operator_count > content_bytes / MIN_OPERATOR_BYTES)
        return mdot_fail(err, MDOT_MALFORMED, "the job file's operators do not fit into it");
    d->description.struct_size = sizeof d->description;
    d->operators = calloc(operator_count + 1, sizeof *d->operators);
    d->inputs = calloc(content_bytes + 1, sizeof *d->inputs);
    d->description.batch = (int64_t)get_below(r, (uint64_t)INT64_MAX);
    uint64_t optimizer = get_below(r, MDOT_OPTIMIZER_ADAMW + 2);
    d->description.has_optimizer = optimizer > 0;
    d->description.optimizer = optimizer > 0 ? (mdot_optimizer)(optimizer - 1) : MDOT_OPTIMIZER_SGD;
    if (d->operators == NULL || d->inputs == NULL || !get_types(r, d))
        return mdot_fail(err, MDOT_OUT_OF_MEMORY, "memory ran out for a job file");
    for (size_t i = 0; i < operator_count && !r->failed; i++) get_operator(r, d, i, &input_count);
    if (r->failed || r->at != r->end) return mdot_fail(err, MDOT_MALFORMED, "the job file's content is broken");
    d->description.operators = d->operators;
    d->description.operator_count = operator_count;
    return MDOT_OK;
}

static mdot_status check_header(const unsigned char *bytes, size_t size_bytes, size_t *out_operators, mdot_error *err)
{
    uint32_t version, operators;
    uint64_t size, sum;
    if (size_bytes < HEADER_BYTES || memcmp(bytes, magic, sizeof magic) != 0)
        return mdot_fail(err, MDOT_MALFORMED, "this is no job file");
    memcpy(&version, bytes + VERSION_AT, sizeof version);
    memcpy(&operators, bytes + COUNT_AT, sizeof operators);
    memcpy(&size, bytes + SIZE_AT, sizeof size);
    memcpy(&sum, bytes + CHECKSUM_AT, sizeof sum);
    if (version != VERSION)
        return mdot_fail(err, MDOT_INCOMPATIBLE, "the job file is of version %u of its format; this mdot reads %d",
                         (unsigned)version, VERSION);
    if (size != size_bytes)
        return mdot_fail(err, MDOT_MALFORMED, "the job file has %zu bytes instead of %llu: it is cut or overlong",
                         size_bytes, (unsigned long long)size);
    if (sum != checksum(bytes, size_bytes))
        return mdot_fail(err, MDOT_CORRUPT, "the job file's checksum does not match: it is damaged");
    *out_operators = operators;
    return MDOT_OK;
}

mdot_status mdot_job_parse(const void *bytes, size_t size_bytes, mdot_job **out_job, mdot_error *err)
{
    size_t operator_count = 0;
    mdot_status status = check_header(bytes, size_bytes, &operator_count, err);
    if (status != MDOT_OK) return status;
    const unsigned char *start = bytes;
    reader r = {.at = start + HEADER_BYTES, .end = start + size_bytes};
    decoded d = {0};
    status = get_content(&r, operator_count, &d, err);
    if (status == MDOT_OK) status = mdot_job_create(&d.description, out_job, err);
    /* To who reads a file, a rule that its content breaks is the file's fault. */
    if (status == MDOT_INVALID_ARGUMENT) status = MDOT_MALFORMED;
    if (status != MDOT_OK && err != NULL) err->status = status;
    for (size_t t = 0; t < d.type_count; t++) free(d.types[t]);
    free(d.types);
    free(d.operators);
    free(d.inputs);
    return status;
}

mdot_status mdot_job_load(const char *path, mdot_job **out_job, mdot_error *err)
{
    unsigned char *bytes = NULL;
    size_t size_bytes = 0;
    mdot_status status = bs_read_file(path, &bytes, &size_bytes, err);
    if (status != MDOT_OK) return status;
    mdot_error reason = {0};
    status = mdot_job_parse(bytes, size_bytes, out_job, &reason);
    free(bytes);
    return status == MDOT_OK ? MDOT_OK : mdot_fail(err, status, "%s: %s", path, reason.message);
}
