/* test_calibrate.c — predictions corrected by measured steps: corrections for one GPU, several GPUs and GPUs without
 * rows, wrong rows, narrower intervals, saving and loading, and refused arguments. test_calibration_model.c covers jobs
 * and configurations. */
#include "tests/support/assertions.h"
#include "tests/support/predict_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/process.h"

enum { MAX_ROWS = 64 };

typedef struct site {
    predict_fixture f;
    mdot_job *job;
    const mdot_job *jobs[MAX_ROWS];
    mdot_configuration c[MAX_ROWS];
    double ms[MAX_ROWS];
    size_t count;
} site;

/* One fixture for all tests. Each test begins with zero rows. */
static int open_site(void **state)
{
    site *s = calloc(1, sizeof *s);
    if (s == NULL) return -1;
    predict_open_explained(&s->f, predict_bandwidth_model(), predict_bandwidth_explained());
    s->job = predict_job(20, 20);
    *state = s;
    return 0;
}

static int forget_rows(void **state)
{
    ((site *)*state)->count = 0;
    return 0;
}

static int close_site(void **state)
{
    site *s = *state;
    mdot_job_destroy(s->job);
    predict_close(&s->f);
    free(s);
    return 0;
}

/* Adds a row: a step on this GPU takes `times` times the predicted time. */
static void add_row_of(site *s, const char *gpu, int64_t gpu_count, int64_t batch, double times)
{
    size_t i = s->count++;
    s->jobs[i] = s->job;
    s->c[i] = predict_configuration(batch, gpu);
    s->c[i].gpu_count = gpu_count;
    s->c[i].attention = MDOT_ATTENTION_EAGER;
    s->ms[i] = times * predict_one(&s->f, s->job, &s->c[i]).step_ms;
}

static void add_row(site *s, const char *gpu, int64_t batch, double times) { add_row_of(s, gpu, 1, batch, times); }

static mdot_calibration *calibrate(site *s)
{
    mdot_calibration *calibration = NULL;
    mdot_error err = {0};
    mdot_status status = mdot_calibrate(s->f.context, s->jobs, s->c, s->ms, s->count, &calibration, &err);
    if (status != MDOT_OK) fail_msg("%s", err.message);
    return calibration;
}

static mdot_calibration_info info_of(const mdot_calibration *calibration)
{
    mdot_calibration_info info = MDOT_INIT(mdot_calibration_info);
    assert_int_equal(mdot_calibration_get_info(calibration, &info), MDOT_OK);
    return info;
}

static mdot_calibration_gpu gpu_of(const mdot_calibration *calibration, size_t index)
{
    mdot_calibration_gpu gpu = MDOT_INIT(mdot_calibration_gpu);
    assert_int_equal(mdot_calibration_get_gpu(calibration, index, &gpu), MDOT_OK);
    return gpu;
}

static void calibration_without_rows_changes_nothing(void **state)
{
    site *s = *state;
    mdot_calibration *calibration = calibrate(s);
    mdot_configuration c = predict_configuration(8, "A100");
    mdot_prediction before = predict_one(&s->f, s->job, &c), after = before;
    assert_int_equal(mdot_calibration_apply_to_job(calibration, s->job, &c, &after, NULL), MDOT_OK);
    assert_compare(after.step_ms, ==, before.step_ms);
    predict_assert_close(after.lower_ms, before.lower_ms);
    predict_assert_close(after.upper_ms, before.upper_ms);
    assert_compare(after.peak_memory_bytes, ==, before.peak_memory_bytes);
    assert_compare(after.warnings, ==, before.warnings);
    mdot_calibration_destroy(calibration);
}

/* A T4 job without common operators with the rows' job. */
static mdot_prediction apply_without_job(site *s, const mdot_calibration *calibration, int64_t batch, const char *gpu)
{
    mdot_configuration c = predict_configuration(batch, gpu);
    mdot_prediction p = predict_one(&s->f, s->job, &c);
    mdot_calibration_factors f = MDOT_INIT(mdot_calibration_factors);
    assert_int_equal(mdot_calibration_explain(calibration, &c, NULL, &p, &f, NULL), MDOT_OK);
    double lower = pow(p.lower_ms / p.step_ms, f.interval), upper = pow(p.upper_ms / p.step_ms, f.interval);
    p.step_ms *= f.factor;
    p.lower_ms = p.step_ms * lower;
    p.upper_ms = p.step_ms * upper;
    return p;
}

