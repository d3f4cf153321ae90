/* test_update_parts.c — matrices and vectors that optimizers update, for operators small enough to follow. */
#include "runtime/job/job_model.h"
#include "runtime/perf/analysis.h"
#include "tests/support/predict_fixture.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* A trained matmul in a block. */
static mdot_job_operator matmul(int64_t in, int64_t out, int64_t groups, double parameters)
{
    mdot_job_operator op = {
        .struct_size = sizeof op, .type = "Linear", .known = true, .parameters = parameters, .block = 1};
    op.setting[MDOT_SETTING_CHANNELS_IN] = in;
    op.setting[MDOT_SETTING_CHANNELS_OUT] = out;
    op.setting[MDOT_SETTING_GROUPS] = groups;
    op.setting[MDOT_SETTING_INPUTS] = 1;
    for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++) op.per_sample[phase] = (mdot_load){2 * parameters, 4, 4};
    return op;
}

static double sum_of(const rt_parts *parts)
{
    double sum = 0;
    for (int position = 0; position < RT_PIPELINE_POSITIONS; position++) sum += parts->all[position];
    return sum;
}

static void expect_parts(mdot_job_operator op, double factored, double matrices, double orthogonalisation)
{
    mdot_job *job = predict_make_job(&op, 1);
    const rt_update_parts *u = &job->analysis->update_parts;
    double got[] = {sum_of(&u->factored), sum_of(&u->matrices), sum_of(&u->orthogonalisation), u->largest};
    const double want[] = {factored, matrices, orthogonalisation, op.parameters};
    for (int i = 0; i < 4; i++)
        if (got[i] != want[i]) fail_msg("sum %d is %g instead of %g", i, got[i], want[i]);
    mdot_job_destroy(job);
}

/* Five iterations of 4m²n + 2m³ FLOPs, with the shorter side m and the longer side n. */
static double flops_of(double count, double m, double n) { return 5 * count * (4 * m * m * n + 2 * m * m * m); }

static void a_matrix_has_rows_and_columns(void **state)
{
    (void)state;
    expect_parts(matmul(64, 32, 0, 2048), 64 + 32, 2048, flops_of(1, 32, 64));
    expect_parts(matmul(32, 64, 1, 2048), 64 + 32, 2048, flops_of(1, 32, 64));
    expect_parts(matmul(64, 32, 0, 2048 + 32), 64 + 32 + 32, 2048, flops_of(1, 32, 64)); /* and a bias */
    expect_parts(matmul(64, 32, 4, 4 * 2048), 4 * (64 + 32), 4 * 2048, flops_of(4, 32, 64));
}

/* Groups whose matrices exceed the parameters share one matrix. */
static void groups_that_exceed_the_parameters_are_one(void **state)
{
    (void)state;
    expect_parts(matmul(64, 32, 4, 2 * 2048), 64 + 32 + 2048, 2048, flops_of(1, 32, 64));
    expect_parts(matmul(64, 32, 4, 4 * 2048 - 1), 64 + 32 + 3 * 2048 - 1, 2048, flops_of(1, 32, 64));
}

static void vectors_are_no_matrices(void **state)
{
    (void)state;
    expect_parts(matmul(1, 32, 0, 32), 32, 0, 0);
    expect_parts(matmul(32, 1, 0, 32), 32, 0, 0);
    expect_parts(matmul(2, 2, 0, 4), 4, 4, flops_of(1, 2, 2));
    expect_parts(matmul(64, 32, 0, 2047), 2047, 0, 0); /* fewer parameters than the matrix has */
    mdot_job_operator convolution = matmul(64, 32, 0, 9 * 2048);
    convolution.setting[MDOT_SETTING_KERNEL_W] = 3;
    expect_parts(convolution, 9 * 2048, 0, 0);
    mdot_job_operator outside = matmul(64, 32, 0, 2048);
    outside.block = 0; /* factored by Adafactor, and left to AdamW by Muon */
    expect_parts(outside, 64 + 32, 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_matrix_has_rows_and_columns),
        cmocka_unit_test(groups_that_exceed_the_parameters_are_one),
        cmocka_unit_test(vectors_are_no_matrices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
