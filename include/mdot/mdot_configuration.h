/* mdot_configuration.h — describe GPUs, and how a job trains on them.
 *
 * mdot.h includes this header and states the library's rules: ownership, threading, memory, errors. */
#ifndef MDOT_CONFIGURATION_H
#define MDOT_CONFIGURATION_H

#include "mdot_job.h"

MDOT_BEGIN_DECLARATIONS

/* Number formats of a training step. */
typedef enum mdot_precision {
    MDOT_PRECISION_FP32,     /* fp32 everywhere, without tensor cores */
    MDOT_PRECISION_TF32,     /* fp32 tensors, whose matmuls and convolutions round their factors to tf32 */
    MDOT_PRECISION_AMP,      /* autocast to fp16: weights, gradients and the optimizer's state stay fp32 */
    MDOT_PRECISION_AMP_BF16, /* autocast to bf16; GPUs below compute capability 8.0 emulate bf16 matmuls in fp32 */
    MDOT_PRECISION_BF16,     /* bf16 for weights, gradients, the optimizer's state and activations, without autocast */
    /* the program's formats if the job has them (mdot_program.h); otherwise PyTorch's default: fp32, and tf32 in
     * convolutions if the GPU has TF32 */
    MDOT_PRECISION_PYTORCH,
    /* Half-precision weights and activations beside fp32 weights for the update. Below ZeRO stage 3, a GPU has both,
     * and half-precision gradients (DeepSpeed, Megatron); at stage 3, fp32 shards gathered in half precision (FSDP) */
    MDOT_PRECISION_MIXED_BF16,
    MDOT_PRECISION_MIXED_FP16, /* the same as MIXED_BF16, in fp16 */
    /* MIXED_BF16 whose linear layers cast operands to FP8 before each matmul, with one scale per tensor (torchao).
     * INVALID_ARGUMENT for a GPU without FP8 (mdot_gpu.fp8_tflops) */
    MDOT_PRECISION_FP8,
    MDOT_PRECISION_FP8_ROWWISE,   /* FP8 with a scale per row */
    MDOT_PRECISION_MXFP8,         /* FP8 with a scale per 32 elements (MX formats, from Blackwell on) */
    MDOT_PRECISION_FP8_BLOCKWISE, /* FP8 with a scale per 128 elements, and per 128 x 128 of weights, from Hopper on */
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
    /* one kernel without scores in memory, such as FlashAttention; PyTorch's scaled_dot_product_attention */
    MDOT_ATTENTION_FLASH
} mdot_attention;

/* What launches the kernels. */
typedef enum mdot_framework {
    MDOT_FRAMEWORK_PROGRAM,            /* the job's program decides, otherwise PyTorch */
    MDOT_FRAMEWORK_PYTORCH,            /* the user's own loop */
    MDOT_FRAMEWORK_HF_TRAINER,         /* Hugging Face's Trainer */
    MDOT_FRAMEWORK_LIGER,              /* PyTorch with Liger's kernels */
    MDOT_FRAMEWORK_TRANSFORMER_ENGINE, /* PyTorch with Transformer Engine's modules */
    MDOT_FRAMEWORK_MEGATRON            /* Megatron-LM, and NeMo */
} mdot_framework;

/* Parts recomputed in the backward pass, so that memory need not keep the results. */
typedef enum mdot_recompute {
    MDOT_RECOMPUTE_NOTHING, /* all results that the backward pass needs are kept */
    /* each block except its inputs, as by torch.utils.checkpoint; refused for a job without blocks */
    MDOT_RECOMPUTE_BLOCKS,
    MDOT_RECOMPUTE_SELECTIVE /* everything except matmuls, convolutions and attention */
} mdot_recompute;