/* A site where every step takes 1.5 times as long as predicted. */
static void more_rows_reduce_the_error(void **state)
{
    site *s = *state;
    double last_factor = 1, last_interval = 1;
    for (size_t rows = 1; rows <= 48; rows += rows) {
        while (s->count < rows) add_row(s, "T4", 8 + (int64_t)s->count, 1.5);
        mdot_calibration *calibration = calibrate(s);
        mdot_configuration c = predict_configuration(7, "T4");
        c.attention = MDOT_ATTENTION_EAGER;
        mdot_prediction before = predict_one(&s->f, s->job, &c), after = before;
        assert_int_equal(mdot_calibration_apply_to_job(calibration, s->job, &c, &after, NULL), MDOT_OK);
        double factor = after.step_ms / before.step_ms;
        predict_assert_close(after.energy_joules, factor * before.energy_joules); /* at the same power */
        {
            assert_compare(before.energy_joules, >, 0);
            assert_compare(after.average_watts, ==, before.average_watts);
        }
        double interval = log(after.upper_ms / after.lower_ms) / log(before.upper_ms / before.lower_ms);
        mdot_calibration_gpu gpu = gpu_of(calibration, 0);
        assert_int_equal(gpu.row_count, rows);
        assert_string_equal(gpu.name, "T4");
        if (!(factor > last_factor - 1e-6 && factor < 1.51)) fail_msg("%zu rows: %g", rows, factor);
        if (!(interval <= last_interval + 1e-9)) fail_msg("%zu rows: %g after %g", rows, interval, last_interval);
        assert_compare(factor, >, 1.3); /* from the first row on */
        {
            assert_compare(gpu.factor, >, 1);
            assert_compare(gpu.factor, <, factor);
        }
        last_factor = factor;
        last_interval = interval;
        mdot_calibration_destroy(calibration);
    }
    if (!(last_factor > 1.45)) fail_msg("%g", last_factor);
    if (!(last_interval < 0.5)) fail_msg("%g", last_interval);
}

static void gpus_have_separate_factors(void **state)
{
    site *s = *state;
    for (int64_t i = 0; i < 8; i++) {
        add_row(s, "T4", 8 + i, 2);
        add_row(s, "A100", 8 + i, 1.2);
    }
    mdot_calibration *calibration = calibrate(s);
    mdot_calibration_info info = info_of(calibration);
    assert_int_equal(info.gpu_count, 2);
    assert_int_equal(info.row_count, 16);
    assert_string_equal(gpu_of(calibration, 1).name, "A100-SXM-40GB");
    double slow = gpu_of(calibration, 0).factor;
    if (!(slow > 1.01 && slow < 2)) fail_msg("%g", slow);
    assert_compare(gpu_of(calibration, 1).factor, >, 1.002);
    assert_compare(gpu_of(calibration, 1).factor, <, slow);
    assert_compare(info.factor, >=, 1);
    assert_compare(info.factor, <, 1.5);
    assert_compare(info.interval, >, gpu_of(calibration, 0).interval);
    /* a GPU model is the same by name or by spec values */
    mdot_gpu spec = MDOT_INIT(mdot_gpu);
    assert_int_equal(mdot_gpu_find("T4", &spec, NULL), MDOT_OK);
    mdot_configuration named = predict_configuration(64, "T4"), with_spec = named;
    with_spec.gpu = NULL;
    with_spec.gpu_spec = &spec;
    mdot_prediction a = predict_one(&s->f, s->job, &named), b = a;
    double before = a.step_ms;
    assert_int_equal(mdot_calibration_apply_to_job(calibration, s->job, &named, &a, NULL), MDOT_OK);
    assert_int_equal(mdot_calibration_apply_to_job(calibration, s->job, &with_spec, &b, NULL), MDOT_OK);
    assert_compare(a.step_ms, ==, b.step_ms);
    assert_compare(a.step_ms, >, 1.01 * before);
    assert_compare(a.step_ms, <, 2 * before);
    assert_compare(a.lower_ms, <, a.step_ms);
    assert_compare(a.step_ms, <, a.upper_ms);
    mdot_calibration_destroy(calibration);
}

