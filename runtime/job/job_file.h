/* job_file.h — reads `.job` files, and their bytes. */
#pragma once

#include "runtime/core/core.h"
#include "runtime/job/job_model.h"

/* mdot_job_parse and mdot_job_load with these components, which must outlive the job. */
mdot_status rt_job_parse(const rt_components *components, const void *bytes, size_t size_bytes, mdot_job **out_job,
                         mdot_error *err);
mdot_status rt_job_load(const rt_components *components, const char *path, mdot_job **out_job, mdot_error *err);

/* The number encoding of `.job` files: varints, seven bits per byte, lowest first, as in Protocol Buffers, in their
 * shortest form. Private to runtime/job. */

/* ---- Writing: an allocation failure sets `failed` ---------------------------------------------------------------- */

typedef struct rt_writer {
    unsigned char *bytes; /* the caller frees them */
    size_t size, capacity;
    bool failed;
} rt_writer;

void rt_put_bytes(rt_writer *w, const void *bytes, size_t count);
void rt_put(rt_writer *w, uint64_t number);
/* The sign is in the lowest bit, so that small negative numbers are short, too. */
void rt_put_signed(rt_writer *w, int64_t number);
/* Length and bytes. */
void rt_put_text(rt_writer *w, const char *text);
/* Writes the size and content of `part` and empties `part`. */
void rt_put_part(rt_writer *w, rt_writer *part);

/* ---- Reading: reads past the end and overlong numbers set `failed`; from then on reads return 0 ------------------ */

typedef struct rt_reader {
    const unsigned char *at, *end;
    bool failed;
} rt_reader;

uint64_t rt_get(rt_reader *r);
/* A number that must be less than `bound`. */
uint64_t rt_get_below(rt_reader *r, uint64_t bound);
/* A number up to 2^62. */
double rt_get_count(rt_reader *r);
/* A NUL-free text, stored as length and bytes; allocated. Returns NULL if the read failed or, if `failed` is false,
 * because memory ran out. */
char *rt_get_text(rt_reader *r);
/* A part, stored behind its size. Unread bytes are skipped. */
rt_reader rt_get_part(rt_reader *r);
/* The next `size` bytes as a part. */
rt_reader rt_get_bytes(rt_reader *r, uint64_t size);

static inline size_t rt_bytes_left(const rt_reader *r) { return (size_t)(r->end - r->at); }

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
    uint32_t *inputs;    /* inputs of all operators, concatenated */
    rt_program *program; /* NULL: the file lacks it */
    rt_lengths *lengths; /* NULL: the file lacks it */
} rt_decoded;

/* Minimum size of an operator: type, parameters, two masks and a count. */
enum { RT_MIN_OPERATOR_BYTES = 5 };

/* Allocates the operators of a file with this content. Returns false if memory runs out. */
bool rt_make_operators(rt_decoded *d, size_t operator_count, size_t content_bytes);
/* Reads parameters, settings, loads and inputs. Unknown settings and loads are skipped. */
void rt_get_numbers(rt_reader *r, rt_decoded *d, size_t index, size_t *input_count);

void rt_put_program(rt_writer *w, const rt_program *program);
/* A malformed section makes the reader fail. */
void rt_get_program(rt_reader *r, rt_program *out_program);

void rt_put_lengths(rt_writer *w, const rt_lengths *lengths);
/* NULL if memory runs out. A malformed section makes the reader fail. */
rt_lengths *rt_get_lengths(rt_reader *r);
int64_t rt_get_signed(rt_reader *r);
