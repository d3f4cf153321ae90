/* mdot_predict.h — describe GPUs and training configurations, and predict how long a training step of a job takes.
 *
 * mdot.h includes this header and states the rules of the whole library: ownership, threading, memory, errors.
 */
#ifndef MDOT_PREDICT_H
#define MDOT_PREDICT_H

#include "mdot_job.h"

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/* Number formats of a training step. */
typedef enum mdot_precision {
    MDOT_PRECISION_FP32,     /* fp32 everywhere, without tensor cores */
    MDOT_PRECISION_TF32,     /* fp32 tensors, whose matmuls and convolutions round their factors to tf32 */
    MDOT_PRECISION_AMP,      /* autocast to fp16: weights, gradients and the optimizer's state stay fp32 */
    MDOT_PRECISION_AMP_BF16, /* autocast to bf16; GPUs below compute capability 8.0 emulate bf16 matmuls in fp32 */
    MDOT_PRECISION_BF16,     /* bf16 for weights, gradients, the optimizer's state and activations, without autocast */
    MDOT_PRECISION_PYTORCH,  /* the program's formats if the job has them (mdot_program.h); otherwise PyTorch's
                              * default: fp32, and tf32 in convolutions if the GPU has TF32 */
    /* Weights and activations in half precision; the optimizer updates fp32 weights. Below ZeRO stage 3, a GPU has
     * both (DeepSpeed, Megatron), and gradients are in half precision. At stage 3 it has a shard of the fp32 weights
     * and gradients, and gathers weights in half precision (FSDP's MixedPrecision). */
    MDOT_PRECISION_MIXED_BF16,
    MDOT_PRECISION_MIXED_FP16, /* the same as MIXED_BF16, in fp16 */
    /* MIXED_BF16 with FP8 operands in the matmuls of linear layers, as torchao's float8 training, with a scale per
     * tensor. The operands are cast before each matmul; tensors stay in bf16. INVALID_ARGUMENT for a GPU that lacks FP8
     * (mdot_gpu.fp8_tflops). */
    MDOT_PRECISION_FP8,
    MDOT_PRECISION_FP8_ROWWISE,                  /* FP8 with a scale per row */
    MDOT_PRECISION_MXFP8,                        /* FP8 with a scale per 32 elements (MX formats, from Blackwell on) */
    MDOT_PRECISION_AMP_FP16 = MDOT_PRECISION_AMP /* another name of AMP */
} mdot_precision;

/* Memory layout of images: batch (N), channels (C), height (H) and width (W), the last one contiguous. */
typedef enum mdot_layout {
    MDOT_LAYOUT_NCHW, /* PyTorch's contiguous_format */
    MDOT_LAYOUT_NHWC  /* PyTorch's channels_last, which tensor cores prefer */
} mdot_layout;

/* Kernels of attention. */
typedef enum mdot_attention {
    MDOT_ATTENTION_PROGRAM, /* the kernels that the job's program called; FLASH if the job lacks them */
    MDOT_ATTENTION_EAGER,   /* matmuls and a softmax, each a separate kernel */
    MDOT_ATTENTION_FLASH    /* one kernel that keeps its scores out of memory, such as FlashAttention; PyTorch's
                             * scaled_dot_product_attention uses it by default */
} mdot_attention;

/* Parts of the forward pass that are recomputed in the backward pass, so that their results need not be kept. */
typedef enum mdot_recompute {
    MDOT_RECOMPUTE_NOTHING,  /* all results that the backward pass needs are kept */
    MDOT_RECOMPUTE_BLOCKS,   /* each block except its inputs, as by torch.utils.checkpoint around every block; refused
                              * for a job without blocks */
    MDOT_RECOMPUTE_SELECTIVE /* everything except matmuls, convolutions and attention */
} mdot_recompute;

