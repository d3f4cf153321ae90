/* predict.h — declarations shared by the files that predict jobs. Private to runtime/.
 *
 *   predictor_schema.c     finds the tensors below that an artefact's entries read; runs when a context is created
 *   predictor_tensors.c    memory for them in every context
 *   operator_features.c           a job → the rows of these tensors, merged if the entry allows it or the largest bucket requires it
 *   encoding.c       rows → cached features of a job for evaluation; mdot_encoding, which keeps them
 *   configuration.c  a caller's configuration → a resolved one: checked, with its GPU found (resolved_configuration.h)
 *   analytic_correction.c       corrects an answer for the parts of a configuration that the predictor has no input for
 *   job_inputs.c     mdot_job_inputs: the tensors of one entry, for the caller
 *   predict.c        mdot_predict, mdot_sweep and others: a job and configurations → blocks of them → mdot_predictions
 *
 * A predictor consists of one entry, "predict", which reads rows and one configuration; or of two. Then "encode"
 * reads rows, and "evaluate" reads the outputs of "encode" and a block of configurations. In one piece, the cached
 * features are the rows themselves, and a block is one configuration.
 *
 * mdot_predict.h describes the tensors for people who train predictors, under "Predictions".
 */
#ifndef RT_PREDICT_H
#define RT_PREDICT_H

#include "base/struct_version.h"
#include "runtime/perf/resolved_configuration.h"

#include "mdot/mdot_abi.h"

enum {
    RT_LOAD_NUMBERS = 3, /* numbers in an mdot_load */
    RT_LOAD_COLUMNS = 2 * MDOT_PHASE_COUNT * RT_LOAD_NUMBERS + 1,
    RT_POSITION_COLUMNS = 5,
    RT_STEP_NUMBERS = 3,
    RT_OTHER_NUMBERS = 3, /* parts of a step outside the operators: optimizer, host, link */
#define RT_OUTSIDE_ONE(number, id) +1
    RT_OUTSIDE_NUMBERS = 0 MDOT_OUTSIDE_MAP(RT_OUTSIDE_ONE)
#undef RT_OUTSIDE_ONE
};

/* The numbers of the input `configuration`. */
enum {
#define RT_CONFIGURATION_ENUM(id, name) RT_CONFIGURATION_##id,
    MDOT_CONFIGURATION_MAP(RT_CONFIGURATION_ENUM)
#undef RT_CONFIGURATION_ENUM
        RT_CONFIGURATION_NUMBERS
};

/* The set of these numbers that a predictor reads: bit RT_CONFIGURATION_… for each. */
typedef uint32_t rt_configuration_set;
static_assert(RT_CONFIGURATION_NUMBERS < 32, "a bit for each number");

/* The columns of gpus.def, which are the numbers of the input `gpu`: append only. */
#define RT_GPU_COLUMN_MAP(X)                                                                                           \
    X(compute_capability)                                                                                              \
    X(sm_count)                                                                                                        \
    X(boost_mhz)                                                                                                       \
    X(memory_gib)                                                                                                      \
    X(memory_gbps)                                                                                                     \
    X(l2_mib)                                                                                                          \
    X(fp32_tflops)                                                                                                     \
    X(tf32_tflops)                                                                                                     \
    X(fp16_tflops)                                                                                                     \
    X(nvlink_gbps)                                                                                                     \
    X(pcie_gbps)                                                                                                       \
    X(watts)

enum {
#define RT_GPU_COLUMN_ENUM(field) RT_GPU_##field,
    RT_GPU_COLUMN_MAP(RT_GPU_COLUMN_ENUM)
#undef RT_GPU_COLUMN_ENUM
        RT_GPU_NUMBERS
};

/* Inputs: identifier, name, element type, whether it has a row for each operator, number of columns (0: rows only),
 * and whether versions append columns. A predictor reads the first columns, as many as its version had. If it has
 * more columns than this runtime, it also supplies the defaults of the later ones. */
#define RT_JOB_INPUT_MAP(X)                                                                                            \
    X(TYPE, "operator_type", I64, true, 0, false)                                                                      \
    X(SETTING, "operator_setting", F32, true, MDOT_SETTING_COUNT, true)                                                \
    X(LOAD, "operator_load", F32, true, RT_LOAD_COLUMNS, false)                                                        \
    X(POSITION, "operator_position", F32, true, RT_POSITION_COLUMNS, true)                                             \
    X(REPEATS, "operator_count", F32, true, 0, false)                                                                  \
    X(CONFIGURATION, "configuration", F32, false, RT_CONFIGURATION_NUMBERS, true)                                      \
    X(GPU, "gpu", F32, false, RT_GPU_NUMBERS, true)

