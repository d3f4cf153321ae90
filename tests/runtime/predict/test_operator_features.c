/* test_operator_features.c — a job's operator features. Equal operators are merged, operators stay in order if the
 * entry reads positions, and a shortened job keeps the total FLOPs and bytes. */
#include "runtime/job/job_model.h"
#include "runtime/perf/analysis.h"
#include "runtime/predict/predictor_tensors.h"
#include "tests/support/assertions.h"
#include "tests/support/predict_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MAX_ROWS = 1024 };

static int64_t type[MAX_ROWS + 1];
static float setting[MAX_ROWS + 1][MDOT_SETTING_COUNT], load[MAX_ROWS + 1][RT_LOAD_COLUMNS];
static float position[MAX_ROWS + 1][RT_POSITION_COLUMNS], count[MAX_ROWS + 1];

enum { READS_POSITION = 1, READS_COUNT = 2 };

/* The whole job on one GPU, unless a test changes it. */
static rt_shard shard = {1, 1, {1, 1, 1}, 0};

/* Writes the job's features for an entry with types, settings, loads and the inputs in `reads`. */
static rt_job_tensors write_rows(const mdot_job *job, size_t capacity, unsigned reads)
{
    assert_compare(capacity, <=, MAX_ROWS);
    for (size_t i = 0; i <= MAX_ROWS; i++) count[i] = -7;
    rt_job_tensors tensors = {
        .schema =
            {.row_capacity = capacity,
             .columns = {[RT_JOB_INPUT_SETTING] = MDOT_SETTING_COUNT, [RT_JOB_INPUT_POSITION] = RT_POSITION_COLUMNS},
             .known = {[RT_JOB_INPUT_SETTING] = MDOT_SETTING_COUNT, [RT_JOB_INPUT_POSITION] = RT_POSITION_COLUMNS},
             .type_count = RT_JOB_MAX_TYPE},
        .rows = {[RT_JOB_INPUT_TYPE] = type,
                 [RT_JOB_INPUT_SETTING] = setting,
                 [RT_JOB_INPUT_LOAD] = load,
                 [RT_JOB_INPUT_POSITION] = (reads & READS_POSITION) != 0 ? position : NULL,
                 [RT_JOB_INPUT_REPEATS] = (reads & READS_COUNT) != 0 ? count : NULL}};
    rt_write_operator_features(job, &shard, &tensors);
    assert_compare(tensors.row_count, <=, capacity);
    /* the memory after the rows is unchanged */
    for (size_t i = tensors.row_count; i <= MAX_ROWS; i++) assert_compare(count[i], ==, -7);
    return tensors;
}

static mdot_job_operator get(const mdot_job *job, size_t index)
{
    mdot_job_operator op = MDOT_INIT(mdot_job_operator);
    assert_int_equal(mdot_job_get_operator(job, index, &op), MDOT_OK);
    return op;
}

/* One operator's load columns, by the contract in mdot.h. */
static void expected_load(const mdot_job_operator *op, double *row)
{
    const mdot_load *loads[2] = {op->per_sample, op->per_step};
    for (int i = 0; i < 18; i++) {
        const mdot_load *l = &loads[i / 9][i % 9 / 3];
        row[i] = i % 3 == 0 ? l->flops : i % 3 == 1 ? l->bytes_read : l->bytes_written;
    }
    row[18] = op->parameters;
}

static void assert_row_is(size_t row, const mdot_job_operator *op)
{
    double expected[RT_LOAD_COLUMNS];
    expected_load(op, expected);
    for (int i = 0; i < RT_LOAD_COLUMNS; i++) assert_compare(load[row][i], ==, (float)expected[i]);
    for (int i = 0; i < MDOT_SETTING_COUNT; i++) assert_compare(setting[row][i], ==, (float)op->setting[i]);
}

static void sum_job(const mdot_job *job, double *sums)
{
    mdot_job_info info = MDOT_INIT(mdot_job_info);
    mdot_job_get_info(job, &info);
    memset(sums, 0, RT_LOAD_COLUMNS * sizeof *sums);
    for (size_t i = 0; i < info.operator_count; i++) {
        mdot_job_operator op = get(job, i);
        double row[RT_LOAD_COLUMNS];
        expected_load(&op, row);
        for (int k = 0; k < RT_LOAD_COLUMNS; k++) sums[k] += row[k];
    }
}

