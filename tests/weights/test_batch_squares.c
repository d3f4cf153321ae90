/* test_batch_squares.c — jobs with work per square of the batch, with the shipped predictor. The law: at micro-batch B,
 * a job has the time and memory of the job in which B times each square counts per sample. */
#include "mdot/mdotjob.h"
#include "runtime/perf/activation_memory.h"
#include "tests/support/network_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { NETWORKS = 12 };

static mdot_predictor *predictor;
static mdot_context *context;

static int set_up(void **state)
{
    (void)state;
    mdot_error err = {0};
    mdot_status status = mdot_predictor_open(MDOT_SHIPPED_PREDICTOR, NULL, &predictor, &err);
    if (status == MDOT_OK) status = mdot_context_create(predictor, &context, &err);
    if (status != MDOT_OK) print_error("%s\n", err.message);
    return status == MDOT_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    mdot_context_destroy(context);
    mdot_predictor_close(predictor);
    return 0;
}

static uint64_t random_state = 46;

static int64_t below(int64_t bound)
{
    random_state = random_state * UINT64_C(6364136223846793005) + 1;
    return (int64_t)((random_state >> 33) % (uint64_t)bound);
}

/* A matmul of all samples with all samples, and operators on the matrix. */
static void add_similarity(network *n, const char *input, bool has_loss)
{
    char operands[16];
    mdot_job_operator *matmul = network_add_units(n, "MatMul", 0, 0, input);
    matmul->setting[MDOT_SETTING_CHANNELS_IN] = 64 + 64 * below(8);
    matmul->setting[MDOT_SETTING_CHANNELS_OUT] = matmul->setting[MDOT_SETTING_SIZE_OUT] = 1;
    matmul->batch_settings = UINT64_C(1) << MDOT_SETTING_CHANNELS_OUT;
    double width = (double)matmul->setting[MDOT_SETTING_CHANNELS_IN];
    for (int phase = 0; phase < MDOT_PHASE_WEIGHT_GRADIENT; phase++) {
        matmul->per_sample[phase] = (mdot_load){0, 8 * width, 0};
        matmul->per_square[phase] = (mdot_load){2 * (phase + 1) * width, phase * 4, 4};
    }
    for (int i = 0; i < 1 + (int)below(3); i++) {
        size_t last = n->count - 1;
        operands[0] = (char)('0' + last / 10), operands[1] = (char)('0' + last % 10), operands[2] = '\0';
        mdot_job_operator *op = network_add_units(n, i % 2 == 0 ? "Exp" : "Mul", 0, 0, operands);
        for (int phase = 0; phase < MDOT_PHASE_WEIGHT_GRADIENT; phase++) {
            op->per_sample[phase] = (mdot_load){0};
            op->per_square[phase] = (mdot_load){1, 4 + 4 * phase, 4};
        }
    }
    if (!has_loss) return;
    size_t last = n->count - 1;
    operands[0] = (char)('0' + last / 10), operands[1] = (char)('0' + last % 10), operands[2] = '\0';
    mdot_job_operator *loss = network_add_units(n, "SoftmaxCrossEntropyLoss", 0, 0, operands);
    for (int phase = 0; phase < MDOT_PHASE_WEIGHT_GRADIENT; phase++) {
        loss->per_sample[phase] = (mdot_load){0, 8, 0};
        loss->per_square[phase] = (mdot_load){5, 4, phase * 4};
    }
}

static void make_network(network *n)
{
    int64_t width = 64 + 64 * below(16);
    network_add_matmul(n, width, width, "");
    for (int i = 0; i < 2 + (int)below(4); i++) {
        char operand[4] = {(char)('0' + n->count - 1)};
        if (below(3) == 0)
            network_add_norm(n, operand);
        else if (below(2) == 0)
            network_add_units(n, "Relu", (double)(1 + below(64)), 0, operand);
        else
            network_add_matmul(n, width, width, operand);
    }
    char operand[4] = {(char)('0' + n->count - 1)};
    add_similarity(n, operand, below(2) == 0);
}

static mdot_job *create(network *n)
{
    for (size_t i = 0; i < n->count; i++)
        assert_int_equal(mdot_operator_traits_find(n->operators[i].type, &n->operators[i].traits), MDOT_OK);
    const mdot_job_description d = {
        .struct_size = sizeof d, .operators = n->operators, .operator_count = n->count, .batch = 16};
    mdot_job *job = NULL;
    mdot_error err = {0};
    if (mdot_job_create(&d, &job, &err) != MDOT_OK) fail_msg("%s", err.message);
    return job;
}

/* The job without squares that equals it at this batch. */
static mdot_job *at_batch(const network *source, double batch)
{
    static network n;
    n = *source;
    for (size_t i = 0; i < n.count; i++) {
        mdot_job_operator *op = &n.operators[i];
        for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++) {
            op->per_sample[phase].flops += batch * op->per_square[phase].flops;
            op->per_sample[phase].bytes_read += batch * op->per_square[phase].bytes_read;
            op->per_sample[phase].bytes_written += batch * op->per_square[phase].bytes_written;
            op->per_square[phase] = (mdot_load){0};
        }
        for (int s = 0; s < MDOT_SETTING_COUNT; s++)
            if (op->batch_settings >> s & 1) op->setting[s] *= (int64_t)batch;
        op->batch_settings = 0;
        if (op->input_count > 0) op->inputs = n.inputs[i];
    }
    return create(&n);
}

