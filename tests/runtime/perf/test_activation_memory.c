/* test_activation_memory.c — activation memory at a pass's peak, compared with sums made by hand for networks small
 * enough to follow every tensor. One unit is a tensor of 1024 fp32 elements per sample. In the comments, f3 is the
 * forward operation of operator 3, b3 the backward operation, r3 the result and g3 the result's gradient. */
#include "runtime/job/job_model.h"
#include "runtime/perf/activation_memory.h"
#include "runtime/perf/analysis.h"
#include "tests/support/assertions.h"
#include "tests/support/network_fixture.h"
#include "tests/support/predict_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static void expect_case(const network *n, rt_activation_type type, mdot_attention attention, mdot_recompute recompute,
                        double units)
{
    mdot_job *job = predict_make_job(n->operators, n->count);
    double got = job->analysis->activations.of[type][attention][recompute].all / NETWORK_UNIT;
    if (got != units) fail_msg("%d, %d, %d: %g units, not %g", (int)type, (int)attention, (int)recompute, got, units);
    mdot_job_destroy(job);
}

static void expect_units(const network *n, double fp32, double amp)
{
    expect_case(n, RT_ACTIVATION_FP32, MDOT_ATTENTION_FLASH, MDOT_RECOMPUTE_NOTHING, fp32);
    expect_case(n, RT_ACTIVATION_AMP, MDOT_ATTENTION_FLASH, MDOT_RECOMPUTE_NOTHING, amp);
}

/* ---- Activations ------------------------------------------------------------------------------------------------ */

/* fp32, at b1: samples 1, r1 8 (it is saved), g1 8, g0 8. amp: samples 1 and their copy .5, the rest halved. */
static void small_cnn_has_the_computed_peak(void **state)
{
    (void)state;
    network n = {0};
    network_add_units(&n, "Conv", 8, 100, "");
    network_add_units(&n, "Relu", 8, 0, "0");
    network_add_units(&n, "GlobalAveragePool", 0.5, 0, "1");
    network_add_units(&n, "Linear", 0.25, 50, "2");
    expect_units(&n, 1 + 24, 1 + 0.5 + 12);
}

/* The convolution's own result is saved for the normalisation that follows. fp32, at b1: samples, both maps, g1, g0:
 * 1 + 4 * 8; at b0: samples, the map before the normalisation and two gradients. */
static void convolution_saves_its_result_for_normalisation(void **state)
{
    (void)state;
    network n = {0};
    mdot_job_operator *conv = network_add_units(&n, "Conv", 16, 100, ""); /* two maps of 8 */
    conv->setting[MDOT_SETTING_NORMALISED] = 1;
    conv->per_sample[MDOT_PHASE_FORWARD].bytes_read = (1 + 2 * 8) * NETWORK_UNIT;
    network_add_units(&n, "Relu", 8, 0, "0");
    network_add_units(&n, "GlobalAveragePool", 0.5, 0, "1");
    expect_units(&n, 1 + 4 * 8, 1 + 0.5 + 4 * 4);
    network pooled = {0}; /* saves the first map alone. At b0: samples, this map, g0 and the gradient of the map */
    *network_add_units(&pooled, "Conv", 16, 100, "") = n.operators[0];
    network_add_units(&pooled, "GlobalAveragePool", 0.5, 0, "0");
    expect_units(&pooled, 1 + 3 * 8, 1 + 0.5 + 3 * 4);
}

/* The operators save nothing. At b1: samples, g1 4, g0 4 with the part that b3 added, 4 more for b1's part. Table rows
 * are fp32 under autocast, and so are all later results. */
static void residual_sum_saves_nothing(void **state)
{
    (void)state;
    network n = {0};
    network_add_units(&n, "Gather", 4, 100, "");
    network_add_units(&n, "Neg", 4, 0, "0");
    network_add_units(&n, "Neg", 4, 0, "1");
    network_add_units(&n, "Add", 4, 0, "0,2");
    expect_units(&n, 12, 12);
}

/* A block of width 1 with samples of 1. Saved in fp32 at the end: r0, its norm 1, q, k, v, attention 5, sum 7, its
 * norm 8, the two wide ones 9 and 10: 16. The peak is at b11: with g7 1, g11 1, g10 4. amp: saved are the fp32 copy
 * for the norm 1, fp16 copies of its result for q, k, v 1.5, these 1.5, attention .5, the copy of the sum 1, of its
 * norm .5, the wide ones 4: 10, samples 1 + .5; with g7 .5, g11 .5, g10 2. */
