/* space.c — the space of a search: checks, axes that the search adds by itself, and the layouts in order. */
#include "base/struct_version.h"
#include "runtime/core/core.h"
#include "runtime/job/configuration.h"
#include "runtime/job/gpus.h"
#include "runtime/perf/analysis.h"
#include "runtime/search/search.h"

#include <math.h>
#include <string.h>

enum {
    NODE_GPUS = 8,
    MOST_GPUS = 1 << 16,
    MOST_MICRO_BATCH = 1 << 12,
    MICRO_BATCHES_OF_A_STAGE = 4, /* without a global batch: Megatron's rule of thumb for a small bubble */
    LONG_ATTENTION = 8192,        /* positions from which context parallelism is tried */
    MOST_CONTEXT = 8
};
#define MOST_GLOBAL_BATCH (INT64_C(1) << 40)

static const bs_struct_version space_type = BS_SIZED(mdot_plan_space, calibration);

static const rt_option *find_option(const char *name)
{
    for (size_t i = 0; name != NULL && i < RT_OPTION_COUNT; i++)
        if (strcmp(rt_options[i].field, name) == 0 && rt_options[i].kind != RT_KIND_GPU) return &rt_options[i];
    return NULL;
}

/* The search derives these from sizes, degrees and batches. */
static bool is_derived(const rt_option *option)
{
    static const char *const names[] = {"gpu_count", "data_parallel", "node_count", "micro_batches"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(option->field, names[i]) == 0) return true;
    return false;
}

static mdot_status read_axis(const mdot_plan_axis *source, rt_space *space, mdot_error *err)
{
    const rt_option *option = find_option(source->option);
    if (option == NULL || is_derived(option))
        return BS_INVALID(err,
                          "axis \"%s\": it must be a member of mdot_configuration other than gpu, gpu_spec, gpu_count, "
                          "node_count, data_parallel and micro_batches, which the search derives",
                          source->option != NULL ? source->option : "NULL");
    rt_axis *axis = &space->axes[option - rt_options];
    if (axis->count > 0) return BS_INVALID(err, "two axes of %s: give one axis all values", option->field);
    if (source->count == 0 || source->count > MDOT_PLAN_VALUES_MAX || source->values == NULL)
        return BS_INVALID(err, "axis %s has %zu values; accepted: 1 to %d", option->field, source->count,
                          MDOT_PLAN_VALUES_MAX);
    *axis = (rt_axis){.option = option, .count = source->count};
    for (size_t i = 0; i < source->count; i++) {
        double value = source->values[i];
        bool is_zero = value == 0 && option->accepts_zero;
        if (!is_zero && !(value >= option->least && value <= option->most))
            return BS_INVALID(err, "axis %s has the value %g; accepted: %g to %g", option->field, value, option->least,
                              option->most);
        axis->values[i] = value;
    }
    return MDOT_OK;
}

static mdot_status read_sizes(const mdot_plan_space *source, rt_space *space, mdot_error *err)
{
    space->node_gpus = source->node_gpus > 0 ? source->node_gpus : NODE_GPUS;
    if (space->node_gpus > MOST_GPUS)
        return BS_INVALID(err, "node_gpus is %u; accepted: 0 to %d", space->node_gpus, MOST_GPUS);
    if (source->size_count == 0 || source->size_count > MDOT_PLAN_SIZES_MAX || source->sizes == NULL)
        return BS_INVALID(err, "size_count is %zu; accepted: 1 to %d", source->size_count, MDOT_PLAN_SIZES_MAX);
    for (size_t i = 0; i < source->size_count; i++) {
        uint32_t size = source->sizes[i];
        if (size == 0 || size > MOST_GPUS || (size > space->node_gpus && size % space->node_gpus != 0))
            return BS_INVALID(err,
                              "a size is %u GPUs; accepted: 1 to %u, and the multiples of a node's %u GPUs up to %d",
                              size, space->node_gpus, space->node_gpus, MOST_GPUS);
        space->sizes[space->size_count++] = size;
    }
    return MDOT_OK;
}