/* Kernels of the update by SGD, Adam and AdamW. The other optimizers have one implementation each. */
typedef enum mdot_optimizer_kernels {
    MDOT_OPTIMIZER_KERNELS_DEFAULT, /* FOREACH, as PyTorch; FUSED in mixed precision below ZeRO stage 3 */
    MDOT_OPTIMIZER_KERNELS_FOREACH, /* one kernel for each operation of the formula, over lists of tensors */
    MDOT_OPTIMIZER_KERNELS_FUSED,   /* one kernel for the whole formula, over lists of tensors */
    MDOT_OPTIMIZER_KERNELS_FOR_LOOP /* one kernel for each operation of the formula and each tensor */
} mdot_optimizer_kernels;

/* Type of gradients. */
typedef enum mdot_number {
    MDOT_NUMBER_DEFAULT, /* that of the precision: the type of the weights that the backward pass reads */
    MDOT_NUMBER_FP32,    /* fp32 */
    MDOT_NUMBER_HALF     /* fp16 or bf16 */
} mdot_number;

/* Parts of the training's state that are in host memory. The update then runs on the host (DeepSpeed's CPUAdam), except
 * for PAGES: managed memory, whose pages the GPU reads and the driver evicts when the GPU is full (bitsandbytes). */
typedef enum mdot_offload {
    MDOT_OFFLOAD_NOTHING,    /* everything is in GPU memory */
    MDOT_OFFLOAD_OPTIMIZER,  /* the optimizer's state */
    MDOT_OFFLOAD_PARAMETERS, /* also weights and gradients; needs ZeRO stage 3 */
    MDOT_OFFLOAD_PAGES       /* pages of the optimizer's state that do not fit the GPU */
} mdot_offload;

/* Type of frozen weights of matmuls. */
typedef enum mdot_frozen {
    MDOT_FROZEN_UNCHANGED, /* the type that the precision gives all weights */
    MDOT_FROZEN_INT8,      /* one byte, and a scale per row */
    MDOT_FROZEN_NF4,       /* half a byte, with doubly quantised scales of 64 weights (QLoRA) */
    MDOT_FROZEN_NF4_SINGLE /* half a byte, with fp32 scales of 64 weights (without double quantisation) */
} mdot_frozen;

/* Kernels of the cross-entropy at the end of a job. */
typedef enum mdot_loss {
    MDOT_LOSS_WHOLE,   /* all logits at once, in fp32 */
    MDOT_LOSS_CHUNKED, /* keeps the logits as the matmul writes them, and converts an eighth of them to fp32 at a time
                        * (torchtune's CEWithChunkedOutputLoss) */
    MDOT_LOSS_FUSED /* computes logits, loss and gradients of a part of the tokens at a time: hidden size / vocabulary
                        * of them (Liger's FusedLinearCrossEntropy) */
} mdot_loss;

/* Schedule of a pipeline of p stages. */
typedef enum mdot_schedule {
    MDOT_SCHEDULE_1F1B,       /* one forward and one backward pass in turn. A stage waits (p - 1) / virtual_stages
                               * micro-steps for others */
    MDOT_SCHEDULE_ZERO_BUBBLE /* a third of this wait, because gradients of weights fill the gaps (ZB-H1) */
} mdot_schedule;

/* Kind of step that is predicted. */
typedef enum mdot_mode {
    MDOT_MODE_TRAIN,    /* a training step: forward and backward passes, and the optimizer's update */
    MDOT_MODE_INFERENCE /* a forward pass in evaluation, without gradients, on one GPU */
} mdot_mode;

/* Link between the GPUs of a node. Rates are per GPU, outgoing, in one direction. */
typedef enum mdot_link {
    MDOT_LINK_DEFAULT, /* NVLink on GPU models that include it (mdot_gpu.nvlink_gbps), PCIe on others. A predictor
                        * that reads gpu_count and ignores links assumes the links of its training data */
    MDOT_LINK_PCIE,    /* PCIe, also on GPU models that include NVLink */
    MDOT_LINK_NVLINK   /* INVALID_ARGUMENT for a GPU whose nvlink_gbps is 0 */
} mdot_link;

/* Spec values of a GPU. runtime/job/gpus.def holds the table with its sources and defines the columns. Rates are
 * dense, at boost clock; a multiply-add counts as two. In a configuration, each value must be 1e-6 to 1e9, or 0 if
 * allowed below. INVALID_ARGUMENT names the invalid field. */
