/* mdot_predict.h — training jobs, how they train, and how long a step of theirs takes.
 *
 * mdot.h includes this header and says what holds for all of the library: ownership, threading, memory, errors.
 */
#ifndef MDOT_PREDICT_H
#define MDOT_PREDICT_H

#include "mdot_run.h"

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/* ---- Jobs -------------------------------------------------------------------------------------------------------- */

/* A training job's operator sequence: types, configurations and loads. It holds no weights, and no names but those of
 * modules where the reader was asked to keep them. Immutable. */
typedef struct mdot_job mdot_job;

typedef enum mdot_optimizer { MDOT_OPTIMIZER_SGD, MDOT_OPTIMIZER_ADAM, MDOT_OPTIMIZER_ADAMW } mdot_optimizer;

/* Work on data. A multiply-add is two FLOPs. Bytes count each tensor once, and floating elements as four bytes whatever
 * the file's type: precision belongs to the configuration. Whole numbers, at most 2^53. */
typedef struct mdot_load {
    double flops, bytes_read, bytes_written;
} mdot_load;

/* The parts of a training step in which an operator of the forward graph works. */
typedef enum mdot_phase {
    MDOT_PHASE_FORWARD,
    MDOT_PHASE_DATA_GRADIENT,   /* of its inputs, and the sum of those that its result gets from several readers;
                                   nothing where no parameter lies before it */
    MDOT_PHASE_WEIGHT_GRADIENT, /* of its parameters */
    MDOT_PHASE_COUNT
} mdot_phase;

/* How an operator is configured: name, text. A setting that an operator type does not have is 0. Spatial dimensions are
 * depth, height, width; an operator over fewer uses the last ones. Sizes are of one sample. The order is that of the
 * `.job` format: append only. */
#define MDOT_SETTING_MAP(X)                                                                                            \
    X(KERNEL_D, "kernel_d")                                                                                            \
    X(KERNEL_H, "kernel_h")                                                                                            \
    X(KERNEL_W, "kernel_w")                                                                                            \
    X(STRIDE_D, "stride_d")                                                                                            \
    X(STRIDE_H, "stride_h")                                                                                            \
    X(STRIDE_W, "stride_w")                                                                                            \
    X(DILATION_H, "dilation_h")                                                                                        \
    X(DILATION_W, "dilation_w")                                                                                        \
    X(PADDING_H, "padding_h") /* both sides together */                                                                \
    X(PADDING_W, "padding_w")                                                                                          \
    X(GROUPS, "groups")                                                                                                \
    X(CHANNELS_IN, "channels_in")   /* of a matrix product: the summed extent */                                       \
    X(CHANNELS_OUT, "channels_out") /* of a matrix product: columns of the result */                                   \
    X(SIZE_IN, "size_in")           /* positions: pixels of a feature map, rows of a matrix */                         \
    X(SIZE_OUT, "size_out")                                                                                            \
    X(AXIS, "axis")     /* counted from the end, 1 is the last; 0 where several or none matter */                      \
    X(EXTENT, "extent") /* of that axis, elements reduced into one, or steps that a recurrence takes one by one */     \
    X(HEADS, "heads")                                                                                                  \
    X(HEAD_SIZE, "head_size")                                                                                          \
    X(QUERIES, "queries")                                                                                              \
    X(KEYS, "keys")                                                                                                    \
    X(BIAS, "bias")             /* 1: adds a learnt vector */                                                          \
    X(NORMALISED, "normalised") /* 1: a BatchNormalization follows and is part of the operator */                      \
    X(DIRECTIONS, "directions") /* of a recurrent operator */                                                          \
    X(INPUTS, "inputs")         /* tensors read that are neither parameters nor constants */

typedef enum mdot_setting {
#define MDOT_SETTING_ENUM(name, text) MDOT_SETTING_##name,
    MDOT_SETTING_MAP(MDOT_SETTING_ENUM)
#undef MDOT_SETTING_ENUM
        MDOT_SETTING_COUNT
} mdot_setting;

/* Room for settings to come, so that appending one moves nothing. */
enum { MDOT_SETTING_CAPACITY = 48 };

/* "kernel_h"; "?" for a value that is no setting. Static. */
const char *mdot_setting_name(mdot_setting setting);

/* The type in which automatic mixed precision computes an operator. */
typedef enum mdot_autocast {
    MDOT_AUTOCAST_WIDEST, /* that of its widest operand, parameters among them */
    MDOT_AUTOCAST_HALF,   /* fp16 */
    MDOT_AUTOCAST_FULL,   /* fp32 */
    MDOT_AUTOCAST_DATA    /* that of its operands without parameters */
} mdot_autocast;