static void make_transformer(network *n)
{
    *n = (network){0};
    network_add_units(n, "Linear", 1, 10, "");
    network_add_units(n, "LayerNormalization", 1, 2, "0");
    network_add_units(n, "Linear", 1, 10, "1");
    network_add_units(n, "Linear", 1, 10, "1");
    network_add_units(n, "Linear", 1, 10, "1");
    network_add_units(n, "Attention", 1, 0, "2,3,4");
    network_add_units(n, "Linear", 1, 10, "5");
    network_add_units(n, "Add", 1, 0, "0,6");
    network_add_units(n, "LayerNormalization", 1, 2, "7");
    network_add_units(n, "Linear", 4, 40, "8");
    network_add_units(n, "Gelu", 4, 0, "9");
    network_add_units(n, "Linear", 1, 40, "10");
    network_add_units(n, "Add", 1, 0, "7,11");
}

static void transformer_block_has_the_computed_peak(void **state)
{
    (void)state;
    network n;
    make_transformer(&n);
    expect_units(&n, 1 + 16 + 6, 1.5 + 10 + 3);
}

/* r0 is counted once, whether a view of it or the tensor itself is saved. fp32, at b2: samples, r0 4, g2 2, g0 4. */
static void views_take_no_memory(void **state)
{
    (void)state;
    network n = {0};
    network_add_units(&n, "Linear", 4, 10, "");
    network_add_units(&n, "Transpose", 4, 0, "0");
    network_add_units(&n, "Linear", 2, 10, "1");
    expect_units(&n, 1 + 4 + 2 + 4, 1 + 0.5 + 5);
    n.count = 2; /* without the reader: at f1 and b1, samples and r0 or g0 */
    expect_units(&n, 1 + 4, 1 + 0.5 + 2);
}

/* Both operands of the first sum get a second gradient. At b2: two samples, g2, g1, g0 and the summands of the latter
 * two. */
static void every_operand_with_several_readers_has_summands(void **state)
{
    (void)state;
    network n = {0};
    network_add_units(&n, "Linear", 8, 10, "");
    network_add_units(&n, "Linear", 8, 10, "");
    network_add_units(&n, "Add", 8, 0, "0,1");
    network_add_units(&n, "Add", 8, 0, "0,1");
    network_add_units(&n, "Add", 8, 0, "2,3");
    expect_units(&n, 2 + 5 * 8, 3 + 5 * 4);
}

/* The gradient of the second operand passes alone. At b2: two samples, both factors, g2 and g1. amp keeps the first
 * factor in fp32, and so is the product. */
static void either_operand_passes_gradients(void **state)
{
    (void)state;
    network n = {0};
    network_add_units(&n, "Sigmoid", 4, 0, "");
    network_add_units(&n, "Linear", 4, 10, "");
    network_add_units(&n, "Mul", 4, 0, "0,1");
    expect_units(&n, 2 + 4 * 4, 2.5 + 4 + 2 + 4 + 2);
}

/* Two matmuls read one tensor, one of them through a view. The view's gradient is the matmul's, and is added to the
 * other one as without a view. */
static void views_of_a_tensor_with_several_readers_take_no_memory(void **state)
{
    (void)state;
    for (int has_view = 0; has_view < 2; has_view++) {
        network n = {0};
        network_add_units(&n, "Linear", 16, 10, "");
        if (has_view != 0) network_add_units(&n, "Transpose", 16, 0, "0");
        network_add_units(&n, "Linear", 1, 10, "0");
        network_add_units(&n, "Linear", 1, 10, has_view != 0 ? "1" : "0");
        network_add_units(&n, "Add", 1, 0, has_view != 0 ? "2,3" : "1,2");
        /* at the first reader's backward pass: samples, r0, its gradient and the summand */
        expect_units(&n, 1 + 16 + 16 + 16 + 1, 26);
    }
}

/* The pool saves the input 8 and 64-bit result indices 2 * 2. fp32, at b1: samples, those, g1 2, g0 8. */
static void max_pool_keeps_indices(void **state)
{
    (void)state;
    network n = {0};
    network_add_units(&n, "Conv", 8, 10, "");
    network_add_units(&n, "MaxPool", 2, 0, "0");
    expect_units(&n, 1 + 8 + 4 + 2 + 8, 1.5 + 4 + 4 + 1 + 4);
}

