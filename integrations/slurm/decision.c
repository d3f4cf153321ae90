/* decision.c — see decision.h. */
#include "integrations/slurm/decision.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- The request ------------------------------------------------------------------------------------------------- */

sl_gpus sl_gpus_of(const sl_submission *submission)
{
    int64_t nodes = submission->nodes > 0 ? submission->nodes : 1,
            tasks = submission->tasks > 0 ? submission->tasks : 1;
    const struct {
        const char *text;
        int64_t times;
    } ways[] = {{submission->per_job, 1}, {submission->per_node, nodes}, {submission->per_task, tasks}};
    sl_gpus all = {.gpus = 1, .nodes = nodes};
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        sl_gres gres = sl_gres_read(ways[i].text);
        if (gres.count == 0) continue;
        all.gpus = gres.count * ways[i].times;
        all.is_mixed = gres.is_mixed;
        memcpy(all.type, gres.type, sizeof all.type);
        break;
    }
    return all;
}

static bool names_partition(const char *list, const char *partition)
{
    size_t length = strlen(partition);
    for (const char *at = list; at != NULL; at = strchr(at, ',') == NULL ? NULL : strchr(at, ',') + 1)
        if (strncmp(at, partition, length) == 0 && (at[length] == ',' || at[length] == '\0')) return true;
    return false;
}

/* Finds the places that the request may run in. */
static size_t find_places(const sl_site *site, const sl_submission *submission, const sl_gpus *gpus,
                          const sl_place *out_places[SL_MAX_PLACES])
{
    bool has_list = submission->partitions != NULL && submission->partitions[0] != '\0';
    const char *list = has_list ? submission->partitions : submission->default_partition;
    size_t count = 0;
    for (size_t i = 0; i < site->place_count; i++) {
        const sl_place *place = &site->places[i];
        bool is_type = gpus->type[0] == '\0' || place->type[0] == '\0' || strcmp(place->type, gpus->type) == 0;
        if (is_type && names_partition(list, place->partition)) out_places[count++] = place;
    }
    return count;
}

/* ---- Time -------------------------------------------------------------------------------------------------------- */

/* Inverse of the normal distribution, by bisection to 1e-9; called once per decision. */
static double normal_quantile(double probability)
{
    double low = -10, high = 10;
    for (int i = 0; i < 64; i++) {
        double middle = (low + high) / 2;
        if (erfc(-middle / sqrt(2)) / 2 < probability)
            low = middle;
        else
            high = middle;
    }
    return low;
}

double sl_step_quantile_ms(const mdot_prediction *p, double quantile)
{
    const double end = 1.6448536269514722; /* the normal distribution's 95 % quantile, which is the end of the
                                            * interval */
    double z = normal_quantile(quantile);
    double of_end = z >= 0 ? p->upper_ms / p->step_ms : p->step_ms / p->lower_ms;
    return p->step_ms * pow(of_end, z / end);
}

/* ---- The decision ------------------------------------------------------------------------------------------------ */

enum {
    DOUBTFUL =
        MDOT_WARN_UNKNOWN_OPERATOR | MDOT_WARN_OUTSIDE_TRAINING | MDOT_WARN_IMPLAUSIBLE | MDOT_WARN_NO_PARAMETERS,
    MOST_MINUTES = 1 << 24 /* far below Slurm's NO_VAL and INFINITE */
};

static uint32_t limit_minutes(const sl_site *site, const sl_place *place, const mdot_prediction *p, double steps)
{
    if (steps == 0 || !p->fits || ((p->warnings & DOUBTFUL) != 0 && !site->limits_doubtful)) return 0;
    double seconds = 1e-3 * steps * sl_step_quantile_ms(p, site->quantile) * site->margin + site->startup_s;
    double minutes = fmin(ceil(seconds / 60), fmin(floor(place->most_s / 60), MOST_MINUTES));
    return minutes < 1 ? 1 : (uint32_t)minutes;
}

/* Returns the full weight for jobs as short as shortest_s, zero for longest_s, linear in the logarithm between. */
static uint32_t priority(const sl_site *site, double total_s, int64_t gpus)
{
    double length_s = site->order == SL_ORDER_SERVICE ? total_s * (double)gpus : total_s;
    double weight = log(site->longest_s / length_s) / log(site->longest_s / site->shortest_s);
    return (uint32_t)lround(site->priority_weight * fmin(fmax(weight, 0), 1));
}

/* The place with the least rank is selected. If the site leaves the choice to Slurm, the job may start in any place,
 * so the rank selects the slowest, for which the prediction must hold. */
static double rank(const sl_site *site, const sl_place *place, const mdot_prediction *p)
{
    switch (site->choice) {
    case SL_CHOOSE_TIME:
        return p->step_ms;
    case SL_CHOOSE_COST:
        return p->step_ms * place->price; /* the number of GPUs is the same everywhere */
    default:
        return -p->step_ms;
    }
}

__attribute__((format(printf, 2, 3))) static void put(char comment[SL_COMMENT_BYTES], const char *format, ...)
{
    size_t used = strlen(comment);
    va_list args;
    va_start(args, format);
    vsnprintf(comment + used, SL_COMMENT_BYTES - used, format, args);
    va_end(args);
}

/* Writes a comment that consists of mdot's own numbers and of names from its tables, so that it is free of user
 * input. */
