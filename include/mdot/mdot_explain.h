/* mdot_explain.h — explain predictions: where a step's time and memory go.
 *
 * mdot.h includes this header and states the library's rules: ownership, threading, memory, errors. */
#ifndef MDOT_EXPLAIN_H
#define MDOT_EXPLAIN_H

#include "mdot_predict.h"

MDOT_BEGIN_DECLARATIONS

/* An explanation of one prediction. Immutable.
 *
 * @threads any number may share an explanation
 */
typedef struct mdot_explanation mdot_explanation;

/* Reasons why an explanation is only an estimate. */
enum {
    /* the predictor lacks an entry "explain", so the step is divided according to the GPU's peak rates */
    MDOT_EXPLAINED_BY_ROOFLINE = 1u << 0,
    MDOT_EXPLAINED_BY_MODEL = 1u << 1 /* MDOT_WARN_ANALYTIC_ESTIMATE: operator times were scaled like rooflines */
};

/* Explanation for one GPU; in a pipeline, for the GPU with the most work. The eight times add up to step_ms; the first
 * four are operator times, during which the GPU is busy. The four sizes add up to the prediction's peak memory. */
typedef struct mdot_explanation_info {
    size_t struct_size;
    size_t operator_count;     /* number of operators in the job */
    double step_ms;            /* mdot_prediction's */
    double forward_ms;         /* time of the forward pass */
    double data_gradient_ms;   /* time for data gradients, including recomputation */
    double weight_gradient_ms; /* time for weight gradients */
    double optimizer_ms;       /* time of the optimizer's update */
    double host_ms;            /* time that the GPU waits for the host to launch kernels */
    double communication_ms;   /* time that the GPU waits for exchanges between GPUs */
    double idle_ms; /* time that a pipeline stage waits for other stages while the pipeline fills and drains */
    double weight_bytes, gradient_bytes, optimizer_bytes, activation_bytes; /* mdot_prediction's */
    uint32_t approximate;                                                   /* MDOT_EXPLAINED_…; 0: as predicted */
    uint32_t reserved;                                                      /* must be 0 */
    /* step_ms is gpu_busy_ms + host_busy_ms - overlap_ms + communication_ms + idle_ms + data_ms: */
    double gpu_busy_ms;  /* sum of the operator times */
    double host_busy_ms; /* time in which the host launches kernels; host_ms if the predictor lacks it */
    double overlap_ms;   /* time in which both are busy */
    double data_ms;      /* time that the GPU waits for data loaders, the eighth time */
} mdot_explanation_info;

/* An operator's part of the step. Activations are the operator's live tensors at the memory peak. */
typedef struct mdot_operator_time {
    size_t struct_size;
    double forward_ms;         /* time in the forward pass */
    double data_gradient_ms;   /* time for the input gradient, including recomputation */
    double weight_gradient_ms; /* time for the parameter gradient */
    double optimizer_ms;       /* time for the parameter update */
    double weight_bytes;       /* its parameters */
    double gradient_bytes;     /* gradients of the operator's parameters */
    double optimizer_bytes;    /* optimizer state of the operator's parameters */
    double activation_bytes;   /* its tensors at the memory peak */
} mdot_operator_time;

/* Explains one prediction: where time and memory go. It allocates memory, so avoid it in a loop.
 *
 * An artefact with explanations has a second entry, "explain", with the same inputs as "predict" and these outputs:
 *
 *   operator_ms  f32 [L, 3]  for all operators in a row: forward, data gradient, weight gradient
 *   other_ms     f32 [3]     other times: optimizer, waiting for the host, waiting for other GPUs; or f32 [4], with
 *                            the host's launch time, which includes the wait for it
 *
 * All values are at least 0. All but the fourth of other_ms add up to the median of step_ms.
 * lab/mdot_lab/predictor/deploy_graphs.py makes such a graph from the shipped predictor's.
 *
 * @param configuration how the job trains
 * @errors those of mdot_predict; OUT_OF_MEMORY */
mdot_status mdot_explain(mdot_context *context, const mdot_job *job, const mdot_configuration *configuration,
                         mdot_explanation **out_explanation, mdot_error *err);
/* Destroys an explanation.
 *
 * @param explanation NULL is accepted
 */
void mdot_explanation_destroy(mdot_explanation *explanation);
/* Returns the parts of the whole step.
 *
 * @param out_info receives times in milliseconds and sizes in bytes
 * @errors INVALID_ARGUMENT for NULL or an invalid struct_size
 */
mdot_status mdot_explanation_get_info(const mdot_explanation *explanation, mdot_explanation_info *out_info);
/* Returns one operator's times and sizes.
 *
 * @param index operator index in the job
 * @param out_operator receives times in milliseconds and sizes in bytes
 * @errors OUT_OF_RANGE for an index beyond the count; INVALID_ARGUMENT for NULL or an invalid struct_size */
mdot_status mdot_explanation_get_operator(const mdot_explanation *explanation, size_t index,
                                          mdot_operator_time *out_operator);

MDOT_END_DECLARATIONS
#endif