/* Tensors that autograd keeps of an operator for the backward pass; 0 is not known and counts as all it touches. */
enum {
    MDOT_SAVES_NOTHING = 1u << 0, /* alone */
    MDOT_SAVES_INPUTS = 1u << 1,
    MDOT_SAVES_RESULT = 1u << 2,
    MDOT_SAVES_FACTORS = 1u << 3, /* inputs, where the other factor needs them for its gradient */
    MDOT_SAVES_INDICES = 1u << 4, /* 64 bits for each element of the result */
    MDOT_SAVES_SCORES = 1u << 5   /* of attention: heads * queries * keys elements */
};

enum {
    MDOT_TRAIT_VIEW = 1u << 0,      /* the result lies in the memory of the first operator that it reads */
    MDOT_TRAIT_PICKS = 1u << 1,     /* reads indices beside other operators' results, which take next to nothing */
    MDOT_TRAIT_PARTS = 1u << 2,     /* has an axis, and works on a part of the channels as on all of them */
    MDOT_TRAIT_SUMS_PARTS = 1u << 3 /* takes parts of the channels on several GPUs, and gives each the whole result */
};

/* What training does with an operator of some type, in whatever job it stands. The job reader has it in its operator
 * table and `.job` files carry it; all zero where nothing is known. */
typedef struct mdot_operator_traits {
    uint32_t number;           /* by which predictors know the type; 0: no predictor does */
    uint32_t autocast;         /* mdot_autocast */
    uint32_t saved_written;    /* MDOT_SAVES_…, where attention is written out in matrix products, */
    uint32_t saved_fused;      /* where it is one kernel, */
    uint32_t saved_recomputed; /* and where all but products is computed again in the backward pass */
    uint32_t reserve;          /* tensors as large as the result that are kept beside these */
    uint32_t traits;           /* MDOT_TRAIT_… */
    uint32_t reserved[9];      /* 0: room for traits to come */
} mdot_operator_traits;

/* At batch B a phase's load is B * per_sample + per_step: parameters are read once a step, not once a sample. */
typedef struct mdot_job_operator {
    size_t struct_size;
    const char *type;                       /* "Conv", "Linear", "Attention" …: ONNX's name where ONNX has one */
    bool known;                             /* false: mdot knows its tensors' sizes only */
    int64_t setting[MDOT_SETTING_CAPACITY]; /* zero from MDOT_SETTING_COUNT on */
    mdot_load per_sample[MDOT_PHASE_COUNT];
    mdot_load per_step[MDOT_PHASE_COUNT];
    double parameters; /* elements that training learns */
    /* Dependencies: the operators whose results it reads, ascending, each less than its own index. */
    size_t input_count;
    const uint32_t *inputs;
    /* Position, which mdot_job_create works out. Operators on the longest path before and behind this one, and how many
     * operators read its result. */
    uint32_t depth, height, out_degree;
    mdot_operator_traits traits;
    /* The block (layer) that it belongs to: 1 …, ascending over the job, 0 where it belongs to none. */
    uint32_t block;
    /* How many blocks have the same operators as that one, it included, which mdot_job_create works out: equal types,
     * settings, parameters and forward loads, joined in the same way. */
    uint32_t equal_blocks;
    uint32_t reserved;        /* 0 */
    const char *module;       /* that it was exported from, "encoder.layer.3.output"; NULL where names were not kept */
    double frozen_parameters; /* elements that training reads and leaves as they are; no part of `parameters` */
} mdot_job_operator;

/* What the reader of a job's graph could not know for sure. Stored in `.job` files: append only. */
enum {
    MDOT_JOB_FOLDED = 1u << 0,       /* an exporter folded BatchNormalizations, which the job has again */
    MDOT_JOB_MAYBE_FOLDED = 1u << 1, /* it looks as if one had, but for traces by which they could be put back */
    MDOT_JOB_NOTES_ALL = (1u << 2) - 1
};

typedef struct mdot_job_description {
    size_t struct_size;
    const mdot_job_operator *operators; /* in topological order; position is not read */
    size_t operator_count;
    int64_t batch;      /* that the file was made for; 1 where it leaves the batch open */
    bool has_optimizer; /* the graph holds one: */
    mdot_optimizer optimizer;
    uint32_t notes;    /* MDOT_JOB_… */
    uint32_t reserved; /* 0 */
} mdot_job_description;

