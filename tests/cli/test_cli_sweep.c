/* test_cli_sweep.c — `mdot predict --sweep` over the batch, a symbolic dimension, or both; the largest dimension that
 * fits; tokens per second of language models; a job from standard input. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/assertions.h"
#include "tests/support/json.h"
#include "tests/support/predict_command.h"

enum { MOST = 16 };

static void assert_numbers(const char *json, const char *key, const double *want, size_t count)
{
    double got[MOST];
    assert_int_equal(json_numbers(json, key, got, MOST), count);
    for (size_t i = 0; i < count; i++) assert_compare(got[i], ==, want[i]);
}

static void a_dimension_and_the_batch_are_swept_together(void **state)
{
    predict_command *f = *state;
    RUN(f, bert, "--gpu", "A100", "--sweep", "sequence=64,128", "--sweep", "batch=8..32", "--json", "-q");
    assert_int_equal(f->result.status, OK);
    assert_true(json_is_valid(f->result.out));
    assert_numbers(f->result.out, "sequence", (const double[]){64, 64, 64, 128, 128, 128}, 6);
    assert_numbers(f->result.out, "batch", (const double[]){8, 16, 32, 8, 16, 32}, 6);
    double swept[MOST], one[1];
    assert_int_equal(json_numbers(f->result.out, "step_ms", swept, MOST), 6);
    RUN(f, bert, "--gpu", "A100", "--dim", "sequence=128", "--batch", "16", "--json", "-q");
    assert_int_equal(json_numbers(f->result.out, "step_ms", one, 1), 1);
    assert_compare(one[0], ==, swept[4]);
}

/* The length of a ready job has a default, so the job can be read without it. */
static void the_length_of_a_ready_job_is_swept(void **state)
{
    predict_command *f = *state;
    static const char *const jobs[] = {"gpt2", "bert-base", "t5-small", "qwen3-0.6b"};
    for (size_t j = 0; j < sizeof jobs / sizeof *jobs; j++) {
        double swept[MOST], one[1];
        RUN(f, jobs[j], "--gpu", "A100", "--batch", "2", "--sweep", "length=64,192", "--json", "-q");
        assert_int_equal(f->result.status, OK);
        assert_true(json_is_valid(f->result.out));
        assert_numbers(f->result.out, "length", (const double[]){64, 192}, 2);
        assert_int_equal(json_numbers(f->result.out, "step_ms", swept, MOST), 2);
        for (size_t i = 0; i < 2; i++) {
            RUN(f, jobs[j], "--gpu", "A100", "--batch", "2", "--dim", i == 0 ? "length=64" : "length=192", "--json",
                "-q");
            assert_int_equal(json_numbers(f->result.out, "step_ms", one, 1), 1);
            assert_compare(one[0], ==, swept[i]);
        }
        RUN(f, jobs[j], "--gpu", "A100", "--sweep", "lenght=64,192", "-q");
        assert_int_equal(f->result.status, FAILED);
        expect_contains(f->result.err, "did you mean length?");
    }
}

static void rows_keep_their_dimension_when_sorted(void **state)
{
    predict_command *f = *state;
    double tokens_rate[MOST], length[MOST];
    RUN(f, bert, "--gpu", "A100", "--sweep", "sequence=64..512", "--batch", "32", "--sort", "throughput", "--json",
        "-q");
    assert_int_equal(f->result.status, OK);
    assert_int_equal(json_numbers(f->result.out, "sequence", length, MOST), 4);
    assert_int_equal(json_numbers(f->result.out, "tokens_per_second", tokens_rate, MOST), 4);
    double rate[MOST];
    assert_int_equal(json_numbers(f->result.out, "samples_per_second", rate, MOST), 4);
    for (size_t i = 0; i < 4; i++) {
        double tokens = rate[i] * length[i];
        assert_compare(tokens_rate[i], >, 0.9999 * tokens);
        assert_compare(tokens_rate[i], <, 1.0001 * tokens);
        assert_true(i == 0 || rate[i] <= rate[i - 1]);
    }
    assert_compare(length[0], ==, 64);
    assert_compare(length[3], ==, 512);
}

static void a_table_has_a_column_for_tokens_per_second(void **state)
{
    predict_command *f = *state;
    RUN(f, bert, "--gpu", "A100", "--sweep", "sequence=64,128", "-q", "--wide");
    assert_int_equal(f->result.status, OK);
    expect_contains(f->result.out, "batch  sequence  step, ms");
    expect_contains(f->result.out, "tokens/s");
    RUN(f, resnet, "--gpu", "A100", "-q", "--json");
    assert_null(strstr(f->result.out, "tokens_per_second"));
    RUN(f, bert, "--gpu", "A100", "--dim", "sequence=128", "--batch", "4", "-q");
    expect_contains(f->result.out, " tokens/s\n");
}

