/* test_explain.c — explanations for a step's time and memory. The parts add up to the prediction for every
 * configuration. Operators get the times returned by the predictor's entry "explain". If the entry is absent, the
 * explanation is marked as an estimate. */
#include "mdot/mdotjob.h"
#include "runtime/job/gpus.h"
#include "runtime/job/job_model.h"
#include "runtime/perf/analysis.h"
#include "runtime/perf/operator_traits.h"
#include "runtime/perf/step_time.h"
#include "runtime/predict/analytic_correction.h"
#include "runtime/predict/predict.h"
#include "tests/support/assertions.h"
#include "tests/support/predict_fixture.h"
#include "tests/support/process.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- Adding up --------------------------------------------------------------------------------------------------- */

static void assert_equal(double got, double want, const char *what)
{
    if (!(fabs(got - want) <= 1e-6 * fabs(want) + 1e-9)) fail_msg("%s: %.12g, not %.12g", what, got, want);
}

static mdot_explanation *explain(predict_fixture *f, const mdot_job *job, const mdot_configuration *c)
{
    mdot_explanation *e = NULL;
    mdot_error err = {0};
    if (mdot_explain(f->context, job, c, &e, &err) != MDOT_OK) fail_msg("%s", err.message);
    return e;
}

static mdot_explanation_info info_of(const mdot_explanation *e)
{
    mdot_explanation_info info = MDOT_INIT(mdot_explanation_info);
    assert_int_equal(mdot_explanation_get_info(e, &info), MDOT_OK);
    return info;
}

static mdot_operator_time share_of(const mdot_explanation *e, size_t index)
{
    mdot_operator_time share = MDOT_INIT(mdot_operator_time);
    assert_int_equal(mdot_explanation_get_operator(e, index, &share), MDOT_OK);
    return share;
}

static void assert_not_negative(const mdot_operator_time *s)
{
    const double numbers[] = {s->forward_ms,   s->data_gradient_ms, s->weight_gradient_ms, s->optimizer_ms,
                              s->weight_bytes, s->gradient_bytes,   s->optimizer_bytes,    s->activation_bytes};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        assert_true(isfinite(numbers[i]));
        assert_compare(numbers[i], >=, 0);
    }
}

/* Operators add up to phases, phases to the step, and memory parts to the predicted memory. */
static void assert_adds_up(const mdot_explanation *e, const mdot_prediction *p)
{
    mdot_explanation_info info = info_of(e);
    mdot_operator_time sum = {0};
    for (size_t i = 0; i < info.operator_count; i++) {
        mdot_operator_time s = share_of(e, i);
        assert_not_negative(&s);
        sum.forward_ms += s.forward_ms;
        sum.data_gradient_ms += s.data_gradient_ms;
        sum.weight_gradient_ms += s.weight_gradient_ms;
        sum.optimizer_ms += s.optimizer_ms;
        sum.weight_bytes += s.weight_bytes;
        sum.gradient_bytes += s.gradient_bytes;
        sum.optimizer_bytes += s.optimizer_bytes;
        sum.activation_bytes += s.activation_bytes;
    }
    assert_equal(sum.forward_ms, info.forward_ms, "forward");
    assert_equal(sum.data_gradient_ms, info.data_gradient_ms, "data gradient");
    assert_equal(sum.weight_gradient_ms, info.weight_gradient_ms, "weight gradient");
    assert_equal(sum.optimizer_ms, info.optimizer_ms, "optimizer");
    assert_equal(info.step_ms, p->step_ms, "step");
    assert_equal(info.forward_ms + info.data_gradient_ms + info.weight_gradient_ms + info.optimizer_ms + info.host_ms +
                     info.communication_ms + info.idle_ms + info.data_ms,
                 p->step_ms, "all phases");
    assert_equal(info.gpu_busy_ms,
                 info.forward_ms + info.data_gradient_ms + info.weight_gradient_ms + info.optimizer_ms, "GPU busy");
    assert_equal(info.gpu_busy_ms + info.host_busy_ms - info.overlap_ms + info.communication_ms + info.idle_ms +
                     info.data_ms,
                 p->step_ms, "GPU and host");
    assert_compare(info.host_busy_ms, >=, info.host_ms);
    assert_compare(info.overlap_ms, >=, 0);
    assert_equal(sum.weight_bytes, p->weight_bytes, "weights");
    assert_equal(sum.gradient_bytes, p->gradient_bytes, "gradients");
    assert_equal(sum.optimizer_bytes, p->optimizer_bytes, "optimizer state");
    assert_equal(sum.activation_bytes, p->activation_bytes, "activations");
}