typedef struct mdot_job_info {
    size_t struct_size;
    size_t operator_count, unknown_count;
    double parameters;
    int64_t batch;
    bool has_optimizer;
    mdot_optimizer optimizer;
    uint32_t block_count; /* the highest number of a block */
    uint32_t notes;       /* MDOT_JOB_… */
    double frozen_parameters;
} mdot_job_info;

/* Copies everything; equal names are held once, however many operators have them. An operator takes about a kilobyte,
 * while the job is made about two. INVALID_ARGUMENT for a job without operators or of more than 2^22, dependencies that
 * do not ascend or point forward,
 * loads and parameters that are negative, not finite or beyond 2^53 (fractions are rounded), settings that are negative
 * (but for padding, which crops) or beyond 2^40, blocks that do not ascend.
 * Without traits, an operator has no number and saves all it touches; mdot_operator_traits_find (mdotjob.h) gives those
 * of a type. */
mdot_status mdot_job_create(const mdot_job_description *description, mdot_job **out_job, mdot_error *err);
/* Which parameters training leaves as they are, by the names of their modules: those that a pattern of `frozen` fits
 * (all, where it has none) and no pattern of `trained`. '*' stands for any letters, '?' for one; a module that fits has
 * those in it with it: "encoder" is all of the encoder, "*.lora_?" both parts of every LoRA adapter. */
typedef struct mdot_job_freezing {
    size_t struct_size;
    const char *const *frozen;
    size_t frozen_count;
    const char *const *trained;
    size_t trained_count;
} mdot_job_freezing;

/* The same job with parameters frozen: without their gradients, and without a backward pass where none learns before.
 * Another job, the caller's to destroy. INVALID_ARGUMENT for a job without names of modules and where nothing is left
 * that learns; NOT_FOUND for a pattern that fits no module. */
mdot_status mdot_job_freeze(const mdot_job *job, const mdot_job_freezing *freezing, mdot_job **out_job,
                            mdot_error *err);
/* From a `.job` file or its bytes, as written by mdot_job_save; the bytes are not kept. MALFORMED (no job, or broken),
 * INCOMPATIBLE (another version of the format) or CORRUPT (checksum) otherwise. A file has 256 MiB at most; of a larger
 * one nothing is read. */
mdot_status mdot_job_load(const char *path, mdot_job **out_job, mdot_error *err);
mdot_status mdot_job_parse(const void *bytes, size_t size_bytes, mdot_job **out_job, mdot_error *err);
/* The file appears complete or not at all. OUT_OF_RANGE for a job whose file would be larger than one may be. */
mdot_status mdot_job_save(const mdot_job *job, const char *path, mdot_error *err);
void mdot_job_destroy(mdot_job *job);

/* Strings and arrays are lent by the job. OUT_OF_RANGE beyond the count, INVALID_ARGUMENT for a struct_size that is
 * none. */
mdot_status mdot_job_get_info(const mdot_job *job, mdot_job_info *out_info);
mdot_status mdot_job_get_operator(const mdot_job *job, size_t index, mdot_job_operator *out_operator);
/* What one optimizer step costs for this many parameters, in fp32. */
mdot_load mdot_optimizer_load(mdot_optimizer optimizer, double parameters);

/* ---- Predictions ------------------------------------------------------------------------------------------------- */

typedef enum mdot_precision {
    MDOT_PRECISION_FP32,
    MDOT_PRECISION_TF32,
    MDOT_PRECISION_AMP,      /* autocast to fp16: weights, gradients and the optimizer's state stay fp32 */
    MDOT_PRECISION_AMP_BF16, /* the same to bf16. GPUs before compute capability 8.0 emulate its products in fp32 */
    MDOT_PRECISION_BF16,     /* weights, gradients, the optimizer's state and activations, without autocast */
    MDOT_PRECISION_PYTORCH,  /* PyTorch's own default: fp32, and tf32 in convolutions where there is TF32 */
    MDOT_PRECISION_AMP_FP16 = MDOT_PRECISION_AMP
} mdot_precision;
typedef enum mdot_layout { MDOT_LAYOUT_NCHW, MDOT_LAYOUT_NHWC } mdot_layout;

/* One kernel that never writes its scores down, FlashAttention or its like, which PyTorch's
 * scaled_dot_product_attention takes by default; or products and a softmax, each a kernel of its own. */
typedef enum mdot_attention { MDOT_ATTENTION_FLASH, MDOT_ATTENTION_EAGER } mdot_attention;

