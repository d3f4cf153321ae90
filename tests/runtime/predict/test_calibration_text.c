/* test_calibration_text.c — files of calibrations that are too large, malformed, or at their limits. */
#include "tests/support/assertions.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "mdot/mdot.h"
#include "tests/support/process.h"

static mdot_status parse(const char *text, mdot_calibration **out, mdot_error *err)
{
    return mdot_calibration_parse(text, strlen(text), out, err);
}

static void oversized_files_are_refused_unread(void **state)
{
    char *folder = process_make_folder(), path[512];
    snprintf(path, sizeof path, "%s/site.cal", folder);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(ftruncate(fileno(file), (off_t)1 << 40), 0);
    fclose(file);
    mdot_calibration *calibration = NULL;
    mdot_error err = {0};
    assert_int_equal(mdot_calibration_load(path, &calibration, &err), MDOT_MALFORMED);
    expect_contains(err.message, "the maximum is 16777216");
    assert_null(calibration);
    process_remove_folder(folder);
}

#define HEAD "mdot-calibration 5\npredictor p\nrows 3 1\n"
#define SHARES " 4000 0 6000 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0"
#define JOB_1 "job 00000000000000a1" SHARES "\n"
#define JOB_2 "job 00000000000000b2" SHARES "\n"
#define GPU "gpu 2 1 0 0 T4\ntime 1 0\nmemory 1 0\n"
#define STEP_AT(job, batch, residual)                                                                                  \
    "step " job " 0 0 204 1 0 00000000000000ff " batch " 0.25 2 0.1 " residual " 0 1 0.2 0.1 0\n"
#define STEP STEP_AT("00000000000000a1", "8", "0.3")

