/* mdot_record.h — record measured training steps as table rows for `mdot calibrate`.
 *
 * mdot.h includes this header and states the library's rules: ownership, threading, memory, errors.
 *
 *     mdot_recorder_create(NULL, &recorder, &err);
 *     while (train_step(&ms)) mdot_recorder_step(recorder, ms);
 *     mdot_recorder_finish(recorder, &recorded, &err);
 *     row.step_ms = recorded.step_ms;
 *     mdot_measured_append("measured.csv", &row, &err);
 *
 * examples/record_steps.c is a whole program. */
#ifndef MDOT_RECORD_H
#define MDOT_RECORD_H

#include "mdot_predict.h"

MDOT_BEGIN_DECLARATIONS

/* Collects the times of steps.
 *
 * @threads a recorder belongs to one thread at a time
 */
typedef struct mdot_recorder mdot_recorder;

/* Steps to leave out, and steps to average. */
typedef struct mdot_recorder_options {
    size_t struct_size;
    /* first steps, which are excluded, up to 2^16; 0: 10. They compile, choose kernels and fill the allocator's
     * cache */
    uint32_t warmup_steps;
    uint32_t window_steps; /* steps of a window, up to 1024; 0: 10 */
} mdot_recorder_options;

/* The recorded steps. At most the last 4096 steps count, because a GPU that has become warm represents a training. */
typedef struct mdot_recorded {
    size_t struct_size;
    double step_ms;        /* median over windows of the mean step time */
    double spread;         /* distance between the quartiles of the windows, divided by step_ms; 0 for equal windows */
    uint64_t window_count; /* complete windows */
    uint64_t step_count;   /* steps in these windows */
    /* steps above three times the median of all steps, which are excluded. For example, they waited for data at the
     * beginning of an epoch, or for a checkpoint */
    uint64_t stalled_count;
} mdot_recorded;

/* Creates a recorder. Allocates all memory that recording needs.
 *
 * @param options NULL selects all defaults
 * @errors INVALID_ARGUMENT for an invalid option, OUT_OF_MEMORY
 */
mdot_status mdot_recorder_create(const mdot_recorder_options *options, mdot_recorder **out_recorder, mdot_error *err);
/* Adds an optimizer step, including all passes with its gradients. Leave out steps during which the program evaluated
 * or saved the model. Performs zero allocations and system calls; it costs a few nanoseconds.
 *
 * @param step_ms step time in milliseconds, from the end of the previous step to the end of this one, on the clock of
 *     the device that computes, or after a synchronisation. A time that is not above 0 and finite is ignored */
void mdot_recorder_step(mdot_recorder *recorder, double step_ms);
/* Summarises the steps so far. Recording may continue.
 *
 * @param out_recorded receives the median time and its spread
 * @errors OUT_OF_RANGE if fewer than three windows are complete; INVALID_ARGUMENT for NULL or an invalid struct_size
 */
mdot_status mdot_recorder_finish(mdot_recorder *recorder, mdot_recorded *out_recorded, mdot_error *err);
/* Destroys a recorder.
 *
 * @param recorder NULL is accepted
 */
void mdot_recorder_destroy(mdot_recorder *recorder);

/* A measured step, as a table row for `mdot calibrate`. */
typedef struct mdot_measured_row {
    size_t struct_size;
    const char *job; /* the job's file, .job or ONNX; relative to the table's folder unless it begins with '/' */
    const mdot_configuration *configuration; /* mdot_gpu_find must know the GPU */
    double step_ms;                          /* column `ms`: time of a step in milliseconds, above 0 */
    /* column `gib`: peak of allocated memory on one GPU, as torch.cuda.max_memory_allocated counts it; 0: unknown */
    double memory_bytes;
    const char *note; /* column `note`, for example versions of software; NULL: empty. Line ends become blanks */
} mdot_measured_row;

/* Appends a row to a table of measured steps. A new table gets a header first. Any number of processes may append at
 * once, because each holds a lock (flock) on the file. A row is complete in the file when the call returns; if the disk
 * is full, the file stays as it was. A table with a header keeps its columns, and a row loses its memory and note there
 * if these columns are absent. Allocates.
 *
 * @param path the table's file name
 * @param row the measured step
 * @errors INVALID_ARGUMENT for an invalid configuration, an unknown GPU, a time that is not above 0, a negative size,
 *     or an option without a column in the table; MALFORMED if the table has no header in its first 16 KiB; IO
 * @threads any */
mdot_status mdot_measured_append(const char *path, const mdot_measured_row *row, mdot_error *err);

MDOT_END_DECLARATIONS
#endif