/* What is computed again in the backward pass and need not be kept until then. */
typedef enum mdot_recompute {
    MDOT_RECOMPUTE_NOTHING,
    MDOT_RECOMPUTE_BLOCKS,   /* all of a block but what it reads: torch.utils.checkpoint around every block. A job
                                without blocks is refused */
    MDOT_RECOMPUTE_SELECTIVE /* all but matrix products, convolutions and attention */
} mdot_recompute;

/* Between the GPUs of a node. Rates are those of one GPU's way out, in one direction. */
typedef enum mdot_link {
    MDOT_LINK_DEFAULT, /* NVLink on the boards that come with it (mdot_gpu.nvlink_gbps), PCIe on others; to a predictor
                          that reads how many GPUs there are and no links, whatever it takes for granted */
    MDOT_LINK_PCIE,
    MDOT_LINK_NVLINK /* INVALID_ARGUMENT for a GPU without a figure of it */
} mdot_link;

/* A GPU that predictions may be asked for. runtime/job/gpus.def holds the table with its sources and defines the
 * columns; rates are dense, at boost clock, a multiply-add counted as two. In what is asked of predictions each figure
 * is 1e-6 to 1e9, or 0 where that is said below: INVALID_ARGUMENT names one that is not. */
typedef struct mdot_gpu {
    size_t struct_size;
    const char *name;          /* printable UTF-8, or NULL */
    double compute_capability; /* 8.6 */
    double sm_count, boost_mhz;
    double memory_gib, memory_gbps, l2_mib;
    double fp32_tflops, tf32_tflops, fp16_tflops;
    double nvlink_gbps; /* 0: the board comes without NVLink */
    double pcie_gbps;   /* 0: not known, and taken as PCIe 4 with 16 lanes */
    double watts;       /* the board's power limit, under which its clock may fall; 0: as many as the rates take */
} mdot_gpu;

/* The table's names, ending with NULL; static. */
const char *const *mdot_gpu_names(void);
/* The GPU called `name`: one of mdot_gpu_names, an alias ("A100" is the SXM board of 40 GB), or what the driver calls
 * it, in any case and with or without blanks, hyphens and underscores. INVALID_ARGUMENT names those that there are. */
mdot_status mdot_gpu_find(const char *name, mdot_gpu *out_gpu, mdot_error *err);

/* How a job trains. Zero is the default of every field but batch and GPU.
 *
 * What a predictor has no input for (below) is modelled: the predictor answers for the nearest configuration that it
 * knows, and its answer is multiplied by ratios of roofline times, of what was asked for and of what it was told (other
 * kernels move no more of it than may be the GPU's), plus what is exchanged between GPUs at the rates below. The
 * interval widens by a quarter of what physics changes, as a logarithm, and MDOT_WARN_ANALYTIC_ESTIMATE says so. The models
 * stand in runtime/predict/analytic_correction.c and memory.c.
 *
 * Parallelism. The four degrees multiply to gpu_count; all 0, every GPU is a data-parallel worker. Tensor parallelism
 * is Megatron's: matrix products are divided by columns and by rows in turn, what stands between them with them, and
 * their results summed (runtime/perf/sharding.c). Expert parallelism deals out the experts of a mixture, and tokens to
 * them: its GPUs have batches of their own, as data-parallel workers have (runtime/perf/experts.c). A pipeline gives
 * every GPU as many blocks, one forward, one backward (1F1B). Neighbours in a node are tensor-parallel first, then
 * expert-parallel, then data-parallel, then stages of the pipeline. */
