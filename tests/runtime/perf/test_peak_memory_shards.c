/* test_peak_memory_shards.c — peak memory of one GPU with a shard: by ZeRO, tensor parallelism and pipelines. */
#include "runtime/job/job_model.h"
#include "runtime/perf/analysis.h"
#include "tests/support/assertions.h"
#include "tests/support/memory_fixture.h"
#include "tests/support/predict_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* A normalisation of 24 parameters and four blocks with a matmul of 100, 10 of them frozen. The last result is the
 * largest. */
static mdot_job *four_blocks(void)
{
    static const uint32_t before[4] = {0, 1, 2, 3};
    mdot_job_operator operators[5] = {memory_operator("LayerNormalization", 1, 24)};
    for (uint32_t i = 1; i < 5; i++) {
        operators[i] = memory_operator("Linear", i < 4 ? 1 : 8, 90);
        operators[i].frozen_parameters = 10;
        operators[i].setting[MDOT_SETTING_CHANNELS_IN] = operators[i].setting[MDOT_SETTING_CHANNELS_OUT] = 8;
        operators[i].inputs = &before[i - 1];
        operators[i].input_count = 1;
        operators[i].block = i;
    }
    return predict_make_job(operators, 5);
}

/* Autocast copies the weights of matmuls to half precision. At stage 3, only the largest block's weights are whole. */
static void sharded_weights_are_copied_by_block(void **state)
{
    (void)state;
    mdot_job *job = memory_small_network(2);
    mdot_configuration c = {.precision = MDOT_PRECISION_AMP_BF16, .gpu_count = 2, .zero_stage = 2};
    rt_memory whole = memory_measure(job, c);
    c.zero_stage = 3;
    rt_memory sharded = memory_measure(job, c);
    assert_compare(whole.half_weights, ==, 2 * 1000);
    assert_within(sharded.half_weights, 2 * 1000 * 600 / 1024.0, 1e-9);
    mdot_job_destroy(job);
}

/* At ZeRO stage 3 on four workers: a quarter of the 424 weights, two whole blocks of 100, and the root's 24. The batch
 * is large, so the peak is at the first moment, the last matmul's backward operation. Whole gradients belong to a block
 * and the root, and to a block in the summation type; 384 of 424 weights are trained. */
static void zero_stage_three_gathers_blocks_and_the_root(void **state)
{
    (void)state;
    mdot_job *job = four_blocks();
    const double trained = 384, all = 424;
    double f = job->analysis->activations.of[RT_ACTIVATION_FP32][0][0].moments[0].gradients;
    assert_compare(f, ==, 90 / trained);
    mdot_configuration c = {.batch = 1000, .gpu_count = 4, .zero_stage = 3};
    rt_memory m = memory_measure(job, c);
    double whole = trained / all * (4 * 124 + 4 * 100);
    assert_compare(m.weights, ==, all + 4 * 224);
    assert_within(m.gradients, f * trained + whole, 1e-9);
    assert_compare(m.optimizer, ==, trained);
    c.keep_gathered = 1;
    m = memory_measure(job, c);
    assert_within(m.weights, all + 4 * all * (1 - f), 1e-9);
    c.ema = 1;
    assert_compare(fabs(memory_measure(job, c).weights - m.weights - trained), <, 1e-9);
    c = (mdot_configuration){.batch = 1000, .gpu_count = 4, .zero_stage = 3, .accumulate = 2};
    assert_within(memory_measure(job, c).gradients, trained + whole, 1e-9);
    c.whole_gradients = 1; /* all of them, and new ones for a block and the root */
    assert_within(memory_measure(job, c).gradients, 4 * trained + trained / all * 4 * 124, 1e-9);
    c.whole_gradients = 0;
    c.offload = MDOT_OFFLOAD_PARAMETERS;
    m = memory_measure(job, c);
    assert_compare(m.weights, ==, 4 * 224);
    assert_within(m.gradients, whole, 1e-9);
    assert_compare(m.optimizer, ==, 0);
    c = (mdot_configuration){.batch = 1000, .gpu_count = 4, .zero_stage = 2, .ema = 1};
    m = memory_measure(job, c);
    assert_compare(m.weights, ==, 4 * (all + trained));
    assert_within(m.gradients, f * trained, 1e-9);
    mdot_job_destroy(job);
}

/* A tenth of each block is frozen and quantised: 40 of 424 weights. One GPU in four keeps a quarter of both kinds, and
 * gathers 224 of them. FSDP in mixed precision keeps fp32 gradients, but only as far as the pass has made them. */
