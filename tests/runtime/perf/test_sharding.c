/* test_sharding.c — tensor parallelism shards networks small enough to follow, and each operator's part on one GPU. */
#include "runtime/job/job_model.h"
#include "runtime/perf/analysis.h"
#include "runtime/perf/sharding.h"
#include "tests/support/assertions.h"
#include "tests/support/network_fixture.h"
#include "tests/support/predict_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* `roles` has one letter per operator: - replicated, d sharded, c columns, r rows, t table. */
static mdot_job *expect_roles(const network *n, const char *roles)
{
    mdot_job *job = predict_make_job(n->operators, n->count);
    char got[NETWORK_MAX_OPERATORS + 1] = "";
    for (size_t i = 0; i < n->count; i++) got[i] = "-dcrt"[job->analysis->sharding.role[i]];
    assert_string_equal(got, roles);
    return job;
}

/* A table, one pre-norm block (width 64, 4 heads of 16, a mask), and a head over 100 classes with a loss. */
static void make_transformer(network *n)
{
    network_add(n, "Gather", 6400, "")->setting[MDOT_SETTING_INPUTS] = 1;
    network_add_norm(n, "0");
    network_add_matmul(n, 64, 64, "1"); /* 2, 3, 4: q, k, v */
    network_add_matmul(n, 64, 64, "1");
    network_add_matmul(n, 64, 64, "1");
    network_add(n, "Sigmoid", 0, ""); /* 5: a mask that depends on zero parameters */
    mdot_job_operator *attention = network_add(n, "Attention", 0, "2,3,4,5");
    attention->setting[MDOT_SETTING_HEADS] = 4;
    attention->setting[MDOT_SETTING_HEAD_SIZE] = 16;
    network_add_matmul(n, 64, 64, "6");
    network_add(n, "Add", 0, "0,7");
    network_add_norm(n, "8");
    network_add_matmul(n, 64, 256, "9");
    network_add(n, "Gelu", 0, "10");
    network_add_matmul(n, 256, 64, "11");
    network_add(n, "Add", 0, "8,12");
    network_add_norm(n, "13");
    network_add_matmul(n, 64, 100, "14");
    network_add(n, "SoftmaxCrossEntropyLoss", 0, "15");
}

static void transformer_is_sharded_as_in_megatron(void **state)
{
    (void)state;
    network n = {0};
    make_transformer(&n);
    mdot_job *job = expect_roles(&n, "t-ccc-dr--cdr--cd");
    const rt_sharding *d = &job->analysis->sharding;
    assert_int_equal(d->common, 4);                    /* gcd: 4 heads and matrix extents 64 and 256 */
    assert_compare(d->summed_forward_bytes, ==, 3000); /* the table, the projection, the second matmul */
    assert_compare(d->summed_backward_bytes, ==,
                   3000); /* the common input of q, k, v, once; the first matmul's input; the
                                                    * head's input */
    assert_int_equal(d->summed_count, 6);
    mdot_job_destroy(job);
}

/* All layers except the head are frozen. */
static void frozen_layers_are_sharded_like_trained_ones(void **state)
{
    (void)state;
    network n = {0};
    make_transformer(&n);
    for (size_t i = 0; i + 2 < n.count; i++) {
        n.operators[i].frozen_parameters = n.operators[i].parameters;
        n.operators[i].parameters = 0;
    }
    mdot_job_destroy(expect_roles(&n, "t-ccc-dr--cdr--cd"));
}

/* The last matmul uses the table's parameters, which are counted there. */
static void tied_matmul_is_sharded_like_an_untied_one(void **state)
{
    (void)state;
    network n = {0};
    make_transformer(&n);
    mdot_job_operator *last = &n.operators[n.count - 2];
    last->parameters = 0;
    last->per_sample[MDOT_PHASE_WEIGHT_GRADIENT].flops = 1e6;
    mdot_job_destroy(expect_roles(&n, "t-ccc-dr--cdr--cd"));
}

/* Replicated are a convolution, a normalisation over the channels between two matmuls, and an operator that mdot does
 * not know. */
