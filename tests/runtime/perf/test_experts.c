/* test_experts.c — recognising the experts of a mixture in a job, and the effect of expert parallelism on parameters,
 * memory and exchanges. */
#include "runtime/job/job_model.h"
#include "runtime/perf/analysis.h"
#include "runtime/perf/peak_memory.h"
#include "runtime/perf/resolved_configuration.h"
#include "runtime/perf/sharding.h"
#include "runtime/perf/step_time.h"
#include "tests/support/assertions.h"
#include "tests/support/predict_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { WIDTH = 64, HIDDEN = 128, EXPERTS = 8, LAYERS = 2, EACH = 9, ROUTER = 1, DEALT = 2, UP = 3, GATE = 4, DOWN = 6 };
enum { DENSE = WIDTH * EXPERTS, OF_EXPERTS = 3 * WIDTH * HIDDEN * EXPERTS, TOKEN_BYTES = 4000 };

typedef struct network {
    mdot_job_operator operators[LAYERS * EACH];
    uint32_t inputs[LAYERS * EACH][2];
} network;

static mdot_job_operator *put(network *n, size_t at, const char *type, uint32_t block, double parameters, int first,
                              int second)
{
    mdot_job_operator *op = &n->operators[at];
    *op = (mdot_job_operator){.struct_size = sizeof *op, .type = type, .known = true, .block = block};
    op->parameters = parameters;
    op->inputs = n->inputs[at];
    if (first >= 0) n->inputs[at][op->input_count++] = (uint32_t)first;
    if (second >= 0) n->inputs[at][op->input_count++] = (uint32_t)second;
    op->per_sample[MDOT_PHASE_FORWARD] = (mdot_load){0, TOKEN_BYTES, TOKEN_BYTES};
    return op;
}

static void put_experts(network *n, size_t at, uint32_t block, int in, int out, int operand)
{
    mdot_job_operator *op = put(n, at, "MatMul", block, (double)in * out * EXPERTS, operand, -1);
    op->setting[MDOT_SETTING_CHANNELS_IN] = in;
    op->setting[MDOT_SETTING_CHANNELS_OUT] = out;
    op->setting[MDOT_SETTING_GROUPS] = EXPERTS;
    op->setting[MDOT_SETTING_SIZE_IN] = op->setting[MDOT_SETTING_SIZE_OUT] = 16;
    op->per_step[MDOT_PHASE_FORWARD].bytes_read = 4.0 * op->parameters;
    op->per_sample[MDOT_PHASE_FORWARD].flops = 1e6;
}

/* Each layer has a router, a choice, and experts. An expert has two matmuls on its tokens and one matmul after them. */
static void make_mixture(network *n, const char *choice)
{
    for (uint32_t layer = 0; layer < LAYERS; layer++) {
        int at = (int)layer * EACH;
        uint32_t block = layer + 1;
        mdot_job_operator *router = put(n, (size_t)at, "Linear", block, DENSE, at - 1, -1);
        router->setting[MDOT_SETTING_CHANNELS_IN] = WIDTH;
        router->setting[MDOT_SETTING_CHANNELS_OUT] = EXPERTS;
        put(n, (size_t)at + ROUTER, choice, block, 0, at, -1);
        put(n, (size_t)at + DEALT, "Gather", block, 0, at > 0 ? at - 1 : at, at + ROUTER)->traits.traits =
            MDOT_TRAIT_PICKS;
        put_experts(n, (size_t)at + UP, block, WIDTH, HIDDEN, at + DEALT);
        put_experts(n, (size_t)at + GATE, block, WIDTH, HIDDEN, at + DEALT);
        put(n, (size_t)at + 5, "Mul", block, 0, at + UP, at + GATE);
        put_experts(n, (size_t)at + DOWN, block, HIDDEN, WIDTH, at + 5);
        put(n, (size_t)at + 7, "Gather", block, 0, at + ROUTER, at + DOWN)->traits.traits = MDOT_TRAIT_PICKS;
        put(n, (size_t)at + 8, "Add", block, 0, at > 0 ? at - 1 : at, at + 7);
    }
}

static mdot_job *mixture(const char *choice)
{
    network n;
    make_mixture(&n, choice);
    return predict_make_job(n.operators, LAYERS * EACH);
}

