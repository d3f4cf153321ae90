/* mdot_program.h — how a job's PyTorch program was written: number formats, weight sizes, kernels, and memory that was
 * recorded while the program ran on tensors without data.
 *
 * Predictions follow the program where a configuration leaves a choice open, and use its sizes. mdot.h includes this
 * header and states the library's rules: ownership, threading, memory, errors. */
#ifndef MDOT_PROGRAM_H
#define MDOT_PROGRAM_H

#include "mdot_predict.h"

MDOT_BEGIN_DECLARATIONS

enum {
    MDOT_PEAK_MOMENTS_MAX = 16,    /* moments per recorded pass */
    MDOT_RECORDED_MEMORY_MAX = 15, /* recorded passes per job */
    MDOT_CHECK_TEXT_BYTES = 512    /* bytes in a work check's text */
};

/* Memory at one moment in a forward and backward pass on one GPU, besides weights, gradients and the optimizer's
 * state. Bytes are at most 2^62. */
typedef struct mdot_peak_moment {
    double per_sample;    /* bytes per sample in activations and temporary tensors */
    double per_step;      /* bytes in tensors whose size is independent of the batch */
    double weight_copies; /* bytes in autocast's half-precision copies of weights */
    double gradients;     /* fraction of the trained parameters whose gradients are allocated, 0 to 1 */
    double logits;        /* bytes of per_sample in tensors as large as the logits */
    double per_square;    /* bytes per square of the batch, for example in a matrix that compares all samples */
} mdot_peak_moment;

/* Moments of one pass with a possible memory peak. */
typedef struct mdot_recorded_memory {
    mdot_precision precision;        /* FP32; AMP, for autocast to either type; or BF16 */
    mdot_recompute recompute;        /* this pass's recomputation */
    size_t moment_count;             /* 1 to MDOT_PEAK_MOMENTS_MAX */
    const mdot_peak_moment *moments; /* moment_count moments */
    /* the pass of compiled code (torch.compile), which recomputes some tensors by itself: SELECTIVE; or also BLOCKS */
    bool compiled;
} mdot_recorded_memory;

/* The work check: the job's work against the work of the program from which it was made, at the batch of that run. All
 * zero if unknown. FLOPs are of the forward and of the backward pass. Numbers from 2^63 on are kept as 2^63 - 1024. */
typedef struct mdot_job_check {
    double dispatched_flops[2];  /* of the calls that the program dispatched, or of the ONNX graph as it was read */
    double job_flops[2];         /* of the job */
    double recorded_peak;        /* bytes at the peak of the recorded pass */
    double predicted_peak;       /* bytes that the job predicts for it */
    double unpriced_bytes;       /* bytes read and written by operators without a formula, in all phases */
    uint32_t unpriced_operators; /* number of these operators */
    /* modules with the largest differences, at most MDOT_CHECK_TEXT_BYTES bytes; may be NULL */
    const char *modules;
} mdot_job_check;

/* The sizes are those of the weights as the program holds them. All three are 0 if they are unknown. */
typedef struct mdot_job_program {
    size_t struct_size;
    /* PYTORCH: fp32 parameters; BF16: 16-bit parameters; AMP, AMP_BF16: the program itself uses autocast */
    mdot_precision precision;
    mdot_attention attention; /* kernels that the program called: EAGER or FLASH; PROGRAM: unknown */
    double trained_bytes;     /* parameters that require a gradient */
    double frozen_bytes;      /* other parameters; quantised ones count as they are packed */
    double buffer_bytes;      /* buffers other than parameters, for example running means in BatchNormalizations */
    bool has_loss;            /* the graph contains the loss */
    size_t recorded_count;    /* at most MDOT_RECORDED_MEMORY_MAX, each with other settings */
    const mdot_recorded_memory *recorded; /* memory that was recorded; may be NULL if recorded_count is 0 */
    uint32_t framework;                   /* number of the framework that runs the program; 0: unknown */
    mdot_job_check check;                 /* the job's work against the program's */
} mdot_job_program;

/* Creates a copy of the job with this information, which is copied and replaces earlier information. Bytes are rounded,
 * and fractions to multiples of 2^-20. An unknown attention keeps the job's.
 *
 * @param program the information
 * @errors INVALID_ARGUMENT names an invalid value; OUT_OF_MEMORY */
mdot_status mdot_job_with_program(const mdot_job *job, const mdot_job_program *program, mdot_job **out_job,
                                  mdot_error *err);
/* Returns the information about the program. If the job was frozen afterwards (mdot_job_freeze), the frozen parameters'
 * part of trained_bytes has moved to frozen_bytes.
 *
 * @param out_program receives the information, with pointers borrowed from the job
 * @errors NOT_FOUND for a job without it; INVALID_ARGUMENT for NULL or an invalid struct_size */
mdot_status mdot_job_get_program(const mdot_job *job, mdot_job_program *out_program);

MDOT_END_DECLARATIONS
#endif
