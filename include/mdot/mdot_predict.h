/* mdot_predict.h — predict how long a training step of a job takes.
 *
 * mdot.h includes this header and states the library's rules: ownership, threading, memory, errors. */
#ifndef MDOT_PREDICT_H
#define MDOT_PREDICT_H

#include "mdot_configuration.h"
#include "mdot_run.h"

MDOT_BEGIN_DECLARATIONS

/* Warnings of a prediction. Each set bit lowers the reliability. Identifier, bit, name, text: names are permanent, rows
 * are appended. */
#define MDOT_WARNING_MAP(X)                                                                                            \
    X(UNKNOWN_OPERATOR, 0, "unknown-operators",                                                                        \
      "the job has operator types that are absent from the predictor's training data")                                 \
    X(OUTSIDE_TRAINING, 1, "outside-training",                                                                         \
      "batch, GPU, precision, software, FLOPs or bytes are outside of the predictor's training data")                  \
    X(SHORTENED, 2, "shortened", "operators were merged to fit the predictor's longest sequence")                      \
    X(FALLBACK, 3, "fallback", "the prediction ran on the CPU because the GPU failed")                                 \
    X(ANALYTIC_ESTIMATE, 4, "analytic-estimate",                                                                       \
      "the predictor lacks inputs for part of the configuration; an analytic estimate replaces them")                  \
    X(IMPLAUSIBLE, 5, "implausible",                                                                                   \
      "the step would use more of the GPU's peak rate than real programs reach, or almost zero")                       \
    X(NO_PARAMETERS, 6, "no-parameters", "the job lacks trainable parameters: its graph was exported without them")    \
    X(FOLDED, 7, "folded", "an exporter folded BatchNormalizations into weights; the job contains them again")         \
    X(MAYBE_FOLDED, 8, "maybe-folded",                                                                                 \
      "the job has convolutions but lacks normalisation; an exporter probably folded it into the weights")             \
    X(BATCH_BELOW_DATA, 9, "batch-below-data", "the batch is smaller than any in the training data")                   \
    X(BATCH_ABOVE_DATA, 10, "batch-above-data", "the batch is larger than any in the training data")                   \
    X(OPERATORS_BEYOND_DATA, 11, "operators-beyond-data",                                                              \
      "the job has operators larger than any in the training data")                                                    \
    X(GPU_NOT_MEASURED, 12, "gpu-not-measured",                                                                        \
      "the training data lack steps on this GPU model; left-out models were off by a factor of 1.2, and AMD's "        \
      "kernels by 1.3 to 2.3")                                                                                         \
    X(PRECISION_NOT_MEASURED, 13, "precision-not-measured", "the training data lack steps in this precision")          \
    X(SOFTWARE_NOT_MEASURED, 14, "software-not-measured", "the training data lack steps with this version of PyTorch") \
    X(TYPES_NOT_MEASURED, 15, "types-not-measured", "the job has operator types that the training data lack")          \
    X(OPTIMIZER_OR_GPUS_NOT_MEASURED, 16, "optimizer-or-gpus-not-measured",                                            \
      "the training data lack steps with this optimizer, or steps on several GPUs")                                    \
    X(DIFFERS_FROM_PROGRAM, 17, "differs-from-program",                                                                \
      "the requested precision or attention differs from that of the traced program")                                  \
    X(WAITED_FOR_DATA, 18, "waited-for-data",                                                                          \
      "a measured step of this job waited for its data loaders, which this answer leaves out; set --loader-rate")      \
    X(STALE_GRADIENTS, 19, "stale-gradients",                                                                          \
      "gradients are as old as the other workers' steps, so that training may need more steps")

/* Reasons why an answer is outside of the training data, as numbered by the output outside_training (below): number,
 * warning. Append only. MDOT_WARN_OUTSIDE_TRAINING accompanies them. */
