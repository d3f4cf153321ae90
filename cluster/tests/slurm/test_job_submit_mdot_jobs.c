/* test_job_submit_mdot_jobs.c — the plugin in slurmctld: changes to jobs and records by the plugin's thread.
 * fake/slurmctld.c takes the place of slurmctld. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/simulator/support/numbers.h"
#include "tests/slurm/fake/plugin_fixture.h"
#include "tests/slurm/support/small_job.h"
#include "tests/support/process.h"

static int start(void **state)
{
    plugin_set_up(state);
    plugin_write_site(MDOT_SHIPPED_PREDICTOR);
    small_job_write_file(outcomes_path, "another file\n", 13); /* they are logged, and replaced later */
    small_job_write_file(history_path, "another file\n", 13);
    assert_int_equal(init(), SLURM_SUCCESS);
    fake_wait_for_round();
    expect_contains(calls.log, "mdot_outcomes:1: not a record of outcomes");
    expect_contains(calls.log, "mdot_history");
    return 0;
}

/* The thread has seen the cluster before. It leaves jobs and their records alone until a request comes, because this
 * slurmctld may be a backup controller, and the other one writes the records. */
static void the_first_submission_gets_a_limit(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++) fake_pass_time();
    assert_int_equal(calls.jobs, 0);
    char text[128];
    int bytes =
        snprintf(text, sizeof text, "mdot-outcomes 1\n%d 72000 792000 %lld\n", LATE_USER, (long long)fake.now_s);
    small_job_write_file(outcomes_path, text, (size_t)bytes);
    job_desc_msg_t first = plugin_make_request(), of_late_user = plugin_make_request();
    plugin_submit("batch=32,steps=10", &first);
    assert_true(first.time_limit != NO_VAL);
    assert_string_equal(first.partition, "b");
    double honest = plugin_number_of(&first, " priority=");
    fake_wait_for_round();
    assert_int_equal(calls.jobs, 1);
    plugin_submit_as(LATE_USER, "batch=32,steps=10", &of_late_user);
    assert_true(plugin_number_of(&of_late_user, " priority=") < honest);
}

static void a_job_that_asks_for_more_loses_its_priority(void **state)
{
    (void)state;
    static char comment[] = "mdot: gpu=T4 gpus=2 step_ms=1 priority=500 binding_min=10", one[] = "gres:gpu:1",
                two[] = "gres:gpu:2", three[] = "gres:gpu:3", foreign[] = "by mdot: gpus=2 priority=5 binding_min=1",
                text[] = "mdot: gpus=x priority=500 binding_min=10",
                infinite[] = "mdot: gpus=2 priority=5 binding_min=inf", short_one[] = "mdot: gpus=2 priority=5",
                partition[] = "a";
    const slurm_job_info_t waiting = {.job_id = 42,
                                      .job_state = JOB_PENDING,
                                      .admin_comment = comment,
                                      .site_factor = NICE_OFFSET + 500,
                                      .tres_per_node = one,
                                      .num_nodes = 2,
                                      .partition = partition,
                                      .time_limit = 10,
                                      .time_min = NO_VAL,
                                      .sockets_per_node = NO_VAL16,
                                      .num_tasks = NO_VAL};
    static const char *const reasons[] = {
        "unchanged",        "more GPUs",       "more nodes",     "longer",    "without limit",  "running",
        "without priority", "foreign comment", "without number", "no number", "not finite",     "requeued",
        "no nodes",         "sockets",         "tasks",          "of all",    "unknown sockets"};
    slurm_job_info_t jobs[17];
    for (int i = 0; i < 17; i++) jobs[i] = waiting;
    jobs[1].tres_per_node = two;
    jobs[2].num_nodes = 3;
    jobs[3].time_limit = 11;
    jobs[4].time_limit = INFINITE;
    jobs[5].job_state = JOB_RUNNING, jobs[5].time_limit = 11;
    jobs[6].site_factor = NICE_OFFSET, jobs[6].time_limit = 11;
    jobs[7].admin_comment = foreign;
    jobs[8].admin_comment = short_one, jobs[8].time_limit = 11;
    jobs[9].admin_comment = text, jobs[9].time_limit = 11;
    jobs[10].admin_comment = infinite, jobs[10].tres_per_node = three;
    jobs[11].job_state = JOB_PENDING | JOB_REQUEUE, jobs[11].time_limit = 11;
    jobs[12].num_nodes = NO_VAL, jobs[12].tres_per_node = three;
    jobs[13].tres_per_node = NULL, jobs[13].tres_per_socket = one, jobs[13].sockets_per_node = 2,
    jobs[13].num_tasks = 4;
    jobs[14].tres_per_node = NULL, jobs[14].tres_per_task = one, jobs[14].num_tasks = 3;
    jobs[15].tres_per_job = three, jobs[15].tres_per_node = NULL;
    jobs[16].tres_per_node = NULL, jobs[16].tres_per_socket = one;
    static const bool loses[] = {false, true,  true, true, true, false, false, false, false,
                                 false, false, true, true, true, true,  true,  false};
    for (int i = 0; i < 17; i++) {
        fake.jobs[0] = jobs[i];
        fake.job_count = 1;
        calls.updates = 0;
        fake_modify();
        if (calls.updates != loses[i]) fail_msg("%s: %d updates", reasons[i], calls.updates);
        if (!loses[i]) continue;
        assert_int_equal(calls.update.job_id, 42);
        expect_number(calls.update.site_factor, NICE_OFFSET);
        expect_number(calls.update.time_limit, NO_VAL); /* nothing else changes */
    }
    expect_contains(calls.log, "its priority is removed");
    fake.jobs[0] = jobs[1];
    fake.update_result = SLURM_ERROR;
    fake_modify();
    expect_contains(calls.log,
                    "job 42 asks for more than at its submission: its priority is removed, but the update failed");
    fake.update_result = SLURM_SUCCESS;
    fake.jobs[0] = waiting;
    fake.partitions[0].over_time_limit = INFINITE16; /* the limit no longer ends the job */
    fake_pass_time();
    calls.updates = 0;
    fake_modify();
    assert_int_equal(calls.updates, 1);
    fake.partitions[0].over_time_limit = NO_VAL16; /* as slurm.conf has it */
    slurm_conf.over_time_limit = 1;
    fake_pass_time();
    fake_modify();
    assert_int_equal(calls.updates, 2);
    slurm_conf.over_time_limit = 0;
    fake_pass_time();
    fake_modify();
    assert_int_equal(calls.updates, 2);
}