/* The site's offset needs several GPU models, because one may be the reason. */
static void common_factors_extend_to_other_gpus(void **state)
{
    site *s = *state;
    static const char *const gpus[] = {"T4", "A100", "V100", "H100", "L4", "P100", "K80", "A40"};
    double last = 1;
    for (size_t g = 0; g < sizeof gpus / sizeof *gpus; g++) {
        for (int64_t i = 0; i < 4; i++) add_row(s, gpus[g], 8 + i, 1.5);
        mdot_calibration *calibration = calibrate(s);
        mdot_calibration_info info = info_of(calibration);
        if (!(info.factor > last && info.factor < 1.5)) fail_msg("%zu GPUs: %g after %g", g + 1, info.factor, last);
        assert_compare(info.interval, <, 1);
        last = info.factor;
        mdot_prediction p = apply_without_job(s, calibration, 16, "A10");
        mdot_configuration c = predict_configuration(16, "A10");
        assert_compare(p.step_ms, >, predict_one(&s->f, s->job, &c).step_ms);
        mdot_calibration_destroy(calibration);
    }
    assert_compare(last, >, 1.005);
}

/* One measured step of a job decides its other batches on the same GPU, however wide the interval is before. */
static void a_measured_step_narrows_other_batches(void **state)
{
    site *s = *state;
    static const double times[] = {0.6, 1, 1.5, 2.5};
    for (size_t t = 0; t < sizeof times / sizeof *times; t++) {
        for (int64_t batch = 4; batch <= 64; batch *= 2) {
            s->count = 0;
            add_row(s, "T4", batch, times[t]);
            mdot_calibration *calibration = calibrate(s);
            mdot_configuration c = s->c[0];
            c.batch = 2 * batch;
            mdot_prediction before = predict_one(&s->f, s->job, &c), after = before;
            assert_int_equal(mdot_calibration_apply_to_job(calibration, s->job, &c, &after, NULL), MDOT_OK);
            assert_compare(after.upper_ms, <=, 1.3 * after.lower_ms);
            assert_compare(after.upper_ms / after.lower_ms, <=, before.upper_ms / before.lower_ms);
            assert_compare(fabs(log(after.step_ms / before.step_ms / times[t])), <, 0.1);
            mdot_calibration_destroy(calibration);
        }
    }
}

static double factor_of(site *s, const mdot_calibration *calibration, const mdot_job *job, const mdot_configuration *c)
{
    mdot_prediction before = predict_one(&s->f, job, c), after = before;
    assert_int_equal(mdot_calibration_apply_to_job(calibration, job, c, &after, NULL), MDOT_OK);
    return after.step_ms / before.step_ms;
}

static void several_gpus_have_a_separate_factor(void **state)
{
    site *s = *state;
    for (int64_t i = 0; i < 8; i++) {
        add_row(s, "T4", 8 + i, 1);
        add_row_of(s, "T4", 2, 8 + i, 1.8);
    }
    mdot_calibration *calibration = calibrate(s);
    mdot_calibration_info info = info_of(calibration);
    assert_int_equal(info.row_count, 16);
    assert_int_equal(info.several_row_count, 8);
    assert_compare(info.several_factor, >, 1.1);
    assert_compare(info.several_factor, <, 1.8);
    mdot_configuration c = s->c[0];
    double one = factor_of(s, calibration, s->job, &c);
    if (!(one > 0.95 && one < 1.1)) fail_msg("%g", one);
    for (c.gpu_count = 2; c.gpu_count <= 4; c.gpu_count *= 2) {
        double several = factor_of(s, calibration, s->job, &c);
        if (!(several > (c.gpu_count == 2 ? 1.6 : 1.2) && several < 1.85)) fail_msg("%d: %g", c.gpu_count, several);
    }
    mdot_calibration_destroy(calibration);
}

