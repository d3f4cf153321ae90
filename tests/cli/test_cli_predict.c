/* test_cli_predict.c — `mdot predict` as a person meets it, with the predictor that mdot comes with: paragraph, table,
 * JSON, what is taken by default, wrong command lines, and where the predictor is found. */
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

#include "mdot/mdot.h"
#include "tests/support/encoder_model.h"
#include "tests/support/json.h"
#include "tests/support/process.h"

enum { OK = 0, FAILED = 1, USAGE = 2, MAX_PREDICTIONS = 256 };

static const char resnet[] = MDOT_SOURCE_DIR "/examples/jobs/resnet50.onnx";
static const char bert[] = MDOT_SOURCE_DIR "/examples/jobs/bert_base.onnx";

typedef struct fixture {
    char *folder;
    process_result result;
} fixture;

#define RUN(f, ...) process_run((const char *const[]){MDOT_CLI, "predict", __VA_ARGS__, NULL}, &(f)->result)

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    if (f == NULL) return -1;
    unsetenv("MDOT_PREDICTOR");
    f->folder = process_make_folder();
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    process_remove_folder(f->folder);
    free(f);
    return 0;
}

static size_t count_lines(const char *text)
{
    size_t count = 0;
    for (; *text != '\0'; text++) count += *text == '\n';
    return count;
}

/* ---- Answers ----------------------------------------------------------------------------------------------------- */

static void one_configuration_is_a_paragraph(void **state)
{
    fixture *f = *state;
    RUN(f, resnet, "--gpu", "rtx 3090", "--batch", "64", "--precision", "amp");
    assert_int_equal(f->result.status, OK);
    expect_contains(f->result.out, "resnet50.onnx on RTX-3090\n");
    expect_contains(f->result.out, "batch 64, amp, nchw (default), sgd (default), 1 GPU\n");
    expect_contains(f->result.out, "90 % interval");
    expect_contains(f->result.out, "samples/s");
    expect_contains(f->result.out, "of 24 GiB: fits");
    assert_null(strstr(f->result.out, "total"));
}

static void what_the_file_says_is_the_default(void **state)
{
    fixture *f = *state;
    const mdot_job_operator op = {
        .struct_size = sizeof op, .type = "Relu", .known = true, .per_sample = {{1e6, 4e6, 4e6}}};
    mdot_job *job = NULL;
    char *path = NULL;
    assert_int_equal(mdot_job_create(&(mdot_job_description){.struct_size = sizeof(mdot_job_description),
                                                             .operators = &op,
                                                             .operator_count = 1,
                                                             .batch = 12,
                                                             .has_optimizer = true,
                                                             .optimizer = MDOT_OPTIMIZER_ADAMW},
                                     &job, NULL),
                     MDOT_OK);
    assert_true(asprintf(&path, "%s/twelve.job", f->folder) > 0);
    assert_int_equal(mdot_job_save(job, path, NULL), MDOT_OK);
    RUN(f, path, "--gpu", "T4");
    assert_int_equal(f->result.status, OK);
    expect_contains(f->result.out,
                    "batch 12 (the file's), fp32 (default), nchw (default), adamw (the file's), 1 GPU\n");
    RUN(f, path, "--gpu", "T4", "--optimizer", "sgd", "--gpus", "4");
    expect_contains(f->result.out, "batch 12 (the file's), fp32 (default), nchw (default), sgd, 4 GPUs\n");
    mdot_job_destroy(job);
    free(path);
}

static void several_configurations_are_a_table(void **state)
{
    fixture *f = *state;
    RUN(f, resnet, "--gpu", "A100,T4", "--sweep", "batch=10..70", "-q");
    assert_int_equal(f->result.status, OK);
    assert_string_equal(f->result.err, "");
    assert_int_equal(count_lines(f->result.out), 3 + 2 * 5); /* 10, 16, 32, 64, 70 */
    static const char *const starts[] = {"A100-SXM-40GB     10  ", "A100-SXM-40GB     16  ", "A100-SXM-40GB     32  ",
                                         "A100-SXM-40GB     64  ", "A100-SXM-40GB     70  ", "T4                70  "};
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) expect_contains(f->result.out, starts[i]);
    assert_null(strstr(f->result.out, " \n"));
    RUN(f, resnet, "--gpu", "T4", "--sweep", "batch=3,48,5", "-q");
    assert_int_equal(count_lines(f->result.out), 3 + 3);
}