typedef struct mdot_gpu {
    size_t struct_size;
    const char *name;                       /* printable UTF-8, or NULL */
    double compute_capability;              /* for example 8.6 */
    double sm_count, boost_mhz;             /* streaming multiprocessors or compute units; MHz of fp32 operations */
    double memory_gib, memory_gbps, l2_mib; /* GiB as sold; 10^9 bytes per second; MiB of level-2 cache */
    double fp32_tflops, tf32_tflops, fp16_tflops; /* 10^12/s in CUDA cores; in tensor cores; in tensor cores */
    double nvlink_gbps;                           /* 0: the GPU lacks NVLink */
    double pcie_gbps;                             /* 0: unknown; assumed to be PCIe 4 with 16 lanes */
    double watts;                                 /* power limit, which may lower the clock; 0: unlimited */
    double fp8_tflops;                            /* 0: the GPU lacks FP8 */
} mdot_gpu;

/* Returns the names of the GPU table.
 *
 * @return names, terminated by NULL; static
 */
const char *const *mdot_gpu_names(void);
/* Finds a GPU by its name. Case, blanks, hyphens and underscores are ignored.
 *
 * @param name one of mdot_gpu_names, an alias ("A100" is the SXM model of 40 GB), or the driver's name for it
 * @param out_gpu receives the spec values; its name is static
 * @errors INVALID_ARGUMENT names the five most similar GPUs
 */
mdot_status mdot_gpu_find(const char *name, mdot_gpu *out_gpu, mdot_error *err);

/* Training configuration. Zero selects the default of every field except batch and GPU.
 *
 * Fields for which a predictor lacks an input (below) are estimated analytically. The predictor answers for the
 * nearest configuration that it knows. Its answer is multiplied by ratios of roofline times, of the requested
 * configuration over the queried one. (A different choice of kernels changes at most the part of the answer that may
 * be GPU time.) The time of exchanges between GPUs, at the rates below, is added. The interval widens by a quarter of
 * the analytic change, as a logarithm, and MDOT_WARN_ANALYTIC_ESTIMATE is set. The estimates are in
 * runtime/predict/analytic_correction.c and runtime/perf/peak_memory.c.
 *
 * Parallelism: the five degrees multiply to gpu_count. If all are 0, every GPU is a data-parallel worker. Tensor
 * parallelism is Megatron's: matmuls are sharded by columns and by rows in turn, together with the operators between
 * them, and their results are summed (runtime/perf/sharding.c). Expert parallelism distributes the experts of a
 * mixture, and the tokens to them. Its GPUs have separate batches, like data-parallel workers
 * (runtime/perf/experts.c). A pipeline gives every GPU the same number of blocks and alternates one forward and one
 * backward pass (1F1B). Context parallelism divides each sequence. Its GPUs pass keys and values around a ring, and
 * hold the same weights. Neighbours in a node are tensor-parallel first, then context-parallel, then expert-parallel,
 * then data-parallel, then stages of the pipeline.
 */
