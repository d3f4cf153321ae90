#include "slurm/decision.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

sl_gpus sl_gpus_of(const sl_submission *submission)
{
    int64_t nodes = submission->nodes > 0 ? submission->nodes : 1,
            tasks = submission->tasks > 0 ? submission->tasks : 1;
    int64_t cpus_of_a_task = submission->cpus_per_task > 0 ? submission->cpus_per_task : 1;
    int64_t cpus_of_a_node = (tasks * cpus_of_a_task + nodes - 1) / nodes;
    int64_t sockets = submission->sockets > 0 ? submission->sockets : 1;
    if (sockets > cpus_of_a_node) sockets = cpus_of_a_node; /* Slurm counts the sockets that have a CPU of the job */
    const struct {
        const char *text;
        int64_t times;
    } ways[] = {{submission->per_job, 1},
                {submission->per_node, nodes},
                {submission->per_socket, nodes * sockets},
                {submission->per_task, tasks}};
    sl_gpus entries = {.gpus = 1, .nodes = nodes};
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        sl_gres gres = sl_gres_read(ways[i].text);
        entries.is_none |= gres.is_given;
        if (gres.count == 0) continue;
        entries.gpus = gres.count * ways[i].times;
        entries.is_mixed = gres.is_mixed;
        entries.is_requested = true;
        memcpy(entries.type, gres.type, sizeof entries.type);
        break;
    }
    if (!entries.is_requested && submission->tasks_per_gpu > 0 && submission->tasks > 0) {
        entries.gpus = (tasks + submission->tasks_per_gpu - 1) / submission->tasks_per_gpu;
        entries.is_requested = true;
    }
    entries.is_none &= !entries.is_requested;
    return entries;
}

static bool names_partition(const char *list, const char *partition)
{
    size_t length;
    for (const char *name = NULL; sl_next_name(list, &name, &length);)
        if (strncmp(name, partition, length) == 0 && partition[length] == '\0') return true;
    return false;
}

/* The partitions where the request may run: its own list, or else the default partition. NULL if both are unset. */
static const char *partitions_of(const sl_submission *submission)
{
    bool has_list = submission->partitions != NULL && submission->partitions[0] != '\0';
    return has_list ? submission->partitions : submission->default_partition;
}

/* Finds the places where the request may run. */
static size_t find_places(const sl_site *site, const sl_submission *submission, const sl_gpus *gpus,
                          const sl_place *out_places[SL_MAX_PLACES])
{
    const char *list = partitions_of(submission);
    size_t count = 0;
    for (size_t i = 0; i < site->place_count; i++) {
        const sl_place *place = &site->places[i];
        bool is_type = gpus->type[0] == '\0' || place->type[0] == '\0' || strcmp(place->type, gpus->type) == 0;
        if (is_type && names_partition(list, place->partition)) out_places[count++] = place;
    }
    return count;
}

/* The normal distribution's inverse, by bisection to 1e-9; called once per decision. */
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
    const double end = 1.6448536269514722; /* the normal distribution's 95 % quantile: the end of the interval */
    double z = normal_quantile(quantile);
    double of_end = z >= 0 ? p->upper_ms / p->step_ms : p->step_ms / p->lower_ms;
    return p->step_ms * pow(of_end, z / end);
}

enum { MOST_MINUTES = 1 << 24 }; /* far below Slurm's NO_VAL and INFINITE */

bool sl_is_doubtful(uint32_t warnings)
{
    return (warnings & (MDOT_WARN_UNKNOWN_OPERATOR | MDOT_WARN_OUTSIDE_TRAINING | MDOT_WARN_IMPLAUSIBLE |
                        MDOT_WARN_NO_PARAMETERS | MDOT_WARN_WAITED_FOR_DATA)) != 0;
}