static void assert_costs_kept(const mdot_job *job, const rt_job_tensors *tensors)
{
    double expected[RT_LOAD_COLUMNS], got[RT_LOAD_COLUMNS] = {0};
    sum_job(job, expected);
    for (size_t r = 0; r < tensors->row_count; r++)
        for (int k = 0; k < RT_LOAD_COLUMNS; k++)
            got[k] += (double)load[r][k] * (tensors->rows[RT_JOB_INPUT_REPEATS] != NULL ? (double)count[r] : 1);
    for (int k = 0; k < RT_LOAD_COLUMNS; k++) /* each row has at most an f32's rounding error */
        if (fabs(got[k] - expected[k]) > 1e-7 * expected[k])
            fail_msg("column %d: %.9g, not %.9g", k, got[k], expected[k]);
}

static double sum_counts(const rt_job_tensors *tensors)
{
    double sum = 0;
    for (size_t r = 0; r < tensors->row_count; r++) sum += (double)count[r];
    return sum;
}

/* Predictors multiply settings with each other in f32, and the results must stay finite. */
static void extreme_settings_are_clamped(void **state)
{
    (void)state;
    const int64_t claimed = INT64_C(1) << 40;
    for (int side = 0; side < 3; side++) {
        mdot_job_operator op = {.struct_size = sizeof op, .type = "LSTM", .known = true, .traits.number = 3};
        double most[MDOT_SETTING_COUNT];
        for (int s = 0; s < MDOT_SETTING_COUNT; s++) {
            bool is_long = s == MDOT_SETTING_SIZE_IN || s == MDOT_SETTING_SIZE_OUT || s == MDOT_SETTING_EXTENT;
            bool crops = s == MDOT_SETTING_PADDING_H || s == MDOT_SETTING_PADDING_W;
            most[s] = s == MDOT_SETTING_DIRECTIONS ? 2 : is_long ? 2147483648.0 : 16777216.0;
            op.setting[s] = side == 0 ? claimed : side == 1 ? (int64_t)most[s] : crops ? -claimed : 0;
            if (side == 2) most[s] = crops ? -16777216.0 : 0;
        }
        mdot_job *job = predict_make_job(&op, 1);
        assert_int_equal(write_rows(job, 8, 0).row_count, 1);
        for (int s = 0; s < MDOT_SETTING_COUNT; s++)
            if ((double)setting[0][s] != most[s]) fail_msg("%s", mdot_setting_name((mdot_setting)s));
        mdot_job_destroy(job);
    }
}

static void multiset_has_a_row_per_kind_in_order_of_appearance(void **state)
{
    (void)state;
    mdot_job *job = predict_job(23, 5);
    rt_job_tensors tensors = write_rows(job, 5, READS_COUNT);
    assert_int_equal(tensors.row_count, 5);
    assert_false(tensors.shortened);
    for (size_t r = 0; r < 5; r++) {
        mdot_job_operator op = predict_operator(r);
        assert_row_is(r, &op);
        assert_compare(count[r], ==, r < 3 ? 5 : 4);
        assert_int_equal(type[r], job->operators[r].traits.number);
    }
    mdot_job_destroy(job);
}

static void multiset_without_counts_has_sums(void **state)
{
    (void)state;
    mdot_job *job = predict_job(12, 3);
    rt_job_tensors tensors = write_rows(job, 8, 0);
    assert_int_equal(tensors.row_count, 3);
    for (size_t r = 0; r < 3; r++) {
        mdot_job_operator op = predict_operator(r);
        assert_compare(load[r][0], ==, 4 * (float)op.per_sample[MDOT_PHASE_FORWARD].flops);
        assert_compare(load[r][18], ==, 4 * (float)op.parameters);
    }
    assert_costs_kept(job, &tensors);
    mdot_job_destroy(job);
}

static void sequence_has_a_row_for_each_operator(void **state)
{
    (void)state;
    mdot_job *job = predict_job(9, 2);
    rt_job_tensors tensors = write_rows(job, 9, READS_POSITION | READS_COUNT);
    assert_int_equal(tensors.row_count, 9);
    assert_false(tensors.shortened);
    for (size_t r = 0; r < 9; r++) {
        mdot_job_operator op = predict_operator(r % 2);
        assert_row_is(r, &op);
        assert_compare(count[r], ==, 1);
        const float expected[RT_POSITION_COLUMNS] = {(float)r, (float)r, (float)(8 - r), r > 0, r < 8};
        for (int i = 0; i < RT_POSITION_COLUMNS; i++) assert_compare(position[r][i], ==, expected[i]);
    }
    mdot_job_destroy(job);
}

static void entry_without_rows_gets_no_rows(void **state)
{
    (void)state;
    mdot_job *job = predict_job(9, 2);
    rt_job_tensors tensors = {0};
    rt_write_operator_features(job, &shard, &tensors);
    assert_int_equal(tensors.row_count, 0);
    assert_false(tensors.shortened);
    mdot_job_destroy(job);
}

