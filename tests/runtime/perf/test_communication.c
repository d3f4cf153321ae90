/* test_communication.c — the time of each exchange kind, compared with values made by hand. The link has 1 GB/s: 1e6
 * bytes per ms. */
#include "runtime/job/job_model.h"
#include "runtime/perf/analysis.h"
#include "runtime/perf/resolved_configuration.h"
#include "runtime/perf/step_time.h"
#include "tests/support/assertions.h"
#include "tests/support/predict_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { BYTES = 4000, MATMULS = 4 };

static mdot_job_operator make(const char *type, uint32_t block, int64_t channels)
{
    mdot_job_operator op = {.struct_size = sizeof op, .type = type, .known = true, .block = block};
    op.parameters = (double)(channels * channels);
    op.per_sample[MDOT_PHASE_FORWARD] = (mdot_load){0, BYTES, BYTES};
    op.setting[MDOT_SETTING_CHANNELS_IN] = op.setting[MDOT_SETTING_CHANNELS_OUT] = channels;
    op.setting[MDOT_SETTING_INPUTS] = 1;
    return op;
}

/* A chain of 64 x 64 matmuls, one per block. Tensor parallelism shards columns of the first and third, and rows of the
 * second and fourth. */
static mdot_job *chain(size_t count)
{
    static const uint32_t before[MATMULS] = {0, 0, 1, 2};
    mdot_job_operator operators[MATMULS];
    for (size_t i = 0; i < count; i++) {
        operators[i] = make("Linear", (uint32_t)i + 1, 64);
        operators[i].inputs = i > 0 ? &before[i] : NULL;
        operators[i].input_count = i > 0;
    }
    return predict_make_job(operators, count);
}

static rt_resolved_configuration resolve(const mdot_job *job, mdot_configuration c)
{
    rt_configuration configuration = {.c = c};
    configuration.c.batch = 8;
    configuration.c.link_gbps = 1;
    configuration.gpu.pcie_gbps = 31.5;
    configuration.gpu.memory_gbps = configuration.gpu.fp32_tflops = configuration.gpu.tf32_tflops =
        configuration.gpu.fp16_tflops = 100;
    mdot_error err = {0};
    if (rt_configuration_complete(&configuration, &err) != MDOT_OK) fail_msg("%s", err.message);
    if (rt_configuration_check(&configuration, job, &err) != MDOT_OK) fail_msg("%s", err.message);
    rt_resolved_configuration resolved;
    rt_resolve(job, &configuration, &resolved);
    return resolved;
}

static double exchange_ms(const mdot_job *job, mdot_configuration c)
{
    rt_resolved_configuration resolved = resolve(job, c);
    return rt_communication_ms(job, &resolved, 0);
}

static double started_ms(double gpus, double count, double ms)
{
    return ms + count * (0.005 + 0.002 * gpus + 0.14 * sqrt(ms / count));
}

/* Two matmuls have one sum, for the second result. Four also sum the gradient of the third operand. */
static void tensor_parallelism_waits_for_its_sums(void **state)
{
    (void)state;
    mdot_job *one = chain(2), *three = chain(4);
    const double pass = 8.0 * BYTES / 1e6; /* ms for one tensor's bytes */
    assert_float_equal(exchange_ms(one, (mdot_configuration){.tensor_parallel = 2}), started_ms(2, 1, pass), 1e-9);
    assert_float_equal(exchange_ms(one, (mdot_configuration){.tensor_parallel = 16}),
                       started_ms(8, 1, 2 * 15 / 16.0 * pass), 1e-9);
    assert_float_equal(exchange_ms(one, (mdot_configuration){.tensor_parallel = 1}), 0, 0);
    assert_float_equal(exchange_ms(three, (mdot_configuration){.tensor_parallel = 2}), started_ms(2, 3, 3 * pass),
                       1e-9);
    assert_float_equal(exchange_ms(three, (mdot_configuration){.tensor_parallel = 2, .precision = MDOT_PRECISION_BF16}),
                       started_ms(2, 3, 1.5 * pass), 1e-9);
    assert_float_equal(exchange_ms(three, (mdot_configuration){.tensor_parallel = 2, .accumulate = 3}),
                       3 * started_ms(2, 3, 3 * pass), 1e-9);
    mdot_configuration again = {.tensor_parallel = 2, .recompute = MDOT_RECOMPUTE_BLOCKS};
    assert_float_equal(exchange_ms(three, again), started_ms(2, 4.5, 5 * pass), 1e-9);
    mdot_job_destroy(one);
    mdot_job_destroy(three);
}