/* A waiting job with the plugin's limit of 500 minutes. */
static slurm_job_info_t limited_job(void)
{
    static char comment[] = "mdot: gpu=T4 gpus=1 limit_min=500", one[] = "gres:gpu:1", partition[] = "a";
    return (slurm_job_info_t){.job_id = 42,
                              .job_state = JOB_PENDING,
                              .admin_comment = comment,
                              .site_factor = NICE_OFFSET,
                              .tres_per_node = one,
                              .partition = partition,
                              .time_limit = 500,
                              .time_min = NO_VAL,
                              .sockets_per_node = NO_VAL16,
                              .num_nodes = 1,
                              .num_tasks = NO_VAL};
}

static void a_later_reservation_shortens_the_limit(void **state)
{
    (void)state;
    static int32_t nodes[] = {1, 1, -1}, others[] = {2, 4, -1};
    fake.jobs[0] = limited_job();
    fake.job_count = 1;
    fake.reservation_count = 1;
    fake.reservations[0] =
        (reserve_info_t){.start_time = fake.now_s + 1000, .end_time = fake.now_s + 9000, .node_inx = others};
    fake_pass_time();
    fake_modify();
    assert_int_equal(calls.updates, 0);
    const struct {
        time_t start_s;
        uint64_t flags;
        int32_t *node_inx;
        bool shortens;
    } cases[] = {{1000, RESERVE_FLAG_MAINT, nodes, true},     {40000, RESERVE_FLAG_MAINT, nodes, false},
                 {-1000, RESERVE_FLAG_MAINT, nodes, false},   {-1000, RESERVE_FLAG_DAILY, nodes, true},
                 {-1000, RESERVE_FLAG_MAGNETIC, nodes, true}, {90000, RESERVE_FLAG_TIME_FLOAT, nodes, true},
                 {1000, RESERVE_FLAG_ANY_NODES, NULL, true},  {1000, RESERVE_FLAG_FLEX, others, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fake.reservations[0] = (reserve_info_t){.start_time = fake.now_s + cases[i].start_s,
                                                .end_time = fake.now_s + 100000,
                                                .flags = cases[i].flags,
                                                .node_inx = cases[i].node_inx};
        fake_pass_time();
        calls.updates = 0;
        fake_modify();
        if (calls.updates != cases[i].shortens) fail_msg("reservation %zu: %d updates", i, calls.updates);
        if (!cases[i].shortens) continue;
        assert_int_equal(calls.update.job_id, 42);
        assert_int_equal(calls.update.time_limit, 30); /* the partition's default */
        assert_int_equal(calls.update.time_min, NO_VAL);
    }
    fake.reservations[0].flags = RESERVE_FLAG_MAINT, fake.reservations[0].start_time = fake.now_s + 1000;
    fake.reservations[0].node_inx = nodes;
    fake.jobs[0].time_min = 40;
    fake_pass_time();
    fake_modify();
    assert_int_equal(calls.update.time_min, 30);
    fake.jobs[0].time_limit = 501; /* the user's, or an operator's */
    calls.updates = 0;
    fake_modify();
    fake.jobs[0].time_limit = 500, fake.jobs[0].job_state = JOB_RUNNING;
    fake_modify();
    fake.jobs[0].job_state = JOB_PENDING, fake.has_no_reservations = true; /* the snapshot stays */
    assert_int_equal(calls.updates, 0);
}

static uint32_t modified_limit(job_desc_msg_t change)
{
    job_desc_msg_t request;
    slurm_init_job_desc_msg(&request);
    request.job_id = change.job_id;
    request.job_id_str = change.job_id_str;
    request.partition = change.partition;
    request.reservation = change.reservation;
    request.deadline = change.deadline;
    if (change.time_limit != 0) request.time_limit = change.time_limit;
    job_modify(&request, NULL, 0, NULL);
    fake_wait_for_round();
    return request.time_limit;
}

static void a_change_takes_an_acceptable_limit_along(void **state)
{
    (void)state;
    static char b[] = "b", ab[] = "a,b", id[] = "42_7", other_id[] = "43", lecture[] = "lecture";
    fake.jobs[0] = limited_job();
    fake.job_count = 1;
    fake.partitions[1].max_time = 60;
    fake_pass_time();
    fake_modify();
    assert_int_equal(modified_limit((job_desc_msg_t){.job_id = 42}), NO_VAL);
    assert_int_equal(modified_limit((job_desc_msg_t){.job_id = 42, .partition = b}), 60);
    assert_int_equal(modified_limit((job_desc_msg_t){.job_id = 42, .partition = ab}), 60);
    assert_int_equal(modified_limit((job_desc_msg_t){.job_id = 42, .partition = b, .time_limit = 70}), 70);
    assert_int_equal(modified_limit((job_desc_msg_t){.job_id = NO_VAL, .job_id_str = id, .partition = b}), 60);
    assert_int_equal(modified_limit((job_desc_msg_t){.job_id = NO_VAL, .job_id_str = other_id, .partition = b}),
                     NO_VAL);
    assert_int_equal(modified_limit((job_desc_msg_t){.job_id = 42, .reservation = lecture}), 30);
    assert_int_equal(modified_limit((job_desc_msg_t){.job_id = 42, .deadline = fake.now_s + 1500}), 24);
    fake.jobs[0].time_limit = 501; /* not the plugin's */
    fake_modify();
    assert_int_equal(modified_limit((job_desc_msg_t){.job_id = 42, .partition = b}), NO_VAL);
}

/* A job of one GPU that ends at `end_s`. It was predicted to take 1000 s, and ran 3000 s. */
static slurm_job_info_t ended_job(uint32_t user, time_t end_s)
{
    static char comment[] = "mdot: gpu=T4 gpus=2 total_s=1000.0 priority=5 binding_min=10", one[] = "gres:gpu:1",
                name[] = "train";
    return (slurm_job_info_t){.user_id = user,
                              .job_state = JOB_COMPLETE,
                              .admin_comment = comment,
                              .name = name,
                              .tres_per_node = one,
                              .num_nodes = 1,
                              .num_tasks = 1,
                              .sockets_per_node = NO_VAL16,
                              .submit_time = end_s - 4000,
                              .start_time = end_s - 3000,
                              .end_time = end_s};
}

static void read_outcome(uint32_t user, double *out_predicted, double *out_excess)
{
    char line[256];
    unsigned found;
    double predicted, excess;
    FILE *file = fopen(outcomes_path, "r");
    assert_non_null(file);
    *out_predicted = *out_excess = 0;
    while (fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "%u %lf %lf", &found, &predicted, &excess) == 3 && found == user)
            *out_predicted = predicted, *out_excess = excess;
    fclose(file);
}

