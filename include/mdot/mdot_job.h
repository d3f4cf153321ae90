/* mdot_job.h — describe training jobs: a network's operators, with FLOPs and bytes.
 *
 * mdot.h includes this header and states the library's rules: ownership, threading, memory, errors. */
#ifndef MDOT_JOB_H
#define MDOT_JOB_H

#include "mdot_base.h"

MDOT_BEGIN_DECLARATIONS

/* A training job's operator sequence: types, attributes, FLOPs and bytes. It omits weights, and also names, except
 * for the module names that the reader may keep on request. Immutable.
 *
 * @threads any number may share a job
 */
typedef struct mdot_job mdot_job;

/* Optimizers. A job names one of the first three; a configuration may choose any. */
typedef enum mdot_optimizer {
    MDOT_OPTIMIZER_SGD,        /* with momentum: one state per parameter */
    MDOT_OPTIMIZER_ADAM,       /* first and second moments: two states per parameter */
    MDOT_OPTIMIZER_ADAMW,      /* ADAM with decoupled weight decay */
    MDOT_OPTIMIZER_SGD_PLAIN,  /* without momentum: no state */
    MDOT_OPTIMIZER_ADAM8BIT,   /* bitsandbytes: both states have one byte per parameter, and a scale for 256 */
    MDOT_OPTIMIZER_ADAMW8BIT,  /* ADAM8BIT with decoupled weight decay */
    MDOT_OPTIMIZER_ADAFACTOR,  /* factored second moments of matrices, no first moment */
    MDOT_OPTIMIZER_LION,       /* sign of a moving average: one state per parameter */
    MDOT_OPTIMIZER_MUON,       /* for the matrices in blocks, with AdamW for all other parameters */
    MDOT_OPTIMIZER_ADAM_FUSED, /* the same as ADAM with optimizer_kernels FUSED */
    MDOT_OPTIMIZER_ADAMW_FUSED /* the same as ADAMW with optimizer_kernels FUSED */
} mdot_optimizer;

/* An operation's FLOPs and bytes. A multiply-add is two FLOPs. Each tensor is counted once, and a floating-point
 * element as four bytes for any type in the file, because precision belongs to the configuration. Whole numbers, at
 * most 2^62. */
typedef struct mdot_load {
    double flops, bytes_read, bytes_written; /* one coefficient of the work in one phase */
} mdot_load;

/* Phases of a training step, for an operator in the forward graph. */
typedef enum mdot_phase {
    MDOT_PHASE_FORWARD, /* the operator's result */
    /* input gradients, including the sum over several readers of a result; zero if no parameter precedes the
     * operator */
    MDOT_PHASE_DATA_GRADIENT,
    MDOT_PHASE_WEIGHT_GRADIENT, /* parameter gradients */
    MDOT_PHASE_COUNT            /* phase count */
} mdot_phase;

/* Operator attributes: name, text. An attribute is 0 for operator types without it. Spatial dimensions are depth,
 * height and width; an operator over fewer dimensions uses the last ones. Sizes are per sample. The order is that of
 * the `.job` format: append only. */
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
    X(CHANNELS_IN, "channels_in")   /* of a matmul: the summed extent */                                               \
    X(CHANNELS_OUT, "channels_out") /* matmul: columns of the result */                                                \
    X(SIZE_IN, "size_in")           /* positions: pixels in a feature map, rows in a matrix */                         \
    X(SIZE_OUT, "size_out")                                                                                            \
    X(AXIS, "axis")     /* from the end: 1 is the last; 0: several or irrelevant */                                    \
    X(EXTENT, "extent") /* along that axis; elements reduced into one; or steps of a recurrence */                     \
    X(HEADS, "heads")                                                                                                  \
    X(HEAD_SIZE, "head_size")                                                                                          \
    X(QUERIES, "queries")                                                                                              \
    X(KEYS, "keys")                                                                                                    \
    X(BIAS, "bias")             /* 1: adds a trainable vector */                                                       \
    X(NORMALISED, "normalised") /* 1: includes the BatchNormalization that follows */                                  \
    X(DIRECTIONS, "directions") /* of a recurrent operator */                                                          \
    X(INPUTS, "inputs")         /* tensors read, except parameters and constants */