/* Attention alone has no sums, although its heads are sharded. */
static void sharded_heads_without_sums_wait_for_nothing(void **state)
{
    (void)state;
    static const uint32_t before = 0;
    mdot_job_operator operators[2] = {make("Linear", 0, 64), make("Attention", 0, 0)};
    operators[1].setting[MDOT_SETTING_HEADS] = 4;
    operators[1].setting[MDOT_SETTING_HEAD_SIZE] = 16;
    operators[1].inputs = &before;
    operators[1].input_count = 1;
    mdot_job *job = predict_make_job(operators, 2);
    assert_int_equal(job->analysis->sharding.common, 4);
    assert_compare(exchange_ms(job, (mdot_configuration){.tensor_parallel = 2}), ==, 0);
    mdot_job_destroy(job);
}

/* A ring between two nodes of two GPUs has two ports. A group of neighbours within a node uses the link. */
static void sums_between_nodes_use_all_ports(void **state)
{
    (void)state;
    mdot_job *job = chain(2);
    const double pass = 8.0 * BYTES / 1e6;
    mdot_configuration c = {.gpu_count = 4, .node_count = 2, .tensor_parallel = 4, .network_gbps = 0.25};
    assert_float_equal(exchange_ms(job, c), started_ms(4, 1, 2 * 3 / 4.0 * pass / 0.5), 1e-9);
    c.network_gbps = 4;
    assert_float_equal(exchange_ms(job, c), started_ms(4, 1, 2 * 3 / 4.0 * pass), 1e-9);
    /* Gradients: a shard's two copies are two GPUs apart, so each has one port. */
    c.tensor_parallel = 2;
    c.network_gbps = 0.25;
    double gradients = 4.0 * (64 * 64 + 64 * 64) / 2 / 1e6;
    double sums = started_ms(2, 1, pass);
    assert_float_equal(exchange_ms(job, c) - sums, gradients / 0.25, 1e-9);
    /* Shards over two nodes each: their copies are four GPUs apart, and have a port, too. */
    c.gpu_count = 8;
    c.node_count = c.tensor_parallel = 4;
    sums = started_ms(4, 1, 2 * 3 / 4.0 * pass / 0.5);
    assert_float_equal(exchange_ms(job, c) - sums, gradients / 2 / 0.25, 1e-9);
    mdot_job_destroy(job);
}

/* Two stages of two blocks exchange a result and its gradient for each micro-batch, and wait for one more. A virtual
 * stage adds a border and halves the waiting; a zero-bubble schedule waits a third. */
static void stages_exchange_results_and_gradients(void **state)
{
    (void)state;
    mdot_job *job = chain(4);
    const double border = 2 * 2.0 * BYTES / 1e6; /* of two samples */
    mdot_configuration c = {.pipeline_parallel = 2, .micro_batches = 4};
    assert_float_equal(exchange_ms(job, c), 5 * border, 1e-9);
    c.virtual_stages = 2;
    assert_float_equal(exchange_ms(job, c), 4.5 * 2 * 0.1 * border, 1e-9); /* the other part computes meanwhile */
    c.virtual_stages = 1;
    c.schedule = MDOT_SCHEDULE_ZERO_BUBBLE;
    assert_float_equal(exchange_ms(job, c), (4 + 1 / 3.0) * border, 1e-9);
    c.schedule = (mdot_configuration){0}.schedule;
    c.precision = MDOT_PRECISION_BF16;
    assert_float_equal(exchange_ms(job, c), 5 * border / 2, 1e-9);
    c.node_count = 2;
    c.gpu_count = 2;
    c.network_gbps = 0.5;
    assert_float_equal(exchange_ms(job, c), 5 * border, 1e-9);
    mdot_job_destroy(job);
}

