/* test_trace.c — input files: traces in the formats of mdot and PAI, clusters, factors, windows; and refusals with
 * positions. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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
    char *path = workload_write_file(*state, "trace.csv", text);
    mdot_status status = sc_read_trace(path, workload, err);
    free(path);
    return status;
}

static void jobs_are_in_order_of_arrival(void **state)
{
    sc_workload w;
    assert_int_equal(read_text(state,
                               "\xef\xbb\xbfsubmit_s,job_id,duration_s,gpus,group,deadline_s,spread\r\n"
                               "30,late,5,2,,,1.5\r\n"
                               "\r\n"
                               "10,\"a, \"\"b\"\"\",7,1,anna,40,2\r\n"
                               "30,later,6,3,,,",
                               &w, NULL),
                     MDOT_OK);
    assert_int_equal(w.job_count, 3);
    assert_string_equal(w.jobs[0].id, "a, \"b\"");
    assert_string_equal(w.jobs[0].group, "anna");
    expect_number(w.jobs[0].submit_s, 10);
    expect_number(w.jobs[0].work, 7);
    expect_number(w.jobs[0].gpus, 1);
    expect_number(w.jobs[0].deadline_s, 40);
    assert_string_equal(w.jobs[1].id, "late");
    assert_string_equal(w.jobs[2].id, "later");
    expect_number(w.jobs[2].deadline_s, INFINITY);
    assert_null(w.jobs[2].group);
    expect_number(sc_workload_spread(&w, &w.jobs[0], 0, 1), 1); /* one GPU is on one node */
    expect_number(sc_workload_spread(&w, &w.jobs[1], 0, 2), 1.5);
    expect_number(sc_workload_spread(&w, &w.jobs[2], 0, 3), 1);
    sc_workload_free(&w);
}

static void malformed_lines_are_named(void **state)
{
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"", "is empty"},
        {"job_id,submit_s,gpus,duration_s\n", "holds no jobs"},
        {"job_id,submit_s,gpus\n0,0,1\n", "no column duration_s"},
        {"job_id,submit_s,gpus,duration_s,gpus\n0,0,1,5,2\n", "there are two columns gpus"},
        {"job_id,submit_s,gpus,duration_s\n0,0,1,5\n1,0,1\n", "trace.csv:3: there are 3 fields, but 4 columns"},
        {"job_id,submit_s,gpus,duration_s\n0,0,1,5,\n", "trace.csv:2: there are 5 fields, but 4 columns"},
        {"job_id,submit_s,gpus,duration_s\n\n0,zero,1,5\n", "trace.csv:3: submit_s is not a number: \"zero\""},
        {"job_id,submit_s,gpus,duration_s\n0,,1,5\n", "submit_s is not a number"},
        {"job_id,submit_s,gpus,duration_s\n0,-1,1,5\n", "submit_s is -1, less than 0"},
        {"job_id,submit_s,gpus,duration_s\n0,nan,1,5\n", "submit_s is not a number"},
        {"job_id,submit_s,gpus,duration_s\n0,1e400,1,5\n", "submit_s is not a number"},
        {"job_id,submit_s,gpus,duration_s\n0,0,0,5\n", "gpus is 0, less than 0.01"},
        {"job_id,submit_s,gpus,duration_s\n0,0,one,5\n", "gpus is not a number"},
        {"job_id,submit_s,gpus,duration_s\n0,0,1,5s\n", "duration_s is not a number: \"5s\""},
        {"job_id,submit_s,gpus,duration_s\n,0,1,5\n", "trace.csv:2: job_id is empty"},
        {"job_id,submit_s,gpus,duration_s\n7,0,1,5\n7,0,1,5\n", "two jobs have the name 7"},
        {"job_id,submit_s,gpus,duration_s\n\"7,0,1,5\n", "trace.csv:2: a quote is not closed"},
        {"job_id,submit_s,gpus,duration_s,deadline_s\n7,5,1,5,4\n", "deadline_s is 4, less than 5"},
        {"job_id,submit_s,gpus,duration_s,spread\n7,0,2,5,0.5\n", "trace.csv:2: spread is 0.5, less than 1"},
        {"job_id,submit_s,gpus,job_type\n7,5,1,LM\n", "no column steps"},
        {"job_id,submit_s,gpus,job_type,steps\n7,5,1,LM,2.5\n", "steps is not an integer"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sc_workload w;
        mdot_error err = {0};
        assert_int_equal(read_text(state, cases[i].text, &w, &err), MDOT_MALFORMED);
        expect_contains(err.message, cases[i].part);
    }
    sc_workload w;
    assert_int_equal(sc_read_trace("/nowhere/trace.csv", &w, NULL), MDOT_NOT_FOUND);
    assert_int_equal(sc_read_trace(*state, &w, NULL), MDOT_IO);
    char *pipe = process_in_folder(*state, "pipe"); /* reading it would block */
    assert_int_equal(mkfifo(pipe, 0600), 0);
    assert_int_equal(sc_read_trace(pipe, &w, NULL), MDOT_IO);
    free(pipe);
}

