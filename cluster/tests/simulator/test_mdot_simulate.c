/* test_mdot_simulate.c — the command from the user's view. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/simulator/support/numbers.h"
#include "tests/simulator/support/workloads.h"
#include "tests/support/json.h"
#include "tests/support/process.h"

typedef struct fixture {
    char *folder, *trace, *factors;
    process_result result;
} fixture;

#define RUN(f, ...) process_run((const char *const[]){MDOT_SIMULATE, __VA_ARGS__, NULL}, &(f)->result)

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    if (f == NULL) return -1;
    f->folder = process_make_folder();
    f->trace = workload_write_file(f->folder, "trace.csv",
                                   "job_id,submit_s,gpus,duration_s\na,0,2,100\nb,10,4,20\nc,20,64,20\nd,30,1,50\n");
    f->factors = workload_write_file(f->folder, "factors.csv", "job_id,factor\na,1\nb,100\nd,1\n");
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    process_remove_folder(f->folder);
    free(f->trace);
    free(f->factors);
    free(f);
    return 0;
}

static void policies_print_a_table(void **state)
{
    fixture *f = *state;
    RUN(f, f->trace, "--gpus", "4", "--policy", "fifo,srsf,las");
    assert_int_equal(f->result.status, 0);
    expect_contains(f->result.out, "3 jobs, 4 GPUs");
    expect_contains(f->result.out, "fifo ");
    expect_contains(f->result.out, "srsf ");
    expect_contains(f->result.out, "las ");
    assert_string_equal(f->result.err, "");
    RUN(f, f->trace, "--gpus", "1", "--policy", "fifo");
    expect_contains(f->result.out, "1 job, 1 GPU, load ");
}

static void json_matches_the_table(void **state)
{
    fixture *f = *state;
    double means[3];
    RUN(f, f->trace, "--gpus", "4", "--policy", "fifo,srtf", "--json");
    assert_int_equal(f->result.status, 0);
    assert_true(json_is_valid(f->result.out));
    /* fifo: 100, 110, 120: (100 + 110 + 140) / 3; srtf: b 10-30, a 0-10 and 30-120, d 30-80. */
    assert_int_equal(json_numbers(f->result.out, "mean_jct_s", means, 3), 2);
    assert_true(means[0] > 116.66);
    assert_true(means[0] < 116.67);
    assert_true(means[1] > 63.33);
    assert_true(means[1] < 63.34);
}

static void energy_is_printed_if_power_is_known(void **state)
{
    fixture *f = *state;
    double energy[2];
    char *extended = workload_write_file(f->folder, "watts.csv", "node,type,gpus,watts\nn,g,4,3600\n");
    char *without = workload_write_file(f->folder, "plain.csv", "node,type,gpus\nn,g,4\n");
    /* 2 x 100 + 4 x 20 + 1 x 50 GPU-seconds at 3.6 kW. */
    RUN(f, f->trace, "--cluster", extended, "--policy", "fifo,powerflow", "--json");
    assert_int_equal(f->result.status, 0);
    assert_int_equal(json_numbers(f->result.out, "energy_kwh", energy, 2), 2);
    assert_true(energy[0] > .3299);
    assert_true(energy[0] < .3301);
    expect_number(energy[1], energy[0]);
    RUN(f, f->trace, "--cluster", extended, "--policy", "fifo");
    expect_contains(f->result.out, " 0.3 kWh\n");
    RUN(f, f->trace, "--cluster", without, "--policy", "fifo");
    expect_number(f->result.status, 0);
    assert_null(strstr(f->result.out, "kWh"));
    RUN(f, f->trace, "--cluster", without, "--policy", "powerflow");
    assert_int_equal(f->result.status, 1);
    expect_contains(f->result.err, "watts");
    RUN(f, f->trace, "--cluster", extended, "--policy", "powerflow", "--power",
        "10800"); /* three GPUs, but b needs four */
    assert_int_equal(f->result.status, 1);
    expect_contains(f->result.err, "never starts");
    RUN(f, f->trace, "--gpus", "4", "--policy", "powerflow", "--power", "10800");
    assert_int_equal(f->result.status, 2);
    expect_contains(f->result.err, "--power requires --cluster");
    free(without);
    free(extended);
}

