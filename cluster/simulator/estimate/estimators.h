/* estimators.h — estimators of durations and speeds. */
#ifndef SC_ESTIMATORS_H
#define SC_ESTIMATORS_H

#include "history/mdot_history.h"
#include "mdot/mdotjob.h"

#include "base/csv.h"
#include "simulator/core/cluster.h"
#include "simulator/core/estimate.h"
#include "simulator/core/workload.h"

/* Each function makes an sc_estimator (core/estimate.h); sc_estimator_destroy frees it. Those that do not learn take
 * every job's factor from a prepared array, so that policies are compared under the same errors. */

/* True durations. */
sc_estimator sc_estimator_oracle(void);

/* The given factors; takes ownership of the array. */
mdot_status sc_estimator_make_fixed(double *factors, sc_estimator *out_estimator, mdot_error *err);

typedef enum sc_error_model {
    SC_ERROR_LOG_NORMAL, /* exp(sigma z), with median one */
    SC_ERROR_NORMAL,     /* 1 + sigma z, at least a hundredth */
    SC_ERROR_TWO_POINT   /* 1 + e or 1 - e, at least a hundredth */
} sc_error_model;

/* Random errors with median one: the mean of |factor - 1| is `mean_error`, 0 to 2 (before the bound of a hundredth).
 * Equal seeds give equal factors. */
mdot_status sc_estimator_make_errors(size_t job_count, sc_error_model model, double mean_error, uint64_t seed,
                                     sc_estimator *out_estimator, mdot_error *err);

/* Numbers the classes of jobs that `compare`, a function for qsort over pointers to jobs, calls equal. */
mdot_status sc_number_classes(const sc_workload *workload, int (*compare)(const void *, const void *),
                              uint32_t *out_numbers, mdot_error *err);

/* Mean duration of completed jobs with the same group and width; otherwise with the same group; otherwise of all;
 * otherwise 1 h. */
mdot_status sc_estimator_make_rolling(const sc_workload *workload, sc_estimator *out_estimator, mdot_error *err);

/* Mean duration of the same user's last two completed jobs (Tsafrir, Etsion and Feitelson, 2007); otherwise of the last
 * two of all; otherwise 1 h. */
mdot_status sc_estimator_make_last_two(const sc_workload *workload, sc_estimator *out_estimator, mdot_error *err);

/* Durations from a history (mdot_history.h) that starts empty and learns from completed jobs; the error model is
 * residual. A job without a user has its group instead. */
mdot_status sc_estimator_make_history(const sc_workload *workload, sc_estimator *out_estimator, mdot_error *err);

/* The same, corrected by the trees at `path` (below). */
mdot_status sc_estimator_make_trees(const sc_workload *workload, const char *path, sc_estimator *out_estimator,
                                    mdot_error *err);

/* Corrects `base` by the ratio of true to estimated durations of similar completed jobs, and takes ownership of `base`
 * and `digests`, also on failure. Jobs with equal digests are similar; if `digests` is NULL, those with the same kind,
 * or else the same user and name. The error model is that of `base`. */
mdot_status sc_estimator_make_learning(const sc_workload *workload, sc_estimator *base, uint64_t *digests,
                                       sc_estimator *out_estimator, mdot_error *err);

/* A predictor's errors: each job has one of the networks, and the factor is the network's ratio of predicted to
 * measured step time (sc_read_predictions). Jobs of the same user and name have the same network; others have one at
 * random. If the estimator learns, completed jobs correct it by network. */
mdot_status sc_estimator_make_predicted(const sc_workload *workload, const double *ratios, size_t network_count,
                                        uint64_t seed, bool learns, sc_estimator *out_estimator, mdot_error *err);

/* `known` for a share of the jobs, whose steps are known, and a history for the others. Takes ownership of `known`,
 * also on failure. The error model is residual. */
mdot_status sc_estimator_make_mixed(const sc_workload *workload, sc_estimator *known, double known_share, uint64_t seed,
                                    sc_estimator *out_estimator, mdot_error *err);

/* The time limit that each job requests (sc_job.limit_s). INVALID_ARGUMENT if a job requests none. */
mdot_status sc_estimator_make_limits(const sc_workload *workload, sc_estimator *out_estimator, mdot_error *err);

/* Mean time that completed jobs ran on after having run as long as the job has (survival.c). It has the residual error
 * model. */
mdot_status sc_estimator_make_survival(const sc_workload *workload, sc_estimator *out_estimator, mdot_error *err);

void sc_estimator_destroy(sc_estimator *estimator);

/* Returns σ of factors exp(σ z), z standard normal, with the mean |factor - 1| `mean_error`. */
double sc_error_sigma(double mean_error);

/* ---- History job ------------------------------------------------------------------------------------------------- */

/* A job of a trace as a history sees it. */

/* A trace's job as a history sees it. Texts are borrowed. A job without a user has its group as its user. */
mdot_history_job sc_history_job_of(const sc_job *job);

/* ---- Job row ----------------------------------------------------------------------------------------------------- */

/* A training job as a table row: file and training configuration, for libmdot. */

#define SC_JOB_NAMES "job,batch,precision,layout,optimizer" /* its columns, for sc_read_rows */

/* Reads the row's job and its configuration, except for the GPU, from the columns at[0] to at[4]. The job is a .job or
 * ONNX file beside the table, or an absolute path. The caller destroys the job. Messages name the row's line. */
mdot_status sc_job_row_read(const bs_csv *csv, const int *at, mdot_job **out_job, mdot_configuration *out_configuration,
                            mdot_error *err);

/* ---- Sweep ------------------------------------------------------------------------------------------------------- */

/* Reads a table job_type,job,batch,precision,layout,optimizer and predicts each kind's speeds on the cluster's types,
 * with one sweep per kind and batch, as estimates for policies. The types must be GPUs that mdot knows. Every width up
 * to the type's number of GPUs is predicted. The optional column batch_rule says what becomes of the batch there:
 * `per-gpu` (default), `total`, or `adapted`: from `batch` to the column max_batch in total, as a policy chooses.
 *
 * The slowdown on several nodes is libmdot's, for the smallest number of nodes, at least two, that holds the width.
 * Optional columns give the link between GPUs (link: pcie or nvlink) and between nodes (network_gbps). A job that
 * exceeds a GPU's memory is estimated not to run there, unless it fits nowhere. The estimates replace unknown speeds
 * and spreads. Kinds that the workload lacks are skipped.
 *
 * With the path of interference.mdot, every pair of these kinds gets a predicted speed (sc_workload_pair_speed). */
mdot_status sc_sweep_throughputs(const char *path, const char *predictor_path, const char *interference_path,
                                 const sc_cluster *cluster, sc_workload *workload, mdot_error *err);

/* ---- Pairs on shared GPUs ---------------------------------------------------------------------------------------- */

/* The load of each kind on each type, alone on one GPU; NULL: none. The caller frees `items`. */
typedef struct sc_loads {
    mdot_gpu_load *items;
} sc_loads;

mdot_status sc_loads_create(const sc_workload *workload, sc_loads *out_loads, mdot_error *err);
/* Adds a kind's loads. `alone` is its configuration on one GPU, except for the GPU model. */
mdot_status sc_loads_add(const sc_loads *loads, mdot_context *context, const mdot_job *job, mdot_configuration alone,
                         const sc_cluster *cluster, size_t kind, mdot_error *err);
/* Sets the speeds of all pairs with loads, by the artefact at `path`. The slowdown on several GPUs is that on one. */
mdot_status sc_predict_pairs(const char *path, const sc_loads *loads, const sc_cluster *cluster, sc_workload *workload,
                             mdot_error *err);

#endif