static void a_sweep_combines_every_gpu_batch_and_version(void **state)
{
    predict_command *f = *state;
    double swept[MOST], one[1];
    RUN(f, resnet, "--gpu", "T4", "--gpu-spec", "like=A100,name=mine,tflops=300", "--batch", "32,64", "--batch", "16",
        "--torch", "1.11", "--torch", "1.12", "--json", "-q");
    assert_int_equal(f->result.status, OK);
    assert_numbers(f->result.out, "batch", (const double[]){32, 32, 64, 64, 16, 16, 32, 32, 64, 64, 16, 16}, 12);
    assert_int_equal(json_numbers(f->result.out, "step_ms", swept, MOST), 12);
    RUN(f, resnet, "--gpu", "T4", "--batch", "64", "--torch", "1.11", "--json", "-q");
    assert_int_equal(json_numbers(f->result.out, "step_ms", one, 1), 1);
    assert_compare(one[0], ==, swept[2]);
    RUN(f, resnet, "--gpu", "T4", "--batch", "64", "--torch", "1.12", "--json", "-q");
    assert_int_equal(json_numbers(f->result.out, "step_ms", one, 1), 1);
    assert_compare(one[0], ==, swept[3]);
    assert_compare(swept[2], !=, swept[3]);

    RUN(f, resnet, "--gpu", "T4", "--batch", "3..17", "--json", "-q");
    assert_numbers(f->result.out, "batch", (const double[]){3, 4, 8, 16, 17}, 5);
    RUN(f, resnet, "--gpu", "T4", "--batch", "8..8", "--json", "-q");
    assert_numbers(f->result.out, "batch", (const double[]){8}, 1);
    RUN(f, resnet, "--gpu", "T4", "--batch", "8,16", "--torch", "1.11,1.12", "-q");
    expect_contains(f->result.out, "batch  torch  step, ms");
    expect_contains(f->result.out, "T4      16   1.12");
    assert_null(strstr(f->result.out, "PyTorch 1.11")); /* this version only applies to some of the lines */
}

static void unsupported_sweeps_are_refused(void **state)
{
    predict_command *f = *state;
    RUN(f, bert, "--gpu", "A100", "--sweep", "width=64,128", "-q");
    assert_int_equal(f->result.status, FAILED);
    expect_contains(f->result.err, "sequence");
    RUN(f, bert, "--gpu", "A100", "--sweep", "sequence=64,128", "--sweep", "length=3");
    assert_int_equal(f->result.status, USAGE);
    expect_contains(f->result.err, "--sweep takes the batch and one dimension");
    RUN(f, resnet, "--gpu", "A100", "--sweep", "width=1..8");
    assert_int_equal(f->result.status, FAILED);
    expect_contains(f->result.err, "there is no symbolic dimension 'width' to sweep");
    RUN(f, resnet, "--gpu", "A100", "--sweep", "bacth=1..8");
    expect_contains(f->result.err, "'bacth' to sweep (did you mean batch?)");
    RUN(f, "-", "--gpu", "A100", "--sweep", "sequence=1..8");
    assert_int_equal(f->result.status, USAGE);
    RUN(f, bert, "--gpu", "A100", "--sweep", "sequence");
    assert_int_equal(f->result.status, USAGE);
    RUN(f, bert, "--gpu", "A100", "--sweep", "sequence=0");
    assert_int_equal(f->result.status, USAGE);
    RUN(f, resnet, "--gpu", "T4", "--torch", "1.12,", "--batch", "8");
    assert_int_equal(f->result.status, USAGE);
    RUN(f, resnet, "--gpu", "T4", "--batch", "8,x");
    assert_int_equal(f->result.status, USAGE);
    RUN(f, resnet, "--gpu", "T4", "--batch", "16..8");
    assert_int_equal(f->result.status, USAGE);
    RUN(f, resnet, "--gpu", "T4", "--batch", "8", "--torch=1.12,2.4", "--explain");
    assert_int_equal(f->result.status, USAGE);
}

static void run_shell(predict_command *f, const char *format, const char *input)
{
    char *line = NULL;
    assert_compare(asprintf(&line, format, MDOT_CLI, input), >, 0);
    process_run((const char *const[]){"/bin/sh", "-c", line, NULL}, &f->result);
    free(line);
}

/* Standard input that never ends. */
static void oversized_standard_input_is_refused(void **state)
{
    predict_command *f = *state;
    run_shell(f, "{ printf 'MDOTJOB\\000'; cat /dev/zero; } | %s predict - --gpu %s", "T4");
    assert_int_equal(f->result.status, FAILED);
    expect_contains(f->result.err, "standard input: larger than 256 MiB, the maximum size of a job file");
}

