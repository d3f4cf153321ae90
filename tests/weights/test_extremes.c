/* test_extremes.c — both shipped predictors give finite answers for all accepted arguments, including the ends of the
 * ranges: jobs with unrealistic settings, FLOPs and bytes, and unrealistic GPUs and links. */
#include "mdot/mdotjob.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct fixture {
    mdot_predictor *predictor;
    mdot_context *context;
} fixture;

static int open_it(void **state, const char *path)
{
    fixture *f = calloc(1, sizeof *f);
    if (f == NULL) return -1;
    mdot_error err = {0};
    mdot_status status = mdot_predictor_open(path, NULL, &f->predictor, &err);
    if (status == MDOT_OK) status = mdot_context_create(f->predictor, &f->context, &err);
    if (status != MDOT_OK) print_error("%s\n", err.message);
    *state = f;
    return status == MDOT_OK ? 0 : -1;
}

static int open_shipped(void **state) { return open_it(state, MDOT_SHIPPED_PREDICTOR); }

static int open_published(void **state) { return open_it(state, MDOT_PUBLISHED_PREDICTOR); }

static int close_it(void **state)
{
    fixture *f = *state;
    mdot_context_destroy(f->context);
    mdot_predictor_close(f->predictor);
    free(f);
    return 0;
}

/* Returns NULL, or the reason why the answer or the explanation is invalid. */
static const char *fault_of(const fixture *f, const mdot_job *job, const mdot_configuration *c)
{
    static mdot_error err;
    mdot_prediction p = MDOT_INIT(mdot_prediction);
    if (mdot_predict(f->context, job, c, &p, &err) != MDOT_OK) return err.message;
    const double times[] = {p.step_ms, p.lower_ms, p.upper_ms};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        if (!(times[i] > 0 && isfinite(times[i]))) return "a time is none";
    const double shares[] = {p.compute_share, p.memory_share, p.unknown_share};
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
        if (!(shares[i] >= 0 && isfinite(shares[i]))) return "a share is none";
    mdot_explanation *explanation = NULL;
    mdot_explanation_info e = MDOT_INIT(mdot_explanation_info);
    if (mdot_explain(f->context, job, c, &explanation, &err) != MDOT_OK) return err.message;
    assert_int_equal(mdot_explanation_get_info(explanation, &e), MDOT_OK);
    mdot_explanation_destroy(explanation);
    const double parts[] = {e.forward_ms,   e.data_gradient_ms, e.weight_gradient_ms,
                            e.optimizer_ms, e.host_ms,          e.communication_ms,
                            e.idle_ms,      e.data_ms};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!(parts[i] >= 0 && isfinite(parts[i]))) return "a part of the step is none";
    return NULL;
}

static const double most_load = 9007199254740992.0;
static const int64_t most_setting = INT64_C(1) << 40;

enum { COSTS = 3 };

/* Setting `only` has the maximum. If `only` is negative, all settings have theirs. */
static mdot_job *make_job(const char *type, int only, int cost)
{
    static const mdot_load load[COSTS] = {
        {1e9, 1e6, 1e6}, {9007199254740992.0, 9007199254740992.0, 9007199254740992.0}, {0, 1e6, 1e6}};
    mdot_job_operator op = {.struct_size = sizeof op, .type = type, .known = true};
    assert_int_equal(mdot_operator_traits_find(type, &op.traits), MDOT_OK);
    op.parameters = cost == 2 ? most_load : 1000;
    for (int s = 0; s < MDOT_SETTING_COUNT; s++) {
        bool is_padding = s == MDOT_SETTING_PADDING_H || s == MDOT_SETTING_PADDING_W;
        op.setting[s] = only < 0 || s == only ? most_setting : is_padding ? -most_setting : 8;
    }
    for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++) op.per_sample[phase] = load[cost];
    const mdot_job_description d = {.struct_size = sizeof d, .operators = &op, .operator_count = 1, .batch = 1};
    mdot_job *job = NULL;
    mdot_error err = {0};
    if (mdot_job_create(&d, &job, &err) != MDOT_OK) fail_msg("%s", err.message);
    return job;
}