#define MDOT_OUTSIDE_MAP(X)                                                                                            \
    X(0, BATCH_BELOW_DATA)                                                                                             \
    X(1, BATCH_ABOVE_DATA)                                                                                             \
    X(2, OPERATORS_BEYOND_DATA)                                                                                        \
    X(3, GPU_NOT_MEASURED)                                                                                             \
    X(4, PRECISION_NOT_MEASURED)                                                                                       \
    X(5, SOFTWARE_NOT_MEASURED)                                                                                        \
    X(6, TYPES_NOT_MEASURED)                                                                                           \
    X(7, OPTIMIZER_OR_GPUS_NOT_MEASURED)

enum {
#define MDOT_WARNING_ENUM(id, bit, name, text) MDOT_WARN_##id = 1u << (bit),
    MDOT_WARNING_MAP(MDOT_WARNING_ENUM)
#undef MDOT_WARNING_ENUM
};

enum {
#define MDOT_OUTSIDE_OR(number, id) | MDOT_WARN_##id
    /* all warnings that are such reasons, as one mask */
    MDOT_WARN_OUTSIDE_REASONS = 0 MDOT_OUTSIDE_MAP(MDOT_OUTSIDE_OR)
#undef MDOT_OUTSIDE_OR
};

/* Returns a warning's name (MDOT_WARNING_MAP).
 *
 * @param warning one bit of mdot_prediction.warnings
 * @return for example "unknown-operators"; NULL for an unknown warning; static */
const char *mdot_warning_name(uint32_t warning);
/* Returns a warning's explanation.
 *
 * @param warning one bit of mdot_prediction.warnings
 * @return a sentence; NULL for an unknown warning; static */
const char *mdot_warning_text(uint32_t warning);

/* Bounds that an implausible step breaks (MDOT_WARN_IMPLAUSIBLE): identifier, number, name, text. Names are permanent,
 * rows are appended. */
#define MDOT_IMPLAUSIBLE_MAP(X)                                                                                        \
    X(TOO_FAST_FOR_COMPUTE, 1, "too-fast-for-compute",                                                                 \
      "the step looks too fast: it would use more than 85 % of the GPU's peak FLOP rate")                              \
    X(TOO_FAST_FOR_MEMORY, 2, "too-fast-for-memory",                                                                   \
      "the step looks too fast: it would use more than 85 % of the GPU's peak memory bandwidth")                       \
    X(TOO_SLOW, 3, "too-slow",                                                                                         \
      "the step looks too slow: it would use less than 1 % of the GPU's peak FLOP rate and bandwidth, and more than "  \
      "0.1 ms for each operator")

enum {
#define MDOT_IMPLAUSIBLE_ENUM(id, number, name, text) MDOT_IMPLAUSIBLE_##id = (number),
    MDOT_IMPLAUSIBLE_MAP(MDOT_IMPLAUSIBLE_ENUM)
#undef MDOT_IMPLAUSIBLE_ENUM
};

/* Returns the name of the bound behind mdot_prediction.implausible (MDOT_IMPLAUSIBLE_MAP).
 *
 * @param implausible mdot_prediction.implausible
 * @return for example "too-slow"; NULL for 0 and for an unknown number; static */
const char *mdot_implausible_name(uint32_t implausible);
/* Returns the explanation of such a bound.
 *
 * @param implausible mdot_prediction.implausible
 * @return a sentence; NULL for 0 and for an unknown number; static */
const char *mdot_implausible_text(uint32_t implausible);