static mdot_prediction predict(const mdot_job *job, const mdot_configuration *c)
{
    mdot_prediction p = MDOT_INIT(mdot_prediction);
    mdot_error err = {0};
    if (mdot_predict(context, job, c, &p, &err) != MDOT_OK) fail_msg("%s", err.message);
    return p;
}

static void expect_near(double found, double wanted, double tolerance, const char *what, int64_t batch)
{
    if (!(fabs(found - wanted) <= tolerance * wanted))
        fail_msg("batch %lld: %s is %.9g, not %.9g", (long long)batch, what, found, wanted);
}

static const mdot_configuration configurations[] = {
    {.precision = MDOT_PRECISION_FP32},
    {.precision = MDOT_PRECISION_AMP_BF16, .optimizer = MDOT_OPTIMIZER_ADAMW},
    {.precision = MDOT_PRECISION_AMP, .gpu_count = 4, .data_parallel = 4},
    {.precision = MDOT_PRECISION_FP32, .accumulate = 4},
    {.precision = MDOT_PRECISION_FP32, .mode = MDOT_MODE_INFERENCE},
};
_Static_assert((int)RT_ACTIVATION_MOMENTS_MAX <= (int)MDOT_PEAK_MOMENTS_MAX,
               "the moments of all batches fit into a peak's");

static const int64_t micro_batches[] = {1, 2, 8, 16, 64, 256, 1024, 8192};

static mdot_configuration complete(size_t k, int64_t micro_batch)
{
    mdot_configuration c = configurations[k];
    c.struct_size = sizeof c;
    c.gpu = "A100-SXM4-80GB";
    c.batch = micro_batch;
    return c;
}

static void squares_equal_work_per_sample_at_each_batch(void **state)
{
    (void)state;
    for (int i = 0; i < NETWORKS; i++) {
        network n = {0};
        make_network(&n);
        mdot_job *job = create(&n);
        for (size_t b = 0; b < sizeof micro_batches / sizeof *micro_batches; b++) {
            mdot_job *wanted = at_batch(&n, (double)micro_batches[b]);
            for (size_t k = 0; k < sizeof configurations / sizeof *configurations; k++) {
                mdot_configuration c = complete(k, micro_batches[b]);
                mdot_prediction x = predict(job, &c), y = predict(wanted, &c);
                expect_near(x.step_ms, y.step_ms, 1e-6, "step_ms", c.batch);
                expect_near(x.flops_per_sample, y.flops_per_sample, 1e-9, "flops_per_sample", c.batch);
                expect_near((double)x.peak_memory_bytes, (double)y.peak_memory_bytes, .03, "the peak", c.batch);
                assert_true((double)x.peak_memory_bytes <= (double)y.peak_memory_bytes * (1 + 1e-6));
            }
            mdot_job_destroy(wanted);
        }
        mdot_job_destroy(job);
    }
}

/* An encoding is made once, and its evaluations answer every batch. */
static void evaluations_of_an_encoding_equal_predictions(void **state)
{
    (void)state;
    network n = {0};
    make_network(&n);
    mdot_job *job = create(&n);
    mdot_encoding *encoding = NULL;
    assert_int_equal(mdot_encoding_create(context, job, &encoding, NULL), MDOT_OK);
    mdot_configuration c[8];
    mdot_prediction answers[8];
    for (size_t b = 0; b < 8; b++) {
        c[b] = complete(1, micro_batches[b]);
        answers[b] = MDOT_INIT(mdot_prediction);
    }
    assert_int_equal(mdot_evaluate(context, encoding, c, 8, answers, NULL), MDOT_OK);
    for (size_t b = 0; b < 8; b++) {
        mdot_prediction p = predict(job, &c[b]);
        assert_memory_equal(&answers[b].step_ms, &p.step_ms, sizeof p.step_ms);
        assert_int_equal(answers[b].peak_memory_bytes, p.peak_memory_bytes);
    }
    mdot_encoding_destroy(encoding);
    mdot_job_destroy(job);
}

/* The bytes of a tensor that does not depend on the batch are in the peak once. */
static void constant_results_are_in_the_peak_once(void **state)
{
    (void)state;
    network n = {0};
    make_network(&n);
    n.count--;
    mdot_job *without = create(&n);
    n.count++;
    mdot_job_operator *op = &n.operators[n.count - 1];
    for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++)
        op->per_sample[phase] = op->per_square[phase] = (mdot_load){0};
    op->type = "Mul";
    const double bytes = 1 << 28;
    op->per_step[MDOT_PHASE_FORWARD] = (mdot_load){bytes / 4, 0, bytes};
    mdot_job *with = create(&n);
    for (int64_t batch = 1; batch <= 256; batch *= 16) {
        mdot_configuration c = complete(4, batch);
        double more = (double)predict(with, &c).peak_memory_bytes - (double)predict(without, &c).peak_memory_bytes;
        if (!(more > .5 * bytes && more <= bytes)) fail_msg("batch %lld: %g more bytes", (long long)batch, more);
    }
    mdot_job_destroy(with);
    mdot_job_destroy(without);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(squares_equal_work_per_sample_at_each_batch),
        cmocka_unit_test(evaluations_of_an_encoding_equal_predictions),
        cmocka_unit_test(constant_results_are_in_the_peak_once),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
