/* predict.c — predictions of jobs: turns jobs and configurations into the inputs of an entry and its outputs into
 * answers.
 *
 * Each pair of a job and a configuration is checked, answered or refused by itself. Consecutive pairs of one job are
 * answered together: the job is encoded once (encoding.c), and configurations of one batch share a block. This file
 * never allocates, locks or calls the operating system; tests/runtime/predict/test_predict_calls.c checks that.
 */
#include "runtime/predict/predict.h"
#include "base/struct_version.h"
#include "runtime/job/job_model.h"
#include "runtime/perf/analysis.h"
#include "runtime/perf/peak_memory.h"
#include "runtime/perf/step_time.h"
#include "runtime/predict/analytic_correction.h"
#include "runtime/predict/predictor_tensors.h"

#include <math.h>
#include <string.h>

#define MS_PER_SECOND 1000

/* The pairs of one call: jobs[i] with configuration i, or `job` with every configuration. The caller may have
 * encoded `job`. */
typedef struct pairs {
    const mdot_job *const *jobs;
    const mdot_job *job;
    const mdot_encoding *encoding; /* of `job`, or NULL */
    const mdot_configuration *configurations;
    const rt_measured_configuration *measured; /* in place of configurations, or NULL */
    size_t count;
    mdot_prediction *out;
    bool is_first; /* of several calls with `measured` and one job, which stays encoded */
    bool is_one;   /* a single prediction: a failure leaves the result unchanged */
} pairs;

static const mdot_job *job_of(const pairs *p, size_t i) { return p->jobs != NULL ? p->jobs[i] : p->job; }

static const bs_struct_version prediction_type = BS_SIZED(mdot_prediction, warnings);

/* Writes number k to out[k * block], for each number that the predictor reads. */
static void write_configuration(const rt_configuration *configuration, const rt_job_schema *schema, float *out)
{
    const mdot_configuration *c = &configuration->c;
    float numbers[RT_CONFIGURATION_NUMBERS] = {
#define VALUE(value, ones) ((ones) != 0 ? (float)((ones) >> ((unsigned)(value)&31) & 1) : (float)(value))
#define INPUT(id, name, field, ones) [RT_CONFIGURATION_##id] = VALUE(c->field, ones),
#include "runtime/job/configuration.def"
#undef VALUE
    };
    numbers[RT_CONFIGURATION_BATCH] = (float)configuration->micro_batch;
    for (size_t k = 0; k < schema->known[RT_JOB_INPUT_CONFIGURATION]; k++)
        out[k * schema->block] = numbers[schema->number[k]];
}

static void write_gpu(const mdot_gpu *gpu, const rt_job_schema *schema, float *out)
{
    const float numbers[RT_GPU_NUMBERS] = {
#define COLUMN(field, ...) (float)gpu->field,
#include "runtime/job/gpus.def"
    };
    for (size_t k = 0; k < schema->known[RT_JOB_INPUT_GPU]; k++) out[k * schema->block] = numbers[k];
}

size_t rt_add_configuration(const rt_job_schema *schema, const rt_configuration *queried, rt_job_block *block)
{
    size_t index = block->count++;
    write_configuration(queried, schema, block->configuration + index);
    write_gpu(&queried->gpu, schema, block->gpu + index);
    return index;
}

void rt_bind_cached_features(const rt_job_schema *schema, const rt_cached_features *features, rt_job_block *block)
{
    for (size_t i = 0; i < schema->cached_count; i++) block->inputs[schema->cached[i].read_at] = features->tensors[i];
}

static bool is_time(float ms) { return isfinite(ms) && ms > 0; }

/* True if the predictor treats a type as unknown: one that lacks a type id, or whose id is newer than the predictor. */
static bool has_unknown(const mdot_job *job, const rt_job_schema *schema)
{
    bool reads_types = schema->input_at[RT_JOB_INPUT_TYPE] != RT_NOT_THERE;
    const rt_job_totals *totals = &job->analysis->totals;
    return totals->lacks_type_id || (reads_types && totals->highest_type_id >= schema->type_count);
}

/* The predictor's own report of whether the pair lies outside its training data: one number in total, or one per
 * reason. NaN counts as outside. A predictor that lacks this output causes no warning. */
