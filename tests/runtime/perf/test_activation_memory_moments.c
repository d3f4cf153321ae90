/* test_activation_memory_moments.c — the moments of chains of matmuls, compared with a search of all moments. */
#include "runtime/perf/activation_memory.h"
#include "runtime/perf/analysis.h"
#include "tests/support/predict_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { UNIT = 4096, MOST = 16, CHAINS = 100 };

static uint32_t draw(uint32_t below)
{
    static uint64_t random_state = 5;
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % below;
}

/* Results of these units and parameters. The first matmul reads samples of one unit. */
static mdot_job *chain(size_t count, const double *units, const double *parameters)
{
    static uint32_t before[MOST];
    mdot_job_operator operators[MOST];
    for (size_t i = 0; i < count; i++) {
        before[i] = i > 0 ? (uint32_t)i - 1 : 0;
        operators[i] = (mdot_job_operator){.struct_size = sizeof operators[i],
                                           .type = "Linear",
                                           .known = true,
                                           .parameters = parameters[i],
                                           .inputs = &before[i],
                                           .input_count = i > 0};
        operators[i].per_sample[MDOT_PHASE_FORWARD] = (mdot_load){0, UNIT, units[i] * UNIT};
        operators[i].setting[MDOT_SETTING_INPUTS] = 1;
    }
    return predict_make_job(operators, count);
}

/* The largest sum of a moment's bytes and `weight` times its gradients. The backward operation k has the samples, the
 * results before k, the gradient of result k and that of the one before it. */
static double search(size_t count, const double *units, const double *parameters, double weight)
{
    double saved = 1, all = 0, largest = 0, gradients = 0;
    for (size_t i = 0; i < count; i++) {
        saved += units[i];
        all += parameters[i];
    }
    for (size_t k = count; k-- > 0;) {
        gradients += parameters[k];
        if (k + 1 == count) largest = saved; /* the end of the forward pass has no gradients */
        saved -= units[k];
        double bytes = saved + units[k] + (k > 0 ? units[k - 1] : 0);
        largest = fmax(largest, bytes + weight * gradients / all);
    }
    return largest;
}

static double largest_of(const rt_activations *a, double weight)
{
    double largest = 0;
    for (size_t i = 0; i < a->moment_count; i++)
        largest = fmax(largest, a->moments[i].all / UNIT + weight * a->moments[i].gradients);
    return largest;
}

/* Up to seven matmuls have at most eight moments, all of which are kept. Of more, the peak and the last one are, and no
 * moment has more than there is. */
static void moments_have_the_largest_sum_at_any_batch(void **state)
{
    (void)state;
    size_t full = 0;
    for (int i = 0; i < CHAINS; i++) {
        double units[MOST], parameters[MOST];
        size_t count = 1 + (size_t)i % MOST;
        for (size_t k = 0; k < count; k++) {
            units[k] = i < CHAINS / 2 ? 1 + draw(20) : (double)(count - k); /* at random, or falling */
            parameters[k] = i < CHAINS / 2 ? 1 + draw(20) : 1;
        }
        mdot_job *job = chain(count, units, parameters);
        const rt_activations *a = &job->analysis->activations.of[RT_ACTIVATION_FP32][MDOT_ATTENTION_FLASH][0];
        assert_in_range(a->moment_count, 1, RT_ACTIVATION_MOMENTS);
        full += a->moment_count == RT_ACTIVATION_MOMENTS;
        assert_true(a->all == search(count, units, parameters, 0) * UNIT && a->all == a->moments[0].all);
        assert_true(a->moments[a->moment_count - 1].gradients == 1);
        for (double weight = 0.125; weight < 1000; weight *= 1.5) {
            double want = search(count, units, parameters, weight), got = largest_of(a, weight);
            if (got > want * (1 + 1e-12)) fail_msg("chain %d: %g, more than %g", i, got, want);
            if (count < RT_ACTIVATION_MOMENTS && got < want * (1 - 1e-12))
                fail_msg("chain %d: %g, not %g", i, got, want);
            if (got < want * 0.9) fail_msg("chain %d: %g is far below %g", i, got, want);
        }
        mdot_job_destroy(job);
    }
    assert_true(full > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moments_have_the_largest_sum_at_any_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
