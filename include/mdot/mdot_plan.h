/* mdot_plan.h — search layouts for a job on several GPUs, and price a whole training.
 *
 * A layout is a GPU model, a GPU count, parallel degrees, a micro-batch and memory options. A search prices
 * every layout that fits, and keeps the fastest ones for each model and GPU count. Therefore the Pareto front in
 * time and cost is among them. mdot.h includes this header and states the library's rules: ownership, threading,
 * memory, errors. */
#ifndef MDOT_PLAN_H
#define MDOT_PLAN_H

#include "mdot_predict.h"

MDOT_BEGIN_DECLARATIONS

/* One option's values to try. */
typedef struct mdot_plan_axis {
    const char *option;   /* mdot_configuration's member, for example "tensor_parallel" */
    const double *values; /* the member's values; an enumerator as a number */
    size_t count;         /* at least 1 */
} mdot_plan_axis;

enum {
    MDOT_PLAN_AXES_MAX = 24,        /* axes per space */
    MDOT_PLAN_VALUES_MAX = 64,      /* values per axis */
    MDOT_PLAN_SIZES_MAX = 64,       /* GPU counts per space */
    MDOT_PLAN_GPU_MODELS_MAX = 128, /* GPU models per space */
    MDOT_PLAN_KEPT_MAX = 1024       /* layouts kept for each GPU model and count */
};

/* The layouts to try. An option with an axis takes the axis' values; any other option has the value in `base`, except
 * for these, which a search varies if `base` leaves them at 0:
 *
 *   tensor_parallel     powers of 2 within a node, as divisors of channels and heads
 *   sequence_parallel   1 beside tensor parallelism
 *   pipeline_parallel   divisors of the GPU count, up to the job's blocks
 *   virtual_stages      1, 2 and 4 beside pipeline parallelism, as far as each part has a block
 *   first_stage_blocks, last_stage_blocks
 *                       in the 16 fastest pipelines of each model and size, without virtual stages: the fastest
 *                       numbers, from 4 blocks less than an equal share to 1 more (4 more with two stages)
 *   expert_parallel     powers of 2, as divisors of a layer's experts
 *   context_parallel    powers of 2 up to 8 in a job whose attention has 8,192 or more positions
 *   zero_stage          0 to 3 beside data parallelism
 *   recompute           nothing, selective, and blocks in a job with blocks
 *   batch               micro-batches with 1, 2, 4 … samples, up to 2^12 or the worker's part of global_batch
 *
 * data_parallel, node_count, accumulate and micro_batches follow from these. If `base` sets data_parallel, other
 * degrees are left out. */
typedef struct mdot_plan_space {
    size_t struct_size;
    const mdot_configuration *base; /* gpu, gpu_spec, gpu_count and batch are ignored */
    const mdot_gpu *gpus;           /* candidate models, for example from mdot_gpu_find */
    size_t gpu_model_count;         /* 1 to MDOT_PLAN_GPU_MODELS_MAX */
    const uint32_t *sizes;          /* GPU counts to try, each 1 to 2^16 */
    size_t size_count;              /* 1 to MDOT_PLAN_SIZES_MAX */
    uint32_t node_gpus;             /* GPUs per node, 1 to 2^16; 0 means 8. Larger sizes must be multiples */
    /* Samples per optimizer step over all GPUs, 1 to 2^40; a layout that cannot divide them is left out. 0: the
     * micro-batch decides, with base's accumulate, and four micro-batches for each pipeline stage. */
    int64_t global_batch;
    const mdot_plan_axis *axes; /* may be NULL if axis_count is 0; the axis "batch" lists micro-batches */
    size_t axis_count;          /* at most MDOT_PLAN_AXES_MAX, each for another option */
    uint32_t kept;              /* layouts to keep for each model and size, up to MDOT_PLAN_KEPT_MAX; 0 means 1 */
    uint32_t reserved;          /* must be 0 */
    /* Called about every 10,000 layouts from the caller's thread, with the finished part, 0 to 1. The search ends early
     * if it returns false. NULL: never called */
    bool (*progress)(void *state, double finished);
    void *progress_state;                       /* first argument of progress */
    const struct mdot_calibration *calibration; /* corrects each prediction; NULL: none */
} mdot_plan_space;