static void malformed_files_are_refused_by_line(void **state)
{
    static const char whole[] =
        HEAD JOB_1 JOB_2 GPU STEP STEP_AT("00000000000000b2", "8", "-0.3") STEP_AT("-", "16", "0.2");
    static const struct {
        const char *text, *message;
        mdot_status status;
    } wrong[] = {
        {"", "line 1 ", MDOT_MALFORMED},
        {"mdot-calibration 4\n", "make it again from the measured steps", MDOT_INCOMPATIBLE},
        {"mdot-calibration 5\n", "line 2 ", MDOT_MALFORMED},
        {"mdot-calibration 5\npredictor \nrows 3 0\n", "line 2 ", MDOT_MALFORMED},
        {"mdot-calibration 5\npredictor \033[2J\nrows 3 0\n", "unprintable", MDOT_MALFORMED},
        {"mdot-calibration 5\npredictor p\nrows -1 0\n", "line 3 ", MDOT_MALFORMED},
        {"mdot-calibration 5\npredictor p\nrows 1.5 0\n", "fraction", MDOT_MALFORMED},
        {HEAD "job a1" SHARES "\n", "16 hexadecimal digits", MDOT_MALFORMED},
        {HEAD "job 00000000000000a1 1 2\n", "line 4 ", MDOT_MALFORMED},
        {HEAD "job 00000000000000a1" SHARES " 1 7\n", "extra text", MDOT_MALFORMED},
        {HEAD "job 00000000000000a1" SHARES " 2\n", "a number from 0 to 1", MDOT_MALFORMED},
        {HEAD JOB_2 JOB_1, "larger digest", MDOT_MALFORMED},
        {HEAD JOB_1 JOB_1, "larger digest", MDOT_MALFORMED},
        {HEAD JOB_1 "else\n", "begin with \"gpu\"", MDOT_MALFORMED},
        {HEAD JOB_1 "gpu 1 1 T4\n", "line 5 ", MDOT_MALFORMED},
        {HEAD JOB_1 "gpu 1 1 0 2 T4\n", "line 5 ", MDOT_MALFORMED},
        {HEAD JOB_1 "gpu 1 1 0 0 \n", "line 5 ", MDOT_MALFORMED},
        {HEAD JOB_1 "gpu 1 1 0 0 T4\ntime 17 0\n", "line 6 ", MDOT_MALFORMED},
        {HEAD JOB_1 "gpu 1 1 0 0 T4\ntime 1 0\n", "line 7 ", MDOT_MALFORMED},
        {HEAD JOB_1 GPU STEP GPU, "repeats a GPU", MDOT_MALFORMED},
        {HEAD JOB_1 GPU STEP_AT("00000000000000b2", "8", "0.3"), "names a job that has no line", MDOT_MALFORMED},
        {HEAD JOB_1 GPU STEP_AT("00000000000000a1", "0", "0.3"), "line 8 ", MDOT_MALFORMED},
        {HEAD JOB_1 GPU STEP_AT("00000000000000a1", "nan", "0.3"), "line 8 ", MDOT_MALFORMED},
        {HEAD JOB_1 GPU STEP_AT("00000000000000a1", "8", "7"), "line 8 ", MDOT_MALFORMED},
        {HEAD JOB_1 GPU STEP_AT("00000000000000a1", "8", "inf"), "line 8 ", MDOT_MALFORMED},
        {HEAD JOB_1 JOB_2 GPU STEP_AT("00000000000000b2", "8", "0.3") STEP, "out of order", MDOT_MALFORMED},
    };
    mdot_calibration *calibration = NULL;
    mdot_error err = {0};
    assert_int_equal(parse(whole, &calibration, &err), MDOT_OK);
    mdot_calibration_destroy(calibration);
    calibration = NULL;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(parse(wrong[i].text, &calibration, &err), wrong[i].status);
        if (strstr(err.message, wrong[i].message) == NULL) fail_msg("%s\n: %s", wrong[i].text, err.message);
    }
    /* cut at every byte except the last, and with a zero byte inserted */
    for (size_t length = 0; length + 1 < sizeof whole; length++) {
        mdot_status status = mdot_calibration_parse(whole, length, &calibration, &err);
        const char *next = whole + length;
        bool ends = length > 0 && next[-1] == '\n' &&
                    (strncmp(next, "step ", 5) == 0 || strncmp(next, "gpu ", 4) == 0 || strncmp(next, "job ", 4) == 0);
        assert_int_equal(status, ends ? MDOT_OK : MDOT_MALFORMED);
        if (ends) mdot_calibration_destroy(calibration);
    }
    assert_int_equal(mdot_calibration_parse(whole, sizeof whole, &calibration, &err), MDOT_MALFORMED);
    assert_non_null(strstr(err.message, "zero byte"));
    assert_int_equal(mdot_calibration_parse(NULL, 0, &calibration, &err), MDOT_MALFORMED);
    assert_int_equal(mdot_calibration_parse(NULL, 1, &calibration, &err), MDOT_INVALID_ARGUMENT);
}

/* Names of GPUs are distinct, whichever of them is repeated. */
static void any_repeated_gpu_is_refused(void **state)
{
    (void)state;
    for (int count = 1; count <= 6; count++) {
        for (int repeated = 0; repeated <= count; repeated++) {
            char text[4096] = HEAD JOB_1;
            for (int i = 0; i <= count; i++)
                snprintf(text + strlen(text), sizeof text - strlen(text),
                         "gpu 0 0 0 0 GPU%d\ntime 1 0\nmemory 1 0\n" STEP, i == count ? repeated : i);
            mdot_calibration *calibration = NULL;
            mdot_error err = {0};
            assert_int_equal(parse(text, &calibration, &err), repeated < count ? MDOT_MALFORMED : MDOT_OK);
            if (repeated < count) expect_contains(err.message, "repeats a GPU");
            mdot_calibration_destroy(calibration);
        }
    }
}

/* One number of a line: its least and largest value. A whole number allows no fraction. */
typedef struct column {
    double least, most;
    bool is_whole;
} column;