/* The outcome of one job in a separate period. Each case has another user. */
static void expect_outcome(slurm_job_info_t job, double predicted, double excess)
{
    static uint32_t user = 5000;
    double of_file, beyond;
    job.user_id = user++;
    fake.jobs[0] = job;
    fake.job_count = 1;
    fake.now_s += 10;
    fake_modify();
    read_outcome(job.user_id, &of_file, &beyond);
    if (of_file != predicted || beyond != excess)
        fail_msg("user %u: %g and %g s instead of %g and %g s", job.user_id, of_file, beyond, predicted, excess);
}

static void outcomes_of_jobs_are_remembered_by_user(void **state)
{
    (void)state;
    static char foreign[] = "total_s=1000 gpus=2", no_total[] = "mdot: gpus=2", no_gpus[] = "mdot: x total_s=1000";
    fake_modify();
    time_t end_s = fake.now_s;
    slurm_job_info_t job = ended_job(0, end_s);
    expect_outcome(job, 2000, 4000);
#define CASE(field, value, predicted, excess)                                                                          \
    do {                                                                                                               \
        job = ended_job(0, fake.now_s);                                                                                \
        job.field = value;                                                                                             \
        expect_outcome(job, predicted, excess);                                                                        \
    } while (0)
    CASE(job_state, JOB_TIMEOUT, 2000, 10000); /* it would have run on */
    CASE(job_state, JOB_CANCELLED, 2000, 4000);
    CASE(job_state, JOB_COMPLETE | JOB_COMPLETING, 2000, 4000);
    CASE(job_state, JOB_RUNNING, 0, 0);
    CASE(job_state, JOB_SUSPENDED, 0, 0);
    CASE(start_time, 0, 0, 0);
    CASE(start_time, fake.now_s, 0, 0);
    CASE(start_time, fake.now_s - 500, 1000, 0);
    CASE(admin_comment, foreign, 0, 0);
    CASE(admin_comment, no_total, 0, 0);
    CASE(admin_comment, no_gpus, 0, 0);
    CASE(admin_comment, NULL, 0, 0);
#undef CASE
    job = ended_job(0, fake.now_s);
    job.job_state = JOB_FAILED;
    job.start_time = fake.now_s - 500; /* cut off before the prediction: no evidence */
    expect_outcome(job, 0, 0);
}

