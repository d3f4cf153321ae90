/* job_model.h — a job in memory: operators and everything that follows from them alone. job_model.c makes jobs.
 *
 * A job carries an analysis (core.h), which another component makes when the job is created. The files of runtime/job
 * know only its address. */
#pragma once

#include "mdot/mdot_program.h"
#include "runtime/core/core.h"

typedef struct rt_string_pool {
    char *chars; /* each string once, in alphabetical order: comparing two addresses compares the strings */
    size_t bytes;
} rt_string_pool;

/* Copies the operators' types and modules into the empty pool, equal ones once, and lets the operators point there. The
 * caller frees out_pool->chars. Returns false if memory runs out. */
bool rt_pool_strings(mdot_job_operator *operators, size_t count, rt_string_pool *out_pool);

/* Fractions are multiples of 1 / RT_PROGRAM_FRACTIONS, which a file holds exactly. */
enum { RT_PROGRAM_FRACTIONS = 1 << 20 };

/* The program with all that it points to. */
typedef struct rt_program {
    mdot_job_program program; /* `recorded` points at `records` */
    mdot_recorded_memory records[MDOT_RECORDED_MEMORY_MAX];
    /* Activation bytes per sample of the recorded job, by the analytic model. Ratios give the memory for other
     * configurations, and for a job frozen afterwards. 0: not yet estimated. */
    double analytic_bytes[MDOT_RECORDED_MEMORY_MAX];
    mdot_peak_moment moments[MDOT_RECORDED_MEMORY_MAX][MDOT_PEAK_MOMENTS_MAX];
    char check_modules[MDOT_CHECK_TEXT_BYTES + 1]; /* `program.check.modules` points here unless it is empty */
} rt_program;

/* Checks the ranges of a caller's program. */
mdot_status rt_program_check(const mdot_job_program *program, mdot_error *err);
/* Copies a program that was checked. */
void rt_program_take(const mdot_job_program *source, rt_program *out);
/* Makes the program's pointers point into it. */
void rt_program_link(rt_program *program);
/* Returns NULL if memory runs out. The caller frees the copy. */
rt_program *rt_program_copy(const rt_program *program);
/* Estimates the analytic bytes that are missing, from a job's analysis. */
void rt_program_estimate(const rt_job_analyzer *analyzer, const rt_analysis *analysis, rt_program *program);
/* Clears in `out`, a copy for another length, the analytic bytes that equal the estimate, because the maximum of
 * several sums is no polynomial of the length. Those of a job with frozen parameters are left. */
void rt_program_forget(const rt_job_analyzer *analyzer, const rt_analysis *analysis, const rt_program *program,
                       rt_program *out);
/* Accounts for frozen parameters: the remaining trained part, 0 to 1. */
void rt_program_freeze(rt_program *program, double trained_part);

enum { RT_LOAD_COUNT = 9 * MDOT_PHASE_COUNT };

/* Load k of an operator, in the order of the file: for each phase three numbers per sample, then three per step; and
 * behind all phases, three per square for each phase. */
double *rt_load_at(mdot_job_operator *op, int k);

enum { RT_LENGTH_COUNT = 3, RT_LENGTH_NAME_BYTES = 64 };
#define RT_MAX_LENGTH (INT64_C(1) << 24)

/* A number that varies with the length. */
typedef struct rt_varying {
    uint32_t owner; /* operator's index; the number of operators for the program */
    uint32_t slot;  /* which of the owner's numbers (lengths.c) */
    double value[RT_LENGTH_COUNT];
} rt_varying;

/* A job's symbolic length. Each job is at one length; the numbers for the others follow from three lengths. */
typedef struct rt_lengths {
    char name[RT_LENGTH_NAME_BYTES];
    int64_t current, length[RT_LENGTH_COUNT];
    size_t count;
    rt_varying varying[]; /* ordered by owner and slot */
} rt_lengths;

/* The numbers of a job that may vary. */
typedef struct rt_job_numbers {
    mdot_job_operator *operators;
    size_t count;
    rt_program *program; /* NULL: the job has none */
} rt_job_numbers;

