/* test_cli_predict.c — `mdot predict` from the user's view, with the shipped predictor: paragraph, table, JSON,
 * defaults, and the search for the predictor. test_cli_predict_usage.c tests its command lines. */
#include <math.h>
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
#include "tests/support/assertions.h"
#include "tests/support/encoder_model.h"
#include "tests/support/json.h"
#include "tests/support/predict_command.h"

enum { MAX_PREDICTIONS = 256 };

/* ---- Answers ----------------------------------------------------------------------------------------------------- */

static void one_configuration_prints_a_paragraph(void **state)
{
    predict_command *f = *state;
    RUN(f, resnet, "--gpu", "rtx 3090", "--batch", "64", "--precision", "amp");
    assert_int_equal(f->result.status, OK);
    expect_contains(f->result.out, "resnet50.onnx on RTX-3090\n");
    expect_contains(f->result.out,
                    "batch 64, amp-fp16, nchw (default), sgd (default), PyTorch 2.9 (default), 1\n  GPU\n");
    expect_contains(f->result.out, "90 % interval");
    expect_contains(f->result.out, "samples/s");
    expect_contains(f->result.out, " GiB allocated, 90 % interval ");
    expect_contains(f->result.out, " of 23.6 GiB usable on a card of 24 GiB: fits");
    expect_contains(f->result.out, "fragmentation ");
    assert_null(strstr(f->result.out, "NCCL"));
    expect_contains(f->result.out, "  work        25.6M parameters, 24.5G FLOP per sample; ");
    expect_contains(f->result.out, "% of the GPU's peak FLOP/s, ");
    expect_contains(f->result.out, "% of its bandwidth\n");
    assert_null(strstr(f->result.out, "total"));
}

/* --beside prints both steps as C answers them, and whether both fit. */
static void a_job_beside_another_has_a_slowdown(void **state)
{
    predict_command *f = *state;
    RUN(f, resnet, "--gpu", "V100-SXM-16GB", "--batch", "16", "--precision", "fp32", "--beside", resnet,
        "--beside-batch", "64", "--json", "--quiet");
    assert_int_equal(f->result.status, OK);
    assert_true(json_is_valid(f->result.out));
    double step[3], slowdown[2], gain;
    assert_int_equal(json_numbers(f->result.out, "step_ms", step, 3), 3); /* alone, and both beside each other */
    assert_int_equal(json_numbers(f->result.out, "slowdown", slowdown, 2), 2);
    assert_int_equal(json_numbers(f->result.out, "gain", &gain, 1), 1);
    assert_true(slowdown[0] > 1 && slowdown[1] > 1);
    assert_true(fabs(step[1] / step[0] - slowdown[0]) < 1e-6);
    assert_true(fabs(gain - 1 / slowdown[0] - 1 / slowdown[1]) < 1e-6);
    RUN(f, resnet, "--gpu", "V100-SXM-16GB", "--batch", "64", "--beside", resnet, "--beside-batch", "128", "-q");
    assert_int_equal(f->result.status, OK);
    expect_contains(f->result.out, "of 15.8 GiB usable: do not fit\n  packing     needs more memory");
    RUN(f, resnet, "--gpu", "V100,A100", "--beside", resnet);
    assert_int_equal(f->result.status, 2);
    expect_contains(f->result.err, "--beside requires a single prediction");
    RUN(f, resnet, "--gpu", "V100", "--beside-batch", "2");
    assert_int_equal(f->result.status, 2);
    /* sizes and adapters are the first job's: the second one is as its file states it */
    RUN(f, "gpt2", "--gpu", "A100", "--length", "128", "--lora", "r=4", "--beside", resnet, "-q");
    assert_int_equal(f->result.status, OK);
}