/* Four GPUs pass 8000 bytes of keys and values of each sample around, forward, and twice as many backward. Attention
 * hides all but a tenth if it takes long. All GPUs also sum gradients. */
static void context_parallelism_passes_keys_and_values(void **state)
{
    (void)state;
    for (int is_slow = 0; is_slow < 2; is_slow++) {
        for (int again = 0; again < 2; again++) {
            static const uint32_t before = 0;
            mdot_job_operator operators[2] = {make("Linear", 1, 64), make("Attention", 1, 0)};
            operators[1].setting[MDOT_SETTING_HEADS] = 4;
            operators[1].setting[MDOT_SETTING_HEAD_SIZE] = 16;
            operators[1].inputs = &before;
            operators[1].input_count = 1;
            double flops = is_slow ? 1e15 : 1e6;
            operators[1].per_sample[MDOT_PHASE_FORWARD] = (mdot_load){flops, 3 * BYTES, BYTES};
            mdot_job *job = predict_make_job(operators, 2);
            mdot_configuration c = {.context_parallel = 4,
                                    .recompute = again ? MDOT_RECOMPUTE_BLOCKS : MDOT_RECOMPUTE_NOTHING};
            rt_resolved_configuration r = resolve(job, c);
            double passes = 3 + again, gradients = 2 * 3 / 4.0 * 4 * 64 * 64 / 1e6;
            double ring = started_ms(4, passes * 3, 3 / 4.0 * passes * 8 * 2 * BYTES / 1e6);
            double hidden = (1 + again + 2.5) * 8 * flops / 4 * r.rates.ms_per_flop[RT_RATE_MATMUL];
            double waited = is_slow ? ring / 10 : ring - hidden;
            assert_compare(hidden, >, 0);
            assert_true(is_slow ? hidden > ring : hidden < ring / 2);
            assert_float_equal(rt_communication_ms(job, &r, 0), gradients + waited, 1e-9);
            mdot_job_destroy(job);
        }
    }
}

/* The backward pass hides nine tenths of the gradient sum. */
static void gradients_are_summed_beside_the_backward_pass(void **state)
{
    (void)state;
    mdot_job *job = chain(2);
    rt_resolved_configuration r = resolve(job, (mdot_configuration){.gpu_count = 4});
    double ms = 2 * 3 / 4.0 * 4 * 2 * 64 * 64 / 1e6;
    assert_float_equal(rt_communication_ms(job, &r, 0), ms, 1e-9);
    assert_float_equal(rt_communication_ms(job, &r, ms / 2), ms / 2, 1e-9);
    assert_float_equal(rt_communication_ms(job, &r, 1e9), ms / 10, 1e-9);
    mdot_job_destroy(job);
}

/* The published form of parameter servers: the slower of the servers' links and a worker's own, by hand. More servers
 * never slow a step, until a worker's link binds, and a worker that waits for no other is never slower. */
static void parameter_servers_share_the_traffic(void **state)
{
    (void)state;
    mdot_job *job = chain(2);
    const double bytes = 4 * 2 * 64 * 64, link = 0.5 * 1e6; /* of 0.5 GB/s, in a ms */
    for (int workers = 2; workers <= 16; workers *= 2) {
        double previous = INFINITY;
        for (uint32_t servers = 1; servers <= 32; servers++) {
            mdot_configuration c = {.gpu_count = workers, .servers = servers, .network_gbps = 0.5};
            double each = fmax((double)workers / servers, 1), whole = 2 * each * bytes / link, alone = 2 * bytes / link;
            rt_resolved_configuration bsp = resolve(job, c);
            c.sync = MDOT_SYNC_ASP;
            rt_resolved_configuration asp = resolve(job, c);
            const double backward[] = {0, 0.3 * alone, 0.5 * whole, 2 * whole};
            for (int k = 0; k < 4; k++) {
                double wait = fmax(whole / 10, whole - backward[k]);
                double of_all = (double)workers / servers * bytes / link - backward[k];
                double found = rt_communication_ms(job, &asp, backward[k]);
                assert_float_equal(rt_communication_ms(job, &bsp, backward[k]), wait, 1e-9);
                assert_float_equal(found, fmax(fmax(alone / 10, alone - backward[k]), of_all), 1e-9);
                assert_compare(found, <=, wait + 1e-12);
            }
            double now = rt_communication_ms(job, &bsp, 0) + rt_host_memory_ms(job, &bsp, 1, 1);
            assert_compare(now, <, previous);
            if ((int)servers > workers) assert_float_equal(rt_communication_ms(job, &bsp, 0), alone, 1e-9);
            assert_compare(rt_host_memory_ms(job, &asp, 1, 1), <, rt_host_memory_ms(job, &bsp, 1, 1));
            previous = now;
        }
    }
    mdot_job_destroy(job);
}