/* One layout with its prediction. */
typedef struct mdot_plan_layout {
    size_t struct_size;
    mdot_configuration configuration; /* gpu_spec is borrowed from the plan */
    mdot_prediction prediction;       /* for one step */
    size_t gpu_model;                 /* index in mdot_plan_space.gpus */
    double samples;                   /* samples per optimizer step over all GPUs */
    double pipeline_share;            /* the step's part in which a pipeline stage waits for others, 0 to 1 */
} mdot_plan_layout;

/* What a search did. The counts add up to all layouts whose degrees divide the GPU count. */
typedef struct mdot_plan_info {
    size_t struct_size;
    size_t layout_count;  /* layouts kept */
    uint64_t priced;      /* layouts that fit the memory, each with a prediction */
    uint64_t too_large;   /* layouts whose memory exceeds the GPU, by the memory interval's upper bound */
    uint64_t indivisible; /* layouts whose workers and micro-batches do not divide the global batch */
    uint64_t refused;     /* layouts that the job or the GPU cannot run; mdot_predict names the reason */
    uint32_t cancelled;   /* 1: progress returned false, and layouts are missing */
} mdot_plan_info;

/* Finished search. Immutable.
 *
 * @threads any number may share a plan */
typedef struct mdot_plan mdot_plan;

/* Searches the space. Equal spaces give equal plans, for any contexts. The search allocates before it starts
 * and nothing for each layout: about 3 MB for each context, and 1 kB for each layout kept.
 *
 * @param contexts contexts of one predictor. The search runs one thread for each context but the first, which the
 *     caller's thread uses
 * @param context_count number of contexts, 1 to 256
 * @param job the job to train
 * @param space layouts to try
 * @param out_plan receives the plan; the caller destroys it
 * @errors INVALID_ARGUMENT names an invalid field, or the reason if the job or the GPU can run no layout;
 *     INCOMPATIBLE for an artefact that is no predictor of jobs; OUT_OF_MEMORY. A space in which no layout fits is no
 *     error. A thread that cannot be started costs only its help */
mdot_status mdot_plan_create(mdot_context *const *contexts, size_t context_count, const mdot_job *job,
                             const mdot_plan_space *space, mdot_plan **out_plan, mdot_error *err);
/* Destroys a plan.
 *
 * @param plan NULL is accepted
 */
void mdot_plan_destroy(mdot_plan *plan);
/* Describes the search.
 *
 * @param out_info receives the description
 * @errors INVALID_ARGUMENT for NULL or an invalid struct_size */
mdot_status mdot_plan_get_info(const mdot_plan *plan, mdot_plan_info *out_info);
/* Returns a layout. Layouts are ordered by GPU model, then by size, and then by time per sample.
 *
 * @param index below mdot_plan_info.layout_count
 * @param out_layout receives the layout
 * @errors OUT_OF_RANGE for an index beyond the count; INVALID_ARGUMENT for NULL or an invalid struct_size */
mdot_status mdot_plan_get_layout(const mdot_plan *plan, size_t index, mdot_plan_layout *out_layout);

/* A whole training. Zero means "none" for every member except those with a comment on 0. */
typedef struct mdot_training_run {
    size_t struct_size;
    double samples;            /* samples to train on, above 0; a step that is begun counts as a whole one */
    double evaluation_samples; /* samples per evaluation, each a forward pass */
    double evaluation_steps;   /* steps from one evaluation to the next */
    double checkpoint_bytes;   /* a checkpoint's size; 0: 12 bytes for each trained parameter */
    double storage_gbps;       /* storage rate in GB/s; training waits for a checkpoint; 0: no checkpoints */
    double checkpoint_minutes; /* time between checkpoints; 0: the best one by Young and Daly, if failures are known */
    double gpu_failure_hours;  /* one GPU's mean time between failures; 0: no failures */
    double interruptions_per_hour; /* for the whole allocation, for example by a spot market */
    double restart_minutes;        /* from a failure or interruption until training goes on */
    double startup_minutes;        /* from the allocation until the first step */
    double price;                  /* for one GPU and hour, in any currency */
    double grid_grams_per_kwh;     /* CO2 per kWh */
    double deadline_hours;         /* 0: none */
    double budget;                 /* in the currency of `price`; 0: none */
} mdot_training_run;