static void zero_stage_three_gathers_quantised_weights(void **state)
{
    (void)state;
    mdot_job *job = four_blocks();
    const double width = (32 + 1 + 4 / 256.0) / 64, trained = 384, all = 424;
    mdot_configuration c = {.batch = 1000, .gpu_count = 4, .zero_stage = 3, .frozen_weights = MDOT_FROZEN_NF4};
    double each = (4 * trained + width * 40) / all;
    assert_within(memory_measure(job, c).weights, each * (all / 4 + 224), 1e-9);
    c = (mdot_configuration){.batch = 1000,
                             .gpu_count = 4,
                             .zero_stage = 3,
                             .precision = MDOT_PRECISION_MIXED_BF16,
                             .gradient_type = MDOT_NUMBER_FP32,
                             .reduce_type = MDOT_NUMBER_HALF};
    rt_memory m = memory_measure(job, c);
    assert_compare(m.weights, ==, all + 2 * 224);
    assert_within(m.gradients, 90 + trained / all * (2 * 124 + 2 * 100), 1e-9);
    mdot_job_destroy(job);
}

/* On two workers with two GPUs each, a GPU has half of the matmul weights: 24 + 200, and half of these stay. It gathers
 * two blocks of 50 and the root's 24. */
static void zero_stage_three_gathers_the_blocks_of_a_shard(void **state)
{
    (void)state;
    mdot_job *job = four_blocks();
    mdot_configuration c = {.batch = 1000, .gpu_count = 4, .tensor_parallel = 2, .zero_stage = 3};
    rt_memory m = memory_measure(job, c);
    assert_compare(m.weights, ==, 4 * (224 / 2.0 + 2 * 50 + 24));
    c.precision = MDOT_PRECISION_AMP_BF16; /* copies of one block */
    m = memory_measure(job, c);
    assert_within(m.half_weights, 2 * 200 * 50 / 224.0, 1e-9);
    mdot_job_destroy(job);
}

/* Two GPUs divide the table of 10,000 elements, the picked rows (8 elements per pass) and the 1000 matmul
 * parameters. */
static void tensor_parallelism_shards_sparse_tables(void **state)
{
    (void)state;
    static const uint32_t before[2] = {0, 1};
    mdot_job_operator operators[3] = {memory_operator("Gather", 1, 10000), memory_operator("Linear", 8, 600),
                                      memory_operator("Linear", 2, 400)};
    operators[0].per_sample[MDOT_PHASE_WEIGHT_GRADIENT].bytes_written = 4 * 8;
    for (int i = 1; i < 3; i++) {
        operators[i].inputs = &before[i - 1];
        operators[i].input_count = 1;
        operators[i].setting[MDOT_SETTING_CHANNELS_IN] = operators[i].setting[MDOT_SETTING_CHANNELS_OUT] = 8;
    }
    mdot_job *job = predict_make_job(operators, 3);
    mdot_configuration c = {.batch = 2, .accumulate = 2, .tensor_parallel = 2}; /* two passes of two samples */
    rt_memory m = memory_measure(job, c);
    double picked = (double)c.batch * 8 / 2;
    assert_compare(m.weights, ==, 4 * 11000 / 2.0);
    assert_compare(m.gradients, ==, 4 * (500 + 2 * picked));
    assert_compare(m.optimizer, ==, 4 * (500 + 2 * picked));
    c.optimizer = MDOT_OPTIMIZER_ADAM;
    assert_compare(memory_measure(job, c).optimizer, ==, 2 * 4 * 11000 / 2.0);
    c.optimizer = MDOT_OPTIMIZER_SGD_PLAIN;
    assert_compare(memory_measure(job, c).optimizer, ==, 0);
    c = (mdot_configuration){.batch = 1,
                             .tensor_parallel = 2,
                             .precision = MDOT_PRECISION_MIXED_BF16,
                             .gradient_type = MDOT_NUMBER_FP32,
                             .step_in_backward = 1};
    assert_compare(memory_measure(job, c).gradients, ==, 4 * (600 + 8) / 2.0);
    mdot_job_destroy(job);
}

/* Pipeline stages sum gradients after the last micro-batch, and keep all of them whole until then. The first stage has
 * 500 + 24 parameters, and each of two workers keeps half. */
static void stages_with_sharded_weights_keep_whole_gradients(void **state)
{
    (void)state;
    mdot_job *job = memory_small_network(2);
    mdot_configuration c = {
        .batch = 8000, .pipeline_parallel = 2, .micro_batches = 4, .data_parallel = 2, .zero_stage = 3};
    rt_memory m = memory_measure(job, c);
    assert_compare(m.gradients, ==, 4 * (524 / 2.0 + 524));
    assert_compare(m.weights, ==, 4 * (524 / 2.0 + 524));
    c.zero_stage = 2;
    m = memory_measure(job, c);
    assert_compare(m.gradients, ==, 4 * 524 / 2.0);
    assert_compare(m.weights, ==, 4 * 524);
    c.precision = MDOT_PRECISION_BF16; /* the results sent have half the bytes, too */
    const rt_activations *a = &job->analysis->activations.of[RT_ACTIVATION_BF16][0][0];
    assert_compare(memory_measure(job, c).pass_activations, ==, 2 * 2000 * (a->all / 2 + 8 * MEMORY_UNIT / 2));
    mdot_job_destroy(job);
}