/* Softmax is fp32 under autocast and saves its result. The matmul that follows saves an fp16 copy. fp32, at b1:
 * samples, r1 4, g1 4, g0 4. amp, at b2: samples 1.5, r1 4, its copy 2, g2 .5, g1 4. */
static void softmax_is_fp32_under_autocast(void **state)
{
    (void)state;
    network n = {0};
    network_add_units(&n, "Linear", 4, 10, "");
    network_add_units(&n, "Softmax", 4, 0, "0");
    network_add_units(&n, "Linear", 1, 10, "1");
    expect_units(&n, 1 + 12, 1.5 + 4 + 2 + 0.5 + 4);
}

/* A cross-entropy keeps the logits (4) and log probabilities (4). The backward operation makes the gradients of both (4
 * each). The sample has 1, and the loss is a number. */
static void cross_entropy_has_four_tensors_of_logits(void **state)
{
    (void)state;
    network n = {0};
    network_add_units(&n, "Linear", 4, 100, "");
    network_add_units(&n, "SoftmaxCrossEntropyLoss", 0, 0, "0");
    mdot_job *job = predict_make_job(n.operators, n.count);
    const rt_activation_table *a = &job->analysis->activations;
    assert_compare(a->of[RT_ACTIVATION_FP32][0][0].all, ==, (1 + 4 * 4) * NETWORK_UNIT);
    assert_compare(a->of[RT_ACTIVATION_BF16][0][0].all, ==, (1 + 4 * 2) * NETWORK_UNIT);
    mdot_job_destroy(job);
}

/* The network has zero parameters. Therefore gradients and saved activations take zero bytes. At f1: samples and two
 * results. */
static void network_without_parameters_saves_nothing(void **state)
{
    (void)state;
    network n = {0};
    network_add_units(&n, "Sigmoid", 8, 0, "");
    network_add_units(&n, "Sigmoid", 8, 0, "0");
    expect_units(&n, 1 + 16, 1 + 16);
}

/* A multiplication saves a factor for the gradient of the other factor: both of two tensors, one if the other is a
 * parameter, zero if the other is a number. */
static void multiplications_save_their_factors(void **state)
{
    (void)state;
    network both = {0}, scale = {0}, number = {0};
    network_add_units(&both, "Linear", 4, 10, "");
    network_add_units(&both, "Neg", 4, 0, "0");
    network_add_units(&both, "Mul", 4, 0, "0,1");
    expect_units(&both, 1 + 8 + 3 * 4, 1.5 + 4 + 3 * 2); /* at b2: r0, r1, g2, g1, g0 */
    network_add_units(&scale, "Linear", 4, 10, "");
    network_add_units(&scale, "Mul", 4, 1, "0");
    network_add_units(&scale, "Neg", 4, 0, "1");
    expect_units(&scale, 1 + 4 + 8, 1.5 + 2 + 8); /* at b2: r0, g2, g1, these widened to fp32 by the parameter */
    network_add_units(&number, "Linear", 4, 10, "");
    network_add_units(&number, "Mul", 4, 0, "0");
    network_add_units(&number, "Neg", 4, 0, "1");
    expect_units(&number, 1 + 8, 1.5 + 4); /* two tensors at any moment */
}

/* An unknown operator saves all inputs and results. */
static void unknown_operators_save_everything(void **state)
{
    (void)state;
    network n = {0};
    network_add_units(&n, "Linear", 4, 10, "");
    network_add_units(&n, "Magic", 4, 0, "0")->known = false;
    network_add_units(&n, "Neg", 4, 0, "1");
    expect_units(&n, 1 + 4 + 4 + 8, 1.5 + 2 + 2 + 4); /* at b2: r0, r1, g2, g1 */
}

/* A fused normalisation reads the map twice. Samples are the other operands of a convolution, if there are any. */
static void samples_are_what_a_convolution_reads_besides(void **state)
{
    (void)state;
    for (int rest = -1; rest <= 1; rest++) {
        network n = {0};
        mdot_job_operator *conv = network_add_units(&n, "Conv", 16, 100, "");
        conv->setting[MDOT_SETTING_NORMALISED] = 1;
        conv->per_sample[MDOT_PHASE_FORWARD].bytes_read = (2 * 8 + rest) * NETWORK_UNIT;
        network_add_units(&n, "Relu", 8, 0, "0");
        network_add_units(&n, "GlobalAveragePool", 0.5, 0, "1");
        double samples = rest > 0 ? rest : 0;
        expect_units(&n, samples + 4 * 8, 1.5 * samples + 4 * 4);
    }
}

