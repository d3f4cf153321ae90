/* test_job_submit_mdot.c — the plugin in slurmctld: start, snapshot of the cluster, and changed requests.
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
#include <signal.h>
#include <unistd.h>

#include "slurm/user_records.h"
#include "tests/simulator/support/numbers.h"
#include "tests/slurm/fake/plugin_fixture.h"
#include "tests/slurm/support/small_job.h"
#include "tests/support/process.h"

enum { FIRST_NODE_OF_B = 2, STEPS_IN_DAYS = 1000000000 };

/* ---- Start ------------------------------------------------------------------------------------------------------- */

/* Writes the records of the users before the thread starts: one ran eleven times as long as stated, and one has jobs
 * of an hour. */
static void write_records(void)
{
    char text[128];
    int bytes = snprintf(text, sizeof text, "mdot-outcomes 1\n%d 72000 792000 %lld\n", LATE_USER,
                         (long long)fake.now_s + 1000000);
    small_job_write_file(outcomes_path, text, (size_t)bytes);
    sl_durations *durations = sl_durations_create();
    sl_submission submission = {.per_node = "gres:gpu:1", .user = KNOWN_USER, .name = "train"};
    sl_gpus gpus = sl_gpus_of(&submission);
    char user[SL_USER_BYTES];
    mdot_history_job job = sl_durations_job(&submission, &gpus, (double)fake.now_s - 9000, user);
    for (int i = 0; i < 9; i++)
        sl_durations_add(durations, &job, MDOT_ENDED_COMPLETED, 3600, (double)fake.now_s - 5000);
    assert_int_equal(sl_durations_save(durations, history_path, NULL), MDOT_OK);
    sl_durations_destroy(durations);
}

static void the_thread_starts_with_the_plugin(void **state)
{
    (void)state;
    sigset_t before, after;
    write_records();
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    assert_int_equal(init(), SLURM_SUCCESS);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    assert_int_equal(sigismember(&before, SIGTERM), sigismember(&after, SIGTERM));
    fake_wait_for_round();
    expect_contains(calls.log, "mdot.conf");
    assert_null(strstr(calls.log, "mdot_outcomes"));
    assert_null(strstr(calls.log, "mdot_history"));
    assert_int_equal(calls.partitions, 1);
    assert_int_equal(calls.jobs, 0); /* this slurmctld may be a backup */
    assert_true(calls.blocks_signals);
    expect_number(calls.waited_s, 2);
}

static void an_unloaded_plugin_accepts_requests(void **state)
{
    (void)state;
    job_desc_msg_t request = plugin_make_request();
    request.admin_comment = strdup("mdot: forged");
    fini();
    assert_int_equal(job_submit(&request, USER, NULL), SLURM_SUCCESS);
    assert_null(request.admin_comment);
    request.admin_comment = strdup("mdot: forged");
    assert_int_equal(job_modify(&request, NULL, USER, NULL), SLURM_SUCCESS);
    assert_null(request.admin_comment);
    plugin_free_request(&request);
    assert_int_equal(init(), SLURM_SUCCESS);
    fake_wait_for_round();
    assert_int_equal(calls.jobs, 1);
}

static void without_files_a_request_only_loses_the_parcel(void **state)
{
    (void)state;
    job_desc_msg_t request = plugin_make_request(), plain = plugin_make_request();
    plugin_submit("batch=32,steps=10", &request);
    expect_contains(calls.log, "no prediction: no predictor is loaded");
    assert_int_equal(request.spank_job_env_size, 3);
    assert_string_equal(request.spank_job_env[0], "SPANK_FIRST=1");
    assert_null(request.spank_job_env[1]);
    assert_string_equal(request.spank_job_env[2], "LAST=2");
    assert_string_equal(request.partition, plain.partition);
    assert_string_equal(request.tres_per_node, plain.tres_per_node);
    expect_number(request.time_limit, NO_VAL);
    expect_number(request.site_factor, NO_VAL);
    assert_null(request.admin_comment);
    plugin_free_request(&plain);
    plugin_free_request(&request);
}

