/* test_calibration_prior.c — the prior covariance of two steps: symmetric, 1 for a step with itself, and smaller by a
 * factor for each property in which they differ. */
#include "runtime/predict/calibration.h"
#include "tests/support/assertions.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { TRIALS = 400, PROPERTIES = 8 };

static uint64_t random_state = 52;

static uint64_t below(uint64_t limit)
{
    random_state = random_state * 6364136223846793005 + 1442695040888963407;
    return (random_state >> 33) % limit;
}

static const float shares[3][RT_WORK_CLASSES] = {{1}, {.9f, .1f}, {.5f, .2f, .3f}};

static rt_step random_step(void)
{
    uint32_t job = (uint32_t)below(3);
    return (rt_step){.job = job,
                     .share = shares[job],
                     .precision = (uint32_t)below(6),
                     .layout = (uint32_t)below(2),
                     .torch = 100 + (uint32_t)below(5),
                     .gpu_count = 1U << below(4),
                     .mode = (uint32_t)below(2),
                     .others = below(4),
                     .batch = (double)(1 + below(64)),
                     .is_new_gpu = below(2),
                     .host_share = (double)below(5) / 4,
                     .deviation = {.1, .2}};
}

/* Changes one property of a step; the precision and the GPU count stay in their class. */
static rt_step changed(rt_step s, int property)
{
    switch (property) {
    case 0: s.layout ^= 1; break;
    case 1: s.torch += 7; break;
    case 2: s.others += 9; break;
    case 3: s.gpu_count = s.gpu_count == 1 ? 1 : s.gpu_count * 2; break;
    case 4: s.precision = s.precision == MDOT_PRECISION_FP32 ? MDOT_PRECISION_TF32 : MDOT_PRECISION_FP32; break;
    case 5: s.host_share = s.host_share > .5 ? s.host_share - .25 : s.host_share + .25; break;
    case 6: s.batch *= 2; break;
    default: s.mode ^= 1; break;
    }
    return s;
}

/* A step in fp32 or tf32, so that changing the precision keeps the class. */
static rt_step full_step(void)
{
    rt_step s = random_step();
    s.precision = below(2) ? MDOT_PRECISION_FP32 : MDOT_PRECISION_TF32;
    return s;
}

/* Any two steps, in either order. */
static void covariances_are_symmetric_and_normal(void **state)
{
    (void)state;
    for (int trial = 0; trial < TRIALS; trial++) {
        const rt_step a = random_step(), b = random_step();
        rt_quantity q = trial % 2 ? RT_QUANTITY_MEMORY : RT_QUANTITY_TIME;
        double own[RT_TERMS], forth[RT_TERMS], back[RT_TERMS], scaled[RT_TERMS], sum = 0;
        assert_within(rt_common_terms(&a, &a, q, 1, own), 1, 1e-9);
        double common = rt_common_terms(&a, &b, q, 1, forth);
        rt_common_terms(&b, &a, q, 1, back);
        double more = rt_common_terms(&a, &b, q, 3, scaled);
        for (int t = 0; t < RT_TERMS; t++) {
            assert_within(forth[t], back[t], 1e-12);
            assert_compare(forth[t], >=, 0);
            assert_compare(own[t], >=, 0);
            /* `general` scales what all jobs share */
            assert_within(scaled[t], (t < RT_TERM_JOB ? 3 : 1) * forth[t], 1e-12);
            sum += forth[t];
        }
        assert_within(common, sum, 1e-12);
        assert_compare(common, <=, 1 + 1e-9);
        assert_compare(more, >=, common);
        /* terms of a host, of kernels, of precisions and of several GPUs need both steps to have them */
        assert_int_equal(forth[RT_TERM_HOST] > 0, a.host_share > 0 && b.host_share > 0);
        assert_int_equal(forth[RT_TERM_KERNELS] > 0, a.host_share < 1 && b.host_share < 1);
        assert_int_equal(forth[RT_TERM_SEVERAL] > 0, a.gpu_count > 1 && b.gpu_count > 1);
        assert_int_equal(forth[RT_TERM_PRECISION] > 0,
                         rt_precision_class_of(a.precision) == rt_precision_class_of(b.precision));
        assert_within(forth[RT_TERM_SITE] / (forth[RT_TERM_SITE] + forth[RT_TERM_GPU]), rt_site_part(), 1e-9);
        assert_compare(rt_site_part(), <, .5);
        /* another job shares less, and one without operators nothing */
        rt_step unknown = b;
        unknown.share = NULL;
        rt_common_terms(&a, &unknown, q, 1, scaled);
        assert_true(scaled[RT_TERM_JOB] == 0 && scaled[RT_TERM_CONFIGURATION] == 0);
        rt_common_terms(&unknown, &a, q, 1, scaled);
        assert_true(scaled[RT_TERM_JOB] == 0 && scaled[RT_TERM_CONFIGURATION] == 0);
        double jobs[4];
        for (uint32_t job = 0; job < 4; job++) {
            rt_step other = b;
            other.job = job < 3 ? job : RT_NO_JOB;
            other.share = shares[job % 3];
            rt_step first = b;
            first.job = job < 3 ? 0 : RT_NO_JOB;
            first.share = shares[0];
            rt_common_terms(&first, &other, q, 1, scaled);
            jobs[job] = scaled[RT_TERM_JOB];
            assert_compare(scaled[RT_TERM_JOB], >, 0);
        }
        assert_true(jobs[0] > jobs[3] && jobs[3] > jobs[1] && jobs[1] > jobs[2]);
    }
}

