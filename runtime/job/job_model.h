/* job_model.h — a job in memory: its operators and everything that follows from them alone. job_model.c makes jobs.
 *
 * A job carries an analysis (core.h), which another component makes once when the job is created. The files of
 * runtime/job know only its address.
 */
#ifndef RT_JOB_MODEL_H
#define RT_JOB_MODEL_H

#include "runtime/core/core.h"
#include "runtime/job/job_program.h"
#include "runtime/job/string_pool.h"

struct mdot_job {
    mdot_job_info info;
    mdot_job_operator *operators; /* their strings and inputs point into the two members below */
    uint32_t *inputs;
    rt_string_pool strings;
    const rt_job_analyzer *analyzer; /* the maker of `analysis` */
    rt_analysis *analysis;
    rt_program *program; /* NULL: unknown */
};

/* The largest integer up to which a double represents every integer. */
#define RT_JOB_MAX_COUNT 9007199254740992.0 /* 2^53 */
/* Limit of settings. It exceeds the positions of a sample and is small enough for a predictor's f32 operations. */
#define RT_JOB_MAX_SETTING (INT64_C(1) << 40)
/* Limit of type ids. Predictors hold a row for each. */
enum { RT_JOB_MAX_TYPE = 65535 };
/* Limit of operators. Each takes about a kilobyte (mdot_job.h). The longest real job has some ten thousand. */
enum { RT_JOB_MAX_OPERATORS = 1 << 22 };
/* Limit of a `.job` file: 64 bytes per operator, about the size of an operator with its name. */
#define RT_JOB_MAX_FILE_BYTES (UINT64_C(1) << 28)

/* mdot_job_create with these components, which must outlive the job. */
mdot_status rt_job_create(const rt_components *components, const mdot_job_description *description, mdot_job **out_job,
                          mdot_error *err);

/* Like rt_job_create, for heap-allocated operators that are already in this library's form. The job takes ownership of
 * them, even on failure. Strings, inputs and the program, which may be NULL, are copied. The description's own
 * operators are ignored. */
mdot_status rt_job_make(const rt_components *components, const mdot_job_description *description,
                        mdot_job_operator *operators, const rt_program *program, mdot_job **out_job, mdot_error *err);

/* Returns a copy of the job's operators for rt_job_copy, with the job's strings and inputs; NULL if memory runs out. */
mdot_job_operator *rt_copy_operators(const mdot_job *job);
/* Makes a job like `job` with these operators, in the same number, and this program, which may be NULL. The new job
 * takes ownership of the operators. OUT_OF_MEMORY if they are NULL. */
mdot_status rt_job_copy(const rt_components *components, const mdot_job *job, mdot_job_operator *operators,
                        const rt_program *program, mdot_job **out_job, mdot_error *err);

#endif