static void the_thread_reads_files_that_appear_and_logs_faults_once(void **state)
{
    (void)state;
    plugin_write_site(MDOT_SHIPPED_PREDICTOR);
    fake_pass_time();
    expect_contains(calls.log, "mdot.conf and its predictor are read");
    calls.log[0] = '\0';
    fake_pass_time();
    assert_string_equal(calls.log, "");
    plugin_write_site("/nonexistent/predictor.mdot");
    fake_pass_time();
    expect_contains(calls.log, "/nonexistent/predictor.mdot");
    calls.log[0] = '\0';
    fake_pass_time();
    assert_string_equal(calls.log, "");
    plugin_write_site(MDOT_SHIPPED_PREDICTOR);
    fake_pass_time();
}

/* Priority that a job loses if it takes `factor` times as much. The whole weight belongs to times from a minute to 30
 * days. */
static double priority_of_times(double factor) { return 10000 * log(factor) / log(30 * 1440); }

/* The partition of a request for `nodes` nodes with a GPU each, after the thread has looked at the cluster. */
static void expect_place(const char *partition, uint32_t nodes)
{
    fake_modify();
    job_desc_msg_t request = plugin_make_request();
    request.min_nodes = nodes;
    plugin_submit("batch=32,steps=10", &request);
    assert_string_equal(request.partition, partition);
    plugin_free_request(&request);
}

/* The limit in minutes for a days-long job in partition "b". */
static uint32_t limit_of(job_desc_msg_t request)
{
    char settings[64];
    snprintf(settings, sizeof settings, "batch=32,steps=%d", STEPS_IN_DAYS);
    strcpy(request.partition, "b");
    plugin_submit(settings, &request);
    uint32_t minutes = request.time_limit;
    plugin_free_request(&request);
    return minutes;
}

/* ---- The cluster ------------------------------------------------------------------------------------------------- */

static void unusable_nodes_are_not_chosen(void **state)
{
    (void)state;
    static const struct {
        uint32_t state;
        bool is_usable;
    } cases[] = {{NODE_STATE_IDLE, true},
                 {NODE_STATE_ALLOCATED, true},
                 {NODE_STATE_MIXED, true},
                 {NODE_STATE_IDLE | NODE_STATE_COMPLETING, true},
                 {NODE_STATE_UNKNOWN, false},
                 {NODE_STATE_DOWN, false},
                 {NODE_STATE_ERROR, false},
                 {NODE_STATE_FUTURE, false},
                 {NODE_STATE_IDLE | NODE_STATE_DRAIN, false},
                 {NODE_STATE_MIXED | NODE_STATE_FAIL, false},
                 {NODE_STATE_ALLOCATED | NODE_STATE_NO_RESPOND, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int working = 0; working < 2; working++) { /* the other node of "b" */
            fake.nodes[FIRST_NODE_OF_B + working].node_state = NODE_STATE_DOWN;
            fake.nodes[FIRST_NODE_OF_B + 1 - working].node_state = cases[i].state;
            expect_place(cases[i].is_usable ? "b" : "a", 1);
        }
}

static void all_ranges_of_nodes_count(void **state)
{
    (void)state;
    static int32_t apart[] = {2, 2, 4, 4, -1}, beyond[] = {2, 4, -1};
    static char gres[] = "gpu:2";
    expect_place("b", 2);
    fake.nodes[FIRST_NODE_OF_B].node_state = NODE_STATE_DOWN;
    expect_place("a", 2);
    plugin_reset_cluster();
    fake.partitions[1].node_inx = apart;
    fake.nodes[4].gres = gres;
    expect_place("b", 2);
    fake.node_count = 4; /* a partition may be newer than the nodes */
    fake.partitions[1].node_inx = beyond;
    expect_place("b", 2);
    fake.node_count = 3;
    expect_place("a", 2);
    fake.partitions[1].node_inx = NULL;
    expect_place("a", 1);
}

static void partitions_that_are_down_or_small_are_not_chosen(void **state)
{
    (void)state;
    static const uint16_t states[] = {PARTITION_DOWN, PARTITION_DRAIN, PARTITION_INACTIVE};
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        fake.partitions[1].state_up = states[i];
        expect_place("a", 1);
    }
    plugin_reset_cluster();
    fake.partitions[1].min_nodes = 2;
    expect_place("a", 1);
    expect_place("b", 2);
    fake.partitions[1].min_nodes = 1;
    fake.partitions[1].max_nodes = 1;
    expect_place("b", 1);
    expect_place("a", 2);
    fake.partitions[1].max_nodes = NO_VAL;
    expect_place("b", 2);
}

