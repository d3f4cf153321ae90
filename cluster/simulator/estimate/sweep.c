/* sweep.c — two calls of mdot_sweep for each kind and batch: every type of GPU at every width, on one node and on
 * several. */
#include "simulator/estimate/estimators.h"
#include "simulator/input/input.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CONFIGURATIONS = SC_MAX_TYPES * SC_WIDTHS };

/* What becomes of the batch on more GPUs. */
typedef enum batch_rule { BATCH_PER_GPU, BATCH_TOTAL, BATCH_ADAPTED, BATCH_RULES } batch_rule;
static const char *const rule_names[BATCH_RULES] = {"per-gpu", "total", "adapted"};

enum { JOB_COLUMNS = 5, TYPE = JOB_COLUMNS, LINK, NETWORK, RULE, MAXIMUM };
static const char column_names[] = SC_JOB_NAMES ",job_type,link?,network_gbps?,batch_rule?,max_batch?";

/* The table's target. */
typedef struct target {
    mdot_context *context;
    const sc_cluster *cluster;
    sc_workload *workload;
    sc_loads loads;
} target;

/* A kind, its job, and the answers for every type and width, in this order. */
typedef struct sweep {
    mdot_context *context;
    const mdot_job *job;
    mdot_configuration base;
    const sc_cluster *cluster;
    batch_rule rule;
    double most_batch;
    mdot_prediction single_node[MAX_CONFIGURATIONS], multi_node[MAX_CONFIGURATIONS];
} sweep;

static bool is_measured(const sc_kind *kind)
{
    for (unsigned type = 0; type < SC_MAX_TYPES; type++)
        for (unsigned width = 0; width < SC_WIDTHS; width++)
            if (kind->speed[type][width] > 0) return true;
    return false;
}

/* Samples of a step on all GPUs. */
static double step_samples(const sweep *s, double batch, int gpus)
{
    return s->rule == BATCH_PER_GPU ? batch * gpus : batch;
}

/* Predicts all widths at a batch; nodes(widest node, width) returns each width's node count. A width with fewer samples
 * than GPUs does not fit. */
static mdot_status predict_widths(const sweep *s, double batch, uint32_t (*nodes)(int, int),
                                  mdot_prediction *predictions, mdot_error *err)
{
    mdot_configuration configurations[MAX_CONFIGURATIONS] = {0};
    size_t count = 0;
    for (unsigned type = 0; type < s->cluster->type_count; type++) {
        for (unsigned width = 0; width < SC_WIDTHS && 1 << width <= s->cluster->types[type].gpus; width++) {
            configurations[count] = s->base;
            configurations[count].batch = (int64_t)ceil(step_samples(s, batch, 1 << width) / (1 << width));
            configurations[count].gpu = s->cluster->types[type].name;
            configurations[count].gpu_count = 1 << width;
            configurations[count++].node_count = nodes(s->cluster->types[type].widest_node, 1 << width);
            predictions[count - 1] = (mdot_prediction)MDOT_INIT(mdot_prediction);
        }
    }
    mdot_status status = mdot_sweep(s->context, s->job, configurations, count, predictions, err);
    for (size_t i = 0; status == MDOT_OK && i < count; i++)
        predictions[i].fits &= step_samples(s, batch, configurations[i].gpu_count) >= configurations[i].gpu_count;
    return status;
}

static uint32_t one_node(int widest, int gpus) { return 1; }

/* Returns the smallest number of nodes, at least two, with equal GPUs on each. */
static uint32_t several_nodes(int widest, int gpus)
{
    uint32_t nodes = gpus > 1 ? 2 : 1;
    while ((uint32_t)gpus > nodes * (uint32_t)widest) nodes *= 2;
    return nodes;
}

/* Predicts one node and several at a batch. *out_fits: a width fits the memory of its GPUs. */
static mdot_status predict_batch(sweep *s, double batch, bool *out_fits, mdot_error *err)
{
    size_t i = 0;
    mdot_status status = predict_widths(s, batch, one_node, s->single_node, err);
    if (status == MDOT_OK) status = predict_widths(s, batch, several_nodes, s->multi_node, err);
    *out_fits = false;
    for (unsigned type = 0; status == MDOT_OK && type < s->cluster->type_count; type++)
        for (unsigned width = 0; width < SC_WIDTHS && 1 << width <= s->cluster->types[type].gpus; width++)
            *out_fits |= s->single_node[i++].fits;
    return status;
}