static uint32_t read_outside(const rt_job_schema *schema, const rt_job_pair *pair)
{
    static const uint32_t reasons[RT_OUTSIDE_NUMBERS] = {
#define REASON(number, id) [number] = MDOT_WARN_##id,
        MDOT_OUTSIDE_MAP(REASON)
#undef REASON
    };
    const float *outside = pair->block->outside + pair->at;
    uint32_t warnings = 0;
    for (size_t k = 0; k < schema->outside_count; k++) {
        if (outside[k * schema->block] <= 0) continue;
        warnings |= MDOT_WARN_OUTSIDE_TRAINING;
        if (schema->outside_count > 1) warnings |= reasons[k];
    }
    return warnings;
}

static mdot_status check_times(const float ms[RT_STEP_NUMBERS], mdot_error *err)
{
    if (is_time(ms[0]) && is_time(ms[1]) && is_time(ms[2])) return MDOT_OK;
    return mdot_fail(err, MDOT_MALFORMED,
                     "the predictor's step_ms is %g, %g, %g; it must be three positive, finite numbers", (double)ms[0],
                     (double)ms[1], (double)ms[2]);
}

static bool has_forward_work(const mdot_job *job)
{
    for (size_t i = 0; i < job->info.operator_count; i++) {
        const mdot_job_operator *op = &job->operators[i];
        const mdot_load *sample = &op->per_sample[MDOT_PHASE_FORWARD], *step = &op->per_step[MDOT_PHASE_FORWARD];
        if (sample->flops + sample->bytes_read + sample->bytes_written + step->flops + step->bytes_read +
                step->bytes_written >
            0)
            return true;
    }
    return false;
}

/* Adds an independent error to the logarithm between step and bound. */
static double widened(double log_ratio, double error) { return error > 0 ? hypot(log_ratio, error) : log_ratio; }

/* The step and its interval, from the predictor's lower bound, step and upper bound. */
static void fill_time(const float ms[RT_STEP_NUMBERS], const rt_correction *corrected, mdot_prediction *out)
{
    double below = widened(log((double)ms[1] / (double)ms[0]), corrected->host_log),
           above = widened(log((double)ms[2] / (double)ms[1]), corrected->slow_host_log);
    double wider = log(corrected->interval_factor), known = corrected->gpu_share * corrected->known_log;
    bool is_known = corrected->known_log > 0;
    out->gpu_ms = corrected->step_ms;
    out->gpu_lower_ms =
        corrected->step_ms * exp(-fmin(below + wider, is_known ? hypot(known, corrected->host_log) : INFINITY));
    out->gpu_upper_ms =
        corrected->step_ms * exp(fmin(above + wider, is_known ? hypot(known, corrected->slow_host_log) : INFINITY));
}

/* Widens the interval so that work lies inside that the program dispatched and the job lacks, or the reverse
 * (mdot_job_check). Operators without a formula may take four times as long as the traffic of their tensors. */
static void widen_by_check(const mdot_job *job, const rt_configuration *configuration, mdot_prediction *out)
{
    static const double least_difference = 0.02, most_missing = 0.99, times_traffic = 4, bytes_per_gb_ms = 1e6;
    if (job->program == NULL) return;
    const mdot_job_check *check = &job->program->program.check;
    double missing = 0, surplus = 0;
    for (int pass = 0; pass < (configuration->c.mode == MDOT_MODE_INFERENCE ? 1 : 2); pass++) {
        double dispatched = check->dispatched_flops[pass], own = check->job_flops[pass];
        if (dispatched <= 0) continue;
        missing = fmax(missing, (dispatched - own) / dispatched);
        surplus = own > 0 ? fmax(surplus, (own - dispatched) / own) : surplus;
    }
    if (missing > least_difference) out->gpu_upper_ms /= 1 - fmin(missing, most_missing);
    if (surplus > least_difference) out->gpu_lower_ms *= 1 - fmin(surplus, most_missing);
    if (check->unpriced_bytes <= 0) return;
    double batches = (double)configuration->c.batch / (double)(job->info.batch > 0 ? job->info.batch : 1);
    out->gpu_upper_ms +=
        times_traffic * check->unpriced_bytes * batches / (configuration->gpu.memory_gbps * bytes_per_gb_ms);
}