/* Kernels of the update by SGD, Adam and AdamW. The other optimizers have one implementation each. */
typedef enum mdot_optimizer_kernels {
    MDOT_OPTIMIZER_KERNELS_DEFAULT, /* FOREACH, as PyTorch; FUSED in mixed precision below ZeRO stage 3 */
    MDOT_OPTIMIZER_KERNELS_FOREACH, /* one kernel per operation in the formula, over lists of tensors */
    MDOT_OPTIMIZER_KERNELS_FUSED,   /* one kernel for the whole formula, over lists of tensors */
    MDOT_OPTIMIZER_KERNELS_FOR_LOOP /* one kernel for each operation of the formula and each tensor */
} mdot_optimizer_kernels;

/* Type of gradients. */
typedef enum mdot_number {
    MDOT_NUMBER_DEFAULT, /* the weight type in the backward pass */
    MDOT_NUMBER_FP32,    /* fp32 */
    MDOT_NUMBER_HALF     /* fp16 or bf16 */
} mdot_number;

/* The number of blocks of a pipeline's stage that has the embedding or the head alone. */
#define MDOT_STAGE_WITHOUT_BLOCKS (1u << 16)

/* State in host memory, where the update runs (DeepSpeed's CPUAdam); PAGES: the GPU updates managed memory. */
typedef enum mdot_offload {
    MDOT_OFFLOAD_NOTHING,    /* everything is in GPU memory */
    MDOT_OFFLOAD_OPTIMIZER,  /* the optimizer's state */
    MDOT_OFFLOAD_PARAMETERS, /* also weights and gradients; needs ZeRO stage 3 */
    MDOT_OFFLOAD_PAGES       /* optimizer pages beyond the GPU's capacity */
} mdot_offload;

/* Type of frozen matmul weights. */
typedef enum mdot_frozen {
    MDOT_FROZEN_UNCHANGED, /* the type that the precision gives all weights */
    MDOT_FROZEN_INT8,      /* one byte, and a scale per row */
    MDOT_FROZEN_NF4,       /* half a byte, with doubly quantised scales of 64 weights (QLoRA) */
    MDOT_FROZEN_NF4_SINGLE /* half a byte, with fp32 scales of 64 weights (without double quantisation) */
} mdot_frozen;

/* Kernels of the final cross-entropy. */
typedef enum mdot_loss {
    MDOT_LOSS_WHOLE, /* all logits at once, in fp32 */
    /* converts an eighth of the logits to fp32 at a time (torchtune's CEWithChunkedOutputLoss) */
    MDOT_LOSS_CHUNKED,
    /* logits, loss and gradients for hidden size / vocabulary of the tokens at a time (Liger's
     * FusedLinearCrossEntropy) */
    MDOT_LOSS_FUSED
} mdot_loss;

/* Schedule of a pipeline with p stages. */
typedef enum mdot_schedule {
    /* one forward and one backward pass in turn. A stage waits (p - 1) / virtual_stages micro-steps for others */
    MDOT_SCHEDULE_1F1B,
    MDOT_SCHEDULE_ZERO_BUBBLE /* a third of this wait, because weight gradients fill the gaps (ZB-H1) */
} mdot_schedule;

/* Updates by parameter servers. */
typedef enum mdot_sync {
    MDOT_SYNC_BSP, /* an update waits for the gradients of all workers (bulk-synchronous) */
    MDOT_SYNC_ASP  /* each worker's gradients are an update of their own (asynchronous) */
} mdot_sync;

/* Kind of predicted step. */
typedef enum mdot_mode {
    MDOT_MODE_TRAIN,    /* a training step: forward and backward passes, and the optimizer's update */
    MDOT_MODE_INFERENCE /* a forward pass in evaluation, without gradients, on one GPU */
} mdot_mode;

/* Link between the GPUs of a node. Rates are per GPU, outgoing, in one direction. */
typedef enum mdot_link {
    /* NVLink on GPU models with it, PCIe on others. A predictor with gpu_count, but without links, assumes those of its
     * training data */
    MDOT_LINK_DEFAULT,
    MDOT_LINK_PCIE,  /* PCIe, also on GPU models that include NVLink */
    MDOT_LINK_NVLINK /* INVALID_ARGUMENT for a GPU whose nvlink_gbps is 0 */
} mdot_link;