/* If the setting INPUTS is 0, an operator reads parameters alone, and the samples' unit is absent from the sum. An
 * operator that multiplies samples by parameters reads the samples in fp32, so that a copy in fp16 is absent. */
static void only_operands_from_outside_are_samples(void **state)
{
    (void)state;
    network constant = {0}, product = {0};
    network_add_units(&constant, "Linear", 4, 10, "")->setting[MDOT_SETTING_INPUTS] = 0;
    expect_units(&constant, 4, 2); /* r0, then g0 */
    network_add_units(&product, "Mul", 4, 1, "");
    network_add_units(&product, "Neg", 4, 0, "0");
    expect_units(&product, 1 + 8, 1 + 8);
}

/* The sum of a half-precision and an fp32 tensor is fp32. At b2: samples 1.5, r1 4 (saved), g2 4, g1 4, g0 2. */
static void results_have_the_widest_type_of_their_operands(void **state)
{
    (void)state;
    network n = {0};
    network_add_units(&n, "Linear", 4, 10, "");
    network_add_units(&n, "Softmax", 4, 0, "0");
    network_add_units(&n, "Add", 4, 0, "0,1");
    expect_case(&n, RT_ACTIVATION_AMP, MDOT_ATTENTION_FLASH, MDOT_RECOMPUTE_NOTHING, 1.5 + 4 + 4 + 4 + 2);
}

/* A block's pool saves r1 (8) and 64-bit indices (4). Without recomputation, at b3: samples 1, these, r2 2, g3 16,
 * g2 2. With it, r0 (8) is saved, and r1 and the indices exist from b2 on. At b2: samples, r0, r1, the indices, g2 2,
 * g1 8; at b1: samples, r0, r1, g1, g0 8. */
static void recomputed_blocks_keep_indices_for_a_while(void **state)
{
    (void)state;
    network n = {0};
    network_add_units(&n, "Conv", 8, 10, "");
    network_add_units(&n, "Relu", 8, 0, "0")->block = 1;
    network_add_units(&n, "MaxPool", 2, 0, "1")->block = 1;
    network_add_units(&n, "Linear", 16, 10, "2");
    expect_case(&n, RT_ACTIVATION_FP32, MDOT_ATTENTION_FLASH, MDOT_RECOMPUTE_NOTHING, 1 + 8 + 4 + 2 + 16 + 2);
    expect_case(&n, RT_ACTIVATION_FP32, MDOT_ATTENTION_FLASH, MDOT_RECOMPUTE_BLOCKS, 1 + 8 + 8 + 8 + 8);
    n.operators[2].per_sample[MDOT_PHASE_FORWARD].bytes_written =
        4 * NETWORK_UNIT; /* indices 8, r2 and g2 4: b2 is the peak */
    expect_case(&n, RT_ACTIVATION_FP32, MDOT_ATTENTION_FLASH, MDOT_RECOMPUTE_BLOCKS, 1 + 8 + 8 + 8 + 4 + 8);
}

/* A recomputed block keeps all tensors that it reads from outside until its backward pass ends. Block 1 reads r1 in its
 * first operator and r0 in its second one. At b2: two samples 2, r0 4, r1 32, g2 16, g1 32, g0 4. */
static void recomputed_blocks_keep_operands_to_their_end(void **state)
{
    (void)state;
    network n = {0};
    network_add_units(&n, "Linear", 4, 10, "");
    network_add_units(&n, "Linear", 32, 10, "");
    network_add_units(&n, "Linear", 16, 10, "1")->block = 1;
    network_add_units(&n, "Mul", 1, 0, "0,2")->block = 1;
    expect_case(&n, RT_ACTIVATION_FP32, MDOT_ATTENTION_FLASH, MDOT_RECOMPUTE_BLOCKS, 2 + 4 + 32 + 16 + 32 + 4);
    expect_case(&n, RT_ACTIVATION_FP32, MDOT_ATTENTION_FLASH, MDOT_RECOMPUTE_NOTHING, 2 + 32 + 16 + 32 + 4);
}

/* ---- Variants --------------------------------------------------------------------------------------------------- */

/* In bf16 everything except the samples takes half of the fp32 size. */
static void bf16_takes_half(void **state)
{
    (void)state;
    network n;
    make_transformer(&n);
    expect_case(&n, RT_ACTIVATION_BF16, MDOT_ATTENTION_FLASH, MDOT_RECOMPUTE_NOTHING, 1 + (16 + 6) / 2.0);
}

