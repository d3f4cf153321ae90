/* test_call_order.c — the law: an answer depends on its arguments alone. Random calls on one context give the same
 * bytes as on a new context, whatever was called before. Numbers that look plausible fill the free stack before each
 * call, so that a member nobody set has another value each time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mdot/mdotjob.h"
#include "tests/support/assertions.h"

enum { CALLS = 400, JOBS = 2, STACK_NUMBERS = 16384 };

static mdot_predictor *predictor;
static mdot_context *used; /* by every call */
static mdot_job *jobs[JOBS];
static mdot_gpu gpus[2];
static uint64_t random_state = 48;

static int set_up(void **state)
{
    (void)state;
    mdot_error err = {0};
    const mdot_dim_binding sequence = {"sequence", 128, NULL};
    const mdot_job_options with_length = {.struct_size = sizeof with_length, .dims = &sequence, .dim_count = 1};
    mdot_status status = mdot_predictor_open(MDOT_SHIPPED_PREDICTOR, NULL, &predictor, &err);
    if (status == MDOT_OK) status = mdot_context_create(predictor, &used, &err);
    if (status == MDOT_OK) status = mdot_job_read(MDOT_SOURCE_DIR "/examples/jobs/resnet50.onnx", NULL, &jobs[0], &err);
    if (status == MDOT_OK)
        status = mdot_job_read(MDOT_SOURCE_DIR "/examples/jobs/bert_base.onnx", &with_length, &jobs[1], &err);
    for (int i = 0; status == MDOT_OK && i < 2; i++) {
        gpus[i] = MDOT_INIT(mdot_gpu);
        status = mdot_gpu_find(i == 0 ? "A100" : "T4", &gpus[i], &err);
    }
    if (status != MDOT_OK) print_error("%s\n", err.message);
    return status == MDOT_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    for (int i = 0; i < JOBS; i++) mdot_job_destroy(jobs[i]);
    mdot_context_destroy(used);
    mdot_predictor_close(predictor);
    return 0;
}

static uint32_t below(uint32_t bound)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % bound;
}

static void spoil_stack(double value)
{
    volatile double numbers[STACK_NUMBERS];
    for (int i = 0; i < STACK_NUMBERS; i++) numbers[i] = value;
    assert_true(numbers[STACK_NUMBERS / 2] > 0);
}

static mdot_configuration draw(void)
{
    static const mdot_precision precisions[] = {MDOT_PRECISION_FP32, MDOT_PRECISION_AMP, MDOT_PRECISION_PYTORCH};
    mdot_configuration c = {.struct_size = sizeof c,
                            .batch = 1 << below(8),
                            .gpu_spec = &gpus[below(2)],
                            .precision = precisions[below(3)],
                            .optimizer = (mdot_optimizer)below(MDOT_OPTIMIZER_MUON + 1),
                            .compiled = below(2),
                            .framework = (mdot_framework)below(MDOT_FRAMEWORK_MEGATRON + 1),
                            .gpu_count = 1 << below(4),
                            .zero_stage = below(4),
                            .accumulate = 1 + below(3)};
    return c;
}

/* What a call answers. */
typedef struct answer {
    mdot_status status;
    mdot_prediction predictions[3];
    mdot_explanation_info explanation;
} answer;

typedef enum question { PREDICT, SWEEP, EVALUATE, EXPLAIN, CALIBRATE, PLAN, QUESTIONS } question;

static void sweep(mdot_context *context, question asked, const mdot_job *job, mdot_configuration c, answer *out)
{
    mdot_configuration three[3] = {c, c, c};
    mdot_encoding *encoding = NULL;
    three[1].batch *= 2;
    three[2].tensor_parallel = 2;
    three[2].gpu_count = 4;
    for (int i = 0; i < 3; i++) out->predictions[i].struct_size = sizeof(mdot_prediction);
    if (asked == SWEEP) {
        out->status = mdot_sweep(context, job, three, 3, out->predictions, NULL);
        return;
    }
    assert_int_equal(mdot_encoding_create(context, job, &encoding, NULL), MDOT_OK);
    spoil_stack(7e2);
    out->status = mdot_evaluate(context, encoding, three, 3, out->predictions, NULL);
    mdot_encoding_destroy(encoding);
}

