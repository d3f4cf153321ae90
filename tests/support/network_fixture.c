/* network_fixture.c — see network_fixture.h. */
#include "tests/support/network_fixture.h"

#include <stdlib.h>

mdot_job_operator *network_add(network *n, const char *type, double parameters, const char *inputs)
{
    mdot_job_operator *op = &n->operators[n->count];
    *op = (mdot_job_operator){.struct_size = sizeof *op, .type = type, .known = true, .parameters = parameters};
    op->inputs = n->inputs[n->count];
    op->per_sample[MDOT_PHASE_FORWARD].bytes_written = 1000;
    for (const char *at = inputs; *at != '\0'; at += *at == ',') {
        char *end;
        n->inputs[n->count][op->input_count++] = (uint32_t)strtoul(at, &end, 10);
        at = end;
    }
    n->count++;
    return op;
}

mdot_job_operator *network_add_units(network *n, const char *type, double units, double parameters, const char *inputs)
{
    mdot_job_operator *op = network_add(n, type, parameters, inputs);
    op->per_sample[MDOT_PHASE_FORWARD].bytes_written = units * NETWORK_UNIT;
    op->setting[MDOT_SETTING_INPUTS] = op->input_count > 0 ? (int64_t)op->input_count : 1;
    if (op->input_count == 0) op->per_sample[MDOT_PHASE_FORWARD].bytes_read = NETWORK_UNIT;
    return op;
}

mdot_job_operator *network_add_matmul(network *n, int64_t in, int64_t out, const char *inputs)
{
    mdot_job_operator *op = network_add(n, "Linear", (double)(in * out), inputs);
    op->setting[MDOT_SETTING_CHANNELS_IN] = in;
    op->setting[MDOT_SETTING_CHANNELS_OUT] = out;
    return op;
}

void network_add_norm(network *n, const char *inputs)
{
    mdot_job_operator *op = network_add(n, "LayerNormalization", 2, inputs);
    op->setting[MDOT_SETTING_AXIS] = 1;
    op->setting[MDOT_SETTING_EXTENT] = 64;
}