typedef struct mdot_configuration {
    size_t struct_size;
    int64_t batch;            /* samples of one forward and backward pass of a data-parallel worker, 1 to 2^24 */
    const char *gpu;          /* name of a known GPU model, as mdot_gpu_find reads it; NULL if gpu_spec is set */
    const mdot_gpu *gpu_spec; /* spec values of the GPU, for a model that mdot lacks or from mdot_gpu_find; NULL if gpu
                               * is set */
    int gpu_count;            /* number of GPUs that work on a step, up to 2^16; 0: the product of the degrees of
                               * parallelism, or 1 */
    mdot_precision precision; /* number formats; bf16 includes the weights, mixed-bf16 and mixed-fp16 compute with
                               * half-precision weights and update fp32 ones, fp8, fp8-rowwise and mxfp8 are
                               * mixed-bf16 with FP8 operands of linear layers, and pytorch is the program's, or
                               * fp32 with tf32 in convolutions */
    mdot_layout layout;       /* memory layout of images; from PyTorch 2.1 on, torch.compile chooses that of most
                               * networks itself */
    mdot_optimizer optimizer; /* optimizer that updates the parameters */
    mdot_attention attention; /* kernels of attention: those that the program called (program), matmuls and a softmax
                               * (eager), or one fused kernel (flash) */
    mdot_recompute recompute; /* parts of the forward pass that are recomputed in the backward pass */
    uint32_t compiled;        /* compiled by torch.compile, which fuses operators other than matmuls; it needs PyTorch
                               * 2.0. 0 or 1 */
    uint32_t accumulate;    /* passes whose gradients are added up before the optimizer's step, up to 2^16; 0 means 1 */
    mdot_link link;         /* link between the GPUs of a node */
    uint32_t node_count;    /* number of nodes, each with the same number of GPUs, up to 2^16; 0 means 1 */
    double link_gbps;       /* rate that collectives reach between GPUs of a node, in GB/s (10^9 bytes per second), 1e-6
                          * to 1e9; 0: .8 of NVLink's rate, .4 of PCIe's */
    double network_gbps;    /* rate that collectives reach between nodes, per GPU, in GB/s, 1e-6 to 1e9; 0: 20, for
                          * InfiniBand of 200 Gbit/s */
    uint32_t data_parallel; /* degree of data parallelism: groups of GPUs with a batch each, up to 2^16; 0: the
                                 * number of GPUs divided by the other degrees */
    uint32_t tensor_parallel;   /* degree of tensor parallelism: GPUs among which each matmul is sharded, up to 2^16;
                                 * 0 means 1 */
    uint32_t pipeline_parallel; /* degree of pipeline parallelism: stages among which the blocks are divided, up to
                                 * 2^16; 0 means 1 */
    uint32_t expert_parallel;   /* degree of expert parallelism: GPUs among which the experts of each layer are
                                 * sharded, up to 2^16; 0 means 1. INVALID_ARGUMENT for a job without experts, which are
                                 * matmuls with several matrices behind a TopK in their block */
    uint32_t micro_batches;     /* number of micro-batches of a pipeline, up to 2^16; 0: the number of stages */
    uint32_t zero_stage;        /* ZeRO stage: shards the optimizer state (1), also the gradients (2), also the weights
                                 * (3). 0 to 3 */
    uint32_t torch; /* PyTorch's version, for example 2.4, as 100 * major + minor: 1.12 is 112, 2.4 is 204; 0: the
                        * newest that the predictor knows. A predictor that ignores it answers for the software that it
                        * was made with and sets MDOT_WARN_SOFTWARE_NOT_MEASURED */
    mdot_mode mode; /* what a step is: a training step, or a forward pass in evaluation (inference), which has
                        * neither gradients nor an optimizer and runs on one GPU. INVALID_ARGUMENT for inference with
                        * options of the backward pass or of the update, and for several GPUs */
    /* Added in version 0.3: */
    mdot_optimizer_kernels optimizer_kernels; /* kernels of the update by sgd, adam and adamw: over lists of tensors
                                               * (foreach), one fused kernel, or one tensor after the other
                                               * (for-loop) */
    uint32_t step_in_backward; /* update of each parameter in the backward pass, as soon as its gradient exists; it
                                * needs a single pass per step. 0 or 1 */
    mdot_number gradient_type; /* type of the gradients that a GPU keeps; fp32 in mixed precision is Megatron's main
                                * gradients, which are never freed. HALF needs weights in half precision */
    mdot_number reduce_type; /* type in which gradients are summed over GPUs; half beside fp32 gradients is DeepSpeed's
                                 * BF16_Optimizer, which keeps both */
    mdot_offload offload;    /* parts that are kept in host memory and updated there: the optimizer's state, or also
                                * weights and gradients, which needs ZeRO stage 3; or pages of the optimizer's state
                                * that do not fit the GPU, which updates them */
    mdot_frozen frozen_weights; /* type of the frozen weights of matmuls, which are dequantised before each use */
    uint32_t ema;               /* moving average of the weights, an fp32 copy that each step updates. 0 or 1 */
    uint32_t keep_gathered;     /* weights that ZeRO stage 3 gathered in the forward pass stay until the backward pass,
                                 * as by FSDP2's reshard_after_forward=False. 0 or 1 */
    uint32_t context_parallel;  /* degree of context parallelism: GPUs among which each sequence is divided, up to 2^16;
                                 * 0 means 1. INVALID_ARGUMENT for a job without attention */
    uint32_t
        sequence_parallel;   /* sequence parallelism beside tensor parallelism: tensors that it replicates are divided
                                 * by sequence. 0 to 1 */
    uint32_t virtual_stages; /* number of parts of an interleaved pipeline that each GPU has, up to 2^16; 0 means 1 */
    mdot_schedule schedule;  /* schedule of a pipeline: one forward and one backward pass in turn (1f1b), or with
                                 * gradients of weights in the gaps (zero-bubble, ZB-H1) */
    uint32_t offload_activations; /* saved tensors of each block move to host memory, and back for its backward pass. 0
                                   * or 1. INVALID_ARGUMENT for a job without blocks */
    mdot_loss loss; /* kernels of the cross-entropy: on all logits (whole), in eight parts (chunked), or fused with the
                     * matmul before it, as Liger's. INVALID_ARGUMENT for CHUNKED and FUSED if the job has no
                     * cross-entropy */
    double power_limit; /* power limit of each GPU in watts, which may lower its clock, 1e-6 to 1e9; 0: the GPU's own.
                         * INVALID_ARGUMENT above that, below a fifth of it, and if the GPU's watts are 0 */
    double host_launch_us;    /* time in which the host launches one phase of an operator, in microseconds, which bounds
                            * small batches, 1e-6 to 1e9; 0: that of the hosts that the predictor was trained on, 50
                            * µs with the shipped one, and 30 in inference. Interpreter, framework and driver are
                            * included */
    uint32_t whole_gradients; /* gradients of several passes stay whole on each GPU until the last pass sums them over
                               * GPUs, as by FSDP's no_sync. 0 or 1. It needs ZeRO stage 3 */
    uint32_t reserved;        /* must be 0 */
} mdot_configuration;