typedef enum rt_job_input {
#define RT_JOB_INPUT_ENUM(id, ...) RT_JOB_INPUT_##id,
    RT_JOB_INPUT_MAP(RT_JOB_INPUT_ENUM)
#undef RT_JOB_INPUT_ENUM
        RT_JOB_INPUT_COUNT
} rt_job_input;

typedef struct rt_job_input_row {
    const char *name;
    mdot_dtype dtype;
    bool has_rows;
    int64_t columns;
    bool grows;
} rt_job_input_row;
extern const rt_job_input_row rt_job_inputs[RT_JOB_INPUT_COUNT];

enum { RT_NOT_THERE = -1 };

/* The two questions that an entry answers for a job, and their outputs. */
typedef enum rt_job_question { RT_JOB_PREDICT, RT_JOB_EXPLAIN } rt_job_question;
typedef enum rt_job_output {
    RT_JOB_OUTPUT_STEP,
    RT_JOB_OUTPUT_OUTSIDE,
    RT_JOB_OUTPUT_OPERATORS,
    RT_JOB_OUTPUT_OTHERS,
    RT_JOB_OUTPUT_COUNT
} rt_job_output;

/* Upper bound of type ids for artefacts that predate mdot_abi_tensor.index_count, the number of types that they
 * know. */
enum { RT_FIRST_TYPE_COUNT = 140 };

/* The cached features that an evaluation reads of a job: tensors with rows or of fixed size. */
enum { RT_CACHED_CAPACITY = 16 };
typedef struct rt_cached_tensor {
    const mdot_abi_tensor *tensor; /* the input of the evaluating entry */
    uint32_t read_at;              /* index in that entry's inputs */
    uint32_t made_at;              /* index in the outputs of "encode"; in one piece, the rt_job_input */
} rt_cached_tensor;

/* The entries of an artefact that predict or explain jobs. */
typedef struct rt_job_schema {
    uint32_t rows_entry, evaluate_entry; /* equal if the predictor is in one piece */
    int input_at[RT_JOB_INPUT_COUNT];    /* index in the inputs of the entry that reads it; RT_NOT_THERE if unread */
    size_t columns[RT_JOB_INPUT_COUNT];  /* number of columns that the entry reads */
    size_t known[RT_JOB_INPUT_COUNT];    /* number of leading columns that this runtime fills */
    const float *defaults[RT_JOB_INPUT_COUNT]; /* the predictor's values for the other columns; in the artefact */
    uint8_t number[RT_CONFIGURATION_NUMBERS];  /* RT_CONFIGURATION_… of each known column of `configuration` */
    rt_configuration_set reads;                /* the set of all these */
    uint32_t type_count;                       /* number of type ids that the predictor knows; others are passed as 0 */
    int output_at[RT_JOB_OUTPUT_COUNT];        /* index in the outputs; RT_NOT_THERE if absent */
    size_t outside_count;                      /* number of values in outside_training; 0 if absent */
    size_t row_capacity;                       /* rows of the largest bucket; 0 if rows are unread */
    size_t block;                              /* configurations, all of one batch, in one evaluation */
    size_t kept_count;
    rt_cached_tensor kept[RT_CACHED_CAPACITY];
} rt_job_schema;

static inline bool rt_is_pair(const rt_job_schema *schema)
{
    return schema->rows_entry != schema->evaluate_entry;
}

/* Returns INCOMPATIBLE with a message that names the missing or unknown tensor. */
mdot_status rt_job_schema_read(const mdot_abi_table *table, rt_job_question which, rt_job_schema *out_schema,
                               mdot_error *err);

/* The cached features of a job, in the schema's order. */
typedef struct rt_cached_features {
    size_t row_count;
    bool shortened; /* operators were merged because the largest bucket holds fewer rows */
    void *kept[RT_CACHED_CAPACITY];
} rt_cached_features;

/* Configurations of one run of the entry, and its answers. Number k of configuration i is at index k * block + i.
 * The arrays hold all numbers of this runtime and any further ones that the entry reads. */
typedef struct rt_job_block {
    float *configuration, *gpu, *step_ms, *outside;
    size_t count;
    int64_t batch;
    const void *inputs[RT_CACHED_CAPACITY + 2]; /* in the entry's order */
    void *outputs[2];
} rt_job_block;

/* Maximum number of configurations of one job, and of blocks, that are answered together. Blocks run side by side on
 * a GPU and one after the other on the CPU. */
enum { RT_PAIR_CAPACITY = 64, RT_BLOCK_CAPACITY = 16 };

typedef struct rt_job_pair {
    rt_resolved_configuration asked, told;
    const rt_job_block *block;
    size_t at; /* index in the block's configurations */
} rt_job_pair;

