/* test_beside.c — runtime/predict/beside.c with the shipped interference.mdot. The laws: no job gets faster, an idle
 * partner costs nothing, and the answer depends on the two loads alone. */
#include "mdot/mdot_beside.h"
#include "mdot/mdotjob.h"
#include "tests/support/assertions.h"
#include "tests/support/predict_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static mdot_predictor *predictor, *interference;
static mdot_context *jobs, *pairs;

static int set_up(void **state)
{
    (void)state;
    mdot_error err = {0};
    mdot_status status = mdot_predictor_open(MDOT_SHIPPED_PREDICTOR, NULL, &predictor, &err);
    if (status == MDOT_OK) status = mdot_context_create(predictor, &jobs, &err);
    if (status == MDOT_OK) status = mdot_predictor_open(MDOT_INTERFERENCE, NULL, &interference, &err);
    if (status == MDOT_OK) status = mdot_context_create(interference, &pairs, &err);
    if (status != MDOT_OK) print_error("%s\n", err.message);
    return status == MDOT_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    mdot_context_destroy(pairs);
    mdot_predictor_close(interference);
    mdot_context_destroy(jobs);
    mdot_predictor_close(predictor);
    return 0;
}

static uint64_t random_state = 50;

/* From least to most, evenly on a logarithmic scale. */
static double between(double least, double most)
{
    random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return least * pow(most / least, (double)(random_state >> 11) / 9007199254740992.0);
}

static mdot_gpu_load random_load(double tflops, double gbps)
{
    double step = between(.5, 5e3);
    return (mdot_gpu_load){.struct_size = sizeof(mdot_gpu_load),
                           .step_ms = step,
                           .gpu_busy_ms = step * between(.01, 1),
                           .host_busy_ms = step * between(.001, 1),
                           .operator_count = between(5, 2000),
                           .compute_share = between(.001, 1),
                           .memory_share = between(.001, 1),
                           .fp32_tflops = tflops,
                           .memory_gbps = gbps,
                           .peak_memory_bytes = (uint64_t)between(1e7, 8e10),
                           .reserved_bytes = (uint64_t)between(1e8, 8e10),
                           .usable_bytes = (uint64_t)8e10};
}

static mdot_beside beside(const mdot_gpu_load *own, const mdot_gpu_load *partner)
{
    mdot_beside answer = MDOT_INIT(mdot_beside);
    mdot_error err = {0};
    if (mdot_predict_beside(pairs, own, partner, &answer, &err) != MDOT_OK) fail_msg("%s", err.message);
    return answer;
}

static void no_job_gets_faster_and_the_interval_ascends(void **state)
{
    (void)state;
    for (int i = 0; i < 5000; i++) {
        double tflops = between(1, 200), gbps = between(100, 8000);
        mdot_gpu_load own = random_load(tflops, gbps), partner = random_load(tflops, gbps);
        mdot_beside a = beside(&own, &partner), again = beside(&own, &partner);
        assert_compare(a.lower_slowdown, >=, 1);
        assert_compare(a.slowdown, >=, a.lower_slowdown);
        assert_compare(a.upper_slowdown, >=, a.slowdown);
        assert_true(a.step_ms == own.step_ms * a.slowdown);
        assert_true(a.reserved_bytes == (double)own.reserved_bytes + (double)partner.reserved_bytes);
        assert_int_equal(a.fits, a.reserved_bytes <= (double)own.usable_bytes);
        assert_true(again.slowdown == a.slowdown);
    }
}

static void an_idle_partner_costs_nothing(void **state)
{
    (void)state;
    for (int i = 0; i < 1000; i++) {
        mdot_gpu_load own = random_load(15.7, 900), partner = random_load(15.7, 900);
        partner.gpu_busy_ms = partner.host_busy_ms = 0;
        mdot_beside idle = beside(&own, &partner);
        assert_true(idle.slowdown == 1 && idle.upper_slowdown == 1);
        partner.host_busy_ms = 1e-3 * partner.step_ms; /* busy for a thousandth of the step */
        assert_compare(beside(&own, &partner).slowdown, <=, 1.02);
    }
}

/* A measured step may be shorter than the predicted times of GPU and host, which then are busy all the time, and shares
 * may exceed 1. */
