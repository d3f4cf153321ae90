/* job_bytes.h — the numbers that `.job` files are made of: varints, seven bits a byte, lowest first, as in Protocol
 * Buffers, in their shortest form. Private to runtime/job.
 */
#ifndef RT_JOB_BYTES_H
#define RT_JOB_BYTES_H

#include "runtime/job/job_model.h"

/* ---- Writing: what could not be allocated makes it fail ---------------------------------------------------------- */

typedef struct rt_writer {
    unsigned char *bytes; /* the caller's, to free */
    size_t size, capacity;
    bool failed;
} rt_writer;

void rt_put_bytes(rt_writer *w, const void *bytes, size_t count);
void rt_put(rt_writer *w, uint64_t number);
/* Small for small negative numbers, too: the sign in the lowest bit. */
void rt_put_signed(rt_writer *w, int64_t number);
/* Length and bytes. */
void rt_put_text(rt_writer *w, const char *text);
/* What `part` holds, behind its size; `part` is empty then. */
void rt_put_part(rt_writer *w, rt_writer *part);

/* ---- Reading: reads past the end and overlong numbers make it fail, and give zeros from then on --------------------
 */

typedef struct rt_reader {
    const unsigned char *at, *end;
    bool failed;
} rt_reader;

uint64_t rt_get(rt_reader *r);
/* A number that must be less than `bound`. */
uint64_t rt_get_below(rt_reader *r, uint64_t bound);
/* Up to 2^53. */
double rt_get_count(rt_reader *r);
int64_t rt_get_signed(rt_reader *r);
/* A text without NUL, of length and bytes, allocated. NULL: it failed, or, where it did not, memory ran out. */
char *rt_get_text(rt_reader *r);
/* A part behind its size: what is not read of it is skipped. */
rt_reader rt_get_part(rt_reader *r);

static inline size_t rt_bytes_left(const rt_reader *r)
{
    return (size_t)(r->end - r->at);
}

/* ---- A job as its file has it --------------------------------------------------------------------------------------
 */

typedef struct rt_job_type {
    char *name;
    bool known;
    mdot_operator_traits traits;
} rt_job_type;

typedef struct rt_decoded {
    mdot_job_description description;
    mdot_job_operator *operators;
    rt_job_type *types;
    size_t type_count;
    char **modules;
    size_t module_count;
    uint32_t *inputs; /* of all operators, one after the other */
} rt_decoded;

/* Of an operator in the file, in every version: type, parameters, two masks and a count at least. */
enum { RT_MIN_OPERATOR_BYTES = 5 };
enum { RT_LOADS_PER_PHASE = 6, RT_LOAD_COUNT = MDOT_PHASE_COUNT * RT_LOADS_PER_PHASE };

/* Load k of an operator: the numbers of a phase per sample, then per step. */
double *rt_load_at(mdot_job_operator *op, int k);
/* Room for the operators of a file with this content; false: memory ran out. */
bool rt_make_tensors(rt_decoded *d, size_t operator_count, size_t content_bytes);
/* Parameters, settings, loads and what it reads, which all versions have in one form. Settings and loads that this
 * mdot does not have are left out. */
void rt_get_numbers(rt_reader *r, rt_decoded *d, size_t index, size_t *input_count);

/* job_file_1.c: content of version 1. False: memory ran out; a broken content makes the reader fail. */
bool rt_get_content_1(rt_reader *r, size_t operator_count, rt_decoded *d);

#endif