/* ---- The shipped predictor on two networks ----------------------------------------------------------------------- */

static const struct {
    const char *what;
    const char *job;
    mdot_configuration c;
    uint32_t approximate;
    bool exchanges, idles;
} cases[] = {
    {"as it was trained", "resnet50", {.precision = MDOT_PRECISION_AMP}, 0, false, false},
    {"fp32", "resnet50", {.precision = MDOT_PRECISION_FP32, .optimizer = MDOT_OPTIMIZER_ADAM}, 0, false, false},
    {"four workers", "resnet50", {.precision = MDOT_PRECISION_AMP, .gpu_count = 4}, 2, true, false},
    {"accumulated", "resnet50", {.precision = MDOT_PRECISION_AMP, .accumulate = 4}, 2, false, false},
    {"compiled", "bert_base", {.precision = MDOT_PRECISION_AMP_BF16, .compiled = 1}, 2, false, false},
    {"recomputed", "bert_base", {.precision = MDOT_PRECISION_AMP, .recompute = MDOT_RECOMPUTE_BLOCKS}, 2, false, false},
    {"divided",
     "bert_base",
     {.precision = MDOT_PRECISION_AMP, .gpu_count = 8, .tensor_parallel = 4, .data_parallel = 2},
     2,
     true,
     false},
    {"a pipeline",
     "bert_base",
     {.precision = MDOT_PRECISION_AMP, .pipeline_parallel = 4, .micro_batches = 8},
     2,
     true,
     true},
    {"ZeRO over nodes",
     "bert_base",
     {.precision = MDOT_PRECISION_BF16,
      .optimizer = MDOT_OPTIMIZER_ADAMW,
      .gpu_count = 16,
      .node_count = 2,
      .zero_stage = 3},
     2,
     true,
     false},
    {"by default", "bert_base", {.precision = MDOT_PRECISION_PYTORCH}, 0, false, false},
};

static mdot_job *read_example(const char *name)
{
    char path[512];
    mdot_error err = {0};
    mdot_job *job = NULL;
    snprintf(path, sizeof path, "%s/examples/jobs/%s.onnx", MDOT_SOURCE_DIR, name);
    const mdot_dim_binding sequence = {"sequence", 128, NULL};
    bool is_open = strcmp(name, "bert_base") == 0;
    const mdot_job_options options = {.struct_size = sizeof options, .dims = &sequence, .dim_count = is_open ? 1 : 0};
    if (mdot_job_read(path, &options, &job, &err) != MDOT_OK) fail_msg("%s", err.message);
    return job;
}

static void open_shipped(predict_fixture *f)
{
    mdot_error err = {0};
    mdot_status status = mdot_predictor_open(MDOT_SHIPPED_PREDICTOR, NULL, &f->predictor, &err);
    if (status == MDOT_OK) status = mdot_context_create(f->predictor, &f->context, &err);
    if (status != MDOT_OK) fail_msg("%s", err.message);
}

static void parts_add_up_for_every_configuration(void **state)
{
    (void)state;
    predict_fixture f;
    open_shipped(&f);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int64_t batch = 8; batch <= 512; batch *= 8) {
            mdot_job *job = read_example(cases[i].job);
            mdot_configuration c = cases[i].c;
            c.struct_size = sizeof c;
            c.batch = batch;
            c.gpu = "A100";
            mdot_prediction p = predict_one(&f, job, &c);
            mdot_explanation *e = explain(&f, job, &c);
            mdot_explanation_info info = info_of(e);
            print_message("%s, batch %lld\n", cases[i].what, (long long)batch);
            assert_adds_up(e, &p);
            assert_int_equal(info.approximate, cases[i].approximate);
            assert_compare(info.communication_ms > 0, ==, cases[i].exchanges);
            assert_compare(info.idle_ms > 0, ==, cases[i].idles);
            assert_compare(info.forward_ms, >, 0);
            assert_compare(info.data_gradient_ms, >, 0);
            assert_compare(info.weight_gradient_ms, >, 0);
            mdot_explanation_destroy(e);
            mdot_job_destroy(job);
        }
    }
    predict_close(&f);
}