/* Inputs and outputs of calls of the entries: the state of rt_predict_extension (predict_extension.h), one block of memory in every
 * context. */
typedef struct rt_job_tensors {
    rt_job_schema schema;
    void *rows[RT_JOB_INPUT_COUNT]; /* tensors with rows, for the maximum number of rows; NULL if unread */
    size_t row_count;
    bool shortened;
    rt_cached_features encoded; /* of the current job, if the caller passes no encoding */
    size_t block_count;
    rt_job_block *blocks;
    rt_job_pair pairs[RT_PAIR_CAPACITY];
} rt_job_tensors;

/* For calls outside of loops. The tensors of predictions are created with the context. */
mdot_status rt_job_tensors_create(const mdot_predictor *predictor, const rt_job_schema *schema,
                                  rt_job_tensors **out_tensors, mdot_error *err);
void rt_job_tensors_destroy(const mdot_predictor *predictor, void *tensors);

/* Tensors are aligned to cache lines. */
static inline size_t rt_align(size_t bytes)
{
    enum { LINE_BYTES = 64 };
    return (bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
}

/* ---- encoding.c -------------------------------------------------------------------------------------------------- */

/* Writes the rows of one GPU's shard of the job and encodes them. `out` holds the maximum number of rows. */
void rt_encode(mdot_context *context, rt_job_tensors *tensors, const mdot_job *job, const rt_shard *share,
               rt_cached_features *out);

struct mdot_encoding {
    const mdot_predictor *predictor; /* reference counted */
    const mdot_job *job;             /* borrowed from the caller */
    rt_cached_features encoded;      /* the whole job on one GPU */
};

/* gpus.c: the table's row, borrowed. The message of INVALID_ARGUMENT lists the known names. */
mdot_status rt_gpu_find(const char *name, const mdot_gpu **out_gpu, mdot_error *err);
extern const bs_struct_version rt_gpu_type;
/* Returns INVALID_ARGUMENT for an unprintable name, because text that contains it would be read as another name.
 * NULL is valid. */
mdot_status rt_gpu_check_name(const char *name, mdot_error *err);
extern const bs_struct_version rt_configuration_type; /* configuration.c */

/* ---- analytic_correction.c -------------------------------------------------------------------------------------------------- */

/* Projects a requested configuration onto the numbers that a predictor reads: the queried configuration. */
void rt_project_configuration(const rt_resolved_configuration *asked, const mdot_job *job, rt_configuration_set reads,
                              rt_resolved_configuration *out_queried);

/* Converts the answer for the queried configuration to one for the requested configuration. */
typedef struct rt_correction {
    double step_ms;
    double wider;  /* factor by which the interval widens, each way */
    bool modelled; /* estimated analytically by more than a negligible change */
    bool differs;  /* the queried and requested configurations differ */
    bool exchanges;
    double exchanged_ms; /* part of step_ms in which GPUs wait for exchanges, if it is computed here (`exchanges`) */
} rt_correction;
rt_correction rt_correct(const rt_resolved_configuration *asked, const rt_resolved_configuration *told,
                         const mdot_job *job, double step_ms);

/* ---- operator_features.c ------------------------------------------------------------------------------------------------------ */

/* Fills the tensors that have rows with the work of one GPU. */
void rt_write_operator_features(const mdot_job *job, const rt_shard *share, rt_job_tensors *tensors);
/* The row of each operator in tensors filled by rt_write_operator_features. */
void rt_find_feature_rows(const mdot_job *job, const rt_shard *share, const rt_job_tensors *tensors, uint32_t *out_row);

/* ---- predict.c --------------------------------------------------------------------------------------------------- */

/* Adds a configuration to a block that has space. Returns its index there. */
size_t rt_add_configuration(const rt_job_schema *schema, const rt_resolved_configuration *told, rt_job_block *block);
/* Sets the encoded tensors as inputs of the block's run. */
void rt_bind_cached_features(const rt_job_schema *schema, const rt_cached_features *encoded, rt_job_block *block);

/* One prediction, with the queried configuration and the predictor's raw answer. The caller has entered the context
 * (handle_validation.h). */
typedef struct rt_answer {
    mdot_prediction prediction;
    rt_resolved_configuration asked, told;
    double queried_ms;
} rt_answer;
mdot_status rt_answer_one(mdot_context *context, const mdot_job *job, const mdot_configuration *configuration,
                          rt_answer *out_answer, mdot_error *err);

/* ---- explain.c --------------------------------------------------------------------------------------------------- */

/* One prediction and its breakdown. The caller has entered the context. */
mdot_status rt_explain_one(mdot_context *context, const mdot_job *job, const mdot_configuration *configuration,
                           mdot_prediction *out_prediction, mdot_explanation_info *out_info, mdot_error *err);

#endif