typedef struct mdot_configuration {
    size_t struct_size;
    int64_t batch;   /* samples of one forward and backward pass of a data-parallel worker, 1 to 2^24 */
    const char *gpu; /* a name that mdot_gpu_find knows, or NULL and */
    const mdot_gpu
        *gpu_spec; /* the GPU itself: what mdot_gpu_find gave, or one that it does not know. NULL otherwise */
    int gpu_count; /* that work on a step; 0 means 1 */
    mdot_precision precision;
    mdot_layout layout;
    mdot_optimizer optimizer;
    mdot_attention attention;
    mdot_recompute recompute;
    uint32_t compiled;   /* 1: by torch.compile, which fuses what is no product, and came with PyTorch 2.0 */
    uint32_t accumulate; /* passes whose gradients are added up before the optimizer's step, up to 2^16; 0 means 1 */
    mdot_link link;
    uint32_t node_count; /* that the GPUs are spread over evenly; 0 means 1 */
    double link_gbps;    /* reached between GPUs of a node by collectives, 10^9 bytes a second, 1e-6 to 1e9; 0: .8 of
                            NVLink's rate, .4 of PCIe's */
    double network_gbps; /* the same between nodes, for each GPU; 0: 20, of 200 Gbit/s InfiniBand */
    uint32_t data_parallel, tensor_parallel, pipeline_parallel;
    uint32_t expert_parallel; /* divides the experts of every layer. INVALID_ARGUMENT for a job without: products with
                                 several matrices behind a TopK in their block */
    uint32_t micro_batches;   /* that a pipeline divides the batch into; 0 means as many as it has stages */
    uint32_t zero_stage;      /* of ZeRO, 0 to 3: workers divide the optimizer's state, gradients, weights */
    uint32_t torch;           /* PyTorch's version, 100 * major + minor: 1.12 is 112, 2.4 is 204; 0: the newest that the
                                 predictor knows. One that does not read it answers for the software that it was made
                                 with, and MDOT_WARN_SOFTWARE_NOT_MEASURED says so */
    uint32_t reserved;        /* 0 */
} mdot_configuration;

/* The numbers of a configuration that predictors read (below), by name. Append only. is_… and recomputes_… are 1 or 0;
 * of several that say the same of a precision the later one says it more closely: where is_amp_bf16 or is_bf16 is 1,
 * is_amp is 1, too, and where is_pytorch is 1, is_fp32. */
#define MDOT_CONFIGURATION_MAP(X)                                                                                      \
    X(BATCH, "batch") /* of a micro-batch */                                                                           \
    X(GPU_COUNT, "gpu_count")                                                                                          \
    X(IS_FP32, "is_fp32")                                                                                              \
    X(IS_TF32, "is_tf32")                                                                                              \
    X(IS_AMP, "is_amp")                                                                                                \
    X(IS_NHWC, "is_nhwc")                                                                                              \
    X(IS_ADAM, "is_adam")                                                                                              \
    X(IS_ADAMW, "is_adamw")                                                                                            \
    X(IS_AMP_BF16, "is_amp_bf16")                                                                                      \
    X(IS_BF16, "is_bf16")       /* throughout, without autocast */                                                     \
    X(IS_PYTORCH, "is_pytorch") /* PyTorch's default precision */                                                      \
    X(IS_EAGER, "is_eager")     /* attention, which is not fused */                                                    \
    X(IS_COMPILED, "is_compiled")                                                                                      \
    X(RECOMPUTES_BLOCKS, "recomputes_blocks")                                                                          \
    X(RECOMPUTES_SELECTIVELY, "recomputes_selectively")                                                                \
    X(ACCUMULATE, "accumulate")                                                                                        \
    X(LINK_GBPS, "link_gbps")                                                                                          \
    X(NETWORK_GBPS, "network_gbps")                                                                                    \
    X(NODE_COUNT, "node_count")                                                                                        \
    X(DATA_PARALLEL, "data_parallel")                                                                                  \
    X(TENSOR_PARALLEL, "tensor_parallel")                                                                              \
    X(PIPELINE_PARALLEL, "pipeline_parallel")                                                                          \
    X(EXPERT_PARALLEL, "expert_parallel")                                                                              \
    X(MICRO_BATCHES, "micro_batches")                                                                                  \
    X(ZERO_STAGE, "zero_stage")                                                                                        \
    X(TORCH, "torch") /* 0: the newest that the predictor knows */

/* What the prediction stands on; a bit set means less trust. Identifier, bit, name, text: names are kept, rows
 * appended. */