static void no_part_of_a_step_is_longer_than_the_step(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++) {
        mdot_gpu_load own = random_load(14, 900), partner = random_load(14, 900);
        own.step_ms = fmin(own.gpu_busy_ms, own.host_busy_ms) / between(1, 20);
        mdot_gpu_load busy = own;
        busy.operator_count = own.operator_count * own.step_ms / own.gpu_busy_ms; /* keeps the time of an operator */
        busy.gpu_busy_ms = busy.host_busy_ms = own.step_ms;
        own.compute_share = own.memory_share = between(1, 9);
        busy.compute_share = busy.memory_share = 1;
        if (busy.operator_count < 1) continue;
        assert_within(beside(&own, &partner).slowdown, beside(&busy, &partner).slowdown, 1e-4);
        assert_within(beside(&partner, &own).slowdown, beside(&partner, &busy).slowdown, 1e-4);
    }
}

/* The model returns to one prior far from all measured pairs, and is least certain there. */
static void unfamiliar_loads_get_wide_intervals(void **state)
{
    (void)state;
    mdot_gpu_load own = random_load(15.7, 900), partner = random_load(15.7, 900);
    own.step_ms = partner.step_ms = 1e7;
    own.gpu_busy_ms = partner.gpu_busy_ms = 1e7;
    mdot_beside far = beside(&own, &partner), other = beside(&partner, &own);
    assert_compare(fabs(far.slowdown - other.slowdown), <=, 1e-3);
    assert_compare(far.upper_slowdown / far.lower_slowdown, >=, 2);
    assert_int_equal(far.extrapolated, 0);
    own.fp32_tflops = partner.fp32_tflops = 67; /* of an unfamiliar GPU */
    far = beside(&own, &partner);
    assert_int_equal(far.extrapolated, 1);
    assert_compare(far.upper_slowdown / far.lower_slowdown, >=, 2);
}

/* Time slicing on GPU models unlike the measured ones: equal jobs are at most twice as slow. On every GPU model, no
 * answer exceeds twice the greatest measured slowdown. */
enum { JOB_STRIDE = 17, GPU_STRIDE = 7 };
static const double SLICED_PAIR = 5.1, MEASURED_PAIR = 22; /* 1 + .02^-.357, and 2 x 10.98 */

static void bound_slowdowns(const mdot_job *job, const char *name, const mdot_job *other, size_t *judged)
{
    mdot_error err = {0};
    const char *const *gpus = mdot_gpu_names();
    for (size_t i = 0; gpus[i] != NULL; i++) {
        mdot_gpu_load own = MDOT_INIT(mdot_gpu_load), partner = own;
        if ((i + (size_t)name[0]) % GPU_STRIDE != 0) continue;
        mdot_configuration c = {.struct_size = sizeof c, .batch = 4, .gpu = gpus[i]};
        if (mdot_gpu_load_of(jobs, job, &c, &own, &err) != MDOT_OK) continue; /* for example no fixed batch of 4 */
        assert_int_equal(mdot_gpu_load_of(jobs, other, &c, &partner, &err), MDOT_OK);
        mdot_beside with_itself = beside(&own, &own);
        bool is_like = with_itself.extrapolated == 0;
        double equal = with_itself.slowdown, first = beside(&own, &partner).slowdown,
               second = beside(&partner, &own).slowdown;
        if (equal > (is_like ? MEASURED_PAIR : 2.01) || fmax(first, second) > (is_like ? MEASURED_PAIR : SLICED_PAIR))
            fail_msg("%s on %s: beside itself %.2f, beside ResNet-50 %.2f, ResNet-50 %.2f", name, gpus[i], equal, first,
                     second);
        *judged += 1;
    }
}

typedef struct bounded {
    mdot_job *other;
    size_t seen, judged;
} bounded;

static void bound_ready_job(void *user, const mdot_ready_job *ready)
{
    bounded *b = user;
    mdot_error err = {0};
    mdot_job *job = NULL;
    if (b->seen++ % JOB_STRIDE != 0) return;
    if (mdot_job_read(ready->name, NULL, &job, &err) != MDOT_OK) fail_msg("%s", err.message);
    bound_slowdowns(job, ready->name, b->other, &b->judged);
    mdot_job_destroy(job);
}

static void slowdowns_of_ready_jobs_are_bounded_on_every_gpu(void **state)
{
    (void)state;
    mdot_error err = {0};
    bounded b = {0};
    assert_int_equal(setenv("MDOT_JOBS", MDOT_SOURCE_DIR "/weights/jobs", 1), 0);
    if (mdot_job_read(MDOT_SOURCE_DIR "/examples/jobs/resnet50.onnx", NULL, &b.other, &err) != MDOT_OK)
        fail_msg("%s", err.message);
    bound_slowdowns(b.other, "resnet50.onnx", b.other, &b.judged);
    assert_int_equal(mdot_ready_jobs(bound_ready_job, &b, &err), MDOT_OK);
    assert_compare((double)b.judged, >=, 100);
    mdot_job_destroy(b.other);
}

