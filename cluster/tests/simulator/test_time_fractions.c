/* test_time_fractions.c — Gavel's linear programs and AlloX' matching: cases worked by hand, properties of every
 * answer, and the published instances if ../shared exists. If the solver is absent, they report that, and the
 * remaining tests are skipped. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "simulator/core/workload.h"
#include "simulator/solve/linear.h"
#include "simulator/solve/time_fractions.h"

#ifdef SC_HAVE_JSON
#include <json.h>
#endif

enum { MOST_JOBS = 64, TYPES = 3 };

#define NEEDS_SOLVER                                                                                                   \
    do {                                                                                                               \
        if (!sc_linear_is_available()) {                                                                               \
            print_message("built without a solver of linear programs\n");                                              \
            skip();                                                                                                    \
        }                                                                                                              \
    } while (0)

static const double none_s[SC_MAX_TYPES] = {0}; /* every machine is free */

static void expect_near(double got, double want, double relative)
{
    if (!(fabs(got - want) <= relative * fabs(want))) fail_msg("%.12g, expected %.12g", got, want);
}

/* Two types with one GPU each, and two jobs, each twice as fast on another type. */
static const double mirrored[] = {2, 1, 1, 2};
static const sc_time_fractions two_jobs = {.jobs = 2,
                                           .types = 2,
                                           .speed = mirrored,
                                           .scale = (const double[]){1, 1},
                                           .weight = (const double[]){1, 1},
                                           .remaining = (const double[]){100, 300},
                                           .since_start_s = (const double[]){0, 0},
                                           .gpus = (const double[]){1, 1},
                                           .limit_s = 10};

static void a_program_is_solved_or_gives_the_reason(void **state)
{
    (void)state;
    sc_linear *l;
    double values[2], cost;
    assert_int_equal(sc_linear_create(&l, NULL), MDOT_OK);
    /* Maximise x + 2 y with x + y <= 4, y <= 3. */
    size_t x = sc_linear_add_column(l, -1, 0, INFINITY), y = sc_linear_add_column(l, -2, 0, 3);
    size_t row = sc_linear_add_row(l, -INFINITY, 4);
    sc_linear_add_term(l, row, x, 1);
    sc_linear_add_term(l, row, y, 1);
    mdot_error err = {0};
    mdot_status status = sc_linear_solve(l, 10, values, &cost, &err);
    if (!sc_linear_is_available()) {
        assert_int_equal(status, MDOT_UNSUPPORTED);
        assert_non_null(strstr(err.message, "CLP"));
        sc_linear_destroy(l);
        return;
    }
    assert_int_equal(status, MDOT_OK);
    expect_near(values[x], 1, 1e-9);
    expect_near(values[y], 3, 1e-9);
    expect_near(cost, -7, 1e-9);
    /* Work is counted, so that the answer is the same on every machine. */
    assert_int_equal(sc_linear_solve(l, 0, values, &cost, &err), MDOT_DEVICE);
    assert_non_null(strstr(err.message, "the work of 0 s"));
    row = sc_linear_add_row(l, 9, INFINITY);
    sc_linear_add_term(l, row, x, 1);
    assert_int_equal(sc_linear_solve(l, 10, values, &cost, &err), MDOT_OUT_OF_RANGE);
    sc_linear_destroy(l);
}

static void isolated_shares_are_equal_parts(void **state)
{
    (void)state;
    double fractions[4];
    sc_time_fractions_isolated(&two_jobs, fractions);
    for (size_t i = 0; i < 4; i++) expect_near(fractions[i], .5, 1e-12);
    sc_time_fractions wide = two_jobs;
    wide.scale = (const double[]){2, 1};
    sc_time_fractions_isolated(&wide, fractions);
    expect_near(fractions[0], .25, 1e-12);
    sc_time_fractions many = two_jobs;
    many.gpus = (const double[]){6, 2}; /* 3 and 1 for each job, scaled down to a sum of 1 */
    sc_time_fractions_isolated(&many, fractions);
    expect_near(fractions[0], .75, 1e-12);
    expect_near(fractions[1], .25, 1e-12);
}