static void pai_tasks_become_jobs(void **state)
{
    /* two fields have equal values */
    static const char rows[] = "b,worker,4,Terminated,100.0,900.0,600.0,600.0,50.0,MISC\n"
                               "b,ps,1,Terminated,90.0,950.0,600.0,29.0,,MISC\n"
                               "a,tensorflow,1,Terminated,100.0,160.0,600.0,29.0,25.0,T4\n"
                               "failed,worker,1,Failed,100.0,900.0,600.0,29.0,100.0,MISC\n"
                               "half,worker,1,Terminated,100.0,900.0,600.0,29.0,100.0,MISC\n"
                               "half,worker2,1,Running,100.0,,600.0,29.0,100.0,MISC\n"
                               "cpu,worker,8,Terminated,100.0,900.0,600.0,29.0,,CPU\n";
    static const char header[] =
        "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type\n";
    char with_header[1024];
    strcat(strcpy(with_header, header), rows);
    const char *const forms[] = {rows, with_header};
    for (size_t i = 0; i < 2; i++) {
        sc_workload w;
        mdot_error err = {0};
        if (read_text(state, forms[i], &w, &err) != MDOT_OK) fail_msg("%s", err.message);
        assert_int_equal(w.job_count, 2);
        assert_string_equal(w.jobs[0].id, "b");
        expect_number(w.jobs[0].submit_s, 90);
        expect_number(w.jobs[0].work, 860);
        expect_number(w.jobs[0].gpus, 2);
        assert_string_equal(w.jobs[1].id, "a");
        expect_number(w.jobs[1].submit_s, 100);
        expect_number(w.jobs[1].work, 60);
        expect_number(w.jobs[1].gpus, 1);
        sc_workload_free(&w);
    }
    sc_workload w;
    mdot_error err = {0};
    assert_int_equal(read_text(state,
                               "a,t,1,Terminated,100,160,600,29,25,T4\n"
                               "b,t,1,Terminated,170,160,600,29,25,T4\n",
                               &w, &err),
                     MDOT_MALFORMED);
    expect_contains(err.message, "trace.csv:2: end_time is before start_time");
    assert_int_equal(read_text(state, "a,t,1000000,Terminated,100,160,600,29,1000000,T4\n", &w, &err), MDOT_MALFORMED);
    expect_contains(err.message, "trace.csv:1: job a has 1e+10 GPUs, more than 1048576");
}

static void pai_simulator_traces_have_one_line_per_job(void **state)
{
    sc_workload w;
    assert_int_equal(read_text(state,
                               "job_id,user,num_cpu,num_gpu,submit_time,num_inst,duration\n"
                               "1,u,6,0.25,30,1,100\n"
                               "2,u,6,0.5,10,3,50.5\n"
                               "3,v,6,,10,1,50\n",
                               &w, NULL),
                     MDOT_OK);
    assert_int_equal(w.job_count, 2);
    assert_string_equal(w.jobs[0].id, "2");
    expect_number(w.jobs[0].gpus, 2);
    expect_number(w.jobs[0].work, 50.5);
    expect_number(w.jobs[0].submit_s, 10);
    assert_string_equal(w.jobs[0].group, "u");
    assert_int_equal(w.jobs[1].gpus, 1);
    sc_workload_free(&w);
    static const char *const wrong[][2] = {{",u,6,1,30,1,100\n", "trace.csv:2: job_id is empty"},
                                           {"1,u,6,9999,30,1024,100\n", "trace.csv:2: num_gpu times num_inst is"}};
    for (size_t i = 0; i < 2; i++) {
        char text[256] = "job_id,user,num_cpu,num_gpu,submit_time,num_inst,duration\n";
        mdot_error err = {0};
        assert_int_equal(read_text(state, strcat(text, wrong[i][0]), &w, &err), MDOT_MALFORMED);
        expect_contains(err.message, wrong[i][1]);
    }
}

