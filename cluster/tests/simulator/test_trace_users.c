/* test_trace_users.c — users, names and outcomes in traces of mdot, PAI and Slurm. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "simulator/input/input.h"
#include "tests/simulator/support/numbers.h"
#include "tests/simulator/support/workloads.h"
#include "tests/support/process.h"

static int set_up(void **state)
{
    *state = process_make_folder();
    return 0;
}

static int tear_down(void **state)
{
    process_remove_folder(*state);
    return 0;
}

static mdot_status read_text(void **state, const char *text, sc_workload *workload, mdot_error *err)
{
    char *path = workload_write_file(*state, "trace", text);
    mdot_status status = sc_read_trace(path, workload, err);
    free(path);
    return status;
}

static void own_traces_may_have_users_and_outcomes(void **state)
{
    sc_workload w;
    mdot_error err = {0};
    if (read_text(state,
                  "job_id,submit_s,gpus,duration_s,user,group,name,gpu_type,outcome,limit_s\n"
                  "1,0,2,50,anna,physics,train-7,A100,timed-out,50\n"
                  "2,1,1,60,,,,,,\n",
                  &w, &err) != MDOT_OK)
        fail_msg("%s", err.message);
    assert_string_equal(w.jobs[0].user, "anna");
    assert_string_equal(w.jobs[0].group, "physics");
    assert_string_equal(w.jobs[0].name, "train-7");
    assert_string_equal(w.jobs[0].gpu_type, "A100");
    assert_int_equal(w.jobs[0].outcome, MDOT_ENDED_TIMED_OUT);
    expect_number(w.jobs[0].limit_s, 50);
    assert_null(w.jobs[1].user);
    assert_null(w.jobs[1].name);
    assert_null(w.jobs[1].gpu_type);
    assert_int_equal(w.jobs[1].outcome, MDOT_ENDED_COMPLETED);
    expect_number(w.jobs[1].limit_s, 0);
    sc_workload_free(&w);
    assert_int_equal(read_text(state, "job_id,submit_s,gpus,duration_s,outcome\n1,0,2,50,lost\n", &w, &err),
                     MDOT_MALFORMED);
    expect_contains(err.message, "trace:2: outcome is \"lost\", but must be completed");
}

/* The tables as they are published: without headers. */
static void pai_tables_are_joined(void **state)
{
    sc_workload w;
    mdot_error err = {0};
    free(workload_write_file(*state, "pai_job_table.csv",
                             "j2,i2,bob,Terminated,205.0,400.0\n"
                             "j1,i1,anna,Terminated,100.0,400.0\n"
                             "j9,i9,carla,Failed,100.0,400.0\n"));
    free(workload_write_file(*state, "pai_group_tag_table.csv",
                             "i3,anna,,otherwise,\n"
                             "i1,anna,V100M32,fbeb14d671c6,nmt\n"));
    if (read_text(state,
                  "j1,ps,1.0,Terminated,150.0,400.0,600.0,29.3,,CPU\n"
                  "j1,worker,2.0,Terminated,160.0,390.0,600.0,29.3,50.0,V100\n"
                  "j2,tensorflow,1.0,Terminated,200.0,300.0,600.0,29.3,100.0,T4\n"
                  "j3,tensorflow,1.0,Terminated,300.0,310.0,600.0,29.3,100.0,T4\n",
                  &w, &err) != MDOT_OK)
        fail_msg("%s", err.message);
    assert_int_equal(w.job_count, 3);
    assert_string_equal(w.jobs[0].user, "anna");
    assert_string_equal(w.jobs[0].name, "fbeb14d671c6");
    assert_string_equal(w.jobs[0].gpu_type, "V100");
    expect_number(w.jobs[0].submit_s, 100);
    expect_number(w.jobs[0].work, 250);
    expect_number(w.jobs[0].gpus, 1);
    assert_string_equal(w.jobs[1].user, "bob");
    assert_null(w.jobs[1].name);
    expect_number(w.jobs[1].submit_s, 200); /* a submission after the start is left out */
    assert_null(w.jobs[2].user);
    expect_number(w.jobs[2].submit_s, 300);
    sc_workload_free(&w);
    free(workload_write_file(*state, "pai_job_table.csv", "j2,i2,bob\n"));
    assert_int_equal(read_text(state, "j2,t,1.0,Terminated,200.0,300.0,600.0,29.3,100.0,T4\n", &w, &err),
                     MDOT_MALFORMED);
    expect_contains(err.message, "pai_job_table.csv:1: there are 3 fields, but 6 columns");
}

