/* test_history.c — properties of estimates from a history. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "history/mdot_history.h"
#include "tests/simulator/support/numbers.h"

static const double day_s = 86400;

static mdot_history *create(void)
{
    mdot_history *h = NULL;
    assert_int_equal(mdot_history_create(NULL, &h, NULL), MDOT_OK);
    return h;
}

static mdot_history_job job_of(const char *user, const char *name, int gpus, double submit_s)
{
    return (mdot_history_job){
        .struct_size = sizeof(mdot_history_job), .user = user, .name = name, .gpus = gpus, .submit_s = submit_s};
}

static void add(mdot_history *h, const char *user, const char *name, double submit_s, double duration_s)
{
    mdot_history_job job = job_of(user, name, 1, submit_s);
    assert_int_equal(mdot_history_add(h, &job, MDOT_ENDED_COMPLETED, duration_s, submit_s + duration_s, NULL), MDOT_OK);
}

static mdot_history_estimate ask(const mdot_history *h, const char *user, const char *name, double submit_s)
{
    mdot_history_job job = job_of(user, name, 1, submit_s);
    mdot_history_estimate e = MDOT_INIT(mdot_history_estimate);
    assert_int_equal(mdot_history_ask(h, &job, &e, NULL), MDOT_OK);
    return e;
}

static double width_of(const mdot_history_estimate *e)
{
    return mdot_history_quantile_s(e, .95) / mdot_history_quantile_s(e, .05);
}

/* The structs have padding. */
static void expect_equal(const mdot_history_estimate *a, const mdot_history_estimate *b)
{
    expect_number(a->median_s, b->median_s);
    expect_number(a->lower_scale, b->lower_scale);
    expect_number(a->upper_scale, b->upper_scale);
    expect_number(a->degrees, b->degrees);
    expect_number(a->early_failure, b->early_failure);
    expect_number(a->failure_s, b->failure_s);
    expect_number(a->key, b->key);
    expect_number(a->weight, b->weight);
}