static void extreme_settings_give_finite_times(void **state)
{
    const fixture *f = *state;
    static const char *const types[] = {"Conv",    "Linear", "Attention", "LSTM",  "BatchNormalization",
                                        "Softmax", "Relu",   "Gather",    "MatMul"};
    static const int64_t batches[] = {1, 16, 1 << 24};
    int faults = 0;
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        for (int s = -1; s < MDOT_SETTING_COUNT; s++) {
            for (int cost = 0; cost < COSTS; cost++) {
                mdot_job *job = make_job(types[t], s, cost);
                for (size_t b = 0; b < sizeof batches / sizeof *batches; b++) {
                    const mdot_configuration c = {.struct_size = sizeof c, .batch = batches[b], .gpu = "A100"};
                    const char *fault = fault_of(f, job, &c);
                    if (fault == NULL) continue;
                    print_error("%s, setting %d, loads %d, batch %lld: %s\n", types[t], s, cost, (long long)batches[b],
                                fault);
                    faults++;
                }
                mdot_job_destroy(job);
            }
        }
    }
    assert_int_equal(faults, 0);
}

static const double ends[] = {1e-6, 1e9};

/* Each spec value alone, and then all, have their minimum and maximum. The job runs on one GPU, and on eight with the
 * largest possible exchanges. */
static void extreme_spec_values_give_finite_times(void **state)
{
    const fixture *f = *state;
    const mdot_dim_binding sequence = {"sequence", 128, NULL};
    const mdot_job_options options = {.struct_size = sizeof options, .dims = &sequence, .dim_count = 1};
    mdot_job *job = NULL;
    mdot_gpu known = MDOT_INIT(mdot_gpu);
    assert_int_equal(mdot_job_read(MDOT_SOURCE_DIR "/examples/jobs/bert_base.onnx", &options, &job, NULL), MDOT_OK);
    assert_int_equal(mdot_gpu_find("A100", &known, NULL), MDOT_OK);
    enum { SPEC_VALUES = (sizeof known - offsetof(mdot_gpu, compute_capability)) / sizeof(double), ALL = SPEC_VALUES };
    int faults = 0;
    for (int spec_value = 0; spec_value <= ALL; spec_value++) {
        for (int end = 0; end < 2; end++) {
            mdot_gpu gpu = known;
            for (int k = 0; k < SPEC_VALUES; k++)
                if (k == spec_value || spec_value == ALL) (&gpu.compute_capability)[k] = ends[end];
            mdot_gpu older = gpu; /* lacks bf16 multiplication */
            older.compute_capability = 7.5;
            const mdot_configuration configurations[] = {
                {.struct_size = sizeof(mdot_configuration), .batch = 16, .gpu_spec = &gpu},
                {.struct_size = sizeof(mdot_configuration),
                 .batch = 16,
                 .gpu_spec = &gpu,
                 .gpu_count = 8,
                 .node_count = 2,
                 .precision = MDOT_PRECISION_AMP,
                 .network_gbps = ends[end],
                 .compiled = 1,
                 .zero_stage = 3},
                {.struct_size = sizeof(mdot_configuration),
                 .batch = 16,
                 .gpu_spec = &gpu,
                 .gpu_count = 4,
                 .link_gbps = ends[end],
                 .tensor_parallel = 2,
                 .pipeline_parallel = 2},
                {.struct_size = sizeof(mdot_configuration),
                 .batch = 16,
                 .gpu_spec = &older,
                 .precision = MDOT_PRECISION_AMP_BF16},
                {.struct_size = sizeof(mdot_configuration),
                 .batch = 16,
                 .gpu_spec = &older,
                 .precision = MDOT_PRECISION_BF16}};
            for (size_t c = 0; c < sizeof configurations / sizeof *configurations; c++) {
                const char *fault = fault_of(f, job, &configurations[c]);
                if (fault == NULL) continue;
                print_error("figure %d at %g, configuration %zu: %s\n", spec_value, ends[end], c, fault);
                faults++;
            }
        }
    }
    mdot_job_destroy(job);
    assert_int_equal(faults, 0);
}