static void explain(mdot_context *context, question asked, const mdot_job *job, const mdot_configuration *c,
                    answer *out)
{
    out->predictions[0] = MDOT_INIT(mdot_prediction);
    if (asked == CALIBRATE) {
        mdot_calibration *calibration = NULL;
        const mdot_job *measured[1] = {job};
        const double ms = 500;
        out->status = mdot_calibrate(context, measured, c, &ms, 1, &calibration, NULL);
        if (out->status != MDOT_OK) return;
        assert_int_equal(mdot_predict(context, job, c, &out->predictions[0], NULL), MDOT_OK);
        mdot_calibration_apply_to_job(calibration, job, c, &out->predictions[0], NULL);
        mdot_calibration_destroy(calibration);
        return;
    }
    mdot_explanation *explanation = NULL;
    out->status = mdot_explain(context, job, c, &explanation, NULL);
    if (out->status != MDOT_OK) return;
    out->explanation = MDOT_INIT(mdot_explanation_info);
    mdot_explanation_get_info(explanation, &out->explanation);
    mdot_explanation_destroy(explanation);
}

static void plan(mdot_context *context, const mdot_job *job, const mdot_configuration *c, answer *out)
{
    mdot_configuration base = {.struct_size = sizeof base, .batch = 1, .precision = c->precision};
    const uint32_t size = 2;
    const mdot_plan_space space = {.struct_size = sizeof space,
                                   .base = &base,
                                   .gpus = c->gpu_spec,
                                   .gpu_model_count = 1,
                                   .sizes = &size,
                                   .size_count = 1,
                                   .global_batch = 32};
    mdot_plan *made = NULL;
    mdot_plan_layout layout = MDOT_INIT(mdot_plan_layout);
    out->status = mdot_plan_create(&context, 1, job, &space, &made, NULL);
    if (out->status != MDOT_OK) return;
    if (mdot_plan_get_layout(made, 0, &layout) == MDOT_OK) out->predictions[0] = layout.prediction;
    mdot_plan_destroy(made);
}

static void ask(mdot_context *context, question asked, const mdot_job *job, const mdot_configuration *c, double garbage,
                answer *out)
{
    memset(out, 0, sizeof *out);
    spoil_stack(garbage);
    if (asked == PREDICT) {
        out->predictions[0] = MDOT_INIT(mdot_prediction);
        out->status = mdot_predict(context, job, c, &out->predictions[0], NULL);
    } else if (asked == SWEEP || asked == EVALUATE) {
        sweep(context, asked, job, *c, out);
    } else if (asked == PLAN) {
        plan(context, job, c, out);
    } else {
        explain(context, asked, job, c, out);
    }
}

static void expect_equal(const answer *here, const answer *there, int call, question asked)
{
    bool is_equal = here->status == there->status && here->explanation.host_ms == there->explanation.host_ms &&
                    here->explanation.forward_ms == there->explanation.forward_ms &&
                    here->explanation.optimizer_ms == there->explanation.optimizer_ms;
    for (int i = 0; i < 3; i++)
        is_equal = is_equal && here->predictions[i].step_ms == there->predictions[i].step_ms &&
                   here->predictions[i].lower_ms == there->predictions[i].lower_ms &&
                   here->predictions[i].upper_ms == there->predictions[i].upper_ms &&
                   here->predictions[i].warnings == there->predictions[i].warnings &&
                   here->predictions[i].reserved_bytes == there->predictions[i].reserved_bytes &&
                   here->predictions[i].energy_joules == there->predictions[i].energy_joules;
    if (!is_equal)
        fail_msg("call %d, question %d: %.9g ms on the used context, %.9g on a new one", call, (int)asked,
                 here->predictions[0].step_ms, there->predictions[0].step_ms);
}

static void an_answer_depends_on_its_arguments_alone(void **state)
{
    (void)state;
    static answer here, there;
    int answered = 0;
    for (int call = 0; call < CALLS; call++) {
        question asked = (question)below(QUESTIONS);
        const mdot_job *job = jobs[below(JOBS)];
        mdot_configuration c = draw();
        mdot_context *fresh = NULL;
        assert_int_equal(mdot_context_create(predictor, &fresh, NULL), MDOT_OK);
        ask(used, asked, job, &c, 3e1 * (1 + below(9)), &here);
        ask(fresh, asked, job, &c, 1e-3, &there);
        mdot_context_destroy(fresh);
        expect_equal(&here, &there, call, asked);
        answered += here.status == MDOT_OK;
    }
    assert_compare(answered, >, CALLS / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(an_answer_depends_on_its_arguments_alone)};
    return cmocka_run_group_tests_name("call order", tests, set_up, tear_down);
}