static void partitions_with_lists_of_users_keep_the_request(void **state)
{
    (void)state;
    partition_info_t *b = &fake.partitions[1];
    char **const lists[] = {&b->allow_groups, &b->allow_accounts,    &b->allow_qos, &b->deny_accounts,
                            &b->deny_qos,     &b->allow_alloc_nodes, &b->qos_char};
    static const uint16_t flags[] = {PART_FLAG_ROOT_ONLY, PART_FLAG_REQ_RESV, PART_FLAG_NO_ROOT,
                                     PART_FLAG_EXCLUSIVE_USER};
    static char staff[] = "staff", entries[] = "all", none[] = "";
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        *lists[i] = staff;
        expect_place("a,b", 1);
        *lists[i] = entries;
        expect_place("b", 1);
        *lists[i] = none;
        expect_place("b", 1);
    }
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        b->flags = flags[i];
        expect_place("a,b", 1);
    }
    b->flags = PART_FLAG_DEFAULT | PART_FLAG_HIDDEN | PART_FLAG_LLN;
    expect_place("b", 1);
}

static void limits_stay_within_the_partition(void **state)
{
    (void)state;
    partition_info_t *b = &fake.partitions[1];
    fake_modify();
    assert_int_equal(limit_of(plugin_make_request()), 10000);
    b->max_time = INFINITE;
    fake_modify();
    uint32_t whole = limit_of(plugin_make_request());
    assert_true(whole > 10000);
    assert_true(whole < INFINITE - 2);
    b->max_time = NO_VAL;
    fake_modify();
    assert_int_equal(limit_of(plugin_make_request()), whole);
    b->max_time = 10000;
    static const uint32_t as_max[] = {NO_VAL, INFINITE};
    for (size_t i = 0; i < sizeof as_max / sizeof as_max[0]; i++) {
        b->default_time = as_max[i]; /* Slurm takes MaxTime, which the limit would not exceed */
        fake_modify();
        assert_int_equal(limit_of(plugin_make_request()), NO_VAL);
    }
}

/* User 1000 is in "physics" of "science", with the QOS "normal"; "brief" is another one. */
static void enforce_accounting(void)
{
    static char physics[] = "physics", science[] = "science", normal[] = "normal", brief[] = "brief";
    fake.association_count = fake.qos_count = 2;
    fake.associations[0] = (slurmdb_assoc_rec_t){
        .id = 9, .acct = science, .uid = NO_VAL, .max_wall_pj = INFINITE, .grp_wall = INFINITE, .def_qos_id = NO_VAL};
    fake.associations[1] = (slurmdb_assoc_rec_t){.id = 3,
                                                 .parent_id = 9,
                                                 .acct = physics,
                                                 .uid = USER,
                                                 .max_wall_pj = INFINITE,
                                                 .grp_wall = NO_VAL,
                                                 .def_qos_id = 1};
    fake.qos[0] = (slurmdb_qos_rec_t){.id = 1, .name = normal, .max_wall_pj = INFINITE, .grp_wall = INFINITE};
    fake.qos[1] = (slurmdb_qos_rec_t){.id = 2, .name = brief, .max_wall_pj = 45, .grp_wall = INFINITE};
}

static uint32_t limit_with_qos(const char *qos)
{
    job_desc_msg_t r = plugin_make_request();
    static char name[16];
    snprintf(name, sizeof name, "%s", qos);
    r.qos = name;
    return limit_of(r);
}