static void operators_over_all_channels_are_replicated(void **state)
{
    (void)state;
    network convolutions = {0}, normalised = {0}, unknown = {0};
    network_add_matmul(&convolutions, 8, 8, "")->setting[MDOT_SETTING_KERNEL_W] = 3;
    network_add(&convolutions, "Relu", 0, "0");
    mdot_job *job = expect_roles(&convolutions, "--");
    assert_int_equal(job->analysis->sharding.common, 0);
    mdot_job_destroy(job);
    network_add_matmul(&normalised, 64, 64, "");
    network_add_norm(&normalised, "0");
    network_add_matmul(&normalised, 64, 64, "1");
    mdot_job_destroy(expect_roles(&normalised, "--c"));
    network_add_matmul(&unknown, 64, 64, "");
    network_add(&unknown, "Magic", 0, "0")->known = false;
    network_add_matmul(&unknown, 64, 64, "1");
    mdot_job_destroy(expect_roles(&unknown, "--c"));
}

/* Some operators have an axis and still work on a shard. A trait in the operator table marks them, so that names are
 * irrelevant. */
static void traits_mark_operators_that_work_on_a_shard(void **state)
{
    (void)state;
    static const char *const names[] = {"Split", "Slice", "Concat", "Softmax", "Magic"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        for (int whole = 0; whole < 2; whole++) {
            network n = {0};
            network_add_matmul(&n, 64, 256, "");
            mdot_job_operator *op = network_add(&n, whole ? "LogSoftmax" : names[i], 0, "0");
            op->setting[MDOT_SETTING_AXIS] = 1;
            op->setting[MDOT_SETTING_EXTENT] = 256;
            if (i == 4 && !whole) op->traits = (mdot_operator_traits){.number = 1, .traits = MDOT_TRAIT_PARTS};
            network_add_matmul(&n, 256, 64, "1");
            mdot_job_destroy(expect_roles(&n, whole ? "--c" : "cdr"));
        }
    }
}

/* If a matmul's result is added to a replicated tensor that needs a gradient, the matmul is replicated. The sum of
 * two sharded tensors stays sharded. */
static void residual_sums_add_replicated_tensors(void **state)
{
    (void)state;
    network residual = {0}, gated = {0};
    network_add_norm(&residual, "");
    network_add_matmul(&residual, 64, 64, "0");
    network_add(&residual, "Add", 0, "0,1");
    network_add_matmul(&residual, 64, 64, "2");
    mdot_job_destroy(expect_roles(&residual, "---c"));
    for (int is_frozen = 0; is_frozen < 2; is_frozen++) { /* parameters before an operator without its own */
        network through = {0};
        network_add_norm(&through, "");
        if (is_frozen) {
            through.operators[0].frozen_parameters = through.operators[0].parameters;
            through.operators[0].parameters = 0;
        }
        network_add(&through, "Relu", 0, "0");
        network_add_matmul(&through, 64, 64, "0");
        network_add(&through, "Add", 0, "1,2");
        network_add_matmul(&through, 64, 64, "3");
        mdot_job_destroy(expect_roles(&through, "----c"));
    }
    network_add_norm(&gated, "");
    network_add_matmul(&gated, 64, 256, "0");
    network_add_matmul(&gated, 64, 256, "0");
    network_add(&gated, "Sigmoid", 0, "1");
    network_add(&gated, "Mul", 0, "2,3");
    network_add_matmul(&gated, 256, 64, "4");
    mdot_job *job = expect_roles(&gated, "-ccddr");
    assert_compare(job->analysis->sharding.summed_backward_bytes, ==, 1000); /* both matmuls read one tensor */
    mdot_job_destroy(job);
}

/* A normalisation over each head's channels works on a shard of heads. */
static void norms_of_heads_are_sharded(void **state)
{
    (void)state;
    network n = {0};
    network_add_matmul(&n, 64, 64, "");
    network_add_norm(&n, "0");
    n.operators[1].setting[MDOT_SETTING_EXTENT] = 16;
    mdot_job_operator *attention = network_add(&n, "Attention", 0, "1");
    attention->setting[MDOT_SETTING_HEADS] = 4;
    attention->setting[MDOT_SETTING_HEAD_SIZE] = 16;
    network_add_matmul(&n, 64, 64, "2");
    mdot_job_destroy(expect_roles(&n, "cddr"));
}

static mdot_job_operator *freeze(mdot_job_operator *op)
{
    op->frozen_parameters = op->parameters;
    op->parameters = 0;
    op->per_step[MDOT_PHASE_FORWARD].bytes_read = 4 * op->frozen_parameters;
    return op;
}