static mdot_job *job_of(const mdot_job_operator *operators, size_t count)
{
    mdot_job_description d = {.struct_size = sizeof d, .operators = operators, .operator_count = count, .batch = 1};
    mdot_job *job = NULL;
    mdot_error err = {0};
    if (mdot_job_create(&d, &job, &err) != MDOT_OK) fail_msg("%s", err.message);
    return job;
}

static void inference_without_forward_work_is_refused(void **state)
{
    const fixture *f = *state;
    mdot_job_operator op = {.struct_size = sizeof op, .type = "CrossEntropy", .known = true};
    op.per_sample[MDOT_PHASE_DATA_GRADIENT] = (mdot_load){1e6, 1e3, 1e3};
    mdot_job *job = job_of(&op, 1);
    mdot_configuration c = {.struct_size = sizeof c, .batch = 8, .gpu = "A100"};
    mdot_prediction p = MDOT_INIT(mdot_prediction);
    mdot_error err = {0};
    assert_int_equal(mdot_predict(f->context, job, &c, &p, &err), MDOT_OK);
    c.mode = MDOT_MODE_INFERENCE;
    assert_int_equal(mdot_predict(f->context, job, &c, &p, &err), MDOT_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "no forward pass"));
    mdot_job_destroy(job);
}

/* Whatever program a job has: a saved job can be loaded. */
static void jobs_with_extreme_loads_can_be_loaded(void **state)
{
    (void)state;
    enum { OPERATORS = 40 };
    static const mdot_precision precisions[] = {MDOT_PRECISION_FP32, MDOT_PRECISION_AMP, MDOT_PRECISION_BF16};
    mdot_job_operator operators[OPERATORS];
    for (size_t i = 0; i < OPERATORS; i++) {
        operators[i] = (mdot_job_operator){.struct_size = sizeof *operators, .type = "Linear", .known = true};
        for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++)
            operators[i].per_sample[phase] = operators[i].per_step[phase] =
                (mdot_load){most_load, most_load, most_load};
    }
    char path[] = "/tmp/mdot-extreme-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    for (size_t count = 1; count <= OPERATORS; count += 13)
        for (size_t i = 0; i < 3; i++) {
            const mdot_peak_moment moment = {.per_sample = most_load, .per_step = most_load};
            const mdot_recorded_memory record = {.precision = precisions[i], .moment_count = 1, .moments = &moment};
            const mdot_job_program program = {.struct_size = sizeof program,
                                              .precision = MDOT_PRECISION_PYTORCH,
                                              .trained_bytes = 1,
                                              .recorded_count = 1,
                                              .recorded = &record};
            mdot_job *plain = job_of(operators, count), *job = NULL, *loaded = NULL;
            mdot_error err = {0};
            if (mdot_job_with_program(plain, &program, &job, &err) != MDOT_OK) fail_msg("%s", err.message);
            if (mdot_job_save(job, path, &err) != MDOT_OK) fail_msg("%s", err.message);
            if (mdot_job_load(path, &loaded, &err) != MDOT_OK) fail_msg("%zu operators: %s", count, err.message);
            mdot_job_destroy(plain);
            mdot_job_destroy(job);
            mdot_job_destroy(loaded);
        }
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(extreme_settings_give_finite_times, open_shipped, close_it),
        cmocka_unit_test_setup_teardown(extreme_settings_give_finite_times, open_published, close_it),
        cmocka_unit_test_setup_teardown(extreme_spec_values_give_finite_times, open_shipped, close_it),
        cmocka_unit_test_setup_teardown(extreme_spec_values_give_finite_times, open_published, close_it),
        cmocka_unit_test_setup_teardown(inference_without_forward_work_is_refused, open_shipped, close_it),
        cmocka_unit_test(jobs_with_extreme_loads_can_be_loaded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
