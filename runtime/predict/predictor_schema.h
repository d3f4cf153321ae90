/* predictor_schema.h — the tensors by which an artefact's entries predict or explain jobs.
 *
 * A predictor consists of one entry, "predict", which reads rows and one configuration; or of two. Then "encode"
 * reads rows, and "evaluate" reads the outputs of "encode" and a block of configurations. In one piece, the cached
 * features are the rows themselves, and a block is one configuration.
 *
 * mdot_predict.h describes the tensors for people who train predictors, under "Predictions".
 */
#pragma once

#include "mdot/mdot_abi.h"
#include "mdot/mdot_predict.h"
#include "runtime/job/gpus.h"

enum {
    RT_LOAD_NUMBERS = 3, /* numbers in an mdot_load */
    RT_LOAD_COLUMNS = 2 * MDOT_PHASE_COUNT * RT_LOAD_NUMBERS + 1,
    RT_POSITION_COLUMNS = 5,
    RT_STEP_NUMBERS = 3,
    RT_OTHER_NUMBERS = 4, /* times outside the operators: optimizer, waiting for the host, link; the host's own time */
    RT_OTHER_PARTS = 3,   /* the numbers that every predictor has */
    RT_PART_NUMBERS = 10, /* busy times: both passes by work, update, host */
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

/* The numbers that a predictor reads, as a set: RT_CONFIGURATION_BIT(RT_CONFIGURATION_…) for each. */
typedef uint64_t rt_configuration_set;
static_assert(RT_CONFIGURATION_NUMBERS <= 64, "a bit for each number");
#define RT_CONFIGURATION_BIT(number) (UINT64_C(1) << (number))
static inline rt_configuration_set rt_first_numbers(size_t count)
{
    return count < 64 ? RT_CONFIGURATION_BIT(count) - 1 : UINT64_MAX;
}

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

/* Two questions that an entry answers for a job, and the outputs. */
typedef enum rt_job_question { RT_JOB_PREDICT, RT_JOB_EXPLAIN } rt_job_question;
typedef enum rt_job_output {
    RT_JOB_OUTPUT_STEP,
    RT_JOB_OUTPUT_OUTSIDE,
    RT_JOB_OUTPUT_PARTS,
    RT_JOB_OUTPUT_OPERATORS,
    RT_JOB_OUTPUT_OTHERS,
    RT_JOB_OUTPUT_COUNT
} rt_job_output;

/* A job's cached features for evaluations: tensors with rows or with a fixed size. */
enum { RT_CACHED_CAPACITY = 16 };
typedef struct rt_cached_tensor {
    const mdot_abi_tensor *tensor; /* the input of the evaluating entry */
    uint32_t read_at;              /* index in that entry's inputs */
    uint32_t made_at;              /* index in the outputs of "encode"; in one piece, the rt_job_input */
} rt_cached_tensor;

/* Maximum number of one job's configurations, and of blocks, in one answer. Blocks run side by side on a GPU, and one
 * after the other on the CPU. */
enum { RT_PAIR_CAPACITY = 64, RT_BLOCK_CAPACITY = 16 };

/* An artefact's entries that predict or explain jobs. */
typedef struct rt_job_schema {
    uint32_t rows_entry, evaluate_entry;       /* equal if the predictor is in one piece */
    int input_at[RT_JOB_INPUT_COUNT];          /* input index in the reading entry; RT_NOT_THERE if unread */
    size_t columns[RT_JOB_INPUT_COUNT];        /* columns that the entry reads */
    size_t known[RT_JOB_INPUT_COUNT];          /* leading columns that this runtime fills */
    const float *defaults[RT_JOB_INPUT_COUNT]; /* the predictor's values for the other columns; in the artefact */
    uint8_t number[RT_CONFIGURATION_NUMBERS];  /* RT_CONFIGURATION_… for each known column of `configuration` */
    rt_configuration_set reads;                /* the set of all these */
    uint32_t type_count; /* number of type ids that the predictor knows; others are passed as 0. A predictor without a
                          * type table knows all ids */
    int output_at[RT_JOB_OUTPUT_COUNT]; /* index in the outputs; RT_NOT_THERE if absent */
    size_t other_count;                 /* number of values in other_ms: RT_OTHER_PARTS or RT_OTHER_NUMBERS */
    size_t outside_count;               /* number of values in outside_training; 0 if absent */
    size_t row_capacity;                /* rows of the largest bucket; 0 if rows are unread */
    size_t block;                       /* configurations, all of one batch, in one evaluation */
    size_t cached_count;
    rt_cached_tensor cached[RT_CACHED_CAPACITY];
} rt_job_schema;

static inline bool rt_is_pair(const rt_job_schema *schema) { return schema->rows_entry != schema->evaluate_entry; }

/* Returns INCOMPATIBLE with a message that names the missing or unknown tensor. */
mdot_status rt_job_schema_read(const mdot_abi_table *table, rt_job_question which, rt_job_schema *out_schema,
                               mdot_error *err);
