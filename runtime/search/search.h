/* search.h — the search behind mdot_plan.h: a space in full, its layouts, and the best ones.
 *
 * A space is divided into items with one GPU model, size and shard each, because the predictor encodes a shard once.
 * Threads take items one after the other. */
#pragma once

#include "mdot/mdot_calibrate.h"
#include "mdot/mdot_plan.h"
#include "runtime/job/configuration_table.h"
#include "runtime/job/job_model.h"

typedef struct rt_axis {
    const rt_option *option;
    double values[MDOT_PLAN_VALUES_MAX];
    size_t count;
} rt_axis;

typedef struct rt_space {
    mdot_configuration base;
    mdot_gpu gpus[MDOT_PLAN_GPU_MODELS_MAX];
    uint32_t sizes[MDOT_PLAN_SIZES_MAX];
    size_t gpu_model_count, size_count;
    uint32_t node_gpus, kept;
    int64_t global_batch;
    const mdot_job *job;
    const mdot_calibration *calibration; /* may be NULL */
    rt_axis axes[RT_OPTION_COUNT];       /* of each option; count 0: the base's value */
} rt_space;

/* Checks the caller's space, copies it, and adds the axes that the search varies by itself. */
mdot_status rt_space_read(const mdot_plan_space *source, const mdot_job *job, rt_space *out_space, mdot_error *err);

/* Layouts of one GPU model and size with one shard. */
typedef struct rt_search_item {
    size_t gpu_model, size;
    uint32_t tensor, pipeline, experts;
} rt_search_item;

/* Number of combinations of model, size and shard in the space. It includes those that rt_item_at rejects. */
size_t rt_item_count(const rt_space *space);
/* Fills item `index`. Returns false if its degrees do not divide the size. */
bool rt_item_at(const rt_space *space, size_t index, rt_search_item *out_item);

/* Visits an item's layouts in a fixed order. */
typedef struct rt_layouts {
    const rt_space *space;
    const rt_search_item *item;
    size_t digit[RT_OPTION_COUNT]; /* index in each axis: a number with one digit per axis */
    bool ends;
    uint64_t indivisible;
} rt_layouts;

void rt_layouts_begin(rt_layouts *layouts, const rt_space *space, const rt_search_item *item);
/* Fills the next layout that divides GPUs and batch. Returns false behind the last. */
bool rt_layouts_next(rt_layouts *layouts, mdot_configuration *out);