/* The answer to one question: time, memory, plausibility and energy of a step. */
typedef struct mdot_prediction {
    size_t struct_size;
    /* median time of one training step: forward and backward passes, optimizer. In inference: one forward pass */
    double step_ms;
    double lower_ms, upper_ms; /* 90 % interval */
    /* on one GPU: weights, gradients, optimizer state and live activations, as PyTorch's allocator counts them; see
     * runtime/perf/peak_memory.c */
    uint64_t peak_memory_bytes;
    bool fits;         /* reserved_bytes are at most usable_bytes */
    uint32_t warnings; /* MDOT_WARN_… */
    /* in a call for many pairs: MDOT_OK, or the reason why this pair failed; all other fields are 0 then */
    mdot_status status;
    /* Plausibility of the answer: */
    uint32_t implausible;    /* MDOT_IMPLAUSIBLE_…, the bound that the answer breaks; 0: none */
    double parameters;       /* trainable parameters of the job */
    double flops_per_sample; /* FLOPs of a step: forward and backward; forward only if the mode is inference */
    double compute_share;    /* utilisation: fraction of the GPU's peak FLOP rate at this precision, during step_ms */
    /* utilisation of the GPU's peak memory bandwidth, if each operator reads and writes each tensor once */
    double memory_share;
    double unknown_share; /* fraction of the estimated cost in operators of unknown types */
    /* Parts of the peak memory on one GPU; the sum is peak_memory_bytes, except for fractions of a byte: */
    double weight_bytes;    /* parameters and buffers of the model */
    double gradient_bytes;  /* gradients in memory at the peak */
    double optimizer_bytes; /* the optimizer's state */
    /* activations and other temporary memory: half-precision copies of weights, or the optimizer's update */
    double activation_bytes;
    /* 90 % interval of peak_memory_bytes; the width depends on the job's source: runtime/perf/memory_error.def */
    uint64_t memory_lower_bytes, memory_upper_bytes;
    /* Memory of the whole process, as nvidia-smi shows it: peak_memory_bytes and four estimates
     * (runtime/perf/reserved_memory.c): */
    uint64_t reserved_bytes;
    uint64_t usable_bytes;   /* of the GPU: memory as sold without the driver's part and error correction */
    double rounding_bytes;   /* rounding and fragmentation of PyTorch's caching allocator */
    double context_bytes;    /* CUDA context and code */
    double workspace_bytes;  /* workspaces of cuBLAS and cuDNN */
    double collective_bytes; /* NCCL's buffers; 0 on one GPU */
    /* Energy, from the GPU's utilisation and power limit: runtime/perf/power.c. 0 if the GPU's watts are unknown.
     * Measured averages with ResNet-50 on three GPU models are within 12 %: */
    double average_watts; /* of one GPU */
    double energy_joules; /* per step, on all GPUs, without the rest of the machine */
    /* Peaks of a pipeline's first and last stage, whose largest, or that of a stage between them, is peak_memory_bytes.
     * Without a pipeline, both are peak_memory_bytes. Megatron logs the last stage's memory: */
    uint64_t first_stage_bytes, last_stage_bytes;
    /* change of step_ms with the host's time, both as logarithms: 0 if the GPU is busy, 1 if it waits for launches */
    double host_share;
    /* step_ms and its interval if data are always there; and the data loaders' time for the step's samples, 0
     * without their rate. The larger time is the step's: */
    double gpu_ms, gpu_lower_ms, gpu_upper_ms, loader_ms;
} mdot_prediction;