/* Two heads of 4 over 8 queries and 16 keys: 256 scores, a quarter of a unit, from 2 * 2 * 4 + 5 FLOPs each. */
static void make_transformer_with_scores(network *n)
{
    make_transformer(n);
    mdot_job_operator *attention = &n->operators[5];
    attention->setting[MDOT_SETTING_HEADS] = 2;
    attention->setting[MDOT_SETTING_HEAD_SIZE] = 4;
    attention->per_sample[MDOT_PHASE_FORWARD].flops = 256 * (4 * 4 + 5);
}

/* The peak is in the feed-forward part, where probabilities are saved: .25 of a unit in fp32. Under autocast there is
 * also an fp16 copy for the matmul that follows. The attention's result is the input of a matmul that saves it. */
static void decomposed_attention_saves_scores(void **state)
{
    (void)state;
    network n;
    make_transformer_with_scores(&n);
    expect_case(&n, RT_ACTIVATION_FP32, MDOT_ATTENTION_FLASH, MDOT_RECOMPUTE_NOTHING, 1 + 16 + 6);
    expect_case(&n, RT_ACTIVATION_FP32, MDOT_ATTENTION_EAGER, MDOT_RECOMPUTE_NOTHING, 1 + 16 + 6 + 0.25);
    expect_case(&n, RT_ACTIVATION_AMP, MDOT_ATTENTION_EAGER, MDOT_RECOMPUTE_NOTHING, 1.5 + 10 + 3 + 0.25 + 0.125);
    expect_case(&n, RT_ACTIVATION_BF16, MDOT_ATTENTION_EAGER, MDOT_RECOMPUTE_NOTHING, 1 + (16 + 6 + 0.25) / 2);
}

/* Matmuls keep results. At b10: samples, r0, q, k, v, the attention's, its projection, 4 of the first wide one; g10 4,
 * g9 4, g7 1. */
static void selective_recomputation_saves_matmul_results(void **state)
{
    (void)state;
    network n;
    make_transformer(&n);
    expect_case(&n, RT_ACTIVATION_FP32, MDOT_ATTENTION_FLASH, MDOT_RECOMPUTE_SELECTIVE, 1 + 10 + 9);
}

/* Three blocks of two matmuls, 4 and 1 units, after a matmul of 1. Each block keeps the input, 1 unit, and during the
 * backward pass the matmuls' saved tensors. At b6 of the last block: samples 1, r0 1, r2 1, r4 1; recomputed r5 4; r6 1
 * has no reader; g6 1, g5 4. */
static void recomputed_blocks_save_their_inputs(void **state)
{
    (void)state;
    network n = {0};
    network_add_units(&n, "Linear", 1, 10, "");
    for (uint32_t b = 1; b <= 3; b++) {
        char first[16], second[16];
        snprintf(first, sizeof first, "%u", 2 * b - 2);
        snprintf(second, sizeof second, "%u", 2 * b - 1);
        network_add_units(&n, "Linear", 4, 10, first)->block = b;
        network_add_units(&n, "Linear", 1, 10, second)->block = b;
    }
    /* without recomputation: samples, r0 1, r1 4, r2 1, r3 4, r4 1, r5 4; at b6 g6 1, g5 4 */
    expect_case(&n, RT_ACTIVATION_FP32, MDOT_ATTENTION_FLASH, MDOT_RECOMPUTE_NOTHING, 1 + 15 + 5);
    expect_case(&n, RT_ACTIVATION_FP32, MDOT_ATTENTION_FLASH, MDOT_RECOMPUTE_BLOCKS, 1 + 3 + 4 + 5);
}

/* `whole` omits the tensors that tensor parallelism shards: of the block above q, k, v, the attention's result, and
 * the two wide ones. The rest is largest at b8: samples, r0, its norm, r7 and its norm, saved; g7, g8, and g7 from
 * the sum. */