static void loads_are_those_of_explanation_and_prediction(void **state)
{
    (void)state;
    mdot_error err = {0};
    mdot_job *job = NULL;
    mdot_explanation *explanation = NULL;
    mdot_explanation_info info = MDOT_INIT(mdot_explanation_info);
    mdot_prediction p = MDOT_INIT(mdot_prediction);
    mdot_gpu_load load = MDOT_INIT(mdot_gpu_load);
    mdot_configuration c = {.struct_size = sizeof c, .batch = 16, .gpu = "V100-SXM-16GB"};
    if (mdot_job_read(MDOT_SOURCE_DIR "/examples/jobs/resnet50.onnx", NULL, &job, &err) != MDOT_OK)
        fail_msg("%s", err.message);
    if (mdot_gpu_load_of(jobs, job, &c, &load, &err) != MDOT_OK) fail_msg("%s", err.message);
    assert_int_equal(mdot_explain(jobs, job, &c, &explanation, &err), MDOT_OK);
    assert_int_equal(mdot_explanation_get_info(explanation, &info), MDOT_OK);
    assert_int_equal(mdot_predict(jobs, job, &c, &p, &err), MDOT_OK);
    assert_true(load.step_ms == p.step_ms && load.gpu_busy_ms == fmin(info.gpu_busy_ms, p.step_ms));
    assert_true(load.host_busy_ms == info.host_busy_ms && load.operator_count == (double)info.operator_count);
    assert_true(load.compute_share == p.compute_share && load.memory_share == p.memory_share);
    assert_true(load.fp32_tflops == 15.7 && load.memory_gbps == 900);
    assert_int_equal(load.reserved_bytes, p.reserved_bytes);
    mdot_beside twice = beside(&load, &load); /* two ResNet-50 share a V100: measured 2.94 to 3.5 at batch 16 */
    assert_compare(twice.slowdown, >=, 2);
    assert_compare(twice.slowdown, <=, 4);
    mdot_explanation_destroy(explanation);
    mdot_job_destroy(job);
}

/* Slowdowns by ONNX Runtime 1.32 from weights/interference.onnx, for measured pairs: ResNet-18 (CIFAR-10, batch 16) and
 * ResNet-50 (32) on K80, Transformer (128 and 64) on P100, LM (10 and 5) on V100. */
static void the_answers_are_those_of_onnx_runtime(void **state)
{
    (void)state;
    static const struct {
        double load[2][9], slowdowns[2][3];
    } golden[] = {{{{19.758577, .979837784, .403337514, .618663553, .281034193, .528884125, .185089041, 4.37, 240},
                    {378.757109, .999993203, 3.10454545, .473204456, .346621958, .0722098699, 2.78242862, 4.37, 240}},
                   {{1.386119, 2.098066, 3.175685}, {1.397086, 1.990995, 2.837377}}},
                  {{{163.753183, .998299094, .477996069, .675996711, .190368722, .287017250, 2.54545096, 9.3, 732},
                    {89.4548788, .980379165, .256431870, .618728768, .190856151, .525404503, 1.45532182, 9.3, 732}},
                   {{1.44683, 2.047811, 2.898428}, {1.38415, 1.872752, 2.533828}}},
                  {{{7.95842112, .999792937, .994596653, .124338147, .151041507, .169631655, .235492952, 15.7, 900},
                    {6.86208405, .999625290, .857439094, .0721016626, .133092597, .196733239, .169854641, 15.7, 900}},
                   {{1.254187, 1.349896, 1.452908}, {1.176212, 1.690995, 2.431078}}}};
    for (size_t i = 0; i < sizeof golden / sizeof golden[0]; i++) {
        mdot_gpu_load loads[2];
        for (int side = 0; side < 2; side++) {
            const double *n = golden[i].load[side];
            loads[side] = (mdot_gpu_load){.struct_size = sizeof loads[side],
                                          .step_ms = n[0],
                                          .gpu_busy_ms = n[0] * n[1],
                                          .operator_count = n[0] * n[1] / n[2],
                                          .compute_share = n[3],
                                          .memory_share = n[4],
                                          .host_busy_ms = n[0] * n[5],
                                          .peak_memory_bytes = (uint64_t)(n[6] * (1u << 30)),
                                          .fp32_tflops = n[7],
                                          .memory_gbps = n[8]};
        }
        for (int side = 0; side < 2; side++) {
            mdot_beside answer = beside(&loads[side], &loads[1 - side]);
            const double *want = golden[i].slowdowns[side];
            if (fabs(answer.lower_slowdown / want[0] - 1) > 2e-3 || fabs(answer.slowdown / want[1] - 1) > 2e-3 ||
                fabs(answer.upper_slowdown / want[2] - 1) > 2e-3)
                fail_msg("pair %zu, side %d: %.5f %.5f %.5f", i, side, answer.lower_slowdown, answer.slowdown,
                         answer.upper_slowdown);
        }
    }
}