/* Inputs of predictors. A predictor of jobs is an artefact whose entry "predict" reads any of these inputs and no
 * others, or an artefact with two entries (below). L is the number of rows. Numbers are raw, without logarithm or
 * scale, because normalisation belongs to the predictor. Extreme attributes are clamped so that f32 holds any product:
 * size_in, size_out and extent at 2^31, directions at 2, others at 2^24.
 *
 *   operator_type      i64 [L]      type id in ir/ops_job.def; 0 for types without an id
 *   operator_setting   f32 [L, 25]  MDOT_SETTING_MAP's order
 *   operator_load      f32 [L, 19]  per_sample: FLOPs, bytes read and bytes written for each phase; the same nine for
 *                                   per_step; parameters
 *   operator_position  f32 [L, 5]   index in the sequence, depth, height, input_count, out_degree
 *   operator_count     f32 [L]      operators in the row; the other numbers describe one operator
 *   configuration      f32 [28]     MDOT_CONFIGURATION_MAP's order; those behind is_adamw were added in version 0.2
 *   gpu                f32 [11]     mdot_gpu's numbers
 *
 * Rows describe one GPU. Tensor parallelism divides FLOPs, bytes and parameters. A pipeline divides the counts of
 * operators in blocks, which may become fractions then. Without the input operator_count, it divides FLOPs and bytes.
 *
 * Growth: later versions append attributes, positions, and numbers of the configuration and of GPUs. A predictor reads
 * the first ones, as many as existed when it was made, so that it keeps working. A predictor with more inputs than this
 * mdot has is INCOMPATIBLE, unless the metadata of the ONNX model gives defaults for the last ones: for example,
 * mdot.defaults.gpu = "1, 0.5" for two numbers of the input gpu. Types grow, too. The predictor gets 0 for a type id
 * beyond the table that it indexes by operator_type (140 rows if the artefact omits the size).
 *
 * Selection: an entry may select numbers of a configuration by name instead, in any order. For example,
 * mdot.reads.configuration = "batch, is_amp, torch" makes the input f32 [3]. Other numbers are estimated analytically,
 * except batch, layout, optimizer and the first precisions, which are then ignored. The numbers from link_gbps to
 * zero_stage are passed only if the predictor reads all of them.
 *
 * Outputs: step_ms, f32 [3], has the 5 %, 50 % and 95 % quantiles of the step time, ascending. The optional output
 * outside_training, f32 [1], is above 0 for an input outside of the training data. As f32 [2] to [8], it gives the
 * reasons by the numbers of MDOT_OUTSIDE_MAP, any of which may be above 0. The optional output part_ms, f32 [10],
 * divides the median into busy times: the GPU's in the forward pass for matmuls, attention, convolutions and other
 * operators, the same in the backward pass, the update as a fused kernel, and the host's. The median is
 * (gpu^4 + host^4)^(1/4), where gpu is the sum of the first nine. Without part_ms, rooflines divide it.
 *
 * Two entries: "encode" reads the inputs with rows. Up to 16 output tensors of any shape are inputs of the entry
 * "evaluate", by name. "evaluate" also reads configuration f32 [28, C] and gpu f32 [11, C], with one column for each of
 * C configurations with one batch, C up to 64. It returns step_ms f32 [3, C], outside_training f32 [C], or [2, C] to
 * [8, C], and part_ms f32 [10, C]. Each column's answer must be independent of the other columns. If there are fewer
 * than C configurations, the remaining columns repeat earlier ones.
 *
 * Rows: an entry with operator_position gets the operators one by one in order; any other entry gets one row for all
 * equal operators. Rows beyond the largest bucket are merged with neighbours, cheap ones first (MDOT_WARN_SHORTENED). A
 * merged row has the type, attributes and position of the most expensive operator, and mean FLOPs and bytes. An entry
 * without operator_count gets sums of FLOPs and bytes throughout. */

/* Predicts one job under one configuration.
 *
 * @param configuration how the job trains
 * @param out_prediction receives the answer
 * @errors INVALID_ARGUMENT names an invalid batch, GPU or other field; INCOMPATIBLE names the tensor that a
 *     predictor of jobs would need; MALFORMED if the predictor's answer is not a positive number */
mdot_status mdot_predict(mdot_context *context, const mdot_job *job, const mdot_configuration *configuration,
                         mdot_prediction *out_prediction, mdot_error *err);

/* Predicts many (job, configuration) pairs. A pair that fails leaves the others answered. Consecutive pairs with one
 * job encode it once.
 *
 * @param jobs one job for each pair; they may repeat
 * @param configurations one for each pair
 * @param count pairs to predict
 * @param out_predictions out_predictions[i] receives the answer to pair i; `status` there is the reason for a failure
 * @errors those of mdot_predict: the first failed pair's status, with its index in the message */