static void all_gpus_are_those_of_the_table(void **state)
{
    fixture *f = *state;
    size_t gpu_count = 0;
    RUN(f, resnet, "--gpu", "all", "-q");
    assert_int_equal(f->result.status, OK);
    for (const char *const *name = mdot_gpu_names(); *name != NULL; name++, gpu_count++)
        expect_contains(f->result.out, *name);
    assert_int_equal(count_lines(f->result.out), 3 + gpu_count);
}

static void json_holds_every_prediction(void **state)
{
    fixture *f = *state;
    double step[MAX_PREDICTIONS], lower[MAX_PREDICTIONS], upper[MAX_PREDICTIONS], rate[MAX_PREDICTIONS];
    double batch[MAX_PREDICTIONS], seconds[MAX_PREDICTIONS], steps[MAX_PREDICTIONS];
    RUN(f, bert, "--dim", "sequence=64", "--gpu", "T4,H100", "--sweep", "batch=8..32", "--gpus", "2", "--epochs", "3",
        "--dataset", "1000", "--json");
    assert_int_equal(f->result.status, OK);
    assert_true(json_is_valid(f->result.out));
    assert_int_equal(json_numbers(f->result.out, "step_ms", step, MAX_PREDICTIONS), 6);
    assert_int_equal(json_numbers(f->result.out, "lower_ms", lower, MAX_PREDICTIONS), 6);
    assert_int_equal(json_numbers(f->result.out, "upper_ms", upper, MAX_PREDICTIONS), 6);
    assert_int_equal(json_numbers(f->result.out, "samples_per_second", rate, MAX_PREDICTIONS), 6);
    assert_int_equal(json_numbers(f->result.out, "batch", batch, MAX_PREDICTIONS), 6);
    assert_int_equal(json_numbers(f->result.out, "steps", steps, MAX_PREDICTIONS), 6);
    assert_int_equal(json_numbers(f->result.out, "total_seconds", seconds, MAX_PREDICTIONS), 6);
    static const double batches[] = {8, 16, 32}, epoch_steps[] = {63, 32, 16}; /* of 1000 samples, 16 to 64 a step */
    for (int i = 0; i < 6; i++) {
        assert_true(batch[i] == batches[i % 3]);
        assert_true(lower[i] > 0 && lower[i] <= step[i] && step[i] <= upper[i]);
        assert_float_equal(rate[i] * step[i] / 1000, 2 * batch[i], 1e-3);
        assert_true(steps[i] == 3 * epoch_steps[i % 3]);
        assert_float_equal(seconds[i] / (steps[i] * step[i] / 1000), 1, 1e-6);
    }
    expect_contains(f->result.out, "\"optimizer\": \"sgd\"");
    expect_contains(f->result.out, "\"warnings\": [");
}

static void a_total_time_is_in_units_that_matter(void **state)
{
    fixture *f = *state;
    double seconds;
    RUN(f, resnet, "--gpu", "T4", "-b", "64", "--steps", "1", "--json", "-q");
    assert_int_equal(json_numbers(f->result.out, "total_seconds", &seconds, 1), 1);
    char steps[32];
    snprintf(steps, sizeof steps, "%.0f", 100 * 3600 / seconds); /* a hundred hours of them */
    RUN(f, resnet, "--gpu", "T4", "-b", "64", "--steps", steps, "-q");
    expect_contains(f->result.out, "total       4 d 4 h for ");
}

static void a_job_file_predicts_what_its_model_does(void **state)
{
    fixture *f = *state;
    char *saved = NULL, *head;
    assert_true(asprintf(&saved, "%s/net.job", f->folder) > 0);
    process_run((const char *const[]){MDOT_CLI, "tokens", bert, "--dim", "sequence=64", "-o", saved, NULL}, &f->result);
    assert_int_equal(f->result.status, OK);
    RUN(f, bert, "--dim", "sequence=64", "--gpu", "T4", "-b", "8", "--json", "-q");
    assert_int_equal(f->result.status, OK);
    head = strstr(f->result.out, "\"operators\"");
    assert_non_null(head);
    char *printed = strdup(head);
    RUN(f, saved, "--gpu", "T4", "-b", "8", "--json", "-q");
    assert_int_equal(f->result.status, OK);
    head = strstr(f->result.out, "\"operators\"");
    assert_non_null(head);
    assert_string_equal(head, printed);
    free(printed);
    free(saved);
}