static void a_cluster_has_nodes_of_types(void **state)
{
    sc_cluster c;
    mdot_error err = {0};
    char *path = workload_write_file(*state, "c.csv", "node,type,gpus\na,V100,4\nb,K80,8\nc,V100,4\n");
    assert_int_equal(sc_read_cluster(path, &c, NULL), MDOT_OK);
    assert_int_equal(c.type_count, 2);
    assert_string_equal(c.types[0].name, "V100");
    assert_int_equal(c.types[0].gpus, 8);
    assert_int_equal(c.gpus, 16);
    assert_int_equal(c.node_count, 3);
    assert_true(sc_cluster_holds(&c, 8));
    assert_false(sc_cluster_holds(&c, 9));
    expect_number(c.types[0].watts, 0);
    sc_cluster_free(&c);
    free(path);
    path = workload_write_file(*state, "c.csv", "node,type,gpus,watts\na,V100,4,300\nb,K80,8,149.5\nc,V100,4,300\n");
    assert_int_equal(sc_read_cluster(path, &c, NULL), MDOT_OK);
    expect_number(c.types[0].watts, 300);
    expect_number(c.types[1].watts, 149.5);
    sc_cluster_free(&c);
    free(path);
    static const char *const wrong[][2] = {
        {"node,type,gpus,watts\na,V100,4,0\n", "c.csv:2: watts is 0"},
        {"node,type,gpus\na,V100,4\na,V100,4\n", "two nodes have the name a"},
        {"node,type,gpus\na b,V100,4\n", "c.csv:2: node is \"a b\", but a name"},
        {"node,type,gpus\n,V100,4\n", "c.csv:2: node is \"\""},
        {"node,type,gpus,watts\na,V100,4,300\nb,V100,4,250\n", "c.csv:3: type V100 has 300 watts and 250"},
        {"node,type,gpus\na,V100,0\n", "c.csv:2: gpus is 0"},
        {"node,type,gpus\na,,1\n", "c.csv:2: type is empty"},
        {"node,type\na,V100\n", "no column gpus"},
        {"node,type,gpus\n", "holds no nodes"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        path = workload_write_file(*state, "c.csv", wrong[i][0]);
        assert_int_equal(sc_read_cluster(path, &c, &err), MDOT_MALFORMED);
        expect_contains(err.message, wrong[i][1]);
        free(path);
    }
}

static void factors_are_joined_by_name(void **state)
{
    static const double jobs[][3] = {{0, 1, 15}, {0, 1, 15}};
    sc_workload w = workload_make(jobs, 2);
    double *factors;
    mdot_error err = {0};
    char *path = workload_write_file(*state, "f.csv", "job_id,factor\n1,0.5\nother,3\n0,2\n");
    assert_int_equal(sc_read_factors(path, &w, &factors, NULL), MDOT_OK);
    expect_number(factors[0], 2);
    expect_number(factors[1], 0.5);
    free(factors);
    free(path);
    static const char *const wrong[][2] = {{"job_id,factor\n1,0.5\n", "no factor for job 0"},
                                           {"job_id,factor\n1,0.5\n1,0.5\n", "f.csv:3: job 1 has a factor already"},
                                           {"job_id,factor\n1,0\n", "f.csv:2: factor is 0, less than"}};
    for (size_t i = 0; i < 3; i++) {
        path = workload_write_file(*state, "f.csv", wrong[i][0]);
        assert_int_equal(sc_read_factors(path, &w, &factors, &err), MDOT_MALFORMED);
        expect_contains(err.message, wrong[i][1]);
        free(path);
    }
    sc_workload_free(&w);
}

static void a_window_counts_jobs_that_fit_the_cluster(void **state)
{
    (void)state;
    static const double jobs[][3] = {{0, 1, 10}, {5, 9, 10}, {10, 2, 10}, {20, 4, 10}, {30, 1, 10}};
    sc_workload w = workload_make(jobs, 5);
    sc_cluster c;
    mdot_error err = {0};
    w.jobs[2].deadline_s = 50;
    assert_int_equal(sc_cluster_make_pool(4, &c, NULL), MDOT_OK);
    sc_window window = {.from = 2, .count = 3};
    assert_int_equal(sc_workload_select(&w, &c, &window, &err), MDOT_OUT_OF_RANGE);
    expect_contains(err.message, "4 are left");
    window = (sc_window){.from = 1, .count = 2};
    /* The load is (20 + 40) / (4 · 10) = 1.5, so a load of 1 stretches by 1.5. */
    assert_true(fabs(sc_workload_load(&w, &c) - 170.0 / 120) < 1e-12);
    window.load = 1;
    assert_int_equal(sc_workload_select(&w, &c, &window, NULL), MDOT_OK);
    assert_int_equal(w.job_count, 2);
    assert_string_equal(w.jobs[0].id, "2");
    expect_number(w.jobs[0].submit_s, 0);
    expect_number(w.jobs[0].deadline_s, 40);
    expect_number(w.jobs[1].submit_s, 15);
    expect_number(w.jobs[1].work, 10);
    sc_workload_free(&w);
    sc_cluster_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_are_in_order_of_arrival),
        cmocka_unit_test(malformed_lines_are_named),
        cmocka_unit_test(pai_tasks_become_jobs),
        cmocka_unit_test(pai_simulator_traces_have_one_line_per_job),
        cmocka_unit_test(a_cluster_has_nodes_of_types),
        cmocka_unit_test(factors_are_joined_by_name),
        cmocka_unit_test(a_window_counts_jobs_that_fit_the_cluster),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