/* The numbers of a configuration that predictors read (below), by name. Append only. is_… and recomputes_… are 1 or
 * 0. If several describe the same precision, the later one is more specific: is_amp_bf16 or is_bf16 implies is_amp,
 * and is_pytorch implies is_fp32. */
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
    X(IS_EAGER, "is_eager")     /* attention is decomposed */                                                          \
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
    X(TORCH, "torch") /* 0: the newest that the predictor knows */                                                     \
    X(IS_INFERENCE, "is_inference")                                                                                    \
    X(HOST_LAUNCH_US, "host_launch_us") /* 0: that of the predictor's hosts */

/* Warnings of a prediction. A bit that is set lowers its reliability. Identifier, bit, name, text: names are
 * permanent, rows are appended. */
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
    X(GPU_NOT_MEASURED, 12, "gpu-not-measured", "the training data lack steps on this GPU model")                      \
    X(PRECISION_NOT_MEASURED, 13, "precision-not-measured", "the training data lack steps in this precision")          \
    X(SOFTWARE_NOT_MEASURED, 14, "software-not-measured", "the training data lack steps with this version of PyTorch") \
    X(TYPES_NOT_MEASURED, 15, "types-not-measured", "the job has operator types that the training data lack")          \
    X(OPTIMIZER_OR_GPUS_NOT_MEASURED, 16, "optimizer-or-gpus-not-measured",                                            \
      "the training data lack steps with this optimizer, or steps on several GPUs")                                    \
    X(DIFFERS_FROM_PROGRAM, 17, "differs-from-program",                                                                \
      "the requested precision or attention differs from that of the traced program")

/* Reasons why an answer is outside of its predictor's training data, as numbered by the output outside_training
 * (below): number, warning. Append only. MDOT_WARN_OUTSIDE_TRAINING is set together with them. */
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

/* Returns the name of a warning (MDOT_WARNING_MAP).
 *
 * @param warning one bit of mdot_prediction.warnings
 * @return for example "unknown-operators"; NULL for an unknown warning; static
 */
