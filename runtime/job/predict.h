/* predict.h — what the files about predictions share. Private to runtime/.
 *
 *   job_schema.c     which of the tensors below an artefact's entry "predict" reads; found when a context is made
 *   rows.c           a job → the rows of these tensors, merged where the entry allows or the largest bucket asks for it
 *   configuration.c  a configuration as the caller gave it → checked, its GPU found (setup.h)
 *   modelled.c       what the predictor has no input for → a correction of its answer
 *   predict.c        mdot_predict and its kin: rows and a configuration → a run of the entry → an mdot_prediction
 *
 * mdot_predict.h describes the tensors for people who train predictors, under "Predictions".
 */
#ifndef RT_PREDICT_H
#define RT_PREDICT_H

#include "base/sized.h"
#include "runtime/job/setup.h"

#include "mdot/mdot_abi.h"

enum {
    RT_LOAD_NUMBERS = 3, /* of an mdot_load */
    RT_LOAD_COLUMNS = 2 * MDOT_PHASE_COUNT * RT_LOAD_NUMBERS + 1,
    RT_POSITION_COLUMNS = 5,
    RT_STEP_NUMBERS = 3,
    RT_OTHER_NUMBERS = 3 /* of a step, what is no operator's: optimizer, host, link */
};

/* The numbers of the input `configuration`: append only. */
enum {
    RT_CONFIGURATION_BATCH,
    RT_CONFIGURATION_GPUS,
    RT_CONFIGURATION_FP32,
    RT_CONFIGURATION_TF32,
    RT_CONFIGURATION_AMP,
    RT_CONFIGURATION_NHWC,
    RT_CONFIGURATION_ADAM,
    RT_CONFIGURATION_ADAMW,
    RT_CONFIGURATION_AMP_BF16,
    RT_CONFIGURATION_BF16,
    RT_CONFIGURATION_PYTORCH,
    RT_CONFIGURATION_EAGER,
    RT_CONFIGURATION_COMPILED,
    RT_CONFIGURATION_RECOMPUTE_BLOCKS,
    RT_CONFIGURATION_RECOMPUTE_SELECTIVE,
    RT_CONFIGURATION_PASSES,
    RT_CONFIGURATION_LINK_GBPS,
    RT_CONFIGURATION_NETWORK_GBPS,
    RT_CONFIGURATION_NODES,
    RT_CONFIGURATION_DATA_PARALLEL,
    RT_CONFIGURATION_TENSOR_PARALLEL,
    RT_CONFIGURATION_PIPELINE_PARALLEL,
    RT_CONFIGURATION_EXPERT_PARALLEL,
    RT_CONFIGURATION_MICRO_BATCHES,
    RT_CONFIGURATION_ZERO_STAGE,
    RT_CONFIGURATION_NUMBERS
};

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
    X(pcie_gbps)

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

enum { RT_NOT_THERE = -1 };

/* Entries that jobs are asked of, and what they answer. */
typedef enum rt_job_entry { RT_JOB_PREDICT, RT_JOB_EXPLAIN } rt_job_entry;
typedef enum rt_job_output {
    RT_JOB_OUTPUT_STEP,
    RT_JOB_OUTPUT_OUTSIDE,
    RT_JOB_OUTPUT_OPERATORS,
    RT_JOB_OUTPUT_OTHERS,
    RT_JOB_OUTPUT_COUNT
} rt_job_output;

/* Types had numbers below this when artefacts did not say yet how many they know (mdot_abi_tensor.index_count). */
enum { RT_FIRST_TYPE_COUNT = 140 };

/* An entry of an artefact that predicts or explains jobs. */
typedef struct rt_job_schema {
    uint32_t entry;
    int input_at[RT_JOB_INPUT_COUNT];          /* among the entry's inputs; RT_NOT_THERE: it is not read */
    size_t columns[RT_JOB_INPUT_COUNT];        /* that the entry reads of it */
    size_t known[RT_JOB_INPUT_COUNT];          /* of these the first so many are this runtime's to fill */
    const float *defaults[RT_JOB_INPUT_COUNT]; /* what the others are, the predictor's; in the artefact */
    uint32_t type_count;                       /* numbers of types that it knows; others are 0 to it */
    int output_at[RT_JOB_OUTPUT_COUNT];        /* among its outputs; RT_NOT_THERE: it does not answer that */
    size_t row_capacity;                       /* rows of the largest bucket; 0: the entry reads no rows */
} rt_job_schema;