/* Room for `count` numbers, zeroed; NULL if memory runs out. */
rt_lengths *rt_lengths_create(size_t count);
/* Copies the numbers that still have their value, because freezing a job removes some; NULL if memory runs out. */
rt_lengths *rt_lengths_copy(const rt_lengths *lengths, const rt_job_numbers *numbers);
/* Moves to another length, and gives the numbers their values there. Returns false if one is beyond its range. */
bool rt_lengths_apply(rt_lengths *lengths, int64_t length, const rt_job_numbers *numbers);
/* Counts the numbers that differ between three jobs, and writes them unless `out` is NULL. */
size_t rt_lengths_collect(const rt_job_numbers numbers[RT_LENGTH_COUNT], rt_varying *out);
/* mdot_job_of_lengths and mdot_job_with_length with these components, which must outlive the job. */
mdot_status rt_job_of_lengths(const rt_components *components, const mdot_job *const jobs[3], const int64_t lengths[3],
                              const char *name, mdot_job **out_job, mdot_error *err);
mdot_status rt_job_with_length(const rt_components *components, const mdot_job *job, int64_t length, mdot_job **out_job,
                               mdot_error *err);

struct mdot_job {
    mdot_job_info info;
    mdot_job_operator *operators; /* their strings and inputs point into the two members below */
    uint32_t *inputs;
    rt_string_pool strings;
    const rt_job_analyzer *analyzer; /* the maker of `analysis` */
    rt_analysis *analysis;
    rt_program *program; /* NULL: unknown */
    rt_lengths *lengths; /* NULL: the job has no symbolic length */
};

/* Limit of counts, which files hold as 64-bit integers. From 2^53 on, a double rounds them. */
#define RT_JOB_MAX_COUNT 0x1p62
#define RT_MAX_CHECK (0x1p63 - 1024) /* the largest double below 2^63; of a whole pass in the work check */
/* Limit of settings. It exceeds the positions of a sample and is small enough for a predictor's f32 operations. */
#define RT_JOB_MAX_SETTING (INT64_C(1) << 40)
/* Limit of type ids. Predictors hold a row for each. */
enum { RT_JOB_MAX_TYPE = 65535 };
/* Limit of operators. Each takes about a kilobyte (mdot_job.h). The longest real job has some ten thousand. */
enum { RT_JOB_MAX_OPERATORS = 1 << 22 };
/* Limit of a `.job` file: 64 bytes per operator, about the size of an operator and a name. */
#define RT_JOB_MAX_FILE_BYTES (UINT64_C(1) << 28)

/* mdot_job_create with these components, which must outlive the job. */
mdot_status rt_job_create(const rt_components *components, const mdot_job_description *description, mdot_job **out_job,
                          mdot_error *err);

/* Like rt_job_create, for heap-allocated operators that are already in this library's form. The job takes ownership of
 * them, even on failure. Strings, inputs, the program and the lengths are copied; the last two may be NULL. The
 * description's own operators are ignored. */
mdot_status rt_job_make(const rt_components *components, const mdot_job_description *description,
                        mdot_job_operator *operators, const rt_program *program, const rt_lengths *lengths,
                        mdot_job **out_job, mdot_error *err);

/* Returns a copy of the job's operators for rt_job_copy, with the job's strings and inputs; NULL if memory runs out. */
mdot_job_operator *rt_copy_operators(const mdot_job *job);
/* Makes a job like `job` with these operators, in the same number, this program and these lengths; the last two may be
 * NULL. The new job takes ownership of the operators. OUT_OF_MEMORY if they are NULL. */
mdot_status rt_job_copy(const rt_components *components, const mdot_job *job, mdot_job_operator *operators,
                        const rt_program *program, const rt_lengths *lengths, mdot_job **out_job, mdot_error *err);

/* Fills each operator's number of equal blocks. The operators are in blocks 1 to block_count, or in none (0). Returns
 * false if memory runs out. */
bool rt_compare_blocks(mdot_job_operator *operators, size_t count, uint32_t block_count);

/* mdot_job_freeze with these components, which must outlive the new job. */
mdot_status rt_job_freeze(const rt_components *components, const mdot_job *job, const mdot_job_freezing *freezing,
                          mdot_job **out_job, mdot_error *err);

/* mdot_job_with_program with these components, which must outlive the job. */
mdot_status rt_job_with_program(const rt_components *components, const mdot_job *job, const mdot_job_program *program,
                                mdot_job **out_job, mdot_error *err);