static void results_per_job_are_written_to_a_file(void **state)
{
    fixture *f = *state;
    char path[256], text[512] = "";
    snprintf(path, sizeof path, "%s/jobs.csv", f->folder);
    RUN(f, f->trace, "--gpus", "4", "--policy", "srtf", "--per-job", path);
    assert_int_equal(f->result.status, 0);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_true(fread(text, 1, sizeof text - 1, file) > 0);
    fclose(file);
    assert_string_equal(text, "job_id,start_s,end_s,jct_s,preemptions\na,0,120,120,1\nb,10,30,20,0\nd,30,80,50,0\n");
    assert_int_equal(process_count_files(f->folder), 3);
}

static void job_names_are_quoted_in_csv(void **state)
{
    fixture *f = *state;
    char jobs[256], log[256], text[512] = "";
    snprintf(jobs, sizeof jobs, "%s/jobs.csv", f->folder);
    snprintf(log, sizeof log, "%s/log.csv", f->folder);
    char *trace =
        workload_write_file(f->folder, "odd.csv", "job_id,submit_s,gpus,duration_s\n\"a, \"\"b\"\"\",0,1,5\n");
    RUN(f, trace, "--gpus", "1", "--policy", "fifo", "--per-job", jobs, "--log", log);
    assert_int_equal(f->result.status, 0);
    FILE *file = fopen(jobs, "r");
    assert_non_null(file);
    assert_true(fread(text, 1, sizeof text - 1, file) > 0);
    fclose(file);
    expect_contains(text, "\n\"a, \"\"b\"\"\",0,5,5,0\n");
    memset(text, 0, sizeof text);
    file = fopen(log, "r");
    assert_non_null(file);
    assert_true(fread(text, 1, sizeof text - 1, file) > 0);
    fclose(file);
    expect_contains(text, "\n0,start,\"a, \"\"b\"\"\",gpu,1,,pool:1,\n");
    free(trace);
}

static void nodes_and_spreads_are_accepted(void **state)
{
    fixture *f = *state;
    char path[256], text[512] = "";
    snprintf(path, sizeof path, "%s/jobs.csv", f->folder);
    char *cluster = workload_write_file(f->folder, "nodes.csv", "node,type,gpus\nn1,g,2\nn2,g,2\n");
    char *trace = workload_write_file(f->folder, "spread.csv",
                                      "job_id,submit_s,gpus,duration_s,spread\na,0,1,100,\nb,0,2,100,1.5\n");
    static const char *const policies[] = {"fjf", "gandiva", "smd"};
    for (size_t i = 0; i < 3; i++) {
        RUN(f, trace, "--cluster", cluster, "--policy", policies[i], "--per-job", path);
        assert_int_equal(f->result.status, 0);
        FILE *file = fopen(path, "r");
        assert_non_null(file);
        memset(text, 0, sizeof text);
        assert_true(fread(text, 1, sizeof text - 1, file) > 0);
        fclose(file);
        expect_contains(text, i == 0 ? "\nb,0,150,150,0\n" : "\nb,0,100,100,0\n");
    }
    free(cluster);
    free(trace);
}

static void factors_and_windows_are_accepted(void **state)
{
    fixture *f = *state;
    double value;
    RUN(f, f->trace, "--gpus", "4", "--policy", "srtf", "--factors", f->factors, "--json");
    assert_int_equal(f->result.status, 0);
    /* b is predicted to be long and waits for a, while d runs beside a: 100, 110, 50. */
    assert_int_equal(json_numbers(f->result.out, "mean_jct_s", &value, 1), 1);
    assert_true(value > 86.66);
    assert_true(value < 86.67);
    RUN(f, f->trace, "--gpus", "4", "--policy", "fifo", "--window", "1:2", "--scale-load", "0.5", "--json");
    assert_int_equal(f->result.status, 0);
    assert_int_equal(json_numbers(f->result.out, "load", &value, 1), 1);
    assert_true(value > 0.495);
    assert_true(value < 0.505);
    RUN(f, f->trace, "--gpus", "4", "--policy", "srsf", "--estimate", "error:0.5", "--errors", "total", "--seed", "7");
    assert_int_equal(f->result.status, 0);
    RUN(f, f->trace, "--gpus", "4", "--policy", "qssf", "--estimate", "history");
    assert_int_equal(f->result.status, 0);
    RUN(f, f->trace, "--gpus", "4", "--policy", "srsf", "--estimate", "error:0.5,two-point");
    assert_int_equal(f->result.status, 0);
}