/* Spec values of a GPU. The table in runtime/job/gpus.def defines the columns and names the sources. Rates are dense,
 * at boost clock; a multiply-add counts as two. In a configuration, each value must be 1e-6 to 1e9, or 0 where a
 * comment explains 0. INVALID_ARGUMENT names the invalid field. */
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
 * @return names, terminated by NULL; static */
const char *const *mdot_gpu_names(void);
/* Finds a GPU by name. Case, blanks, hyphens and underscores are ignored.
 *
 * @param name one of mdot_gpu_names, an alias ("A100" is the SXM model with 40 GB), or the driver's name; a slice of
 *             Multi-Instance GPU may follow, as in "A100:3g.20gb"
 * @param out_gpu receives the spec values; the name is static
 * @errors INVALID_ARGUMENT names the five most similar GPUs */
mdot_status mdot_gpu_find(const char *name, mdot_gpu *out_gpu, mdot_error *err);

/* Training configuration. Zero selects the default for every field except batch and GPU.
 *
 * A field without a predictor input (mdot_predict.h) is estimated analytically: the predictor answers for the nearest
 * configuration within its inputs, and this answer is multiplied by a ratio of roofline times, requested over queried.
 * (Another choice of kernels changes at most the answer's possible GPU time.) Exchange times between GPUs, at the rates
 * below, are added. The interval widens by a quarter of the logarithm of the analytic change, and
 * MDOT_WARN_ANALYTIC_ESTIMATE is set. See runtime/predict/analytic_correction.c and runtime/perf/peak_memory.c.
 *
 * Parallelism: the degrees multiply to gpu_count, except that expert may share GPUs (below). If all are 0, every GPU is
 * a data-parallel worker. Neighbours in a node are parallel by tensor, context, expert, data, pipeline, in this order.
 *
 *   tensor    Megatron's: matmuls are sharded by columns and by rows in turn, together with the operators between them,
 *             and the results are summed (runtime/perf/sharding.c)
 *   expert    distributes a mixture's experts, and the tokens to them, over GPUs with separate batches; or, without a
 *             factor of its own in gpu_count, over the data- and context-parallel GPUs, as Megatron (experts.c)
 *   pipeline  gives every GPU the same number of blocks, unless the ends have numbers of their own, and alternates one
 *             forward and one backward pass (1F1B)
 *   context   divides each sequence; the GPUs pass keys and values around a ring, and hold the same weights */