/* Adds base(x) + scale * up(down(x)) with a rank of 4, as peft does. Returns the sum's index. */
static int add_adapted(network *n, int64_t in, int64_t out, int operand)
{
    char inputs[16];
    snprintf(inputs, sizeof inputs, "%d", operand);
    int base = (int)n->count;
    freeze(network_add_matmul(n, in, out, inputs));
    network_add_matmul(n, in, 4, inputs);
    snprintf(inputs, sizeof inputs, "%d", base + 1);
    network_add_matmul(n, 4, out, inputs);
    snprintf(inputs, sizeof inputs, "%d", base + 2);
    network_add(n, "Mul", 0, inputs);
    snprintf(inputs, sizeof inputs, "%d,%d", base, base + 3);
    network_add(n, "Add", 0, inputs);
    return base + 4;
}

/* The first factor stays whole beside columns and is sharded by rows beside rows. The rank of 4 does not limit the
 * degree to 4. */
static void adapters_are_sharded_on_their_large_sides(void **state)
{
    (void)state;
    network n = {0};
    freeze(network_add(&n, "Gather", 6400, ""))->setting[MDOT_SETTING_INPUTS] = 1;
    network_add_norm(&n, "0");
    int query = add_adapted(&n, 64, 64, 1), value = add_adapted(&n, 64, 64, 1);
    char inputs[16];
    snprintf(inputs, sizeof inputs, "%d,%d", query, value);
    mdot_job_operator *attention = network_add(&n, "Attention", 0, inputs);
    attention->setting[MDOT_SETTING_HEADS] = 8;
    attention->setting[MDOT_SETTING_HEAD_SIZE] = 8;
    int projection = add_adapted(&n, 64, 64, (int)n.count - 1);
    snprintf(inputs, sizeof inputs, "0,%d", projection);
    network_add(&n, "Add", 0, inputs);
    mdot_job *job = expect_roles(&n, "t-c-cddc-cdddrr----");
    assert_int_equal(job->analysis->sharding.common, 8);
    mdot_job_destroy(job);
}

/* The second of two base-matmul adapters is added to the first sum. */
static void several_adapters_share_a_base(void **state)
{
    (void)state;
    network n = {0};
    network_add_norm(&n, "");
    freeze(network_add_matmul(&n, 64, 64, "0"));
    network_add_matmul(&n, 64, 4, "0");
    network_add_matmul(&n, 4, 64, "2");
    network_add(&n, "Add", 0, "1,3");
    network_add_matmul(&n, 64, 4, "0");
    network_add_matmul(&n, 4, 64, "5");
    network_add(&n, "Add", 0, "4,6");
    network_add_matmul(&n, 64, 64, "7");
    mdot_job_destroy(expect_roles(&n, "-c-cd-cdr"));
}

/* A frozen head that shares the table's parameters has neither own parameters nor a gradient. */
static void frozen_tied_head_is_sharded(void **state)
{
    (void)state;
    network n = {0};
    make_transformer(&n);
    for (size_t i = 0; i < n.count; i++) freeze(&n.operators[i]);
    n.operators[n.count - 2].frozen_parameters = 0;
    mdot_job_destroy(expect_roles(&n, "t-ccc-dr--cdr--cd"));
}