/* Time of the data loaders for the samples of a step. */
static double loader_ms(const mdot_configuration *c)
{
    double seconds = c->loader_rate > 0 ? 1 / c->loader_rate : 0; /* for a sample */
    if (c->cpu_rate > 0) seconds += 1 / (c->cpu_rate * c->cpus);
    return MS_PER_SECOND * seconds * rt_samples_of_step(c);
}

static void fill_memory(const mdot_job *job, const rt_resolved_configuration *requested, const rt_stage_memory *stages,
                        mdot_prediction *out)
{
    const rt_memory memory = stages->largest;
    rt_reserved reserved = rt_reserve_memory(job, requested, &memory);
    rt_memory_interval interval = rt_memory_within(job, &memory);
    out->peak_memory_bytes = rt_sum_memory(&memory);
    out->weight_bytes = memory.weights;
    out->gradient_bytes = memory.gradients;
    out->optimizer_bytes = memory.optimizer;
    out->activation_bytes = memory.activations;
    out->memory_lower_bytes = interval.lower_bytes;
    out->memory_upper_bytes = interval.upper_bytes;
    out->reserved_bytes = rt_sum_reserved(&memory, &reserved);
    out->usable_bytes = rt_usable_memory(&requested->configuration.gpu);
    out->fits = out->reserved_bytes <= out->usable_bytes;
    out->rounding_bytes = reserved.rounding;
    out->context_bytes = reserved.context;
    out->workspace_bytes = reserved.workspace;
    out->collective_bytes = reserved.collectives;
    out->first_stage_bytes = rt_sum_memory(&stages->first);
    out->last_stage_bytes = rt_sum_memory(&stages->last);
}

static void fill_power(const rt_configuration *configuration, const rt_roofline_terms *terms, mdot_prediction *out)
{
    out->average_watts = rt_average_watts(configuration, terms, out->step_ms);
    out->energy_joules = out->average_watts * out->step_ms / MS_PER_SECOND * configuration->c.gpu_count;
}

static uint32_t warnings_of(const mdot_context *context, const rt_job_schema *schema, bool shortened,
                            const rt_job_pair *pair, const mdot_job *job, bool is_analytic)
{
    uint32_t warnings = read_outside(schema, pair);
    if (shortened) warnings |= MDOT_WARN_SHORTENED;
    if (has_unknown(job, schema)) warnings |= MDOT_WARN_UNKNOWN_OPERATOR;
    if (rt_fell_back(context)) warnings |= MDOT_WARN_FALLBACK;
    if (pair->requested.differs_from_program) warnings |= MDOT_WARN_DIFFERS_FROM_PROGRAM;
    if (pair->requested.configuration.c.sync == MDOT_SYNC_ASP) warnings |= MDOT_WARN_STALE_GRADIENTS;
    if (is_analytic) warnings |= MDOT_WARN_ANALYTIC_ESTIMATE;
    if (pair->queried.configuration.c.torch != pair->requested.configuration.c.torch)
        warnings |= MDOT_WARN_SOFTWARE_NOT_MEASURED;
    return warnings;
}

/* False if the predictor lacks the output, or if a part is no time. */
static bool read_parts(const rt_job_schema *schema, const rt_job_pair *pair, rt_step_parts *out_parts)
{
    if (schema->output_at[RT_JOB_OUTPUT_PARTS] == RT_NOT_THERE) return false;
    const float *numbers = pair->block->parts + pair->at;
    double parts[RT_PART_NUMBERS];
    for (size_t k = 0; k < RT_PART_NUMBERS; k++) {
        bool is_once = k == RT_PART_NUMBERS - 2;
        parts[k] = (double)numbers[k * schema->block] / (is_once ? 1 : pair->queried.micro_steps);
        if (!(isfinite(parts[k]) && parts[k] >= 0)) return false;
    }
    *out_parts = (rt_step_parts){.is_learned = true}; /* the host works on what the GPU waits for */
    memcpy(out_parts->pass_ms, parts, sizeof out_parts->pass_ms);
    /* the shipped predictor counts each of the update's tensors once */
    out_parts->optimizer_ms = parts[RT_PART_NUMBERS - 2] * rt_list_traffic(&pair->queried.configuration.c);
    out_parts->host_ms = parts[RT_PART_NUMBERS - 1];
    return true;
}