static void hand_solved_programs_match(void **state)
{
    (void)state;
    NEEDS_SOLVER;
    double fractions[4], value;
    /* Each on its own type: speed 2, compared with 1.5 on the mean GPU. */
    assert_int_equal(sc_time_fractions_max_min(&two_jobs, fractions, &value, NULL), MDOT_OK);
    expect_near(value, 2 / 1.5, 1e-9);
    expect_near(fractions[0], 1, 1e-9);
    expect_near(fractions[3], 1, 1e-9);
    assert_int_equal(sc_time_fractions_sum(&two_jobs, fractions, &value, NULL), MDOT_OK);
    expect_near(value, 2, 1e-9);
    /* The longer job ends after 150 s, because 2 steps a second is the highest speed. */
    assert_int_equal(sc_time_fractions_makespan(&two_jobs, fractions, &value, NULL), MDOT_OK);
    expect_near(value, 150, 1e-9);
    /* Alone on half the cluster it has speed 1.5, here 2. */
    assert_int_equal(sc_time_fractions_finish_time(&two_jobs, fractions, &value, NULL), MDOT_OK);
    expect_near(value, .75, 1e-6);
}

static void shares_follow_weights_and_widths(void **state)
{
    (void)state;
    NEEDS_SOLVER;
    /* One type of 3 GPUs with equal speeds. throughput · scale / weight is equal, and all GPUs are used: 2 x / 1 = 1
     * · y / 2 → y = 4 x. However, y <= 1, so x is bounded by t = .5, and GPUs are left. */
    const double speed[] = {1, 1}, scale[] = {2, 1}, weight[] = {1, 2}, gpus[] = {3};
    sc_time_fractions p = two_jobs;
    p.types = 1;
    p.speed = speed;
    p.scale = scale;
    p.weight = weight;
    p.gpus = gpus;
    double fractions[2], value;
    assert_int_equal(sc_time_fractions_max_min(&p, fractions, &value, NULL), MDOT_OK);
    expect_near(value, .5, 1e-9);
    expect_near(fractions[1], 1, 1e-9);
    assert_true(fractions[0] >= .25 - 1e-9);
}

static void a_matching_is_optimal(void **state)
{
    (void)state;
    NEEDS_SOLVER;
    /* Compares with every assignment of 5 jobs to 2 + 1 machines. The best order on each machine is shortest first. */
    uint64_t random = 5;
    const double machines[] = {2, 1};
    for (int round = 0; round < 20; round++) {
        double time_s[10], best = INFINITY, sum_s;
        for (size_t i = 0; i < 10; i++) time_s[i] = 1 + (double)(sc_random_next(&random) % 100);
        for (int code = 0; code < 243; code++) {
            double total = 0;
            for (int machine = 0; machine < 3; machine++) {
                double times[5], position = 0;
                int count = 0;
                for (int job = 0, rest = code; job < 5; job++, rest /= 3) {
                    if (rest % 3 != machine) continue;
                    int i = count++;
                    double item = time_s[job * 2 + (machine == 2)];
                    for (; i > 0 && times[i - 1] > item; i--) times[i] = times[i - 1];
                    times[i] = item;
                }
                for (int i = 0; i < count; i++) total += position += times[i];
            }
            best = fmin(best, total);
        }
        sc_match matches[5];
        assert_int_equal(sc_match_jobs(5, 2, time_s, none_s, machines, 10, matches, &sum_s, NULL), MDOT_OK);
        expect_near(sum_s, best, 1e-9);
        double again = 0;
        for (size_t i = 0; i < 5; i++) again += matches[i].from_end * time_s[i * 2 + matches[i].type];
        expect_near(again, best, 1e-9);
    }
    sc_match match;
    double sum_s;
    assert_int_equal(sc_match_jobs(1, 1, (double[]){INFINITY}, none_s, machines, 10, &match, &sum_s, NULL),
                     MDOT_OUT_OF_RANGE);
}

#ifdef SC_HAVE_JSON

typedef struct instance {
    double speed[MOST_JOBS * TYPES], scale[MOST_JOBS], weight[MOST_JOBS], remaining[MOST_JOBS], since_s[MOST_JOBS];
    double gpus[TYPES];
    size_t jobs;
    struct json_object *expected;
} instance;

static double number(struct json_object *object, const char *key)
{
    struct json_object *value;
    assert_true(json_object_object_get_ex(object, key, &value));
    return json_object_get_double(value);
}

static struct json_object *member(struct json_object *object, const char *key)
{
    struct json_object *value;
    return json_object_object_get_ex(object, key, &value) ? value : NULL;
}