/* Stage 3 gathers quantised weights as they are stored. Other stages gather none. */
static void quantised_weights_are_gathered_as_stored(void **state)
{
    (void)state;
    static const mdot_frozen types[] = {MDOT_FROZEN_INT8, MDOT_FROZEN_NF4, MDOT_FROZEN_NF4_SINGLE};
    static const double stored[] = {1 + 4 / 1024.0, .5 + 1 / 64.0 + 4 / (64 * 256.0), .5 + 4 / 64.0};
    static const uint32_t before = 0;
    mdot_job_operator operators[2] = {make("Linear", 1, 64), make("Linear", 2, 64)};
    operators[1].inputs = &before;
    operators[1].input_count = 1;
    operators[0].frozen_parameters = operators[1].frozen_parameters = 5000;
    mdot_job *job = predict_make_job(operators, 2);
    for (int type = 0; type < 3; type++)
        for (uint32_t workers = 2; workers <= 8; workers *= 2)
            for (int bits = 0; bits < 32; bits++) {
                mdot_configuration c = {.gpu_count = workers,
                                        .zero_stage = (bits & 1) != 0 ? 3 : 1,
                                        .keep_gathered = (bits & 2) != 0,
                                        .accumulate = (bits & 4) != 0 ? 3 : 1,
                                        .whole_gradients = (bits & 4) != 0 && (bits & 8) != 0,
                                        .precision = (bits & 16) != 0 ? MDOT_PRECISION_BF16 : MDOT_PRECISION_FP32};
                double unchanged = exchange_ms(job, c);
                c.frozen_weights = types[type];
                double gathers = c.zero_stage == 3 ? (double)c.accumulate * (c.keep_gathered != 0 ? 1 : 2) : 0;
                double saved = ((bits & 16) != 0 ? 2 : 4) - stored[type];
                double less = gathers * (workers - 1) / workers * saved * 10000 / 1e6;
                assert_compare(fabs(unchanged - exchange_ms(job, c) - less), <, 1e-9);
            }
    mdot_job_destroy(job);
}

/* ZeRO 1 and 2 scatter gradients and gather weights. Stage 3 gathers weights, frozen ones too, forward and backward in
 * each pass, but only forward if it keeps them, and scatters gradients. Four workers exchange three quarters. */
