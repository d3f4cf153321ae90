/* test_cli_training.c — options for how a job trains, and options impossible for a job. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mdot/mdot.h"
#include "tests/support/assertions.h"
#include "tests/support/json.h"
#include "tests/support/predict_command.h"

/* Every option appears in one line and in JSON. An option that repeats the default has another wording. */
static void training_options_appear_in_the_output(void **state)
{
    predict_command *f = *state;
    RUN(f, bert, "--dim=sequence=64", "--gpu=A100", "-b16", "--precision=BF16", "--attention=Eager", "--compile",
        "--checkpoint", "--accumulate=2", "--gpus=8", "--parallel=tp=2,pp=2,micro=4,zero=1", "--nodes=2", "--link=50",
        "--network=10", "--torch=2.4.1+cu121");
    assert_int_equal(f->result.status, OK);
    expect_contains(f->result.out, "batch 16, bf16, nchw (default), sgd (default), eager attention, compiled,\n"
                                   "  blocks recomputed, 2 passes a step, PyTorch 2.4, 8 GPUs (2 data-parallel, 2\n"
                                   "  tensor-parallel, 2 stages of 4 micro-batches, ZeRO 1) on 2 nodes, linked at 50\n"
                                   "  GB/s, network at 10 GB/s\n");
    expect_contains(f->result.err, "warning: analytic-estimate: ");
    RUN(f, bert, "--dim=sequence=64", "--gpu=A100", "-b16", "--precision=amp_bf16", "--checkpoint=selective",
        "--gpus=8", "--link=NVLink", "--torch=1.12", "--json", "-q");
    assert_int_equal(f->result.status, OK);
    assert_true(json_is_valid(f->result.out));
    static const char *const members[] = {
        "\"precision\": \"amp-bf16\"",  "\"attention\": \"program\"", "\"compiled\": false",
        "\"recompute\": \"selective\"", "\"accumulate\": 1",          "\"link\": \"nvlink\"",
        "\"data_parallel\": 8",         "\"zero_stage\": 0",          "\"torch\": \"1.12\""};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) expect_contains(f->result.out, members[i]);
}

/* Lists of stages are the numbers of the ends, whichever way the shares between them are rounded. */
static void stages_are_lists_of_blocks(void **state)
{
    predict_command *f = *state;
    static const struct {
        const char *stages, *parallel, *error;
    } cases[] = {{"--stages=3,4,3,2", "--parallel=pp=4,first=3,last=2,blocks=12", NULL},
                 {"--stages=3,3,4,2", "--parallel=pp=4,first=3,last=2,blocks=12", NULL},
                 {"--stages=2,2,3,3,2", "--parallel=pp=5,first=2,last=2,blocks=12", NULL},
                 {"--stages=6,6", "--parallel=pp=2,first=6,last=6,blocks=12", NULL},
                 {"--stages=3,4,2,3", NULL, "not 4 and 2"},
                 {"--stages=2,3,2,4,1", NULL, "not 2 and 4"},
                 {"--stages=2,0,5,5", NULL, "from 1 to"},
                 {"--stages=2,9,9,2", NULL, "22 blocks in all, and the job has 12"},
                 {"--stages=3,3,3,2", NULL, "11 blocks in all, and the job has 12"},
                 {"--stages=0,6,5,0", NULL, "11 blocks in all, and the job has 12"},
                 {"--stages=12", NULL, "at least two stages"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *expected = NULL;
        if (cases[i].parallel != NULL) {
            RUN(f, "gpt2", "--gpu=A100", "-b60", cases[i].parallel, "--json", "-q");
            assert_int_equal(f->result.status, OK);
            expected = strdup(f->result.out);
        }
        RUN(f, "gpt2", "--gpu=A100", "-b60", cases[i].stages, "--json", "-q");
        if (expected == NULL) expect_contains(f->result.err, cases[i].error);
        if (expected != NULL) assert_string_equal(f->result.out, expected);
        free(expected);
    }
}

/* Options left out at their defaults appear in words and in JSON. fsdp=N is dp=N,zero=3. */
static void rarer_options_appear_if_they_are_set(void **state)
{
    predict_command *f = *state;
    RUN(f, bert, "--dim=sequence=64", "--gpu=A100", "-b16", "--precision=mixed-bf16", "--optimizer=paged_adamw_8bit",
        "--parallel=fsdp=4,tp=2", "--keep-gathered", "--offload", "--reduce-type=float32", "--ema", "-q");
    assert_int_equal(f->result.status, OK);
    expect_contains(f->result.out, "mixed-bf16, nchw (default), adamw8bit, flash attention (default),\n"
                                   "  sums in fp32, optimizer in host memory, moving average of weights, gathered\n"
                                   "  weights kept, PyTorch 2.9 (default), 8 GPUs (4 data-parallel, 2\n"
                                   "  tensor-parallel, ZeRO 3)");
    RUN(f, bert, "--dim=sequence=64", "--gpu=A100", "--optimizer=adamw_torch_fused", "--parallel=fsdp=4", "--json",
        "-q");
    assert_int_equal(f->result.status, OK);
    static const char *const members[] = {"\"optimizer\": \"adamw-fused\"", "\"data_parallel\": 4",
                                          "\"zero_stage\": 3"};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) expect_contains(f->result.out, members[i]);
    RUN(f, bert, "--dim=sequence=64", "--gpu=A100", "--parallel=fsdp=4,zero=2");
    assert_int_equal(f->result.status, USAGE);
    expect_contains(f->result.err, "--parallel fsdp=N is dp=N,zero=3");
    RUN(f, bert, "--dim=sequence=64", "--gpu=A100", "--parallel=fsdp=4,dp=2");
    assert_int_equal(f->result.status, USAGE);
    expect_contains(f->result.err, "--parallel has dp twice");
}

