/* mdotjob.h — the job reader: reads a training job from ONNX into an operator sequence.
 *
 * The library is libmdotjob. A job may be exported for inference or for training, by any exporter. The result is the
 * forward graph in canonical form, in which each operator carries a whole training step's FLOPs and bytes (mdot_job.h,
 * mdot_job_operator). Functions may be called from several threads at once. The library prints to no stream. */
#ifndef MDOTJOB_H
#define MDOTJOB_H

#include "mdot.h"

MDOT_BEGIN_DECLARATIONS

/* Returns the version of libmdotjob as text.
 *
 * @return for example "0.4.0"; static
 */
const char *mdotjob_version(void);
/* Returns the version of libmdotjob as a number, for comparison with MDOT_VERSION_NUMBER.
 *
 * @return 1000000 * major + 1000 * minor + patch: 0.4.0 is 4000
 */
uint32_t mdotjob_version_number(void);

typedef struct mdot_job_options { /* zero selects every default */
    size_t struct_size;
    const mdot_dim_binding *dims; /* bindings of symbolic dimensions; all except the batch are required */
    size_t dim_count;             /* binding count */
    /* called for each warning; the text is valid during the call only */
    void (*warning)(void *user, const char *message);
    void *user;
    uint32_t keep_names; /* 1: operators keep module names. 0: the job omits all names */
    uint32_t reserved;   /* must be 0 */
    /* a file to be written from the job, or NULL. The reader checks it in advance: INVALID_ARGUMENT if the job is read
     * from that file (the model or its external data) or if it is a device or a pipe; IO for a directory */
    const char *output;
    /* parameters to leave unchanged in training, selected by module names, or NULL. The job need not keep the names.
     * Errors are those of mdot_job_freeze */
    const mdot_job_freezing *freezing;
    /* The same program at another batch, as the bytes of an ONNX file, which determines the terms of each operator's
     * work (mdot_operators_combine); or NULL. A file with a symbolic batch needs none */
    const void *other_batch_bytes;
    size_t other_batch_size; /* number of these bytes */
    int64_t other_batch;     /* that batch; it has no common divisor with the file's batch */
} mdot_job_options;

/* Reads an ONNX file. Weights are skipped. An unknown operator becomes an operator of its own type, with its tensor
 * sizes, and causes a warning.
 *
 * @param path the ONNX model's file name
 * @param options NULL selects all defaults
 * @errors NOT_FOUND; IO; INVALID_ARGUMENT lists the unbound symbolic dimensions; MALFORMED for invalid ONNX or an empty
 *     graph; OUT_OF_MEMORY
 * @threads any */
mdot_status mdot_job_read(const char *path, const mdot_job_options *options, mdot_job **out_job, mdot_error *err);
/* Like mdot_job_read, from memory.
 *
 * @param bytes the ONNX model; the caller may free them afterwards
 * @param size_bytes number of bytes
 * @param name replaces the file name in messages
 * @param options NULL selects all defaults
 * @errors those of mdot_job_read
 * @threads any */
mdot_status mdot_job_read_bytes(const void *bytes, size_t size_bytes, const char *name, const mdot_job_options *options,
                                mdot_job **out_job, mdot_error *err);

/* Finds an operator type's traits, in the form for mdot_job_create. Use it for jobs from a source other than ONNX.
 *
 * @param type for example "Conv"
 * @param out_traits receives the traits; all zero for an unknown type
 * @errors NOT_FOUND for an unknown type; INVALID_ARGUMENT for NULL */
mdot_status mdot_operator_traits_find(const char *type, mdot_operator_traits *out_traits);

MDOT_END_DECLARATIONS
#endif