static void limits_of_accounting_are_kept(void **state)
{
    (void)state;
    static char counted[] = "1=60", brief[] = "brief", unknown[] = "gone";
    const bool enforces[] = {false, true,  false, true,
                             true,  false, false}; /* associations, limits, wckeys, QOS, safe … */
    for (int bit = 0; bit < 7; bit++) {
        slurm_conf.accounting_storage_enforce = (uint16_t)(1 << bit);
        fake_pass_time();
        assert_int_equal(limit_of(plugin_make_request()), enforces[bit] ? NO_VAL : 10000); /* the user is unknown */
    }
    slurm_conf.accounting_storage_enforce = 2;
    enforce_accounting();
    fake_pass_time();
    assert_int_equal(limit_of(plugin_make_request()), 10000);
    assert_int_equal(limit_with_qos("brief"), 45);
    assert_int_equal(limit_with_qos("gone"), NO_VAL);
    fake.associations[0].max_wall_pj = 300;
    fake_pass_time();
    assert_int_equal(limit_of(plugin_make_request()), 300);
    enforce_accounting();
    fake.associations[1].def_qos_id = 2;
    fake_pass_time();
    assert_int_equal(limit_of(plugin_make_request()), 45);
    char **const texts[] = {&fake.associations[0].grp_tres_mins,
                            &fake.associations[0].grp_tres_run_mins,
                            &fake.associations[1].max_tres_mins_pj,
                            &fake.associations[1].max_tres_run_mins,
                            &fake.qos[0].grp_tres_mins,
                            &fake.qos[0].grp_tres_run_mins,
                            &fake.qos[0].max_tres_mins_pj,
                            &fake.qos[0].max_tres_run_mins_pa,
                            &fake.qos[0].max_tres_run_mins_pu};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        enforce_accounting();
        *texts[i] = counted; /* the rest of such a limit is unknown */
        fake_pass_time();
        if (limit_of(plugin_make_request()) != NO_VAL) fail_msg("limit %zu on minutes is not seen", i);
    }
    enforce_accounting();
    fake.qos[0].grp_wall = 500;
    fake_pass_time();
    assert_int_equal(limit_of(plugin_make_request()), NO_VAL);
    enforce_accounting();
    fake.partitions[1].qos_char = brief;
    fake_pass_time();
    assert_int_equal(limit_of(plugin_make_request()), 45);
    fake.partitions[1].qos_char = unknown;
    fake_pass_time();
    assert_int_equal(limit_of(plugin_make_request()), NO_VAL);
    fake.partitions[1].qos_char = NULL;
    fake.has_no_accounting = true;
    fake_pass_time();
    assert_int_equal(limit_of(plugin_make_request()), NO_VAL);
}

static void a_snapshot_expires_and_a_failed_request_keeps_the_last_one(void **state)
{
    (void)state;
    fake_modify();
    fake.has_no_partitions = true;
    fake.monotonic_s += 14;
    fake_modify();
    assert_int_equal(limit_of(plugin_make_request()), 10000);
    fake.monotonic_s += 2;
    assert_int_equal(limit_of(plugin_make_request()), NO_VAL);
    plugin_reset_cluster();
    fake.has_no_nodes = true; /* a snapshot requires the partitions' nodes */
    fake_modify();
    assert_int_equal(limit_of(plugin_make_request()), NO_VAL);
    plugin_reset_cluster();
    fake_modify();
    assert_int_equal(limit_of(plugin_make_request()), 10000);
    assert_int_equal(calls.unfreed, 0);
}

static void partitions_with_long_names_are_left_out(void **state)
{
    (void)state;
    static char name[65];
    memset(name, 'p', sizeof name - 1);
    fake.partitions[0].name = name;
    fake_modify();
    assert_int_equal(limit_of(plugin_make_request()), 10000); /* those behind it remain */
}

/* ---- The request ------------------------------------------------------------------------------------------------- */

static void gpus_are_counted_in_every_form(void **state)
{
    (void)state;
    fake_modify();
    job_desc_msg_t r = plugin_make_request();
    assert_int_equal((plugin_submit("batch=32,steps=10", &r), plugin_number_of(&r, " gpus=")), 1);
    r = plugin_make_request();
    r.min_nodes = 2;
    assert_int_equal((plugin_submit("batch=32,steps=10", &r), plugin_number_of(&r, " gpus=")), 2);
    char *text = (r = plugin_make_request(), r.tres_per_node);
    r.tres_per_node = NULL;
    r.tres_per_job = text;
    assert_int_equal((plugin_submit("batch=32,steps=10", &r), plugin_number_of(&r, " gpus=")), 1);
    text = (r = plugin_make_request(), r.tres_per_node);
    r.tres_per_node = NULL;
    r.tres_per_socket = text;
    r.min_nodes = INFINITE;
    assert_int_equal((plugin_submit("batch=32,steps=10", &r), plugin_number_of(&r, " gpus=")), 1);
    text = (r = plugin_make_request(), r.tres_per_node);
    r.tres_per_node = NULL;
    r.tres_per_socket = text;
    r.sockets_per_node = 2;
    r.num_tasks = 2;
    assert_int_equal((plugin_submit("batch=32,steps=10", &r), plugin_number_of(&r, " gpus=")), 2);
    text = (r = plugin_make_request(), r.tres_per_node);
    r.tres_per_node = NULL;
    r.tres_per_task = text;
    r.num_tasks = 3;
    assert_int_equal((plugin_submit("batch=32,steps=10", &r), plugin_number_of(&r, " gpus=")), 3);
}