static mdot_status read_pair(const mdot_context *context, rt_job_tensors *tensors, const rt_cached_features *features,
                             const rt_job_pair *pair, const mdot_job *job, const rt_stage_memory *memory,
                             mdot_prediction *out_prediction, mdot_error *err)
{
    const rt_job_schema *schema = &tensors->schema;
    const float *answers = pair->block->step_ms + pair->at;
    const float ms[RT_STEP_NUMBERS] = {answers[0], answers[schema->block], answers[2 * schema->block]};
    mdot_status status = check_times(ms, err);
    if (status != MDOT_OK && pair->requested.configuration.c.mode == MDOT_MODE_INFERENCE && !has_forward_work(job))
        return BS_INVALID(err, "the job has no forward pass with work, which inference consists of; predict training");
    if (status != MDOT_OK) return status;
    rt_step_parts parts;
    bool has_parts = read_parts(schema, pair, &parts);
    if (!has_parts) parts = rt_divide_step(job, &pair->queried, (double)ms[1]);
    rt_correction corrected = rt_correct(&pair->requested, &pair->queried, job, &parts, &tensors->typical);
    if (!has_parts) corrected.host_log = corrected.slow_host_log = 0; /* the host's time is a guess */
    rt_roofline_terms terms = rt_step_roofline_terms(job, &pair->requested);
    const rt_configuration *configuration = &pair->requested.configuration;
    bool reads_types = schema->input_at[RT_JOB_INPUT_TYPE] != RT_NOT_THERE;
    *out_prediction = (mdot_prediction){
        .warnings = warnings_of(context, schema, features->shortened, pair, job, corrected.is_analytic)};
    fill_time(ms, &corrected, out_prediction);
    out_prediction->host_share = rt_host_share(&corrected.parts, pair->requested.micro_steps);
    widen_by_check(job, configuration, out_prediction);
    out_prediction->loader_ms = loader_ms(&configuration->c);
    rt_wait_for_data(out_prediction);
    fill_memory(job, &pair->requested, memory, out_prediction);
    fill_power(configuration, &terms, out_prediction);
    rt_fill_plausibility(job, &terms, configuration, reads_types ? schema->type_count : UINT32_MAX, out_prediction);
    return MDOT_OK;
}

static const mdot_abi_table *table_of(const mdot_context *context)
{
    return rt_predictor_artefact(rt_context_predictor(context))->table;
}

static bool equal_shards(const rt_shard *a, const rt_shard *b)
{
    bool equal = a->tensor == b->tensor && a->experts == b->experts && a->square_batch == b->square_batch;
    for (int position = 0; position < RT_PIPELINE_POSITIONS; position++)
        equal = equal && a->of[position] == b->of[position];
    return equal;
}

/* A call in progress. */
typedef struct call {
    mdot_context *context;
    rt_job_tensors *tensors;
    const pairs *pairs;
    rt_gpu_names names;
    bool has_pending; /* `pending` is the first configuration of the next run, which the last run had no space for */
    rt_resolved_configuration pending;
    mdot_status status; /* first failure; its message is in err */
    mdot_error *err;
} call;

/* Pairs with one job and one shard, answered together. */
typedef struct run {
    const mdot_job *job;
    rt_shard shard;
    size_t count;
    size_t pair[RT_PAIR_CAPACITY];
} run;

static void answer(const call *c, size_t i, const mdot_prediction *prediction)
{
    mdot_prediction *out = c->pairs->out;
    bs_write_struct(&prediction_type, prediction, bs_struct_at(out, i), bs_struct_bytes(out));
}

static void refuse(call *c, size_t i, const mdot_error *reason)
{
    if (!c->pairs->is_one) answer(c, i, &(mdot_prediction){.status = reason->status});
    if (c->status != MDOT_OK) return;
    c->status = c->pairs->count == 1 ? mdot_fail(c->err, reason->status, "%s", reason->message)
                                     : mdot_fail(c->err, reason->status, "pair %zu: %s", i, reason->message);
}

