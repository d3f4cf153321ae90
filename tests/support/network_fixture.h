/* network_fixture.h — networks with a few operators, written by tests operator by operator. */
#pragma once

#include "mdot/mdotjob.h"

enum { NETWORK_MAX_OPERATORS = 136, NETWORK_MAX_INPUTS = 4, NETWORK_UNIT = 4096 };

/* The operators point into the network, which therefore stays where it is. Begin with {0}. */
typedef struct network {
    mdot_job_operator operators[NETWORK_MAX_OPERATORS];
    uint32_t inputs[NETWORK_MAX_OPERATORS][NETWORK_MAX_INPUTS];
    size_t count;
} network;

/* Adds an operator with 1000 result bytes per sample, and returns it for changes. `inputs` is a list of operators, for
 * example "0,3". */
mdot_job_operator *network_add(network *n, const char *type, double parameters, const char *inputs);
/* The same with `units` results per sample, NETWORK_UNIT bytes each. An operator without inputs reads samples of one
 * unit. */
mdot_job_operator *network_add_units(network *n, const char *type, double units, double parameters, const char *inputs);
/* A Linear with a weight of [in, out]. */
mdot_job_operator *network_add_matmul(network *n, int64_t in, int64_t out, const char *inputs);
/* A LayerNormalization over 64 channels. */
void network_add_norm(network *n, const char *inputs);