/* Window K of N begins at (K - 1) / (N - 1) of the jobs in front of the last window. */
static void windows_lie_evenly_along_the_trace(void **state)
{
    fixture *f = *state;
    static const char *const equal[][2] = {{"1/3:1", "0:1"}, {"2/3:1", "1:1"}, {"3/3:1", "2:1"}, {"1/1:2", "0:2"}};
    for (size_t i = 0; i < sizeof equal / sizeof equal[0]; i++) {
        double mean_s[2];
        for (int k = 0; k < 2; k++) {
            RUN(f, f->trace, "--gpus", "4", "--policy", "fifo", "--window", equal[i][k], "--json");
            assert_int_equal(json_numbers(f->result.out, "mean_jct_s", &mean_s[k], 1), 1);
        }
        assert_true(mean_s[0] == mean_s[1]);
    }
}

/* A predictor without errors equals the truth. A predictor with errors runs, also if it learns or knows no job. */
static void predicted_networks_are_an_estimate(void **state)
{
    fixture *f = *state;
    double value, exact;
    char *table = workload_write_file(f->folder, "p.csv", "network,step_ms,mdot,off\nx,10,10,25\ny,20,20,5\n");
    RUN(f, f->trace, "--gpus", "4", "--policy", "srtf", "--json");
    json_numbers(f->result.out, "mean_jct_s", &exact, 1);
    RUN(f, f->trace, "--gpus", "4", "--policy", "srtf", "--json", "--predictions", table, "--learn");
    assert_int_equal(json_numbers(f->result.out, "mean_jct_s", &value, 1), 1);
    assert_true(value == exact);
    expect_contains(f->result.out, "\"estimate\": \"predictions\"");
    RUN(f, f->trace, "--gpus", "4", "--policy", "srtf", "--predictions", table, "--predicted-by", "off", "--known",
        "0");
    assert_int_equal(f->result.status, 0);
    RUN(f, f->trace, "--gpus", "4", "--policy", "srtf", "--predictions", table, "--predicted-by", "none");
    assert_int_equal(f->result.status, 1);
    expect_contains(f->result.err, "no column none");
    free(table);
}

/* a, b and d run one after another: 100, 110, 140. With the cost, they end at 130, 180 and 260. */
static void first_starts_cost_as_much_as_restarts_on_request(void **state)
{
    fixture *f = *state;
    double value;
    RUN(f, f->trace, "--gpus", "4", "--policy", "fifo", "--restart-cost", "30", "--json");
    assert_int_equal(json_numbers(f->result.out, "mean_jct_s", &value, 1), 1);
    assert_true(value > 116.66);
    assert_true(value < 116.67);
    RUN(f, f->trace, "--gpus", "4", "--policy", "fifo", "--restart-cost", "30", "--start-cost", "--json");
    assert_int_equal(json_numbers(f->result.out, "mean_jct_s", &value, 1), 1);
    assert_true(value > 176.66);
    assert_true(value < 176.67);
}

