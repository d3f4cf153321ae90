/* slices.c — GPUs as nodes of slices, for jobs with fractions of a GPU. */
#include "simulator/input/input.h"

#include <math.h>
#include <stdio.h>

static mdot_status add_gpus(const sc_cluster *cluster, const sc_node *node, int slices, sc_cluster *sliced,
                            mdot_error *err)
{
    mdot_status status = MDOT_OK;
    for (int gpu = 0; status == MDOT_OK && gpu < node->gpus; gpu++) {
        char name[300];
        snprintf(name, sizeof name, "%.255s.%d", node->name, gpu);
        status = sc_cluster_add_node(sliced, name, cluster->types[node->type].name, slices, err);
        if (status == MDOT_OK) status = sc_cluster_locate(sliced, node->domain, node->rack, err);
    }
    return status;
}

mdot_status sc_slice_gpus(int slices, sc_cluster *cluster, sc_workload *workload, mdot_error *err)
{
    sc_cluster sliced = {0};
    mdot_status status = MDOT_OK;
    for (size_t i = 0; status == MDOT_OK && i < cluster->node_count; i++)
        status = add_gpus(cluster, &cluster->nodes[i], slices, &sliced, err);
    for (unsigned type = 0; status == MDOT_OK && type < cluster->type_count; type++) {
        sliced.types[type].watts = cluster->types[type].watts / slices;
        sliced.types[type].idle_watts = cluster->types[type].idle_watts / slices;
        sliced.types[type].price = cluster->types[type].price / slices;
    }
    sliced.cpus = cluster->cpus;
    sliced.memory_gb = cluster->memory_gb;
    sliced.power_w = cluster->power_w;
    for (size_t i = 0; status == MDOT_OK && i < workload->job_count; i++) {
        sc_job *job = &workload->jobs[i];
        if (job->kind != SC_NONE || job->least_gpus > 0)
            status =
                mdot_fail(err, MDOT_INVALID_ARGUMENT,
                          "--slices: job %s has a job_type or bounds, whose speeds are those of whole GPUs", job->id);
        job->gpus = (int)fmax(1, ceil((job->fraction > 0 ? job->fraction : job->gpus) * slices - 1e-9));
    }
    sc_cluster_free(status == MDOT_OK ? cluster : &sliced);
    if (status == MDOT_OK) *cluster = sliced;
    return status;
}