/* Reads configuration i and resolves it against the job. */
static mdot_status resolve_configuration(call *c, const mdot_job *job, size_t i,
                                         rt_resolved_configuration *out_resolved, mdot_error *err)
{
    if (job == NULL) return BS_INVALID(err, "the job is NULL");
    if (c->has_pending) {
        c->has_pending = false;
        *out_resolved = c->pending;
        return MDOT_OK;
    }
    if (c->pairs->measured != NULL) {
        *out_resolved = c->pairs->measured[i].resolved;
        return MDOT_OK;
    }
    rt_configuration requested;
    mdot_status status = rt_configuration_read(c->pairs->configurations, i, &c->names, &requested, err);
    if (status == MDOT_OK) status = rt_configuration_check(&requested, job, err);
    if (status == MDOT_OK) rt_resolve(job, &requested, out_resolved);
    return status;
}

static bool equal_columns(const float *a, const float *b, size_t rows, size_t stride)
{
    size_t row = 0;
    while (row < rows && a[row * stride] == b[row * stride]) row++;
    return row == rows;
}

/* Finds the numbers of the block's last configuration in another place. Returns false if there is none. */
static bool find_numbers(const rt_job_tensors *tensors, const rt_job_block *block, rt_job_pair *out_place)
{
    const rt_job_schema *schema = &tensors->schema;
    for (size_t b = 0; b < tensors->taken_count; b++) {
        const rt_job_block *other = &tensors->blocks[b];
        size_t last = block->count - 1, count = other == block ? last : other->count;
        for (size_t k = 0; other->batch == block->batch && k < count; k++) {
            if (!equal_columns(block->configuration + last, other->configuration + k,
                               schema->known[RT_JOB_INPUT_CONFIGURATION], schema->block) ||
                !equal_columns(block->gpu + last, other->gpu + k, schema->known[RT_JOB_INPUT_GPU], schema->block))
                continue;
            out_place->block = other;
            out_place->at = k;
            return true;
        }
    }
    return false;
}

/* Adds the pair, whose `requested` is set, to a block of its batch. With `shares`, layouts that differ only in numbers
 * that the predictor does not read have one answer. Returns false if all blocks are taken. */
static bool add_pair(rt_job_tensors *tensors, const mdot_job *job, bool shares, rt_job_pair *pair)
{
    const rt_job_schema *schema = &tensors->schema;
    rt_configuration queried;
    rt_project_configuration(&pair->requested.configuration, job, schema->reads, &queried);
    int64_t batch = queried.micro_batch;
    size_t b = tensors->taken_count;
    while (b > 0 && (tensors->blocks[b - 1].batch != batch || tensors->blocks[b - 1].count == schema->block)) b--;
    if (b == 0) {
        if (tensors->taken_count == tensors->block_count) return false;
        b = ++tensors->taken_count;
        tensors->blocks[b - 1].count = 0;
        tensors->blocks[b - 1].has_new = false;
        tensors->blocks[b - 1].batch = batch;
    }
    rt_job_block *block = &tensors->blocks[b - 1];
    pair->block = block;
    pair->at = rt_add_configuration(schema, &queried, block);
    if (shares && find_numbers(tensors, block, pair))
        block->count--;
    else
        block->has_new = true;
    rt_resolve(job, &queried, &pair->queried);
    pair->queried.recomputes_as_program = pair->queried.runs_as_program = false;
    return true;
}

/* With `shares`, blocks keep the answers of the last run if it had the same job and shard. Other calls rarely repeat
 * numbers, and looking for them would take a sixth of an evaluation. */
static void begin_run(rt_job_tensors *tensors, const mdot_job *job, bool shares, const rt_shard *shard)
{
    if (tensors->encoded != job) tensors->typical = (rt_typical_rooflines){0};
    if (!shares || tensors->encoded != job || !equal_shards(&tensors->shard, shard)) tensors->taken_count = 0;
}