static void each_job_counts_in_the_period_of_its_end(void **state)
{
    (void)state;
    enum { BEFORE = 6000, FIRST, LAST, NEXT, USERS };
    double predicted[USERS - BEFORE], excess;
    fake_modify();
    time_t start = fake.now_s;
    const time_t ends[] = {start - 1, start, start + 9, start + 10};
    for (uint32_t i = 0; i < 4; i++) fake.jobs[i] = ended_job(BEFORE + i, ends[i]);
    fake.job_count = 4;
    fake.now_s = start + 10;
    fake_modify();
    fake_modify(); /* of an empty period */
    for (uint32_t i = 0; i < 4; i++) read_outcome(BEFORE + i, &predicted[i], &excess);
    expect_number(predicted[0], 0);
    expect_number(predicted[1], 2000);
    expect_number(predicted[2], 2000);
    expect_number(predicted[3], 0);
    fake.now_s = start + 20;
    fake_modify();
    for (uint32_t i = 0; i < 4; i++) read_outcome(BEFORE + i, &predicted[i], &excess);
    expect_number(predicted[0], 0);
    expect_number(predicted[1], 2000);
    expect_number(predicted[2], 2000);
    expect_number(predicted[3], 2000);
    fake.has_no_jobs = true; /* a failed request leaves the period open */
    fake.jobs[0] = ended_job(BEFORE, start + 25);
    fake.now_s = start + 30;
    fake_modify();
    fake.has_no_jobs = false;
    fake.now_s = start + 40;
    fake_modify();
    read_outcome(BEFORE, &predicted[0], &excess);
    expect_number(predicted[0], 2000);
}