/* One GPU in four has a quarter of the FLOPs and parameters, and a quarter of sharded operands and results. */
static void a_shard_has_one_gpus_flops_and_bytes(void **state)
{
    (void)state;
    network n = {0};
    make_transformer(&n);
    for (size_t i = 0; i < n.count; i++) {
        for (int phase = 0; phase < (n.operators[i].parameters > 0 ? MDOT_PHASE_COUNT : 2); phase++)
            n.operators[i].per_sample[phase] = (mdot_load){800, 400, 160};
        n.operators[i].per_step[MDOT_PHASE_FORWARD].bytes_read = 64;
    }
    mdot_job *job = predict_make_job(n.operators, n.count);
    const rt_shard whole = {1, 1, {1, 1, 1}, 0}, quarter = {4, 1, {1, 1, 1}, 0};
    mdot_job_operator buffer;
    const rt_sharding *sharding = &job->analysis->sharding;
    assert_ptr_equal(rt_sharded_operator(job, sharding, 2, &whole, &buffer), &job->operators[2]);
    assert_ptr_equal(rt_sharded_operator(job, sharding, 1, &quarter, &buffer), &job->operators[1]);
    const mdot_job_operator *columns = rt_sharded_operator(job, sharding, 2, &quarter, &buffer);
    assert_compare(columns->per_sample[0].flops, ==, 200);
    assert_compare(columns->per_sample[0].bytes_read, ==, 400);
    assert_compare(columns->per_sample[0].bytes_written, ==, 40);
    assert_compare(columns->per_sample[1].flops, ==, 200);
    assert_compare(columns->per_sample[1].bytes_read, ==, 100);
    assert_compare(columns->per_sample[1].bytes_written, ==, 160);
    assert_compare(columns->per_sample[2].flops, ==, 200);
    assert_compare(columns->per_sample[2].bytes_read, ==, 400 - 160 * 3 / 4.0);
    assert_compare(columns->per_step[0].bytes_read, ==, 16);
    assert_compare(columns->parameters, ==, 1024);
    assert_int_equal(columns->setting[MDOT_SETTING_CHANNELS_OUT], 16);
    assert_int_equal(columns->setting[MDOT_SETTING_CHANNELS_IN], 64);
    const mdot_job_operator *rows = rt_sharded_operator(job, sharding, 7, &quarter, &buffer);
    assert_compare(rows->per_sample[0].bytes_read, ==, 100);
    assert_compare(rows->per_sample[0].bytes_written, ==, 160);
    assert_int_equal(rows->setting[MDOT_SETTING_CHANNELS_IN], 16);
    const mdot_job_operator *attention = rt_sharded_operator(job, sharding, 6, &quarter, &buffer);
    assert_compare(attention->per_sample[1].flops, ==, 200);
    assert_compare(attention->per_sample[1].bytes_read, ==, 100);
    assert_int_equal(attention->setting[MDOT_SETTING_HEADS], 1);
    const mdot_job_operator *table = rt_sharded_operator(job, sharding, 0, &quarter, &buffer);
    assert_compare(table->parameters, ==, 1600);
    assert_compare(table->per_sample[0].bytes_written, ==, 160);
    mdot_job_destroy(job);
}

/* Operators 1 to 7 are one block, 8 to 13 another. The test checks the operators before, in and after the blocks, and
 * the tensors between the blocks. */
static void pipeline_positions_follow_the_blocks(void **state)
{
    (void)state;
    network n = {0};
    make_transformer(&n);
    for (int i = 1; i <= 13; i++) n.operators[i].block = i <= 7 ? 1 : 2;
    mdot_job *job = predict_make_job(n.operators, n.count);
    const rt_sharding *d = &job->analysis->sharding;
    assert_int_equal(d->position[0], RT_PIPELINE_BEFORE);
    assert_int_equal(d->position[1], RT_PIPELINE_BLOCKS);
    assert_int_equal(d->position[13], RT_PIPELINE_BLOCKS);
    assert_int_equal(d->position[14], RT_PIPELINE_AFTER);
    assert_compare(d->parameters.all[RT_PIPELINE_BEFORE], ==, 6400);
    assert_compare(d->parameters.all[RT_PIPELINE_AFTER], ==, 6402);
    assert_compare(d->largest_block_parameters, ==, 2 + 2 * 64 * 256);
    assert_compare(d->border_bytes, ==, 1000); /* only the projection, because the table's result comes from before the
                                           * blocks */
    mdot_job_destroy(job);
}

/* A bypass of a base operator is an adapter only if both are one-operand matmuls and the rank is smaller than both base
 * sides. Otherwise the first matmul is sharded by columns and the second by rows, and their sum keeps the base matmul
 * whole. */