/* Speeds by width, at a batch per GPU or in total. Measured speeds that count steps then count samples, too. */
static mdot_status sweep_widths(sweep *s, sc_kind *kind, mdot_error *err)
{
    size_t i = 0;
    bool is_known = is_measured(kind), counts_steps = kind->step_samples[0] == 0, fits_somewhere;
    BS_TRY(predict_batch(s, (double)s->base.batch, &fits_somewhere, err));
    kind->has_estimate = true;
    for (unsigned width = 0; width < SC_WIDTHS && counts_steps; width++) {
        kind->step_samples[width] = step_samples(s, (double)s->base.batch, 1 << width);
        for (unsigned type = 0; type < SC_MAX_TYPES; type++) kind->speed[type][width] *= kind->step_samples[width];
    }
    for (unsigned type = 0; type < s->cluster->type_count; type++) {
        for (unsigned width = 0; width < SC_WIDTHS && 1 << width <= s->cluster->types[type].gpus; width++, i++) {
            const mdot_prediction *single = &s->single_node[i], *several = &s->multi_node[i];
            double samples = step_samples(s, (double)s->base.batch, 1 << width);
            kind->estimated_speed[type][width] = single->fits || !fits_somewhere ? 1e3 * samples / single->step_ms : 0;
            kind->estimated_spread[type][width] = several->step_ms / single->step_ms;
            if (!is_known) kind->speed[type][width] = kind->estimated_speed[type][width];
            if (kind->spread[type][width] == 0) kind->spread[type][width] = kind->estimated_spread[type][width];
        }
    }
    return MDOT_OK;
}

/* Adds the step times at one batch, on one node up to its width and on several. */
static mdot_status add_rows(const sweep *s, double batch, bool fits_somewhere, sc_scaling *scaling, mdot_error *err)
{
    size_t i = 0;
    mdot_status status = MDOT_OK;
    for (unsigned type = 0; type < s->cluster->type_count; type++) {
        int widest = s->cluster->types[type].widest_node;
        for (int gpus = 1; gpus < 1 << SC_WIDTHS && gpus <= s->cluster->types[type].gpus; gpus *= 2, i++) {
            if (gpus > batch || (!s->single_node[i].fits && fits_somewhere)) continue;
            sc_step_row one = {.placement = {.nodes = 1, .gpus = gpus}, .samples = ceil(batch / gpus)}, more = one;
            one.step_s = 1e-3 * s->single_node[i].step_ms;
            more.placement.nodes = (int)several_nodes(widest, gpus);
            more.step_s = 1e-3 * s->multi_node[i].step_ms;
            if (gpus <= widest) status = sc_step_table_add(&scaling->tables[type], one, err);
            if (status == MDOT_OK && gpus > 1) status = sc_step_table_add(&scaling->tables[type], more, err);
            if (status != MDOT_OK) return status;
        }
    }
    return MDOT_OK;
}