/* ResNet-50's first convolution does not compute the input gradient, and a ReLU has zero parameters. */
static void operators_have_the_phases_of_their_work(void **state)
{
    (void)state;
    predict_fixture f;
    open_shipped(&f);
    mdot_job *job = read_example("resnet50");
    mdot_configuration c = predict_configuration(64, "RTX-3090");
    mdot_explanation *e = explain(&f, job, &c);
    size_t kept = 0;
    for (size_t i = 0; i < info_of(e).operator_count; i++) {
        mdot_job_operator op = MDOT_INIT(mdot_job_operator);
        mdot_job_get_operator(job, i, &op);
        mdot_operator_time s = share_of(e, i);
        if (i == 0) {
            assert_compare(s.weight_gradient_ms, >, 0);
            assert_compare(s.optimizer_ms, >, 0);
            assert_compare(s.weight_bytes, >, 0);
        }
        if (strcmp(op.type, "Relu") != 0) continue;
        assert_compare(s.forward_ms, >, 0);
        assert_compare(s.weight_gradient_ms, ==, 0);
        assert_compare(s.optimizer_ms, ==, 0);
        assert_compare(s.weight_bytes, ==, 0);
        kept += s.activation_bytes > 0;
    }
    assert_compare(kept, >, 10);
    mdot_explanation_destroy(e);
    mdot_job_destroy(job);
    predict_close(&f);
}

/* ---- Predictors in closed form ----------------------------------------------------------------------------------- */

static double phase_bytes(const mdot_job_operator *op, mdot_phase phase, double batch)
{
    const mdot_load *sample = &op->per_sample[phase], *step = &op->per_step[phase];
    return batch * (sample->bytes_read + sample->bytes_written) + step->bytes_read + step->bytes_written;
}

static void assert_shares_of(predict_fixture *f, const mdot_job *job, double host_part)
{
    enum { BATCH = 16 };
    mdot_configuration c = predict_configuration(BATCH, "T4");
    c.attention = MDOT_ATTENTION_EAGER;
    mdot_gpu gpu = MDOT_INIT(mdot_gpu);
    assert_int_equal(mdot_gpu_find("T4", &gpu, NULL), MDOT_OK);
    mdot_prediction p = predict_one(f, job, &c);
    mdot_explanation *e = explain(f, job, &c);
    mdot_explanation_info info = info_of(e);
    assert_adds_up(e, &p);
    assert_int_equal(info.approximate, 0);
    double all_ms = p.step_ms;
    predict_assert_close(info.optimizer_ms, 0.125 * all_ms);
    predict_assert_close(info.host_ms, 0.25 / 3 * all_ms);
    predict_assert_close(info.communication_ms, 0.125 / 3 * all_ms);
    predict_assert_close(info.host_busy_ms, host_part * all_ms);
    for (size_t i = 0; i < info.operator_count; i++) {
        mdot_job_operator op = MDOT_INIT(mdot_job_operator);
        mdot_job_get_operator(job, i, &op);
        mdot_operator_time s = share_of(e, i);
        double ms_per_byte = 0.75 / (1e6 * gpu.memory_gbps);
        predict_assert_close(s.forward_ms, ms_per_byte * phase_bytes(&op, MDOT_PHASE_FORWARD, BATCH));
        predict_assert_close(s.data_gradient_ms, ms_per_byte * phase_bytes(&op, MDOT_PHASE_DATA_GRADIENT, BATCH));
        predict_assert_close(s.weight_gradient_ms, ms_per_byte * phase_bytes(&op, MDOT_PHASE_WEIGHT_GRADIENT, BATCH));
    }
    mdot_explanation_destroy(e);
}

static void each_operator_gets_the_time_of_its_row(void **state)
{
    (void)state;
    predict_fixture f;
    predict_open_explained(&f, predict_bandwidth_model(), predict_bandwidth_explained());
    mdot_job *all_different = predict_job(20, 20), *repeated = predict_job(24, 5);
    assert_shares_of(&f, all_different, 0.25 / 3);
    assert_shares_of(&f, repeated, 0.25 / 3);
    predict_close(&f);
    predict_open_explained(&f, predict_bandwidth_model(), predict_bandwidth_explained_with_host());
    assert_shares_of(&f, all_different, 0.5);
    mdot_job_destroy(all_different);
    mdot_job_destroy(repeated);
    predict_close(&f);
}

