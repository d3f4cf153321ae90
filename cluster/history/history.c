/* history.c — adds jobs to a history, and estimates other jobs' durations. */
#include "base/status.h"
#include "history/history_learning.h"

#include <math.h>
#include <stdlib.h>

static const bs_struct_version options_struct = BS_SIZED(mdot_history_options, hash_seed),
                               job_struct = BS_SIZED(mdot_history_job, submit_s),
                               estimate_struct = BS_SIZED(mdot_history_estimate, weight);
static const double most_s = 1e12, least_s = 1e-3;
enum { MOST_GPUS = 1 << 20, LEAST_KEYS = 64, MOST_KEYS = 1 << 24, USUAL_KEYS = 1 << 16 };

mdot_status mdot_history_create(const mdot_history_options *options, mdot_history **out_history, mdot_error *err)
{
    mdot_history_options o = {0};
    if (options != NULL) {
        BS_TRY(bs_read_struct(&options_struct, options, &o, err));
    }
    if (o.most_keys == 0) o.most_keys = USUAL_KEYS;
    if (o.half_life_s == 0) o.half_life_s = 30 * 86400.0;
    if (o.most_keys < LEAST_KEYS || o.most_keys > MOST_KEYS)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "most_keys is %zu; it must be between %d and %d", o.most_keys,
                         LEAST_KEYS, MOST_KEYS);
    if (!(o.half_life_s >= 60 && o.half_life_s <= most_s))
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "half_life_s is %g; it must be between 60 and %g", o.half_life_s,
                         most_s);
    mdot_history *h = calloc(1, sizeof *h);
    if (h != NULL) h->nodes = hs_nodes_create(o.most_keys);
    if (h == NULL || h->nodes == NULL) {
        free(h);
        return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    }
    h->options = o;
    hs_learning_begin(&h->learning);
    *out_history = h;
    return MDOT_OK;
}

void mdot_history_destroy(mdot_history *h)
{
    if (h == NULL) return;
    hs_nodes_destroy(h->nodes);
    free(h);
}

static mdot_status read_job(const mdot_history *h, const mdot_history_job *job, mdot_history_job *out_job,
                            hs_keys *out_keys, mdot_error *err)
{
    mdot_history_job requested;
    BS_TRY(bs_read_struct(&job_struct, job, &requested, err));
    if (requested.gpus < 0 || requested.gpus > MOST_GPUS)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "gpus is %d; it must be between 0 and %d", requested.gpus,
                         MOST_GPUS);
    if (!(fabs(requested.submit_s) <= most_s))
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "submit_s is %g; it must be between %g and %g", requested.submit_s,
                         -most_s, most_s);
    *out_job = requested;
    *out_keys = hs_keys_of(h->options.hash_seed, h->nodes, &requested);
    return MDOT_OK;
}

static mdot_history_estimate estimate_of(const mdot_history *h, const hs_forecast *f)
{
    hs_shape shape = hs_shape_fit(&h->learning.errors[f->error_class]);
    double log_s = f->log_s + f->scale * shape.center;
    return (mdot_history_estimate){.struct_size = sizeof(mdot_history_estimate),
                                   .median_s = exp(fmin(fmax(log_s, log(least_s)), log(most_s))),
                                   .lower_scale = f->scale * shape.lower,
                                   .upper_scale = f->scale * shape.upper,
                                   .degrees = shape.degrees,
                                   .early_failure = f->early_failure,
                                   .failure_s = exp(f->failure_log_s),
                                   .key = (mdot_history_key)f->key,
                                   .weight = f->weight};
}

mdot_status mdot_history_ask(const mdot_history *h, const mdot_history_job *job, mdot_history_estimate *out_estimate,
                             mdot_error *err)
{
    mdot_history_job requested;
    hs_keys keys;
    mdot_status status = bs_check_struct(&estimate_struct, out_estimate, err);
    if (status == MDOT_OK) status = read_job(h, job, &requested, &keys, err);
    if (status != MDOT_OK) return status;
    hs_forecast f = hs_forecast_of(&h->learning, h->nodes, &keys, h->options.half_life_s, INFINITY, requested.submit_s);
    mdot_history_estimate estimate = estimate_of(h, &f);
    bs_write_struct(&estimate_struct, &estimate, out_estimate, out_estimate->struct_size);
    return MDOT_OK;
}

/* A job ending, ready to be added to the job's keys. */
typedef struct ending {
    bool has_duration; /* false: an early failure */
    double log_s;      /* log(duration), or log(time until the failure) */
    double end_s;
} ending;