static double unit(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return ((double)(*state >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(uint64_t *state)
{
    double radius = sqrt(-2 * log(unit(state)));
    return radius * cos(2 * M_PI * unit(state));
}

/* Users whose jobs take 100 s, 1000 s or 10000 s, times a factor with the given spread. */
static mdot_history *three_users(int jobs, double spread, uint64_t seed)
{
    static const char *const users[] = {"anna", "ben", "carla"};
    mdot_history *h = create();
    for (int i = 0; i < jobs; i++)
        add(h, users[i % 3], "train", 600. * i, pow(10, 2 + i % 3) * exp(spread * normal(&seed)));
    return h;
}

static void an_empty_history_answers_one_hour_with_wide_scales(void **state)
{
    (void)state;
    mdot_history *h = create();
    mdot_history_estimate e = ask(h, "anna", "train", 0);
    expect_number(e.weight, 0);
    assert_int_equal(e.key, MDOT_HISTORY_KEY_ALL);
    assert_true(e.median_s > 1800);
    assert_true(e.median_s < 7200);
    assert_true(width_of(&e) > 100);
    mdot_history_destroy(h);
}

static void quantiles_are_ordered(void **state)
{
    (void)state;
    mdot_history *h = three_users(300, .7, 1);
    for (int i = 0; i < 4; i++) {
        static const char *const users[] = {"anna", "ben", "dora", NULL};
        mdot_history_estimate e = ask(h, users[i], "train", 1e6);
        double before = 0;
        for (double p = 0; p <= 1; p += 1 / 64.) {
            double quantile = mdot_history_quantile_s(&e, p);
            assert_true(quantile >= before);
            assert_true(isfinite(quantile));
            before = quantile;
        }
        assert_true(fabs(mdot_history_quantile_s(&e, .5) / e.median_s - 1) < 1e-9);
    }
    mdot_history_destroy(h);
}

static void users_are_told_apart(void **state)
{
    (void)state;
    mdot_history *h = three_users(300, .2, 2);
    static const char *const users[] = {"anna", "ben", "carla"};
    for (int i = 0; i < 3; i++) {
        mdot_history_estimate e = ask(h, users[i], "train", 1e6);
        assert_true(fabs(log(e.median_s / pow(10, 2 + i))) < .3);
    }
    mdot_history_destroy(h);
}

static void an_unknown_user_gets_the_estimate_of_all_jobs(void **state)
{
    (void)state;
    mdot_history *h = three_users(300, .2, 3);
    mdot_history_estimate known = ask(h, "anna", "train", 1e6), unknown = ask(h, "dora", "other", 1e6);
    assert_true(unknown.key < MDOT_HISTORY_KEY_USER);
    assert_true(known.key >= MDOT_HISTORY_KEY_USER);
    assert_true(unknown.median_s > 300);
    assert_true(unknown.median_s < 3000);
    assert_true(width_of(&unknown) > 4 * width_of(&known));
    mdot_history_destroy(h);
}

static void more_history_narrows_the_interval(void **state)
{
    (void)state;
    double before = INFINITY;
    for (int jobs = 3; jobs <= 27; jobs *= 3) {
        mdot_history *h = three_users(jobs, .3, 4);
        mdot_history_estimate e = ask(h, "ben", "train", 1e6);
        assert_true(width_of(&e) < before);
        before = width_of(&e);
        mdot_history_destroy(h);
    }
    mdot_history *h = three_users(3000, .3, 4);
    mdot_history_estimate e = ask(h, "ben", "train", 2e6);
    double truth = exp(2 * 1.645 * .3);
    assert_true(width_of(&e) > .75 * truth);
    assert_true(width_of(&e) < 1.5 * truth);
    mdot_history_destroy(h);
}

static void intervals_cover_their_share_of_heavy_tails(void **state)
{
    (void)state;
    uint64_t seed = 5;
    int covered = 0, below = 0, asked = 0;
    mdot_history *h = create();
    for (int i = 0; i < 6000; i++) {
        char user[16];
        double submit_s = 600. * i, scale = unit(&seed) < .1 ? 2 : .4;
        int number = (int)(20 * unit(&seed));
        snprintf(user, sizeof user, "user%d", number);
        double duration_s = fmin(exp(1 + number / 8. + scale * normal(&seed)), 590); /* ends before the next begins */
        mdot_history_estimate e = ask(h, user, NULL, submit_s);
        if (i >= 1000) {
            covered += duration_s >= mdot_history_quantile_s(&e, .05) && duration_s <= mdot_history_quantile_s(&e, .95);
            below += duration_s < e.median_s;
            asked++;
        }
        add(h, user, NULL, submit_s, duration_s);
    }
    assert_true(covered > .86 * asked);
    assert_true(covered < .94 * asked);
    assert_true(below > .4 * asked);
    assert_true(below < .6 * asked);
    mdot_history_destroy(h);
}

static void stale_jobs_are_forgotten(void **state)
{
    (void)state;
    mdot_history *h = create();
    for (int i = 0; i < 200; i++) {
        add(h, "anna", "alone", 600. * i, 100 + i % 7);
        add(h, "ben", "train", 600. * i, 10000 + i % 7);
    }
    double soon_s = 200 * 600. + 20000, later_s = soon_s + 400 * day_s;
    assert_true(fabs(log(ask(h, "anna", "alone", soon_s).median_s / 100)) < .2);
    for (int i = 0; i < 50; i++) add(h, "ben", "train", later_s - 1e6 + 600. * i, 10000 + i % 7);
    mdot_history_estimate e = ask(h, "anna", "alone", later_s);
    assert_true(e.key < MDOT_HISTORY_KEY_USER);
    assert_true(e.median_s > 5000);
    add(h, "anna", "alone", later_s, 5000);
    e = ask(h, "anna", "alone", later_s + 6000);
    assert_true(fabs(log(e.median_s / 5000)) < .8);
    mdot_history_destroy(h);
}

static void recent_jobs_count_more(void **state)
{
    (void)state;
    mdot_history *h = create();
    for (int i = 0; i < 60; i++) add(h, "anna", "train", i * day_s, 100);
    for (int i = 60; i < 70; i++) add(h, "anna", "train", i * day_s, 5000);
    assert_true(ask(h, "anna", "train", 70.5 * day_s).median_s > 2000);
    mdot_history_destroy(h);
}

static void names_with_other_digits_share_a_key(void **state)
{
    (void)state;
    mdot_history *h = three_users(60, .2, 6);
    for (int i = 0; i < 20; i++) {
        char name[64];
        snprintf(name, sizeof name, "ResNet%d_20240%d01-%08x", i, i % 9, 0x9e3779b9u * (unsigned)(i + 1) | 0x10u);
        add(h, "anna", name, 50000 + 600. * i, 30000);
    }
    mdot_history_estimate e = ask(h, "anna", "resnet99-20250707", 150000);
    assert_true(e.key >= MDOT_HISTORY_KEY_USER_NAME);
    assert_true(fabs(log(e.median_s / 30000)) < .4);
    mdot_history_destroy(h);
}

/* Networks differ in digits alone, and so do the runs of each, by any word. Saving keeps the evidence. */
static void runs_are_told_from_networks_by_their_values(void **state)
{
    (void)state;
    static const char *const forms[] = {"resnet%d-run%d", "resnet%d_cfg%d", "vit%d/zz%d.yaml"};
    static const int depths[] = {18, 50, 152};
    for (int form = 0; form < 3; form++) {
        mdot_history *h = create(), *loaded = NULL;
        char name[64];
        for (int i = 0; i < 240; i++) {
            snprintf(name, sizeof name, forms[form], depths[i % 3], i);
            add(h, "anna", name, 3600 * i, 300 * pow(6, i % 3));
        }
        assert_int_equal(mdot_history_save(h, "runs.history", NULL), MDOT_OK);
        assert_int_equal(mdot_history_load("runs.history", NULL, &loaded, NULL), MDOT_OK);
        for (int k = 0; k < 3; k++) {
            snprintf(name, sizeof name, forms[form], depths[k], 1000);
            mdot_history_estimate e = ask(loaded, "anna", name, 3600 * 240);
            assert_true(e.key == MDOT_HISTORY_KEY_USER_NAME_RESOURCES);
            if (fabs(log(e.median_s / (300 * pow(6, k)))) > .1) fail_msg("%s: %g s", name, e.median_s);
        }
        remove("runs.history");
        mdot_history_destroy(h);
        mdot_history_destroy(loaded);
    }
}

static void a_digest_is_a_key(void **state)
{
    (void)state;
    mdot_history *h = three_users(60, .2, 7);
    mdot_history_job job = job_of("anna", NULL, 1, 0);
    job.digest = 0x1234;
    for (int i = 0; i < 20; i++) {
        job.submit_s = 50000 + 1000. * i;
        assert_int_equal(mdot_history_add(h, &job, MDOT_ENDED_COMPLETED, 500, job.submit_s + 500, NULL), MDOT_OK);
    }
    job.user = "dora";
    job.submit_s = 1e5;
    mdot_history_estimate e = MDOT_INIT(mdot_history_estimate);
    assert_int_equal(mdot_history_ask(h, &job, &e, NULL), MDOT_OK);
    assert_int_equal(e.key, MDOT_HISTORY_KEY_DIGEST);
    assert_true(fabs(log(e.median_s / 500)) < .3);
    mdot_history_destroy(h);
}

static void early_failures_are_a_probability_and_leave_durations(void **state)
{
    (void)state;
    mdot_history *h = three_users(300, .2, 8);
    double before_s = ask(h, "ben", "train", 1e6).median_s;
    for (int i = 0; i < 60; i++) {
        mdot_history_job job = job_of("ben", "train", 1, 2e5 + 600. * i);
        mdot_ended outcome = i % 2 == 0 ? MDOT_ENDED_FAILED : MDOT_ENDED_CANCELLED;
        assert_int_equal(mdot_history_add(h, &job, outcome, 20, job.submit_s + 20, NULL), MDOT_OK);
    }
    mdot_history_estimate ben = ask(h, "ben", "train", 3e5), anna = ask(h, "anna", "train", 3e5);
    assert_true(ben.early_failure > .25);
    assert_true(ben.early_failure < .6);
    assert_true(anna.early_failure < .15);
    assert_true(fabs(log(ben.median_s / before_s)) < .2);
    mdot_history_destroy(h);
}

static void jobs_that_were_cut_off_count_as_longer(void **state)
{
    (void)state;
    for (int cut = 0; cut < 2; cut++) {
        mdot_history *h = three_users(300, .3, 9);
        for (int i = 0; i < 60; i++) {
            mdot_history_job job = job_of("anna", "long", 1, 2e5 + 10000. * i);
            mdot_ended outcome = cut != 0 ? MDOT_ENDED_TIMED_OUT : MDOT_ENDED_COMPLETED;
            assert_int_equal(mdot_history_add(h, &job, outcome, 3600, job.submit_s + 3600, NULL), MDOT_OK);
        }
        double median_s = ask(h, "anna", "long", 1e6).median_s;
        assert_true(cut != 0 ? median_s > 3700 : fabs(log(median_s / 3600)) < .2);
        mdot_history_destroy(h);
    }
}

/* A job is compared with the estimate at submission. Concurrent siblings must not make it look predictable: here, a
 * sweep's jobs are alike, but one sweep tells nothing about the next. */
static void sweeps_do_not_feign_precision(void **state)
{
    (void)state;
    uint64_t seed = 10;
    mdot_history *h = create();
    int covered = 0, asked = 0;
    for (int sweep = 0; sweep < 400; sweep++) {
        double submit_s = sweep * day_s, duration_s = exp(6 + 1.5 * normal(&seed));
        if (sweep >= 100) {
            mdot_history_estimate e = ask(h, "anna", "sweep", submit_s);
            covered += duration_s >= mdot_history_quantile_s(&e, .05) && duration_s <= mdot_history_quantile_s(&e, .95);
            asked++;
        }
        for (int i = 0; i < 8; i++) add(h, "anna", "sweep", submit_s + i, duration_s * (1 + .01 * i));
    }
    assert_true(covered > .8 * asked);
    mdot_history_destroy(h);
}

static void the_rest_of_a_job_follows_its_distribution(void **state)
{
    (void)state;
    mdot_history_estimate e = MDOT_INIT(mdot_history_estimate);
    e.median_s = 1000;
    e.lower_scale = e.upper_scale = .5;
    e.degrees = 4;
    assert_true(fabs(mdot_history_remaining_s(&e, 0, .5) - 1000) < 1e-6);
    assert_true(mdot_history_remaining_s(&e, 900, .5) < 1000);
    double before = 0; /* it grows in the tail */
    for (double executed_s = 4000; executed_s < 1e9; executed_s *= 2) {
        double rest_s = mdot_history_remaining_s(&e, executed_s, .5);
        assert_true(rest_s > before);
        assert_true(isfinite(rest_s));
        before = rest_s;
    }
    assert_true(mdot_history_remaining_s(&e, 1000, .9) > mdot_history_remaining_s(&e, 1000, .1));
}

static void hostile_values_are_refused_and_leave_the_history(void **state)
{
    (void)state;
    mdot_history *h = three_users(60, .2, 11);
    mdot_history_estimate before = ask(h, "anna", "train", 1e6), after;
    mdot_error err = {0};
    mdot_history_job job = job_of("anna", "train", 1, 0);
    static const double bad[] = {NAN, INFINITY, -INFINITY, 1e13, -1e13};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(mdot_history_add(h, &job, MDOT_ENDED_COMPLETED, bad[i], 0, &err), MDOT_INVALID_ARGUMENT);
        assert_non_null(strstr(err.message, "duration_s"));
        assert_int_equal(mdot_history_add(h, &job, MDOT_ENDED_COMPLETED, 1, bad[i], &err), MDOT_INVALID_ARGUMENT);
        assert_non_null(strstr(err.message, "end_s"));
        job.submit_s = bad[i];
        assert_int_equal(mdot_history_add(h, &job, MDOT_ENDED_COMPLETED, 1, 0, &err), MDOT_INVALID_ARGUMENT);
        assert_non_null(strstr(err.message, "submit_s"));
        job.submit_s = 0;
    }
    assert_int_equal(mdot_history_add(h, &job, MDOT_ENDED_COMPLETED, -1, 0, &err), MDOT_INVALID_ARGUMENT);
    assert_int_equal(mdot_history_add(h, &job, (mdot_ended)9, 1, 0, &err), MDOT_INVALID_ARGUMENT);
    job.gpus = -1;
    assert_int_equal(mdot_history_add(h, &job, MDOT_ENDED_COMPLETED, 1, 0, &err), MDOT_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "gpus"));
    job.gpus = 1;
    job.struct_size = 0;
    assert_int_equal(mdot_history_add(h, &job, MDOT_ENDED_COMPLETED, 1, 0, &err), MDOT_INVALID_ARGUMENT);
    after = ask(h, "anna", "train", 1e6);
    expect_equal(&before, &after);
    mdot_history_destroy(h);
}

/* Jobs of the night take 16 times as long. The estimate of a user whom nobody knows follows the hour. */
static void the_hour_of_the_day_is_a_key(void **state)
{
    (void)state;
    mdot_history *h = create();
    for (int day = 0; day < 60; day++)
        for (int user = 0; user < 6; user++) {
            char name[8];
            snprintf(name, sizeof name, "u%d", 100 * day + user);
            add(h, name, NULL, 86400. * day + 3600 * 2, 16000);
            add(h, name, NULL, 86400. * day + 3600 * 14, 1000);
        }
    mdot_history_job job = {.struct_size = sizeof job, .user = "new", .gpus = 1};
    mdot_history_estimate night = MDOT_INIT(mdot_history_estimate), noon = MDOT_INIT(mdot_history_estimate);
    job.submit_s = 86400. * 63 + 3600 * 2;
    assert_int_equal(mdot_history_ask(h, &job, &night, NULL), MDOT_OK);
    job.submit_s = 86400. * 63 + 3600 * 14;
    assert_int_equal(mdot_history_ask(h, &job, &noon, NULL), MDOT_OK);
    assert_true(night.median_s > 4 * noon.median_s);
    mdot_history_destroy(h);
}

/* After many equal jobs, one that takes a thousand times as long, or as short, moves the estimate by less than a
 * factor of ten. */
static void one_job_moves_an_estimate_by_a_bounded_factor(void **state)
{
    (void)state;
    for (int longer = 0; longer < 2; longer++) {
        mdot_history *h = create();
        for (int i = 0; i < 40; i++) add(h, "alice", "train", 1e4 * i, 1000 + i % 3);
        double before = ask(h, "alice", "train", 5e5).median_s;
        add(h, "alice", "train", 5e5, longer == 1 ? 1e6 : 1);
        double factor = ask(h, "alice", "train", 1.6e6).median_s / before;
        assert_true(longer == 1 ? factor >= 1 && factor < 10 : factor <= 1 && factor > .1);
        mdot_history_destroy(h);
    }
}

static void any_order_and_size_of_durations_stays_finite(void **state)
{
    (void)state;
    static const double durations[] = {0, 1e-9, 1, 1e12, 3600, 0, 1e12, 1e-3};
    uint64_t seed = 12;
    mdot_history *h = create();
    char *long_name = malloc(100001);
    memset(long_name, 'x', 100000);
    long_name[100000] = '\0';
    for (int i = 0; i < 4000; i++) {
        mdot_history_job job = job_of(i % 3 == 0 ? "anna" : "\xff\x01\n", i % 5 == 0 ? long_name : "a b", i % 9, 0);
        job.submit_s = (unit(&seed) - .5) * 2e12;
        double end_s = (unit(&seed) - .5) * 2e12;
        assert_int_equal(mdot_history_add(h, &job, (mdot_ended)(i % 4), durations[i % 8], end_s, NULL), MDOT_OK);
        mdot_history_estimate e = MDOT_INIT(mdot_history_estimate);
        assert_int_equal(mdot_history_ask(h, &job, &e, NULL), MDOT_OK);
        assert_true(e.median_s > 0);
        assert_true(isfinite(e.median_s));
        assert_true(e.lower_scale > 0);
        assert_true(e.upper_scale > 0);
        assert_true(isfinite(e.lower_scale));
        assert_true(isfinite(e.upper_scale));
        assert_true(e.early_failure >= 0);
        assert_true(e.early_failure <= 1);
        assert_true(isfinite(e.weight));
        assert_true(isfinite(mdot_history_remaining_s(&e, durations[i % 8], .5)));
    }
    free(long_name);
    mdot_history_destroy(h);
}

static void bad_options_are_refused(void **state)
{
    (void)state;
    mdot_history *h = NULL;
    mdot_error err = {0};
    mdot_history_options o = {.struct_size = sizeof o, .most_keys = 3};
    assert_int_equal(mdot_history_create(&o, &h, &err), MDOT_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "most_keys is 3"));
    o = (mdot_history_options){.struct_size = sizeof o, .half_life_s = -1};
    assert_int_equal(mdot_history_create(&o, &h, &err), MDOT_INVALID_ARGUMENT);
    o.half_life_s = NAN;
    assert_int_equal(mdot_history_create(&o, &h, &err), MDOT_INVALID_ARGUMENT);
    assert_null(h);
    mdot_history_destroy(NULL);
}