static void shortened_job_keeps_its_flops_and_bytes_at_any_capacity(void **state)
{
    (void)state;
    mdot_job *job = predict_job(1000, 1000);
    for (size_t capacity = 1; capacity <= MAX_ROWS; capacity = capacity * 3 / 2 + 1) {
        for (unsigned reads = 0; reads <= (READS_POSITION | READS_COUNT); reads++) {
            rt_job_tensors tensors = write_rows(job, capacity, reads);
            assert_compare(tensors.row_count, >=, 1);
            assert_int_equal(tensors.shortened, capacity < 1000);
            assert_costs_kept(job, &tensors);
            if ((reads & READS_COUNT) != 0) assert_compare(sum_counts(&tensors), ==, 1000);
        }
    }
    mdot_job_destroy(job);
}

static void job_of_20000_operators_fills_the_largest_bucket(void **state)
{
    (void)state;
    mdot_job *job = predict_job(20000, 20000);
    for (unsigned reads = READS_COUNT; reads <= (READS_POSITION | READS_COUNT); reads++) {
        rt_job_tensors tensors = write_rows(job, MAX_ROWS, reads);
        assert_compare(tensors.row_count, >, MAX_ROWS * 3 / 4);
        assert_true(tensors.shortened);
        assert_costs_kept(job, &tensors);
        assert_compare(sum_counts(&tensors), ==, 20000);
    }
    mdot_job_destroy(job);
}

/* Ten operators are a thousand times as expensive as the 990 operators between them. */
static void expensive_operators_are_not_merged(void **state)
{
    (void)state;
    enum { COUNT = 1000, CAPACITY = 64, EVERY = 100 };
    static mdot_job_operator operators[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        operators[i] = predict_operator(1);
        operators[i].type = i % EVERY == 50 ? "Conv" : "Relu";
        operators[i].per_sample[0].flops = i % EVERY == 50 ? 1e9 + (double)i : (double)i;
    }
    mdot_job *job = predict_make_job(operators, COUNT);
    rt_job_tensors tensors = write_rows(job, CAPACITY, READS_POSITION | READS_COUNT);
    size_t alone = 0;
    for (size_t r = 0; r < tensors.row_count; r++) {
        if (load[r][0] < 1e9f) continue;
        assert_compare(count[r], ==, 1);
        assert_int_equal((int)position[r][0] % EVERY, 50);
        assert_int_equal(type[r], job->operators[50].traits.number);
        alone++;
    }
    assert_int_equal(alone, COUNT / EVERY);
    mdot_job_destroy(job);
}

static void merged_row_describes_its_most_expensive_operator(void **state)
{
    (void)state;
    mdot_job_operator operators[5];
    for (size_t i = 0; i < 5; i++) operators[i] = predict_operator(i == 3 ? 300 : i);
    mdot_job *job = predict_make_job(operators, 5);
    rt_job_tensors tensors = write_rows(job, 1, READS_POSITION | READS_COUNT);
    assert_int_equal(tensors.row_count, 1);
    assert_int_equal(type[0], job->operators[3].traits.number);
    assert_compare(setting[0][MDOT_SETTING_KERNEL_H], ==, 3);
    assert_compare(position[0][0], ==, 3);
    assert_compare(count[0], ==, 5);
    mdot_job_destroy(job);
}

static void equal_costs_are_merged_evenly(void **state)
{
    (void)state;
    mdot_job *job = predict_job(5000, 1);
    rt_job_tensors tensors = write_rows(job, MAX_ROWS, READS_POSITION | READS_COUNT);
    assert_int_equal(tensors.row_count, 1000);
    for (size_t r = 0; r < tensors.row_count; r++) assert_compare(count[r], ==, 5);
    mdot_job_destroy(job);
}

static void job_without_flops_is_shortened(void **state)
{
    (void)state;
    static mdot_job_operator operators[50];
    for (size_t i = 0; i < 50; i++)
        operators[i] = (mdot_job_operator){.struct_size = sizeof(mdot_job_operator), .type = "Relu", .known = true};
    mdot_job *job = predict_make_job(operators, 50);
    rt_job_tensors tensors = write_rows(job, 8, READS_POSITION | READS_COUNT);
    assert_compare(tensors.row_count, >=, 1);
    assert_compare(sum_counts(&tensors), ==, 50);
    mdot_job_destroy(job);
}

