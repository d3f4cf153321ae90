/* sweep.h — the matrix of throughputs that policies over types of GPUs read, from one sweep of libmdot a kind of
 * job. */
#ifndef SC_SWEEP_H
#define SC_SWEEP_H

#include "simulator/core/cluster.h"

/* From job_type,job,batch,precision,layout,optimizer: what policies believe of how fast the workload's kinds run on the
 * cluster's types, which must be GPUs that mdot knows, at every width up to what the type has; a batch is that of one
 * GPU. How much slower they are on several nodes is what libmdot says of as few nodes as hold that width, but at least
 * two; optional columns say what joins GPUs, link (pcie or nvlink), and nodes, network_gbps. Where a job does not fit
 * the memory it is believed not to run, unless it fits nowhere. What is not known otherwise of a kind, its speeds or
 * its spreads, is as believed. Kinds of the table that the workload lacks are passed over. */
mdot_status sc_sweep_throughputs(const char *path, const char *predictor_path, const sc_cluster *cluster,
                                 sc_workload *workload, mdot_error *err);

#endif