static void experts_follow_a_router(void **state)
{
    (void)state;
    mdot_job *job = mixture("TopK");
    const rt_sharding *d = &job->analysis->sharding;
    for (size_t i = 0; i < LAYERS * EACH; i++) {
        size_t at = i % EACH;
        assert_int_equal(d->experts.is_expert[i], at == UP || at == GATE || at == DOWN);
    }
    assert_int_equal(d->experts.common_count, EXPERTS);
    assert_compare(d->experts.exchanged_bytes, ==,
                   LAYERS * 2 * TOKEN_BYTES); /* two matmuls receive the tokens once, and one
                                                                  * result returns */
    assert_int_equal(d->experts.exchange_count, LAYERS * 2);
    assert_compare(d->parameters.experts[RT_PIPELINE_BLOCKS], ==, LAYERS * OF_EXPERTS);
    assert_compare(d->parameters.all[RT_PIPELINE_BLOCKS], ==, LAYERS * (OF_EXPERTS + DENSE));
    mdot_job_destroy(job);
}

/* An operator between the last matmul and the collection leaves the number of exchanges as it is. */
static void scaled_results_of_experts_are_exchanged_once(void **state)
{
    (void)state;
    network n;
    make_mixture(&n, "TopK");
    for (size_t layer = 0; layer < LAYERS; layer++) {
        n.operators[layer * EACH + 7].type = "Mul";
        n.operators[layer * EACH + 7].traits.traits = 0;
    }
    mdot_job *job = predict_make_job(n.operators, LAYERS * EACH);
    const rt_experts *experts = &job->analysis->sharding.experts;
    assert_int_equal(experts->exchange_count, LAYERS * 2);
    assert_compare(experts->exchanged_bytes, ==, LAYERS * 2 * TOKEN_BYTES);
    mdot_job_destroy(job);
}

static void stacked_matrices_without_a_router_are_not_experts(void **state)
{
    (void)state;
    mdot_job *job = mixture("Relu");
    assert_int_equal(job->analysis->sharding.experts.common_count, 0);
    assert_compare(job->analysis->sharding.experts.exchanged_bytes, ==, 0);
    mdot_job_destroy(job);
    network n;
    make_mixture(&n, "Relu");
    for (size_t i = 0; i < LAYERS * EACH; i++) n.operators[i].block = 0;
    job = predict_make_job(n.operators, LAYERS * EACH);
    assert_int_equal(job->analysis->sharding.experts.common_count, 0);
    mdot_job_destroy(job);
    make_mixture(&n, "TopK");
    for (size_t i = UP; i < LAYERS * EACH; i++) n.operators[i].parameters *= 1.01; /* a fractional number of matrices */
    job = predict_make_job(n.operators, LAYERS * EACH);
    assert_int_equal(job->analysis->sharding.experts.common_count, 0);
    mdot_job_destroy(job);
}

/* Kernels with one element are convolutions, too, and have groups for other reasons. */
static void convolutions_are_not_experts(void **state)
{
    (void)state;
    network n;
    make_mixture(&n, "TopK");
    for (size_t i = 0; i < LAYERS * EACH; i++) n.operators[i].setting[MDOT_SETTING_KERNEL_W] = 1;
    mdot_job *job = predict_make_job(n.operators, LAYERS * EACH);
    assert_int_equal(job->analysis->sharding.experts.common_count, 0);
    mdot_job_destroy(job);
}

/* The first of equally large blocks is the largest, and its experts count. A job without blocks has none to count. */
static void the_largest_block_has_its_experts(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        network n;
        make_mixture(&n, "TopK");
        double experts = i == 1 ? OF_EXPERTS + WIDTH * HIDDEN * EXPERTS : i == 0 ? OF_EXPERTS : 0;
        if (i == 1) n.operators[DOWN].parameters *= 2;
        if (i == 2) n.operators[ROUTER].type = "Relu"; /* the first block has as many parameters, but no experts */
        for (size_t k = 0; i == 3 && k < LAYERS * EACH; k++) n.operators[k].block = 0;
        mdot_job *job = predict_make_job(n.operators, LAYERS * EACH);
        const rt_sharding *d = &job->analysis->sharding;
        assert_compare(d->experts.common_count, ==, EXPERTS);
        assert_compare(d->largest_block_experts, ==, experts);
        mdot_job_destroy(job);
    }
}

