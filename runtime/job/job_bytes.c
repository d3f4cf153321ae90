/* job_bytes.c — the number encoding of `.job` files: varints, seven bits per byte, lowest first, as in Protocol
 * Buffers, in their shortest form. Private to runtime/job. */
#include "runtime/job/job_file.h"

#include "base/text.h"

#include <stdlib.h>

void rt_put_bytes(rt_writer *w, const void *bytes, size_t count)
{
    unsigned char *grown = bs_grow_bytes(w->bytes, w->size, count, &w->capacity);
    w->failed = w->failed || grown == NULL;
    if (grown == NULL) return;
    w->bytes = grown;
    if (count > 0) memcpy(w->bytes + w->size, bytes, count);
    w->size += count;
}

void rt_put(rt_writer *w, uint64_t number)
{
    unsigned char bytes[10];
    size_t count = 0;
    for (; number >= 0x80; number >>= 7) bytes[count++] = (unsigned char)(number | 0x80);
    bytes[count++] = (unsigned char)number;
    rt_put_bytes(w, bytes, count);
}

void rt_put_signed(rt_writer *w, int64_t number) { rt_put(w, (uint64_t)number << 1 ^ (number < 0 ? UINT64_MAX : 0)); }

void rt_put_text(rt_writer *w, const char *text)
{
    size_t length = strlen(text);
    rt_put(w, length);
    rt_put_bytes(w, text, length);
}

void rt_put_part(rt_writer *w, rt_writer *part)
{
    rt_put(w, part->size);
    rt_put_bytes(w, part->bytes, part->size);
    w->failed = w->failed || part->failed;
    part->size = 0;
}

static uint64_t fail(rt_reader *r)
{
    r->at = r->end;
    r->failed = true;
    return 0;
}

uint64_t rt_get(rt_reader *r)
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
    return fail(r);
}

uint64_t rt_get_below(rt_reader *r, uint64_t bound)
{
    uint64_t number = rt_get(r);
    return number < bound ? number : fail(r);
}

double rt_get_count(rt_reader *r) { return (double)rt_get_below(r, (uint64_t)RT_JOB_MAX_COUNT + 1); }

int64_t rt_get_signed(rt_reader *r)
{
    uint64_t number = rt_get(r);
    return (int64_t)(number >> 1 ^ (number & 1 ? UINT64_MAX : 0));
}

char *rt_get_text(rt_reader *r)
{
    size_t length = rt_get_below(r, (uint64_t)rt_bytes_left(r) + 1);
    if (rt_bytes_left(r) < length || memchr(r->at, '\0', length) != NULL) fail(r);
    if (r->failed) return NULL;
    char *text = strndup((const char *)r->at, length);
    r->at += length;
    return text;
}

rt_reader rt_get_part(rt_reader *r) { return rt_get_bytes(r, rt_get(r)); }

rt_reader rt_get_bytes(rt_reader *r, uint64_t size)
{
    if (size > rt_bytes_left(r)) fail(r);
    if (r->failed) return (rt_reader){.at = r->end, .end = r->end, .failed = true};
    rt_reader part = {.at = r->at, .end = r->at + size};
    r->at += size;
    return part;
}

bool rt_make_operators(rt_decoded *d, size_t operator_count, size_t content_bytes)
{
    d->description.struct_size = sizeof d->description;
    d->operators = calloc(operator_count + 1, sizeof *d->operators);
    d->inputs = calloc(content_bytes + 1, sizeof *d->inputs);
    return d->operators != NULL && d->inputs != NULL;
}

enum { MASK_BITS = 64 }; /* settings and loads */

void rt_get_numbers(rt_reader *r, rt_decoded *d, size_t index, size_t *input_count)
{
    mdot_job_operator *op = &d->operators[index];
    op->struct_size = sizeof *op;
    op->parameters = rt_get_count(r);
    uint64_t settings = rt_get(r);
    for (int s = 0; s < MASK_BITS && settings >> s != 0; s++) {
        int64_t value = settings >> s & 1 ? rt_get_signed(r) : 0;
        if (s < MDOT_SETTING_COUNT) op->setting[s] = value;
    }
    uint64_t loads = rt_get(r);
    for (int k = 0; k < MASK_BITS && loads >> k != 0; k++) {
        double value = loads >> k & 1 ? rt_get_count(r) : 0;
        if (k < RT_LOAD_COUNT) *rt_load_at(op, k) = value;
    }
    op->input_count = rt_get_below(r, (uint64_t)index + 1);
    op->inputs = d->inputs + *input_count;
    if (rt_bytes_left(r) < op->input_count) fail(r); /* each input takes at least one byte */
    for (size_t i = 0; i < op->input_count && !r->failed; i++)
        d->inputs[(*input_count)++] = (uint32_t)(index - rt_get_below(r, (uint64_t)index + 1));
    if (r->failed) op->input_count = 0;
}