static void an_outlier_hardly_counts(void **state)
{
    site *s = *state;
    mdot_job *other = predict_job(2, 7);
    for (int64_t i = 0; i < 12; i++) add_row(s, "T4", 8 + i, 1.2);
    mdot_configuration c = predict_configuration(64, "T4");
    c.attention = MDOT_ATTENTION_EAGER;
    mdot_calibration *before = calibrate(s);
    double expected = gpu_of(before, 0).factor;
    add_row(s, "T4", 64, 40);
    s->jobs[s->count - 1] = other;
    s->ms[s->count - 1] = 40 * predict_one(&s->f, other, &c).step_ms;
    mdot_calibration *after = calibrate(s);
    double factor = gpu_of(after, 0).factor;
    if (!(factor > expected / 1.2 && factor < expected * 1.5)) fail_msg("%g instead of %g", factor, expected);
    assert_compare(factor_of(s, after, other, &c), >, 10); /* and corrects its own job */
    mdot_calibration_destroy(before);
    mdot_calibration_destroy(after);
    mdot_job_destroy(other);
}

/* Contradictory rows widen the interval instead of narrowing it. */
static void contradictory_rows_widen_the_interval(void **state)
{
    site *s = *state;
    for (int64_t i = 0; i < 16; i++) add_row(s, "T4", 8 + i, i % 2 == 0 ? 6 : 1 / 6.0);
    mdot_calibration *calibration = calibrate(s);
    assert_compare(gpu_of(calibration, 0).interval, >, 1.5);
    assert_compare(gpu_of(calibration, 0).factor, >, 0.8);
    assert_compare(gpu_of(calibration, 0).factor, <, 1.25);
    mdot_calibration_destroy(calibration);
}

/* A step that waits for its data says nothing about the GPU. A calibration corrects the GPU's time alone, and answers
 * state the wait unless they have a rate of their own. */
static void waiting_for_data_is_not_the_gpus(void **state)
{
    site *s = *state;
    for (int64_t batch = 8; batch < 12; batch++) add_row(s, "T4", batch, 1.5);
    mdot_calibration *plain = calibrate(s), *read = NULL;
    for (size_t i = 0; i < 4; i++) s->c[i].loader_rate = 1e9; /* faster than the GPU */
    mdot_calibration *fast = calibrate(s);
    add_row(s, "T4", 16, 7);
    s->c[4].loader_rate = 16 / s->ms[4] * 1000;
    mdot_calibration *made = calibrate(s);
    char *folder = process_make_folder(), path[512];
    snprintf(path, sizeof path, "%s/site.cal", folder);
    assert_int_equal(mdot_calibration_save(made, path, NULL), MDOT_OK);
    assert_int_equal(mdot_calibration_load(path, &read, NULL), MDOT_OK);
    mdot_calibration *const each[] = {plain, fast, made, read};
    const double rates[] = {0, 1e9, 1};
    for (size_t i = 0; i < 12; i++) {
        mdot_configuration c = predict_configuration(32, "T4");
        mdot_prediction a = predict_one(&s->f, s->job, &c), b;
        c.loader_rate = rates[i / 4];
        b = predict_one(&s->f, s->job, &c);
        double watts = b.energy_joules / b.step_ms;
        assert_int_equal(mdot_calibration_apply_to_job(plain, s->job, &c, &a, NULL), MDOT_OK);
        assert_int_equal(mdot_calibration_apply_to_job(each[i % 4], s->job, &c, &b, NULL), MDOT_OK);
        predict_assert_close(b.gpu_ms, a.step_ms);
        predict_assert_close(b.step_ms, fmax(a.step_ms, b.loader_ms));
        predict_assert_close(b.upper_ms, fmax(a.upper_ms, b.loader_ms));
        predict_assert_close(b.energy_joules / b.step_ms, watts);
        assert_int_equal((b.warnings & MDOT_WARN_WAITED_FOR_DATA) != 0, i % 4 >= 2 && rates[i / 4] == 0);
    }
    for (size_t i = 0; i < 4; i++) mdot_calibration_destroy(each[i]);
    process_remove_folder(folder);
}