/* The file of outcomes appears when the first job with a prediction ends. Jobs that lack one leave it alone. */
static void outcomes_are_written_after_a_job_with_a_prediction(void **state)
{
    (void)state;
    fake_modify();
    for (int extended = 0; extended < 2; extended++) {
        unlink(outcomes_path);
        fake.jobs[0] = ended_job(6100, fake.now_s);
        if (!extended) fake.jobs[0].admin_comment = NULL;
        fake.job_count = 1;
        fake.now_s += 10;
        fake_modify();
        assert_int_equal(access(outcomes_path, F_OK) == 0, extended);
    }
}

/* The estimate for the next job of a user and name, in seconds, with its early failures; 0 if there is none. */
static double known_duration(uint32_t user, const char *name, double *out_failures)
{
    job_desc_msg_t r = plugin_make_request();
    r.name = strdup(name);
    plugin_submit_as(user, "", &r);
    assert_non_null(r.admin_comment);
    const char *cursor = strstr(r.admin_comment, " history_s="), *subject = strstr(r.admin_comment, " early_failure=");
    double seconds = cursor == NULL ? 0 : strtod(cursor + strlen(" history_s="), NULL);
    *out_failures = subject == NULL ? 0 : strtod(subject + strlen(" early_failure="), NULL);
    plugin_free_request(&r);
    return seconds;
}

/* The estimate after eight such jobs of a new user and name. */
static double learned_duration(slurm_job_info_t job, double *out_failures)
{
    static uint32_t user = 7000;
    char name[] = "job of A";
    name[7] = (char)(name[7] + ++user % 26);
    for (uint32_t i = 0; i < 8; i++) {
        job.user_id = user;
        job.name = name;
        fake.jobs[i] = job;
    }
    fake.job_count = 8;
    fake.now_s += 10;
    fake_modify();
    return known_duration(user, name, out_failures);
}

static void durations_of_all_jobs_with_gpus_are_remembered(void **state)
{
    (void)state;
    double failures;
    static char mixed[] = "gres:gpu:t4:1,gres:gpu:a100:1", nothing[] = "gres:nic:1";
    fake_modify();
    slurm_job_info_t job = ended_job(0, fake.now_s);
    job.admin_comment = NULL;
    double seconds = learned_duration(job, &failures);
    assert_true(seconds > 2000);
    assert_true(seconds < 3500);
    assert_true(failures < .2); /* other users' jobs count a little */
#define CASE(field, value) (job = ended_job(0, fake.now_s), job.field = value, learned_duration(job, &failures))
    assert_true(CASE(job_state, JOB_COMPLETE | JOB_COMPLETING) > 2000);
    expect_number(CASE(job_state, JOB_RUNNING), 0);
    expect_number(CASE(job_state, JOB_SUSPENDED), 0);
    expect_number(CASE(start_time, 0), 0);
    expect_number(CASE(start_time, fake.now_s), 0);
    expect_number(CASE(tres_per_node, mixed), 0);
    expect_number(CASE(tres_per_node, nothing), 0);
    expect_number(CASE(end_time, fake.now_s + 10), 0);
    expect_number(CASE(end_time, fake.now_s - 1), 0);
    assert_true(CASE(start_time, fake.now_s - 300) < 1000);
    static const struct {
        uint32_t state;
        bool is_failure; /* otherwise the limit ended the job, which would have run on */
    } ends[] = {{JOB_FAILED, true},    {JOB_OOM, true},      {JOB_CANCELLED, true}, {JOB_NODE_FAIL, true},
                {JOB_PREEMPTED, true}, {JOB_TIMEOUT, false}, {JOB_DEADLINE, false}};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        static char name[] = "end of A"; /* one complete job, and then some that end after 100 s */
        name[7] = (char)('A' + i);
        for (uint32_t j = 0; j < 8; j++) {
            fake.jobs[j] = ended_job(7100 + (uint32_t)i, fake.now_s);
            fake.jobs[j].name = name;
            if (j == 0) continue;
            fake.jobs[j].job_state = ends[i].state;
            fake.jobs[j].start_time = fake.now_s - 100;
        }
        fake.now_s += 10;
        fake_modify();
        known_duration(7100 + (uint32_t)i, name, &failures);
        if ((failures > .4) != ends[i].is_failure) fail_msg("state %u: failures %g", ends[i].state, failures);
    }
#undef CASE
}

