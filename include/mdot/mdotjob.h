/* mdotjob.h — the job reader: makes an operator sequence of a training job from ONNX or from a model's configuration.
 *
 * The library is libmdotjob. An ONNX file may be exported for inference or for training, by any exporter. The result is
 * the forward graph in canonical form, in which each operator carries a whole training step's FLOPs and bytes
 * (mdot_job.h, mdot_job_operator). Functions may be called from several threads at once. The library prints to no
 * stream. */
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

/* Low-rank adapters (LoRA) beside linear layers, whose other parameters are frozen, as peft makes them. */
typedef struct mdot_job_adapters {
    size_t struct_size;
    uint32_t rank; /* 1 to 65536 */
    /* Names of the adapted modules, or ends of their paths, for example "q_proj"; "all-linear": every linear layer
     * except the head */
    const char *const *targets;
    size_t target_count; /* number of targets, 1 to 32 */
} mdot_job_adapters;

typedef struct mdot_job_options { /* zero selects every default */
    size_t struct_size;
    /* Bindings of symbolic dimensions; all except the batch are required. If no input has a dimension "length", this
     * name means the only other one, or the only one named as a sequence, length or tokens. */
    const mdot_dim_binding *dims;
    size_t dim_count; /* binding count */
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
    /* Adapters for a configuration or a ready job of a family; NULL: none. UNSUPPORTED for other jobs, NOT_FOUND if no
     * linear layer is a target, INVALID_ARGUMENT beside trained modules. A warning names each target without a linear
     * layer. The memory is that of the smallest recorded set of targets that contains these, and a
     * warning says so if it is larger */
    const mdot_job_adapters *adapters;
} mdot_job_options;

/* Reads a job from a file, a folder or a name:
 *
 *   ONNX file         Weights are skipped. An unknown operator becomes an operator of its own type, with its tensor
 *                     sizes, and causes a warning
 *   `.job` file       as mdot_job_load
 *   FILE.json, folder a Hugging Face model's config.json, or a folder with one: the job of its `transformers` class in
 *                     training, with a symbolic length
 *   other word        if there is no such file: a ready job (mdot_ready_jobs)
 *
 * @param path the file, folder or name
 * @param options NULL selects all defaults
 * @errors NOT_FOUND, for a name with the nearest ones; IO; INVALID_ARGUMENT lists the unbound symbolic dimensions;
 *     UNSUPPORTED names a configuration's field that mdot cannot follow; MALFORMED for an invalid file or an empty
 *     graph; those of mdot_job_load; OUT_OF_MEMORY
 * @threads any */
mdot_status mdot_job_read(const char *path, const mdot_job_options *options, mdot_job **out_job, mdot_error *err);
/* Like mdot_job_read, from memory.
 *
 * @param bytes the content of a file; the caller may free them afterwards
 * @param size_bytes number of bytes
 * @param name replaces the file name in messages
 * @param options NULL selects all defaults
 * @errors those of mdot_job_read
 * @threads any */
mdot_status mdot_job_read_bytes(const void *bytes, size_t size_bytes, const char *name, const mdot_job_options *options,
                                mdot_job **out_job, mdot_error *err);

/* A ready job: a network that ships with mdot, by name. */
typedef struct mdot_ready_job {
    size_t struct_size;
    const char *name;  /* for mdot_job_read, for example "resnet50" */
    const char *title; /* one line about the network and its input */
    double parameters; /* elements that training updates */
    int64_t length;    /* default of the symbolic length; 0: none */
} mdot_ready_job;

/* Visits the ready jobs in order. They are data in the folder $MDOT_JOBS, or else share/mdot/jobs of the installation.
 *
 * @param visit called for each one; the job is valid during the call only
 * @param user first argument of `visit`
 * @errors NOT_FOUND without that folder; IO; MALFORMED; INVALID_ARGUMENT for NULL; OUT_OF_MEMORY
 * @threads any */
mdot_status mdot_ready_jobs(void (*visit)(void *user, const mdot_ready_job *job), void *user, mdot_error *err);

/* Finds an operator type's traits, in the form for mdot_job_create. Use it for jobs from a source other than ONNX.
 *
 * @param type for example "Conv"
 * @param out_traits receives the traits; all zero for an unknown type
 * @errors NOT_FOUND for an unknown type; INVALID_ARGUMENT for NULL */
mdot_status mdot_operator_traits_find(const char *type, mdot_operator_traits *out_traits);

MDOT_END_DECLARATIONS
#endif