static void refuse(const mdot_gpu_load *own, const mdot_gpu_load *partner, mdot_context *context, mdot_status status,
                   const char *words)
{
    mdot_beside answer = MDOT_INIT(mdot_beside);
    mdot_error err = {0};
    assert_int_equal(mdot_predict_beside(context, own, partner, &answer, &err), status);
    if (strstr(err.message, words) == NULL) fail_msg("\"%s\" lacks \"%s\"", err.message, words);
    assert_true(answer.slowdown == 0);
}

static void bad_loads_and_artefacts_are_refused(void **state)
{
    (void)state;
    const mdot_gpu_load good = random_load(15.7, 900);
    mdot_gpu_load bad = good;
    bad.fp32_tflops = 9.5;
    refuse(&good, &bad, pairs, MDOT_INVALID_ARGUMENT, "two GPU models");
    bad = good;
    bad.step_ms = 0;
    refuse(&bad, &good, pairs, MDOT_INVALID_ARGUMENT, "the load has a value");
    bad = good;
    for (size_t offset = offsetof(mdot_gpu_load, step_ms); offset < offsetof(mdot_gpu_load, peak_memory_bytes);
         offset += sizeof(double)) {
        static const double wrong[] = {-1, NAN, INFINITY, -INFINITY, 1e300};
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
            bad = good;
            memcpy((char *)&bad + offset, &wrong[i], sizeof(double));
            refuse(&good, &bad, pairs, MDOT_INVALID_ARGUMENT, "the partner has a value");
            refuse(&bad, &good, pairs, MDOT_INVALID_ARGUMENT, "the load has a value");
        }
    }
    refuse(&good, &good, jobs, MDOT_INCOMPATIBLE, "interference.mdot");
    refuse(&good, NULL, pairs, MDOT_INVALID_ARGUMENT, "NULL");
}

/* An artefact whose answer is s + 0 / (1 - own step), so that a step of 1 ms gives no number. */
static void open_slowdowns(predict_fixture *f, const float slowdowns[3])
{
    static const int64_t from = 0, to = 1;
    static const float one = 1, zero = 0;
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, "own", MDOT_DTYPE_F32, "1,9");
    onnx_input(b, "partner", MDOT_DTYPE_F32, "1,9");
    onnx_initializer(b, "from", MDOT_DTYPE_I64, "1", &from);
    onnx_initializer(b, "to", MDOT_DTYPE_I64, "1", &to);
    onnx_initializer(b, "axis", MDOT_DTYPE_I64, "1", &to);
    onnx_initializer(b, "one", MDOT_DTYPE_F32, "1", &one);
    onnx_initializer(b, "zero", MDOT_DTYPE_F32, "1", &zero);
    onnx_initializer(b, "slowdowns", MDOT_DTYPE_F32, "1,3", slowdowns);
    onnx_node(b, "Slice", "own,from,to,axis", "a");
    onnx_node(b, "Slice", "partner,from,to,axis", "b");
    onnx_node(b, "Sub", "a,b", "less");
    onnx_node(b, "Div", "zero,less", "nothing");
    onnx_node(b, "Add", "slowdowns,nothing", "slowdown");
    onnx_output(b, "slowdown");
    predict_open(f, b);
}

/* An input of the entry, and whether mdot_predict_beside may read it. */
typedef struct tensor_form {
    const char *name, *shape, *weights; /* the weights' shape multiplies the input's rows to the answer's */
    mdot_dtype dtype;
} tensor_form;

