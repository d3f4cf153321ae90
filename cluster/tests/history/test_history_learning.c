/* test_history_learning.c — steps of a forecast, learning from its error, and the sums that a key keeps. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "history/history_learning.h"
#include "tests/simulator/support/numbers.h"

enum { LAST = HS_CANDIDATES - 1 };

static uint64_t seed = 1;

static double between(double least, double most)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return least + (most - least) * (double)(seed >> 11) / 9007199254740992.0;
}

static bool toss(double probability) { return between(0, 1) < probability; }

static void expect_close(double actual, double wanted)
{
    if (!(fabs(actual - wanted) <= 1e-9 * fmax(1, fabs(wanted)))) fail_msg("%.17g is not %.17g", actual, wanted);
}

static void weights_halve_with_each_half_life(void **state)
{
    (void)state;
    for (int n = 0; n < 10; n++) expect_within(hs_decay(60, 1000, 1000 + 60 * n), pow(0.5, n), 1e-12);
    for (int n = 0; n < 10; n++) expect_number(hs_decay(60, 1000, 1000 - 60 * n), 1);
    expect_number(hs_decay(INFINITY, 0, 1e9), 1);
}

static void an_empty_history_estimates_an_hour(void **state)
{
    (void)state;
    hs_learning learning;
    hs_learning_begin(&learning);
    hs_nodes *nodes = hs_nodes_create(64);
    assert_non_null(nodes);
    hs_keys keys = {0};
    hs_forecast f = hs_forecast_of(&learning, nodes, &keys, 86400, 0, 0);
    expect_within(f.log_s, log(3600), 1e-9);
    for (int i = 0; i < HS_STEPS; i++) assert_true(f.steps[i].weight == 0);
    hs_learn(&learning, &f, log(60));
    expect_within(hs_forecast_of(&learning, nodes, &keys, 86400, 0, 0).log_s, log(3600), 1e-9);
    hs_nodes_destroy(nodes);
}

/* At first, the fourth candidate is the best one of each step, and each key's usual error is a factor of 4.5. */
static void nothing_is_learned_at_first(void **state)
{
    (void)state;
    hs_learning l;
    hs_errors errors;
    hs_learning_begin(&l);
    hs_errors_begin(&errors);
    for (int step = 0; step < HS_STEPS; step++)
        for (int c = 0; c < HS_CANDIDATES; c++) expect_number(l.losses[step][c], abs(c - 3));
    for (int key = 0; key < HS_KEYS; key++) {
        assert_true(l.passing[key][0] > 1 && l.passing[key][1] > 1);
        for (int i = 0; i < HS_WEIGHT_CLASSES; i++) expect_number(l.usual[key][i][0], 0);
    }
    for (int i = 0; i < HS_ERROR_CLASSES; i++) assert_memory_equal(&l.errors[i], &errors, sizeof errors);
}

/* Makes `c` the best candidate of a step. */
static void prefer(hs_learning *l, int step, int c)
{
    for (int i = 0; i < HS_CANDIDATES; i++) l->losses[step][i] = between(1, 2);
    l->losses[step][c] = between(0, 1);
}

/* Measures each candidate's k by the first step, which moves from m to (n y + k m) / (n + k). */
static void measure_candidates(double out_k[HS_CANDIDATES])
{
    hs_keys keys = {.hash = {1}};
    for (int c = 0; c < HS_CANDIDATES; c++)
        for (int i = 0; i < 20; i++) {
            hs_learning l;
            hs_nodes *nodes = hs_nodes_create(64);
            hs_learning_begin(&l);
            prefer(&l, 0, c);
            double n = between(.2, 50), y = between(-5, 20);
            hs_nodes_use(nodes, 1)->now = (hs_durations){.weight = n, .mean = y};
            hs_forecast f = hs_forecast_of(&l, nodes, &keys, 60, 0, 0);
            double k = n * (y - f.log_s) / (f.log_s - log(3600));
            if (c == LAST) k = f.log_s == log(3600) ? INFINITY : 0;
            if (i == 0) out_k[c] = k;
            if (c < LAST) assert_true(k > 0 && fabs(k / out_k[c] - 1) < 1e-6);
            hs_nodes_destroy(nodes);
        }
    for (int c = 1; c < HS_CANDIDATES; c++) assert_true(out_k[c] > out_k[c - 1]);
    assert_true(isinf(out_k[LAST]));
}

