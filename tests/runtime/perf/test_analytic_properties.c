/* test_analytic_properties.c — the analytic model on small networks under random configurations: time and memory keep
 * their properties. */
#include "runtime/job/configuration_table.h"
#include "runtime/job/job_model.h"
#include "runtime/perf/activation_memory.h"
#include "runtime/perf/analysis.h"
#include "runtime/perf/analysis_parts.h"
#include "runtime/perf/peak_memory.h"
#include "runtime/perf/resolved_configuration.h"
#include "runtime/perf/sharding.h"
#include "runtime/perf/step_time.h"
#include "tests/support/analytic_networks.h"
#include "tests/support/assertions.h"
#include "tests/support/predict_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static bool is_near(double a, double b) { return fabs(a - b) <= 1e-6 * fabs(a); }

static uint64_t random_state;

static uint32_t draw(uint32_t below)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % below;
}

/* Few options at a time, because most combinations are refused. Writes them to `text`. */
static mdot_configuration draw_configuration(char *text, size_t capacity)
{
    static const char *const gpus[] = {"A100", "T4", "H100", "B200", "V100", "RTX 4090"};
    mdot_configuration c = {.struct_size = sizeof c, .batch = 2 << draw(5), .gpu = gpus[draw(6)]};
    size_t used = (size_t)snprintf(text, capacity, "gpu=%s batch=%d", c.gpu, (int)c.batch);
    for (uint32_t left = 2 + draw(6); left > 0; left--) {
        const rt_option *o = &rt_options[draw(RT_OPTION_COUNT)];
        if (o->section == RT_SECTION_JOB || o->kind == RT_KIND_VERSION || o->kind == RT_KIND_GPU) continue;
        double value = o->kind == RT_KIND_COUNT ? 1u << draw(3)
                       : o->kind == RT_KIND_REAL
                           ? (o == &rt_options[RT_OPTION_power_limit] ? 60 + draw(200) : 1 + draw(50))
                           : draw((uint32_t)o->most + 1);
        if (o == &rt_options[RT_OPTION_gpu_count]) value = 1 << draw(4);
        rt_option_set(&c, o, value);
        if (used < capacity) used += (size_t)snprintf(text + used, capacity - used, " %s=%g", o->field, value);
    }
    return c;
}

static bool is_count(double value) { return isfinite(value) && value >= 0; }

static const char *broken_property_of_memory(const mdot_job *job, const rt_resolved_configuration *r)
{
    rt_memory m = rt_measure_memory(job, r);
    rt_reserved reserved = rt_reserve_memory(job, r, &m);
    rt_memory_interval within = rt_memory_within(job, &m);
    double peak = (double)rt_sum_memory(&m), sum = m.weights + m.gradients + m.optimizer + m.activations;
    if (!is_count(m.weights) || !is_count(m.gradients) || !is_count(m.optimizer) || !is_count(m.activations))
        return "parts of the memory are counts";
    if (fabs(peak - sum) > 1) return "the parts of the memory add up to the peak";
    if (m.pass_activations + m.half_weights > m.activations * (1 + 1e-9) + 1) return "activations include their parts";
    if (m.pass > peak + 1) return "the pass needs at most the peak";
    double reserved_sum = reserved.rounding + reserved.context + reserved.workspace + reserved.collectives;
    if (!is_near((double)rt_sum_reserved(&m, &reserved), peak + reserved_sum)) return "reserved memory adds up";
    if (reserved.collectives > 0 && r->configuration.c.gpu_count == 1) return "one GPU has no collectives";
    if ((double)within.lower_bytes > peak || (double)within.upper_bytes < peak) return "the interval has the peak";
    if ((double)within.lower_bytes + 1 < m.weights + m.optimizer) return "the interval has weights and state";
    if (rt_offloaded_bytes(job, r) > 0 && r->configuration.c.offload_activations == 0) return "offloading is an option";
    return NULL;
}

static const char *broken_property_of_time(const mdot_job *job, const rt_resolved_configuration *r)
{
    rt_roofline roofline = rt_roofline_of(job, r);
    rt_roofline_terms terms = rt_step_roofline_terms(job, r);
    const mdot_configuration *c = &r->configuration.c;
    double passes_ms = r->steps * (roofline.forward_ms + roofline.backward_ms), update_ms = roofline.optimizer_ms;
    if (!is_count(roofline.forward_ms) || !is_count(roofline.backward_ms) || !is_count(update_ms))
        return "times are counts";
    if (update_ms != rt_optimizer_ms(job, r, &r->shard)) return "the roofline has the update's time";
    if (terms.compute_ms > (passes_ms + update_ms) * (1 + 1e-9)) return "computation takes at most the roofline";
    if (terms.memory_ms > (passes_ms + update_ms) * (1 + 1e-9)) return "traffic takes at most the roofline";
    if (terms.masked_ms > terms.compute_ms) return "masked work is part of the computation";
    double exchange_ms = rt_communication_ms(job, r, 0), hidden_ms = rt_communication_ms(job, r, passes_ms);
    if ((c->gpu_count == 1 && exchange_ms != 0) || hidden_ms > exchange_ms) return "a pass hides exchanges";
    double host_ms = rt_host_memory_ms(job, r, 0, 0), other_ms = rt_host_memory_ms(job, r, passes_ms, passes_ms);
    bool offloads = c->offload != MDOT_OFFLOAD_NOTHING || c->offload_activations != 0 || c->servers > 0;
    if ((host_ms > 0 && !offloads) || other_ms > host_ms) return "a pass hides transfers";
    double step_ms = 3 * (terms.compute_ms + terms.memory_ms),
           slowdown = rt_power_slowdown(&r->configuration, &terms, step_ms);
    if (slowdown < 1 || (c->power_limit == 0 && slowdown != 1)) return "a power limit slows down";
    double limit = c->power_limit > 0 ? c->power_limit : r->configuration.gpu.watts;
    if (rt_average_watts(&r->configuration, &terms, step_ms * slowdown) > limit * (1 + 1e-6))
        return "the power limit holds";
    return NULL;
}