static void a_file_holds_the_whole_calibration(void **state)
{
    site *s = *state;
    for (int64_t i = 0; i < 6; i++) {
        add_row(s, "T4", 8 + i, 1.7);
        add_row_of(s, "H100", 2, 8 + i, 0.8);
    }
    mdot_calibration *made = calibrate(s), *read = NULL;
    char *folder = process_make_folder(), path[512];
    snprintf(path, sizeof path, "%s/site.cal", folder);
    assert_int_equal(mdot_calibration_save(made, path, NULL), MDOT_OK);
    assert_int_equal(mdot_calibration_load(path, &read, NULL), MDOT_OK);
    assert_string_equal(info_of(read).predictor, info_of(made).predictor);
    assert_int_equal(info_of(read).row_count, 12);
    assert_int_equal(info_of(read).several_row_count, 6);
    predict_assert_close(info_of(read).several_factor, info_of(made).several_factor);
    assert_compare(info_of(read).several_factor, <, 1);
    static const char *const gpus[] = {"T4", "H100", "A100"};
    for (size_t i = 0; i < 3; i++) {
        mdot_configuration c = predict_configuration(32, gpus[i]);
        c.gpu_count = 1 + (int64_t)i;
        mdot_prediction a = predict_one(&s->f, s->job, &c), b = a;
        assert_int_equal(mdot_calibration_apply_to_job(made, s->job, &c, &a, NULL), MDOT_OK);
        assert_int_equal(mdot_calibration_apply_to_job(read, s->job, &c, &b, NULL), MDOT_OK);
        predict_assert_close(b.step_ms, a.step_ms);
        predict_assert_close(b.lower_ms, a.lower_ms);
        predict_assert_close(b.upper_ms, a.upper_ms);
    }
    mdot_calibration_destroy(made);
    mdot_calibration_destroy(read);
    process_remove_folder(folder);
}

/* Makes a name from printable characters (one to four bytes each, perhaps cut in mid-character) and unprintable
 * bytes. */