static double moved(double m, double y, double n, double k) { return isinf(k) ? m : (n * y + k * m) / (n + k); }

/* Random keys, of which some are missing, old, or later than the known time. */
static hs_nodes *random_nodes(hs_keys *out_keys, double known_s)
{
    hs_nodes *nodes = hs_nodes_create(64);
    double kept = between(0, 1);
    *out_keys = (hs_keys){0};
    for (int key = 0; key < HS_KEYS; key++) {
        if (toss(.1)) continue;
        out_keys->hash[key] = 2 * (uint64_t)key + 1;
        if (!toss(kept)) continue;
        hs_node *node = hs_nodes_use(nodes, out_keys->hash[key]);
        node->now = (hs_durations){known_s + between(-500, 50), exp(between(-5, 4)), between(-5, 15), between(-5, 15)};
        if (toss(.2)) node->now.weight = 0;
        node->misses = toss(.3) ? 0 : between(0, 20);
        node->spread = between(0, toss(.1) ? .001 : 3);
        node->ends = between(0, 20);
        node->failures = node->ends * between(0, 1);
        node->failure = between(0, 9);
        node->at_s = fmax(node->now.at_s, known_s - between(0, 500));
    }
    return nodes;
}

static hs_learning random_learning(int best[HS_STEPS])
{
    hs_learning l;
    hs_learning_begin(&l);
    for (int step = 0; step < HS_STEPS; step++) prefer(&l, step, best[step] = (int)between(0, HS_CANDIDATES));
    for (int key = 0; key < HS_KEYS; key++) {
        l.passing[key][0] = between(1, 9);
        l.passing[key][1] = between(.1, 3);
        for (int i = 0; i < HS_WEIGHT_CLASSES; i++) {
            l.usual[key][i][0] = toss(.2) ? 0 : between(0, 50);
            l.usual[key][i][1] = between(.001, 3);
        }
    }
    return l;
}

/* Moves a mean of weight `against` towards another mean. */
static double mixed(double mean, double against, double other, double weight)
{
    return mean + weight / (weight + against) * (other - mean);
}

/* A forecast visits the keys from the coarsest to the finest; those below a tenth of a job and those without data at
 * the known time leave it. */
static void a_forecast_moves_from_key_to_key(void **state)
{
    (void)state;
    const double half_life_s = 150;
    double k[HS_CANDIDATES];
    measure_candidates(k);
    for (int i = 0; i < 3000; i++) {
        int best[HS_STEPS], finest = 0;
        double known_s = between(-1e3, 1e3), now_s = known_s + between(-50, 300), finest_weight = 0;
        hs_keys keys;
        hs_learning l = random_learning(best);
        hs_nodes *nodes = random_nodes(&keys, known_s);
        hs_forecast f = hs_forecast_of(&l, nodes, &keys, half_life_s, known_s, now_s);
        double m = log(3600), spread = 1, failure = log(60), early = .05;
        for (int key = 0; key < HS_KEYS; key++) {
            const hs_node *n = hs_nodes_find(nodes, keys.hash[key]);
            double w = 0;
            if (n != NULL && n->now.at_s <= known_s)
                w = n->now.weight * pow(.5, fmax(now_s - n->now.at_s, 0) / half_life_s);
            if (w < .1) w = 0;
            expect_close(f.steps[2 * key].weight, w);
            bool hour = key == MDOT_HISTORY_KEY_HOUR, twice = w > 0 && key >= MDOT_HISTORY_KEY_USER;
            if (w > 0) {
                double y = n->now.mean + (hour ? m : 0);
                expect_close(f.steps[2 * key].before, m);
                expect_close(f.steps[2 * key].towards, y);
                m = moved(m, y, w, k[best[2 * key]]);
                expect_close(f.steps[2 * key].after, m);
            }
            expect_close(f.steps[2 * key + 1].weight, twice ? fmin(w, 2) : 0);
            if (twice) m = moved(m, n->now.recent, fmin(w, 2), k[best[2 * key + 1]]);
            if (twice) expect_close(f.steps[2 * key + 1].after, m);
            if (hour || n == NULL) continue;
            if (w > 0) finest = key, finest_weight = w;
            double kept = pow(.5, fmax(now_s - n->at_s, 0) / half_life_s);
            spread = mixed(spread, 4, n->spread, kept * n->misses);
            failure = mixed(failure, 4, n->failure, kept * n->failures);
            early = (4 * early + kept * n->failures) / (4 + kept * n->ends);
        }
        int class = (finest_weight >= 1.3) + (finest_weight >= 3.3) + (finest_weight >= 8);
        const double *known = l.usual[finest][class];
        expect_close(f.log_s, m);
        expect_close(f.weight, finest_weight);
        expect_close(f.failure_log_s, failure);
        expect_close(f.early_failure, early);
        expect_number(f.key, finest);
        expect_number(f.weight_class, class);
        expect_number(f.error_class, finest < MDOT_HISTORY_KEY_NAME ? HS_WEIGHT_CLASSES : class);
        expect_close(f.usual, mixed(l.passing[finest][1], 10, known[1], known[0]));
        expect_close(f.scale, fmax(f.usual * spread, .01));
        hs_nodes_destroy(nodes);
    }
}