/* Larger than the whole numbers exact in f32, and the largest allowed in a job. */
static void largest_flops_and_bytes_stay_finite(void **state)
{
    (void)state;
    static mdot_job_operator operators[300];
    for (size_t i = 0; i < 300; i++) {
        operators[i] = predict_operator(i);
        for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++)
            operators[i].per_step[phase].bytes_read = RT_JOB_MAX_COUNT - (double)i;
    }
    mdot_job *job = predict_make_job(operators, 300);
    for (unsigned reads = 0; reads <= READS_COUNT; reads += READS_COUNT) {
        rt_job_tensors tensors = write_rows(job, 7, reads);
        assert_costs_kept(job, &tensors);
    }
    mdot_job_destroy(job);
}

/* Kinds of operators in any order: a row for each kind at its first place, or consecutive ones merged into a row with
 * the settings of the most expensive, and the sum of all. Each operator finds its row. */
static void random_orders_have_the_rows_of_a_reference(void **state)
{
    (void)state;
    enum { KINDS = 12, MOST = 60 };
    uint32_t seed = 5;
    for (int round = 0; round < 300; round++) {
        size_t kind[MOST], length = 1 + (size_t)round % MOST, first[KINDS], number[KINDS], kinds = 0,
                           row_of_kind[KINDS];
        mdot_job_operator operators[MOST];
        uint32_t inputs[MOST], row_of[MOST];
        for (size_t k = 0; k < KINDS; k++) number[k] = 0;
        for (size_t i = 0; i < length; i++) {
            seed = seed * 1664525 + 1013904223;
            kind[i] = (seed >> 16) % KINDS;
            operators[i] = predict_operator(kind[i]);
            operators[i].inputs = &inputs[i];
            operators[i].input_count = 0;
            if (number[kind[i]]++ == 0) first[kinds++] = i;
        }
        mdot_job *job = predict_make_job(operators, length);
        const double *cost = job->analysis->op_costs.cost;
        size_t capacity = round % 3 == 0 ? 1 + (seed >> 8) % KINDS : KINDS;
        rt_job_tensors t = write_rows(job, capacity, READS_COUNT);
        assert_true(t.shortened == (kinds > capacity) && t.row_count <= (kinds < capacity ? kinds : capacity));
        rt_find_feature_rows(job, &shard, &t, row_of);
        for (size_t g = 0; g < kinds; g++) row_of_kind[kind[first[g]]] = row_of[first[g]];
        for (size_t i = 0; i < length; i++) assert_int_equal(row_of[i], row_of_kind[kind[i]]);
        for (size_t g = 0; g < kinds; g++) { /* consecutive */
            size_t row = row_of[first[g]], before = g > 0 ? row_of[first[g - 1]] : 0;
            assert_true(row == before || (g > 0 && row == before + 1));
            if (!t.shortened) assert_int_equal(row, g);
        }
        assert_int_equal(row_of[first[kinds - 1]], t.row_count - 1);
        for (size_t r = 0; r < t.row_count; r++) {
            double sums[RT_LOAD_COLUMNS] = {0}, all = 0, most = -1;
            size_t top = 0;
            for (size_t g = 0; g < kinds; g++) {
                size_t i = first[g];
                double times = (double)number[kind[i]], row[RT_LOAD_COLUMNS];
                if (row_of[i] != r) continue;
                mdot_job_operator op = get(job, i);
                expected_load(&op, row);
                for (int k = 0; k < RT_LOAD_COLUMNS; k++) sums[k] += times * row[k];
                all += times;
                if (cost[i] * times > most) most = cost[i] * times, top = i;
            }
            mdot_job_operator op = get(job, top);
            assert_compare((double)count[r], ==, all);
            for (int i = 0; i < MDOT_SETTING_COUNT; i++) assert_compare(setting[r][i], ==, (float)op.setting[i]);
            for (int k = 0; k < RT_LOAD_COLUMNS; k++)
                assert_true(fabs((double)load[r][k] * all - sums[k]) <= 1e-6 * sums[k]);
        }
        mdot_job_destroy(job);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(extreme_settings_are_clamped),
        cmocka_unit_test(multiset_has_a_row_per_kind_in_order_of_appearance),
        cmocka_unit_test(multiset_without_counts_has_sums),
        cmocka_unit_test(sequence_has_a_row_for_each_operator),
        cmocka_unit_test(entry_without_rows_gets_no_rows),
        cmocka_unit_test(shortened_job_keeps_its_flops_and_bytes_at_any_capacity),
        cmocka_unit_test(job_of_20000_operators_fills_the_largest_bucket),
        cmocka_unit_test(expensive_operators_are_not_merged),
        cmocka_unit_test(merged_row_describes_its_most_expensive_operator),
        cmocka_unit_test(equal_costs_are_merged_evenly),
        cmocka_unit_test(job_without_flops_is_shortened),
        cmocka_unit_test(largest_flops_and_bytes_stay_finite),
        cmocka_unit_test(random_orders_have_the_rows_of_a_reference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
