/* test_incentives.c — no strategy of a user gains by a false statement (INCENTIVES.md). A simulated cluster orders jobs
 * by the plugin's priority. One user tries ten strategies; all others are honest. The user's work is done when jobs
 * that ran long enough have completed it, and the time until then must not fall below that of honesty. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "slurm/decision.h"
#include "slurm/user_records.h"

enum { GPUS = 8, OTHERS = 400, TASKS = 24, MOST_JOBS = OTHERS + 40 * TASKS, SEEDS = 12, LIAR = 1 };

static const sl_site site = {.quantile = .95,
                             .margin = 1.1,
                             .startup_s = 300,
                             .priority_weight = 10000,
                             .order = SL_ORDER_SERVICE,
                             .shortest_s = 60,
                             .longest_s = 30 * 86400.0};

typedef struct strategy {
    const char *name;
    double stated;     /* stated steps, as a fraction of the true ones */
    double own_limit;  /* --time as a multiple of the true time; 0: none, so mdot's limit binds */
    bool is_doubtful;  /* a false .job, whose prediction carries a warning */
    bool is_cpu_only;  /* states no GPU, and needs some by other means */
    bool adds_gpus;    /* states one GPU, and asks for the true number after the submission */
    bool cancels_late; /* ends each job just before it completes, and finishes the rest with the next */
    int decoys;        /* honest short jobs with each task, for the user's record */
} strategy;

static const strategy strategies[] = {
    {.name = "honest", .stated = 1},
    {.name = "states a tenth of the steps", .stated = .1},
    {.name = "states one step", .stated = 1e-6},
    {.name = "states one step, with its own sufficient limit", .stated = 1e-6, .own_limit = 1.5},
    {.name = "states one step, with its own limit of twenty times the time", .stated = 1e-6, .own_limit = 20},
    {.name = "states ten times the steps", .stated = 10},
    {.name = "sends a false job", .stated = 1e-6, .is_doubtful = true, .own_limit = 1.5},
    {.name = "asks for no GPU", .stated = 1e-6, .is_cpu_only = true, .own_limit = 1.5},
    {.name = "adds GPUs after the submission", .stated = 1, .adds_gpus = true},
    {.name = "cancels jobs late", .stated = .5, .own_limit = 1.5, .cancels_late = true},
    {.name = "states a tenth of the steps, among many small honest jobs", .stated = .1, .decoys = 2},
};
enum { STRATEGIES = sizeof strategies / sizeof *strategies };

typedef struct sim_job {
    double submit_s, true_s, limit_s, predicted_s, start_s;
    int gpus, user, task; /* task: index of the user's work; -1 for others and decoys */
    uint32_t priority;
    bool is_done, is_running;
} sim_job;

static sim_job jobs[MOST_JOBS];
static int job_count;
static bool ignores_limits; /* gives priority by statements alone, as the plugin must not */
static uint64_t random_state;

static double uniform(void)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return ((double)(random_state >> 11) + .5) / 9007199254740992.0;
}

/* Submits a job as the strategy states it, in the way of sl_decide. */
static void submit(const strategy *s, sl_outcomes *outcomes, double now_s, double true_s, int gpus, int user, int task)
{
    assert_true(job_count < MOST_JOBS);
    double predicted_s = true_s * s->stated;
    double limit_s = 60 * ceil((1.3 * predicted_s * site.margin + site.startup_s) / 60);
    if (s->own_limit > 0) limit_s = 60 * ceil(s->own_limit * true_s / 60);
    bool has_priority = !s->is_doubtful && !s->is_cpu_only;
    double understatement = sl_outcomes_understatement(outcomes, (uint32_t)user, now_s);
    uint32_t binding_minutes = ignores_limits ? 1 : (uint32_t)(limit_s / 60);
    uint32_t priority = sl_priority(&site, predicted_s, binding_minutes, gpus, understatement);
    if (s->adds_gpus && gpus > 1) has_priority = false; /* the watching thread removes it with the update */
    jobs[job_count++] = (sim_job){.submit_s = now_s,
                                  .true_s = true_s,
                                  .limit_s = limit_s,
                                  .predicted_s = predicted_s,
                                  .gpus = gpus,
                                  .user = user,
                                  .task = task,
                                  .priority = has_priority ? priority : 0};
}

/* Starts waiting jobs by priority, then by time. A job that does not fit lets smaller ones pass. */
static void start_jobs(double now_s, int *free_gpus)
{
    for (;;) {
        int best = -1;
        for (int i = 0; i < job_count; i++) {
            const sim_job *j = &jobs[i];
            if (j->is_done || j->is_running || j->submit_s > now_s || j->gpus > *free_gpus) continue;
            if (best < 0 || j->priority > jobs[best].priority ||
                (j->priority == jobs[best].priority && j->submit_s < jobs[best].submit_s))
                best = i;
        }
        if (best < 0) return;
        jobs[best].is_running = true;
        jobs[best].start_s = now_s;
        *free_gpus -= jobs[best].gpus;
    }
}