/* The training minutes at the site's quantile; 0: set no limit. */
static uint32_t wanted_minutes(const sl_site *site, const mdot_prediction *p, double steps)
{
    if (steps == 0 || !p->fits || (sl_is_doubtful(p->warnings) && !site->limits_doubtful)) return 0;
    double seconds = 1e-3 * steps * sl_step_quantile_ms(p, site->quantile) * site->margin + site->startup_s;
    double minutes = fmin(ceil(seconds / 60), MOST_MINUTES);
    return minutes < 1 ? 1 : (uint32_t)minutes;
}

/* The same by the user's earlier jobs with this name. Five are needed, because too short a limit costs the user a
 * job. */
static uint32_t minutes_by_history(const sl_site *site, const mdot_history_estimate *history)
{
    const double least_jobs = 5;
    if (history == NULL || !site->limits_by_history || history->key < MDOT_HISTORY_KEY_USER_NAME ||
        history->weight < least_jobs)
        return 0;
    double seconds = mdot_history_quantile_s(history, site->quantile) * site->margin + site->startup_s;
    return (uint32_t)fmax(fmin(ceil(seconds / 60), MOST_MINUTES), 1);
}

uint32_t sl_priority(const sl_site *site, double predicted_s, uint32_t binding_minutes, int64_t gpus,
                     double understatement)
{
    if (binding_minutes == 0 || binding_minutes == SL_UNLIMITED) return 0;
    double length_s = fmax(predicted_s, 60.0 * binding_minutes) * fmax(understatement, 1);
    if (site->order == SL_ORDER_SERVICE) length_s *= (double)gpus;
    double weight = log(site->longest_s / length_s) / log(site->longest_s / site->shortest_s);
    return (uint32_t)lround(site->priority_weight * fmin(fmax(weight, 0), 1));
}

/* Can the request start in this place? The answer is certain only for partitions without lists of users. */
static bool is_usable(const sl_place *place, const sl_submission *s, const sl_gpus *gpus)
{
    const sl_partition *p = sl_partition_find(s->cluster, place->partition, strlen(place->partition));
    if (p == NULL || !p->is_up) return false;
    if (s->cpus_per_node > p->least_cpus || s->memory_mib > p->least_memory_mib) return false;
    if (gpus->nodes < p->least_nodes || gpus->nodes > p->most_nodes) return false;
    /* a partition's default limit may exceed MaxTime */
    uint32_t minutes = s->own_minutes > 0 ? s->own_minutes : p->default_minutes;
    if (minutes > p->most_minutes || s->least_minutes > p->most_minutes) return false;
    sl_node_gpus there = sl_partition_gpus(p, place->type[0] != '\0' ? place->type : gpus->type);
    int64_t per_node = (gpus->gpus + gpus->nodes - 1) / gpus->nodes;
    return there.nodes >= gpus->nodes && there.all >= gpus->gpus && there.per_node >= per_node;
}

/* May the request be restricted to one place? Only if all its partitions are known, are open to everybody and have a
 * line in mdot.conf. Otherwise the user could lose a partition in which the job would start earlier. */
static bool may_choose(const sl_submission *s, const sl_place *const *places, size_t count)
{
    const char *list = partitions_of(s);
    size_t length;
    sl_time_rule rule;
    if (list == NULL || s->cluster == NULL || s->has_reservation || s->is_constrained) return false;
    /* A chosen partition may have a longer default limit than another, which would meet these limits. */
    if (s->deadline_s > 0 || !sl_accounting_rule(s, list, &rule) || rule.counts_minutes) return false;
    for (const char *name = NULL; sl_next_name(list, &name, &length);) {
        const sl_partition *p = sl_partition_find(s->cluster, name, length);
        bool has_place = false;
        for (size_t i = 0; i < count; i++)
            has_place |= strncmp(places[i]->partition, name, length) == 0 && places[i]->partition[length] == '\0';
        if (p == NULL || !p->is_open || !has_place || isfinite(p->reserved_s)) return false;
    }
    return true;
}