#define MDOT_WARNING_MAP(X)                                                                                            \
    X(UNKNOWN_OPERATOR, 0, "unknown-operators", "the job has operators that the predictor never saw")                  \
    X(OUTSIDE_TRAINING, 1, "outside-training",                                                                         \
      "batch, GPU, precision, software or loads lie beyond what the predictor was trained on")                         \
    X(SHORTENED, 2, "shortened", "operators were merged to fit the predictor's longest sequence")                      \
    X(FALLBACK, 3, "fallback", "a GPU failed to compute the prediction and the CPU did")                               \
    X(ANALYTIC_ESTIMATE, 4, "analytic-estimate",                                                                       \
      "the predictor has no input for part of what was asked; physics without a measurement stands in")                \
    X(IMPLAUSIBLE, 5, "implausible",                                                                                   \
      "the step would use more of the card's peak than programs reach, or next to nothing of it")                      \
    X(NO_PARAMETERS, 6, "no-parameters", "the job learns nothing: its graph was exported without its parameters")      \
    X(FOLDED, 7, "folded", "an exporter had folded BatchNormalizations into weights; the job has them again")          \
    X(MAYBE_FOLDED, 8, "maybe-folded",                                                                                 \
      "the job has convolutions and no normalisation, as if an exporter had folded it into the weights")               \
    X(BATCH_BELOW_DATA, 9, "batch-below-data", "the batch is smaller than any that was measured")                      \
    X(BATCH_ABOVE_DATA, 10, "batch-above-data", "the batch is larger than any that was measured")                      \
    X(OPERATORS_BEYOND_DATA, 11, "operators-beyond-data", "the job has operators larger than any that were measured")  \
    X(GPU_NOT_MEASURED, 12, "gpu-not-measured", "no step was measured on this card")                                   \
    X(PRECISION_NOT_MEASURED, 13, "precision-not-measured", "no step was measured in this precision")                  \
    X(SOFTWARE_NOT_MEASURED, 14, "software-not-measured", "no step was measured with this version of PyTorch")         \
    X(TYPES_NOT_MEASURED, 15, "types-not-measured", "the job has operators of types that were never measured")         \
    X(OPTIMIZER_OR_GPUS_NOT_MEASURED, 16, "optimizer-or-gpus-not-measured",                                            \
      "no step was measured with this optimizer, or none on several GPUs")

/* Why an answer is outside of what its predictor was trained on, as numbers of outside_training (below) say it: number,
 * warning. Append only. MDOT_WARN_OUTSIDE_TRAINING stands beside them. */
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

/* All that say why. */
enum {
#define MDOT_OUTSIDE_OR(number, id) | MDOT_WARN_##id
    MDOT_WARN_OUTSIDE_REASONS = 0 MDOT_OUTSIDE_MAP(MDOT_OUTSIDE_OR)
#undef MDOT_OUTSIDE_OR
};

/* "unknown-operators", and what it says in a sentence, of one MDOT_WARN_…; NULL for what is none. Static. */
const char *mdot_warning_name(uint32_t warning);
const char *mdot_warning_text(uint32_t warning);

typedef struct mdot_prediction {
    size_t struct_size;
    double step_ms;             /* one training step: forward and backward passes, optimizer; the median */
    double lower_ms, upper_ms;  /* 90 % interval */
    uint64_t peak_memory_bytes; /* on one GPU: weights, gradients, optimizer state and live activations, as PyTorch's
                                   allocator counts them; runtime/perf/peak_memory.c has the model */
    bool fits;                  /* that much is there beside the CUDA context and what error correction takes */
    uint32_t warnings;          /* MDOT_WARN_… */
    mdot_status status; /* of a call for many pairs: MDOT_OK, or why this one is not answered; then all else is 0 */
    uint32_t reserved;  /* 0 */
    /* What the answer can be judged by: */
    double parameters;       /* that the job learns */
    double flops_per_sample; /* of a step: forward and backward */
    double compute_share;    /* of the card's peak arithmetic at this precision that a step of step_ms makes use of */
    double memory_share;     /* of its memory's peak bandwidth, were each operator to read and write each tensor once */
    double unknown_share;    /* of the job's work, weighed as above, that operators of unknown types make up */
    /* What the peak memory is made of; the four add up to it but for fractions of a byte: */
    double weight_bytes, gradient_bytes, optimizer_bytes;
    double activation_bytes; /* and what else passes: half-precision copies of weights, or the optimizer's update */
} mdot_prediction;