/* Gathers pairs from `first` on and refuses the invalid ones. Returns the number of pairs that it has processed. */
static size_t gather(call *c, size_t first, run *out)
{
    size_t i = first;
    mdot_error reason;
    bool shares = c->pairs->measured != NULL;
    *out = (run){.job = job_of(c->pairs, first)};
    for (; i < c->pairs->count && out->count < RT_PAIR_CAPACITY && job_of(c->pairs, i) == out->job; i++) {
        rt_job_pair *pair = &c->tensors->pairs[out->count];
        if (resolve_configuration(c, out->job, i, &pair->requested, &reason) != MDOT_OK) {
            refuse(c, i, &reason);
            continue;
        }
        bool is_first = out->count == 0;
        if (is_first) begin_run(c->tensors, out->job, shares, &pair->requested.shard);
        bool is_other_shard = !is_first && !equal_shards(&pair->requested.shard, &out->shard);
        bool is_added = !is_other_shard && add_pair(c->tensors, out->job, shares, pair);
        if (!is_added && is_first) { /* earlier runs have taken all blocks */
            c->tensors->taken_count = 0;
            is_added = add_pair(c->tensors, out->job, shares, pair);
        }
        if (!is_added) {
            c->pending = pair->requested;
            c->has_pending = true;
            break;
        }
        out->shard = pair->requested.shard;
        out->pair[out->count++] = i;
    }
    return i - first;
}

/* The caller's encoding covers the whole job on one GPU, at every batch unless the job has squares. */
static const rt_cached_features *encode_run(call *c, const run *r)
{
    rt_cached_features *features = &c->tensors->features;
    bool is_covered = rt_is_unsharded(&r->shard) && r->shard.square_batch == 0;
    if (c->pairs->encoding != NULL && is_covered) return &c->pairs->encoding->features;
    if (r->job != c->tensors->encoded || !equal_shards(&r->shard, &c->tensors->shard))
        rt_encode(c->context, c->tensors, r->job, &r->shard, features);
    c->tensors->encoded = r->job;
    c->tensors->shard = r->shard;
    return features;
}

static void evaluate_blocks(const call *c, const rt_cached_features *features)
{
    const rt_job_schema *schema = &c->tensors->schema;
    const mdot_abi_entry *entry = rt_entry(table_of(c->context), schema->evaluate_entry);
    rt_item items[RT_PAIR_CAPACITY];
    size_t count = 0;
    for (size_t b = 0; b < c->tensors->taken_count; b++) {
        rt_job_block *block = &c->tensors->blocks[b];
        if (!block->has_new) continue;
        rt_bind_cached_features(schema, features, block);
        items[count++] = (rt_item){block->inputs, block->outputs};
        block->has_new = false;
    }
    rt_run_many(c->context, entry, entry->least_length ? (int64_t)features->row_count : 0, items, count);
}

static void predict_run(call *c, const run *r)
{
    const rt_cached_features *features = encode_run(c, r);
    evaluate_blocks(c, features);
    for (size_t i = 0; i < r->count; i++) {
        mdot_prediction prediction;
        mdot_error reason;
        const rt_job_pair *pair = &c->tensors->pairs[i];
        const rt_measured_configuration *measured = c->pairs->measured;
        rt_stage_memory memory =
            measured != NULL ? measured[r->pair[i]].memory : rt_measure_stages(r->job, &pair->requested);
        if (read_pair(c->context, c->tensors, features, pair, r->job, &memory, &prediction, &reason) == MDOT_OK) {
            answer(c, r->pair[i], &prediction);
        } else {
            refuse(c, r->pair[i], &reason);
        }
    }
}

static mdot_status predict_pairs(mdot_context *context, const pairs *p, mdot_error *err)
{
    call c = {.context = context, .tensors = rt_context_state(context, &rt_predict_extension), .pairs = p, .err = err};
    if (c.tensors == NULL) return rt_job_schema_read(table_of(context), RT_JOB_PREDICT, &(rt_job_schema){0}, err);
    if (p->measured == NULL || p->is_first) c.tensors->encoded = NULL;
    BS_TRY(p->count > 0 ? bs_check_struct(&prediction_type, p->out, err) : MDOT_OK);
    for (size_t first = 0; first < p->count;) {
        run r;
        first += gather(&c, first, &r);
        if (r.count > 0) predict_run(&c, &r);
    }
    return c.status;
}

/* `function` is the name of the public function, for messages. */
static mdot_status predict_validated(mdot_context *context, const pairs *p, const char *function, mdot_error *err)
{
    mdot_status status = rt_handle_enter(context, function, err);
    if (status != MDOT_OK) return status;
    for (size_t i = 0; rt_validates_handles() && status == MDOT_OK && i < p->count; i++)
        if (job_of(p, i) != NULL) status = rt_handle_check(job_of(p, i), RT_JOB, function, err);
    if (status == MDOT_OK && p->encoding != NULL && p->encoding->predictor != rt_context_predictor(context))
        status = BS_INVALID(err, "the encoding and the context belong to different predictors");
    if (status == MDOT_OK) status = predict_pairs(context, p, err);
    rt_handle_leave(context);
    return status;
}