static void the_type_of_the_chosen_place_is_requested(void **state)
{
    (void)state;
    fake_modify();
    job_desc_msg_t r = plugin_make_request();
    strcpy(r.partition, "m");
    r.tres_per_job = strdup("gres:gpu:1");
    r.tres_per_socket = strdup("gres:gpu:1");
    r.tres_per_task = strdup("gres:gpu:1");
    plugin_submit("batch=32,steps=10", &r);
    const char *const texts[] = {r.tres_per_job, r.tres_per_node, r.tres_per_socket, r.tres_per_task};
    for (size_t i = 0; i < 4; i++) assert_string_equal(texts[i], "gres:gpu:h100:1");
    assert_string_equal(r.partition, "m");
    plugin_free_request(&r);
    r = plugin_make_request();
    plugin_submit("batch=32,steps=10", &r); /* "b" has one type, without a name */
    assert_string_equal(r.partition, "b");
    assert_string_equal(r.tres_per_node, "gres:gpu:1");
    plugin_free_request(&r);
}

static void limits_and_factors_of_the_user_stay(void **state)
{
    (void)state;
    fake_modify();
    job_desc_msg_t r = plugin_make_request();
    r.time_limit = 77;
    r.site_factor = NICE_OFFSET + 5;
    r.admin_comment = strdup("by an administrator");
    plugin_submit("batch=32,steps=10", &r);
    assert_int_equal(r.time_limit, 77);
    expect_number(r.site_factor, NICE_OFFSET + 5);
    assert_string_equal(r.admin_comment, "by an administrator");
    plugin_free_request(&r);
    r = plugin_make_request();
    r.site_factor = NICE_OFFSET; /* no change */
    plugin_submit("batch=32,steps=10", &r);
    uint32_t factor = r.site_factor;
    assert_true(factor > NICE_OFFSET);
    assert_true(factor <= NICE_OFFSET + 10000);
    assert_int_equal(plugin_number_of(&r, " priority="), factor - NICE_OFFSET);
    static const uint32_t unlimited[] = {0, INFINITE};
    for (size_t i = 0; i < 2; i++) {
        r = plugin_make_request();
        r.time_limit = unlimited[i];
        plugin_submit("batch=32,steps=10", &r);
        expect_number(r.site_factor, NO_VAL);
        expect_number(r.time_limit, unlimited[i]);
        plugin_free_request(&r);
    }
}

static void options_that_bound_the_limit_are_seen(void **state)
{
    (void)state;
    fake_modify();
    job_desc_msg_t r = plugin_make_request();
    r.time_min = 25;
    plugin_submit("batch=32,steps=10", &r);
    assert_int_equal(r.time_limit, 25);
    plugin_free_request(&r);
    r = plugin_make_request();
    r.deadline = 1;
    assert_int_equal(limit_of(r), NO_VAL);
    r = plugin_make_request();
    r.deadline = (time_t)NO_VAL;
    assert_int_equal(limit_of(r), 10000);
    r = plugin_make_request();
    r.reservation = strdup("");
    assert_int_equal(limit_of(r), 10000);
    r = plugin_make_request();
    r.reservation = strdup("lecture");
    assert_int_equal(limit_of(r), NO_VAL);
    r = plugin_make_request(); /* Slurm ends parts together */
    r.het_job_offset = 0;
    assert_int_equal(limit_of(r), NO_VAL);
    default_part_name = fake.partitions[0].name;
    r = plugin_make_request();
    r.partition[0] = '\0';
    plugin_submit("batch=32,steps=10", &r);
    assert_true(r.time_limit != NO_VAL); /* that of the default partition */
    plugin_free_request(&r);
}