/* Index of an attribute in mdot_job_operator.setting. */
typedef enum mdot_setting {
#define MDOT_SETTING_ENUM(name, text) MDOT_SETTING_##name,
    MDOT_SETTING_MAP(MDOT_SETTING_ENUM)
#undef MDOT_SETTING_ENUM
        MDOT_SETTING_COUNT /* number of attributes */
} mdot_setting;

enum {
    MDOT_SETTING_CAPACITY = 48 /* room for future attributes, so that an appended one leaves the layout unchanged */
};

/* Returns the name of an operator attribute (MDOT_SETTING_MAP).
 *
 * @param setting any number
 * @return for example "kernel_h"; "?" for an unknown value; static */
const char *mdot_setting_name(mdot_setting setting);

/* The type in which automatic mixed precision computes an operator. */
typedef enum mdot_autocast {
    MDOT_AUTOCAST_WIDEST, /* the type of the widest operand, parameters included */
    MDOT_AUTOCAST_HALF,   /* fp16 */
    MDOT_AUTOCAST_FULL,   /* fp32 */
    MDOT_AUTOCAST_DATA    /* the type of the operands other than parameters */
} mdot_autocast;

/* Tensors that autograd keeps for an operator's backward pass. 0 means unknown, and counts as every tensor read or
 * written. */
enum {
    MDOT_SAVES_NOTHING = 1u << 0, /* used alone: autograd keeps zero tensors */
    MDOT_SAVES_INPUTS = 1u << 1,  /* every tensor that it reads */
    MDOT_SAVES_RESULT = 1u << 2,  /* its result */
    MDOT_SAVES_FACTORS = 1u << 3, /* inputs, if the other factor needs them for its gradient */
    MDOT_SAVES_INDICES = 1u << 4, /* 64 bits for each element of the result */
    MDOT_SAVES_SCORES = 1u << 5   /* of attention: heads * queries * keys elements */
};

enum {
    MDOT_TRAIT_VIEW = 1u << 0, /* the result shares memory with the first operator read */
    /* reads indices besides other operators' results; the indices take almost zero memory */
    MDOT_TRAIT_PICKS = 1u << 1,
    /* has an axis, but works on a part of the channels in the same way as on all channels */
    MDOT_TRAIT_PARTS = 1u << 2,
    /* takes parts of the channels from several GPUs and gives each GPU the whole result */
    MDOT_TRAIT_SUMS_PARTS = 1u << 3
};

/* Operator traits: properties of an operator type in training, equal in every job. The job reader has them in an
 * operator table, and `.job` files store them. All zero if the type is unknown. */
typedef struct mdot_operator_traits {
    uint32_t number;           /* type id that predictors use; 0: unknown to every predictor */
    uint32_t autocast;         /* mdot_autocast */
    uint32_t saved_written;    /* MDOT_SAVES_… if attention is decomposed into matmuls */
    uint32_t saved_fused;      /* MDOT_SAVES_… if attention is one kernel */
    uint32_t saved_recomputed; /* MDOT_SAVES_… if everything except matmuls is recomputed in the backward pass */
    uint32_t reserve;          /* number of additional tensors kept, each as large as the result */
    uint32_t traits;           /* MDOT_TRAIT_… */
    uint32_t reserved[9];      /* must be 0; reserved for future traits */
} mdot_operator_traits;