static void other_bypasses_are_no_adapters(void **state)
{
    (void)state;
    static const struct {
        int64_t in, out, rank;
        bool has_convolution, reads_another; /* the base is a convolution; the bypass reads another tensor */
        const char *roles;
    } cases[] = {
        {64, 128, 63, false, false, "--c-cdr"}, {64, 128, 64, false, false, "---cr-c"},
        {128, 64, 63, false, false, "--c-cdr"}, {128, 64, 64, false, false, "---cr-c"},
        {64, 128, 4, true, false, "---cr-c"},   {64, 128, 4, false, true, "---cr-c"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int order = 0; order < 2; order++) { /* the base before or behind the bypass */
            network n = {0};
            network_add_norm(&n, "");
            network_add_norm(&n, "0");
            const char *r = cases[i].roles;
            const char roles[] = {r[0], r[1], r[order == 0 ? 2 : 3], r[order == 0 ? 3 : 4], r[order == 0 ? 4 : 2], r[5],
                                  r[6], '\0'};
            for (int k = 0; k < 2; k++) {
                if (k == order)
                    network_add_matmul(&n, cases[i].in, cases[i].out, "0")->setting[MDOT_SETTING_KERNEL_W] =
                        cases[i].has_convolution;
                else
                    network_add_matmul(&n, cases[i].in, cases[i].rank, cases[i].reads_another ? "1" : "0");
                if (k != order) network_add_matmul(&n, cases[i].rank, cases[i].out, order == 0 ? "3" : "2");
            }
            network_add(&n, "Add", 0, order == 0 ? "2,4" : "3,4");
            network_add_matmul(&n, cases[i].out, 64, "5");
            mdot_job_destroy(expect_roles(&n, roles));
        }
    }
}

/* Two matmuls on samples, without operands in the graph, are no adapter. */
static void sums_of_matmuls_of_samples_are_sharded(void **state)
{
    (void)state;
    network n = {0};
    network_add_matmul(&n, 64, 128, "");
    network_add_matmul(&n, 64, 128, "");
    network_add(&n, "Add", 0, "0,1");
    network_add_matmul(&n, 128, 64, "2");
    mdot_job *job = expect_roles(&n, "ccdr");
    const rt_sharding *d = &job->analysis->sharding;
    assert_compare(d->summed_forward_bytes, ==, 1000);
    assert_compare(d->summed_backward_bytes, ==, 0);
    assert_int_equal(d->summed_count, 1);
    assert_int_equal(d->common, 128);
    mdot_job_destroy(job);
}

/* Operators that pick from tensors, recurrences, and two-operand products beside weights need whole tensors. */
static void further_operators_are_replicated(void **state)
{
    (void)state;
    for (int which = 0; which < 3; which++) {
        network n = {0};
        network_add_matmul(&n, 64, 64, "");
        network_add_matmul(&n, 64, 64, "");
        mdot_job_operator *op = which == 2 ? network_add_matmul(&n, 64, 64, "0,1") : network_add(&n, "Gather", 0, "0");
        if (which == 1)
            *op = (mdot_job_operator){
                .struct_size = sizeof *op, .type = "LSTM", .known = true, .inputs = op->inputs, .input_count = 1};
        op->setting[MDOT_SETTING_DIRECTIONS] = which == 1;
        network_add_matmul(&n, 64, 64, "2");
        mdot_job_destroy(expect_roles(&n, which == 2 ? "---c" : "-c-c"));
    }
}

/* GPUs sum the gradient of an operand only if a trained parameter is behind it. */
static void frozen_operands_have_no_summed_gradients(void **state)
{
    (void)state;
    for (int is_trained = 0; is_trained < 2; is_trained++) {
        network n = {0};
        mdot_job_operator *table = network_add(&n, "Gather", 6400, "");
        if (!is_trained) freeze(table);
        table->setting[MDOT_SETTING_INPUTS] = 1;
        network_add_norm(&n, "0");
        if (!is_trained) freeze(&n.operators[1]);
        network_add_matmul(&n, 64, 256, "1");
        network_add_matmul(&n, 256, 64, "2");
        mdot_job *job = expect_roles(&n, "t-cr");
        const rt_sharding *d = &job->analysis->sharding;
        assert_compare(d->summed_forward_bytes, ==, 2000);
        assert_compare(d->summed_backward_bytes, ==, is_trained ? 1000 : 0);
        assert_int_equal(d->summed_count, 2 + is_trained);
        mdot_job_destroy(job);
    }
}