static void replicated_bytes_omit_sharded_tensors(void **state)
{
    (void)state;
    network n;
    make_transformer(&n);
    for (int i = 0; i < 12; i++) {
        bool is_matmul = n.operators[i].parameters >= 10;
        n.operators[i].setting[MDOT_SETTING_CHANNELS_IN] = is_matmul ? 8 : 0;
        n.operators[i].setting[MDOT_SETTING_CHANNELS_OUT] = is_matmul ? 8 : 0;
    }
    n.operators[1].setting[MDOT_SETTING_AXIS] = n.operators[8].setting[MDOT_SETTING_AXIS] = 1;
    mdot_job *job = predict_make_job(n.operators, n.count);
    const rt_activations *a = &job->analysis->activations.of[RT_ACTIVATION_FP32][0][0];
    assert_compare(a->all, ==, 23 * NETWORK_UNIT);
    assert_int_equal(job->analysis->sharding.role[2], RT_ROLE_COLUMNS);
    assert_int_equal(job->analysis->sharding.role[6], RT_ROLE_ROWS);
    if (a->whole != (1 + 4 + 3) * NETWORK_UNIT) fail_msg("%g units", a->whole / NETWORK_UNIT);
    mdot_job_destroy(job);
}

/* An attention with 16 units of fp32 scores behind a matmul; both results have 1 unit. */
static void make_scores(network *n)
{
    *n = (network){0};
    network_add_units(n, "Linear", 1, 10, "");
    mdot_job_operator *attention = network_add_units(n, "Attention", 1, 0, "0");
    attention->setting[MDOT_SETTING_HEADS] = 1;
    attention->setting[MDOT_SETTING_HEAD_SIZE] = 4;
    attention->per_sample[MDOT_PHASE_FORWARD].flops = 16 * 1024 * (4 * 4 + 5);
}

/* At b1: samples 1, r0 1, g1 1, g0 1, the probabilities 16 and their gradient 16. amp: also a sample copy .5 and an
 * fp16 copy of the probabilities 8. Selective recomputation also has the saved r1. */
static void scores_have_a_gradient(void **state)
{
    (void)state;
    network n;
    make_scores(&n);
    expect_case(&n, RT_ACTIVATION_FP32, MDOT_ATTENTION_EAGER, MDOT_RECOMPUTE_NOTHING, 4 + 32);
    expect_case(&n, RT_ACTIVATION_AMP, MDOT_ATTENTION_EAGER, MDOT_RECOMPUTE_NOTHING, 1.5 + 1.5 + 24 + 16);
    expect_case(&n, RT_ACTIVATION_BF16, MDOT_ATTENTION_EAGER, MDOT_RECOMPUTE_NOTHING, 1 + 1.5 + 16);
    expect_case(&n, RT_ACTIVATION_FP32, MDOT_ATTENTION_EAGER, MDOT_RECOMPUTE_SELECTIVE, 5 + 32);
}

/* At f1: samples 1, two results, the scores and the probabilities (amp has two copies). */
static void scores_without_gradient_are_temporary(void **state)
{
    (void)state;
    static const double units[] = {3 + 32, 2 + 8 + 24, 2 + 16}, fused[] = {3, 2, 2};
    network n;
    make_scores(&n);
    for (int is_frozen = 0; is_frozen < 2; is_frozen++) {
        if (is_frozen) n.operators[0].parameters = 0;
        mdot_job *job = predict_make_job(n.operators, n.count);
        const rt_activation_table *a = &job->analysis->activations;
        for (int type = 0; type < RT_ACTIVATION_TYPES; type++) {
            assert_compare(a->inference[type][MDOT_ATTENTION_EAGER].all, ==, units[type] * NETWORK_UNIT);
            assert_compare(a->inference[type][MDOT_ATTENTION_FLASH].all, ==, fused[type] * NETWORK_UNIT);
            assert_compare(a->inference[type][MDOT_ATTENTION_PROGRAM].all, ==, fused[type] * NETWORK_UNIT);
            assert_compare(a->inference[type][MDOT_ATTENTION_EAGER].moments[0].gradients, ==, 0);
            for (int recompute = 0; is_frozen && recompute < RT_RECOMPUTATIONS; recompute++)
                assert_compare(a->of[type][MDOT_ATTENTION_EAGER][recompute].all, ==, units[type] * NETWORK_UNIT);
        }
        mdot_job_destroy(job);
    }
}