/* Flags of an operator. Stored in `.job` files: append only. */
enum {
    MDOT_OPERATOR_RECOMPUTED = 1u << 0,     /* the program checkpoints it: the backward pass runs it again */
    MDOT_OPERATOR_STOPS_GRADIENT = 1u << 1, /* it gets no gradient, although operators before it have parameters */
    MDOT_OPERATOR_OFFLOADED = 1u << 2,      /* the program moves the tensors that it saves to the host */
    MDOT_OPERATOR_RAN_FULL = 1u << 3,       /* it ran in fp32, although the program is in 16 bits or autocast */
    MDOT_OPERATOR_RAN_HALF = 1u << 4,       /* it ran in 16 bits under autocast, although the program is in fp32 */
    MDOT_OPERATOR_ONCE_MORE = 1u << 5,      /* with RECOMPUTED: the backward pass runs it once more than that, */
    MDOT_OPERATOR_TWICE_MORE = 1u << 6,     /* and twice more: in checkpoints inside of checkpoints */
    MDOT_OPERATOR_FLAGS_ALL = (1u << 7) - 1 /* all flags that this version knows */
};

/* One operator of a job. At batch B, a phase has B * B * per_square + B * per_sample + per_step FLOPs and bytes. Each
 * forward pass reads parameters once, whatever the batch, so that they count per step. With gradient accumulation,
 * every micro-step has this work at the micro-batch. A contrastive loss compares all pairs of samples, so that most of
 * its work is in per_square. */
typedef struct mdot_job_operator {
    size_t struct_size;
    const char *type;                       /* "Conv", "Linear", "Attention" …: ONNX's name if ONNX has one */
    bool known;                             /* false: mdot knows only the tensor sizes */
    int64_t setting[MDOT_SETTING_CAPACITY]; /* zero from MDOT_SETTING_COUNT on */
    mdot_load per_sample[MDOT_PHASE_COUNT]; /* work that grows with the batch, by phase */
    mdot_load per_step[MDOT_PHASE_COUNT];   /* work independent of the batch, by phase */
    double parameters;                      /* elements that training updates, 0 to 2^62 */
    size_t input_count;                     /* number of the operators whose results it reads */
    /* indices, ascending, each less than the index of this operator; NULL if input_count is 0 */
    const uint32_t *inputs;
    /* Position, which mdot_job_create computes: */
    uint32_t depth;              /* longest path before this operator, in operators */
    uint32_t height;             /* longest path behind this operator, in operators */
    uint32_t out_degree;         /* number of operators that read the result */
    mdot_operator_traits traits; /* properties of the type in training; all zero if the type is unknown */
    /* Number of the block (layer): 1 …, ascending over the job; 0 outside of blocks. */
    uint32_t block;
    /* Number of blocks equal to this one, itself included, computed by mdot_job_create. Blocks are equal if the
     * operators have equal types, attributes, parameters and forward FLOPs and bytes, and are connected in the same
     * way. */
    uint32_t equal_blocks;
    uint32_t flags; /* MDOT_OPERATOR_… */
    /* module that it was exported from, "encoder.layer.3.output"; NULL if the job omits names */
    const char *module;
    double frozen_parameters; /* elements that training reads but leaves unchanged; excluded from `parameters` */
    mdot_load per_square[MDOT_PHASE_COUNT]; /* work that grows with the square of the batch, by phase */
    /* Bit s is set if setting s multiplies with the batch, for example channels_out of a similarity matrix. */
    uint64_t batch_settings;
} mdot_job_operator;

/* Uncertainties and origin of a job's graph, found by the reader. Stored in `.job` files: append only. */
enum {
    MDOT_JOB_FOLDED = 1u << 0, /* an exporter folded BatchNormalizations; the job contains them again */
    /* an exporter probably folded them, but the file lacks the traces needed to restore them */
    MDOT_JOB_MAYBE_FOLDED = 1u << 1,
    MDOT_JOB_COMPILED = 1u << 2,       /* torch.compile compiled the program; configurations follow */
    MDOT_JOB_NOTES_ALL = (1u << 3) - 1 /* all notes that this version knows */
};

/* Everything that mdot_job_create needs to make a job. */
typedef struct mdot_job_description {
    size_t struct_size;
    const mdot_job_operator *operators; /* in topological order; the position fields are ignored */
    size_t operator_count;              /* number of operators, 1 to 2^22 */
    int64_t batch;                      /* batch of the file; 1 if the file leaves it open */
    bool has_optimizer;                 /* the graph contains an optimizer, which is `optimizer` */
    mdot_optimizer optimizer;           /* SGD, ADAM or ADAMW; ignored unless has_optimizer is set */
    uint32_t notes;                     /* MDOT_JOB_… */
    uint32_t reserved;                  /* must be 0 */
} mdot_job_description;

