/* pair_slowdowns.c — predicted speeds of kinds that share GPUs, from each kind's load alone. */
#include "simulator/estimate/estimators.h"

#include <stdlib.h>

/* The loads of all kinds and types, in this order; step_ms is 0 where a kind is unknown. */
static mdot_gpu_load *load_at(const sc_loads *loads, size_t kind, unsigned type)
{
    return &loads->items[kind * SC_MAX_TYPES + type];
}

mdot_status sc_loads_create(const sc_workload *workload, sc_loads *out_loads, mdot_error *err)
{
    out_loads->items = calloc(workload->kind_count * SC_MAX_TYPES + 1, sizeof *out_loads->items);
    return out_loads->items != NULL ? MDOT_OK : mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
}

mdot_status sc_loads_add(const sc_loads *loads, mdot_context *context, const mdot_job *job, mdot_configuration alone,
                         const sc_cluster *cluster, size_t kind, mdot_error *err)
{
    for (unsigned type = 0; type < cluster->type_count; type++) {
        mdot_gpu_load *load = load_at(loads, kind, type);
        load->struct_size = sizeof *load;
        alone.gpu = cluster->types[type].name;
        BS_TRY(mdot_gpu_load_of(context, job, &alone, load, err));
    }
    return MDOT_OK;
}

/* Speeds of one kind beside another, at every width. A pair that exceeds the memory keeps 0. */
static mdot_status set_speeds(mdot_context *context, const sc_loads *loads, sc_workload *w, size_t a, size_t b,
                              unsigned type, mdot_error *err)
{
    const mdot_gpu_load *own = load_at(loads, a, type), *partner = load_at(loads, b, type);
    mdot_beside answer = MDOT_INIT(mdot_beside);
    if (own->step_ms == 0 || partner->step_ms == 0) return MDOT_OK;
    BS_TRY(mdot_predict_beside(context, own, partner, &answer, err));
    for (unsigned width = 0; width < SC_WIDTHS; width++) {
        double samples = w->kinds[a].step_samples[width], alone = w->kinds[a].speed[type][width];
        double speed = answer.fits ? alone / (samples > 0 ? samples : 1) / answer.slowdown : 0;
        BS_TRY(sc_workload_set_pair_speed(w, (uint32_t)a, (uint32_t)b, type, width, speed, err));
    }
    return MDOT_OK;
}

mdot_status sc_predict_pairs(const char *path, const sc_loads *loads, const sc_cluster *cluster, sc_workload *workload,
                             mdot_error *err)
{
    mdot_predictor *predictor = NULL;
    mdot_context *context = NULL;
    mdot_status status = mdot_predictor_open(path, NULL, &predictor, err);
    if (status == MDOT_OK) status = mdot_context_create(predictor, &context, err);
    for (size_t a = 0; a < workload->kind_count; a++)
        for (size_t b = 0; b < workload->kind_count; b++)
            for (unsigned type = 0; status == MDOT_OK && type < cluster->type_count; type++)
                status = set_speeds(context, loads, workload, a, b, type, err);
    mdot_context_destroy(context);
    mdot_predictor_close(predictor);
    return status;
}