static void zero_stages_exchange_gradients_and_weights(void **state)
{
    (void)state;
    mdot_job_operator operators[2] = {make("Linear", 1, 64), make("Linear", 2, 64)};
    static const uint32_t before = 0;
    operators[1].inputs = &before;
    operators[1].input_count = 1;
    operators[1].frozen_parameters = 1000;
    mdot_job *job = predict_make_job(operators, 2);
    const double trained = 2 * 64 * 64, all = trained + 1000;
    const struct {
        mdot_configuration c;
        double bytes;
    } cases[] = {
        {{.zero_stage = 0}, 2 * 4 * trained},
        {{.zero_stage = 1}, 2 * 4 * trained},
        {{.zero_stage = 2}, 2 * 4 * trained},
        {{.zero_stage = 3}, 2 * 4 * all + 4 * trained},
        {{.zero_stage = 3, .keep_gathered = 1}, 4 * all + 4 * trained},
        {{.zero_stage = 3, .accumulate = 3}, 3 * (2 * 4 * all + 4 * trained)},
        {{.zero_stage = 3, .accumulate = 3, .whole_gradients = 1}, 3 * 2 * 4 * all + 4 * trained},
        {{.zero_stage = 3, .accumulate = 3, .whole_gradients = 1, .keep_gathered = 1}, 3 * 4 * all + 4 * trained},
        {{.zero_stage = 2, .accumulate = 3}, 2 * 4 * trained},
        {{.zero_stage = 1, .precision = MDOT_PRECISION_MIXED_BF16}, (2 + 2) * trained},
        {{.zero_stage = 1, .precision = MDOT_PRECISION_MIXED_BF16, .gradient_type = MDOT_NUMBER_FP32},
         (4 + 2) * trained},
        {{.zero_stage = 2, .precision = MDOT_PRECISION_MIXED_BF16, .gradient_type = MDOT_NUMBER_FP32},
         (4 + 2) * trained},
        {{.zero_stage = 3, .precision = MDOT_PRECISION_MIXED_BF16, .reduce_type = MDOT_NUMBER_FP32},
         2 * 2 * all + 4 * trained},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mdot_configuration c = cases[i].c;
        c.gpu_count = 4;
        double got = exchange_ms(job, c), want = 3 / 4.0 * cases[i].bytes / 1e6;
        if (fabs(got - want) > 1e-9) fail_msg("case %zu: %g, not %g", i, got, want);
    }
    mdot_job_destroy(job);
}

/* Law over many configurations: each trained tensor of a mostly frozen network costs four launches for each of its
 * exchanges at stage 3, and nothing elsewhere. What passes hide of the other gathers falls with their number. */
static void adapters_are_gathered_alone(void **state)
{
    (void)state;
    static const mdot_framework frameworks[] = {MDOT_FRAMEWORK_PYTORCH, MDOT_FRAMEWORK_HF_TRAINER,
                                                MDOT_FRAMEWORK_LIGER};
    enum { FROZEN = 4 };
    for (int adapters = 0; adapters <= FROZEN; adapters++) {
        mdot_job_operator operators[3 * FROZEN];
        size_t count = 0;
        for (int i = 0; i < FROZEN; i++) {
            operators[count] = make("Linear", (uint32_t)i + 1, 64);
            operators[count].frozen_parameters = operators[count].parameters;
            operators[count++].parameters = 0;
            for (int factor = 0; factor < 2 && i < adapters; factor++) {
                operators[count] = make("Linear", (uint32_t)i + 1, 4);
                operators[count++].parameters = 4;
            }
        }
        mdot_job *job = predict_make_job(operators, count);
        for (int bits = 0; bits < 512; bits++) {
            mdot_configuration c = {.gpu_count = 4,
                                    .framework = frameworks[bits % 3],
                                    .zero_stage = (bits & 4) != 0 ? 3 : 2,
                                    .accumulate = (bits & 8) != 0 ? 3 : 1,
                                    .keep_gathered = (bits & 16) != 0,
                                    .whole_gradients = (bits & 32) != 0 && (bits & 8) != 0,
                                    .recompute = (bits & 64) != 0 ? MDOT_RECOMPUTE_BLOCKS : MDOT_RECOMPUTE_NOTHING,
                                    .frozen_weights = (bits & 128) != 0 ? MDOT_FROZEN_NF4 : MDOT_FROZEN_UNCHANGED,
                                    .torch = (bits & 256) != 0 ? 204 : 208,
                                    .host_launch_us = 10};
            double slow_ms = 0, fast_ms = exchange_ms(job, c), passes = c.accumulate;
            c.host_launch_us = 1010;
            slow_ms = exchange_ms(job, c);
            bool again = c.framework != MDOT_FRAMEWORK_PYTORCH && c.torch == 204 && c.recompute != 0;
            bool whole = c.zero_stage < 3 || (c.framework == MDOT_FRAMEWORK_LIGER && c.frozen_weights != 0);
            double exchanges = passes * (c.keep_gathered != 0 ? 1
                                         : again              ? 3
                                                              : 2) +
                               (c.whole_gradients != 0 ? 1 : passes);
            double want = whole ? 0 : 2 * adapters * exchanges * 4;
            if (fabs(slow_ms - fast_ms - want) > 1e-9)
                fail_msg("%d adapters, bits %d: %g, not %g", adapters, bits, slow_ms - fast_ms, want);
        }
        mdot_configuration gathers = {.gpu_count = 4, .zero_stage = 3, .host_launch_us = 1e-9};
        rt_resolved_configuration r = resolve(job, gathers);
        double alone = rt_communication_ms(job, &r, 0), backward = .5 * alone;
        double left = alone - backward * (FROZEN - adapters) / FROZEN;
        assert_float_equal(rt_communication_ms(job, &r, backward), left, 1e-6);
        gathers.framework = MDOT_FRAMEWORK_HF_TRAINER;
        gathers.torch = 204;
        gathers.recompute = MDOT_RECOMPUTE_BLOCKS;
        rt_resolved_configuration again = resolve(job, gathers);
        double hidden = rt_communication_ms(job, &again, 0) - rt_communication_ms(job, &again, 1e9);
        assert_float_equal(hidden, 0, 0);
        mdot_job_destroy(job);
    }
}