static void make_name(uint32_t *seed, char *out, size_t most)
{
    static const char *const pieces[] = {"a", "Z", " ", "gpu", "0.5", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"},
                             *const others[] = {"\n", "\x1b", "\x7f", "\xc3", "\xe2\x80\xae", "\xf0\x9f"};
    size_t length = (*seed = *seed * 1664525 + 1013904223) >> 16 & 127, at = 0;
    bool is_wild = (*seed >> 8 & 3) == 0;
    while (at < length) {
        *seed = *seed * 1664525 + 1013904223;
        const char *piece = pieces[(*seed >> 16) % (sizeof pieces / sizeof *pieces)];
        if (is_wild && (*seed >> 28) == 0) piece = others[(*seed >> 16) % (sizeof others / sizeof *others)];
        if (at + strlen(piece) > most) break;
        memcpy(out + at, piece, strlen(piece));
        at += strlen(piece);
    }
    out[at] = '\0';
}

static void saved_calibrations_load_with_any_gpu_names(void **state)
{
    site *s = *state;
    enum { CASES = 300, ROWS = 4, MOST = 120 };
    char *folder = process_make_folder(), path[512], names[ROWS][MOST + 1];
    mdot_gpu gpus[ROWS];
    uint32_t seed = 7;
    int saved = 0;
    snprintf(path, sizeof path, "%s/site.cal", folder);
    for (int i = 0; i < CASES; i++) {
        forget_rows(state);
        for (size_t g = 0; g < ROWS; g++) {
            make_name(&seed, names[g], MOST);
            if (g == 3) snprintf(names[g], sizeof names[g], "%.*s!", (int)strlen(names[0]), names[0]);
            gpus[g] = (mdot_gpu)MDOT_INIT(mdot_gpu);
            assert_int_equal(mdot_gpu_find("T4", &gpus[g], NULL), MDOT_OK);
            gpus[g].name = names[g];
            add_row(s, "T4", 8 + (int64_t)g, 1.1 + 0.1 * (double)g);
            s->c[g].gpu = NULL;
            s->c[g].gpu_spec = &gpus[g];
        }
        mdot_calibration *made = NULL, *read = NULL;
        mdot_error err = {0};
        mdot_status status = mdot_calibrate(s->f.context, s->jobs, s->c, s->ms, ROWS, &made, &err);
        assert_true(status == MDOT_OK || status == MDOT_INVALID_ARGUMENT);
        if (status != MDOT_OK) continue;
        saved++;
        assert_int_equal(mdot_calibration_save(made, path, NULL), MDOT_OK);
        if (mdot_calibration_load(path, &read, &err) != MDOT_OK) fail_msg("%s: %s", err.message, names[0]);
        assert_int_equal(info_of(read).gpu_count, info_of(made).gpu_count);
        for (size_t g = 0; g < info_of(made).gpu_count; g++)
            assert_string_equal(gpu_of(read, g).name, gpu_of(made, g).name);
        for (size_t g = 0; g < ROWS; g++) { /* each GPU finds the right correction */
            mdot_prediction a = predict_one(&s->f, s->job, &s->c[g]), b = a;
            assert_int_equal(mdot_calibration_apply_to_job(made, s->job, &s->c[g], &a, NULL), MDOT_OK);
            assert_int_equal(mdot_calibration_apply_to_job(read, s->job, &s->c[g], &b, NULL), MDOT_OK);
            predict_assert_close(b.step_ms, a.step_ms);
        }
        mdot_calibration_destroy(made);
        mdot_calibration_destroy(read);
    }
    assert_in_range(saved, CASES / 4, CASES - 20);
    process_remove_folder(folder);
}

static void unprintable_names_are_refused(void **state)
{
    site *s = *state;
    static const char *const wrong[] = {"my\ngpu 9 64 4 9 64 4 H100-SXM-80GB", "red\x1b[31m", "cut\xc3",
                                        "\xe2\x80\xaeretsim"};
    mdot_calibration *none = calibrate(s), *calibration = NULL;
    mdot_gpu gpu = MDOT_INIT(mdot_gpu);
    assert_int_equal(mdot_gpu_find("T4", &gpu, NULL), MDOT_OK);
    add_row(s, "T4", 8, 1);
    mdot_prediction p = predict_one(&s->f, s->job, &s->c[0]), answer = MDOT_INIT(mdot_prediction);
    s->c[0].gpu = NULL;
    s->c[0].gpu_spec = &gpu;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        mdot_error err = {0};
        gpu.name = wrong[i];
        assert_int_equal(mdot_calibrate(s->f.context, s->jobs, s->c, s->ms, 1, &calibration, &err),
                         MDOT_INVALID_ARGUMENT);
        expect_contains(err.message, "the GPU's name \"");
        expect_contains(err.message, "printable UTF-8");
        for (const char *c = err.message; *c != '\0'; c++) {
            assert_compare(*c, >=, ' ');
            assert_compare(*c, <=, '~');
        }
        assert_int_equal(mdot_predict(s->f.context, s->job, &s->c[0], &answer, &err), MDOT_INVALID_ARGUMENT);
        assert_int_equal(mdot_calibration_apply_to_job(none, s->job, &s->c[0], &p, &err), MDOT_INVALID_ARGUMENT);
    }
    gpu.name = NULL;
    assert_int_equal(mdot_predict(s->f.context, s->job, &s->c[0], &answer, NULL), MDOT_OK);
    assert_int_equal(mdot_calibrate(s->f.context, s->jobs, s->c, s->ms, 1, &calibration, NULL), MDOT_INVALID_ARGUMENT);
    assert_null(calibration);
    mdot_calibration_destroy(none);
}