/* A job as a whole. */
typedef struct mdot_job_info {
    size_t struct_size;
    size_t operator_count, unknown_count; /* number of all operators; of unknown types among them */
    double parameters;                    /* elements that training updates */
    int64_t batch;                        /* batch of the file; 1 if the file leaves it open */
    bool has_optimizer;                   /* the graph contains an optimizer, which is `optimizer` */
    mdot_optimizer optimizer;             /* SGD, ADAM or ADAMW; SGD unless has_optimizer is set */
    uint32_t block_count;                 /* the highest block number */
    uint32_t notes;                       /* MDOT_JOB_… */
    double frozen_parameters;             /* elements that training reads but leaves unchanged */
    int64_t length;          /* the symbolic length's value in this job; 0: the job has no symbolic length */
    const char *length_name; /* the symbol, borrowed from the job; NULL without a symbolic length */
} mdot_job_info;

/* Creates a job from a description, which is copied. Equal names are stored once. An operator takes about one kilobyte,
 * and about two during creation. Fractions are rounded. Padding may be negative, because negative padding crops. An
 * operator without traits has type id 0 and saves every tensor read or written; mdot_operator_traits_find (mdotjob.h)
 * finds a type's traits.
 *
 * @param description operators and properties of the job
 * @errors INVALID_ARGUMENT for any of these faults: 0 or more than 2^22 operators; dependencies that do not ascend or
 *     that point forward; blocks that do not ascend; FLOPs, bytes or parameters that are negative, infinite, NaN or
 *     beyond 2^62; attributes that are negative or beyond 2^40. OUT_OF_MEMORY */
mdot_status mdot_job_create(const mdot_job_description *description, mdot_job **out_job, mdot_error *err);

/* Selects parameters to leave unchanged in training, by module name: those with a match in `frozen` (all, if `frozen`
 * is empty) and without a match in `trained`. '*' matches any characters, '?' matches one. A match includes the modules
 * within: for example, "encoder" is the whole encoder, and "*.lora_?" is both parts of every LoRA adapter. */
typedef struct mdot_job_freezing {
    size_t struct_size;
    const char *const *frozen;  /* patterns of modules to freeze; may be NULL if frozen_count is 0 */
    size_t frozen_count;        /* number of these patterns; 0: every module */
    const char *const *trained; /* patterns of modules to train all the same; may be NULL if trained_count is 0 */
    size_t trained_count;       /* number of these patterns */
} mdot_job_freezing;

/* Creates a copy of the job with frozen parameters. The gradients of these are removed, and so is the backward pass
 * where no trainable parameter precedes.
 *
 * @param freezing selects the parameters
 * @errors INVALID_ARGUMENT for a job without module names and if every parameter would be frozen; NOT_FOUND for a
 *     pattern without a matching module; OUT_OF_MEMORY */
mdot_status mdot_job_freeze(const mdot_job *job, const mdot_job_freezing *freezing, mdot_job **out_job,
                            mdot_error *err);
/* Freezes parameters in a description's operators, in place, before mdot_job_create. For example, mdot_job_read uses it
 * before it drops the module names. The operators stay as they are on failure.
 *
 * @param freezing selects the parameters
 * @param operators changed in place
 * @param operator_count number of operators
 * @errors those of mdot_job_freeze, and INVALID_ARGUMENT for a dependency that points forward
 * @threads any, each with its own operators */
mdot_status mdot_operators_freeze(const mdot_job_freezing *freezing, mdot_job_operator *operators,
                                  size_t operator_count, mdot_error *err);