/* GPUs occupied by the job; all GPUs of the nodes if it takes whole nodes. 0 if unknown. */
static int64_t occupied_gpus(const sl_submission *s, const sl_gpus *gpus, const sl_place *place)
{
    if (!s->is_exclusive) return gpus->gpus;
    const sl_partition *p = sl_partition_find(s->cluster, place->partition, strlen(place->partition));
    int64_t entries = 0;
    for (uint32_t i = 0; p != NULL && i < p->type_count; i++) entries += p->gpus[i].per_node;
    entries *= gpus->nodes;
    return entries == 0 || entries > gpus->gpus ? entries : gpus->gpus;
}

/* The place with the least rank is selected. */
static double rank(const sl_site *site, const sl_place *place, const mdot_prediction *p)
{
    switch (site->choice) {
    case SL_CHOOSE_COST: return p->step_ms * place->price; /* the GPU count is the same everywhere */
    default: return p->step_ms;
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

/* Without a step count, the comment has the duration from ended jobs on the cluster. */
static void write_history(const mdot_history_estimate *e, char comment[SL_COMMENT_BYTES])
{
    put(comment, " history_s=%.0f history_interval_s=%.0f..%.0f history_jobs=%.0f early_failure=%.2g", e->median_s,
        mdot_history_quantile_s(e, .05), mdot_history_quantile_s(e, .95), ceil(e->weight), e->early_failure);
}

/* Writes a comment from mdot's own numbers and names, free of user input. */
static void write_comment(const sl_gpus *gpus, const mdot_prediction *p, double steps,
                          const mdot_history_estimate *history, sl_decision *d)
{
    put(d->comment, "mdot: gpu=%s gpus=%lld step_ms=%.4g interval_ms=%.4g..%.4g", d->place.gpu, (long long)gpus->gpus,
        p->step_ms, p->lower_ms, p->upper_ms);
    if (steps > 0)
        put(d->comment, " steps=%.0f total_s=%.1f interval_s=%.1f..%.1f", steps, d->total_s, 1e-3 * steps * p->lower_ms,
            1e-3 * steps * p->upper_ms);
    if (steps == 0 && history != NULL) write_history(history, d->comment);
    put(d->comment, " memory_gib=%.3g fits=%s", (double)p->peak_memory_bytes / 1073741824, p->fits ? "yes" : "no");
    if (d->place.price > 0 && steps > 0)
        put(d->comment, " cost=%.4g", d->place.price * (double)gpus->gpus * d->total_s / 3600);
    if (d->limit_minutes > 0) put(d->comment, " limit_min=%u", d->limit_minutes);
    if (d->has_priority) put(d->comment, " priority=%u binding_min=%u", d->priority, d->binding_minutes);
    const char *gap = " warnings=";
    for (uint32_t bit = 1; bit != 0; bit <<= 1) {
        const char *name = (p->warnings & bit) != 0 ? mdot_warning_name(bit) : NULL;
        if (name == NULL) continue;
        put(d->comment, "%s%s", gap, name);
        gap = ",";
    }
}

/* Returns the number of data-parallel workers: GPUs, or groups of GPUs with one batch. A prediction requires GPUs for
 * one group. */
static int worker_count(const mdot_configuration *c)
{
    int64_t tensor = c->tensor_parallel > 0 ? c->tensor_parallel : 1;
    int64_t pipeline = c->pipeline_parallel > 0 ? c->pipeline_parallel : 1;
    return (int)(c->gpu_count / (tensor * pipeline));
}

/* Makes the training configuration for the places' GPUs. */
static mdot_configuration configure(const sl_request *request, const sl_gpus *gpus, const mdot_job_info *job)
{
    mdot_configuration c = request->training;
    if (c.batch == 0) c.batch = job->batch;
    if (!request->has_optimizer) c.optimizer = job->optimizer;
    c.gpu_count = (int)gpus->gpus;
    c.node_count = (uint32_t)gpus->nodes;
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
    if (gpus.is_none) return mdot_fail(err, MDOT_INVALID_ARGUMENT, "the request asks for 0 GPUs");
    if (submission->is_heterogeneous)
        return mdot_fail(err, MDOT_UNSUPPORTED, "a heterogeneous job's parts start and end together");
    if (gpus.is_mixed) return mdot_fail(err, MDOT_INVALID_ARGUMENT, "the request asks for GPUs of several types");
    if (gpus.gpus > 1 << 16) return mdot_fail(err, MDOT_INVALID_ARGUMENT, "the request asks for more than 65536 GPUs");
    size_t count = find_places(site, submission, &gpus, places);
    if (count == 0) return mdot_fail(err, MDOT_NOT_FOUND, "none of its partitions has such GPUs in mdot.conf");
    mdot_job_get_info(job, &info);
    if (info.operator_count > site->most_work / count)
        return mdot_fail(err, MDOT_OUT_OF_RANGE, "%zu operators in %zu places exceed MaxOperators=%zu",
                         info.operator_count, count, site->most_work);
    size_t work = info.operator_count * count;
    if (oracle->most_work > 0 && work > oracle->most_work)
        return mdot_fail(err, MDOT_OUT_OF_RANGE,
                         "%zu operators in %zu places take too long; MaxMilliseconds suffices for %zu here",
                         info.operator_count, count, oracle->most_work);
    for (size_t i = 0; i < count; i++) {
        configurations[i] = configure(request, &gpus, &info);
        configurations[i].gpu = places[i]->gpu;
    }
    mdot_status status = mdot_sweep(oracle->context, job, configurations, count, predictions, err);
    for (size_t i = 0; status == MDOT_OK && oracle->calibration != NULL && i < count; i++)
        status = mdot_calibration_apply_to_job(oracle->calibration, job, &configurations[i], &predictions[i], err);
    if (status != MDOT_OK) return status;

    bool chooses = site->choice != SL_CHOOSE_NOT && may_choose(submission, places, count);
    size_t best = count;
    for (size_t i = 0; chooses && i < count; i++) {
        if (!predictions[i].fits || !is_usable(places[i], submission, &gpus)) continue;
        if (best == count || rank(site, places[i], &predictions[i]) < rank(site, places[best], &predictions[best]))
            best = i;
    }
    bool is_chosen = best < count && count > 1;
    if (best == count) { /* the job may start anywhere, so the slowest place decides */
        best = 0;
        for (size_t i = 1; i < count; i++)
            if (predictions[i].step_ms > predictions[best].step_ms) best = i;
    }
    const mdot_configuration *c = &configurations[best];
    double samples = (double)c->batch * (c->accumulate > 0 ? c->accumulate : 1) * worker_count(c);
    double steps = sl_request_steps(request, samples);
    sl_decision d = {.place = *places[best],
                     .is_chosen = is_chosen,
                     .work = work,
                     .step_ms = predictions[best].step_ms,
                     .total_s = 1e-3 * steps * predictions[best].step_ms};
    const char *list = is_chosen ? d.place.partition : partitions_of(submission);
    uint32_t wanted =
        steps > 0 ? wanted_minutes(site, &predictions[best], steps) : minutes_by_history(site, submission->history);
    if (wanted > 0 && submission->own_minutes == 0) d.limit_minutes = sl_limit_minutes(site, submission, list, wanted);
    d.binding_minutes = sl_binding_minutes(submission, list, d.limit_minutes);
    int64_t gpu_count = occupied_gpus(submission, &gpus, places[best]);
    bool is_trusted = !sl_is_doubtful(predictions[best].warnings) && predictions[best].fits && gpus.is_requested;
    if (is_trusted && gpu_count > 0 && steps > 0 && site->priority_weight > 0)
        d.priority = sl_priority(site, d.total_s, d.binding_minutes, gpu_count, submission->understatement);
    d.has_priority = d.priority > 0;
    write_comment(&gpus, &predictions[best], steps, submission->history, &d);
    *out_decision = d;
    return MDOT_OK;
}