static void a_job_is_read_from_standard_input(void **state)
{
    predict_command *f = *state;
    char *job = NULL;
    double from_file[1], from_stream[1];
    RUN(f, resnet, "--gpu", "T4", "--json", "-q");
    assert_int_equal(json_numbers(f->result.out, "step_ms", from_file, 1), 1);
    run_shell(f, "%s predict - --gpu T4 --json -q < %s", resnet);
    assert_int_equal(f->result.status, OK);
    assert_int_equal(json_numbers(f->result.out, "step_ms", from_stream, 1), 1);
    assert_compare(from_file[0], ==, from_stream[0]);
    assert_compare(asprintf(&job, "%s/resnet.job", f->folder), >, 0);
    process_run((const char *const[]){MDOT_CLI, "extract", resnet, "-o", job, "-q", NULL}, &f->result);
    run_shell(f, "%s predict - --gpu T4 --json -q < %s", job);
    assert_int_equal(f->result.status, OK);
    assert_int_equal(json_numbers(f->result.out, "step_ms", from_stream, 1), 1);
    assert_compare(from_file[0], ==, from_stream[0]);
    run_shell(f, "%s predict - --gpu T4 < %s", "/dev/null");
    assert_int_equal(f->result.status, FAILED);
    expect_contains(f->result.err, "standard input: the file is empty");
    free(job);
}

/* Each row of lists of options equals the prediction with the row's values alone. */
static void lists_of_options_give_each_combination(void **state)
{
    predict_command *f = *state;
    static const char *const gpus[] = {"1", "2", "4"}, *const precisions[] = {"amp-bf16", "fp32"};
    double rows[MOST], count[MOST], one[1];
    RUN(f, bert, "--dim=sequence=64", "--gpu=A100", "-b8", "--gpus=1..4", "--precision=amp-bf16,float32", "--json",
        "-q");
    assert_int_equal(f->result.status, OK);
    assert_true(json_is_valid(f->result.out));
    assert_int_equal(json_numbers(f->result.out, "step_ms", rows, MOST), 6);
    assert_int_equal(json_numbers(f->result.out, "gpus", count, MOST), 6);
    for (size_t i = 0; i < 6; i++) {
        RUN(f, bert, "--dim=sequence=64", "--gpu=A100", "-b8", "--gpus", gpus[i / 2], "--precision", precisions[i % 2],
            "--json", "-q");
        assert_int_equal(json_numbers(f->result.out, "step_ms", one, 1), 1);
        assert_compare(one[0], ==, rows[i]);
    }
    RUN(f, bert, "--dim=sequence=64", "--gpu=A100", "-b8", "--gpus=2,4", "--precision=bf16,fp32", "-q");
    expect_contains(f->result.out, "gpus, precision by row");
    expect_contains(f->result.out, "GPU            batch  gpus  precision");
}

static void impossible_combinations_are_left_out(void **state)
{
    predict_command *f = *state;
    double rows[MOST];
    RUN(f, bert, "--dim=sequence=64", "--gpu=A100", "-b8", "--gpus=2,4,6", "--parallel=tp=2,4",
        "--parallel=dp=2,tp=1,3", "--json");
    assert_int_equal(f->result.status, OK);
    assert_int_equal(json_numbers(f->result.out, "step_ms", rows, MOST), 6); /* tp=2 thrice, tp=4, dp=2, dp=2,tp=3 */
    expect_contains(f->result.err, "6 combinations are left out, for example: --parallel ");
    RUN(f, bert, "--dim=sequence=64", "--gpu=A100", "-b8", "--gpus=2,3", "--parallel=tp=5,7");
    assert_int_equal(f->result.status, FAILED);
    expect_contains(f->result.err, "none of the combinations is possible, for example: --parallel dp=1");
    RUN(f, bert, "--dim=sequence=64", "--gpu=A100", "-b8", "--sweep=gpus=1..8");
    expect_contains(f->result.err, "--gpus 1..8");
}

/* A step that does not fit the memory stands behind all that do, in each order. */
static void sorting_ranks_steps_that_fit_first(void **state)
{
    predict_command *f = *state;
    static const char *const orders[] = {"time", "throughput", "cost"};
    for (size_t i = 0; i < 3; i++) {
        RUN(f, bert, "--dim=sequence=512", "--gpu=T4,A100,H100", "-b8,64,512", "--price=1", "--sort", orders[i], "-q");
        assert_int_equal(f->result.status, OK);
        const char *last = NULL, *first = strstr(f->result.out, "  no"), *yes = f->result.out;
        while ((yes = strstr(yes, "  yes")) != NULL) last = yes++;
        assert_non_null(first);
        assert_non_null(last);
        assert_true(last < first);
    }
}