/* INCOMPATIBLE naming what is missing or unknown. */
mdot_status rt_job_schema_read(const mdot_abi_table *table, rt_job_entry which, rt_job_schema *out_schema,
                               mdot_error *err);

/* One job's rows under this many configurations run at once: side by side on a GPU, one after the other on the CPU.
 * */
enum { RT_PAIR_CAPACITY = 64 };

/* What one configuration adds to the rows, and its answer. */
typedef struct rt_job_pair {
    float *configuration, *gpu; /* room for all numbers that there are, and for those that the entry reads beyond */
    float step_ms[RT_STEP_NUMBERS], outside;
    rt_setup asked, told;
    const void *inputs[RT_JOB_INPUT_COUNT]; /* in the entry's order */
    void *outputs[2];
} rt_job_pair;

/* What calls of the entry read and write: the state of rt_job_extension (job.h), one block of memory in every
 * context.
 */
typedef struct rt_job_tensors {
    rt_job_schema schema;
    void *rows[RT_JOB_INPUT_COUNT]; /* tensors with rows, for the most rows; NULL: it is not read */
    size_t row_count;
    bool shortened; /* operators were merged because the largest bucket holds fewer rows */
    rt_job_pair pairs[RT_PAIR_CAPACITY];
} rt_job_tensors;

/* For an entry that is not asked in a loop; what calls of "predict" use is made with the context. */
mdot_status rt_job_tensors_create(const mdot_predictor *predictor, const rt_job_schema *schema,
                                  rt_job_tensors **out_tensors, mdot_error *err);
void rt_job_tensors_destroy(const mdot_predictor *predictor, void *tensors);

/* gpus.c: the table's row; lent. INVALID_ARGUMENT names those that there are. */
mdot_status rt_gpu_find(const char *name, const mdot_gpu **out_gpu, mdot_error *err);
extern const bs_sized rt_gpu_type;

/* ---- modelled.c -------------------------------------------------------------------------------------------------- */

/* What a predictor that reads the first `known` numbers of configurations is told of one. */
void rt_tell(const rt_setup *asked, const mdot_job *job, size_t known, rt_setup *out_told);

/* An answer to what was told → the answer to what was asked. */
typedef struct rt_correction {
    double step_ms;
    double wider;  /* by which the interval is wider, each way */
    bool modelled; /* and worth a word */
    bool differs;  /* what was told is not what was asked */
    bool exchanges;
    double exchanged_ms; /* of step_ms, what GPUs wait for, where it is counted here (exchanges) */
} rt_correction;
rt_correction rt_correct(const rt_setup *asked, const rt_setup *told, const mdot_job *job, double step_ms);

/* ---- rows.c ------------------------------------------------------------------------------------------------------ */

/* Fills the tensors that have rows with what one GPU does. */
void rt_write_rows(const mdot_job *job, const rt_share *share, rt_job_tensors *tensors);
/* The row that stands for each operator, of tensors so filled. */
void rt_find_rows(const mdot_job *job, const rt_share *share, const rt_job_tensors *tensors, uint32_t *out_row);

/* ---- predict.c --------------------------------------------------------------------------------------------------- */

/* Fills a pair's tensors without rows from what was asked and told. */
void rt_write_numbers(rt_job_pair *pair);

/* One prediction, and what the predictor was told and said. */
typedef struct rt_answer {
    mdot_prediction prediction;
    rt_setup asked, told;
    double told_ms;
} rt_answer;
mdot_status rt_answer_one(mdot_context *context, const mdot_job *job, const mdot_configuration *configuration,
                          rt_answer *out_answer, mdot_error *err);

#endif
