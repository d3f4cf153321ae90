/* sweep.h — the matrix of throughputs for policies over types of GPUs, from libmdot: one sweep per kind of job. */
#ifndef SC_SWEEP_H
#define SC_SWEEP_H

#include "simulator/core/cluster.h"

/* Reads a table job_type,job,batch,precision,layout,optimizer and predicts the speeds of the workload's kinds on the
 * cluster's types, as estimates for policies. The types must be GPUs that mdot knows. Every width up to the number of
 * GPUs of the type is predicted, and a batch is that of one GPU. The slowdown on several nodes is libmdot's, for the
 * smallest number of nodes that holds the width but at least two. Optional columns give the link between GPUs (link:
 * pcie or nvlink) and between nodes (network_gbps). If a job exceeds a GPU's memory it is estimated not to run there,
 * unless it fits nowhere. Speeds and spreads of a kind that are otherwise unknown are taken from the estimates. Kinds
 * of the table that the workload lacks are skipped. */
mdot_status sc_sweep_throughputs(const char *path, const char *predictor_path, const sc_cluster *cluster,
                                 sc_workload *workload, mdot_error *err);

#endif