static void what_the_predictor_never_saw_is_said(void **state)
{
    fixture *f = *state;
    onnx_builder *b = onnx_begin(17);
    onnx_import(b, "com.example", 1);
    onnx_input(b, "x", MDOT_DTYPE_F32, "N,64");
    onnx_node(b, "com.example:Fancy", "x", "y");
    onnx_output(b, "y");
    char *job = write_model(f->folder, "fancy.onnx", onnx_finish(b));
    RUN(f, job, "--gpu", "T4");
    assert_int_equal(f->result.status, OK);
    expect_contains(f->result.err, "warning: unknown-operators: ");
    RUN(f, job, "--gpu", "T4", "--json");
    assert_true(json_is_valid(f->result.out));
    expect_contains(f->result.out, "\"warnings\": [\"unknown-operators\"");
    RUN(f, job, "--gpu", "T4,A100");
    expect_contains(f->result.err, "unknown-operators (2 of 2 predictions): ");
    expect_contains(f->result.out, "warnings\n");
    RUN(f, job, "--gpu", "T4", "-q");
    assert_string_equal(f->result.err, "");
    free(job);
}

static void a_job_that_is_too_large_does_not_fit(void **state)
{
    fixture *f = *state;
    RUN(f, resnet, "--gpu", "T4", "--batch", "4096", "-q");
    assert_int_equal(f->result.status, OK);
    expect_contains(f->result.out, "of 16 GiB: does not fit");
}

static void a_job_of_empty_tensors_is_refused(void **state)
{
    fixture *f = *state;
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, "x", MDOT_DTYPE_F32, "1,0,64");
    onnx_node(b, "Relu", "x", "y");
    onnx_output(b, "y");
    char *job = write_model(f->folder, "empty.onnx", onnx_finish(b));
    RUN(f, job, "--gpu", "T4", "--json");
    assert_int_equal(f->result.status, FAILED);
    assert_string_equal(f->result.out, "");
    expect_contains(f->result.err, "empty.onnx: there is nothing to compute");
    free(job);
}

/* ---- Command lines ----------------------------------------------------------------------------------------------- */

static void a_missing_or_unknown_gpu_lists_the_known(void **state)
{
    fixture *f = *state;
    RUN(f, resnet);
    assert_int_equal(f->result.status, USAGE);
    expect_contains(f->result.err, "no GPU given");
    for (const char *const *name = mdot_gpu_names(); *name != NULL; name++) expect_contains(f->result.err, *name);
    RUN(f, resnet, "--gpu", "T4,B17");
    assert_int_equal(f->result.status, USAGE);
    expect_contains(f->result.err, "\"B17\"");
    for (const char *const *name = mdot_gpu_names(); *name != NULL; name++) expect_contains(f->result.err, *name);
    assert_string_equal(f->result.out, "");
}

static void wrong_values_list_the_right_ones(void **state)
{
    fixture *f = *state;
    static const char *const lines[][3] = {
        {"--precision=bf17", "fp32, tf32, amp"},
        {"--layout=chwn", "nchw, nhwc"},
        {"--optimizer=lion", "sgd, adam, adamw"},
        {"--batch=0", "from 1 to"},
        {"--batch=many", "from 1 to"},
        {"--gpus=0", "from 1 to"},
        {"--steps=-1", "from 1 to"},
        {"--sweep=batch=0..8", "from 1 to"},
        {"--sweep=batch=8..4", "ascends"},
        {"--sweep=batch=8,,4", "list"},
        {"--sweep=gpus=1..8", "batch=A..B"},
        {"--epochs=3", "--dataset"},
        {"--dataset=3", "--epochs"},
        {"--dim=T", "NAME="},
        {"--frob", "--frob"},
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        RUN(f, resnet, "--gpu", "T4", lines[i][0]);
        if (f->result.status != USAGE) fail_msg("%s: exit status %d", lines[i][0], f->result.status);
        assert_string_equal(f->result.out, "");
        expect_contains(f->result.err, lines[i][1]);
    }
}

static void options_that_exclude_each_other_are_refused(void **state)
{
    fixture *f = *state;
    RUN(f, resnet, "--gpu", "T4", "--batch", "8", "--sweep", "batch=8..16");
    assert_int_equal(f->result.status, USAGE);
    RUN(f, resnet, "--gpu", "T4", "--steps", "8", "--epochs", "1", "--dataset", "8");
    assert_int_equal(f->result.status, USAGE);
    RUN(f, "--gpu", "T4");
    assert_int_equal(f->result.status, USAGE);
    expect_contains(f->result.err, "no job given");
    RUN(f, resnet, resnet, "--gpu", "T4");
    assert_int_equal(f->result.status, USAGE);
}