/* A program with checkpointed blocks has the memory of recomputed blocks, unless an option recomputes otherwise. */
static void checkpoints_of_a_program_recompute_its_blocks(void **state)
{
    (void)state;
    network n = {0};
    network_add_units(&n, "Linear", 1, 10, "");
    for (uint32_t b = 1; b <= 3; b++) {
        char first[16], second[16];
        snprintf(first, sizeof first, "%u", 2 * b - 2);
        snprintf(second, sizeof second, "%u", 2 * b - 1);
        network_add_units(&n, "Linear", 4, 10, first)->block = b;
        network_add_units(&n, "Linear", 1, 10, second)->block = b;
    }
    mdot_job *plain = predict_make_job(n.operators, n.count);
    for (size_t i = 1; i < n.count; i++) n.operators[i].flags = MDOT_OPERATOR_RECOMPUTED;
    mdot_job *marked = predict_make_job(n.operators, n.count);
    for (int type = 0; type < RT_ACTIVATION_TYPES; type++) {
        const rt_activations *without = plain->analysis->activations.of[type][MDOT_ATTENTION_FLASH],
                             *with = marked->analysis->activations.of[type][MDOT_ATTENTION_FLASH];
        assert_compare(with[MDOT_RECOMPUTE_NOTHING].all, ==, without[MDOT_RECOMPUTE_BLOCKS].all);
        assert_compare(with[MDOT_RECOMPUTE_NOTHING].all, <, without[MDOT_RECOMPUTE_NOTHING].all);
        assert_compare(with[MDOT_RECOMPUTE_BLOCKS].all, ==, without[MDOT_RECOMPUTE_BLOCKS].all);
        assert_compare(with[MDOT_RECOMPUTE_SELECTIVE].all, ==, without[MDOT_RECOMPUTE_SELECTIVE].all);
    }
    mdot_job_destroy(plain);
    mdot_job_destroy(marked);
}

/* Gradients end at an operator that stops them: at f1 the samples, r0 and r1. Without the flag, at b2: samples, r1, g2,
 * g1. */
static void gradients_end_where_they_are_stopped(void **state)
{
    (void)state;
    network n = {0};
    network_add_units(&n, "Linear", 4, 10, "");
    network_add_units(&n, "Neg", 4, 0, "0");
    network_add_units(&n, "Linear", 1, 10, "1");
    expect_case(&n, RT_ACTIVATION_FP32, MDOT_ATTENTION_FLASH, MDOT_RECOMPUTE_NOTHING, 1 + 4 + 1 + 4);
    n.operators[1].flags = MDOT_OPERATOR_STOPS_GRADIENT;
    expect_case(&n, RT_ACTIVATION_FP32, MDOT_ATTENTION_FLASH, MDOT_RECOMPUTE_NOTHING, 1 + 4 + 4);
}

/* A matmul with frozen weights needs only these for the operand's gradient. If a part is trained, the operand is
 * saved. */
static void frozen_matmuls_save_no_operand(void **state)
{
    (void)state;
    for (int which = 0; which < 3; which++) {
        network n = {0};
        network_add_units(&n, "Linear", 4, 10, "");
        mdot_job_operator *op = network_add_units(&n, "Linear", 1, 0, "0");
        op->frozen_parameters = which == 0 ? 0 : 1;
        op->per_sample[MDOT_PHASE_WEIGHT_GRADIENT].bytes_read = which == 2 ? 1 : 0;
        /* at b1: samples 1, g1 1, g0 4, and r0 4 if it is saved */
        expect_case(&n, RT_ACTIVATION_FP32, MDOT_ATTENTION_FLASH, MDOT_RECOMPUTE_NOTHING, which == 1 ? 6 : 10);
    }
}

/* The second use of a parameter has a gradient, and saves tensors for it, although the parameter is counted at the
 * first. */
static void shared_parameters_pass_gradients(void **state)
{
    (void)state;
    for (int is_shared = 0; is_shared < 2; is_shared++) {
        network n = {0};
        network_add_units(&n, "Linear", 4, 0, "")->per_sample[MDOT_PHASE_WEIGHT_GRADIENT].flops = is_shared;
        network_add_units(&n, "Relu", 4, 0, "0");
        expect_case(&n, RT_ACTIVATION_FP32, MDOT_ATTENTION_FLASH, MDOT_RECOMPUTE_NOTHING, is_shared ? 1 + 12 : 1 + 8);
    }
}