static void a_job_with_whole_nodes_pays_for_all_their_gpus(void **state)
{
    (void)state;
    fake_modify();
    job_desc_msg_t r = plugin_make_request();
    plugin_submit("batch=32,steps=10", &r);
    double shared = plugin_number_of(&r, " priority=");
    r = plugin_make_request();
    r.shared = JOB_SHARED_NONE;
    plugin_submit("batch=32,steps=10", &r);
    assert_true(fabs(shared - plugin_number_of(&r, " priority=") - priority_of_times(2)) < 2);
}

static void comments_in_the_plugins_form_come_from_the_plugin(void **state)
{
    (void)state;
    fake_modify();
    job_desc_msg_t r = plugin_make_request();
    r.admin_comment = strdup("mdot: gpus=1 priority=10000 binding_min=1");
    plugin_submit("batch=32,steps=10", &r);
    assert_null(strstr(r.admin_comment, "priority=10000 binding_min=1"));
    expect_contains(r.admin_comment, "mdot: gpu=A100-SXM-40GB gpus=1 step_ms=");
    plugin_free_request(&r);
    r = plugin_make_request();
    r.admin_comment = strdup("mdot: forged"); /* without --mdot */
    job_submit(&r, USER, NULL);
    assert_null(r.admin_comment);
    r.admin_comment = strdup("mdot: forged");
    job_modify(&r, NULL, USER, NULL);
    fake_wait_for_round();
    assert_null(r.admin_comment);
    r.admin_comment = strdup("mdot is fast");
    job_modify(&r, NULL, USER, NULL);
    fake_wait_for_round();
    assert_string_equal(r.admin_comment, "mdot is fast");
    plugin_free_request(&r);
}

static void records_of_earlier_days_are_read_at_the_start(void **state)
{
    (void)state;
    fake_modify();
    job_desc_msg_t r = plugin_make_request();
    plugin_submit("batch=32,steps=10", &r);
    double honest = plugin_number_of(&r, " priority=");
    r = plugin_make_request();
    plugin_submit_as(LATE_USER, "batch=32,steps=10", &r);
    assert_true(fabs(honest - plugin_number_of(&r, " priority=") - priority_of_times(1 + 792000.0 / 79200)) < 2);
    r = plugin_make_request();
    r.name = strdup("train");
    plugin_submit_as(KNOWN_USER, "", &r);
    assert_true(fabs(plugin_number_of(&r, " history_s=") - 3600) < 100);
}

int main(void)
{
    alarm(240); /* a deadlock ends the program, also on a busy machine before the limit of ctest */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_thread_starts_with_the_plugin, plugin_reset),
        cmocka_unit_test_setup(an_unloaded_plugin_accepts_requests, plugin_reset),
        cmocka_unit_test_setup(without_files_a_request_only_loses_the_parcel, plugin_reset),
        cmocka_unit_test_setup(the_thread_reads_files_that_appear_and_logs_faults_once, plugin_reset),
        cmocka_unit_test_setup(unusable_nodes_are_not_chosen, plugin_reset),
        cmocka_unit_test_setup(all_ranges_of_nodes_count, plugin_reset),
        cmocka_unit_test_setup(partitions_that_are_down_or_small_are_not_chosen, plugin_reset),
        cmocka_unit_test_setup(partitions_with_lists_of_users_keep_the_request, plugin_reset),
        cmocka_unit_test_setup(limits_stay_within_the_partition, plugin_reset),
        cmocka_unit_test_setup(limits_of_accounting_are_kept, plugin_reset),
        cmocka_unit_test_setup(a_snapshot_expires_and_a_failed_request_keeps_the_last_one, plugin_reset),
        cmocka_unit_test_setup(partitions_with_long_names_are_left_out, plugin_reset),
        cmocka_unit_test_setup(gpus_are_counted_in_every_form, plugin_reset),
        cmocka_unit_test_setup(the_type_of_the_chosen_place_is_requested, plugin_reset),
        cmocka_unit_test_setup(limits_and_factors_of_the_user_stay, plugin_reset),
        cmocka_unit_test_setup(options_that_bound_the_limit_are_seen, plugin_reset),
        cmocka_unit_test_setup(a_job_with_whole_nodes_pays_for_all_their_gpus, plugin_reset),
        cmocka_unit_test_setup(comments_in_the_plugins_form_come_from_the_plugin, plugin_reset),
        cmocka_unit_test_setup(records_of_earlier_days_are_read_at_the_start, plugin_reset),
    };
    return cmocka_run_group_tests(tests, plugin_set_up, plugin_tear_down);
}
