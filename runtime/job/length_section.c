/* length_section.c — the section of a job's symbolic length in a `.job` file. Private to runtime/job. */
#include "runtime/job/job_file.h"

#include <stdlib.h>

void rt_put_lengths(rt_writer *w, const rt_lengths *lengths)
{
    uint32_t owner = 0;
    rt_put_text(w, lengths->name);
    rt_put(w, (uint64_t)lengths->current);
    for (int k = 0; k < RT_LENGTH_COUNT; k++) rt_put(w, (uint64_t)lengths->length[k]);
    rt_put(w, lengths->count);
    for (size_t i = 0; i < lengths->count; i++) {
        const rt_varying *v = &lengths->varying[i];
        rt_put(w, v->owner - owner);
        rt_put(w, v->slot);
        for (int k = 0; k < RT_LENGTH_COUNT; k++) rt_put_signed(w, (int64_t)v->value[k]);
        owner = v->owner;
    }
}

static int64_t get_length(rt_reader *r)
{
    int64_t length = (int64_t)rt_get_below(r, (uint64_t)RT_MAX_LENGTH + 1);
    r->failed = r->failed || length == 0;
    return length;
}

static void get_header(rt_reader *r, rt_lengths *out)
{
    size_t size = rt_get_below(r, RT_LENGTH_NAME_BYTES);
    rt_reader name = rt_get_bytes(r, size);
    r->failed = r->failed || size == 0 || name.failed || memchr(name.at, '\0', rt_bytes_left(&name)) != NULL;
    if (!r->failed) memcpy(out->name, name.at, size);
    out->current = get_length(r);
    for (int k = 0; k < RT_LENGTH_COUNT; k++) out->length[k] = get_length(r);
    const int64_t *l = out->length;
    r->failed = r->failed || l[0] == l[1] || l[0] == l[2] || l[1] == l[2];
}

/* Numbers that the job lacks are dropped when the job takes the lengths (rt_lengths_copy). */
rt_lengths *rt_get_lengths(rt_reader *r)
{
    enum { MIN_BYTES = 2 + RT_LENGTH_COUNT };
    const int64_t max_value = (int64_t)RT_JOB_MAX_COUNT;
    rt_lengths header = {.count = 0};
    uint64_t owner = 0;
    get_header(r, &header);
    size_t count = rt_get_below(r, (uint64_t)rt_bytes_left(r) / MIN_BYTES + 1);
    rt_lengths *lengths = calloc(1, sizeof *lengths + count * sizeof *lengths->varying);
    if (lengths == NULL) return NULL;
    memcpy(lengths, &header, sizeof header);
    for (; lengths->count < count && !r->failed; lengths->count++) {
        rt_varying *v = &lengths->varying[lengths->count];
        owner += rt_get_below(r, RT_JOB_MAX_OPERATORS + 1);
        r->failed = r->failed || owner > RT_JOB_MAX_OPERATORS;
        v->owner = (uint32_t)owner;
        v->slot = (uint32_t)rt_get_below(r, (uint64_t)UINT32_MAX + 1);
        for (int k = 0; k < RT_LENGTH_COUNT; k++) {
            int64_t value = rt_get_signed(r);
            r->failed = r->failed || value > max_value || value < -max_value;
            v->value[k] = (double)value;
        }
    }
    return lengths;
}