static mdot_status read_gpus(const mdot_plan_space *source, rt_space *space, mdot_error *err)
{
    if (source->gpu_model_count == 0 || source->gpu_model_count > MDOT_PLAN_GPU_MODELS_MAX || source->gpus == NULL)
        return BS_INVALID(err, "gpu_model_count is %zu; accepted: 1 to %d", source->gpu_model_count,
                          MDOT_PLAN_GPU_MODELS_MAX);
    for (size_t i = 0; i < source->gpu_model_count; i++) {
        BS_TRY(bs_read_element(&rt_gpu_type, source->gpus, i, &space->gpus[i], err));
        space->gpu_model_count++;
    }
    return MDOT_OK;
}

/* Begins the axis of an option; NULL if the caller's axes or the base set the option. */
static rt_axis *open_axis(rt_space *space, int option)
{
    rt_axis *axis = &space->axes[option];
    if (axis->count > 0 || rt_option_get(&space->base, &rt_options[option]) != 0) return NULL;
    axis->option = &rt_options[option];
    return axis;
}

static void add_value(rt_axis *axis, double value)
{
    if (axis->count < MDOT_PLAN_VALUES_MAX) axis->values[axis->count++] = value;
}

static void add_powers(rt_axis *axis, uint64_t maximum, uint64_t multiple)
{
    if (axis == NULL) return;
    add_value(axis, 1);
    for (uint64_t power = 2; power <= maximum; power *= 2)
        if (multiple == 0 || multiple % power == 0) add_value(axis, (double)power);
}

static uint32_t largest_size(const rt_space *space)
{
    uint32_t largest = 1;
    for (size_t i = 0; i < space->size_count; i++)
        if (space->sizes[i] > largest) largest = space->sizes[i];
    return largest;
}

/* Stages that divide one of the sizes. */
static void add_stages(rt_space *space)
{
    rt_axis *axis = open_axis(space, RT_OPTION_pipeline_parallel);
    uint32_t blocks = space->job->info.block_count, largest = largest_size(space);
    if (axis == NULL) return;
    add_value(axis, 1);
    for (uint32_t stages = 2; stages <= blocks && stages <= largest; stages++) {
        bool divides = false;
        for (size_t i = 0; i < space->size_count; i++) divides = divides || space->sizes[i] % stages == 0;
        if (divides) add_value(axis, stages);
    }
}

static int64_t longest_attention(const mdot_job *job)
{
    int64_t longest = 0;
    for (size_t i = 0; i < job->info.operator_count; i++)
        if (job->operators[i].setting[MDOT_SETTING_QUERIES] > longest)
            longest = job->operators[i].setting[MDOT_SETTING_QUERIES];
    return longest;
}

static void add_axes(rt_space *space)
{
    const mdot_job *job = space->job;
    const rt_sharding *sharding = &job->analysis->sharding;
    uint32_t largest = largest_size(space), node = largest < space->node_gpus ? largest : space->node_gpus;
    add_powers(open_axis(space, RT_OPTION_tensor_parallel), sharding->common > 0 ? node : 1, sharding->common);
    add_stages(space);
    uint64_t experts = sharding->experts.common_count;
    add_powers(open_axis(space, RT_OPTION_expert_parallel), experts > 0 ? largest : 1, experts);
    bool is_long = job->analysis->totals.has_attention && longest_attention(job) >= LONG_ATTENTION;
    add_powers(open_axis(space, RT_OPTION_context_parallel), is_long ? MOST_CONTEXT : 1, 0);
    rt_axis *axis = open_axis(space, RT_OPTION_virtual_stages);
    if (axis != NULL && space->base.schedule == MDOT_SCHEDULE_1F1B)
        for (int parts = 1; parts <= 4; parts *= 2) add_value(axis, parts);
    axis = open_axis(space, RT_OPTION_zero_stage);
    for (int stage = 0; axis != NULL && stage <= 3; stage++) add_value(axis, stage);
    axis = open_axis(space, RT_OPTION_recompute);
    if (axis != NULL) {
        add_value(axis, MDOT_RECOMPUTE_NOTHING);
        add_value(axis, MDOT_RECOMPUTE_SELECTIVE);
        if (job->info.block_count > 0) add_value(axis, MDOT_RECOMPUTE_BLOCKS);
    }
    axis = &space->axes[RT_OPTION_batch];
    if (axis->count > 0) return;
    axis->option = &rt_options[RT_OPTION_batch];
    add_powers(axis, MOST_MICRO_BATCH, 0);
}