/* Creates one job for all lengths from the jobs of one program at three lengths, for example for sequences of tokens.
 * Settings, FLOPs, bytes and memory follow the quadratic polynomial through the three values. The new job is at the
 * first length.
 *
 * @param jobs three jobs with equal operators, apart from these values
 * @param lengths the lengths, 1 to 2^24, all different
 * @param name the symbol, for example "sequence", 1 to 63 bytes
 * @errors INVALID_ARGUMENT names the first difference between the jobs, or an invalid length or name; OUT_OF_MEMORY */
mdot_status mdot_job_of_lengths(const mdot_job *const jobs[3], const int64_t lengths[3], const char *name,
                                mdot_job **out_job, mdot_error *err);
/* Creates a copy of the job at another length.
 *
 * @param length 1 to 2^24
 * @errors INVALID_ARGUMENT for a job without a symbolic length; OUT_OF_RANGE for a length beyond these limits, or if a
 *     number leaves its own at that length; OUT_OF_MEMORY */
mdot_status mdot_job_with_length(const mdot_job *job, int64_t length, mdot_job **out_job, mdot_error *err);
/* Finds which part of each operator's work is independent of the batch, which grows with the batch, and which with the
 * square: from the same operators at two batches, each with all work per sample or per step. In place, before
 * mdot_job_create. Settings that grow with the batch become one sample's, and batch_settings lists them. The operators
 * stay as they are on failure.
 *
 * @param operators those at `batch`
 * @param batch a batch, at least 1
 * @param others those at `other_batch`
 * @param other_batch another batch, preferably without a common divisor
 * @param operator_count number of operators in both arrays
 * @errors INVALID_ARGUMENT for invalid batches, and if the types, parameters or inputs of an operator differ
 * @threads any, each with its own operators */
mdot_status mdot_operators_combine(mdot_job_operator *operators, int64_t batch, const mdot_job_operator *others,
                                   int64_t other_batch, size_t operator_count, mdot_error *err);
/* Reads a job from a `.job` file, as written by mdot_job_save. A file has at most 256 MiB; a larger one is refused
 * unread.
 *
 * @param path file name
 * @errors NOT_FOUND; IO; MALFORMED (broken, or another kind of file), INCOMPATIBLE (another format version) or CORRUPT
 *     (checksum); OUT_OF_MEMORY */
mdot_status mdot_job_load(const char *path, mdot_job **out_job, mdot_error *err);
/* Reads a job from the bytes of a `.job` file.
 *
 * @param bytes the caller may free them afterwards
 * @param size_bytes number of bytes, at most 256 MiB
 * @errors MALFORMED (broken, or another kind of file), INCOMPATIBLE (another format version) or CORRUPT (checksum);
 *     OUT_OF_MEMORY */
mdot_status mdot_job_parse(const void *bytes, size_t size_bytes, mdot_job **out_job, mdot_error *err);
/* Writes a `.job` file, which appears only when it is complete.
 *
 * @param path file name; an existing file is replaced
 * @errors IO; OUT_OF_RANGE for a job beyond the size limit; OUT_OF_MEMORY */
mdot_status mdot_job_save(const mdot_job *job, const char *path, mdot_error *err);
/* Destroys a job.
 *
 * @param job NULL is accepted
 */
void mdot_job_destroy(mdot_job *job);

/* Describes a job as a whole.
 *
 * @param out_info receives the description
 * @errors INVALID_ARGUMENT for NULL or an invalid struct_size
 */
mdot_status mdot_job_get_info(const mdot_job *job, mdot_job_info *out_info);
/* Returns an operator.
 *
 * @param index operator index, below operator_count
 * @param out_operator receives the operator; strings and arrays are borrowed from the job
 * @errors OUT_OF_RANGE for an index beyond the count; INVALID_ARGUMENT for NULL or an invalid struct_size */
mdot_status mdot_job_get_operator(const mdot_job *job, size_t index, mdot_job_operator *out_operator);
/* Returns the FLOPs and bytes of one optimizer step in fp32.
 *
 * @param optimizer any optimizer
 * @param parameters number of trainable parameters
 * @return FLOPs and bytes */
mdot_load mdot_optimizer_load(mdot_optimizer optimizer, double parameters);

MDOT_END_DECLARATIONS
#endif