/* A stored prediction's numbers ascend, where neighbours may be equal, and the GPU's stay below the upper end. */
static void stored_predictions_must_ascend(void **state)
{
    site *s = *state;
    add_row(s, "T4", 8, 1);
    mdot_prediction p = predict_one(&s->f, s->job, &s->c[0]);
    for (int i = 0; i < 729; i++) {
        double n[6];
        for (int k = 0, rest = i; k < 6; k++, rest /= 3) n[k] = p.step_ms * (1 + rest % 3);
        mdot_prediction given = p;
        given.lower_ms = n[0], given.step_ms = n[1], given.upper_ms = n[2];
        given.gpu_lower_ms = n[3], given.gpu_ms = n[4], given.gpu_upper_ms = n[5];
        given.loader_ms = 1e-3; /* the caller states the GPU's numbers */
        bool is_valid = n[0] <= n[1] && n[1] <= n[2] && n[3] <= n[4] && n[4] <= n[5] && n[5] <= n[2];
        mdot_measurement row = {.struct_size = sizeof row,
                                .job = s->job,
                                .configuration = &s->c[0],
                                .step_ms = p.step_ms,
                                .prediction = &given};
        mdot_calibration *calibration = NULL;
        mdot_error err = {0};
        mdot_status status = mdot_calibrate_measured(s->f.context, &row, 1, &calibration, &err);
        if ((status == MDOT_OK) != is_valid) fail_msg("case %d: %s", i, err.message);
        mdot_calibration_destroy(calibration);
    }
}

/* Arrays end with their last row. */
static void rows_end_with_their_count(void **state)
{
    site *s = *state;
    for (size_t count = 0; count < 5; count++) {
        s->count = 0;
        for (size_t i = 0; i < count; i++) add_row(s, "T4", (int64_t)8 << i, 1.2);
        const mdot_job **jobs = count > 0 ? malloc(count * sizeof *jobs) : NULL;
        mdot_configuration *c = count > 0 ? malloc(count * sizeof *c) : NULL;
        for (size_t i = 0; i < count; i++) jobs[i] = s->jobs[i], c[i] = s->c[i];
        mdot_calibration *calibration = NULL;
        double *ms = count > 0 ? s->ms : NULL;
        assert_int_equal(mdot_calibrate(s->f.context, jobs, c, ms, count, &calibration, NULL), MDOT_OK);
        assert_int_equal(info_of(calibration).row_count, count);
        mdot_calibration_destroy(calibration);
        free(jobs), free(c);
    }
}

