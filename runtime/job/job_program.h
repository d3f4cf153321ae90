/* job_program.h — how the PyTorch program of a job was written (mdot_program.h). */
#ifndef RT_JOB_PROGRAM_H
#define RT_JOB_PROGRAM_H

#include "mdot/mdot_program.h"
#include "runtime/core/core.h"

/* Fractions are stored as multiples of 1 / RT_PROGRAM_FRACTIONS, so that a file holds them exactly. */
enum { RT_PROGRAM_FRACTIONS = 1 << 20 };

/* The program with all that it points to. */
typedef struct rt_program {
    mdot_job_program program; /* `recorded` points at `records` */
    mdot_recorded_memory records[MDOT_RECORDED_MEMORY_MAX];
    /* Bytes of activations per sample, by the analytic model, of the job that was recorded. The memory of a job that
     * was frozen afterwards, and of other configurations, follows by ratios. 0: not yet estimated. */
    double analytic_bytes[MDOT_RECORDED_MEMORY_MAX];
    mdot_peak_moment moments[MDOT_RECORDED_MEMORY_MAX][MDOT_PEAK_MOMENTS_MAX];
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
/* Accounts for parameters that were frozen: the trained part that is left, 0 to 1. */
void rt_program_freeze(rt_program *program, double trained_part);

#endif