/* New names from one user push out names, but the keys in use by others stay. */
static void a_flood_of_names_leaves_the_keys_in_use(void **state)
{
    (void)state;
    mdot_history_options o = {.struct_size = sizeof o, .most_keys = 256};
    mdot_history *h = NULL;
    assert_int_equal(mdot_history_create(&o, &h, NULL), MDOT_OK);
    for (int i = 0; i < 3000; i++) {
        char name[8] = {(char)('a' + i % 26), (char)('a' + i / 26 % 26), (char)('a' + i / 676 % 26), 0};
        add(h, "flood", name, 600. * i, 50);
        if (i % 20 == 0) add(h, "anna", "train", 600. * i, 500);
    }
    mdot_history_estimate e = ask(h, "anna", "train", 1.9e6);
    assert_true(e.key >= MDOT_HISTORY_KEY_USER_NAME);
    assert_true(fabs(log(e.median_s / 500)) < .3);
    mdot_history_destroy(h);
}

/* Zeros are the documented defaults: 30 days, and 65,536 keys. */
static void zeros_are_the_defaults(void **state)
{
    (void)state;
    const mdot_history_options o = {.struct_size = sizeof o, .half_life_s = 30 * day_s, .most_keys = 65536};
    mdot_history *h[2] = {create(), NULL};
    assert_int_equal(mdot_history_create(&o, &h[1], NULL), MDOT_OK);
    for (int i = 0; i < 6000; i++)
        for (int k = 0; k < 2; k++) {
            char name[16];
            snprintf(name, sizeof name, "u%d", i);
            add(h[k], name, NULL, 1000. * i, 100 + i % 7);
            mdot_history_job job = job_of(name, NULL, 1, 1000. * i + 9e4);
            job.digest = 1 + (uint64_t)i;
            assert_int_equal(mdot_history_add(h[k], &job, MDOT_ENDED_COMPLETED, 300, job.submit_s, NULL), MDOT_OK);
        }
    for (int i = 0; i < 6000; i += 50) {
        char name[16];
        snprintf(name, sizeof name, "u%d", i);
        mdot_history_estimate a = ask(h[0], name, NULL, 7e6), b = ask(h[1], name, NULL, 7e6);
        expect_equal(&a, &b);
        assert_true(a.key >= MDOT_HISTORY_KEY_USER);
    }
    mdot_history_destroy(h[0]);
    mdot_history_destroy(h[1]);
}

