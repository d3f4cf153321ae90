/* memory_fixture.c — see memory_fixture.h. */
#include "tests/support/memory_fixture.h"

#include "runtime/perf/resolved_configuration.h"
#include "tests/support/predict_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

mdot_job_operator memory_operator(const char *type, double units, double parameters)
{
    mdot_job_operator op = {.struct_size = sizeof op, .type = type, .known = true, .parameters = parameters};
    op.per_sample[MDOT_PHASE_FORWARD] = (mdot_load){0, MEMORY_UNIT, units * MEMORY_UNIT};
    op.setting[MDOT_SETTING_INPUTS] = 1;
    return op;
}

mdot_job *memory_small_network(uint32_t block_count)
{
    static const uint32_t before[3] = {0, 1, 2};
    mdot_job_operator operators[4] = {memory_operator("LayerNormalization", 2, 24), memory_operator("Linear", 8, 600),
                                      memory_operator("Relu", 8, 0), memory_operator("Linear", 2, 400)};
    operators[0].setting[MDOT_SETTING_AXIS] = 1;
    for (int i = 1; i < 4; i++) {
        operators[i].inputs = &before[i - 1];
        operators[i].input_count = 1;
        operators[i].block = block_count == 0 ? 0 : block_count == 1 ? 1 : (uint32_t)(i + 1) / 2;
    }
    for (int i = 1; i < 4; i += 2)
        operators[i].setting[MDOT_SETTING_CHANNELS_IN] = operators[i].setting[MDOT_SETTING_CHANNELS_OUT] = 8;
    return predict_make_job(operators, 4);
}

rt_memory memory_measure(const mdot_job *job, mdot_configuration c)
{
    rt_configuration configuration = {.c = c};
    configuration.gpu.pcie_gbps = 31.5;
    mdot_error err = {0};
    if (rt_configuration_complete(&configuration, &err) != MDOT_OK) fail_msg("%s", err.message);
    if (rt_configuration_check(&configuration, job, &err) != MDOT_OK) fail_msg("%s", err.message);
    rt_resolved_configuration resolved;
    rt_resolve(job, &configuration, &resolved);
    return rt_measure_memory(job, &resolved);
}