/* A job with an unknown operator and zero parameters. */
static void warnings_of_a_prediction_are_printed(void **state)
{
    predict_command *f = *state;
    const mdot_job_operator op = {
        .struct_size = sizeof op, .type = "Fancy\033[31m", .known = false, .per_sample = {{1e6, 4e6, 4e6}}};
    const mdot_job_description description = {
        .struct_size = sizeof description, .operators = &op, .operator_count = 1, .notes = MDOT_JOB_FOLDED};
    mdot_job *job = NULL;
    char *path = NULL;
    assert_int_equal(mdot_job_create(&description, &job, NULL), MDOT_OK);
    assert_compare(asprintf(&path, "%s/fancy.job", f->folder), >, 0);
    assert_int_equal(mdot_job_save(job, path, NULL), MDOT_OK);
    RUN(f, path, "--gpu", "T4");
    expect_contains(f->result.err, "warning: unknown-operators: ");
    expect_contains(f->result.err, ": Fancy?[31m; 100 % of its work\n");
    expect_contains(f->result.err, "warning: no-parameters: ");
    expect_contains(f->result.err, "warning: folded: ");
    RUN(f, path, "--gpu", "T4", "--json", "-q");
    expect_contains(f->result.out, "\"parameters\": 0");
    expect_contains(f->result.out, "\"unknown_share\": 1, ");
    expect_contains(f->result.out, "\"no-parameters\", \"folded\", ");
    mdot_job_destroy(job);
    free(path);
}

static void job_file_values_are_the_default(void **state)
{
    predict_command *f = *state;
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
    assert_compare(asprintf(&path, "%s/twelve.job", f->folder), >, 0);
    assert_int_equal(mdot_job_save(job, path, NULL), MDOT_OK);
    RUN(f, path, "--gpu", "T4");
    assert_int_equal(f->result.status, OK);
    expect_contains(f->result.out, "batch 12 (the file's), pytorch (default), nchw (default), adamw (the file's),\n"
                                   "  PyTorch 2.9 (default), 1 GPU\n");
    RUN(f, path, "--gpu", "T4", "--optimizer", "sgd", "--gpus", "4");
    expect_contains(f->result.out, "batch 12 (the file's), pytorch (default), nchw (default), sgd, PyTorch 2.9\n"
                                   "  (default), 4 GPUs, linked by NVLink if present, else PCIe (default)\n");
    mdot_job_destroy(job);
    free(path);
}

static void several_configurations_print_a_table(void **state)
{
    predict_command *f = *state;
    RUN(f, resnet, "--gpu", "A100,T4", "--sweep", "batch=10..70", "-q");
    assert_int_equal(f->result.status, OK);
    assert_string_equal(f->result.err, "");
    assert_int_equal(count_lines(f->result.out), 4 + 2 * 5); /* 10, 16, 32, 64, 70 */
    static const char *const starts[] = {"A100-SXM-40GB     10  ", "A100-SXM-40GB     16  ", "A100-SXM-40GB     32  ",
                                         "A100-SXM-40GB     64  ", "A100-SXM-40GB     70  ", "T4                70  "};
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) expect_contains(f->result.out, starts[i]);
    assert_null(strstr(f->result.out, " \n"));
    RUN(f, resnet, "--gpu", "T4", "--sweep", "batch=3,48,5", "-q");
    assert_int_equal(count_lines(f->result.out), 4 + 3);
}

static void all_gpus_lists_every_gpu_of_the_table(void **state)
{
    predict_command *f = *state;
    size_t gpu_count = 0;
    RUN(f, resnet, "--gpu", "all", "-q");
    assert_int_equal(f->result.status, OK);
    for (const char *const *name = mdot_gpu_names(); *name != NULL; name++, gpu_count++)
        expect_contains(f->result.out, *name);
    assert_int_equal(count_lines(f->result.out), 5 + gpu_count);
}