static void invalid_arguments_are_refused(void **state)
{
    site *s = *state;
    mdot_calibration *calibration = NULL;
    mdot_error err = {0};
    static const double wrong[] = {0, -1, NAN, INFINITY};
    add_row(s, "T4", 8, 1);
    add_row(s, "T4", 8, 1);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        s->ms[1] = wrong[i];
        assert_int_equal(mdot_calibrate(s->f.context, s->jobs, s->c, s->ms, 2, &calibration, &err),
                         MDOT_INVALID_ARGUMENT);
        assert_non_null(strstr(err.message, "row 1: "));
    }
    s->ms[1] = 1;
    s->c[1].batch = 0;
    assert_int_equal(mdot_calibrate(s->f.context, s->jobs, s->c, s->ms, 2, &calibration, &err), MDOT_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "row 1: "));
    assert_int_equal(mdot_calibrate(NULL, s->jobs, s->c, s->ms, 1, &calibration, &err), MDOT_INVALID_ARGUMENT);
    assert_int_equal(mdot_calibrate(s->f.context, NULL, s->c, s->ms, 1, &calibration, &err), MDOT_INVALID_ARGUMENT);
    assert_null(calibration);
    calibration = calibrate(&(site){.f = s->f});
    mdot_prediction p = predict_one(&s->f, s->job, &s->c[0]);
    static const double no_ms[] = {0, -1, NAN, INFINITY};
    for (size_t i = 0; i < sizeof no_ms / sizeof *no_ms; i++) { /* in a call for many, a refused pair is all 0 */
        double *const ms[] = {&p.step_ms, &p.lower_ms, &p.upper_ms, &p.gpu_ms, &p.gpu_lower_ms, &p.gpu_upper_ms};
        for (size_t k = 0; k < sizeof ms / sizeof *ms; k++) {
            const mdot_prediction answered = p;
            if (k >= 3) p.loader_ms = 1e-3;
            *ms[k] = no_ms[i];
            assert_int_equal(mdot_calibration_apply_to_job(calibration, s->job, &s->c[0], &p, &err),
                             MDOT_INVALID_ARGUMENT);
            expect_contains(err.message, "is invalid");
            p = answered;
        }
    }
    for (int i = 0; i < 2 * 27; i++) { /* three times of the step, or of the GPU, in any order and equal */
        mdot_prediction asked = p;
        if (i >= 27) asked.loader_ms = 1e-3;
        const double ms[] = {2, 3, 5}, lower = ms[i % 3], middle = ms[i / 3 % 3], upper = ms[i / 9 % 3];
        *(i < 27 ? &asked.lower_ms : &asked.gpu_lower_ms) = lower;
        *(i < 27 ? &asked.step_ms : &asked.gpu_ms) = middle;
        *(i < 27 ? &asked.upper_ms : &asked.gpu_upper_ms) = upper;
        mdot_status status = mdot_calibration_apply_to_job(calibration, s->job, &s->c[0], &asked, &err);
        assert_int_equal(status, lower <= middle && middle <= upper ? MDOT_OK : MDOT_INVALID_ARGUMENT);
    }
    mdot_calibration_factors f = MDOT_INIT(mdot_calibration_factors);
    const mdot_configuration *c = &s->c[0];
    for (int i = 0; i < 4; i++) { /* one argument is missing */
        err = (mdot_error){0};
        assert_int_equal(mdot_calibration_explain(i == 0 ? NULL : calibration, i == 1 ? NULL : c, NULL,
                                                  i == 2 ? NULL : &p, i == 3 ? NULL : &f, &err),
                         MDOT_INVALID_ARGUMENT);
        expect_contains(err.message, "calibration, configuration, prediction or out_factors is NULL");
        err = (mdot_error){0};
        assert_int_equal(mdot_calibration_apply_to_job(i == 0 ? NULL : calibration, i == 1 ? NULL : s->job,
                                                       i == 2 ? NULL : c, i == 3 ? NULL : &p, &err),
                         MDOT_INVALID_ARGUMENT);
        expect_contains(err.message, "calibration, job, configuration or prediction is NULL");
    }
    mdot_configuration unknown = predict_configuration(8, "B17");
    assert_int_equal(mdot_calibration_apply_to_job(calibration, s->job, &unknown, &p, &err), MDOT_INVALID_ARGUMENT);
    assert_int_equal(mdot_calibration_load("/nowhere.cal", &calibration, &err), MDOT_NOT_FOUND);
    mdot_calibration_gpu gpu = MDOT_INIT(mdot_calibration_gpu);
    assert_int_equal(mdot_calibration_get_gpu(calibration, 0, &gpu), MDOT_OUT_OF_RANGE);
    mdot_calibration_destroy(calibration);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(calibration_without_rows_changes_nothing, forget_rows),
        cmocka_unit_test_setup(more_rows_reduce_the_error, forget_rows),
        cmocka_unit_test_setup(a_measured_step_narrows_other_batches, forget_rows),
        cmocka_unit_test_setup(gpus_have_separate_factors, forget_rows),
        cmocka_unit_test_setup(common_factors_extend_to_other_gpus, forget_rows),
        cmocka_unit_test_setup(several_gpus_have_a_separate_factor, forget_rows),
        cmocka_unit_test_setup(an_outlier_hardly_counts, forget_rows),
        cmocka_unit_test_setup(contradictory_rows_widen_the_interval, forget_rows),
        cmocka_unit_test_setup(waiting_for_data_is_not_the_gpus, forget_rows),
        cmocka_unit_test_setup(a_file_holds_the_whole_calibration, forget_rows),
        cmocka_unit_test_setup(saved_calibrations_load_with_any_gpu_names, forget_rows),
        cmocka_unit_test_setup(unprintable_names_are_refused, forget_rows),
        cmocka_unit_test_setup(stored_predictions_must_ascend, forget_rows),
        cmocka_unit_test_setup(rows_end_with_their_count, forget_rows),
        cmocka_unit_test_setup(invalid_arguments_are_refused, forget_rows),
    };
    return cmocka_run_group_tests(tests, open_site, close_site);
}
