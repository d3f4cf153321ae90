/* sweep.c — two calls of mdot_sweep for each kind: every type of GPU at every width, on one node and on several. */
#include "simulator/estimate/estimators.h"

#include <string.h>

enum { MAX_CONFIGURATIONS = SC_MAX_TYPES * SC_WIDTHS };

typedef struct sweep_columns {
    sc_job_columns job;
    int type, link, network; /* link and network may be absent */
} sweep_columns;

static bool is_measured(const sc_kind *kind)
{
    for (unsigned type = 0; type < SC_MAX_TYPES; type++)
        for (unsigned width = 0; width < SC_WIDTHS; width++)
            if (kind->speed[type][width] > 0) return true;
    return false;
}

/* Predicts all widths on each type, in this order; nodes(widest node, width) returns each width's node count. */
static mdot_status predict_widths(mdot_context *context, const mdot_job *job, const mdot_configuration *base,
                                  const sc_cluster *cluster, uint32_t (*nodes)(int, int), mdot_prediction *predictions,
                                  mdot_error *err)
{
    mdot_configuration configurations[MAX_CONFIGURATIONS];
    size_t count = 0;
    for (unsigned type = 0; type < cluster->type_count; type++) {
        for (unsigned width = 0; width < SC_WIDTHS && 1 << width <= cluster->types[type].gpus; width++) {
            configurations[count] = *base;
            configurations[count].gpu = cluster->types[type].name;
            configurations[count].gpu_count = 1 << width;
            configurations[count++].node_count = nodes(sc_cluster_widest_node(cluster, type), 1 << width);
            predictions[count - 1] = (mdot_prediction)MDOT_INIT(mdot_prediction);
        }
    }
    return mdot_sweep(context, job, configurations, count, predictions, err);
}

static uint32_t one_node(int widest, int gpus)
{
    (void)widest, (void)gpus;
    return 1;
}

/* Returns the smallest number of nodes, at least two, with equal GPUs on each. */
static uint32_t several_nodes(int widest, int gpus)
{
    uint32_t nodes = gpus > 1 ? 2 : 1;
    while ((uint32_t)gpus > nodes * (uint32_t)widest) nodes *= 2;
    return nodes;
}

static mdot_status sweep_kind(mdot_context *context, const mdot_job *job, const mdot_configuration *base,
                              const sc_cluster *cluster, sc_kind *kind, mdot_error *err)
{
    mdot_prediction single_node[MAX_CONFIGURATIONS], multi_node[MAX_CONFIGURATIONS];
    size_t i = 0;
    mdot_status status = predict_widths(context, job, base, cluster, one_node, single_node, err);
    if (status == MDOT_OK) status = predict_widths(context, job, base, cluster, several_nodes, multi_node, err);
    if (status != MDOT_OK) return status;
    bool is_known = is_measured(kind), fits_somewhere = false;
    for (unsigned type = 0; type < cluster->type_count; type++)
        for (unsigned width = 0; width < SC_WIDTHS && 1 << width <= cluster->types[type].gpus; width++)
            fits_somewhere |= single_node[i++].fits;
    i = 0;
    kind->has_estimate = true;
    for (unsigned type = 0; type < cluster->type_count; type++) {
        for (unsigned width = 0; width < SC_WIDTHS && 1 << width <= cluster->types[type].gpus; width++, i++) {
            kind->estimated_speed[type][width] =
                single_node[i].fits || !fits_somewhere ? 1e3 / single_node[i].step_ms : 0;
            kind->estimated_spread[type][width] = multi_node[i].step_ms / single_node[i].step_ms;
            if (!is_known) kind->speed[type][width] = kind->estimated_speed[type][width];
            if (kind->spread[type][width] == 0) kind->spread[type][width] = kind->estimated_spread[type][width];
        }
    }
    return MDOT_OK;
}

static mdot_status read_links(const bs_csv *csv, const sweep_columns *fields, mdot_configuration *out, mdot_error *err)
{
    const char *link = fields->link != BS_CSV_ABSENT ? csv->field[fields->link] : "";
    if (strcmp(link, "pcie") == 0)
        out->link = MDOT_LINK_PCIE;
    else if (strcmp(link, "nvlink") == 0)
        out->link = MDOT_LINK_NVLINK;
    else if (*link != '\0')
        return bs_csv_fail(csv, err, MDOT_MALFORMED, "link is \"%.40s\"", link);
    if (fields->network == BS_CSV_ABSENT || csv->field[fields->network][0] == '\0') return MDOT_OK;
    return bs_csv_number(csv, fields->network, 1e-3, 1e6, &out->network_gbps, err);
}

static mdot_status sweep_row(mdot_context *context, const bs_csv *csv, const sweep_columns *fields,
                             const sc_cluster *cluster, sc_kind *kind, mdot_error *err)
{
    mdot_job *job;
    mdot_configuration base;
    mdot_error reason = {0};
    mdot_status status = sc_job_row_read(csv, &fields->job, &job, &base, err);
    if (status != MDOT_OK) return status;
    status = read_links(csv, fields, &base, err);
    if (status == MDOT_OK && sweep_kind(context, job, &base, cluster, kind, &reason) != MDOT_OK)
        status = bs_csv_fail(csv, err, MDOT_MALFORMED, "%s", reason.message);
    mdot_job_destroy(job);
    return status;
}

static mdot_status sweep_table(mdot_context *context, const char *path, const sc_cluster *cluster,
                               sc_workload *workload, mdot_error *err)
{
    bs_csv csv;
    sweep_columns fields;
    mdot_status status = bs_csv_open(path, UINT64_MAX, NULL, &csv, err);
    if (status != MDOT_OK) return status;
    status = bs_csv_need(&csv, "job_type", &fields.type, err);
    if (status == MDOT_OK) status = sc_job_columns_find(&csv, &fields.job, err);
    fields.link = bs_csv_find(&csv, "link");
    fields.network = bs_csv_find(&csv, "network_gbps");
    for (bool is_row = true; status == MDOT_OK;) {
        status = bs_csv_next(&csv, &is_row, err);
        if (status != MDOT_OK || !is_row) break;
        sc_kind *kind = sc_workload_find_kind(workload, csv.field[fields.type], SIZE_MAX);
        if (kind != NULL) status = sweep_row(context, &csv, &fields, cluster, kind, err);
    }
    bs_csv_close(&csv);
    return status;
}

mdot_status sc_sweep_throughputs(const char *path, const char *predictor_path, const sc_cluster *cluster,
                                 sc_workload *workload, mdot_error *err)
{
    mdot_predictor *predictor = NULL;
    mdot_context *context = NULL;
    mdot_status status = mdot_predictor_open(predictor_path, NULL, &predictor, err);
    if (status == MDOT_OK) status = mdot_context_create(predictor, &context, err);
    if (status == MDOT_OK) status = sweep_table(context, path, cluster, workload, err);
    mdot_context_destroy(context);
    mdot_predictor_close(predictor);
    return status;
}