static void json_holds_every_prediction(void **state)
{
    predict_command *f = *state;
    double step[MAX_PREDICTIONS], lower[MAX_PREDICTIONS], upper[MAX_PREDICTIONS], rate[MAX_PREDICTIONS];
    double batch[MAX_PREDICTIONS], seconds[MAX_PREDICTIONS], steps[MAX_PREDICTIONS];
    RUN(f, bert, "--dim", "sequence=64", "--gpu", "T4,H100", "--sweep", "batch=8..32", "--gpus", "2", "--epochs", "3",
        "--dataset", "1000", "--json");
    assert_int_equal(f->result.status, OK);
    assert_true(json_is_valid(f->result.out));
    expect_contains(f->result.out, "{\"schema\": \"mdot-predict/1\", \"mdot\": \"" MDOT_PROJECT_VERSION
                                   "\", \"predictor\": \"predictor\", \"compiler\": \"mdot ");
    assert_int_equal(json_numbers(f->result.out, "step_ms", step, MAX_PREDICTIONS), 6);
    assert_int_equal(json_numbers(f->result.out, "lower_ms", lower, MAX_PREDICTIONS), 6);
    assert_int_equal(json_numbers(f->result.out, "upper_ms", upper, MAX_PREDICTIONS), 6);
    assert_int_equal(json_numbers(f->result.out, "samples_per_second", rate, MAX_PREDICTIONS), 6);
    assert_int_equal(json_numbers(f->result.out, "batch", batch, MAX_PREDICTIONS), 6);
    assert_int_equal(json_numbers(f->result.out, "steps", steps, MAX_PREDICTIONS), 6);
    assert_int_equal(json_numbers(f->result.out, "total_seconds", seconds, MAX_PREDICTIONS), 6);
    /* for 1000 samples, with 16 to 64 per step */
    static const double batches[] = {8, 16, 32}, epoch_steps[] = {63, 32, 16};
    for (int i = 0; i < 6; i++) {
        assert_compare(batch[i], ==, batches[i % 3]);
        assert_compare(lower[i], >, 0);
        assert_compare(lower[i], <=, step[i]);
        assert_compare(step[i], <=, upper[i]);
        assert_float_equal(rate[i] * step[i] / 1000, 2 * batch[i], 1e-3);
        assert_compare(steps[i], ==, 3 * epoch_steps[i % 3]);
        assert_float_equal(seconds[i] / (steps[i] * step[i] / 1000), 1, 1e-6);
    }
    expect_contains(f->result.out, "\"optimizer\": \"sgd\"");
    expect_contains(f->result.out, "\"warnings\": [");
    expect_contains(f->result.out, "\"software\": {\"torch\": \"2.9\", \"attention\": \"flash\", \"host\": ");
    RUN(f, resnet, "--gpu", "T4", "--torch", "1.11", "--json", "-q");
    expect_contains(f->result.out, "\"software\": {\"torch\": \"1.11\", \"host\": ");
}

static void a_total_time_is_in_readable_units(void **state)
{
    predict_command *f = *state;
    double seconds;
    RUN(f, resnet, "--gpu", "T4", "-b", "64", "--steps", "1", "--json", "-q");
    assert_int_equal(json_numbers(f->result.out, "total_seconds", &seconds, 1), 1);
    char steps[32];
    snprintf(steps, sizeof steps, "%.0f", 100 * 3600 / seconds); /* a hundred hours */
    RUN(f, resnet, "--gpu", "T4", "-b", "64", "--steps", steps, "-q");
    expect_contains(f->result.out, "total       4 d 4 h for ");
}