#define HEAD "JobID|User|Account|Submit|ElapsedRaw|Timelimit|State|AllocTRES|JobName\n"

static void slurms_accounting_is_a_trace(void **state)
{
    sc_workload w;
    mdot_error err = {0};
    if (read_text(state,
                  HEAD "12|anna|physics|2024-05-01T12:00:10|3600|1-02:00:00|COMPLETED|"
                       "billing=8,cpu=8,gres/gpu:a100=4,gres/gpu=4,mem=64G,node=1|train|a,b\n"
                       "12.batch|||2024-05-01T12:00:10|3600||COMPLETED|cpu=8|batch\n"
                       "13_2|bob|bio|2024-05-01T12:00:00|30|UNLIMITED|CANCELLED by 1000|gres/gpu=1|eval\n"
                       "14|bob|bio|2024-05-01T12:00:20|600|10:00|TIMEOUT|gres/gpu=2|eval\n"
                       "15|bob|bio|2024-05-01T12:00:20|5|10:00|OUT_OF_MEMORY|gres/gpu=2|eval\n"
                       "16|bob|bio|2024-05-01T12:00:20|0|10:00|FAILED|gres/gpu=2|never started\n"
                       "17|bob|bio|2024-05-01T12:00:20|50|10:00|RUNNING|gres/gpu=2|runs\n"
                       "18|bob|bio|2024-05-01T12:00:20|50|10:00|COMPLETED|cpu=2|no GPU\n"
                       "19|bob|bio|Unknown|50|10:00|COMPLETED|gres/gpu=2|no time\n",
                  &w, &err) != MDOT_OK)
        fail_msg("%s", err.message);
    assert_int_equal(w.job_count, 4);
    assert_string_equal(w.jobs[0].id, "13_2");
    assert_int_equal(w.jobs[0].outcome, MDOT_ENDED_CANCELLED);
    expect_number(w.jobs[0].limit_s, 0);
    expect_number(w.jobs[0].gpus, 1);
    assert_string_equal(w.jobs[1].id, "12");
    assert_string_equal(w.jobs[1].user, "anna");
    assert_string_equal(w.jobs[1].group, "physics");
    assert_string_equal(w.jobs[1].name, "train|a,b");
    assert_string_equal(w.jobs[1].gpu_type, "a100");
    expect_number(w.jobs[1].gpus, 4);
    expect_number(w.jobs[1].work, 3600);
    expect_number(w.jobs[1].limit_s, 26 * 3600);
    expect_number(w.jobs[1].submit_s, 1714564810); /* date -u -d 2024-05-01T12:00:10 +%s */
    assert_int_equal(w.jobs[2].outcome, MDOT_ENDED_TIMED_OUT);
    expect_number(w.jobs[2].limit_s, 600);
    assert_int_equal(w.jobs[3].outcome, MDOT_ENDED_FAILED);
    sc_workload_free(&w);
}