/* Ends a job. Work cut off at the limit is submitted again with the true numbers and an empty checkpoint, because the
 * strategy has lost it; a late cancellation keeps the work. */
static void end_job(sim_job *j, const strategy *s, sl_outcomes *outcomes, double now_s, double *ends)
{
    static const strategy honest = {.stated = 1};
    bool is_cut = j->limit_s < j->true_s, is_cancelled = !is_cut && s->cancels_late && j->task >= 0;
    j->is_running = false;
    j->is_done = true;
    sl_outcomes_add(outcomes, (uint32_t)j->user, j->predicted_s, (now_s - j->start_s) * (is_cut ? 2 : 1), j->gpus,
                    !is_cut && !is_cancelled, now_s);
    if (j->task < 0) return;
    if (is_cut)
        submit(&honest, outcomes, now_s, j->true_s, j->gpus, j->user, j->task);
    else
        ends[j->task] = now_s;
}

/* Returns the mean time from submission to completion of the user's tasks. */
static double mean_time(const strategy *s, uint64_t seed)
{
    double ends[TASKS] = {0}, begins[TASKS], now_s = 0, sum = 0;
    int free_gpus = GPUS;
    sl_outcomes *outcomes = sl_outcomes_create();
    static const strategy honest = {.stated = 1};
    random_state = seed * 7919 + 17;
    job_count = 0;
    double arrival_s = 0;
    for (int i = 0; i < OTHERS; i++) { /* a load of about 0.9 */
        arrival_s += -log(uniform()) * 1900;
        submit(&honest, outcomes, arrival_s, 600 * exp(3.2 * uniform()), 1 << (int)(3 * uniform()), 2 + i % 20, -1);
    }
    for (int t = 0; t < TASKS; t++) {
        begins[t] = arrival_s * (t + uniform()) / (TASKS + 4);
        double true_s = 3600 * exp(2 * uniform());
        int gpus = 1 << (int)(3 * uniform());
        submit(s, outcomes, begins[t], true_s, gpus, LIAR, t);
        for (int d = 0; d < s->decoys; d++) submit(&honest, outcomes, begins[t], 300, 1, LIAR, -1);
    }
    for (;;) {
        start_jobs(now_s, &free_gpus);
        double next_s = INFINITY;
        int ending = -1;
        for (int i = 0; i < job_count; i++) {
            if (jobs[i].is_running) {
                double end_s = jobs[i].start_s + fmin(jobs[i].true_s, jobs[i].limit_s);
                if (end_s < next_s) next_s = end_s, ending = i;
            } else if (!jobs[i].is_done && jobs[i].submit_s > now_s && jobs[i].submit_s < next_s) {
                next_s = jobs[i].submit_s;
                ending = -1;
            }
        }
        if (!isfinite(next_s)) break;
        now_s = next_s;
        if (ending < 0) continue;
        free_gpus += jobs[ending].gpus;
        end_job(&jobs[ending], s, outcomes, now_s, ends);
        /* records change the priority of waiting jobs only when they are submitted again, as in Slurm */
    }
    for (int t = 0; t < TASKS; t++) {
        assert_true(ends[t] > begins[t]);
        sum += ends[t] - begins[t];
    }
    sl_outcomes_destroy(outcomes);
    return sum / TASKS;
}

static double mean_over_seeds(const strategy *s)
{
    double sum = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) sum += mean_time(s, seed) / SEEDS;
    return sum;
}

static void no_strategy_is_faster_than_honesty(void **state)
{
    (void)state;
    double sums[STRATEGIES];
    for (int i = 0; i < STRATEGIES; i++) sums[i] = mean_over_seeds(&strategies[i]);
    for (int i = 0; i < STRATEGIES; i++)
        print_message("%6.2f h (%+5.1f %%)  %s\n", sums[i] / 3600, 100 * (sums[i] / sums[0] - 1), strategies[i].name);
    for (int i = 1; i < STRATEGIES; i++)
        if (sums[i] < .99 * sums[0]) fail_msg("a user gains who %s", strategies[i].name);
}

/* The simulation can find a gain: if statements alone give the priority, lies are faster. */
static void a_priority_without_a_binding_limit_would_reward_lies(void **state)
{
    (void)state;
    const strategy *one_step = &strategies[3];
    assert_string_equal(one_step->name, "states one step, with its own sufficient limit");
    ignores_limits = true;
    double gain = 1 - mean_over_seeds(one_step) / mean_over_seeds(&strategies[0]);
    ignores_limits = false;
    print_message("%.1f %% faster by a lie if limits do not count\n", 100 * gain);
    assert_true(gain > .2);
    uint32_t honest = sl_priority(&site, 36000, 700, 1, 1), lie = sl_priority(&site, .1, 700, 1, 1);
    assert_true(lie >= honest);
    assert_true(lie - honest < 10);                               /* one step and a limit as long: the same priority */
    assert_true(sl_priority(&site, .1, 1, 1, 1) > honest + 3000); /* for the statement alone */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_strategy_is_faster_than_honesty),
        cmocka_unit_test(a_priority_without_a_binding_limit_would_reward_lies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