mdot_status rt_space_read(const mdot_plan_space *caller, const mdot_job *job, rt_space *out_space, mdot_error *err)
{
    mdot_plan_space source;
    BS_TRY(bs_read_struct(&space_type, caller, &source, err));
    *out_space = (rt_space){.job = job,
                            .calibration = source.calibration,
                            .global_batch = source.global_batch,
                            .kept = source.kept > 0 ? source.kept : 1};
    if (source.calibration != NULL)
        BS_TRY(rt_handle_check(source.calibration, RT_CALIBRATION, "mdot_plan_create", err));
    if (source.base == NULL) return BS_INVALID(err, "the space's base is NULL");
    BS_TRY(bs_read_struct(&rt_configuration_type, source.base, &out_space->base, err));
    out_space->base.struct_size = sizeof out_space->base;
    BS_TRY(read_sizes(&source, out_space, err));
    BS_TRY(read_gpus(&source, out_space, err));
    if (source.kept > MDOT_PLAN_KEPT_MAX)
        return BS_INVALID(err, "kept is %u; accepted: 0 to %d", source.kept, MDOT_PLAN_KEPT_MAX);
    if (source.reserved != 0)
        return mdot_fail(err, MDOT_INCOMPATIBLE,
                         "the space sets a field that this version lacks: set reserved to 0, or use a newer mdot");
    if (source.global_batch < 0 || source.global_batch > MOST_GLOBAL_BATCH)
        return BS_INVALID(err, "global_batch is %lld; accepted: 0 to 2^40", (long long)source.global_batch);
    if (source.axis_count > MDOT_PLAN_AXES_MAX || (source.axis_count > 0 && source.axes == NULL))
        return BS_INVALID(err, "axis_count is %zu; accepted: 0 to %d", source.axis_count, MDOT_PLAN_AXES_MAX);
    for (size_t i = 0; i < source.axis_count; i++) BS_TRY(read_axis(&source.axes[i], out_space, err));
    add_axes(out_space);
    return MDOT_OK;
}

/* An option with the base's value alone has one value. */
static size_t value_count(const rt_space *space, int option)
{
    return space->axes[option].count > 0 ? space->axes[option].count : 1;
}

static uint32_t degree(const rt_space *space, int option, size_t index)
{
    const rt_axis *axis = &space->axes[option];
    double value = axis->count > 0 ? axis->values[index] : rt_option_get(&space->base, &rt_options[option]);
    return value > 1 ? (uint32_t)value : 1;
}

size_t rt_item_count(const rt_space *space)
{
    return value_count(space, RT_OPTION_tensor_parallel) * value_count(space, RT_OPTION_pipeline_parallel) *
           value_count(space, RT_OPTION_expert_parallel) * space->gpu_model_count * space->size_count;
}

static size_t take_digit(size_t *number, size_t base)
{
    size_t digit = *number % base;
    *number /= base;
    return digit;
}

bool rt_item_at(const rt_space *space, size_t index, rt_search_item *out_item)
{
    out_item->size = take_digit(&index, space->size_count);
    out_item->gpu_model = take_digit(&index, space->gpu_model_count);
    size_t tensor = take_digit(&index, value_count(space, RT_OPTION_tensor_parallel));
    size_t pipeline = take_digit(&index, value_count(space, RT_OPTION_pipeline_parallel));
    out_item->tensor = degree(space, RT_OPTION_tensor_parallel, tensor);
    out_item->pipeline = degree(space, RT_OPTION_pipeline_parallel, pipeline);
    out_item->experts = degree(space, RT_OPTION_expert_parallel, index);
    double shards = (double)out_item->tensor * out_item->pipeline * out_item->experts;
    return fmod(space->sizes[out_item->size], shards) == 0;
}

/* The item fixes these axes. */
static bool is_of_item(size_t option)
{
    return option == RT_OPTION_tensor_parallel || option == RT_OPTION_pipeline_parallel ||
           option == RT_OPTION_expert_parallel;
}