/* A GPU model in the training data has the same smaller part of four terms, whichever step says so. */
static void known_gpus_share_less(void **state)
{
    (void)state;
    for (int trial = 0; trial < TRIALS; trial++) {
        rt_step a = full_step(), b = full_step();
        double by_gpu[4][RT_TERMS], scale[4];
        for (int k = 0; k < 4; k++) {
            a.is_new_gpu = k & 1, b.is_new_gpu = k >> 1;
            rt_common_terms(&a, &b, RT_QUANTITY_TIME, 1, by_gpu[k]);
            scale[k] = by_gpu[k][RT_TERM_JOB]; /* the same part of the job, in other units */
        }
        for (int k = 0; k < 3; k++) {
            static const int terms[] = {RT_TERM_SITE, RT_TERM_GPU, RT_TERM_KERNELS, RT_TERM_PRECISION};
            double part = by_gpu[k][RT_TERM_SITE] / scale[k] / (by_gpu[3][RT_TERM_SITE] / scale[3]);
            assert_true(part > 0 && part < .5);
            for (int t = 0; t < 4; t++)
                assert_within(by_gpu[k][terms[t]] / scale[k], part * by_gpu[3][terms[t]] / scale[3], 1e-9);
            assert_within(by_gpu[k][RT_TERM_HOST] / scale[k], by_gpu[3][RT_TERM_HOST] / scale[3], 1e-9);
            assert_within(by_gpu[k][RT_TERM_SEVERAL] / scale[k], by_gpu[3][RT_TERM_SEVERAL] / scale[3], 1e-9);
        }
    }
}

/* The configuration's part of two steps of one job, relative to the job's. */
static double alike(const rt_step *a, const rt_step *b, rt_quantity q)
{
    double terms[RT_TERMS];
    rt_common_terms(a, b, q, 1, terms);
    return terms[RT_TERM_CONFIGURATION] / terms[RT_TERM_JOB];
}

/* Each property has a factor of its own, which is the same in every pair of steps; factors multiply. The host counts
 * for times alone, and the mode is among the other options. */
static void each_difference_has_its_factor(void **state)
{
    (void)state;
    double factors[PROPERTIES];
    for (int p = 0; p < PROPERTIES; p++) factors[p] = NAN;
    for (int trial = 0; trial < TRIALS; trial++) {
        const rt_step a = full_step();
        double same = alike(&a, &a, RT_QUANTITY_TIME);
        for (int p = 0; p < PROPERTIES; p++) {
            const rt_step b = changed(a, p);
            bool differs = p != 7 && (p != 3 || a.gpu_count > 1);
            double ratio = alike(&a, &b, RT_QUANTITY_TIME) / same, memory = alike(&a, &b, RT_QUANTITY_MEMORY) / same;
            assert_within(alike(&b, &a, RT_QUANTITY_TIME), alike(&a, &b, RT_QUANTITY_TIME), 1e-9);
            if (!differs) {
                assert_within(ratio, 1, 1e-9);
                continue;
            }
            if (isnan(factors[p])) factors[p] = ratio;
            assert_within(ratio, factors[p], 1e-9);
            assert_true(ratio > 0 && ratio < 1);
            assert_within(memory, p == 5 ? 1 : ratio, 1e-9);
            double correlation = rt_job_correlation(&a, &b), full = rt_job_correlation(&a, &a);
            assert_within(full, 1, 1e-9);
            assert_within(rt_job_correlation(&b, &a), correlation, 1e-9);
            assert_true(p == 5 ? correlation == full : correlation < full && correlation > 0);
            for (int other = 0; other < p; other++) {
                const rt_step both = changed(b, other);
                if (other == 3 && a.gpu_count == 1) continue;
                assert_within(alike(&a, &both, RT_QUANTITY_TIME) / same, factors[p] * factors[other], 1e-9);
            }
        }
    }
    for (double batch = 1, last = INFINITY; batch < 1e6;
         batch *= 3) { /* further batches share less, in both directions */
        rt_step a = full_step(), larger = a, smaller = a;
        larger.batch = a.batch * batch, smaller.batch = a.batch / batch;
        double up = alike(&a, &larger, RT_QUANTITY_TIME);
        assert_within(alike(&a, &smaller, RT_QUANTITY_TIME), up, 1e-9);
        assert_true(up < last && up > 0);
        last = up;
    }
}