/* A whole training's time and cost. Hours and cost are medians with 90 % intervals, which follow from the step's. */
typedef struct mdot_training_cost {
    size_t struct_size;
    double steps;                           /* optimizer steps */
    double hours, lower_hours, upper_hours; /* from the allocation to the last step */
    double gpu_hours;                       /* hours times GPUs */
    double cost, lower_cost, upper_cost;    /* 0 without a price */
    double kwh, co2_kg;                     /* for the GPUs, without other parts; 0 if watts are unknown */
    double step_hours;                      /* parts of `hours`: training steps */
    double evaluation_hours;                /* evaluations */
    double checkpoint_hours;                /* writing checkpoints */
    double failure_hours;                   /* restarts, and steps that failures undo */
    double startup_hours;                   /* start */
    double checkpoint_minutes;              /* time between checkpoints; 0: none */
    double in_time, in_budget;              /* probability to meet deadline and budget; 1 without one */
} mdot_training_cost;

/* Prices a training whose steps take the predicted time. An evaluated sample takes a third of a
 * trained one's time, and a quarter if blocks are recomputed. A failure costs the restart and half the time between
 * checkpoints (J. T. Daly, 2006, doi 10.1016/j.future.2004.11.016); without checkpoints it costs half the training. The
 * probabilities assume that the step time's logarithm is normally distributed.
 *
 * @param run the training
 * @param layout a plan's layout, or one that the caller fills in: configuration (gpu_count, recompute), prediction and
 *     samples
 * @param out_cost receives time and cost
 * @errors INVALID_ARGUMENT for a member or steps outside 0 to 10^15, for samples of 0, and for failures that are
 *     more frequent than training can make progress */
mdot_status mdot_training_cost_of(const mdot_training_run *run, const mdot_plan_layout *layout,
                                  mdot_training_cost *out_cost, mdot_error *err);

/* Epochs with one batch and one set of GPUs. */
typedef struct mdot_training_phase {
    const mdot_plan_layout *layout; /* mdot_training_cost_of's */
    double epochs;                  /* passes over mdot_training_run.samples, above 0; parts count */
} mdot_training_phase;

/* Prices a training whose batch or GPUs change: a schedule by epochs, or a trajectory that Accordion, SimiGrad or
 * Shockwave foresees. Each epoch has whole steps. A phase on another number of GPUs begins with a start of its own.
 * Bounds add up, because the errors of one job's steps agree. checkpoint_minutes are the last phase's.
 *
 * @param run the training; its samples are one epoch's
 * @param phases in order
 * @param count at least 1
 * @param out_cost receives time and cost of all phases
 * @errors those of mdot_training_cost_of, and INVALID_ARGUMENT for a phase without epochs */
mdot_status mdot_training_cost_of_phases(const mdot_training_run *run, const mdot_training_phase *phases, size_t count,
                                         mdot_training_cost *out_cost, mdot_error *err);

/* Steps of a training until its loss is at a target, by curves fitted to its first losses. */
typedef struct mdot_convergence {
    size_t struct_size;
    double steps, lower_steps, upper_steps; /* median and 90 % interval; INFINITY: never, by these fits */
    double reach_probability;               /* fraction of the resampled fits that reach the target */
    double asymptote;                       /* the loss that the best fit approaches, at least 0 */
    double exponent;                        /* the best fit's: (loss - asymptote) falls as (steps + shift)^-exponent */
} mdot_convergence;

/* Predicts the steps to a target loss. The interval comes from 200 fits with resampled residuals and a fixed seed:
 * equal curves have equal answers. It assumes that the training goes on as before: a later change of the learning rate
 * or of the batch is not foreseen. From less than half of a curve it is too narrow (docs/how-to/plan-llm-training.md).
 * A target that the curve has reached, by the mean over a sixteenth of the points, is answered by that step. The call
 * allocates memory for a copy of the losses, and is safe from several threads.
 *
 * @param steps ascending, at least 0
 * @param losses at least 0, as a mean over few steps or as evaluated; `count` of each
 * @param count at least 10
 * @param target above 0
 * @param out_convergence receives steps and interval
 * @errors INVALID_ARGUMENT for fewer points, other values, and losses that do not decrease; OUT_OF_MEMORY */
mdot_status mdot_steps_to_loss(const double *steps, const double *losses, size_t count, double target,
                               mdot_convergence *out_convergence, mdot_error *err);

MDOT_END_DECLARATIONS
#endif