const char *mdot_warning_name(uint32_t warning);
/* Returns the explanation of a warning.
 *
 * @param warning one bit of mdot_prediction.warnings
 * @return a sentence; NULL for an unknown warning; static
 */
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

/* Returns the name of a bound that an implausible step breaks (MDOT_IMPLAUSIBLE_MAP).
 *
 * @param implausible mdot_prediction.implausible
 * @return for example "too-slow"; NULL for 0 and for an unknown number; static
 */
const char *mdot_implausible_name(uint32_t implausible);
/* Returns the explanation of such a bound.
 *
 * @param implausible mdot_prediction.implausible
 * @return a sentence; NULL for 0 and for an unknown number; static
 */
const char *mdot_implausible_text(uint32_t implausible);

/* The answer to one question: time, memory, plausibility and energy of a step. */
typedef struct mdot_prediction {
    size_t struct_size;
    double step_ms;             /* median time of one training step: forward and backward passes, optimizer; or of one
                                 * forward pass, if the mode is inference */
    double lower_ms, upper_ms;  /* 90 % interval */
    uint64_t peak_memory_bytes; /* on one GPU: weights, gradients, optimizer state and live activations, as PyTorch's
                                 * allocator counts them; see runtime/perf/peak_memory.c */
    bool fits;                  /* reserved_bytes are at most usable_bytes */
    uint32_t warnings;          /* MDOT_WARN_… */
    mdot_status status; /* in a call for many pairs: MDOT_OK, or the reason why this pair failed; all other fields are
                         * 0 then */
    /* Plausibility of the answer: */
    uint32_t implausible;    /* MDOT_IMPLAUSIBLE_…, the bound that the answer breaks; 0: none */
    double parameters;       /* number of trainable parameters of the job */
    double flops_per_sample; /* FLOPs of a step: forward and backward; forward only if the mode is inference */
    double compute_share;    /* utilisation of the GPU's peak FLOP rate at this precision, at a step time of step_ms */
    double memory_share;     /* utilisation of the GPU's peak memory bandwidth, if each operator reads and writes each
                              * tensor once */
    double unknown_share;    /* fraction of the job's estimated cost that operators of unknown types take */
    /* Parts of the peak memory on one GPU; the four add up to it except for fractions of a byte: */
    double weight_bytes;     /* parameters and buffers of the model */
    double gradient_bytes;   /* gradients of the parameters that are allocated at the peak */
    double optimizer_bytes;  /* the optimizer's state */
    double activation_bytes; /* and other temporary memory: half-precision copies of weights, or the optimizer's
                              * update */
    uint64_t memory_lower_bytes, memory_upper_bytes; /* 90 % interval of peak_memory_bytes; its width follows from
                                                      * the way in which the job was made:
                                                      * runtime/perf/memory_error.def */
    /* Memory that the process takes from the GPU, as nvidia-smi shows it: peak_memory_bytes and four estimates, which
     * runtime/perf/reserved_memory.c explains: */
    uint64_t reserved_bytes;
    uint64_t usable_bytes;   /* of the GPU: memory as sold without the driver's part and error correction */
    double rounding_bytes;   /* rounding and fragmentation of PyTorch's caching allocator */
    double context_bytes;    /* CUDA context and code */
    double workspace_bytes;  /* workspaces of cuBLAS and cuDNN */
    double collective_bytes; /* NCCL's buffers; 0 on one GPU */
    /* Energy, from the utilisation of the GPU and its power limit: runtime/perf/power.c. 0 if the GPU's watts are
     * unknown. Measured averages of ResNet-50 on three GPU models are within 12 %: */
    double average_watts; /* of one GPU */
    double energy_joules; /* of a step on all GPUs, without the rest of the machine */
} mdot_prediction;