static void a_job_file_predicts_the_same_as_its_model(void **state)
{
    predict_command *f = *state;
    char *saved = NULL, *head;
    assert_compare(asprintf(&saved, "%s/net.job", f->folder), >, 0);
    process_run((const char *const[]){MDOT_CLI, "extract", bert, "--dim", "sequence=64", "-o", saved, NULL},
                &f->result);
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

static void inputs_outside_of_the_training_range_are_reported(void **state)
{
    predict_command *f = *state;
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
    RUN(f, job, "--gpu", "T4,A100", "--wide");
    expect_contains(f->result.err, "unknown-operators (2 of 2 predictions): ");
    expect_contains(f->result.out, "warnings\n");
    RUN(f, job, "--gpu", "T4", "-q");
    assert_string_equal(f->result.err, "");
    free(job);
}

/* Half of 10^5 operators have unknown types. Comparing each with all earlier ones would be too slow. */
static void unknown_types_are_named_once(void **state)
{
    predict_command *f = *state;
    enum { COUNT = 100000 };
    static const char *const types[] = {"One", "Two", "Three", "Four", "Five"};
    char *path = NULL;
    assert_compare(asprintf(&path, "%s/many.job", f->folder), >, 0);
    for (size_t kinds = 2; kinds <= 5; kinds += 3) {
        mdot_job_operator *operators = calloc(COUNT, sizeof *operators);
        assert_non_null(operators);
        for (size_t i = 0; i < COUNT; i++) {
            operators[i] = (mdot_job_operator){.struct_size = sizeof *operators, .type = "Relu", .known = true};
            operators[i].traits.number = i < COUNT / 2;
            if (i >= COUNT / 2) operators[i].type = types[i % kinds];
            operators[i].per_sample[MDOT_PHASE_FORWARD] = (mdot_load){1e6, 1e6, 1e6};
        }
        const mdot_job_description d = {
            .struct_size = sizeof d, .operators = operators, .operator_count = COUNT, .batch = 1};
        mdot_job *job = NULL;
        assert_int_equal(mdot_job_create(&d, &job, NULL), MDOT_OK);
        assert_int_equal(mdot_job_save(job, path, NULL), MDOT_OK);
        mdot_job_destroy(job);
        free(operators);
        RUN(f, path, "--gpu", "T4");
        assert_int_equal(f->result.status, OK);
        expect_contains(f->result.err, kinds == 2 ? ": One, Two; " : ": One, Two, Three, Four and others; ");
    }
    free(path);
}

static void a_job_that_is_too_large_does_not_fit(void **state)
{
    predict_command *f = *state;
    RUN(f, resnet, "--gpu", "T4", "--batch", "4096", "-q");
    assert_int_equal(f->result.status, OK);
    expect_contains(f->result.out, " of 14.8 GiB usable on a card of 16 GiB: does not fit");
}

static void a_job_of_empty_tensors_is_refused(void **state)
{
    predict_command *f = *state;
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, "x", MDOT_DTYPE_F32, "1,0,64");
    onnx_node(b, "Relu", "x", "y");
    onnx_output(b, "y");
    char *job = write_model(f->folder, "empty.onnx", onnx_finish(b));
    RUN(f, job, "--gpu", "T4", "--json");
    assert_int_equal(f->result.status, FAILED);
    assert_string_equal(f->result.out, "");
    expect_contains(f->result.err, "empty.onnx: the graph contains only operators that are free");
    free(job);
}

/* Weights, gradients, optimizer state and activations add up to the peak. */
static void memory_is_printed_by_category(void **state)
{
    predict_command *f = *state;
    static const char *const parts[] = {"weight_bytes", "gradient_bytes", "optimizer_bytes", "activation_bytes"};
    double peak, part, sum = 0;
    RUN(f, resnet, "--gpu=T4", "-b32", "--optimizer=adam", "--json", "-q");
    assert_int_equal(json_numbers(f->result.out, "peak_memory_bytes", &peak, 1), 1);
    for (int i = 0; i < 4; i++, sum += part) assert_int_equal(json_numbers(f->result.out, parts[i], &part, 1), 1);
    assert_compare(sum, >=, peak - 4);
    assert_compare(sum, <=, peak + 4);
    RUN(f, resnet, "--gpu=T4", "-b32", "--optimizer=adam", "--accumulate=2", "-q");
    expect_contains(f->result.out, "weights 0.10, gradients 0.10, optimizer 0.19, activations ");
}