/* In each case, all operator tensors sum to the shard's peak. */
static void tensors_of_operators_sum_to_the_peak(void **state)
{
    (void)state;
    network n;
    make_transformer_with_scores(&n);
    for (size_t i = 0; i < n.count; i++) {
        bool is_matmul = n.operators[i].parameters >= 10;
        n.operators[i].setting[MDOT_SETTING_CHANNELS_IN] = is_matmul ? 8 : 0;
        n.operators[i].setting[MDOT_SETTING_CHANNELS_OUT] = is_matmul ? 16 : 0;
        n.operators[i].block = i > 0 ? 1 : 0;
    }
    n.operators[1].setting[MDOT_SETTING_AXIS] = n.operators[8].setting[MDOT_SETTING_AXIS] = 1;
    mdot_job_operator *head = network_add_units(&n, "Linear", 6, 60, "12");
    head->setting[MDOT_SETTING_CHANNELS_IN] = 8;
    head->setting[MDOT_SETTING_CHANNELS_OUT] = 48;
    network_add_units(&n, "SoftmaxCrossEntropyLoss", 0, 0, "13");
    mdot_job *job = predict_make_job(n.operators, n.count);
    const rt_analysis *analysis = job->analysis;
    assert_int_equal(analysis->totals.logits, 14);
    assert_compare(analysis->sharding.common, >, 0);
    for (int i = 0; i < RT_ACTIVATION_TYPES * 2 * RT_RECOMPUTATIONS * RT_LOSSES; i++) {
        const rt_activation_case which = {
            .type = (rt_activation_type)(i % RT_ACTIVATION_TYPES),
            .attention = i / RT_ACTIVATION_TYPES % 2 == 0 ? MDOT_ATTENTION_EAGER : MDOT_ATTENTION_FLASH,
            .recompute = (mdot_recompute)(i / RT_ACTIVATION_TYPES / 2 % RT_RECOMPUTATIONS),
            .loss = (mdot_loss)(i / RT_ACTIVATION_TYPES / 2 / RT_RECOMPUTATIONS)};
        const rt_activations *a = rt_activations_of(&analysis->activations, &which);
        assert_compare(a->whole, <, a->all);
        assert_compare(a->moments[0].all, ==, a->all);
        assert_compare(a->moments[0].whole, ==, a->whole);
        for (double tensor = 1; tensor <= 4; tensor *= 2) {
            double bytes[NETWORK_MAX_OPERATORS], sum = 0, want = a->whole + (a->all - a->whole) / tensor;
            assert_true(rt_shard_activations(job, &analysis->sharding, analysis->totals.logits, &which, tensor, bytes));
            for (size_t k = 0; k < n.count; k++) sum += bytes[k];
            if (fabs(sum - want) > 1e-9 * want) fail_msg("case %d, degree %g: %g, not %g", i, tensor, sum, want);
        }
    }
    mdot_job_destroy(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_cnn_has_the_computed_peak),
        cmocka_unit_test(convolution_saves_its_result_for_normalisation),
        cmocka_unit_test(residual_sum_saves_nothing),
        cmocka_unit_test(transformer_block_has_the_computed_peak),
        cmocka_unit_test(views_take_no_memory),
        cmocka_unit_test(views_of_a_tensor_with_several_readers_take_no_memory),
        cmocka_unit_test(every_operand_with_several_readers_has_summands),
        cmocka_unit_test(either_operand_passes_gradients),
        cmocka_unit_test(max_pool_keeps_indices),
        cmocka_unit_test(softmax_is_fp32_under_autocast),
        cmocka_unit_test(cross_entropy_has_four_tensors_of_logits),
        cmocka_unit_test(network_without_parameters_saves_nothing),
        cmocka_unit_test(multiplications_save_their_factors),
        cmocka_unit_test(unknown_operators_save_everything),
        cmocka_unit_test(only_operands_from_outside_are_samples),
        cmocka_unit_test(results_have_the_widest_type_of_their_operands),
        cmocka_unit_test(recomputed_blocks_keep_indices_for_a_while),
        cmocka_unit_test(recomputed_blocks_keep_operands_to_their_end),
        cmocka_unit_test(bf16_takes_half),
        cmocka_unit_test(decomposed_attention_saves_scores),
        cmocka_unit_test(selective_recomputation_saves_matmul_results),
        cmocka_unit_test(recomputed_blocks_save_their_inputs),
        cmocka_unit_test(replicated_bytes_omit_sharded_tensors),
        cmocka_unit_test(scores_have_a_gradient),
        cmocka_unit_test(scores_without_gradient_are_temporary),
        cmocka_unit_test(checkpoints_of_a_program_recompute_its_blocks),
        cmocka_unit_test(gradients_end_where_they_are_stopped),
        cmocka_unit_test(frozen_matmuls_save_no_operand),
        cmocka_unit_test(shared_parameters_pass_gradients),
        cmocka_unit_test(tensors_of_operators_sum_to_the_peak),
        cmocka_unit_test(samples_are_what_a_convolution_reads_besides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