/* Step times at octaves of the batch, from which adaptive policies choose. Measured step times stay. */
static mdot_status sweep_batches(sweep *s, sc_kind *kind, mdot_error *err)
{
    if (kind->scaling != NULL) return MDOT_OK;
    sc_scaling *scaling = kind->scaling = calloc(1, sizeof *scaling);
    if (scaling == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    *scaling =
        (sc_scaling){.least_batch = (double)s->base.batch, .most_batch = (double)s->base.batch, .is_predicted = true};
    mdot_status status = MDOT_OK;
    for (double batch = scaling->least_batch; status == MDOT_OK && batch <= s->most_batch; batch *= 2) {
        bool fits;
        status = predict_batch(s, batch, &fits, err);
        if (status == MDOT_OK && !fits && batch > scaling->least_batch) break;
        if (status == MDOT_OK) status = add_rows(s, batch, fits, scaling, err);
        scaling->most_batch = batch;
    }
    for (unsigned type = 0; type < SC_MAX_TYPES; type++) {
        sc_step_table *table = &scaling->tables[type];
        scaling->source[type] = table->row_count > 0 ? type : SC_MAX_TYPES;
        if (table->row_count == 0 || status != MDOT_OK) continue;
        sc_step_table_sort(table);
        status = sc_fit_steps(table, err); /* for placements without a prediction */
    }
    return status;
}

static mdot_status read_rule(const bs_csv *csv, const int *at, sweep *s, mdot_error *err)
{
    const char *name = at[RULE] != BS_CSV_ABSENT ? csv->field[at[RULE]] : "";
    int maximum, least = (int)s->base.batch;
    while (s->rule < BATCH_RULES && *name != '\0' && strcmp(name, rule_names[s->rule]) != 0) s->rule++;
    if (s->rule == BATCH_RULES)
        return bs_csv_fail(csv, err, MDOT_MALFORMED, "batch_rule is \"%.40s\", but must be per-gpu, total or adapted",
                           name);
    if (s->rule != BATCH_ADAPTED) return MDOT_OK;
    if (at[MAXIMUM] == BS_CSV_ABSENT)
        return bs_csv_fail(csv, err, MDOT_MALFORMED, "batch_rule is adapted, which requires the column max_batch");
    BS_TRY(bs_csv_integer(csv, at[MAXIMUM], least, 1 << 24, &maximum, err));
    s->most_batch = maximum;
    return MDOT_OK;
}

static mdot_status read_links(const bs_csv *csv, const int *at, mdot_configuration *out, mdot_error *err)
{
    const char *link = at[LINK] != BS_CSV_ABSENT ? csv->field[at[LINK]] : "";
    if (strcmp(link, "pcie") == 0)
        out->link = MDOT_LINK_PCIE;
    else if (strcmp(link, "nvlink") == 0)
        out->link = MDOT_LINK_NVLINK;
    else if (*link != '\0')
        return bs_csv_fail(csv, err, MDOT_MALFORMED, "link is \"%.40s\"", link);
    return sc_csv_optional(csv, at[NETWORK], 1e-3, 1e6, &out->network_gbps, err);
}

static mdot_status sweep_row(const bs_csv *csv, const int *at, void *context, mdot_error *err)
{
    const target *t = context;
    mdot_job *job;
    mdot_error reason = {0};
    sweep s = {.context = t->context, .cluster = t->cluster};
    sc_kind *kind = sc_workload_find_kind(t->workload, csv->field[at[TYPE]], SIZE_MAX);
    if (kind == NULL) return MDOT_OK;
    BS_TRY(sc_job_row_read(csv, at, &job, &s.base, err));
    s.job = job;
    mdot_status status = read_links(csv, at, &s.base, err);
    if (status == MDOT_OK) status = read_rule(csv, at, &s, err);
    if (status == MDOT_OK &&
        (s.rule == BATCH_ADAPTED ? sweep_batches(&s, kind, &reason) : sweep_widths(&s, kind, &reason)) != MDOT_OK)
        status = bs_csv_fail(csv, err, MDOT_MALFORMED, "%s", reason.message);
    if (status == MDOT_OK && t->loads.items != NULL)
        status = sc_loads_add(&t->loads, t->context, job, s.base, t->cluster, (size_t)(kind - t->workload->kinds), err);
    mdot_job_destroy(job);
    return status;
}

mdot_status sc_sweep_throughputs(const char *path, const char *predictor_path, const char *interference_path,
                                 const sc_cluster *cluster, sc_workload *workload, mdot_error *err)
{
    mdot_predictor *predictor = NULL;
    target t = {.cluster = cluster, .workload = workload};
    mdot_status status = mdot_predictor_open(predictor_path, NULL, &predictor, err);
    if (status == MDOT_OK) status = mdot_context_create(predictor, &t.context, err);
    if (status == MDOT_OK && interference_path != NULL) status = sc_loads_create(workload, &t.loads, err);
    if (status == MDOT_OK) status = sc_read_rows(path, column_names, sweep_row, &t, err);
    if (status == MDOT_OK && interference_path != NULL)
        status = sc_predict_pairs(interference_path, &t.loads, cluster, workload, err);
    free(t.loads.items);
    mdot_context_destroy(t.context);
    mdot_predictor_close(predictor);
    return status;
}