/* Each change keeps one layer's first matmul from being an expert, or leaves it one. */
static void matmuls_of_several_matrices_behind_a_router_are_experts(void **state)
{
    (void)state;
    enum { CASES = 9 };
    static const uint64_t common[CASES] = {8, 4, 8, 8, 8, 8, 2, 8, 8};
    static const bool is_expert[CASES] = {true, true, false, false, false, false, true, true, false};
    for (int i = 0; i < CASES; i++) {
        network n;
        make_mixture(&n, "TopK");
        mdot_job_operator *up = &n.operators[UP];
        double matrix = up->parameters / EXPERTS;
        if (i == 1) up->parameters = 12 * matrix;
        if (i == 2) up->parameters = matrix;
        if (i == 3) up->known = false;
        if (i == 4) up->input_count = 2, n.inputs[UP][0] = 0, n.inputs[UP][1] = DEALT;
        if (i == 5) up->input_count = 0;
        if (i == 6) up->parameters = 2 * matrix;
        if (i == 7) up->frozen_parameters = matrix, up->parameters -= matrix;
        if (i == 8) up->block = 2; /* the router of the second block comes later */
        mdot_job *job = predict_make_job(n.operators, LAYERS * EACH);
        const rt_experts *experts = &job->analysis->sharding.experts;
        if (experts->common_count != common[i]) fail_msg("case %d: %d", i, (int)experts->common_count);
        assert_int_equal(experts->is_expert[UP], is_expert[i]);
        assert_true(experts->is_expert[GATE]);
        assert_true(experts->is_expert[EACH + UP]);
        mdot_job_destroy(job);
    }
}

/* A layer's operand is sent once, as the first matmul reads it. The other operand of a gate is sent, too. The results
 * of inner matmuls stay where they are, unless an operator of another block or a look-up reads them. */
static void operands_are_sent_and_results_collected(void **state)
{
    (void)state;
    static const double up = 100, gate = 20, up_written = 3000, gate_written = 400, down = 50000;
    for (int i = 0; i < 4; i++) {
        network n;
        make_mixture(&n, "TopK");
        n.operators[UP].per_sample[MDOT_PHASE_FORWARD] = (mdot_load){0, up, up_written};
        n.operators[GATE].per_sample[MDOT_PHASE_FORWARD] = (mdot_load){0, gate, gate_written};
        n.operators[DOWN].per_sample[MDOT_PHASE_FORWARD] = (mdot_load){0, 6e5, down};
        double bytes = up + down, count = 2;
        if (i == 1) { /* the gate reads the router's result */
            n.inputs[GATE][0] = 0;
            bytes += gate;
            count++;
        }
        if (i == 2) { /* their product is in no layer, so the last matmul is a separate one */
            n.operators[5].block = 0;
            bytes += up_written + gate_written + 6e5;
            count += 3;
        }
        if (i == 3) { /* a look-up distributes their results anew */
            n.operators[5].traits = (mdot_operator_traits){.number = 1, .traits = MDOT_TRAIT_PICKS};
            bytes += up_written + gate_written + 6e5;
            count += 3;
        }
        mdot_job *job = predict_make_job(n.operators, EACH);
        const rt_experts *experts = &job->analysis->sharding.experts;
        if (experts->exchange_count != count || experts->exchanged_bytes != bytes)
            fail_msg("case %d: %u, %g", i, experts->exchange_count, experts->exchanged_bytes);
        mdot_job_destroy(job);
    }
}

static void biases_belong_to_the_matrices_of_experts(void **state)
{
    (void)state;
    network n;
    make_mixture(&n, "TopK");
    for (size_t i = 0; i < LAYERS * EACH; i++) {
        mdot_job_operator *op = &n.operators[i];
        if (op->setting[MDOT_SETTING_GROUPS] != EXPERTS) continue;
        op->setting[MDOT_SETTING_BIAS] = 1;
        op->parameters += (double)EXPERTS * (double)op->setting[MDOT_SETTING_CHANNELS_OUT];
    }
    mdot_job *job = predict_make_job(n.operators, LAYERS * EACH);
    assert_int_equal(job->analysis->sharding.experts.common_count, EXPERTS);
    mdot_job_destroy(job);
}

