/* mdotjob.h — training jobs (ONNX) into operator sequences: the job reader.
 *
 * Library libmdotjob. A job may be exported for inference or for training, by any exporter: what comes out is its
 * forward graph in canonical form, each operator with the load of a whole training step (mdot.h, mdot_job_operator).
 * Functions may be called from several threads at once. Nothing is printed.
 */
#ifndef MDOTJOB_H
#define MDOTJOB_H

#include "mdot.h"

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/* The library's version: "0.3.0", static, and as MDOT_VERSION_NUMBER. */
const char *mdotjob_version(void);
uint32_t mdotjob_version_number(void);

typedef struct mdot_job_options { /* zero means default throughout */
    size_t struct_size;
    const mdot_dim_binding *dims; /* every symbolic dimension but the batch must be bound */
    size_t dim_count;
    void (*warning)(void *user, const char *message); /* text that is valid during the call only */
    void *user;
    uint32_t keep_names; /* 1: operators keep the names of the modules that they stand in. 0: the job holds no names */
    uint32_t reserved;   /* 0 */
    const char *output;  /* a file that will be written from the job, or NULL: INVALID_ARGUMENT where the job is read
                           from it (the model, its external data), or it is a device or a pipe; IO for a directory */
} mdot_job_options;

/* Reads the ONNX file at `path`; options may be NULL. Weights are not read. Operators that mdot does not know become
 * operators of their own type, with their tensors' sizes, and a warning. INVALID_ARGUMENT lists symbolic dimensions
 * that are left; MALFORMED: no ONNX, or a graph without any operator. The caller destroys the job. */
mdot_status mdot_job_read(const char *path, const mdot_job_options *options, mdot_job **out_job, mdot_error *err);
/* The same from memory, which is not kept; `name` stands for the file in messages. */
mdot_status mdot_job_read_bytes(const void *bytes, size_t size_bytes, const char *name, const mdot_job_options *options,
                                mdot_job **out_job, mdot_error *err);

/* What training does with operators of a type, as mdot_job_create takes it, for jobs that are not read from ONNX.
 * NOT_FOUND, all zero then: mdot knows no such type. */
mdot_status mdot_operator_traits_find(const char *type, mdot_operator_traits *out_traits);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