/* Any number of an explanation may be at fault. */
static void faulty_explanations_are_refused(void **state)
{
    (void)state;
    static const float faults[] = {-1, NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 20; i++) {
        float others[4] = {0.1f, 0.1f, 0.1f, 0.1f}, operators = 0.7f;
        *(i % 5 < 4 ? &others[i % 5] : &operators) = faults[i / 5];
        predict_fixture f;
        predict_open_explained(&f, predict_bandwidth_model(), predict_explained(operators, "4", others));
        mdot_job *job = predict_job(20, 20);
        mdot_configuration c = predict_configuration(8, "T4");
        mdot_explanation *e = NULL;
        mdot_error err = {0};
        assert_int_equal(mdot_explain(f.context, job, &c, &e, &err), MDOT_MALFORMED);
        expect_contains(err.message, "negative, infinite or NaN");
        assert_null(e);
        mdot_job_destroy(job);
        predict_close(&f);
    }
}

/* The rest of a step without times of the GPU is the host's, for any number of micro-steps. */
static void a_step_without_explained_work_is_the_hosts(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        float link = (float)i / 4, others[3] = {0, 0, link};
        predict_fixture f;
        predict_open_explained(&f, predict_bandwidth_model(), predict_explained(0, "3", others));
        mdot_job *job = predict_job(20, 20);
        for (uint32_t steps = 1; steps <= 8; steps *= 2) {
            mdot_configuration c = predict_configuration(64, "T4");
            c.attention = MDOT_ATTENTION_EAGER;
            c.accumulate = steps;
            mdot_prediction p = predict_one(&f, job, &c);
            mdot_explanation *e = explain(&f, job, &c);
            mdot_explanation_info info = info_of(e);
            assert_adds_up(e, &p);
            assert_equal(info.host_ms + info.communication_ms, p.step_ms, "host and link");
            assert_equal(info.communication_ms, info.host_ms * (double)link / steps,
                         "one exchange for all micro-steps");
            mdot_explanation_destroy(e);
        }
        mdot_job_destroy(job);
        predict_close(&f);
    }
}

/* Operators of one feature row divide its time in proportion to their rooflines, or equally without any. */
static void assert_rows_are_divided(predict_fixture *f, const mdot_job *job, const mdot_configuration *c,
                                    const mdot_explanation *e)
{
    rt_answer answer;
    rt_job_schema schema;
    rt_job_tensors *tensors = NULL;
    uint32_t row_of[128];
    double roofline[128][MDOT_PHASE_COUNT];
    size_t count = info_of(e).operator_count, pairs = 0;
    const mdot_abi_table *table = rt_predictor_artefact(rt_context_predictor(f->context))->table;
    assert_compare(count, <=, 128);
    assert_int_equal(rt_answer_one(f->context, job, c, &answer, NULL), MDOT_OK);
    assert_int_equal(rt_job_schema_read(table, RT_JOB_EXPLAIN, &schema, NULL), MDOT_OK);
    assert_int_equal(rt_job_tensors_create(rt_context_predictor(f->context), &schema, &tensors, NULL), MDOT_OK);
    rt_write_operator_features(job, &answer.requested.shard, tensors);
    rt_find_feature_rows(job, &answer.requested.shard, tensors, row_of);
    for (size_t i = 0; i < count; i++) rt_operator_roofline(job, i, &answer.queried, roofline[i]);
    for (size_t i = 0; i < count * count; i++) {
        size_t a = i / count, b = i % count;
        if (a >= b || row_of[a] != row_of[b]) continue;
        mdot_operator_time x = share_of(e, a), y = share_of(e, b);
        const double of_a[] = {x.forward_ms, x.data_gradient_ms, x.weight_gradient_ms},
                     of_b[] = {y.forward_ms, y.data_gradient_ms, y.weight_gradient_ms};
        for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++)
            predict_assert_close(of_a[phase] * roofline[b][phase], of_b[phase] * roofline[a][phase]);
        pairs++;
    }
    assert_compare(pairs, >, 20);
    rt_job_tensors_destroy(rt_context_predictor(f->context), tensors);
}