static void write_comment(const sl_gpus *gpus, const mdot_prediction *p, double steps, sl_decision *d)
{
    put(d->comment, "mdot: gpu=%s gpus=%lld step_ms=%.4g interval_ms=%.4g..%.4g", d->place.gpu, (long long)gpus->gpus,
        p->step_ms, p->lower_ms, p->upper_ms);
    if (steps > 0)
        put(d->comment, " steps=%.0f total_s=%.1f interval_s=%.1f..%.1f", steps, d->total_s, 1e-3 * steps * p->lower_ms,
            1e-3 * steps * p->upper_ms);
    put(d->comment, " memory_gib=%.3g fits=%s", (double)p->peak_memory_bytes / 1073741824, p->fits ? "yes" : "no");
    if (d->place.price > 0 && steps > 0)
        put(d->comment, " cost=%.4g", d->place.price * (double)gpus->gpus * d->total_s / 3600);
    if (d->limit_minutes > 0) put(d->comment, " limit_min=%u", d->limit_minutes);
    const char *gap = " warnings=";
    for (uint32_t bit = 1; bit != 0; bit <<= 1) {
        const char *name = (p->warnings & bit) != 0 ? mdot_warning_name(bit) : NULL;
        if (name == NULL) continue;
        put(d->comment, "%s%s", gap, name);
        gap = ",";
    }
}

static int worker_count(const mdot_configuration *c)
{
    uint32_t tensor = c->tensor_parallel > 0 ? c->tensor_parallel : 1;
    uint32_t pipeline = c->pipeline_parallel > 0 ? c->pipeline_parallel : 1;
    int workers = c->gpu_count / (int)(tensor * pipeline);
    return workers > 0 ? workers : 1;
}

/* Makes the training configuration for the GPUs of the places. */
static mdot_configuration configure(const sl_request *request, const sl_gpus *gpus, const mdot_job_info *job)
{
    mdot_configuration c = request->training;
    if (c.batch == 0) c.batch = job->batch;
    if (!request->has_optimizer) c.optimizer = job->optimizer;
    c.gpu_count = (int)gpus->gpus;
    c.node_count = (uint32_t)gpus->nodes;
    uint32_t others =
        (c.tensor_parallel > 0 ? c.tensor_parallel : 1) * (c.pipeline_parallel > 0 ? c.pipeline_parallel : 1);
    if (c.data_parallel == 0 && others > 1) c.data_parallel = (uint32_t)c.gpu_count / others;
    return c;
}

mdot_status sl_decide(const sl_site *site, const sl_oracle *oracle, const mdot_job *job, const sl_request *request,
                      const sl_submission *submission, sl_decision *out_decision, mdot_error *err)
{
    const sl_place *places[SL_MAX_PLACES];
    mdot_configuration configurations[SL_MAX_PLACES];
    mdot_prediction predictions[SL_MAX_PLACES] = {MDOT_INIT(mdot_prediction)};
    mdot_job_info info = MDOT_INIT(mdot_job_info);
    sl_gpus gpus = sl_gpus_of(submission);
    if (gpus.is_mixed) return mdot_fail(err, MDOT_INVALID_ARGUMENT, "the request asks for GPUs of several types");
    if (gpus.gpus > 1 << 16) return mdot_fail(err, MDOT_INVALID_ARGUMENT, "the request asks for more than 65536 GPUs");
    size_t count = find_places(site, submission, &gpus, places);
    if (count == 0) return mdot_fail(err, MDOT_NOT_FOUND, "none of its partitions has such GPUs in mdot.conf");
    mdot_job_get_info(job, &info);
    for (size_t i = 0; i < count; i++) {
        configurations[i] = configure(request, &gpus, &info);
        configurations[i].gpu = places[i]->gpu;
    }
    mdot_status status = mdot_sweep(oracle->context, job, configurations, count, predictions, err);
    for (size_t i = 0; status == MDOT_OK && oracle->calibration != NULL && i < count; i++)
        status = mdot_calibration_apply(oracle->calibration, &configurations[i], NULL, &predictions[i], err);
    if (status != MDOT_OK) return status;

    size_t best = 0;
    for (size_t i = 1; i < count; i++) {
        if (predictions[i].fits != predictions[best].fits && site->choice != SL_CHOOSE_NOT)
            best = predictions[i].fits ? i : best;
        else if (rank(site, places[i], &predictions[i]) < rank(site, places[best], &predictions[best]))
            best = i;
    }
    const mdot_configuration *c = &configurations[best];
    double samples = (double)c->batch * (c->accumulate > 0 ? c->accumulate : 1) * worker_count(c);
    double steps = sl_request_steps(request, samples);
    sl_decision d = {.place = *places[best],
                     .is_chosen = site->choice != SL_CHOOSE_NOT && count > 1 && predictions[best].fits,
                     .limit_minutes = limit_minutes(site, places[best], &predictions[best], steps),
                     .step_ms = predictions[best].step_ms,
                     .total_s = 1e-3 * steps * predictions[best].step_ms};
    d.has_priority = steps > 0 && site->priority_weight > 0;
    if (d.has_priority) d.priority = priority(site, d.total_s, gpus.gpus);
    write_comment(&gpus, &predictions[best], steps, &d);
    *out_decision = d;
    return MDOT_OK;
}