/* A mean with a first value, where each new value takes 0.1 % of the weight of the earlier ones. */
typedef struct sums {
    double weight, product;
} sums;

static void add_to(sums *s, double value)
{
    s->weight = .999 * s->weight + 1;
    s->product = .999 * s->product + value;
}

/* Losses are decayed sums of the errors that each candidate would have had, and usual errors are decayed means, in
 * which one error counts at most as eight usual ones. */
static void errors_are_learned_as_decayed_sums(void **state)
{
    (void)state;
    double k[HS_CANDIDATES];
    measure_candidates(k);
    hs_learning l;
    hs_learning_begin(&l);
    static double losses[HS_STEPS][HS_CANDIDATES];
    sums passing[HS_KEYS], usual[HS_KEYS][HS_WEIGHT_CLASSES] = {{{0}}};
    hs_errors errors[HS_ERROR_CLASSES];
    for (int i = 0; i < HS_ERROR_CLASSES; i++) errors[i] = l.errors[i];
    memcpy(losses, l.losses, sizeof losses);
    for (int i = 0; i < HS_KEYS; i++) passing[i] = (sums){l.passing[i][0], l.passing[i][0] * l.passing[i][1]};
    for (int i = 0; i < 1000; i++) {
        hs_keys keys;
        hs_nodes *nodes = random_nodes(&keys, 0);
        hs_forecast f = hs_forecast_of(&l, nodes, &keys, 150, 0, 20);
        double log_s = toss(.1) ? between(-500, 500) : f.log_s + between(-2, 2);
        for (int step = 0; step < HS_STEPS; step++) {
            if (f.steps[step].weight == 0) continue;
            for (int c = 0; c < HS_CANDIDATES; c++) {
                double there = moved(f.steps[step].before, f.steps[step].towards, f.steps[step].weight, k[c]);
                losses[step][c] = .999 * losses[step][c] + fabs(there - log_s);
            }
            if (step % 2 == 0 && f.steps[step + 1].weight > 0) continue;
            add_to(&passing[step / 2], fmin(fabs(log_s - f.steps[step].after), 8 * l.passing[step / 2][1]));
        }
        hs_errors_add(&errors[f.error_class], (log_s - f.log_s) / f.scale);
        add_to(&usual[f.key][f.weight_class], fmin(fabs(log_s - f.log_s), 8 * f.usual));
        hs_learn(&l, &f, log_s);
        hs_nodes_destroy(nodes);
        for (int step = 0; step < HS_STEPS; step++) {
            double least = INFINITY;
            for (int c = 0; c < HS_CANDIDATES; c++) least = fmin(least, losses[step][c]);
            for (int c = 0; c < HS_CANDIDATES; c++) /* each k was measured with some 8 digits */
                expect_within(l.losses[step][c], losses[step][c] - least, 1e-5 * (1 + losses[step][c]));
        }
        for (int key = 0; key < HS_KEYS; key++) {
            expect_close(l.passing[key][0], passing[key].weight);
            expect_close(l.passing[key][1], passing[key].product / passing[key].weight);
            for (int c = 0; c < HS_WEIGHT_CLASSES; c++) {
                expect_close(l.usual[key][c][0], usual[key][c].weight);
                expect_close(l.usual[key][c][1] * usual[key][c].weight, usual[key][c].product);
            }
        }
        assert_memory_equal(l.errors, errors, sizeof errors);
    }
}

