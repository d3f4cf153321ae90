/* predict.h — what the files about predictions share. Private to runtime/.
 *
 *   predictor_schema.c     which of the tensors below an artefact's entries read; found when a context is made
 *   predictor_tensors.c    memory for them in every context
 *   operator_features.c           a job → the rows of these tensors, merged where the entry allows or the largest bucket asks for it
 *   encoding.c       rows → what prices read of a job; mdot_encoding, which keeps it
 *   configuration.c  a configuration as the caller gave it → checked, its GPU found (resolved_configuration.h)
 *   analytic_correction.c       what the predictor has no input for → a correction of its answer
 *   job_inputs.c     mdot_job_inputs: the tensors of one entry, for the caller
 *   predict.c        mdot_predict and its kin: a job and configurations → blocks of them → mdot_predictions
 *
 * A predictor comes in one piece, entry "predict", which reads rows and one configuration; or in two: "encode" reads
 * rows, "price" what "encode" wrote and a block of configurations. In one piece the rows are what a price reads of a
 * job, and a block is one configuration.
 *
 * mdot_predict.h describes the tensors for people who train predictors, under "Predictions".
 */
#ifndef RT_PREDICT_H
#define RT_PREDICT_H

#include "base/struct_version.h"
#include "runtime/perf/resolved_configuration.h"

#include "mdot/mdot_abi.h"