static void operators_without_channels_are_not_experts(void **state)
{
    (void)state;
    for (int setting = MDOT_SETTING_CHANNELS_IN; setting <= MDOT_SETTING_CHANNELS_OUT; setting++) {
        network n;
        make_mixture(&n, "TopK");
        for (size_t i = 0; i < LAYERS * EACH; i++) {
            mdot_job_operator *op = &n.operators[i];
            if (op->setting[MDOT_SETTING_GROUPS] != EXPERTS) continue;
            op->setting[setting] = 0;
            op->setting[MDOT_SETTING_BIAS] = 1;
            op->parameters = (double)EXPERTS * (double)op->setting[MDOT_SETTING_CHANNELS_OUT];
        }
        mdot_job *job = predict_make_job(n.operators, LAYERS * EACH);
        assert_int_equal(job->analysis->sharding.experts.common_count, 0);
        mdot_job_destroy(job);
    }
}

static mdot_status resolve(const mdot_job *job, mdot_configuration c, rt_resolved_configuration *out, mdot_error *err)
{
    rt_configuration configuration = {.c = c};
    configuration.c.batch = 8;
    configuration.gpu.pcie_gbps = 31.5;
    configuration.gpu.memory_gbps = configuration.gpu.fp32_tflops = configuration.gpu.tf32_tflops =
        configuration.gpu.fp16_tflops = 100;
    mdot_status status = rt_configuration_complete(&configuration, err);
    if (status == MDOT_OK) status = rt_configuration_check(&configuration, job, err);
    if (status == MDOT_OK) rt_resolve(job, &configuration, out);
    return status;
}

static rt_resolved_configuration accept(const mdot_job *job, mdot_configuration c)
{
    mdot_error err = {0};
    rt_resolved_configuration resolved;
    if (resolve(job, c, &resolved, &err) != MDOT_OK) fail_msg("%s", err.message);
    return resolved;
}

static void a_gpu_holds_its_experts_and_all_other_parameters(void **state)
{
    (void)state;
    mdot_job *job = mixture("TopK");
    const double dense = LAYERS * DENSE, experts = LAYERS * OF_EXPERTS;
    const struct {
        mdot_configuration c;
        double weights, gradients, optimizer; /* numbers of elements */
    } cases[] = {
        {{.gpu_count = 1}, dense + experts, dense + experts, dense + experts},
        {{.expert_parallel = 4}, dense + experts / 4, 2 * dense + experts / 4, dense + experts / 4},
        {{.gpu_count = 8, .expert_parallel = 4}, dense + experts / 4, 2 * (dense + experts / 4), dense + experts / 4},
        {{.gpu_count = 8, .expert_parallel = 4, .zero_stage = 1},
         dense + experts / 4,
         dense + experts / 4,
         dense / 8 + experts / 8},
        {{.expert_parallel = 8, .zero_stage = 2},
         dense + experts / 8,
         dense / 8 + experts / 8,
         dense / 8 + experts / 8},
        /* Stage 3 also has both blocks as a whole, and in the backward pass two gradients of a block's size. */
        {{.gpu_count = 8, .expert_parallel = 4, .zero_stage = 3},
         dense / 8 + experts / 8 + dense + experts / 4,
         dense / 8 + experts / 8 + 2 * (DENSE + OF_EXPERTS / 4.0),
         dense / 8 + experts / 8},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mdot_configuration c = cases[i].c;
        c.accumulate = 2; /* so that all gradients exist at the peak */
        rt_resolved_configuration resolved = accept(job, c);
        rt_memory m = rt_measure_memory(job, &resolved);
        if (m.weights != 4 * cases[i].weights || m.gradients != 4 * cases[i].gradients ||
            m.optimizer != 4 * cases[i].optimizer)
            fail_msg("case %zu: %.0f, %.0f, %.0f bytes", i, m.weights, m.gradients, m.optimizer);
    }
    mdot_job_destroy(job);
}

static void expert_parallelism_divides_matrices_and_keeps_flops(void **state)
{
    (void)state;
    mdot_job *job = mixture("TopK");
    const rt_shard share = {1, 4, {1, 1, 1}, 0};
    mdot_job_operator storage;
    const mdot_job_operator *whole = &job->operators[UP],
                            *part = rt_sharded_operator(job, &job->analysis->sharding, UP, &share, &storage);
    assert_ptr_equal(part, &storage);
    assert_compare(part->parameters, ==, whole->parameters / 4);
    assert_compare(part->per_step[MDOT_PHASE_FORWARD].bytes_read, ==,
                   whole->per_step[MDOT_PHASE_FORWARD].bytes_read / 4);
    assert_memory_equal(part->per_sample, whole->per_sample, sizeof part->per_sample);
    assert_int_equal(part->setting[MDOT_SETTING_GROUPS], EXPERTS / 4);
    assert_int_equal(part->setting[MDOT_SETTING_SIZE_IN], 64);
    assert_ptr_equal(rt_sharded_operator(job, &job->analysis->sharding, 0, &share, &storage), &job->operators[0]);
    mdot_job_destroy(job);
}