static void wrong_command_lines_are_refused(void **state)
{
    fixture *f = *state;
    static const struct {
        const char *words[8], *part;
    } cases[] = {
        {{"--gpus", "4", "--policy", "fifo"}, "no trace"},
        {{"T", "--policy", "fifo"}, "--gpus or --cluster"},
        {{"T", "--gpus", "4", "--cluster", "x", "--policy", "fifo"}, "--gpus or --cluster"},
        {{"T", "--gpus", "4"}, "no --policy"},
        {{"T", "--gpus", "0", "--policy", "fifo"}, "--gpus takes an integer from 1 to"},
        {{"T", "--gpus", "4x", "--policy", "fifo"}, "\"4x\""},
        {{"T", "--gpus", "4", "--policy", "best"}, "unknown policy \"best\"; known are fifo, fjf"},
        {{"T", "--gpus", "4", "--policy", "fifo", "--window", "5"}, "FROM:COUNT"},
        {{"T", "--gpus", "4", "--policy", "fifo", "--window", "0:0"}, "must be between 1"},
        {{"T", "--gpus", "4", "--policy", "fifo", "--window", "3/2:1"}, "must be between 1 and 2"},
        {{"T", "--gpus", "4", "--policy", "fifo", "--user-limits", "9,some"}, "MAX_S[,all]"},
        {{"T", "--gpus", "4", "--policy", "fifo", "--known", "0.5"}, "--known require --predictions"},
        {{"T", "--predictions", "p", "--factors", "f"}, "exclude each other"},
        {{"T", "--gpus", "4", "--policy", "fifo", "--errors", "some"}, "scale, total"},
        {{"T", "--gpus", "4", "--policy", "fifo", "--seed", "-1"}, "--seed"},
        {{"T", "--gpus", "4", "--policy", "fifo,las", "--per-job", "x"}, "--per-job requires a single policy"},
        {{"T", "--gpus", "4", "--policy", "fifo", "--step-times", "x"}, "--step-times requires --gradient-noise"},
        {{"T", "--gpus", "4", "--policy", "fifo", "--gradient-noise", "x"},
         "--gradient-noise requires --step-times or --sweep"},
        {{"T", "--gpus", "4", "--policy", "fifo", "--start-cost"}, "--start-cost requires --restart-cost"},
        {{"T", "T", "--gpus", "4", "--policy", "fifo"}, "one trace"},
        {{"T", "--gpu-count", "4"}, "unknown option --gpu-count"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *line[10] = {MDOT_SIMULATE};
        for (size_t j = 0; j < 8 && cases[i].words[j] != NULL; j++)
            line[j + 1] = strcmp(cases[i].words[j], "T") == 0 ? f->trace : cases[i].words[j];
        process_run(line, &f->result);
        assert_int_equal(f->result.status, 2);
        expect_contains(f->result.err, cases[i].part);
    }
}

static void failures_give_the_reason_and_leave_no_file(void **state)
{
    fixture *f = *state;
    char path[256];
    snprintf(path, sizeof path, "%s/nowhere/jobs.csv", f->folder);
    RUN(f, f->trace, "--gpus", "4", "--policy", "fifo", "--per-job", path);
    assert_int_equal(f->result.status, 1);
    expect_contains(f->result.err, "nowhere/jobs.csv");
    RUN(f, f->trace, "--gpus", "4", "--policy", "fifo", "--estimate", "error:x");
    assert_int_equal(f->result.status, 1);
    expect_contains(f->result.err, "mean error");
    RUN(f, f->trace, "--gpus", "4", "--policy", "fifo", "--window", "2:2", "--json");
    assert_int_equal(f->result.status, 1);
    assert_string_equal(f->result.out, "");
    assert_int_equal(process_count_files(f->folder), 2);
}

/* Pipes with and without a reader are refused, and the folder has no other file afterwards. */
static void named_pipes_for_results_are_refused_without_waiting(void **state)
{
    fixture *f = *state;
    char *pipe = process_in_folder(f->folder, "pipe");
    assert_int_equal(mkfifo(pipe, 0600), 0);
    int reader = -1;
    for (int is_read = 0; is_read <= 1; is_read++) {
        if (is_read) reader = open(pipe, O_RDONLY | O_NONBLOCK);
        static const char *const options[] = {"--log", "--per-job"};
        for (size_t i = 0; i < 2; i++) {
            RUN(f, f->trace, "--gpus", "4", "--policy", "fifo", options[i], pipe);
            assert_int_equal(f->result.status, 1);
            expect_contains(f->result.err, "pipe: not a regular file");
        }
    }
    close(reader);
    struct stat info;
    assert_int_equal(stat(pipe, &info), 0);
    assert_true(S_ISFIFO(info.st_mode));
    free(pipe);
}

/* Inputs whose cells, columns or names contain an escape sequence, a bell and DEL. */
static void control_bytes_of_inputs_stay_out_of_messages(void **state)
{
#define HOSTILE "\x1b[31m\a\r\x7f"
    fixture *f = *state;
    static const char *const texts[] = {HOSTILE "\n1\n", "job_id,submit_s,gpus,duration_s," HOSTILE "\na,0,2,100,1\n",
                                        "job_id,submit_s,gpus,duration_s\n" HOSTILE ",0,2,x\n",
                                        "job_id,submit_s,gpus,duration_s\na," HOSTILE ",2,100\n",
                                        "job_id,submit_s,gpus,duration_s\na,0,2,100\n" HOSTILE ",0,2,100\n"};
    static const char *const options[] = {"--cluster", "--throughputs", "--factors", "--sweep",  "--idle",
                                          "--power",   "--policy",      "--gpus",    "--window", ("--none" HOSTILE)};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char *path = workload_write_file(f->folder, "hostile.csv", texts[i]);
        for (size_t k = 0; k <= sizeof options / sizeof *options; k++) {
            if (k == sizeof options / sizeof *options)
                RUN(f, path, "--gpus", "4", "--policy", "fifo");
            else
                RUN(f, f->trace, "--gpus", "4", "--policy", "fifo", options[k], k < 6 ? path : HOSTILE);
            for (const char *cursor = f->result.err; *cursor != '\0'; cursor++)
                if (*cursor != '\n' && ((unsigned char)*cursor < ' ' || *cursor == 0x7f)) fail_msg("%s", f->result.err);
        }
        free(path);
    }
#undef HOSTILE
}