enum {
    RT_LOAD_NUMBERS = 3, /* of an mdot_load */
    RT_LOAD_COLUMNS = 2 * MDOT_PHASE_COUNT * RT_LOAD_NUMBERS + 1,
    RT_POSITION_COLUMNS = 5,
    RT_STEP_NUMBERS = 3,
    RT_OTHER_NUMBERS = 3, /* of a step, what is no operator's: optimizer, host, link */
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

/* Which of them a predictor reads: bit RT_CONFIGURATION_… for each. */
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

/* Inputs: identifier, name, element type, whether it has a row for each operator, columns (0: it has rows alone),
 * whether columns are appended from version to version: a predictor reads as many of the first ones as there were for
 * it, and says what those are that came later than this runtime. */
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

/* What jobs are asked of, and what is answered. */
typedef enum rt_job_question { RT_JOB_PREDICT, RT_JOB_EXPLAIN } rt_job_question;
typedef enum rt_job_output {
    RT_JOB_OUTPUT_STEP,
    RT_JOB_OUTPUT_OUTSIDE,
    RT_JOB_OUTPUT_OPERATORS,
    RT_JOB_OUTPUT_OTHERS,
    RT_JOB_OUTPUT_COUNT
} rt_job_output;

/* Types had numbers below this when artefacts did not say yet how many they know (mdot_abi_tensor.index_count). */
enum { RT_FIRST_TYPE_COUNT = 140 };

/* What prices read of a job: tensors with rows or of fixed size. */
enum { RT_CACHED_CAPACITY = 16 };
typedef struct rt_cached_tensor {
    const mdot_abi_tensor *tensor; /* the input of the entry that prices */
    uint32_t read_at;              /* among that entry's inputs */
    uint32_t made_at;              /* among the outputs of "encode"; in one piece the rt_job_input */
} rt_cached_tensor;

/* The entries of an artefact that predict or explain jobs. */
typedef struct rt_job_schema {
    uint32_t rows_entry, evaluate_entry; /* the same where the predictor is in one piece */
    int input_at[RT_JOB_INPUT_COUNT];    /* among the inputs of the entry that reads it; RT_NOT_THERE: none does */
    size_t columns[RT_JOB_INPUT_COUNT];  /* that the entry reads of it */
    size_t known[RT_JOB_INPUT_COUNT];    /* of these the first so many are this runtime's to fill */
    const float *defaults[RT_JOB_INPUT_COUNT]; /* what the others are, the predictor's; in the artefact */
    uint8_t number[RT_CONFIGURATION_NUMBERS];  /* RT_CONFIGURATION_… of each known column of `configuration` */
    rt_configuration_set reads;                /* all of these */
    uint32_t type_count;                       /* numbers of types that it knows; others are 0 to it */
    int output_at[RT_JOB_OUTPUT_COUNT];        /* among the outputs; RT_NOT_THERE: it is not answered */
    size_t outside_count;                      /* numbers of outside_training; 0: it is not answered */
    size_t row_capacity;                       /* rows of the largest bucket; 0: no rows are read */
    size_t block;                              /* configurations that are priced at once, all of one batch */
    size_t kept_count;
    rt_cached_tensor kept[RT_CACHED_CAPACITY];
} rt_job_schema;

static inline bool rt_is_pair(const rt_job_schema *schema)
{
    return schema->rows_entry != schema->evaluate_entry;
}

/* INCOMPATIBLE naming what is missing or unknown. */
mdot_status rt_job_schema_read(const mdot_abi_table *table, rt_job_question which, rt_job_schema *out_schema,
                               mdot_error *err);

/* What prices read of a job, in the schema's order. */
typedef struct rt_cached_features {
    size_t row_count;
    bool shortened; /* operators were merged because the largest bucket holds fewer rows */
    void *kept[RT_CACHED_CAPACITY];
} rt_cached_features;

/* Configurations that one run of the entry prices, and its answers: number k of configuration i lies at k * block + i.
 * Room for all numbers that there are, and for those that the entry reads beyond. */
typedef struct rt_job_block {
    float *configuration, *gpu, *step_ms, *outside;
    size_t count;
    int64_t batch;
    const void *inputs[RT_CACHED_CAPACITY + 2]; /* in the entry's order */
    void *outputs[2];
} rt_job_block;

/* So many configurations of one job are answered together, and so many blocks of them: side by side on a GPU, one
 * after the other on the CPU. */
enum { RT_PAIR_CAPACITY = 64, RT_BLOCK_CAPACITY = 16 };

typedef struct rt_job_pair {
    rt_resolved_configuration asked, told;
    const rt_job_block *block;
    size_t at; /* among the block's configurations */
} rt_job_pair;

/* What calls of the entries read and write: the state of rt_predict_extension (predict_extension.h), one block of memory in every
 * context. */
typedef struct rt_job_tensors {
    rt_job_schema schema;
    void *rows[RT_JOB_INPUT_COUNT]; /* tensors with rows, for the most rows; NULL: it is not read */
    size_t row_count;
    bool shortened;
    rt_cached_features encoded; /* of the job at hand, where the caller brings no encoding */
    size_t block_count;
    rt_job_block *blocks;
    rt_job_pair pairs[RT_PAIR_CAPACITY];
} rt_job_tensors;

/* For what is not asked in a loop; what predictions use is made with the context. */
mdot_status rt_job_tensors_create(const mdot_predictor *predictor, const rt_job_schema *schema,
                                  rt_job_tensors **out_tensors, mdot_error *err);
void rt_job_tensors_destroy(const mdot_predictor *predictor, void *tensors);

/* Tensors lie on whole cache lines. */
static inline size_t rt_align(size_t bytes)
{
    enum { LINE_BYTES = 64 };
    return (bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
}

/* ---- encoding.c -------------------------------------------------------------------------------------------------- */

/* Writes rows of one GPU's share of the job and encodes them; `out` has room for the most rows. */
void rt_encode(mdot_context *context, rt_job_tensors *tensors, const mdot_job *job, const rt_shard *share,
               rt_cached_features *out);

struct mdot_encoding {
    const mdot_predictor *predictor; /* kept */
    const mdot_job *job;             /* the caller's */
    rt_cached_features encoded;      /* of all of the job on one GPU */
};

/* gpus.c: the table's row; lent. INVALID_ARGUMENT names those that there are. */
mdot_status rt_gpu_find(const char *name, const mdot_gpu **out_gpu, mdot_error *err);
extern const bs_struct_version rt_gpu_type;
/* INVALID_ARGUMENT for a name that cannot be printed: a text with it would be read as another. NULL is right. */
mdot_status rt_gpu_check_name(const char *name, mdot_error *err);
extern const bs_struct_version rt_configuration_type; /* configuration.c */

/* ---- analytic_correction.c -------------------------------------------------------------------------------------------------- */

/* What a predictor that reads these numbers of configurations is told of one. */
void rt_project_configuration(const rt_resolved_configuration *asked, const mdot_job *job, rt_configuration_set reads,
                              rt_resolved_configuration *out_queried);

/* An answer to what was told → the answer to what was asked. */
typedef struct rt_correction {
    double step_ms;
    double wider;  /* by which the interval is wider, each way */
    bool modelled; /* and worth a word */
    bool differs;  /* what was told is not what was asked */
    bool exchanges;
    double exchanged_ms; /* of step_ms, what GPUs wait for, where it is counted here (exchanges) */
} rt_correction;
rt_correction rt_correct(const rt_resolved_configuration *asked, const rt_resolved_configuration *told,
                         const mdot_job *job, double step_ms);

/* ---- operator_features.c ------------------------------------------------------------------------------------------------------ */

/* Fills the tensors that have rows with what one GPU does. */
void rt_write_operator_features(const mdot_job *job, const rt_shard *share, rt_job_tensors *tensors);
/* The row that stands for each operator, of tensors so filled. */
void rt_find_feature_rows(const mdot_job *job, const rt_shard *share, const rt_job_tensors *tensors, uint32_t *out_row);

/* ---- predict.c --------------------------------------------------------------------------------------------------- */

/* Adds a configuration to a block, which has room; its place there. */
size_t rt_add_configuration(const rt_job_schema *schema, const rt_resolved_configuration *told, rt_job_block *block);
/* Lets the block's run read what was encoded. */
void rt_bind_cached_features(const rt_job_schema *schema, const rt_cached_features *encoded, rt_job_block *block);

/* One prediction, and what the predictor was told and said. The caller has entered the context (handle_validation.h). */
typedef struct rt_answer {
    mdot_prediction prediction;
    rt_resolved_configuration asked, told;
    double queried_ms;
} rt_answer;
mdot_status rt_answer_one(mdot_context *context, const mdot_job *job, const mdot_configuration *configuration,
                          rt_answer *out_answer, mdot_error *err);

/* ---- explain.c --------------------------------------------------------------------------------------------------- */

/* One prediction and what it is made of. The caller has entered the context, too. */
mdot_status rt_explain_one(mdot_context *context, const mdot_job *job, const mdot_configuration *configuration,
                           mdot_prediction *out_prediction, mdot_explanation_info *out_info, mdot_error *err);

#endif