/* If several operators share a feature row, the times still add up to the predictor's answer for this row. */
static void operators_that_were_merged_share_a_row(void **state)
{
    (void)state;
    predict_fixture f;
    predict_open_explained(&f, predict_bandwidth_model(), predict_bandwidth_explained());
    mdot_job *job = predict_job(100, 100);
    mdot_configuration c = predict_configuration(8, "T4");
    mdot_prediction p = predict_one(&f, job, &c);
    assert_compare(p.warnings & MDOT_WARN_SHORTENED, !=, 0);
    mdot_explanation *e = explain(&f, job, &c);
    assert_adds_up(e, &p);
    assert_compare(share_of(e, 99).forward_ms, >, share_of(e, 0).forward_ms);
    assert_rows_are_divided(&f, job, &c, e);
    mdot_explanation_destroy(e);
    mdot_job_destroy(job);
    predict_close(&f);
}

static void explanation_without_an_entry_is_marked_as_roofline(void **state)
{
    (void)state;
    predict_fixture f;
    predict_open(&f, predict_bandwidth_model());
    mdot_job *job = predict_job(20, 20);
    for (int gpus = 1; gpus <= 8; gpus *= 8) {
        mdot_configuration c = predict_configuration(8, "T4");
        c.gpu_count = gpus;
        mdot_prediction p = predict_one(&f, job, &c);
        mdot_explanation *e = explain(&f, job, &c);
        assert_adds_up(e, &p);
        assert_int_equal(info_of(e).approximate, MDOT_EXPLAINED_BY_ROOFLINE);
        mdot_explanation_destroy(e);
    }
    mdot_job_destroy(job);
    predict_close(&f);
}

static rt_resolved_configuration resolve(const mdot_job *job, const mdot_configuration *c)
{
    rt_resolved_configuration resolved;
    rt_gpu_names names = {0};
    rt_configuration read;
    mdot_error err = {0};
    if (rt_configuration_read(c, 0, &names, &read, &err) != MDOT_OK) fail_msg("%s", err.message);
    if (rt_configuration_check(&read, job, &err) != MDOT_OK) fail_msg("%s", err.message);
    rt_resolve(job, &read, &resolved);
    return resolved;
}

/* Without an entry, the operators of one kind of work share each pass in proportion to their rooflines. The exchange
 * between GPUs overlaps with the whole backward pass. */