/* A predictor of jobs is an artefact whose entry "predict" reads any of these inputs and no others, or an artefact
 * with two entries (below). L is the number of rows. Numbers are raw, without logarithm or scale, because
 * normalisation belongs to the predictor. Extreme attributes are clamped so that f32 holds their products: size_in,
 * size_out and extent at 2^31, directions at 2, others at 2^24.
 *
 *   operator_type      i64 [L]      type id in ir/ops_job.def; 0 for types that have none
 *   operator_setting   f32 [L, 25]  MDOT_SETTING_MAP's order
 *   operator_load      f32 [L, 19]  per_sample: of each phase FLOPs, bytes read, bytes written; the same nine of
 *                                   per_step; parameters
 *   operator_position  f32 [L, 5]   index in the sequence, depth, height, input_count, out_degree
 *   operator_count     f32 [L]      number of operators of the row; the other numbers are those of one operator
 *   configuration      f32 [28]     MDOT_CONFIGURATION_MAP's order; those behind is_adamw were added in version 0.2
 *   gpu                f32 [11]     mdot_gpu's numbers
 *
 * Rows describe one GPU. Tensor parallelism divides FLOPs, bytes and parameters. A pipeline divides the counts of
 * operators in blocks, which may become fractions then; if counts are not read, it divides their FLOPs and bytes.
 *
 * Later versions append attributes, positions, and numbers of the configuration and of GPUs. A predictor reads the
 * first ones, as many as existed when it was made, so that it keeps working. A predictor that reads more than this
 * mdot has is INCOMPATIBLE, unless the metadata of its ONNX model gives defaults for the last ones: for example,
 * mdot.defaults.gpu = "1, 0.5" for two of the input gpu. Types grow, too. If a type id is at least the number of rows
 * of the table that the predictor indexes by operator_type (140 if the artefact omits it), the predictor gets 0.
 *
 * An entry may select numbers of a configuration by name instead, any of them in any order. For example,
 * mdot.reads.configuration = "batch, is_amp, torch" makes the input f32 [3]. Numbers that the predictor does not read
 * are estimated analytically, except batch, layout, optimizer and the first precisions, which are then ignored. The
 * numbers from link_gbps to zero_stage are passed only to a predictor that reads all of them.
 *
 * The output step_ms, f32 [3], is the 5 %, 50 % and 95 % quantile of the step time, ascending. The optional output
 * outside_training, f32 [1], is above 0 for an input outside of the training data. As f32 [2] to [8], it gives the
 * reasons by the numbers of MDOT_OUTSIDE_MAP, any of which may be above 0.
 *
 * In a predictor with two entries, "encode" reads the inputs that have rows. Its outputs, up to 16 tensors of any
 * shape, are inputs of the entry "evaluate", by name. "evaluate" also reads configuration f32 [28, C] and
 * gpu f32 [11, C], with one column for each of C configurations of one batch, C up to 64. Its outputs are step_ms
 * f32 [3, C] and outside_training f32 [C], or [2, C] to [8, C]. A column's answer must be independent of the other
 * columns. If there are fewer than C configurations, the remaining columns hold earlier ones.
 *
 * An entry that reads operator_position gets the operators one by one in their order; any other entry gets one row
 * for all equal operators. If there are more rows than the largest bucket holds, rows are merged with their
 * neighbours, cheap ones first, until they fit (MDOT_WARN_SHORTENED). A merged row has the type, attributes and
 * position of its most expensive operator, and the mean FLOPs and bytes. An entry that ignores operator_count gets
 * sums of FLOPs and bytes throughout.
 */

/* Predicts one job under one configuration.
 *
 * @param configuration how the job trains
 * @param out_prediction receives the answer
 * @errors INVALID_ARGUMENT names a batch, a GPU or another field that is invalid; INCOMPATIBLE names the tensor by
 *     which an artefact is no predictor of jobs; MALFORMED if the predictor's answer is not a positive number
 */
mdot_status mdot_predict(mdot_context *context, const mdot_job *job, const mdot_configuration *configuration,
                         mdot_prediction *out_prediction, mdot_error *err);

/* Predicts many (job, configuration) pairs. A pair that fails leaves the others answered. Consecutive pairs of one job
 * encode it once.
 *
 * @param jobs one job for each pair; they may repeat
 * @param configurations one for each pair
 * @param count number of pairs
 * @param out_predictions out_predictions[i] receives the answer of pair i; its `status` is the reason of a failure
 * @errors those of mdot_predict: the first failed pair's status, with its index in the message
 */