/* The same for outlying jobs: mode, PyTorch, layout, and one GPU against several. */
static void outliers_share_by_four_properties(void **state)
{
    (void)state;
    for (int trial = 0; trial < TRIALS; trial++) {
        const rt_step a = random_step();
        double product = 1;
        rt_step all = a;
        assert_compare(rt_own_correlation(&a, &a), ==, 1);
        for (int p = 0; p <= PROPERTIES; p++) {
            rt_step b = p < PROPERTIES ? changed(a, p) : a;
            if (p == PROPERTIES) b.gpu_count = a.gpu_count > 1 ? 1 : 4;
            bool counts = p == 0 || p == 1 || p == 7 || p == PROPERTIES;
            double shared = rt_own_correlation(&a, &b);
            assert_compare(rt_own_correlation(&b, &a), ==, shared);
            assert_true(counts ? shared > 0 && shared < 1 : shared == 1);
            product *= shared;
            all = p < PROPERTIES ? changed(all, p) : all;
        }
        all.gpu_count = a.gpu_count > 1 ? 1 : 4;
        assert_within(rt_own_correlation(&a, &all), product, 1e-12);
    }
}

/* Only batches of one job with equal options drift: by a rerun, the doublings and the square of the host's change. */
static void only_batches_of_one_job_drift(void **state)
{
    (void)state;
    for (int trial = 0; trial < TRIALS; trial++) {
        const rt_step a = full_step();
        double rerun = rt_drift(&a, &a);
        assert_true(rerun > 0 && rerun < .01);
        for (int p = 0; p < PROPERTIES; p++) {
            const rt_step b = changed(a, p);
            bool differs = p <= 4 && (p != 3 || a.gpu_count > 1);
            assert_int_equal(isinf(rt_drift(&a, &b)), differs);
        }
        rt_step other = a, near = changed(a, 6), far = changed(near, 6), host = changed(a, 5), twice = host,
                both = host;
        other.job = a.job + 1;
        assert_true(isinf(rt_drift(&a, &other)));
        other.job = RT_NO_JOB;
        assert_true(isinf(rt_drift(&other, &other)));
        double doubling = rt_drift(&a, &near) - rerun, change = rt_drift(&a, &host) - rerun;
        assert_true(doubling > 0 && change > 0);
        assert_within(rt_drift(&a, &far) - rerun, 2 * doubling, 1e-9);
        assert_within(rt_drift(&far, &a) - rerun, 2 * doubling, 1e-9);
        twice.host_share = a.host_share + 2 * (host.host_share - a.host_share);
        both.batch = near.batch;
        assert_within(rt_drift(&a, &twice) - rerun, 4 * change, 1e-9);
        assert_within(rt_drift(&a, &both) - rerun, doubling + change, 1e-9);
        /* noise: a least one, and shares of the stated variance that grow with `idle` */
        double deviation = (double)(1 + below(50)) / 100, idle = (double)below(4);
        double least = rt_noise(0, idle), one = rt_noise(deviation, 0) - least,
               two = rt_noise(2 * deviation, 0) - least;
        assert_true(least > 0 && least < 1e-3 && one > 0);
        assert_within(two, 4 * one, 1e-9);
        double idles = rt_noise(deviation, 1) - least - one;
        assert_true(idles > one);
        assert_within(rt_noise(deviation, idle), least + one + idle * idles, 1e-9);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(covariances_are_symmetric_and_normal), cmocka_unit_test(known_gpus_share_less),
        cmocka_unit_test(each_difference_has_its_factor),       cmocka_unit_test(outliers_share_by_four_properties),
        cmocka_unit_test(only_batches_of_one_job_drift),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