static void inputs_are_not_replaced_by_outputs(void **state)
{
    fixture *f = *state;
    static const char *const outputs[] = {"--log", "--per-job"};
    struct stat before, after;
    for (size_t i = 0; i < 2; i++) {
        const char *const inputs[] = {f->trace, f->factors};
        for (size_t k = 0; k < 2; k++) {
            assert_int_equal(stat(inputs[k], &before), 0);
            RUN(f, f->trace, "--gpus", "4", "--policy", "fifo", "--factors", f->factors, outputs[i], inputs[k]);
            assert_int_equal(f->result.status, 2);
            expect_contains(f->result.err, "would replace its own input");
            assert_int_equal(stat(inputs[k], &after), 0);
            expect_number(before.st_ino, after.st_ino);
            expect_number(before.st_size, after.st_size);
        }
    }
    char *output = process_in_folder(f->folder, "out.csv");
    RUN(f, f->trace, "--gpus", "4", "--policy", "fifo", "--log", output, "--per-job", output);
    assert_int_equal(f->result.status, 2);
    RUN(f, f->trace, "--gpus", "4", "--policy", "fifo", "--per-job", output);
    assert_int_equal(f->result.status, 0);
    assert_int_equal(chmod(output, 0600), 0);
    RUN(f, f->trace, "--gpus", "4", "--policy", "fifo", "--per-job", output);
    assert_int_equal(f->result.status, 0);
    assert_int_equal(stat(output, &after), 0);
    assert_int_equal(after.st_mode & 0777, 0600);
    free(output);
}

static void policies_that_decide_by_the_clock_refuse_endless_jobs(void **state)
{
    fixture *f = *state;
    static const char *const policies[] = {"themis", "las", "chronus", "elasticflow", "pollux", "sia"};
    char *trace =
        workload_write_file(f->folder, "endless.csv", "job_id,submit_s,gpus,duration_s\na,0,3,100\nb,0,2,1e12\n");
    for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
        char reason[128];
        RUN(f, trace, "--gpus", "4", "--policy", policies[i]);
        assert_int_equal(f->result.status, 1);
        snprintf(reason, sizeof reason, "job b takes 1e+12 s, in which policy %s decides more than 1000000 times",
                 policies[i]);
        expect_contains(f->result.err, reason);
    }
    RUN(f, trace, "--gpus", "4", "--policy", "fifo");
    assert_int_equal(f->result.status, 0);
    free(trace);
}

static void files_of_a_figure_are_not_its_inputs(void **state)
{
    fixture *f = *state;
    char *trace = workload_write_file(f->folder, "figure.md", "job_id,submit_s,gpus,duration_s\na,0,2,100\n");
    char *prefix = process_in_folder(f->folder, "figure"), named[600];
    snprintf(named, sizeof named, "t=%s", trace);
    process_run((const char *const[]){MDOT_FIGURE4, named, "--out", prefix, "--windows", "1", "--jobs", "2", NULL},
                &f->result);
    assert_int_equal(f->result.status, 1);
    expect_contains(f->result.err, "would replace its own input");
    free(trace);
    free(prefix);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(inputs_are_not_replaced_by_outputs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(policies_that_decide_by_the_clock_refuse_endless_jobs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(files_of_a_figure_are_not_its_inputs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(control_bytes_of_inputs_stay_out_of_messages, set_up, tear_down),
        cmocka_unit_test_setup_teardown(policies_print_a_table, set_up, tear_down),
        cmocka_unit_test_setup_teardown(json_matches_the_table, set_up, tear_down),
        cmocka_unit_test_setup_teardown(energy_is_printed_if_power_is_known, set_up, tear_down),
        cmocka_unit_test_setup_teardown(results_per_job_are_written_to_a_file, set_up, tear_down),
        cmocka_unit_test_setup_teardown(job_names_are_quoted_in_csv, set_up, tear_down),
        cmocka_unit_test_setup_teardown(named_pipes_for_results_are_refused_without_waiting, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nodes_and_spreads_are_accepted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(factors_and_windows_are_accepted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(windows_lie_evenly_along_the_trace, set_up, tear_down),
        cmocka_unit_test_setup_teardown(predicted_networks_are_an_estimate, set_up, tear_down),
        cmocka_unit_test_setup_teardown(first_starts_cost_as_much_as_restarts_on_request, set_up, tear_down),
        cmocka_unit_test_setup_teardown(wrong_command_lines_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(failures_give_the_reason_and_leave_no_file, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