/* One more sample exceeds the memory, on every GPU. The batch of a pipeline is divisible into micro-batches. */
static void the_largest_batch_that_fits_is_found(void **state)
{
    predict_command *f = *state;
    double batch[3];
    RUN(f, resnet, "--gpu=T4,A100", "--fit", "--json", "-q");
    assert_int_equal(f->result.status, OK);
    assert_int_equal(json_numbers(f->result.out, "batch", batch, 3), 2);
    assert_compare(batch[0], >, 50);
    assert_compare(batch[1], >, 2 * batch[0]);
    for (int i = 0; i < 2; i++) {
        for (int more = 0; more < 2; more++) {
            char text[32];
            snprintf(text, sizeof text, "%.0f", batch[i] + more);
            RUN(f, resnet, i == 0 ? "--gpu=T4" : "--gpu=A100", "-b", text, "-q");
            expect_contains(f->result.out, more == 0 ? ": fits" : ": does not fit");
        }
    }
    RUN(f, bert, "--dim=sequence=512", "--gpu=T4", "--fit", "--parallel=pp=4,micro=12", "--json", "-q");
    assert_int_equal(json_numbers(f->result.out, "batch", batch, 3), 1);
    assert_compare(batch[0], >, 12);
    assert_compare((int)batch[0] % 12, ==, 0);
    RUN(f, resnet, "--gpu=T4", "--fit", "-b8");
    assert_int_equal(f->result.status, USAGE);
    RUN(f, resnet, "--gpu=T4", "--fit", "--sweep=batch=8,16");
    assert_int_equal(f->result.status, USAGE);
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

/* A later date replaces an earlier one, the cheapest place counts, and filters choose rows. */
static void prices_come_from_a_dated_table(void **state)
{
    predict_command *f = *state;
    static const char table[] = "date,gpu,region,price,currency,provider\n2026-10-01,H100,west,4,USD,one\n"
                                "2026-11-01,H100,west,3,USD,one\n2026-09-01,H100,west,1,USD,one\n"
                                "2026-11-02,H100,north,2.5,USD,two\n2026-11-01,T4,west,0.4,EUR,three\n";
    static const struct {
        const char *filters, *expected;
    } cases[] = {
        {",currency=USD", "2.5 USD/h (two north, 2026-11-02)"},
        {",provider=one", "3 USD/h (one west, 2026-11-01)"},
        {",provider=one,date=2026-09-01", "1 USD/h (one west, 2026-09-01)"},
        {"", ":6: the currency is \"EUR\", but \"USD\" in a row before; choose one"},
        {",zone=one", "there is no column zone"},
        {",provider", "\"provider\" must have the form COLUMN=VALUE"},
    };
    char path[300], option[400];
    snprintf(path, sizeof path, "%s/prices.csv", f->folder);
    write_text(path, table);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(option, sizeof option, "--price=%s%s", path, cases[i].filters);
        RUN(f, resnet, "--gpu=H100", option);
        expect_contains(f->result.status == OK ? f->result.out : f->result.err, cases[i].expected);
        assert_int_equal(f->result.status, i < 3 ? OK : USAGE);
    }
    static const char *const broken[][2] = {{"gpu,price\nT4,two\n", ":2: the price \"two\": it must be a price"},
                                            {"gpu,price,date\nT4,1,1.11.2026\n", "must have the form 2026-11-29"},
                                            {"gpu,cost\nT4,1\n", "there is no column price"},
                                            {"T4 2.5\n", "there is no column gpu"}};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        write_text(path, broken[i][0]);
        RUN(f, resnet, "--gpu=T4", "--price", path);
        assert_int_equal(f->result.status, USAGE);
        expect_contains(f->result.err, broken[i][1]);
    }
}