static void the_history_is_written_every_five_minutes(void **state)
{
    (void)state;
    fake_modify();
    fake.monotonic_s += 300;
    fake_modify(); /* jobs of earlier tests */
    fake.jobs[0] = ended_job(8000, fake.now_s);
    fake.job_count = 1;
    fake.now_s += 10;
    unlink(history_path);
    fake_modify();
    assert_int_not_equal(access(history_path, F_OK), 0);
    fake.monotonic_s += 299;
    fake_modify();
    assert_int_not_equal(access(history_path, F_OK), 0);
    fake.monotonic_s += 1;
    fake_modify();
    assert_int_equal(access(history_path, F_OK), 0);
    unlink(history_path);
    fake.monotonic_s += 1000;
    fake_modify(); /* nothing is new */
    assert_int_not_equal(access(history_path, F_OK), 0);
    fake.jobs[0] = ended_job(8000, fake.now_s);
    fake.jobs[0].tres_per_node = NULL; /* a job without GPUs */
    fake.now_s += 10;
    fake_modify();
    assert_int_not_equal(access(history_path, F_OK), 0);
}

/* A folder stands where the plugin writes. */
static void faults_of_the_records_are_logged(void **state)
{
    (void)state;
    fake_modify();
    unlink(outcomes_path);
    unlink(history_path);
    assert_int_equal(mkdir(outcomes_path, 0700), 0);
    assert_int_equal(mkdir(history_path, 0700), 0);
    fake.jobs[0] = ended_job(8050, fake.now_s);
    fake.job_count = 1;
    fake.now_s += 10;
    fake.monotonic_s += 300;
    fake_modify();
    expect_contains(calls.log, "mdot_outcomes");
    expect_contains(calls.log, "mdot_history");
    assert_int_equal(rmdir(outcomes_path), 0);
    assert_int_equal(rmdir(history_path), 0);
}

static void jobs_are_read_every_fifth_round(void **state)
{
    (void)state;
    fake_modify();
    int jobs = calls.jobs, partitions = calls.partitions;
    for (int i = 0; i < 10; i++) fake_pass_time();
    assert_int_equal(calls.partitions - partitions, 10);
    assert_int_equal(calls.jobs - jobs, 2);
    assert_int_equal(calls.unfreed, 0);
}

static void unloading_writes_the_history_and_loading_goes_on(void **state)
{
    (void)state;
    fake.monotonic_s += 300;
    fake_modify();
    fake.jobs[0] = ended_job(8100, fake.now_s);
    fake.job_count = 1;
    fake.now_s += 10;
    fake_modify(); /* writes */
    unlink(history_path);
    fake.jobs[0] = ended_job(8200, fake.now_s);
    fake.now_s += 10;
    fake_modify();
    assert_int_not_equal(access(history_path, F_OK), 0);
    fini();
    for (struct timespec wait = {0, 1000000}; access(history_path, F_OK) != 0;) nanosleep(&wait, NULL);
    calls.log[0] = '\0';
    assert_int_equal(init(), SLURM_SUCCESS);
    fake_wait_for_round();
    assert_string_equal(calls.log, ""); /* the files are still open */
    double failures;
    assert_true(fabs(known_duration(8200, "train", &failures) - 3000) < 1000);
}

int main(void)
{
    alarm(240); /* a deadlock ends the program, also on a busy machine before the limit of ctest */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_first_submission_gets_a_limit, plugin_reset),
        cmocka_unit_test_setup(a_job_that_asks_for_more_loses_its_priority, plugin_reset),
        cmocka_unit_test_setup(a_later_reservation_shortens_the_limit, plugin_reset),
        cmocka_unit_test_setup(a_change_takes_an_acceptable_limit_along, plugin_reset),
        cmocka_unit_test_setup(outcomes_of_jobs_are_remembered_by_user, plugin_reset),
        cmocka_unit_test_setup(each_job_counts_in_the_period_of_its_end, plugin_reset),
        cmocka_unit_test_setup(outcomes_are_written_after_a_job_with_a_prediction, plugin_reset),
        cmocka_unit_test_setup(durations_of_all_jobs_with_gpus_are_remembered, plugin_reset),
        cmocka_unit_test_setup(the_history_is_written_every_five_minutes, plugin_reset),
        cmocka_unit_test_setup(faults_of_the_records_are_logged, plugin_reset),
        cmocka_unit_test_setup(jobs_are_read_every_fifth_round, plugin_reset),
        cmocka_unit_test_setup(unloading_writes_the_history_and_loading_goes_on, plugin_reset),
    };
    return cmocka_run_group_tests(tests, start, plugin_tear_down);
}
