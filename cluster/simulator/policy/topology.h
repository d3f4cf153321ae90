/* topology.h — nodes for jobs by topology, on a cluster of one type of GPUs, as Slurm's topology/tree and
 * topology/block choose them: the smallest part of the cluster that holds a job, and among equals the one with the
 * fewest free GPUs.
 */
#ifndef SC_TOPOLOGY_H
#define SC_TOPOLOGY_H

#include "simulator/core/policy.h"

typedef struct sc_topology {
    int *domain_free, *rack_free; /* scratch: free GPUs of each */
} sc_topology;

mdot_status sc_topology_create(const sc_cluster *cluster, sc_topology *out_topology, mdot_error *err);
void sc_topology_free(sc_topology *topology);

/* Grants the job GPUs: of one node if one has enough, else of one domain, else of one rack, else of the cluster. The
 * plan must have enough free GPUs, and the nodes of all its grants so far must be known. */
void sc_topology_run(sc_topology *topology, const sc_view *view, sc_plan *plan, uint32_t job);

#endif