static void rooflines_divide_passes_and_exchanges(void **state)
{
    (void)state;
    static const char *const gpus[] = {"T4", "A100", "H100", "RTX-3090"};
    static const mdot_precision precisions[] = {MDOT_PRECISION_FP32, MDOT_PRECISION_AMP};
    predict_fixture fixtures[2]; /* the second reads the batch alone, so it is asked about another configuration */
    predict_open(&fixtures[0], predict_bandwidth_model());
    predict_open(&fixtures[1], predict_batch_model());
    mdot_job_operator operators[20];
    for (uint32_t k = 0; k < 20; k++) { /* every other one is bound by the memory */
        const mdot_load load = {k % 2 == 0 ? 1e8 * (k + 1) : 1e4, k % 2 == 0 ? 1e4 : 1e6 * k, 1e4};
        operators[k] = (mdot_job_operator){.struct_size = sizeof *operators,
                                           .known = true,
                                           .type = "Linear",
                                           .parameters = 1e5,
                                           .per_sample = {load, load, load}};
    }
    mdot_job *job = predict_make_job(operators, 20);
    size_t exchanges = 0;
    for (int i = 0; i < 128; i++) {
        predict_fixture *f = &fixtures[i / 64];
        mdot_configuration c = predict_configuration(1 << i % 7, gpus[i % 4]);
        c.precision = precisions[i / 4 % 2];
        c.gpu_count = 1 << i / 8 % 4;
        rt_resolved_configuration r = resolve(job, &c);
        mdot_prediction p = predict_one(f, job, &c);
        mdot_explanation *e = explain(f, job, &c);
        mdot_explanation_info info = info_of(e);
        double times[RT_PASS_COUNT][RT_WORK_COUNT] = {0}, rooflines[RT_PASS_COUNT][RT_WORK_COUNT] = {0},
               backward_ms = 0;
        double roofline[20][MDOT_PHASE_COUNT];
        for (size_t k = 0; k < 20; k++) {
            rt_work work = rt_work_of(&job->operators[k]);
            mdot_operator_time s = share_of(e, k);
            rt_operator_roofline(job, k, &r, roofline[k]);
            times[RT_PASS_FORWARD][work] += s.forward_ms;
            times[RT_PASS_BACKWARD][work] += s.data_gradient_ms + s.weight_gradient_ms;
            double backward = roofline[k][MDOT_PHASE_DATA_GRADIENT] + roofline[k][MDOT_PHASE_WEIGHT_GRADIENT];
            rooflines[RT_PASS_FORWARD][work] += roofline[k][MDOT_PHASE_FORWARD];
            rooflines[RT_PASS_BACKWARD][work] += backward;
            backward_ms += backward;
        }
        for (size_t k = 0; k < 20; k++) {
            rt_work work = rt_work_of(&job->operators[k]);
            mdot_operator_time s = share_of(e, k);
            double forward = times[RT_PASS_FORWARD][work] / rooflines[RT_PASS_FORWARD][work],
                   backward = times[RT_PASS_BACKWARD][work] / rooflines[RT_PASS_BACKWARD][work];
            assert_equal(s.forward_ms, forward * roofline[k][MDOT_PHASE_FORWARD], "forward of an operator");
            assert_equal(s.data_gradient_ms, backward * roofline[k][MDOT_PHASE_DATA_GRADIENT], "data gradient of one");
            assert_equal(s.weight_gradient_ms, backward * roofline[k][MDOT_PHASE_WEIGHT_GRADIENT], "weights of one");
        }
        if (info.approximate == MDOT_EXPLAINED_BY_ROOFLINE) {
            rt_step_parts parts = rt_divide_step(job, &r, p.gpu_ms);
            double exchanged = rt_communication_ms(job, &r, backward_ms);
            double scale = p.gpu_ms / (rt_overlapped_ms(&parts, r.micro_steps) + exchanged);
            assert_equal(info.communication_ms, scale * exchanged, "exchange");
            assert_equal(info.optimizer_ms, scale * parts.optimizer_ms, "update");
            exchanges += exchanged > 0;
        }
        mdot_explanation_destroy(e);
    }
    assert_compare(exchanges, >, 20);
    mdot_job_destroy(job);
    for (int k = 0; k < 2; k++) predict_close(&fixtures[k]);
}

static void invalid_arguments_are_refused(void **state)
{
    (void)state;
    predict_fixture f;
    predict_open(&f, predict_bandwidth_model());
    mdot_job *job = predict_job(4, 4);
    mdot_configuration c = predict_configuration(0, "T4");
    mdot_error err = {0};
    mdot_explanation *e = NULL;
    assert_int_equal(mdot_explain(f.context, job, &c, &e, &err), MDOT_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "batch"));
    assert_int_equal(mdot_explain(f.context, NULL, &c, &e, NULL), MDOT_INVALID_ARGUMENT);
    assert_int_equal(mdot_explain(NULL, job, &c, &e, NULL), MDOT_INVALID_ARGUMENT);
    assert_int_equal(mdot_explain(f.context, job, &c, NULL, NULL), MDOT_INVALID_ARGUMENT);
    assert_null(e);
    c.batch = 8;
    e = explain(&f, job, &c);
    mdot_operator_time share = MDOT_INIT(mdot_operator_time), no_size = {0};
    assert_int_equal(mdot_explanation_get_operator(e, 4, &share), MDOT_OUT_OF_RANGE);
    assert_int_equal(mdot_explanation_get_operator(e, 0, &no_size), MDOT_INVALID_ARGUMENT);
    assert_int_equal(mdot_explanation_get_info(NULL, &(mdot_explanation_info){0}), MDOT_INVALID_ARGUMENT);
    mdot_explanation_destroy(e);
    mdot_explanation_destroy(NULL);
    mdot_job_destroy(job);
    predict_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_add_up_for_every_configuration),
        cmocka_unit_test(operators_have_the_phases_of_their_work),
        cmocka_unit_test(each_operator_gets_the_time_of_its_row),
        cmocka_unit_test(faulty_explanations_are_refused),
        cmocka_unit_test(a_step_without_explained_work_is_the_hosts),
        cmocka_unit_test(operators_that_were_merged_share_a_row),
        cmocka_unit_test(explanation_without_an_entry_is_marked_as_roofline),
        cmocka_unit_test(rooflines_divide_passes_and_exchanges),
        cmocka_unit_test(invalid_arguments_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