static void a_version_has_two_numbers(void **state)
{
    predict_command *f = *state;
    static const char *const wrong[] = {"--torch=2",    "--torch=2.",    "--torch=.4",    "--torch=0.4",
                                        "--torch=v2.4", "--torch=2.123", "--torch=2.4rc1"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        RUN(f, bert, "--dim=sequence=64", "--gpu=A100", wrong[i]);
        assert_int_equal(f->result.status, USAGE);
        expect_contains(f->result.err, "--torch takes a version as in 1.12 or 2.4");
    }
}

/* Freezing half of BERT's layers takes less time and memory. The file contains names only on request, and freezing
 * needs them. */
static void parameters_may_be_frozen(void **state)
{
    predict_command *f = *state;
    double whole[2], part[2], frozen;
    RUN(f, bert, "--dim=sequence=64", "--gpu=A100", "-b16", "--precision=amp", "--json", "-q");
    assert_int_equal(json_numbers(f->result.out, "step_ms", &whole[0], 1), 1);
    assert_int_equal(json_numbers(f->result.out, "peak_memory_bytes", &whole[1], 1), 1);
    RUN(f, bert, "--dim=sequence=64", "--gpu=A100", "-b16", "--precision=amp", "--json", "-q",
        "--frozen=bert.embeddings", "--frozen=bert.encoder.layer.?", "--trained=bert.encoder.layer.9");
    assert_int_equal(f->result.status, OK);
    assert_int_equal(json_numbers(f->result.out, "step_ms", &part[0], 1), 1);
    assert_int_equal(json_numbers(f->result.out, "peak_memory_bytes", &part[1], 1), 1);
    assert_int_equal(json_numbers(f->result.out, "frozen_parameters", &frozen, 1), 1);
    assert_compare(part[0], <, 0.8 * whole[0]);
    assert_compare(part[1], <, 0.7 * whole[1]);
    assert_compare(frozen, >, 7e7);
    assert_compare(frozen, <, 9e7);
    RUN(f, bert, "--dim=sequence=64", "--gpu=A100", "--trained=classifier", "-q");
    expect_contains(f->result.out, "% of parameters frozen");
    RUN(f, bert, "--dim=sequence=64", "--gpu=A100", "--frozen=bert.encodr");
    assert_int_equal(f->result.status, FAILED);
    expect_contains(f->result.err, "the pattern \"bert.encodr\" matches no module");
    char path[300];
    snprintf(path, sizeof path, "%s/frozen.job", f->folder);
    process_run((const char *const[]){MDOT_CLI, "extract", bert, "--dim=sequence=64", "--trained=classifier", "-o",
                                      path, "--json", NULL},
                &f->result);
    assert_int_equal(f->result.status, OK);
    assert_null(strstr(f->result.out, "\"module\""));
    RUN(f, path, "--gpu=A100", "-q");
    expect_contains(f->result.out, "% of parameters frozen");
    RUN(f, path, "--gpu=A100", "--frozen=bert");
    expect_contains(f->result.err, "needs module names");
}

static void configurations_that_a_job_cannot_use_are_refused(void **state)
{
    predict_command *f = *state;
    static const char *const lines[][2] = {{"--parallel=tp=5", "--parallel tp is 5; it must divide"},
                                           {"--parallel=pp=64", "each stage needs a block"},
                                           {"--parallel=ep=2", "the job lacks experts"},
                                           {"--parallel=dp=3,tp=2", "multiply to 6 GPUs, but --gpus is 8"},
                                           {"--parallel=micro=2", "--parallel micro needs --parallel pp"},
                                           {"--nodes=3", "a multiple of --nodes, 3"}};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        const char *gpus =
            strstr(lines[i][1], "multiply") != NULL || strstr(lines[i][1], "--nodes") != NULL ? "--gpus=8" : "-q";
        RUN(f, bert, "--dim=sequence=64", "--gpu=A100", "-b64", lines[i][0], gpus);
        assert_int_equal(f->result.status, FAILED);
        expect_contains(f->result.err, lines[i][1]);
    }
    RUN(f, resnet, "--gpu=T4", "--gpus=2", "--link=nvlink");
    expect_contains(f->result.err, "T4 lacks NVLink");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(training_options_appear_in_the_output, predict_command_set_up,
                                        predict_command_tear_down),
        cmocka_unit_test_setup_teardown(stages_are_lists_of_blocks, predict_command_set_up, predict_command_tear_down),
        cmocka_unit_test_setup_teardown(rarer_options_appear_if_they_are_set, predict_command_set_up,
                                        predict_command_tear_down),
        cmocka_unit_test_setup_teardown(a_version_has_two_numbers, predict_command_set_up, predict_command_tear_down),
        cmocka_unit_test_setup_teardown(parameters_may_be_frozen, predict_command_set_up, predict_command_tear_down),
        cmocka_unit_test_setup_teardown(configurations_that_a_job_cannot_use_are_refused, predict_command_set_up,
                                        predict_command_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