/* The cost is hours times GPUs times the price. GPUs that lack a price are last. */
static void lines_are_sorted_and_show_costs(void **state)
{
    predict_command *f = *state;
    char path[300];
    double cost[4], seconds[4], step[4], rate[4];
    snprintf(path, sizeof path, "%s/prices.txt", f->folder);
    write_text(path, "# an hour\ngpu,price\nA100-SXM4-40GB,2\nTesla T4,0.5/h\n\n");
    RUN(f, resnet, "--gpu=H100,T4,A100", "-b64", "--gpus=4", "--steps=1000", "--price", path, "--sort=cost", "--json",
        "-q");
    assert_int_equal(f->result.status, OK);
    assert_int_equal(json_numbers(f->result.out, "cost", cost, 4), 2);
    assert_int_equal(json_numbers(f->result.out, "total_seconds", seconds, 4), 3);
    assert_compare(cost[0], <=, cost[1]);
    const char *first = strstr(f->result.out, "\"gpu\": ");
    double price = strstr(first, "A100") < strstr(first, "\"T4\"") ? 2 : 0.5;
    assert_float_equal(cost[0], seconds[0] / 3600 * 4 * price, 1e-6 * cost[0]);
    assert_non_null(strstr(strstr(first, "\"T4\""), "H100"));
    RUN(f, resnet, "--gpu=T4,H100,A100", "-b64", "--sort=time", "--json", "-q");
    assert_int_equal(json_numbers(f->result.out, "step_ms", step, 4), 3);
    assert_compare(step[0], <=, step[1]);
    assert_compare(step[1], <=, step[2]);
    RUN(f, resnet, "--gpu=T4", "--sweep=batch=8,512,64", "--sort=throughput", "--price=3", "--json", "-q");
    assert_int_equal(json_numbers(f->result.out, "samples_per_second", rate, 4), 3);
    assert_int_equal(json_numbers(f->result.out, "cost_of_a_million_samples", cost, 4), 3);
    assert_compare(rate[0], >=, rate[1]); /* the third does not fit the memory */
    assert_float_equal(cost[0] * rate[0], 3 * 1e6 / 3600, 1e-3);
    RUN(f, resnet, "--gpu=T4", "--sort=cost");
    expect_contains(f->result.err, "--sort cost requires --price");
    RUN(f, resnet, "--gpu=T4", "--price=-3");
    expect_contains(f->result.err, "the price must be above 0");
}

static size_t longest_line(const char *text)
{
    size_t longest = 0;
    for (const char *line = text; *line != '\0'; line += strcspn(line, "\n") + (strchr(line, '\n') != NULL)) {
        size_t length = strcspn(line, "\n");
        longest = length > longest ? length : longest;
    }
    return longest;
}

/* The answer follows from the numbers that are shown, also where both round to the same one. */
static void the_share_of_usable_memory_decides_what_fits(void **state)
{
    predict_command *f = *state;
    double reserved[64], usable[64], part[4][64], peak[64];
    static const char *const parts[] = {"rounding_bytes", "context_bytes", "workspace_bytes", "collective_bytes"};
    RUN(f, resnet, "--gpu=T4,A100,H100", "--sweep=batch=1..2048", "--gpus=8", "--json", "-q");
    size_t count = json_numbers(f->result.out, "reserved_bytes", reserved, 64);
    assert_compare(count, >, 30);
    assert_compare(json_numbers(f->result.out, "usable_bytes", usable, 64), ==, count);
    assert_compare(json_numbers(f->result.out, "peak_memory_bytes", peak, 64), ==, count);
    for (int k = 0; k < 4; k++) assert_compare(json_numbers(f->result.out, parts[k], part[k], 64), ==, count);
    const char *at = f->result.out;
    for (size_t i = 0; i < count; i++) {
        at = strstr(at, "\"fits\": ") + strlen("\"fits\": ");
        assert_int_equal(strncmp(at, "true", 4) == 0, reserved[i] <= usable[i]);
        double sum = peak[i] + part[0][i] + part[1][i] + part[2][i] + part[3][i];
        assert_compare(fabs(sum - reserved[i]), <=, 4);
        assert_compare(part[3][i], >, 0);
    }
}

/* With --wide all columns are printed. */
static void tables_fit_eighty_columns(void **state)
{
    predict_command *f = *state;
    RUN(f, resnet, "--gpu=all", "--steps=100000", "--price=2", "-q");
    assert_compare(longest_line(strchr(f->result.out, '\n') + 1), <=, 80);
    expect_contains(f->result.out, "step, ms");
    expect_contains(f->result.out, "cost");
    assert_null(strstr(f->result.out, "peak"));
    RUN(f, resnet, "--gpu=all", "--steps=100000", "--price=2", "-q", "--wide");
    assert_compare(longest_line(f->result.out), >, 80);
    expect_contains(f->result.out, "  95 %  samples/s  peak  ");
    expect_contains(f->result.out, "reserved    of  ");
}