/* A predictor of jobs is an artefact whose entry "predict" reads any of these inputs and no others, or one of two
 * entries (below). L is the number of rows; every number is as it stands, without logarithm or scale: normalisation
 * belongs into the predictor. But settings that no operator has are cut, so that f32 holds their products: size_in,
 * size_out and extent at 2^31, directions at 2, others at 2^24.
 *
 *   operator_type      i64 [L]      number of the type in ir/ops_job.def; 0 for types that have none
 *   operator_setting   f32 [L, 25]  MDOT_SETTING_MAP's order
 *   operator_load      f32 [L, 19]  per_sample: of each phase FLOPs, bytes read, bytes written; the same nine of
 *                                   per_step; parameters
 *   operator_position  f32 [L, 5]   index in the sequence, depth, height, input_count, out_degree
 *   operator_count     f32 [L]      operators that the row stands for; the other numbers are those of one
 *   configuration      f32 [26]     MDOT_CONFIGURATION_MAP's order; those behind is_adamw came with version 0.2
 *   gpu                f32 [11]     mdot_gpu's numbers
 *
 * Rows are those of one GPU: tensor parallelism divides loads and parameters, and a pipeline the counts of operators in
 * blocks (their loads, where counts are not read), which need not be whole then.
 *
 * Settings, positions, numbers of the configuration and of GPUs are appended from version to version: a predictor reads
 * as many of the first ones as there were when it was made, so that it goes on working. One that reads more than this
 * mdot has is INCOMPATIBLE, unless the metadata of its ONNX model says what the last ones are where there are none:
 * mdot.defaults.gpu = "1, 0.5" for two of the input gpu. Types grow, too: those whose number is not below the rows of
 * the table that it picks from by operator_type (140 where the artefact does not say) are 0 to it.
 *
 * Numbers of a configuration may be picked by name instead, any of them in any order, by each entry that reads them:
 * mdot.reads.configuration = "batch, is_amp, torch" makes the input f32 [3]. What a predictor does not read is
 * modelled, but for batch, layout, optimizer and the first precisions, without which it is told the same. What lies
 * between link_gbps and zero_stage it reads as a whole or is told nothing of.
 *
 * It answers with step_ms, f32 [3]: the 5 %, 50 % and 95 % quantile of the time of a step, ascending; and, if it likes,
 * with outside_training, f32 [1]: above 0 where its training data do not reach. f32 [2] to [8] say why, by the numbers
 * of MDOT_OUTSIDE_MAP, any of which may be above 0.
 *
 * In two pieces, entry "encode" reads of these what has rows, and its outputs, up to 16 tensors of any shape, are
 * inputs of entry "price", by name. Beside them "price" reads configuration f32 [26, C] and gpu f32 [11, C], a column
 * for each of C configurations of one batch, C up to 64, and answers with step_ms f32 [3, C] and outside_training f32
 * [C], or [2, C] to [8, C].
 * A column's answer must not depend on the others: where there are fewer configurations, columns hold earlier ones.
 *
 * An entry that reads operator_position gets the operators one by one in their order, any other a row for all that are
 * equal. Rows beyond the largest bucket are merged with their neighbours, cheap ones first, until they fit
 * (MDOT_WARN_SHORTENED). A merged row has type, settings and position of its most expensive operator, and their mean
 * load; an entry that does not read operator_count gets sums of loads throughout.
 *
 * The calls below return INVALID_ARGUMENT for a batch, a GPU or another field that is wrong, with its name;
 * INCOMPATIBLE, with the name of the tensor, for an artefact that is no predictor of jobs; MALFORMED where the
 * predictor answers with what is no positive number. */

/* One prediction. */
mdot_status mdot_predict(mdot_context *context, const mdot_job *job, const mdot_configuration *configuration,
                         mdot_prediction *out_prediction, mdot_error *err);

/* `count` (job, configuration) pairs at once; out_predictions[i] answers pair i. A pair that is wrong leaves the others
 * answered: its prediction says in `status` why, and the call returns the first such status, with the pair's number in
 * the message. A job is encoded once for its pairs in a row. */
mdot_status mdot_predict_many(mdot_context *context, const mdot_job *const *jobs,
                              const mdot_configuration *configurations, size_t count, mdot_prediction *out_predictions,
                              mdot_error *err);

/* One job under `count` configurations, the same otherwise. */
mdot_status mdot_sweep(mdot_context *context, const mdot_job *job, const mdot_configuration *configurations,
                       size_t count, mdot_prediction *out_predictions, mdot_error *err);

/* What a predictor knows of a job before it hears of any configuration, so that a job which is asked about again and
 * again is read once. Immutable: any number of threads may price it, each with a context of its own. */
typedef struct mdot_encoding mdot_encoding;

/* Of all of the job on one GPU. The job is lent until the encoding is destroyed; the predictor is kept until then, as
 * by a context. INCOMPATIBLE as for predictions, OUT_OF_MEMORY. */
mdot_status mdot_encoding_create(mdot_context *context, const mdot_job *job, mdot_encoding **out_encoding,
                                 mdot_error *err);
void mdot_encoding_destroy(mdot_encoding *encoding);

/* The encoded job under `count` configurations: as mdot_sweep, with the same answers. The context is any of the
 * predictor that encoded. Configurations of one micro-batch that follow each other cost little more than one of them;
 * those that divide the job over GPUs (tensor and pipeline parallelism) are encoded anew in every call. */