void rt_layouts_begin(rt_layouts *layouts, const rt_space *space, const rt_search_item *item)
{
    *layouts = (rt_layouts){.space = space, .item = item};
}

/* Adds 1 to the number of digits. */
static void advance(rt_layouts *layouts)
{
    const rt_space *space = layouts->space;
    for (size_t option = 0; option < RT_OPTION_COUNT; option++) {
        if (is_of_item(option) || space->axes[option].count == 0) continue;
        if (++layouts->digit[option] < space->axes[option].count) return;
        layouts->digit[option] = 0;
    }
    layouts->ends = true;
}

/* Divides the global batch among workers and micro-batches. Returns false if that is impossible. */
static bool divide_batch(const rt_space *space, mdot_configuration *c)
{
    int64_t micro_batch = c->batch, count = c->accumulate > 0 ? c->accumulate : 1;
    bool is_pipeline = c->pipeline_parallel > 1;
    if (space->global_batch > 0) {
        if (space->global_batch % (micro_batch * c->data_parallel * (int64_t)c->expert_parallel) != 0) return false;
        count = space->global_batch / (micro_batch * c->data_parallel * (int64_t)c->expert_parallel);
    } else if (is_pipeline) {
        count *= (int64_t)MICRO_BATCHES_OF_A_STAGE * c->pipeline_parallel;
    }
    if (count > MOST_GPUS) return false;
    c->batch = is_pipeline ? micro_batch * count : micro_batch;
    c->micro_batches = is_pipeline ? (uint32_t)count : 1;
    c->accumulate = is_pipeline ? 1 : (uint32_t)count;
    return true;
}

/* Options that have no meaning in the layout would only repeat it. */
static bool is_repetition(const rt_space *space, const rt_layouts *layouts, const mdot_configuration *c)
{
    bool has_copies = (int64_t)c->data_parallel * c->context_parallel > 1;
    bool repeats_zero = !has_copies && c->zero_stage > 0 && layouts->digit[RT_OPTION_zero_stage] > 0;
    bool repeats_parts =
        c->virtual_stages > 1 && c->pipeline_parallel == 1 && layouts->digit[RT_OPTION_virtual_stages] > 0;
    double parts = (double)c->virtual_stages * c->pipeline_parallel;
    return repeats_zero || repeats_parts || (c->virtual_stages > 1 && parts > space->job->info.block_count);
}

/* Returns false if the layout divides neither GPUs nor batch, or repeats another one. */
static bool fill(rt_layouts *layouts, mdot_configuration *out)
{
    const rt_space *space = layouts->space;
    const rt_search_item *item = layouts->item;
    uint32_t size = space->sizes[item->size];
    *out = space->base;
    for (size_t option = 0; option < RT_OPTION_COUNT; option++)
        if (space->axes[option].count > 0 && !is_of_item(option))
            rt_option_set(out, space->axes[option].option, space->axes[option].values[layouts->digit[option]]);
    out->gpu = NULL;
    out->gpu_spec = &space->gpus[item->gpu_model];
    out->gpu_count = (int)size;
    out->node_count = size > space->node_gpus ? size / space->node_gpus : 1;
    out->tensor_parallel = item->tensor;
    out->pipeline_parallel = item->pipeline;
    out->expert_parallel = item->experts;
    if (out->context_parallel == 0) out->context_parallel = 1;
    uint32_t shards = item->tensor * item->pipeline * item->experts;
    if (size / shards % out->context_parallel != 0) return false;
    out->data_parallel = size / shards / out->context_parallel;
    if (space->base.data_parallel > 0 && space->base.data_parallel != out->data_parallel) return false;
    bool sets_sequences = space->axes[RT_OPTION_sequence_parallel].count > 0 || space->base.sequence_parallel != 0;
    if (!sets_sequences) out->sequence_parallel = item->tensor > 1;
    if (is_repetition(space, layouts, out)) return false;
    if (divide_batch(space, out)) return true;
    layouts->indivisible++;
    return false;
}

bool rt_layouts_next(rt_layouts *layouts, mdot_configuration *out)
{
    bool found = false;
    while (!found && !layouts->ends) {
        found = fill(layouts, out);
        advance(layouts);
    }
    return found;
}
