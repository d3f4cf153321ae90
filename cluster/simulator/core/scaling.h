/* scaling.h — how fast a kind of job trains by placement, batch size and progress: step times as they were measured, a
 * model of them, and the statistical efficiency of a batch size (Pollux; Qiao et al., OSDI 2021).
 *
 * Work is counted in reference steps: the progress that a step makes at the kind's smallest batch size, the reference
 * batch. A step at batch size M makes
 *
 *     gain = (noise + 1) / (noise / scale + 1),   scale = M / reference batch
 *
 * reference steps, where noise is the variance of the gradient at the reference batch over its squared norm. It changes
 * along training. gain / scale is Pollux' efficiency. The model of the time of a step on K GPUs of N nodes with m
 * samples per GPU is
 *
 *     grad = grad_s + grad_per_sample_s · m     sync = 0 on one GPU; local_s + local_per_gpu_s · (K - 2) on one node;
 * node_s + node_per_gpu_s · (K - 2) on several     step = (grad^overlap + sync^overlap)^(1 / overlap)
 *
 * With accumulation, each of `passes` micro-batches adds a grad, and only the last one synchronises.
 */
#ifndef SC_SCALING_H
#define SC_SCALING_H

#include "mdot/mdot_base.h"

enum { SC_MAX_TYPES = 16 }; /* GPU types of a cluster */

/* A job's GPUs: count, node count and pattern. */
typedef struct sc_placement {
    int nodes, gpus;
    uint64_t pattern; /* decimal digits, the GPUs of each node in the order of the nodes: 31; 0: unknown */
} sc_placement;

/* Appends a node's GPUs to the pattern. It becomes unknown with ten GPUs on a node, or with more than ten nodes. */
void sc_placement_add(sc_placement *placement, int gpus);

typedef struct sc_step_model {
    double grad_s, grad_per_sample_s, local_s, local_per_gpu_s, node_s, node_per_gpu_s;
    double overlap; /* 1: computation and synchronisation one after the other; large: at the same time */
} sc_step_model;

double sc_step_model_s(const sc_step_model *model, int nodes, int gpus, double samples, int passes);

/* A measured step. */
typedef struct sc_step_row {
    sc_placement placement;
    double samples; /* per GPU */
    double step_s, sync_s;
} sc_step_row;

/* The measured steps of a type. */
typedef struct sc_step_table {
    sc_step_row *rows; /* by placement and samples, without repetition; NULL: none */
    size_t row_count;
    double most_samples; /* that a GPU's memory holds: the most in any row */
    int widest_node;     /* most GPUs of a node in any row */
    sc_step_model model;
} sc_step_table;

/* Gradient noise at a batch size and a progress in reference steps. */
typedef struct sc_noise_row {
    double batch, progress, noise;
} sc_noise_row;

typedef struct sc_scaling {
    sc_step_table tables[SC_MAX_TYPES];
    unsigned source[SC_MAX_TYPES]; /* type whose table has the placements for this type; SC_MAX_TYPES: the job does not
                                    * run there. Another type has only one-GPU rows here. Their ratio to the source's
                                    * holds for all placements (Sia; Jayaram Subramanya et al., 2023) */
    sc_noise_row *noise;           /* by batch and progress; NULL: a step's gain is its scale */
    size_t noise_count;
    double least_batch, most_batch; /* reference batch, and the largest one that may be used */
    /* The rows are predictions at powers of two of GPUs and at octaves of the batch. Policies see them instead of the
     * model, and the job runs on no other number of GPUs */
    bool is_predicted;
} sc_scaling;

void sc_scaling_destroy(sc_scaling *scaling);

mdot_status sc_step_table_add(sc_step_table *table, sc_step_row row, mdot_error *err);

/* Sorts rows, replaces repeated ones by the mean, and computes most_samples and widest_node. */
void sc_step_table_sort(sc_step_table *table);

/* Seconds per step as measured, interpolated between batch sizes in logarithms. An unmeasured placement has the nearest
 * one's time multiplied by the model's ratio; so has a batch size beyond the measured ones. 0: the job does not run on
 * the type. */
double sc_scaling_step_s(const sc_scaling *scaling, unsigned type, const sc_placement *at, double batch);

/* The same as a policy predicts it: by the model, unless the rows are predictions. */
double sc_scaling_model_s(const sc_scaling *scaling, unsigned type, int nodes, int gpus, double batch);

/* Returns the reference steps that a step makes, between 1 and batch / least_batch. `batch` 0: least_batch. */
double sc_scaling_gain(const sc_scaling *scaling, double batch, double progress);

/* Reference steps per second; 0: the job does not run on the type. `batch` 0: least_batch. */
double sc_scaling_speed(const sc_scaling *scaling, unsigned type, const sc_placement *at, double batch,
                        double progress);

/* The mean of this over `work` reference steps, on as few nodes as possible. */
double sc_scaling_mean_speed(const sc_scaling *scaling, unsigned type, int gpus, double batch, double work);

/* Slowdown of a step on one node more than necessary, at least 1. */
double sc_scaling_spread(const sc_scaling *scaling, unsigned type, int gpus, double batch);

#endif