/* The sums over groups of equal operators equal those over operators. */
static const char *broken_property_of_operators(const mdot_job *job, const rt_resolved_configuration *r)
{
    rt_roofline roofline = rt_roofline_of(job, r);
    double forward_ms = 0, backward_ms = 0;
    for (size_t i = 0; i < job->info.operator_count; i++) {
        double of_phase[MDOT_PHASE_COUNT];
        rt_operator_roofline(job, i, r, of_phase);
        double part = r->shard.of[job->analysis->sharding.position[i]];
        forward_ms += part * of_phase[MDOT_PHASE_FORWARD];
        backward_ms += part * (of_phase[MDOT_PHASE_DATA_GRADIENT] + of_phase[MDOT_PHASE_WEIGHT_GRADIENT]);
    }
    bool equal = is_near(forward_ms, roofline.forward_ms) && is_near(backward_ms, roofline.backward_ms);
    return equal ? NULL : "operators add up to the roofline";
}

static void configurations_have_their_properties(void **state)
{
    (void)state;
    enum { CONFIGURATIONS = 48 };
    rt_gpu_names gpus = {0};
    for (int which = 0; which < ANALYTIC_NETWORKS; which++) {
        mdot_job *job = analytic_network(which);
        size_t left = CONFIGURATIONS;
        random_state = (uint64_t)which + 1;
        for (size_t tries = 0; left > 0 && tries < 100000; tries++) {
            char text[512];
            rt_configuration configuration;
            rt_resolved_configuration r;
            mdot_configuration c = draw_configuration(text, sizeof text);
            if (rt_configuration_read(&c, 0, &gpus, &configuration, NULL) != MDOT_OK) continue;
            if (rt_configuration_check(&configuration, job, NULL) != MDOT_OK) continue;
            rt_resolve(job, &configuration, &r);
            const char *broken = broken_property_of_memory(job, &r);
            if (broken == NULL) broken = broken_property_of_time(job, &r);
            if (broken == NULL) broken = broken_property_of_operators(job, &r);
            if (broken != NULL) fail_msg("%s, %s: not true that %s", analytic_names[which], text, broken);
            left--;
        }
        assert_int_equal(left, 0);
        mdot_job_destroy(job);
    }
}

/* At each tensor-parallel degree, operator activations add up to the GPU's. */
static void activations_of_operators_add_up(void **state)
{
    (void)state;
    for (int which = 0; which < ANALYTIC_NETWORKS; which++) {
        mdot_job *job = analytic_network(which);
        double *bytes = calloc(job->info.operator_count, sizeof *bytes);
        assert_non_null(bytes);
        for (int k = 0; k < RT_ACTIVATION_TYPES * 2 * RT_RECOMPUTATIONS; k++) {
            const rt_activation_case measured = {(rt_activation_type)(k / 2 % RT_ACTIVATION_TYPES),
                                                 k % 2 == 0 ? MDOT_ATTENTION_FLASH : MDOT_ATTENTION_EAGER,
                                                 (mdot_recompute)(k / 2 / RT_ACTIVATION_TYPES), MDOT_LOSS_WHOLE, false};
            const rt_activations *a = rt_activations_of(&job->analysis->activations, &measured);
            for (double tensor = 1; tensor <= 4; tensor *= 2) {
                double sum = 0;
                assert_true(rt_shard_activations(job, &job->analysis->sharding, job->analysis->totals.logits, &measured,
                                                 tensor, bytes));
                for (size_t i = 0; i < job->info.operator_count; i++) sum += bytes[i];
                double expected = a->whole + (a->all - a->whole) / tensor;
                if (tensor == 1 && !is_near(sum, expected))
                    fail_msg("%s: %g, not %g", analytic_names[which], sum, expected);
                if (sum > a->all * (1 + 1e-9)) fail_msg("%s: a shard has more than the job", analytic_names[which]);
            }
        }
        free(bytes);
        mdot_job_destroy(job);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(configurations_have_their_properties),
        cmocka_unit_test(activations_of_operators_add_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