/* Parameters before the second of two operands, or before the first, make a product train and depend on them. */
static void either_operand_may_pass_parameters_on(void **state)
{
    (void)state;
    for (int first = 0; first < 2; first++) {
        network n = {0};
        if (first) network_add_norm(&n, "");
        network_add(&n, "Sigmoid", 0, "");
        if (!first) network_add_norm(&n, "");
        network_add(&n, "Mul", 0, "0,1");
        network_add_matmul(&n, 64, 64, "2");
        network_add(&n, "Add", 0, "2,3"); /* with a whole tensor that depends on parameters */
        network_add_matmul(&n, 64, 64, "4");
        mdot_job *job = expect_roles(&n, "-----c");
        assert_compare(job->analysis->sharding.summed_backward_bytes, ==, 1000);
        mdot_job_destroy(job);
    }
}

/* Each sum of a row keeps the matmul of the next sum whole, which one sweep after the other finds. 64 sweeps are enough
 * for 62 matmuls behind the first one. A longer row is replicated, with the pair of matmuls beside it. */
static void graphs_that_keep_changing_are_replicated(void **state)
{
    (void)state;
    for (int more = 62; more <= 63; more++) {
        network n = {0};
        char inputs[32], roles[NETWORK_MAX_OPERATORS + 1] = "";
        network_add_norm(&n, "");
        for (int i = 0; i <= more; i++) network_add_matmul(&n, 64, 64, "0");
        for (int i = 0; i <= more; i++) {
            snprintf(inputs, sizeof inputs, "%d,%d", i, i + 1); /* the normalisation and matmul 1, then matmuls */
            network_add(&n, "Add", 0, inputs);
        }
        memset(roles, '-', n.count + 2);
        if (more == 62) memcpy(&roles[n.count], "cr", 2);
        snprintf(inputs, sizeof inputs, "%d", (int)n.count);
        network_add_matmul(&n, 64, 128, "0");
        network_add_matmul(&n, 128, 64, inputs);
        mdot_job_destroy(expect_roles(&n, roles));
    }
}

/* An operator works along the channels if it has an axis or a reduced extent, unless that is the size of a head. */
static void axes_and_extents_mark_operators_along_the_channels(void **state)
{
    (void)state;
    static const struct {
        int64_t axis, extent, head_size;
        const char *roles;
    } cases[] = {{0, 0, 0, "cddr"},   {1, 0, 0, "---c"},   {0, 64, 0, "---c"}, {1, 64, 16, "---c"},
                 {0, 16, 16, "cddr"}, {1, 16, 16, "cddr"}, {1, 0, 16, "---c"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        network n = {0};
        network_add_matmul(&n, 64, 64, "");
        network_add(&n, "Sigmoid", 0, "0")->setting[MDOT_SETTING_HEAD_SIZE] = cases[i].head_size;
        mdot_job_operator *op = network_add(&n, "LayerNormalization", 0, "1");
        op->setting[MDOT_SETTING_AXIS] = cases[i].axis;
        op->setting[MDOT_SETTING_EXTENT] = cases[i].extent;
        network_add_matmul(&n, 64, 64, "2");
        mdot_job_destroy(expect_roles(&n, cases[i].roles));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transformer_is_sharded_as_in_megatron),
        cmocka_unit_test(frozen_layers_are_sharded_like_trained_ones),
        cmocka_unit_test(tied_matmul_is_sharded_like_an_untied_one),
        cmocka_unit_test(operators_over_all_channels_are_replicated),
        cmocka_unit_test(traits_mark_operators_that_work_on_a_shard),
        cmocka_unit_test(residual_sums_add_replicated_tensors),
        cmocka_unit_test(norms_of_heads_are_sharded),
        cmocka_unit_test(adapters_are_sharded_on_their_large_sides),
        cmocka_unit_test(several_adapters_share_a_base),
        cmocka_unit_test(frozen_tied_head_is_sharded),
        cmocka_unit_test(a_shard_has_one_gpus_flops_and_bytes),
        cmocka_unit_test(pipeline_positions_follow_the_blocks),
        cmocka_unit_test(other_bypasses_are_no_adapters),
        cmocka_unit_test(sums_of_matmuls_of_samples_are_sharded),
        cmocka_unit_test(further_operators_are_replicated),
        cmocka_unit_test(frozen_operands_have_no_summed_gradients),
        cmocka_unit_test(either_operand_may_pass_parameters_on),
        cmocka_unit_test(graphs_that_keep_changing_are_replicated),
        cmocka_unit_test(axes_and_extents_mark_operators_along_the_channels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