static void pytorch_files_give_export_instructions(void **state)
{
    predict_command *f = *state;
    char path[300];
    snprintf(path, sizeof path, "%s/net.pt", f->folder);
    write_text(path, "PK\3\4 archive");
    RUN(f, path, "--gpu=T4");
    assert_int_equal(f->result.status, FAILED);
    expect_contains(f->result.err,
                    "torch.onnx.export(model.train(), (example,), \"job.onnx\", dynamo=True, optimize=False)");
}

/* ---- Which predictor --------------------------------------------------------------------------------------------- */

static void the_command_line_and_the_environment_name_a_predictor(void **state)
{
    predict_command *f = *state;
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

static void copy(predict_command *f, const char *from, const char *to)
{
    process_run((const char *const[]){"/bin/cp", from, to, NULL}, &f->result);
    assert_int_equal(f->result.status, 0);
}

static void an_installation_may_be_moved(void **state)
{
    predict_command *f = *state;
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
    predict_command *f = *state;
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
        cmocka_unit_test_setup_teardown(one_configuration_prints_a_paragraph, predict_command_set_up,
                                        predict_command_tear_down),
        cmocka_unit_test_setup_teardown(a_job_beside_another_has_a_slowdown, predict_command_set_up,
                                        predict_command_tear_down),
        cmocka_unit_test_setup_teardown(warnings_of_a_prediction_are_printed, predict_command_set_up,
                                        predict_command_tear_down),
        cmocka_unit_test_setup_teardown(job_file_values_are_the_default, predict_command_set_up,
                                        predict_command_tear_down),
        cmocka_unit_test_setup_teardown(several_configurations_print_a_table, predict_command_set_up,
                                        predict_command_tear_down),
        cmocka_unit_test_setup_teardown(all_gpus_lists_every_gpu_of_the_table, predict_command_set_up,
                                        predict_command_tear_down),
        cmocka_unit_test_setup_teardown(json_holds_every_prediction, predict_command_set_up, predict_command_tear_down),
        cmocka_unit_test_setup_teardown(a_total_time_is_in_readable_units, predict_command_set_up,
                                        predict_command_tear_down),
        cmocka_unit_test_setup_teardown(a_job_file_predicts_the_same_as_its_model, predict_command_set_up,
                                        predict_command_tear_down),
        cmocka_unit_test_setup_teardown(unknown_types_are_named_once, predict_command_set_up,
                                        predict_command_tear_down),
        cmocka_unit_test_setup_teardown(inputs_outside_of_the_training_range_are_reported, predict_command_set_up,
                                        predict_command_tear_down),
        cmocka_unit_test_setup_teardown(a_job_that_is_too_large_does_not_fit, predict_command_set_up,
                                        predict_command_tear_down),
        cmocka_unit_test_setup_teardown(a_job_of_empty_tensors_is_refused, predict_command_set_up,
                                        predict_command_tear_down),
        cmocka_unit_test_setup_teardown(memory_is_printed_by_category, predict_command_set_up,
                                        predict_command_tear_down),
        cmocka_unit_test_setup_teardown(the_largest_batch_that_fits_is_found, predict_command_set_up,
                                        predict_command_tear_down),
        cmocka_unit_test_setup_teardown(prices_come_from_a_dated_table, predict_command_set_up,
                                        predict_command_tear_down),
        cmocka_unit_test_setup_teardown(lines_are_sorted_and_show_costs, predict_command_set_up,
                                        predict_command_tear_down),
        cmocka_unit_test_setup_teardown(the_share_of_usable_memory_decides_what_fits, predict_command_set_up,
                                        predict_command_tear_down),
        cmocka_unit_test_setup_teardown(tables_fit_eighty_columns, predict_command_set_up, predict_command_tear_down),
        cmocka_unit_test_setup_teardown(pytorch_files_give_export_instructions, predict_command_set_up,
                                        predict_command_tear_down),
        cmocka_unit_test_setup_teardown(the_command_line_and_the_environment_name_a_predictor, predict_command_set_up,
                                        predict_command_tear_down),
        cmocka_unit_test_setup_teardown(an_installation_may_be_moved, predict_command_set_up,
                                        predict_command_tear_down),
        cmocka_unit_test_setup_teardown(the_quickstart_predicts_and_sweeps, predict_command_set_up,
                                        predict_command_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