/* A job that was cut off would have run longer. It counts as the median of the longer durations. */
static ending ending_of(const mdot_history_estimate *e, mdot_ended outcome, double duration_s, double end_s)
{
    const double early = 0.5;
    double ran_s = fmax(duration_s, least_s);
    bool is_early = outcome != MDOT_ENDED_TIMED_OUT && ran_s < early * e->median_s;
    if (outcome == MDOT_ENDED_COMPLETED) return (ending){true, log(ran_s), end_s};
    if (is_early) return (ending){false, log(ran_s), end_s};
    return (ending){true, log(fmin(ran_s + mdot_history_remaining_s(e, ran_s, .5), most_s)), end_s};
}

/* Moves a key's weights to the end time. Returns the weight of the new ending, below 1 if it is older than others. */
static double age(const mdot_history *h, hs_node *node, double end_s)
{
    if (node->ends == 0) node->at_s = end_s;
    double kept = hs_decay(h->options.half_life_s, node->at_s, end_s);
    double weight = hs_decay(h->options.half_life_s, end_s, node->at_s);
    node->misses *= kept;
    node->ends *= kept;
    node->failures *= kept;
    node->at_s = fmax(node->at_s, end_s);
    return weight;
}

static void add_duration(const mdot_history *h, hs_node *node, double value, double weight, double end_s)
{
    const double least_weight = 0.3; /* from earlier jobs that still count as recent */
    hs_durations *d = &node->now;
    double kept = d->weight * hs_decay(h->options.half_life_s, d->at_s, node->at_s);
    hs_node_keep(node, end_s);
    d->weight = kept + weight;
    d->mean += weight / d->weight * (value - d->mean);
    d->at_s = node->at_s;
    if (kept < least_weight)
        d->recent = value;
    else if (weight > .5)
        d->recent = (d->recent + value) / 2;
}

static void add_error(hs_node *node, double error, double weight)
{
    node->misses += weight;
    node->spread += weight / node->misses * (error - node->spread);
}

/* `f`: the forecast from the keys known at the submission. */
static mdot_status add_to_keys(mdot_history *h, const hs_keys *keys, const hs_forecast *f, const ending *e,
                               bool is_complete, mdot_error *err)
{
    double far = fmax(6 * f->scale, log(10)), log_s = e->log_s; /* limits one job's effect */
    if (f->weight > 3) log_s = fmin(fmax(log_s, f->log_s - far), f->log_s + far);
    for (int key = 0; key < HS_KEYS; key++) {
        if (keys->hash[key] == 0) continue;
        hs_node *node = hs_nodes_use(h->nodes, keys->hash[key]);
        if (node == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
        bool was_known = f->steps[2 * key].weight > 0;
        double weight = age(h, node, e->end_s), before = was_known ? f->steps[2 * key].before : f->log_s;
        node->ends += weight;
        if (!e->has_duration) {
            node->failures += weight;
            node->failure += weight / node->failures * (e->log_s - node->failure);
            continue;
        }
        add_duration(h, node, key == MDOT_HISTORY_KEY_HOUR ? log_s - before : log_s, weight, e->end_s);
        if (is_complete && was_known) add_error(node, fmin(fabs(e->log_s - f->log_s) / f->usual, 8), weight);
    }
    return MDOT_OK;
}

mdot_status mdot_history_add(mdot_history *h, const mdot_history_job *job, mdot_ended outcome, double duration_s,
                             double end_s, mdot_error *err)
{
    mdot_history_job requested;
    hs_keys keys;
    BS_TRY(read_job(h, job, &requested, &keys, err));
    if (!(duration_s >= 0 && duration_s <= most_s))
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "duration_s is %g; it must be between 0 and %g", duration_s,
                         most_s);
    if (!(fabs(end_s) <= most_s))
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "end_s is %g; it must be between %g and %g", end_s, -most_s,
                         most_s);
    if ((unsigned)outcome > MDOT_ENDED_TIMED_OUT)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "the outcome %d is not a value of mdot_ended", (int)outcome);
    hs_forecast f =
        hs_forecast_of(&h->learning, h->nodes, &keys, h->options.half_life_s, requested.submit_s, requested.submit_s);
    mdot_history_estimate estimate = estimate_of(h, &f);
    ending e = ending_of(&estimate, outcome, duration_s, end_s);
    bool is_complete = outcome == MDOT_ENDED_COMPLETED;
    if (!hs_see_words(h->options.hash_seed, h->nodes, &requested)) return BS_OUT_OF_MEMORY(err, "a history");
    mdot_status status = add_to_keys(h, &keys, &f, &e, is_complete, err);
    if (status == MDOT_OK && is_complete) hs_learn(&h->learning, &f, e.log_s);
    return status;
}