/* Replaces number `k` of line `number` (from 1, words from 0), and parses. Returns the refusal, or "" after success.
 * Then the saved text has the same value, and is read and saved as itself. */
static const char *with_word(const char *text, int number, int k, const char *word)
{
    static mdot_error err;
    static char changed[4096];
    const char *at = text;
    for (int i = 1; i < number; i++) at = strchr(at, '\n') + 1;
    for (int i = 0; i < k; i++) at += strcspn(at, " \n") + 1;
    snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, word, at + strcspn(at, " \n"));
    static char saved[2][4096];
    const char *read = changed;
    char *folder = process_make_folder(), path[512];
    snprintf(path, sizeof path, "%s/a.cal", folder);
    for (int round = 0; round < 2; round++) {
        mdot_calibration *calibration = NULL;
        if (parse(read, &calibration, &err) != MDOT_OK) {
            process_remove_folder(folder);
            return err.message;
        }
        assert_int_equal(mdot_calibration_save(calibration, path, &err), MDOT_OK);
        mdot_calibration_destroy(calibration);
        FILE *file = fopen(path, "r");
        memset(saved[round], 0, sizeof saved[round]);
        assert_true(fread(saved[round], 1, sizeof saved[round] - 1, file) > 0);
        fclose(file);
        read = saved[round];
    }
    process_remove_folder(folder);
    assert_string_equal(saved[0], saved[1]);
    at = saved[0];
    for (int i = 1; i < number; i++) at = strchr(at, '\n') + 1;
    for (int i = 0; i < k; i++) at += strcspn(at, " \n") + 1;
    assert_true(strtod(at, NULL) == strtod(word, NULL));
    size_t before = (size_t)(at - saved[0]); /* and all else is as it was */
    assert_int_equal(strncmp(saved[0], changed, before), 0);
    assert_string_equal(at + strcspn(at, " \n"), changed + before + strcspn(changed + before, " \n"));
    return "";
}

/* Every number may have its limits, and nothing beyond or beside them; a refusal names the line. */
static void every_number_has_its_limits(void **state)
{
    (void)state;
    static const char whole[] = HEAD JOB_1 "job 00000000000000b2" SHARES " 1\n" GPU STEP; /* the second one waits */
    enum { ROWS = 1 << 24 };
    static const column gpu[] = {{0, ROWS, true}, {0, ROWS, true}, {0, ROWS, true}, {0, 1, true}},
                        scales[] = {{1e-6, 16, false}, {0, 1, false}},
                        step[] = {{0, 64, true},   {0, 64, true},     {0, 9999, true},  {0, 1 << 16, true},
                                  {0, 64, true},   {NAN, NAN, false}, {1, ROWS, false}, {0, 1, false},
                                  {0, ROWS, true}, {.005, 4, false},  {-6, 6, false},   {0, 1e4, false},
                                  {0, ROWS, true}, {.005, 4, false},  {-6, 6, false},   {0, 1e4, false}};
    static const struct {
        int line, first;
        const column *columns;
        int count;
    } lines[] = {{6, 1, gpu, 4}, {7, 1, scales, 2}, {8, 1, scales, 2}, {9, 2, step, 16}};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        for (int k = 0; k < lines[i].count; k++) {
            const column *c = &lines[i].columns[k];
            char place[32], word[64];
            snprintf(place, sizeof place, "line %d ", lines[i].line);
            static const char *const never[] = {"", "x", "nan", "inf", "-inf", "1x", "--1", "1e400"};
            for (size_t w = 0; w < sizeof never / sizeof *never; w++)
                expect_contains(with_word(whole, lines[i].line, lines[i].first + k, never[w]), place);
            if (isnan(c->least)) continue; /* digits of a hash */
            for (int side = 0; side < 2; side++) {
                double limit = side == 0 ? c->least : c->most;
                snprintf(word, sizeof word, "%.17g", limit);
                const char *message = with_word(whole, lines[i].line, lines[i].first + k, word);
                if (*message != '\0') fail_msg("line %d, number %d: %s: %s", lines[i].line, k, word, message);
                double beyond =
                    c->is_whole ? limit + (side == 0 ? -1 : 1) : nextafter(limit, side == 0 ? -INFINITY : INFINITY);
                snprintf(word, sizeof word, "%.17g", beyond);
                expect_contains(with_word(whole, lines[i].line, lines[i].first + k, word), place);
            }
            if (c->is_whole) expect_contains(with_word(whole, lines[i].line, lines[i].first + k, "0.5"), place);
        }
}