/* The store and the simulator read the same outcomes, because both use accounting/accounting.h. */
static void every_ended_state_is_an_outcome(void **state)
{
    static const struct {
        const char *text;
        mdot_ended outcome;
    } cases[] = {{"COMPLETED", MDOT_ENDED_COMPLETED},  {"BOOT_FAIL", MDOT_ENDED_FAILED},
                 {"FAILED", MDOT_ENDED_FAILED},        {"LAUNCH_FAILED", MDOT_ENDED_FAILED},
                 {"NODE_FAIL", MDOT_ENDED_FAILED},     {"OUT_OF_MEMORY", MDOT_ENDED_FAILED},
                 {"RECONFIG_FAIL", MDOT_ENDED_FAILED}, {"CANCELLED by 7", MDOT_ENDED_CANCELLED},
                 {"PREEMPTED", MDOT_ENDED_CANCELLED},  {"REVOKED", MDOT_ENDED_CANCELLED},
                 {"DEADLINE", MDOT_ENDED_TIMED_OUT},   {"TIMEOUT", MDOT_ENDED_TIMED_OUT}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sc_workload w;
        mdot_error err = {0};
        char text[512];
        snprintf(text, sizeof text,
                 HEAD "1|ann|lab|2026-11-01T10:00:00|3600|02:00:00|%s|gres/gpu:a100=4,gres/gpu=4|train\n",
                 cases[i].text);
        if (read_text(state, text, &w, &err) != MDOT_OK) fail_msg("%s: %s", cases[i].text, err.message);
        if (w.jobs[0].outcome != cases[i].outcome) fail_msg("%s: outcome %d", cases[i].text, (int)w.jobs[0].outcome);
        sc_workload_free(&w);
    }
}

static void other_columns_of_sacct_are_understood(void **state)
{
    sc_workload w;
    mdot_error err = {0};
    /* with -p, each line ends with a separator */
    if (read_text(state,
                  "JobName|JobID|Submit|Elapsed|State|AllocGRES|TimelimitRaw|\n"
                  "x|1|1714564810|1-01:00:01|COMPLETED|gpu:v100:2(S:0-1)|90|\n"
                  "x|2|1714564811|05:03|FAILED|gpu:3||\n",
                  &w, &err) != MDOT_OK)
        fail_msg("%s", err.message);
    assert_int_equal(w.job_count, 2);
    expect_number(w.jobs[0].work, 90001);
    expect_number(w.jobs[0].gpus, 2);
    expect_number(w.jobs[0].limit_s, 5400);
    assert_string_equal(w.jobs[0].gpu_type, "v100");
    expect_number(w.jobs[1].work, 303);
    expect_number(w.jobs[1].gpus, 3);
    assert_null(w.jobs[1].gpu_type);
    sc_workload_free(&w);
}

static void damaged_accounting_is_refused_with_its_line(void **state)
{
    static const char *const wrong[][2] = {
        {"JobID|Submit|State\n1|2|3\n", "no column Elapsed"},
        {HEAD "12|anna|physics\n", "trace:2: 3 fields where the first line names 9"},
        {HEAD "|u|a|2024-05-01T12:00:10|1|1:00|FAILED|gres/gpu=1|n\n",
         "trace:2: JobID is \"\", which is not understood"},
        {HEAD "1|u|a|2024-05-01T12:00:10|soon|1:00|FAILED|gres/gpu=1|n\n", "trace:2: ElapsedRaw is \"soon\""},
        {HEAD "1|u|a|2024-05-01T12:00:10|-5|1:00|FAILED|gres/gpu=1|n\n", "trace:2: ElapsedRaw is \"-5\""},
        {HEAD "1|u|a|2024-05-01T12:00:10|5|1:00|FAILED|gres/gpu=99999999|n\n", "trace:2: the job has 99999999 GPUs"},
        {HEAD, "no job with GPUs has ended"},
        {"JobID|Submit|Elapsed|State\n1|2024-05-01T12:00:10|5|FAILED\n", "no column AllocTRES"},
        {"JobID|Submit|Elapsed|State|AllocTRES\n1|5|1:2:3:4|FAILED|gres/gpu=1\n", "trace:2: Elapsed is \"1:2:3:4\""}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        sc_workload w;
        mdot_error err = {0};
        assert_int_equal(read_text(state, wrong[i][0], &w, &err), MDOT_MALFORMED);
        expect_contains(err.message, wrong[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(own_traces_may_have_users_and_outcomes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(pai_tables_are_joined, set_up, tear_down),
        cmocka_unit_test_setup_teardown(slurms_accounting_is_a_trace, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_ended_state_is_an_outcome, set_up, tear_down),
        cmocka_unit_test_setup_teardown(other_columns_of_sacct_are_understood, set_up, tear_down),
        cmocka_unit_test_setup_teardown(damaged_accounting_is_refused_with_its_line, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