static void help_is_a_result(void **state)
{
    fixture *f = *state;
    RUN(f, "--help");
    assert_int_equal(f->result.status, OK);
    expect_contains(f->result.out, "Usage: mdot predict");
    assert_string_equal(f->result.err, "");
}

/* ---- Which predictor --------------------------------------------------------------------------------------------- */

static void the_command_line_and_the_environment_name_a_predictor(void **state)
{
    fixture *f = *state;
    setenv("MDOT_PREDICTOR", "/nonexistent/a.mdot", 1);
    RUN(f, resnet, "--gpu", "T4");
    assert_int_equal(f->result.status, FAILED);
    expect_contains(f->result.err, "/nonexistent/a.mdot");
    RUN(f, resnet, "--gpu", "T4", "--model", MDOT_SHIPPED_PREDICTOR);
    assert_int_equal(f->result.status, OK);
    RUN(f, resnet, "--gpu", "T4", "--model", "/nonexistent/b.mdot");
    assert_int_equal(f->result.status, FAILED);
    expect_contains(f->result.err, "/nonexistent/b.mdot");
    unsetenv("MDOT_PREDICTOR");
    RUN(f, resnet, "--gpu", "T4", "--model", resnet);
    assert_int_equal(f->result.status, FAILED);
    expect_contains(f->result.err, "resnet50.onnx");
}

static void copy(fixture *f, const char *from, const char *to)
{
    process_run((const char *const[]){"/bin/cp", from, to, NULL}, &f->result);
    assert_int_equal(f->result.status, 0);
}

static void an_installation_may_be_moved(void **state)
{
    fixture *f = *state;
    char bin[256], command[300], share[300], predictor[400];
    snprintf(bin, sizeof bin, "%s/bin", f->folder);
    snprintf(command, sizeof command, "%s/mdot", bin);
    snprintf(share, sizeof share, "%s/share", f->folder);
    assert_int_equal(mkdir(bin, 0777), 0);
    assert_int_equal(mkdir(share, 0777), 0);
    snprintf(predictor, sizeof predictor, "%s/mdot", share);
    assert_int_equal(mkdir(predictor, 0777), 0);
    snprintf(predictor, sizeof predictor, "%s/mdot/predictor.mdot", share);
    copy(f, MDOT_CLI, command);
    const char *const line[] = {command, "predict", resnet, "--gpu=T4", NULL};
    process_run(line, &f->result);
    assert_int_equal(f->result.status, FAILED);
    expect_contains(f->result.err, predictor);
    expect_contains(f->result.err, "MDOT_PREDICTOR");
    copy(f, MDOT_SHIPPED_PREDICTOR, predictor);
    process_run(line, &f->result);
    assert_int_equal(f->result.status, OK);
}

/* ---- The example ------------------------------------------------------------------------------------------------- */

static void the_quickstart_predicts_and_sweeps(void **state)
{
    fixture *f = *state;
    process_run((const char *const[]){MDOT_QUICKSTART, resnet, "A100", MDOT_SHIPPED_PREDICTOR, NULL}, &f->result);
    assert_int_equal(f->result.status, OK);
    expect_contains(f->result.out, "batch 32: ");
    expect_contains(f->result.out, "batch 128: ");
    process_run((const char *const[]){MDOT_QUICKSTART, resnet, "B17", MDOT_SHIPPED_PREDICTOR, NULL}, &f->result);
    assert_int_equal(f->result.status, FAILED);
    expect_contains(f->result.err, "B17");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_configuration_is_a_paragraph, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_the_file_says_is_the_default, set_up, tear_down),
        cmocka_unit_test_setup_teardown(several_configurations_are_a_table, set_up, tear_down),
        cmocka_unit_test_setup_teardown(all_gpus_are_those_of_the_table, set_up, tear_down),
        cmocka_unit_test_setup_teardown(json_holds_every_prediction, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_total_time_is_in_units_that_matter, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_job_file_predicts_what_its_model_does, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_the_predictor_never_saw_is_said, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_job_that_is_too_large_does_not_fit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_job_of_empty_tensors_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_missing_or_unknown_gpu_lists_the_known, set_up, tear_down),
        cmocka_unit_test_setup_teardown(wrong_values_list_the_right_ones, set_up, tear_down),
        cmocka_unit_test_setup_teardown(options_that_exclude_each_other_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(help_is_a_result, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_command_line_and_the_environment_name_a_predictor, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_installation_may_be_moved, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_quickstart_predicts_and_sweeps, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