static void files_respect_their_limits(void **state)
{
    enum { MOST_GPUS = 64, MOST_STEPS = 512, MOST_BYTES = 1 << 24 };
    char *text = calloc(1, MOST_BYTES + 2);
    assert_non_null(text);
    mdot_calibration *calibration = NULL;
    mdot_error err = {0};
    for (int gpus = MOST_GPUS; gpus <= MOST_GPUS + 1; gpus++) {
        size_t used = (size_t)sprintf(text, "%s", HEAD);
        for (int i = 0; i < gpus; i++)
            used += (size_t)sprintf(text + used, "gpu 0 0 0 0 card %d\ntime 1 0\nmemory 1 0\n", i);
        mdot_status status = parse(text, &calibration, &err);
        assert_int_equal(status, gpus == MOST_GPUS ? MDOT_OK : MDOT_MALFORMED);
        if (status == MDOT_OK) mdot_calibration_destroy(calibration);
    }
    for (int steps = MOST_STEPS; steps <= MOST_STEPS + 1; steps++) {
        size_t used = (size_t)sprintf(text, "%s", HEAD JOB_1 GPU);
        for (int i = 0; i < steps; i++) used += (size_t)sprintf(text + used, "%s", STEP);
        mdot_status status = parse(text, &calibration, &err);
        assert_int_equal(status, steps == MOST_STEPS ? MDOT_OK : MDOT_MALFORMED);
        if (status == MDOT_OK) mdot_calibration_destroy(calibration);
    }
    /* Every GPU has as many steps as it may have. Steps without rows need no fit. */
    size_t whole = (size_t)sprintf(text, "%s", HEAD JOB_1);
    for (int i = 0; i < MOST_GPUS; i++) {
        whole += (size_t)sprintf(text + whole, "gpu 0 0 0 0 card %d\ntime 1 0\nmemory 1 0\n", i);
        for (int k = 0; k < MOST_STEPS; k++)
            whole += (size_t)sprintf(text + whole, "%s",
                                     "step 00000000000000a1 2 1 204 64 1 00000000000000ff 1234.56789 0.123456789 0 "
                                     "0.123456789 -0.123456789 12.3456789 0 0.123456789 -0.123456789 12.3456789\n");
    }
    assert_compare(whole, >, 1 << 22);
    assert_int_equal(parse(text, &calibration, &err), MDOT_OK);
    mdot_calibration_destroy(calibration);
    memset(text, 'x', MOST_BYTES + 1);
    assert_int_equal(mdot_calibration_parse(text, MOST_BYTES + 1, &calibration, &err), MDOT_MALFORMED);
    assert_non_null(strstr(err.message, "size limit"));
    assert_int_equal(mdot_calibration_parse(NULL, 1, &calibration, &err), MDOT_INVALID_ARGUMENT);
    assert_int_equal(mdot_calibration_parse(text, 1, NULL, &err), MDOT_INVALID_ARGUMENT);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(oversized_files_are_refused_unread), cmocka_unit_test(malformed_files_are_refused_by_line),
        cmocka_unit_test(any_repeated_gpu_is_refused),        cmocka_unit_test(every_number_has_its_limits),
        cmocka_unit_test(files_respect_their_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