static double exchange_ms(const mdot_job *job, mdot_configuration c)
{
    rt_resolved_configuration resolved = accept(job, c);
    return rt_communication_ms(job, &resolved, 1e9);
}

/* The time for one direction if all tokens take `ms` at the link rate. Each exchange also takes time until four GPUs
 * have started and until the link is filled. */
static double way_ms(double ms)
{
    const double exchanges = 2 * LAYERS;
    return ms + exchanges * (0.013 + 0.14 * sqrt(ms / exchanges));
}

/* The link has 1 GB/s. In every case a step waits for a tenth of the gradients' all-reduce. Between two nodes of two
 * GPUs, the tokens of the GPUs go through one port, and sums go through two. */
static void tokens_are_exchanged_in_both_directions(void **state)
{
    (void)state;
    mdot_job *job = mixture("TopK");
    const double gradients = 0.1 * 2 * 4 * LAYERS * DENSE * 3 / 4 / 1e6;
    double tokens = 8.0 * LAYERS * 2 * TOKEN_BYTES * 3 / 4 / 1e6; /* ms of one direction */
    double four = exchange_ms(job, (mdot_configuration){.expert_parallel = 4, .link_gbps = 1});
    assert_float_equal(four, 2 * way_ms(tokens) + gradients, 1e-9);
    double again = exchange_ms(
        job, (mdot_configuration){.expert_parallel = 4, .link_gbps = 1, .recompute = MDOT_RECOMPUTE_BLOCKS});
    assert_float_equal(again, 3 * way_ms(tokens) + gradients, 1e-9);
    double half =
        exchange_ms(job, (mdot_configuration){.expert_parallel = 4, .link_gbps = 1, .precision = MDOT_PRECISION_AMP});
    assert_float_equal(half, 2 * way_ms(tokens / 2) + gradients, 1e-9);
    double spread = exchange_ms(
        job, (mdot_configuration){.expert_parallel = 4, .link_gbps = 1, .network_gbps = 0.5, .node_count = 2});
    assert_float_equal(spread, 2 * way_ms(2 * tokens) + gradients, 1e-9);
    double copies = exchange_ms(job, (mdot_configuration){.expert_parallel = 4, .data_parallel = 2, .link_gbps = 1});
    double summed = 0.1 * 2 * 4 * LAYERS * (DENSE * 7.0 / 8 + OF_EXPERTS / 4.0 / 2) / 1e6;
    assert_float_equal(copies, 2 * way_ms(tokens) + summed, 1e-9);
    /* Each copy is a node. Sums of experts have one port of .5 GB/s for each, and other sums four for all. */
    double nodes = exchange_ms(
        job, (mdot_configuration){
                 .expert_parallel = 4, .data_parallel = 2, .node_count = 2, .link_gbps = 1, .network_gbps = 0.5});
    summed = 0.1 * 2 * 4 * LAYERS * (DENSE * 7.0 / 8 + OF_EXPERTS / 4.0 / 2 / 0.5) / 1e6;
    assert_float_equal(nodes, 2 * way_ms(tokens) + summed, 1e-9);
    /* Each of two stages is a node. Micro-batches of four samples take three micro-steps, and a stage has half of the
     * experts. */
    double stages = exchange_ms(job, (mdot_configuration){.expert_parallel = 4,
                                                          .pipeline_parallel = 2,
                                                          .micro_batches = 2,
                                                          .node_count = 2,
                                                          .link_gbps = 1,
                                                          .network_gbps = 0.5});
    double borders = 3 * 2 * 4 * job->analysis->sharding.border_bytes / 0.5 / 1e6;
    assert_compare(borders, >, 0);
    assert_float_equal(stages, 3 * 2 * way_ms(tokens / 2) / 2 + borders + gradients / 2, 1e-9);
    mdot_job_destroy(job);
}