/* One end of a job, as a key counts it. */
typedef struct counted {
    uint64_t hash;
    double end_s, value, error;
    bool has_duration, has_error;
} counted;

/* The weight at `at_s` and the weighted mean of one kind of ends (0 all, 1 durations, 2 failures, 3 errors) among those
 * with the key of the last one. */
static double sum_of(const counted *ends, int count, int kind, double half_life_s, double at_s, double *out_mean)
{
    double weight = 0, sum = 0;
    for (int i = 0; i < count; i++) {
        const counted *e = &ends[i];
        if (e->hash != ends[count - 1].hash) continue;
        if ((kind == 1 && !e->has_duration) || (kind == 2 && e->has_duration) || (kind == 3 && !e->has_error)) continue;
        double w = pow(.5, (at_s - e->end_s) / half_life_s);
        weight += w;
        sum += w * (kind == 3 ? e->error : e->value);
    }
    *out_mean = weight > 0 ? sum / weight : 0;
    return weight;
}

/* Jobs end in any order and in all ways. Each key's weights and means are sums over its jobs, with the weight that each
 * job has at the key's last end. A job that was cut off counts as the median of longer jobs. */
static void keys_keep_decayed_sums_of_their_jobs(void **state)
{
    (void)state;
    enum { JOBS = 150 };
    static counted ends[HS_KEYS][JOBS];
    for (int round = 0; round < 6; round++) {
        mdot_history_options o = {.struct_size = sizeof o, .half_life_s = between(300, 3e4)};
        mdot_history *h = NULL;
        assert_int_equal(mdot_history_create(&o, &h, NULL), MDOT_OK);
        double recent[HS_KEYS], durations_at_s[HS_KEYS], clock_s = 0;
        for (int i = 0; i < JOBS; i++) {
            clock_s += toss(.05) ? 5 * o.half_life_s : between(0, 300);
            double log_s = toss(.1) ? between(-9, 20) : 5 + between(-1, 1), end_s = clock_s - between(0, 3000);
            mdot_history_job job = {.struct_size = sizeof job,
                                    .user = "u",
                                    .group = "g",
                                    .name = "resnet18-run-7",
                                    .gpu_type = "t",
                                    .digest = 3,
                                    .gpus = 1,
                                    .submit_s = 20000 + clock_s};
            mdot_ended outcome = toss(.5) ? MDOT_ENDED_COMPLETED : (mdot_ended)between(1, 4);
            hs_keys keys = hs_keys_of(o.hash_seed, h->nodes, &job);
            hs_forecast f = hs_forecast_of(&h->learning, h->nodes, &keys, o.half_life_s, job.submit_s, job.submit_s);
            hs_shape shape = hs_shape_fit(&h->learning.errors[f.error_class]);
            mdot_history_estimate e = MDOT_INIT(mdot_history_estimate);
            assert_int_equal(mdot_history_ask(h, &job, &e, NULL), MDOT_OK);
            expect_close(log(e.median_s), f.log_s + f.scale * shape.center);
            expect_close(e.lower_scale, f.scale * shape.lower);
            expect_close(e.upper_scale, f.scale * shape.upper);
            expect_close(log(e.failure_s), f.failure_log_s);
            double ran_s = fmax(exp(log_s), 1e-3), far = fmax(6 * f.scale, log(10));
            bool complete = outcome == MDOT_ENDED_COMPLETED,
                 failed = !complete && outcome != MDOT_ENDED_TIMED_OUT && ran_s < e.median_s / 2;
            double whole_s = complete || failed ? ran_s : ran_s + mdot_history_remaining_s(&e, ran_s, .5);
            double value = log(whole_s);
            if (f.weight > 3 && !failed) value = fmin(fmax(value, f.log_s - far), f.log_s + far);
            for (int key = 0; key < HS_KEYS; key++) {
                const hs_node *n = hs_nodes_find(h->nodes, keys.hash[key]);
                double at_s = n != NULL ? fmax(n->at_s, end_s) : end_s;
                double kept = n != NULL ? n->now.weight * pow(.5, (at_s - n->now.at_s) / o.half_life_s) : 0;
                double weight = pow(.5, (at_s - end_s) / o.half_life_s);
                recent[key] = n != NULL ? n->now.recent : 0;
                durations_at_s[key] = n != NULL ? n->now.at_s : 0;
                counted *c = &ends[key][i];
                bool known = f.steps[2 * key].weight > 0;
                *c = (counted){keys.hash[key],   end_s, value, fmin(fabs(log(whole_s) - f.log_s) / f.usual, 8), !failed,
                               complete && known};
                if (key == MDOT_HISTORY_KEY_HOUR && !failed) c->value -= known ? f.steps[2 * key].before : f.log_s;
                if (failed) continue;
                durations_at_s[key] = at_s;
                if (kept < .3)
                    recent[key] = c->value;
                else if (weight > .5)
                    recent[key] = (recent[key] + c->value) / 2;
            }
            assert_int_equal(mdot_history_add(h, &job, outcome, exp(log_s), end_s, NULL), MDOT_OK);
            for (int key = 0; key < HS_KEYS; key++) {
                const hs_node *n = hs_nodes_find(h->nodes, keys.hash[key]);
                assert_non_null(n);
                double at_s = -INFINITY, mean;
                for (int j = 0; j <= i; j++)
                    if (ends[key][j].hash == keys.hash[key]) at_s = fmax(at_s, ends[key][j].end_s);
                expect_number(n->at_s, at_s);
                expect_close(n->ends, sum_of(ends[key], i + 1, 0, o.half_life_s, at_s, &mean));
                expect_close(n->failures, sum_of(ends[key], i + 1, 2, o.half_life_s, at_s, &mean));
                if (n->failures > 0) expect_close(n->failure, mean);
                expect_close(n->misses, sum_of(ends[key], i + 1, 3, o.half_life_s, at_s, &mean));
                if (n->misses > 0) expect_close(n->spread, mean);
                expect_close(n->now.weight, sum_of(ends[key], i + 1, 1, o.half_life_s, durations_at_s[key], &mean));
                if (n->now.weight > 0) expect_close(n->now.mean, mean);
                expect_close(n->now.recent, recent[key]);
            }
        }
        mdot_history_destroy(h);
    }
}