static bool is_missing(const void *array, size_t count) { return count > 0 && array == NULL; }

mdot_status mdot_predict(mdot_context *context, const mdot_job *job, const mdot_configuration *configuration,
                         mdot_prediction *out_prediction, mdot_error *err)
{
    if (context == NULL || job == NULL || configuration == NULL || out_prediction == NULL)
        return BS_INVALID(err, "mdot_predict: context, job, configuration or out_prediction is NULL");
    const pairs one = {.job = job, .configurations = configuration, .count = 1, .out = out_prediction, .is_one = true};
    return predict_validated(context, &one, __func__, err);
}

mdot_status rt_answer_one(mdot_context *context, const mdot_job *job, const mdot_configuration *configuration,
                          rt_answer *out_answer, mdot_error *err)
{
    rt_answer answer = {.prediction = MDOT_INIT(mdot_prediction)};
    const pairs one = {
        .job = job, .configurations = configuration, .count = 1, .out = &answer.prediction, .is_one = true};
    BS_TRY(predict_pairs(context, &one, err));
    const rt_job_tensors *tensors = rt_context_state(context, &rt_predict_extension);
    const rt_job_pair *pair = &tensors->pairs[0]; /* the block of the only configuration */
    answer.requested = pair->requested;
    answer.queried = pair->queried;
    answer.queried_ms = (double)pair->block->step_ms[tensors->schema.block + pair->at];
    answer.has_parts = read_parts(&tensors->schema, pair, &answer.parts);
    if (!answer.has_parts) answer.parts = rt_divide_step(job, &pair->queried, answer.queried_ms);
    *out_answer = answer;
    return MDOT_OK;
}

mdot_status mdot_predict_many(mdot_context *context, const mdot_job *const *jobs,
                              const mdot_configuration *configurations, size_t count, mdot_prediction *out_predictions,
                              mdot_error *err)
{
    if (context == NULL || is_missing(jobs, count) || is_missing(configurations, count) ||
        is_missing(out_predictions, count))
        return BS_INVALID(err, "mdot_predict_many: context, jobs, configurations or out_predictions is NULL");
    const pairs requested = {.jobs = jobs, .configurations = configurations, .count = count, .out = out_predictions};
    return predict_validated(context, &requested, __func__, err);
}

mdot_status mdot_sweep(mdot_context *context, const mdot_job *job, const mdot_configuration *configurations,
                       size_t count, mdot_prediction *out_predictions, mdot_error *err)
{
    if (context == NULL || job == NULL || is_missing(configurations, count) || is_missing(out_predictions, count))
        return BS_INVALID(err, "mdot_sweep: context, job, configurations or out_predictions is NULL");
    const pairs requested = {.job = job, .configurations = configurations, .count = count, .out = out_predictions};
    return predict_validated(context, &requested, __func__, err);
}

mdot_status rt_sweep_measured(mdot_context *context, const mdot_job *job, bool is_first,
                              const rt_measured_configuration *measured, size_t count, mdot_prediction *out_predictions,
                              mdot_error *err)
{
    const pairs requested = {
        .job = job, .measured = measured, .count = count, .out = out_predictions, .is_first = is_first};
    return predict_validated(context, &requested, __func__, err);
}

mdot_status mdot_evaluate(mdot_context *context, const mdot_encoding *encoding,
                          const mdot_configuration *configurations, size_t count, mdot_prediction *out_predictions,
                          mdot_error *err)
{
    if (context == NULL || encoding == NULL || is_missing(configurations, count) || is_missing(out_predictions, count))
        return BS_INVALID(err, "mdot_evaluate: context, encoding, configurations or out_predictions is NULL");
    BS_TRY(rt_handle_check(encoding, RT_ENCODING, __func__, err));
    const pairs requested = {.job = encoding->job,
                             .encoding = encoding,
                             .configurations = configurations,
                             .count = count,
                             .out = out_predictions};
    return predict_validated(context, &requested, __func__, err);
}