/* Gradients are summed in fp32 and weights gathered in half precision. The backward pass takes no time here. */
static void zero_stages_exchange_sums_and_gathered_weights(void **state)
{
    (void)state;
    mdot_job *job = mixture("TopK");
    static const struct {
        mdot_configuration c;
        double bytes; /* of a parameter */
    } cases[] = {{{.zero_stage = 0}, 4 + 4},
                 {{.zero_stage = 1}, 4 + 2},
                 {{.zero_stage = 2}, 4 + 2},
                 {{.zero_stage = 3}, 4 + 2 * 2},
                 {{.zero_stage = 3, .keep_gathered = 1}, 4 + 2},
                 {{.zero_stage = 3, .accumulate = 4}, 4 * (4 + 2 * 2)},
                 {{.zero_stage = 2, .accumulate = 4}, 4 + 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mdot_configuration c = cases[i].c;
        c.gpu_count = 8;
        c.link_gbps = 1;
        c.precision = MDOT_PRECISION_MIXED_BF16;
        c.reduce_type = MDOT_NUMBER_FP32;
        rt_resolved_configuration resolved = accept(job, c);
        double ms = rt_communication_ms(job, &resolved, 0);
        assert_float_equal(ms, cases[i].bytes * LAYERS * (DENSE + OF_EXPERTS) * 7 / 8 / 1e6, 1e-9);
    }
    mdot_job_destroy(job);
}

static void expert_parallelism_without_experts_is_refused(void **state)
{
    (void)state;
    mdot_job *with = mixture("TopK"), *without = mixture("Relu");
    mdot_error err = {0};
    rt_resolved_configuration resolved;
    assert_int_equal(resolve(without, (mdot_configuration){.expert_parallel = 2}, &resolved, &err),
                     MDOT_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "the job lacks experts"));
    assert_int_equal(resolve(with, (mdot_configuration){.expert_parallel = 3}, &resolved, &err), MDOT_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "--parallel ep is 3; it must divide the 8 experts"));
    assert_int_equal(resolve(with, (mdot_configuration){.expert_parallel = 16}, &resolved, &err),
                     MDOT_INVALID_ARGUMENT);
    assert_int_equal(resolve(with, (mdot_configuration){.expert_parallel = 4, .gpu_count = 6}, &resolved, &err),
                     MDOT_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "--parallel ep=4 multiply to 4 GPUs, but --gpus is 6"));
    mdot_job_destroy(with);
    mdot_job_destroy(without);
}

/* Experts with a gate: the last matmul's operand is a product whose second factor alone is an expert's result. */
static void experts_reach_the_next_matmul_through_any_operand(void **state)
{
    (void)state;
    for (int order = 0; order < 2; order++) {
        network n;
        make_mixture(&n, "TopK");
        for (int at = 0; at < LAYERS * EACH; at += EACH) {
            put(&n, (size_t)at + (order == 0 ? UP : GATE), "Sigmoid", n.operators[at].block, 0, at + DEALT, -1);
        }
        mdot_job *job = predict_make_job(n.operators, LAYERS * EACH);
        const rt_experts *experts = &job->analysis->sharding.experts;
        assert_int_equal(experts->exchange_count, LAYERS * 2);
        assert_compare(experts->exchanged_bytes, ==, LAYERS * 2 * TOKEN_BYTES);
        mdot_job_destroy(job);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(experts_follow_a_router),
        cmocka_unit_test(scaled_results_of_experts_are_exchanged_once),
        cmocka_unit_test(stacked_matrices_without_a_router_are_not_experts),
        cmocka_unit_test(convolutions_are_not_experts),
        cmocka_unit_test(the_largest_block_has_its_experts),
        cmocka_unit_test(matmuls_of_several_matrices_behind_a_router_are_experts),
        cmocka_unit_test(operands_are_sent_and_results_collected),
        cmocka_unit_test(biases_belong_to_the_matrices_of_experts),
        cmocka_unit_test(operators_without_channels_are_not_experts),
        cmocka_unit_test(zero_stages_exchange_sums_and_gathered_weights),
        cmocka_unit_test(a_gpu_holds_its_experts_and_all_other_parameters),
        cmocka_unit_test(expert_parallelism_divides_matrices_and_keeps_flops),
        cmocka_unit_test(tokens_are_exchanged_in_both_directions),
        cmocka_unit_test(expert_parallelism_without_experts_is_refused),
        cmocka_unit_test(experts_reach_the_next_matmul_through_any_operand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