/* Names, types, ranks and sizes of both inputs and of the output must be those of interference.mdot. */
static void other_artefacts_are_refused(void **state)
{
    (void)state;
    static const float zeros[60] = {0}, ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    static const tensor_form own[] = {{"own", "1,9", "9,3", MDOT_DTYPE_F32}, {"load", "1,9", "9,3", MDOT_DTYPE_F32},
                                      {"own", "1,8", "8,3", MDOT_DTYPE_F32}, {"own", "1,10", "10,3", MDOT_DTYPE_F32},
                                      {"own", "2,9", "9,3", MDOT_DTYPE_F32}, {"own", "1,1,9", "9,3", MDOT_DTYPE_F32},
                                      {"own", "1,9", "9,3", MDOT_DTYPE_I64}};
    static const struct {
        const char *name, *shape;
    } outputs[] = {{"slowdown", "9,3"}, {"slowdowns", "9,3"}, {"slowdown", "9,2"}, {"slowdown", "9,4"}};
    const mdot_gpu_load load = random_load(15.7, 900);
    for (int i = 0; i < 7 + 7 + 4; i++) {
        tensor_form inputs[2] = {own[i < 7 ? i : 0], own[i >= 7 && i < 14 ? i - 7 : 0]};
        if (strcmp(inputs[1].name, "own") == 0) inputs[1].name = "partner";
        const char *output = outputs[i < 14 ? 0 : i - 14].name, *width = outputs[i < 14 ? 0 : i - 14].shape;
        bool is_right = i == 0 || i == 7 || i == 14;
        static const char *const cast[] = {"a_real", "b_real"}, *const product[] = {"a_product", "b_product"};
        static const char *const zero[] = {"a_zeros", "b_zeros"};
        onnx_builder *b = onnx_begin(17);
        for (int k = 0; k < 2; k++) {
            char operands[64];
            onnx_input(b, inputs[k].name, inputs[k].dtype, inputs[k].shape);
            onnx_initializer(b, zero[k], MDOT_DTYPE_F32, i < 14 ? inputs[k].weights : width, zeros);
            onnx_node(b, "Cast", inputs[k].name, cast[k]);
            onnx_attr_int(b, "to", 1);
            snprintf(operands, sizeof operands, "%s,%s", cast[k], zero[k]);
            onnx_node(b, "MatMul", operands, product[k]);
        }
        onnx_initializer(b, "ones", MDOT_DTYPE_F32, "1", ones);
        onnx_node(b, "Add", "a_product,b_product", "nothing");
        onnx_node(b, "Add", "nothing,ones", output);
        onnx_output(b, output);
        predict_fixture f = {0};
        predict_open(&f, b);
        mdot_beside answer = MDOT_INIT(mdot_beside);
        if (is_right)
            assert_int_equal(mdot_predict_beside(f.context, &load, &load, &answer, NULL), MDOT_OK);
        else
            refuse(&load, &load, f.context, MDOT_INCOMPATIBLE, "the artefact predicts no slowdown");
        predict_close(&f);
    }
}

/* Other second outputs are refused. Without one, nothing is extrapolated; here, steps above 2 ms are. */
static void the_artefact_says_what_is_outside_its_pairs(void **state)
{
    (void)state;
    static const struct {
        const char *name, *shape;
        bool is_right;
    } outputs[] = {{"outside_training", "9,1", true},
                   {"outside", "9,1", false},
                   {"outside_training", "9,2", false},
                   {NULL, "9,1", true}};
    static const float zeros[27] = {0}, ones[3] = {1, 1, 1}, step[18] = {1}, two = 2;
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++) {
        onnx_builder *b = onnx_begin(17);
        onnx_input(b, "own", MDOT_DTYPE_F32, "1,9");
        onnx_input(b, "partner", MDOT_DTYPE_F32, "1,9");
        onnx_initializer(b, "zeros", MDOT_DTYPE_F32, "9,3", zeros);
        onnx_initializer(b, "ones", MDOT_DTYPE_F32, "1,3", ones);
        onnx_initializer(b, "step", MDOT_DTYPE_F32, outputs[i].shape, step);
        onnx_initializer(b, "two", MDOT_DTYPE_F32, "1", &two);
        onnx_node(b, "MatMul", "partner,zeros", "nothing");
        onnx_node(b, "Add", "nothing,ones", "slowdown");
        onnx_node(b, "MatMul", "own,step", "own_step");
        onnx_node(b, "Sub", "own_step,two", outputs[i].name != NULL ? outputs[i].name : "unused");
        onnx_output(b, "slowdown");
        if (outputs[i].name != NULL) onnx_output(b, outputs[i].name);
        predict_fixture f = {0};
        predict_open(&f, b);
        mdot_gpu_load own = random_load(15.7, 900);
        own.gpu_busy_ms = own.host_busy_ms = 0;
        for (int tenth = 1; tenth < 40; tenth++) {
            mdot_beside answer = MDOT_INIT(mdot_beside);
            own.step_ms = tenth / 10.0;
            if (!outputs[i].is_right) {
                refuse(&own, &own, f.context, MDOT_INCOMPATIBLE, "outside_training, f32 [1, 1]");
                continue;
            }
            assert_int_equal(mdot_predict_beside(f.context, &own, &own, &answer, NULL), MDOT_OK);
            assert_int_equal(answer.extrapolated, outputs[i].name != NULL && tenth > 20);
        }
        predict_close(&f);
    }
}