/* DeepSpeed's bucket has 5e8 elements, whatever the network and the number of workers. Megatron and other stages have
 * none. */
static void the_second_stage_has_a_bucket(void **state)
{
    (void)state;
    mdot_job *job = memory_small_network(2);
    static const struct {
        mdot_precision precision;
        uint32_t workers, stage;
        mdot_number gradients;
        bool has_bucket;
    } cases[] = {{MDOT_PRECISION_MIXED_FP16, 2, 2, MDOT_NUMBER_DEFAULT, true},
                 {MDOT_PRECISION_MIXED_BF16, 4, 2, MDOT_NUMBER_DEFAULT, true},
                 {MDOT_PRECISION_MIXED_FP16, 1, 2, MDOT_NUMBER_DEFAULT, true},
                 {MDOT_PRECISION_MIXED_FP16, 2, 1, MDOT_NUMBER_DEFAULT, false},
                 {MDOT_PRECISION_MIXED_BF16, 2, 2, MDOT_NUMBER_FP32, false},
                 {MDOT_PRECISION_FP32, 2, 2, MDOT_NUMBER_DEFAULT, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mdot_configuration c = {.precision = cases[i].precision,
                                .data_parallel = cases[i].workers,
                                .zero_stage = cases[i].stage,
                                .gradient_type = cases[i].gradients};
        double gradients = memory_measure(job, c).gradients;
        if ((gradients >= 1e9) != cases[i].has_bucket) fail_msg("case %zu: %.0f", i, gradients);
    }
    mdot_job_destroy(job);
}

/* Trainer's FSDP retains inputs of checkpointed blocks with frozen weights, and the gradients: beyond the peak at the
 * last block, one unit for each of the other three. Later versions retain nothing. Configurations without frozen
 * weights, checkpoints or shards retain nothing, too. */
static void trainer_retains_inputs_of_frozen_blocks(void **state)
{
    (void)state;
    static const mdot_precision precisions[] = {MDOT_PRECISION_FP32, MDOT_PRECISION_BF16, MDOT_PRECISION_MIXED_BF16};
    mdot_job *frozen = four_blocks(), *learning = memory_small_network(2);
    for (size_t k = 0; k < sizeof precisions / sizeof *precisions; k++) {
        for (int64_t batch = 1000; batch <= 8000; batch *= 2) {
            mdot_configuration c = {.batch = batch,
                                    .gpu_count = 2,
                                    .zero_stage = 3,
                                    .torch = 204,
                                    .precision = precisions[k],
                                    .recompute = MDOT_RECOMPUTE_BLOCKS};
            double plain = memory_measure(frozen, c).pass_activations;
            double others = memory_measure(learning, c).pass_activations;
            c.framework = batch > 2000 ? MDOT_FRAMEWORK_LIGER : MDOT_FRAMEWORK_HF_TRAINER;
            double unit = precisions[k] == MDOT_PRECISION_FP32 ? MEMORY_UNIT : MEMORY_UNIT / 2.0;
            assert_within(memory_measure(frozen, c).pass_activations, plain + 3 * unit * (double)batch, 1e-9);
            assert_compare(memory_measure(learning, c).pass_activations, ==, others);
            mdot_configuration kept = c;
            kept.recompute = MDOT_RECOMPUTE_NOTHING;
            double of_trainer = memory_measure(frozen, kept).pass_activations;
            kept.framework = MDOT_FRAMEWORK_PYTORCH;
            assert_compare(memory_measure(frozen, kept).pass_activations, ==, of_trainer);
            for (c.torch = 0; c.torch <= 208; c.torch += 208)
                assert_compare(memory_measure(frozen, c).pass_activations, ==, plain);
            c.torch = 204;
            c.zero_stage = 2;
            assert_compare(memory_measure(frozen, c).pass_activations, ==, plain);
        }
    }
    mdot_job_destroy(frozen);
    mdot_job_destroy(learning);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sharded_weights_are_copied_by_block),
        cmocka_unit_test(zero_stage_three_gathers_blocks_and_the_root),
        cmocka_unit_test(zero_stage_three_gathers_the_blocks_of_a_shard),
        cmocka_unit_test(zero_stage_three_gathers_quantised_weights),
        cmocka_unit_test(tensor_parallelism_shards_sparse_tables),
        cmocka_unit_test(stages_with_sharded_weights_keep_whole_gradients),
        cmocka_unit_test(the_second_stage_has_a_bucket),
        cmocka_unit_test(trainer_retains_inputs_of_frozen_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