mdot_status mdot_predict_many(mdot_context *context, const mdot_job *const *jobs,
                              const mdot_configuration *configurations, size_t count, mdot_prediction *out_predictions,
                              mdot_error *err);

/* Predicts one job under many configurations. A configuration that fails leaves the others answered, as in
 * mdot_predict_many.
 *
 * @param configurations how the job trains
 * @param count configurations to predict
 * @param out_predictions out_predictions[i] receives the answer for configuration i
 * @errors those of mdot_predict_many */
mdot_status mdot_sweep(mdot_context *context, const mdot_job *job, const mdot_configuration *configurations,
                       size_t count, mdot_prediction *out_predictions, mdot_error *err);

/* Cached features of a job: the predictor's computation before any configuration is known. Use it for repeated
 * predictions, because the job is then read only once. Immutable.
 *
 * @threads any number may share an encoding, each with its own context */
typedef struct mdot_encoding mdot_encoding;

/* Encodes the whole job on one GPU. The job must outlive the encoding, which borrows it. The encoding keeps the
 * predictor alive, as a context does.
 *
 * @errors INCOMPATIBLE as for predictions, OUT_OF_MEMORY */
mdot_status mdot_encoding_create(mdot_context *context, const mdot_job *job, mdot_encoding **out_encoding,
                                 mdot_error *err);
/* Destroys an encoding.
 *
 * @param encoding NULL is accepted */
void mdot_encoding_destroy(mdot_encoding *encoding);

/* Evaluates the encoded job under `count` configurations, with the same answers as mdot_sweep. Any context of the
 * encoding's predictor may be used. Consecutive configurations with one micro-batch cost little more than a single one.
 * Tensor-parallel and pipeline configurations are encoded anew in every call, because they divide the job.
 *
 * @param configurations how the job trains
 * @param count configurations to predict
 * @param out_predictions out_predictions[i] receives the answer for configuration i
 * @errors those of mdot_predict_many; INVALID_ARGUMENT for a context of another predictor */
mdot_status mdot_evaluate(mdot_context *context, const mdot_encoding *encoding,
                          const mdot_configuration *configurations, size_t count, mdot_prediction *out_predictions,
                          mdot_error *err);

/* Inputs of an entry for a job: the tensors of the calls above, for programs that run an entry themselves (mdot_run) or
 * check it on real jobs' features (mdotc_verify). The object is independent of job and context. It keeps the predictor
 * alive, as a context does. Immutable.
 *
 * @threads any number may share the inputs */
typedef struct mdot_job_inputs mdot_job_inputs;

/* Creates the inputs for one configuration and an entry point that predicts or explains jobs. As in mdot_predict,
 * options without a predictor input are left out; "evaluate" gets the configuration in every column.
 *
 * @param entry entry index
 * @param configuration how the job trains
 * @errors those of mdot_predict; OUT_OF_RANGE for an invalid entry; INCOMPATIBLE for an entry with other inputs than a
 *     job's; OUT_OF_MEMORY */
mdot_status mdot_job_inputs_create(mdot_context *context, size_t entry, const mdot_job *job,
                                   const mdot_configuration *configuration, mdot_job_inputs **out_inputs,
                                   mdot_error *err);
/* Destroys the inputs.
 *
 * @param inputs NULL is accepted */
void mdot_job_inputs_destroy(mdot_job_inputs *inputs);
/* Returns an input in the entry's order.
 *
 * @param index index in this order
 * @param out_input receives the tensor; pointers are borrowed from `inputs`
 * @errors OUT_OF_RANGE beyond the last; INVALID_ARGUMENT for NULL */
mdot_status mdot_job_inputs_get(const mdot_job_inputs *inputs, size_t index, mdot_input *out_input);

MDOT_END_DECLARATIONS
#endif