/* Every triple of these numbers: only those that ascend from 1 and are finite are an answer. */
static void slowdowns_must_ascend_from_1(void **state)
{
    (void)state;
    static const float numbers[] = {.5f, 1, 1.5f, 2, INFINITY};
    mdot_gpu_load own = random_load(15.7, 900), partner = own;
    partner.step_ms = 2 * own.step_ms;
    for (int i = 0; i < 125; i++) {
        const float triple[3] = {numbers[i % 5], numbers[i / 5 % 5], numbers[i / 25]};
        bool is_valid = triple[0] >= 1 && triple[1] >= triple[0] && triple[2] >= triple[1] && isfinite(triple[2]);
        if (i % 3 != 0 && !is_valid) continue; /* a part of the invalid ones */
        predict_fixture f = {0};
        open_slowdowns(&f, triple);
        if (is_valid) {
            mdot_beside answer = MDOT_INIT(mdot_beside);
            assert_int_equal(mdot_predict_beside(f.context, &own, &partner, &answer, NULL), MDOT_OK);
            assert_true(answer.lower_slowdown == triple[0] && answer.slowdown == triple[1]);
            assert_true(answer.upper_slowdown == triple[2]);
        } else {
            refuse(&own, &partner, f.context, MDOT_MALFORMED, "ascend from 1");
        }
        refuse(&own, &own, f.context, MDOT_MALFORMED, "ascend from 1"); /* not a number */
        predict_close(&f);
    }
}

static void missing_arguments_are_refused(void **state)
{
    (void)state;
    mdot_gpu_load load = MDOT_INIT(mdot_gpu_load);
    mdot_beside answer = MDOT_INIT(mdot_beside);
    mdot_configuration c = {.struct_size = sizeof c, .batch = 16, .gpu = "V100-SXM-16GB"};
    mdot_job *job = predict_job(3, 3);
    for (int missing = 0; missing < 4; missing++) {
        mdot_error err = {0};
        assert_int_equal(mdot_gpu_load_of(missing == 0 ? NULL : jobs, missing == 1 ? NULL : job,
                                          missing == 2 ? NULL : &c, missing == 3 ? NULL : &load, &err),
                         MDOT_INVALID_ARGUMENT);
        assert_non_null(strstr(err.message, "is NULL"));
        assert_int_equal(mdot_predict_beside(missing == 0 ? NULL : pairs, missing == 1 ? NULL : &load,
                                             missing == 2 ? NULL : &load, missing == 3 ? NULL : &answer, &err),
                         MDOT_INVALID_ARGUMENT);
        assert_non_null(strstr(err.message, "is NULL"));
    }
    assert_true(load.step_ms == 0 && answer.slowdown == 0);
    mdot_job_destroy(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_job_gets_faster_and_the_interval_ascends),
                                       cmocka_unit_test(an_idle_partner_costs_nothing),
                                       cmocka_unit_test(no_part_of_a_step_is_longer_than_the_step),
                                       cmocka_unit_test(unfamiliar_loads_get_wide_intervals),
                                       cmocka_unit_test(slowdowns_of_ready_jobs_are_bounded_on_every_gpu),
                                       cmocka_unit_test(loads_are_those_of_explanation_and_prediction),
                                       cmocka_unit_test(the_answers_are_those_of_onnx_runtime),
                                       cmocka_unit_test(bad_loads_and_artefacts_are_refused),
                                       cmocka_unit_test(slowdowns_must_ascend_from_1),
                                       cmocka_unit_test(other_artefacts_are_refused),
                                       cmocka_unit_test(the_artefact_says_what_is_outside_its_pairs),
                                       cmocka_unit_test(missing_arguments_are_refused)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