typedef struct mdot_configuration {
    size_t struct_size;
    int64_t batch;   /* samples of one forward and backward pass of a data-parallel worker, 1 to 2^24 */
    const char *gpu; /* name of a known GPU model, as mdot_gpu_find reads it; NULL if gpu_spec is set */
    /* spec values of the GPU, for a model that mdot lacks or from mdot_gpu_find; NULL if gpu is set */
    const mdot_gpu *gpu_spec;
    /* number of GPUs that work on a step, up to 2^16; 0: the product of the degrees of parallelism, or 1 */
    int gpu_count;
    /* number formats; bf16 includes the weights, mixed-bf16 and mixed-fp16 compute with half-precision weights and
     * update fp32 ones, fp8, fp8-rowwise, fp8-blockwise and mxfp8 are mixed-bf16 with FP8 operands of linear layers,
     * and pytorch is the program's, or fp32 with tf32 in convolutions */
    mdot_precision precision;
    /* memory layout of images; from PyTorch 2.1 on, torch.compile chooses that of most networks itself */
    mdot_layout layout;
    mdot_optimizer optimizer; /* optimizer that updates the parameters */
    /* kernels of attention: those that the program called (program), matmuls and a softmax (eager), or one fused kernel
     * (flash) */
    mdot_attention attention;
    mdot_recompute recompute; /* parts of the forward pass that are recomputed in the backward pass */
    /* compiled by torch.compile, which fuses operators other than matmuls; it needs PyTorch 2.0. 0 or 1 */
    uint32_t compiled;
    uint32_t accumulate; /* passes whose gradients are added up before the optimizer's step, up to 2^16; 0 means 1 */
    mdot_link link;      /* link between the GPUs of a node */
    uint32_t node_count; /* number of nodes, each with the same number of GPUs, up to 2^16; 0 means 1 */
    /* rate that collectives reach between GPUs of a node, in GB/s (10^9 bytes per second), 1e-6 to 1e9; 0: .8 of
     * NVLink's rate, .4 of PCIe's */
    double link_gbps;
    /* rate that collectives reach between nodes, per GPU, in GB/s, 1e-6 to 1e9; 0: 20, for InfiniBand of 200
     * Gbit/s, and 40 from Hopper on */
    double network_gbps;
    /* degree of data parallelism: groups of GPUs with a batch each, up to 2^16; 0: the number of GPUs divided by the
     * other degrees */
    uint32_t data_parallel;
    /* degree of tensor parallelism: GPUs among which each matmul is sharded, up to 2^16; 0 means 1 */
    uint32_t tensor_parallel;
    /* degree of pipeline parallelism: stages among which the blocks are divided, up to 2^16; 0 means 1 */
    uint32_t pipeline_parallel;
    /* degree of expert parallelism: GPUs among which the experts of each layer are sharded, up to 2^16; 0 means 1.
     * INVALID_ARGUMENT for a job without experts: matmuls with several matrices behind a TopK in the same block */
    uint32_t expert_parallel;
    uint32_t micro_batches; /* number of micro-batches of a pipeline, up to 2^16; 0: the number of stages */
    /* ZeRO stage: shards the optimizer state (1), also the gradients (2), also the weights (3). 0 to 3 */
    uint32_t zero_stage;
    /* PyTorch's version, for example 2.4, as 100 * major + minor: 1.12 is 112, 2.4 is 204; 0: the newest that the
     * predictor knows. A predictor without this input answers for the software in its training data and sets
     * MDOT_WARN_SOFTWARE_NOT_MEASURED */
    uint32_t torch;
    /* what a step is: a training step, or a forward pass in evaluation (inference), which has neither gradients nor an
     * optimizer and runs on one GPU. INVALID_ARGUMENT for inference with options of the backward pass or of the update,
     * and for several GPUs */
    mdot_mode mode;
    /* kernels of the update by sgd, adam and adamw: over lists of tensors (foreach), one fused kernel, or one tensor
     * after the other (for-loop) */
    mdot_optimizer_kernels optimizer_kernels;
    /* update of each parameter in the backward pass, as soon as its gradient exists; it needs a single pass per step. 0
     * or 1 */
    uint32_t step_in_backward;
    /* type of the gradients that a GPU keeps; fp32 in mixed precision is Megatron's main gradients, which are never
     * freed. HALF needs weights in half precision */
    mdot_number gradient_type;
    /* type in which gradients are summed over GPUs; half beside fp32 gradients is DeepSpeed's BF16_Optimizer, which
     * keeps both */
    mdot_number reduce_type;
    /* parts that are kept in host memory and updated there: the optimizer's state, or also weights and gradients, which
     * needs ZeRO stage 3; or pages, the part of the optimizer's state that exceeds the GPU's memory and that the GPU
     * still updates */
    mdot_offload offload;
    mdot_frozen frozen_weights; /* type of the frozen weights of matmuls, which are dequantised before each use */
    uint32_t ema;               /* moving average of the weights, an fp32 copy that each step updates. 0 or 1 */
    /* weights that ZeRO stage 3 gathered in the forward pass stay until the backward pass, as by FSDP2's
     * reshard_after_forward=False. 0 or 1 */
    uint32_t keep_gathered;
    /* degree of context parallelism: GPUs among which each sequence is divided, up to 2^16; 0 means 1. INVALID_ARGUMENT
     * for a job without attention */
    uint32_t context_parallel;
    /* sequence parallelism beside tensor parallelism: tensors that it replicates are divided by sequence. 0 to 1 */
    uint32_t sequence_parallel;
    uint32_t virtual_stages; /* number of parts of an interleaved pipeline that each GPU has, up to 2^16; 0 means 1 */
    /* schedule of a pipeline: one forward and one backward pass in turn (1f1b), or with gradients of weights in the
     * gaps (zero-bubble, ZB-H1) */
    mdot_schedule schedule;
    /* saved tensors of each block move to host memory, and back for its backward pass. 0 or 1. INVALID_ARGUMENT for a
     * job without blocks */
    uint32_t offload_activations;
    /* kernels of the cross-entropy: on all logits (whole), in eight parts (chunked), or fused with the matmul before
     * it, as Liger's. INVALID_ARGUMENT for CHUNKED and FUSED if the job has no cross-entropy */
    mdot_loss loss;
    /* power limit of each GPU in watts, which may lower its clock, 1e-6 to 1e9; 0: the GPU's own. INVALID_ARGUMENT
     * above that, below a fifth of it, and if the GPU's watts are 0 */
    double power_limit;
    /* time in which the host launches one phase of an operator, in microseconds, which bounds small batches, 1e-6 to
     * 1e9; 0: that of the framework and of hosts as old as the GPU model, for example 50 µs by PyTorch beside an A100,
     * 35 beside an H100, and .6 of it in inference. Interpreter, framework and driver are included */
    double host_launch_us;
    /* gradients of several passes stay whole on each GPU until the last pass sums them over GPUs, as by FSDP's no_sync.
     * 0 or 1. It needs ZeRO stage 3 */
    uint32_t whole_gradients;
    /* number of blocks in the first stage of a pipeline, up to 2^16; 0: an equal share. MDOT_STAGE_WITHOUT_BLOCKS: the
     * stage has the operators before the blocks alone */
    uint32_t first_stage_blocks;
    uint32_t last_stage_blocks; /* number of blocks in the last stage of a pipeline, up to 2^16; 0: an equal share */
    /* framework that launches the kernels: it decides which operators are fused and how long the host takes for a
     * launch */
    mdot_framework framework;
    /* samples per second from all data loaders together, which bound the step, 1e-6 to 1e9; 0: unlimited */
    double loader_rate;
    /* samples per second from one CPU, whose time adds to the loaders', 1e-6 to 1e9; 0: unlimited. A sample takes
     * 1 / loader_rate + 1 / (cpu_rate * cpus). INVALID_ARGUMENT without cpus */
    double cpu_rate;
    double cpus; /* CPUs for all data loaders, 1e-6 to 1e9; 0: none. INVALID_ARGUMENT without cpu_rate */
    /* parameter servers: machines that update the parameters, beside data-parallel workers, 0 to 2^16. Each
     * has a network port with network_gbps, as each worker has. INVALID_ARGUMENT beside other degrees of parallelism,
     * ZeRO and offloading, and for one worker */
    uint32_t servers;
    mdot_sync sync; /* whether the parameter servers' update waits for all workers (bsp) or for none (asp) */
    /* scaling of losses in fp16, as by torch.amp.GradScaler: each step unscales the gradients and looks for infinite
     * ones. 0 or 1 */
    uint32_t grad_scaler;
    /* number of blocks in all stages of a pipeline, which must be the job's, up to 2^24; 0: not compared.
     * INVALID_ARGUMENT for another number */
    uint32_t pipeline_blocks;
} mdot_configuration;

/* Numbers of a configuration that predictors read (mdot_predict.h), by name. Append only. is_… and recomputes_… are 1
 * or 0. The most specific precision comes last: is_amp_bf16 or is_bf16 implies is_amp, and is_pytorch implies
 * is_fp32. */
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
    X(HOST_LAUNCH_US, "host_launch_us") /* 0: that of the training data's hosts */

MDOT_END_DECLARATIONS
#endif