/* A stage in two has half of the sums. Micro-batches have two samples, and the step waits for five. */
static void a_stage_sums_its_own_tensors(void **state)
{
    (void)state;
    mdot_job *job = chain(4);
    mdot_configuration c = {.tensor_parallel = 2, .pipeline_parallel = 2, .micro_batches = 4};
    const double pass = 2.0 * BYTES / 1e6;
    double sums = 5 * started_ms(2, 3, 3 * pass) / 2, borders = 5 * 2 * pass;
    assert_float_equal(exchange_ms(job, c), sums + borders, 1e-9);
    mdot_job_destroy(job);
}

/* Tensor parallelism divides heads, and therefore keys, values and FLOPs. Each of two passes has a ring. */
static void rings_of_sharded_heads_are_smaller(void **state)
{
    (void)state;
    static const uint32_t before = 0;
    mdot_job_operator operators[2] = {make("Linear", 1, 64), make("Attention", 1, 0)};
    operators[1].setting[MDOT_SETTING_HEADS] = 4;
    operators[1].setting[MDOT_SETTING_HEAD_SIZE] = 16;
    operators[1].inputs = &before;
    operators[1].input_count = 1;
    operators[1].per_sample[MDOT_PHASE_FORWARD] = (mdot_load){1e6, 3 * BYTES, BYTES};
    mdot_job *job = predict_make_job(operators, 2);
    mdot_configuration c = {.context_parallel = 4, .tensor_parallel = 2, .accumulate = 2};
    rt_resolved_configuration r = resolve(job, c);
    double samples = (double)r.configuration.micro_batch, gradients = 2 * 3 / 4.0 * 4 * 64 * 64 / 2 / 1e6;
    double ring = started_ms(4, 3 * 3, 3 / 4.0 * 3 * samples * 2 * BYTES / 2 / 1e6);
    double hidden = (1 + 2.5) * samples * 1e6 / (4 * 2) * r.rates.ms_per_flop[RT_RATE_MATMUL];
    assert_compare(hidden, >, 0);
    assert_compare(hidden, <, ring / 2);
    assert_float_equal(rt_communication_ms(job, &r, 0), gradients + 2 * (ring - hidden), 1e-9);
    mdot_job_destroy(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensor_parallelism_waits_for_its_sums),
        cmocka_unit_test(sharded_heads_without_sums_wait_for_nothing),
        cmocka_unit_test(sums_between_nodes_use_all_ports),
        cmocka_unit_test(stages_exchange_results_and_gradients),
        cmocka_unit_test(context_parallelism_passes_keys_and_values),
        cmocka_unit_test(gradients_are_summed_beside_the_backward_pass),
        cmocka_unit_test(parameter_servers_share_the_traffic),
        cmocka_unit_test(quantised_weights_are_gathered_as_stored),
        cmocka_unit_test(zero_stages_exchange_gradients_and_weights),
        cmocka_unit_test(adapters_are_gathered_alone),
        cmocka_unit_test(a_stage_sums_its_own_tensors),
        cmocka_unit_test(rings_of_sharded_heads_are_smaller),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