/* A job that is refused leaves the estimate as it was. */
static void expect_answer(const mdot_history *h, const mdot_history_job *job, bool is_allowed)
{
    mdot_history_estimate e = {.struct_size = sizeof e, .median_s = -7};
    assert_int_equal(mdot_history_ask(h, job, &e, NULL), is_allowed ? MDOT_OK : MDOT_INVALID_ARGUMENT);
    assert_int_equal(e.median_s != -7, is_allowed);
}

/* Options and numbers are allowed up to their limits, and refused beyond. */
static void limits_are_part_of_the_allowed_range(void **state)
{
    (void)state;
    static const size_t keys[] = {1, 63, 64, 1 << 16, 1 << 24, (1 << 24) + 1, SIZE_MAX};
    static const double lives[] = {-60, 59.999, 60, 1e6, 1e12, 1.001e12, INFINITY}, times[] = {0, 1e12, 1.001e12};
    static const int counts[] = {0, 1, 1 << 20, (1 << 20) + 1};
    mdot_history *h = NULL;
    mdot_error err = {0};
    for (int i = 0; i < 7; i++) {
        mdot_history_options o = {.struct_size = sizeof o, .most_keys = keys[i]};
        assert_int_equal(mdot_history_create(&o, &h, &err) == MDOT_OK, i >= 2 && i <= 4);
        if (i >= 2 && i <= 4) mdot_history_destroy(h);
        o = (mdot_history_options){.struct_size = sizeof o, .half_life_s = lives[i]};
        assert_int_equal(mdot_history_create(&o, &h, &err) == MDOT_OK, i >= 2 && i <= 4);
        if (i >= 2 && i <= 4) mdot_history_destroy(h);
    }
    mdot_history_options unsized = {.struct_size = 0};
    assert_int_equal(mdot_history_create(&unsized, &h, &err), MDOT_INVALID_ARGUMENT);
    h = create();
    for (int i = 0; i < 4; i++) {
        mdot_history_job job = job_of("u", "n", counts[i], 0);
        expect_answer(h, &job, i < 3);
        assert_int_equal(mdot_history_add(h, &job, MDOT_ENDED_COMPLETED, 1, 1, &err) == MDOT_OK, i < 3);
    }
    for (int i = 0; i < 3; i++)
        for (int sign = -1; sign <= 1; sign += 2) {
            mdot_history_job job = job_of("u", "n", 1, sign * times[i]), now = job_of("u", "n", 1, 0);
            expect_answer(h, &job, i < 2);
            assert_int_equal(mdot_history_add(h, &job, MDOT_ENDED_COMPLETED, 1, 1, &err) == MDOT_OK, i < 2);
            assert_int_equal(mdot_history_add(h, &now, MDOT_ENDED_COMPLETED, 1, sign * times[i], &err) == MDOT_OK,
                             i < 2);
            bool is_duration = i < 2 && (sign > 0 || i == 0);
            assert_int_equal(mdot_history_add(h, &now, MDOT_ENDED_FAILED, sign * times[i], 1, &err) == MDOT_OK,
                             is_duration);
        }
    for (int outcome = -1; outcome <= 4; outcome++) {
        mdot_history_job job = job_of("u", "n", 1, 0);
        assert_int_equal(mdot_history_add(h, &job, (mdot_ended)outcome, 1, 1, &err) == MDOT_OK,
                         outcome >= 0 && outcome < 4);
    }
    mdot_history_destroy(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_history_answers_one_hour_with_wide_scales),
        cmocka_unit_test(quantiles_are_ordered),
        cmocka_unit_test(users_are_told_apart),
        cmocka_unit_test(an_unknown_user_gets_the_estimate_of_all_jobs),
        cmocka_unit_test(more_history_narrows_the_interval),
        cmocka_unit_test(intervals_cover_their_share_of_heavy_tails),
        cmocka_unit_test(stale_jobs_are_forgotten),
        cmocka_unit_test(recent_jobs_count_more),
        cmocka_unit_test(names_with_other_digits_share_a_key),
        cmocka_unit_test(runs_are_told_from_networks_by_their_values),
        cmocka_unit_test(a_digest_is_a_key),
        cmocka_unit_test(early_failures_are_a_probability_and_leave_durations),
        cmocka_unit_test(jobs_that_were_cut_off_count_as_longer),
        cmocka_unit_test(sweeps_do_not_feign_precision),
        cmocka_unit_test(the_rest_of_a_job_follows_its_distribution),
        cmocka_unit_test(hostile_values_are_refused_and_leave_the_history),
        cmocka_unit_test(the_hour_of_the_day_is_a_key),
        cmocka_unit_test(one_job_moves_an_estimate_by_a_bounded_factor),
        cmocka_unit_test(any_order_and_size_of_durations_stays_finite),
        cmocka_unit_test(bad_options_are_refused),
        cmocka_unit_test(a_flood_of_names_leaves_the_keys_in_use),
        cmocka_unit_test(zeros_are_the_defaults),
        cmocka_unit_test(limits_are_part_of_the_allowed_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