/* Weights are whole numbers while no time passes. One job's effect is limited once a key outweighs three jobs. */
static void a_known_job_limits_the_effect_of_one_end(void **state)
{
    (void)state;
    for (int jobs = 1; jobs < 8; jobs++) {
        mdot_history *h = NULL;
        assert_int_equal(mdot_history_create(NULL, &h, NULL), MDOT_OK);
        mdot_history_job job = {.struct_size = sizeof job, .user = "u", .submit_s = 1e6};
        for (int i = 0; i < jobs; i++)
            assert_int_equal(mdot_history_add(h, &job, MDOT_ENDED_COMPLETED, 1000, 1e6, NULL), MDOT_OK);
        hs_keys keys = hs_keys_of(h->options.hash_seed, h->nodes, &job);
        hs_forecast f = hs_forecast_of(&h->learning, h->nodes, &keys, h->options.half_life_s, 1e6, 1e6);
        expect_number(f.weight, jobs);
        assert_int_equal(mdot_history_add(h, &job, MDOT_ENDED_COMPLETED, 1e11, 1e6, NULL), MDOT_OK);
        double value = jobs > 3 ? f.log_s + fmax(6 * f.scale, log(10)) : log(1e11);
        assert_true(value <= log(1e11));
        const hs_node *all = hs_nodes_find(h->nodes, keys.hash[MDOT_HISTORY_KEY_ALL]);
        expect_close(all->now.mean, (jobs * log(1000) + value) / (jobs + 1));
        mdot_history_destroy(h);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_halve_with_each_half_life),
        cmocka_unit_test(an_empty_history_estimates_an_hour),
        cmocka_unit_test(nothing_is_learned_at_first),
        cmocka_unit_test(a_forecast_moves_from_key_to_key),
        cmocka_unit_test(errors_are_learned_as_decayed_sums),
        cmocka_unit_test(keys_keep_decayed_sums_of_their_jobs),
        cmocka_unit_test(a_known_job_limits_the_effect_of_one_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
