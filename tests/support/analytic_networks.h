/* analytic_networks.h — eight small networks for tests of the analytic model: language models (plain, with a tied head,
 * with a sparse table, adapted by LoRA), image networks (plain, with recomputed blocks), a mixture of experts, and a
 * network without blocks. */
#pragma once

#include "mdot/mdot.h"

enum { ANALYTIC_NETWORKS = 8 };
extern const char *const analytic_names[ANALYTIC_NETWORKS];
/* The caller destroys the job. */
mdot_job *analytic_network(int which);