mdot_status mdot_predict_many(mdot_context *context, const mdot_job *const *jobs,
                              const mdot_configuration *configurations, size_t count, mdot_prediction *out_predictions,
                              mdot_error *err);

/* Predicts one job under many configurations. A configuration that fails leaves the others answered, as in
 * mdot_predict_many.
 *
 * @param configurations how the job trains
 * @param count number of configurations
 * @param out_predictions out_predictions[i] receives the answer of configuration i
 * @errors those of mdot_predict_many
 */
mdot_status mdot_sweep(mdot_context *context, const mdot_job *job, const mdot_configuration *configurations,
                       size_t count, mdot_prediction *out_predictions, mdot_error *err);

/* Cached features of a job: the part of the predictor's computation that is independent of the configuration. Use it
 * for a job that is predicted repeatedly, because the job is then read only once. Immutable.
 *
 * @threads any number may share an encoding, each with its own context
 */
typedef struct mdot_encoding mdot_encoding;

/* Encodes all of the job on one GPU. The job must outlive the encoding, which borrows it. The encoding keeps the
 * predictor alive, as a context does.
 *
 * @errors INCOMPATIBLE as for predictions, OUT_OF_MEMORY
 */
mdot_status mdot_encoding_create(mdot_context *context, const mdot_job *job, mdot_encoding **out_encoding,
                                 mdot_error *err);
/* Destroys an encoding.
 *
 * @param encoding NULL is accepted
 */
void mdot_encoding_destroy(mdot_encoding *encoding);

/* Evaluates the encoded job under `count` configurations, with the same answers as mdot_sweep. The context may be any
 * of the predictor that encoded it. Consecutive configurations of one micro-batch cost little more than a single one.
 * Configurations that divide the job over GPUs (tensor and pipeline parallelism) are encoded anew in every call.
 *
 * @param configurations how the job trains
 * @param count number of configurations
 * @param out_predictions out_predictions[i] receives the answer of configuration i
 * @errors those of mdot_predict_many; INVALID_ARGUMENT for a context of another predictor
 */
mdot_status mdot_evaluate(mdot_context *context, const mdot_encoding *encoding,
                          const mdot_configuration *configurations, size_t count, mdot_prediction *out_predictions,
                          mdot_error *err);

/* Inputs of an entry for a job: the tensors that the calls above pass to the entry, for programs that run an entry
 * themselves (mdot_run) or check it on features of real jobs (mdotc_verify). The object is independent of job and
 * context. It keeps the predictor alive, as a context does. Immutable.
 *
 * @threads any number may share the inputs
 */
typedef struct mdot_job_inputs mdot_job_inputs;

/* Creates the inputs of an entry point, which predicts or explains jobs, under one configuration. As in mdot_predict,
 * parts of the configuration that the predictor does not read are left out; "evaluate" gets the configuration in every
 * column.
 *
 * @param entry index of the entry point
 * @param configuration how the job trains
 * @errors those of mdot_predict; OUT_OF_RANGE for an invalid entry; INCOMPATIBLE for an entry that reads other inputs
 *     than a job's; OUT_OF_MEMORY
 */
mdot_status mdot_job_inputs_create(mdot_context *context, size_t entry, const mdot_job *job,
                                   const mdot_configuration *configuration, mdot_job_inputs **out_inputs,
                                   mdot_error *err);
/* Destroys the inputs.
 *
 * @param inputs NULL is accepted
 */
void mdot_job_inputs_destroy(mdot_job_inputs *inputs);
/* Returns an input in the entry's order.
 *
 * @param index index of the input
 * @param out_input receives the tensor; its pointers are borrowed from `inputs`
 * @errors OUT_OF_RANGE beyond the last; INVALID_ARGUMENT for NULL
 */
mdot_status mdot_job_inputs_get(const mdot_job_inputs *inputs, size_t index, mdot_input *out_input);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