/* One more token exceeds the memory, at each batch, on each GPU, and with each option. `dim` and `more` are options. */
static void check_largest(predict_command *f, const char *job, const char *dim, const char *more, double length[9])
{
    static const char *const gpus[] = {"T4", "A100"}, *const ways[] = {"nothing", "blocks"};
    char fit[64], name[64];
    snprintf(fit, sizeof fit, "--fit=%s", dim);
    RUN(f, job, "--gpu=T4,A100", "--batch=64,256", "--checkpoint=nothing,blocks", fit, more, "--json", "-q");
    assert_int_equal(f->result.status, OK);
    assert_int_equal(json_numbers(f->result.out, dim, length, 9), 8);
    for (int i = 0; i < 16; i++) {
        char gpu[32], way[32];
        const char *const batch = i / 2 % 2 == 0 ? "-b64" : "-b256";
        snprintf(name, sizeof name, "--dim=%s=%.0f", dim, length[i / 2] + i % 2);
        snprintf(gpu, sizeof gpu, "--gpu=%s", gpus[i / 8]);
        snprintf(way, sizeof way, "--checkpoint=%s", ways[i / 4 % 2]);
        RUN(f, job, name, gpu, way, batch, more, "-q");
        if (strstr(f->result.out, i % 2 == 0 ? ": fits" : ": does not fit") == NULL)
            fail_msg("%s %s %s %s %s: %s", job, name, gpu, way, batch, f->result.out);
    }
}

static void the_largest_length_that_fits_is_found(void **state)
{
    predict_command *f = *state;
    double length[9];
    setenv("MDOT_JOBS", MDOT_SOURCE_DIR "/weights/jobs", 1);
    check_largest(f, "gpt2", "length", "--optimizer=adamw", length);
    check_largest(f, "smollm2-135m", "length", "--lora=r=8", length);
    check_largest(f, bert, "sequence", "--optimizer=adamw", length);
    assert_compare(length[0], <, length[2]); /* blocks */
    RUN(f, bert, "--gpu=T4", "-b1", "--fit=sequence", "-q");
    expect_contains(f->result.out, "(the largest that fits)");
    RUN(f, "gpt2", "--gpu=T4,A100", "-b1", "--fit=length");
    expect_contains(f->result.err, "gpt2: the network has a table of 1024 positions (n_positions)");
    assert_null(strstr(strstr(f->result.err, "1024 positions") + 1, "1024 positions")); /* the largest alone */
    RUN(f, "gpt2", "--gpu=T4", "-b64", "--fit=length");
    assert_null(strstr(f->result.err, "positions"));
    RUN(f, bert, "--gpu=T4", "-b1000000", "--fit=sequence", "-q");
    expect_contains(f->result.out, "sequence 1, which does not fit");
    RUN(f, bert, "--gpu=T4", "--fit=tokens");
    expect_contains(f->result.err, "no input has a dimension 'tokens'");
    RUN(f, resnet, "--gpu=T4", "--fit=length");
    expect_contains(f->result.err, "there is no symbolic dimension 'length'");
    RUN(f, bert, "--gpu=T4", "--fit=sequence", "--sweep=sequence=8,16");
    assert_int_equal(f->result.status, USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_dimension_and_the_batch_are_swept_together, predict_command_set_up,
                                        predict_command_tear_down),
        cmocka_unit_test_setup_teardown(the_length_of_a_ready_job_is_swept, predict_command_set_up,
                                        predict_command_tear_down),
        cmocka_unit_test_setup_teardown(rows_keep_their_dimension_when_sorted, predict_command_set_up,
                                        predict_command_tear_down),
        cmocka_unit_test_setup_teardown(a_table_has_a_column_for_tokens_per_second, predict_command_set_up,
                                        predict_command_tear_down),
        cmocka_unit_test_setup_teardown(a_sweep_combines_every_gpu_batch_and_version, predict_command_set_up,
                                        predict_command_tear_down),
        cmocka_unit_test_setup_teardown(unsupported_sweeps_are_refused, predict_command_set_up,
                                        predict_command_tear_down),
        cmocka_unit_test_setup_teardown(lists_of_options_give_each_combination, predict_command_set_up,
                                        predict_command_tear_down),
        cmocka_unit_test_setup_teardown(impossible_combinations_are_left_out, predict_command_set_up,
                                        predict_command_tear_down),
        cmocka_unit_test_setup_teardown(sorting_ranks_steps_that_fit_first, predict_command_set_up,
                                        predict_command_tear_down),
        cmocka_unit_test_setup_teardown(the_largest_length_that_fits_is_found, predict_command_set_up,
                                        predict_command_tear_down),
        cmocka_unit_test_setup_teardown(a_job_is_read_from_standard_input, predict_command_set_up,
                                        predict_command_tear_down),
        cmocka_unit_test_setup_teardown(oversized_standard_input_is_refused, predict_command_set_up,
                                        predict_command_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