mdot_status mdot_evaluate(mdot_context *context, const mdot_encoding *encoding,
                          const mdot_configuration *configurations, size_t count, mdot_prediction *out_predictions,
                          mdot_error *err);

/* What an entry reads of a job: the tensors that the calls above hand to it, for programs that run an entry themselves
 * (mdot_run) or check it on real rows (mdotc_verify). It refers to neither job nor context, and keeps the predictor as
 * a context does. Immutable; any number of threads may read it. */
typedef struct mdot_job_inputs mdot_job_inputs;

/* Of entry point `entry` (an index), one of those that predict or explain jobs, under one configuration: what of it the
 * predictor does not read is left out as in mdot_predict, and "price" gets it in every column. Errors are
 * mdot_predict's; OUT_OF_RANGE for an entry that is not there, INCOMPATIBLE for one that reads no job, OUT_OF_MEMORY.
 * The caller destroys the result. */
mdot_status mdot_job_inputs_create(mdot_context *context, size_t entry, const mdot_job *job,
                                   const mdot_configuration *configuration, mdot_job_inputs **out_inputs,
                                   mdot_error *err);
void mdot_job_inputs_destroy(mdot_job_inputs *inputs);
/* Input `index` in the entry's order; what it points at is lent. OUT_OF_RANGE beyond the last. */
mdot_status mdot_job_inputs_get(const mdot_job_inputs *inputs, size_t index, mdot_input *out_input);

/* ---- Explanations: where a step's time and memory go ------------------------------------------------------------ */

typedef struct mdot_explanation mdot_explanation;

/* How far an explanation is no more than an estimate. */
enum {
    MDOT_EXPLAINED_BY_ROOFLINE = 1u << 0, /* the predictor does not say what its answer is made of (it has no entry
                                             "explain"): the step is divided as the card's peak rates would */
    MDOT_EXPLAINED_BY_MODEL =
        1u << 1 /* MDOT_WARN_ANALYTIC_ESTIMATE: times of operators were moved as their rooflines do */
};

/* Of one GPU; of a pipeline the one that does most. The seven times add up to step_ms, of which the first four are the
 * operators'; the four sizes add up to the prediction's peak memory. */
typedef struct mdot_explanation_info {
    size_t struct_size;
    size_t operator_count; /* the job's */
    double step_ms;        /* mdot_prediction's */
    double forward_ms;
    double data_gradient_ms; /* with what is computed again for it */
    double weight_gradient_ms;
    double optimizer_ms;
    double host_ms;          /* that the GPU waits for the host, which starts its kernels */
    double communication_ms; /* that it waits for what GPUs exchange */
    double idle_ms;          /* that a stage of a pipeline waits for others, while that fills and empties */
    double weight_bytes, gradient_bytes, optimizer_bytes, activation_bytes; /* mdot_prediction's */
    uint32_t approximate;                                                   /* MDOT_EXPLAINED_…; 0: as predicted */
    uint32_t reserved;                                                      /* 0 */
} mdot_explanation_info;

/* An operator's part. Activations are those of its tensors that are there when memory is at its peak. */
typedef struct mdot_operator_time {
    size_t struct_size;
    double forward_ms, data_gradient_ms, weight_gradient_ms, optimizer_ms;
    double weight_bytes, gradient_bytes, optimizer_bytes, activation_bytes;
} mdot_operator_time;

/* Says of one prediction where its time and its memory go. Allocates, and is not meant for a loop. The caller destroys
 * the explanation, which any number of threads may read. Errors are mdot_predict's, and OUT_OF_MEMORY.
 *
 * An artefact that explains has a second entry, "explain", which reads inputs as "predict" does and answers with
 *
 *   operator_ms  f32 [L, 3]  of all operators of a row: forward, data gradient, weight gradient
 *   other_ms     f32 [3]     what is no operator's: optimizer, waiting for the host, waiting for other GPUs
 *
 * none of them negative, which add up to the median of step_ms. weights/training/predictor/deploy_graphs.py makes such a
 * graph of the shipped predictor's. */
mdot_status mdot_explain(mdot_context *context, const mdot_job *job, const mdot_configuration *configuration,
                         mdot_explanation **out_explanation, mdot_error *err);
void mdot_explanation_destroy(mdot_explanation *explanation);
mdot_status mdot_explanation_get_info(const mdot_explanation *explanation, mdot_explanation_info *out_info);
/* `index` is the operator's in the job. */
mdot_status mdot_explanation_get_operator(const mdot_explanation *explanation, size_t index,
                                          mdot_operator_time *out_share);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