static void read_instance(struct json_object *object, instance *out)
{
    struct json_object *jobs = member(object, "jobs");
    out->jobs = json_object_array_length(jobs);
    assert_in_range(out->jobs, 1, MOST_JOBS);
    for (size_t type = 0; type < TYPES; type++)
        out->gpus[type] = json_object_get_double(json_object_array_get_idx(member(object, "workers"), type));
    for (size_t i = 0; i < out->jobs; i++) {
        struct json_object *job = json_object_array_get_idx(jobs, i);
        for (size_t type = 0; type < TYPES; type++)
            out->speed[i * TYPES + type] =
                json_object_get_double(json_object_array_get_idx(member(job, "throughput"), type));
        out->scale[i] = number(job, "scale_factor");
        out->weight[i] = number(job, "weight");
        out->remaining[i] = number(job, "steps_remaining");
        out->since_s[i] = number(job, "time_since_start");
    }
    out->expected = member(object, "expected");
}

static void check_fractions(const sc_time_fractions *p, const double *fractions)
{
    for (size_t job = 0; job < p->jobs; job++) {
        double sum = 0;
        for (size_t type = 0; type < TYPES; type++) sum += fractions[job * TYPES + type];
        assert_true(sum <= 1 + 1e-6);
    }
    for (size_t type = 0; type < TYPES; type++) {
        double sum = 0;
        for (size_t job = 0; job < p->jobs; job++) sum += fractions[job * TYPES + type] * p->scale[job];
        assert_true(sum <= p->gpus[type] + 1e-6);
    }
}

static void check_instance(const instance *input)
{
    sc_time_fractions p = {.jobs = input->jobs,
                           .types = TYPES,
                           .speed = input->speed,
                           .scale = input->scale,
                           .weight = input->weight,
                           .remaining = input->remaining,
                           .since_start_s = input->since_s,
                           .gpus = input->gpus,
                           .limit_s = 60};
    double fractions[MOST_JOBS * TYPES], value;
    sc_time_fractions_isolated(&p, fractions);
    for (size_t i = 0; i < input->jobs; i++)
        expect_near(
            sc_time_fractions_throughput(&p, fractions, i),
            json_object_get_double(json_object_array_get_idx(member(input->expected, "isolated_throughput"), i)), 1e-9);
    static const struct {
        const char *key;
        mdot_status (*solve)(const sc_time_fractions *p, double *fractions, double *value, mdot_error *err);
    } programs[] = {{"max_min_lp", sc_time_fractions_max_min},
                    {"max_sum_norm_throughput", sc_time_fractions_sum},
                    {"min_makespan_s", sc_time_fractions_makespan},
                    {"ftf_rho", sc_time_fractions_finish_time}};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(programs[i].solve(&p, fractions, &value, NULL), MDOT_OK);
        expect_near(value, number(input->expected, programs[i].key), 1e-4);
        check_fractions(&p, fractions);
    }
    if (member(input->expected, "allox_sum_completion_s") == NULL) return;
    double time_s[MOST_JOBS * TYPES];
    sc_match matches[MOST_JOBS];
    for (size_t i = 0; i < input->jobs * TYPES; i++) time_s[i] = input->remaining[i / TYPES] / input->speed[i];
    assert_int_equal(sc_match_jobs(input->jobs, TYPES, time_s, none_s, input->gpus, 60, matches, &value, NULL),
                     MDOT_OK);
    expect_near(value, number(input->expected, "allox_sum_completion_s"), 1e-6);
}

static void published_optima_are_reached(void **state)
{
    (void)state;
    NEEDS_SOLVER;
    const char *path = MDOT_SHARED_DATA "/simulators/gavel_oneshot.json";
    if (access(path, R_OK) != 0) {
        print_message("%s is absent\n", path);
        skip();
    }
    struct json_object *all = json_object_from_file(path);
    assert_non_null(all);
    for (size_t i = 0; i < json_object_array_length(all); i++) {
        instance input;
        read_instance(json_object_array_get_idx(all, i), &input);
        check_instance(&input);
    }
    assert_true(json_object_array_length(all) >= 6);
    json_object_put(all);
}

#else

static void published_optima_are_reached(void **state)
{
    (void)state;
    print_message("built without json-c\n");
    skip();
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_is_solved_or_gives_the_reason),
        cmocka_unit_test(isolated_shares_are_equal_parts),
        cmocka_unit_test(hand_solved_programs_match),
        cmocka_unit_test(shares_follow_weights_and_widths),
        cmocka_unit_test(a_matching_is_optimal),
        cmocka_unit_test(published_optima_are_reached),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
