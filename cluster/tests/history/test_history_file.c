/* test_history_file.c — a history in a file. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <unistd.h>

#include "history/mdot_history.h"
#include "tests/simulator/support/numbers.h"

static char folder[] = "/tmp/mdot_history_XXXXXX";
static char path[64];

static mdot_history *make(void)
{
    mdot_history_options o = {.struct_size = sizeof o, .half_life_s = 1e6, .hash_seed = {3, 4}};
    mdot_history *h = NULL;
    assert_int_equal(mdot_history_create(&o, &h, NULL), MDOT_OK);
    for (int i = 0; i < 500; i++) {
        char user[8];
        snprintf(user, sizeof user, "u%d", i % 7);
        mdot_history_job job = {
            .struct_size = sizeof job, .user = user, .name = "n", .gpus = 1 + i % 3, .submit_s = 1000. * i};
        double duration_s = 100 * (1 + i % 7) + i % 11;
        assert_int_equal(mdot_history_add(h, &job, (mdot_ended)(i % 4), duration_s, job.submit_s + duration_s, NULL),
                         MDOT_OK);
    }
    return h;
}

static mdot_history_estimate ask(const mdot_history *h, const char *user)
{
    mdot_history_job job = {.struct_size = sizeof job, .user = user, .name = "n", .gpus = 2, .submit_s = 6e5};
    mdot_history_estimate e = MDOT_INIT(mdot_history_estimate);
    assert_int_equal(mdot_history_ask(h, &job, &e, NULL), MDOT_OK);
    return e;
}

static void a_file_gives_the_same_estimates(void **state)
{
    (void)state;
    static const char *const users[] = {"u1", "u5", "other"};
    mdot_history *h = make(), *read = NULL;
    assert_int_equal(mdot_history_save(h, path, NULL), MDOT_OK);
    assert_int_equal(mdot_history_load(path, NULL, &read, NULL), MDOT_OK);
    for (size_t i = 0; i < 3; i++) {
        mdot_history_estimate a = ask(h, users[i]), b = ask(read, users[i]);
        expect_number(a.median_s, b.median_s);
        expect_number(a.lower_scale, b.lower_scale);
        expect_number(a.upper_scale, b.upper_scale);
        expect_number(a.degrees, b.degrees);
        expect_number(a.early_failure, b.early_failure);
        expect_number(a.failure_s, b.failure_s);
        expect_number(a.key, b.key);
        expect_number(a.weight, b.weight);
    }
    mdot_history_destroy(h);
    mdot_history_destroy(read);
}

static void a_smaller_table_keeps_the_latest_keys(void **state)
{
    (void)state;
    mdot_history *h = make(), *read = NULL;
    mdot_history_options o = {.struct_size = sizeof o, .most_keys = 64};
    assert_int_equal(mdot_history_save(h, path, NULL), MDOT_OK);
    assert_int_equal(mdot_history_load(path, &o, &read, NULL), MDOT_OK);
    assert_true(ask(read, "u1").weight > 0);
    mdot_history_destroy(h);
    mdot_history_destroy(read);
}

static void a_missing_file_is_not_found(void **state)
{
    (void)state;
    mdot_history *h = NULL;
    assert_int_equal(mdot_history_load("/tmp/mdot_history_missing", NULL, &h, NULL), MDOT_NOT_FOUND);
    assert_null(h);
}

/* Cuts the file at every hundredth byte, and replaces bytes. Nothing but whole files and whole lines is read. */
static void damaged_files_are_refused(void **state)
{
    (void)state;
    mdot_history *h = make(), *read = NULL;
    static char text[1 << 20];
    assert_int_equal(mdot_history_save(h, path, NULL), MDOT_OK);
    mdot_history_destroy(h);
    FILE *file = fopen(path, "rb");
    size_t bytes = fread(text, 1, sizeof text, file);
    fclose(file);
    assert_true(bytes > 5000);
    assert_true(bytes < sizeof text);
    for (size_t cut = 0; cut < bytes; cut += 101) {
        if (cut > 0 && text[cut - 1] == '\n') continue;
        file = fopen(path, "wb");
        fwrite(text, 1, cut, file);
        fclose(file);
        mdot_error err = {0};
        assert_int_equal(mdot_history_load(path, NULL, &read, &err), MDOT_MALFORMED);
        assert_non_null(strstr(err.message, path));
    }
    static const char bad[] = "x\n -,n";
    for (size_t position = 0; position < bytes; position += 211) {
        char kept = text[position];
        text[position] = bad[position % 6];
        file = fopen(path, "wb");
        fwrite(text, 1, bytes, file);
        fclose(file);
        text[position] = kept;
        if (mdot_history_load(path, NULL, &read, NULL) != MDOT_OK) continue; /* a "-" may make another number */
        mdot_history_estimate e = ask(read, "u1");
        assert_true(e.median_s > 0);
        assert_true(isfinite(e.median_s));
        mdot_history_destroy(read);
        read = NULL;
    }
}

/* Weights and spreads of a key are at least 0: the second number of its line, and the fifth to eighth. */
static void negative_weights_are_refused(void **state)
{
    static const int columns[] = {2, 5, 6, 7, 8};
    static char text[1 << 20], line[4096];
    mdot_history *h = make(), *read = NULL;
    assert_int_equal(mdot_history_save(h, path, NULL), MDOT_OK);
    mdot_history_destroy(h);
    FILE *file = fopen(path, "rb");
    size_t bytes = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[bytes] = '\0';
    text[bytes - 1] = '\0';
    char *last = strrchr(text, '\n') + 1;
    for (size_t k = 0; k <= sizeof columns / sizeof *columns; k++) { /* the last round changes nothing */
        char *rest = strcpy(line, last);
        file = fopen(path, "wb");
        fwrite(text, 1, (size_t)(last - text), file);
        for (int column = 0; rest != NULL; column++) {
            char *word = strsep(&rest, " ");
            bool is_changed = k < sizeof columns / sizeof *columns && column == columns[k];
            fprintf(file, "%s%s", is_changed ? "-0.5" : word, rest != NULL ? " " : "\n");
        }
        fclose(file);
        mdot_error err = {0};
        mdot_status status = mdot_history_load(path, NULL, &read, &err);
        if (k == sizeof columns / sizeof *columns) break;
        assert_int_equal(status, MDOT_MALFORMED);
        assert_non_null(strstr(err.message, "weights of at least 0"));
    }
    assert_non_null(read);
    mdot_history_destroy(read);
    (void)state;
}

static int set_up(void **state)
{
    (void)state;
    if (mkdtemp(folder) == NULL) return -1;
    snprintf(path, sizeof path, "%s/history", folder);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static void write_text(const char *text, size_t bytes)
{
    FILE *file = fopen(path, "wb");
    fwrite(text, 1, bytes, file);
    fclose(file);
}

static size_t read_text(char *out, size_t most)
{
    FILE *file = fopen(path, "rb");
    size_t bytes = fread(out, 1, most - 1, file);
    fclose(file);
    out[bytes] = '\0';
    return bytes;
}

static mdot_history *filled(const mdot_history_options *o, int jobs)
{
    mdot_history *h = NULL;
    assert_int_equal(mdot_history_create(o, &h, NULL), MDOT_OK);
    for (int i = 0; i < jobs; i++) {
        char user[8];
        snprintf(user, sizeof user, "u%d", i % 5);
        mdot_history_job job = {.struct_size = sizeof job, .user = user, .name = "n", .submit_s = 1000. * i};
        assert_int_equal(mdot_history_add(h, &job, (mdot_ended)(i % 4), 40 + 7 * i % 90, job.submit_s + 130, NULL),
                         MDOT_OK);
    }
    return h;
}

/* A history that was read is written as the same bytes, with the options of the file, whatever the reader asks for. */
static void a_file_read_and_written_is_the_same(void **state)
{
    (void)state;
    static char texts[2][1 << 20];
    for (int i = 0; i < 12; i++) {
        mdot_history_options o = {
            .struct_size = sizeof o, .half_life_s = 60 + 1e4 * i, .hash_seed = {7 * (uint64_t)i, ~(uint64_t)i}};
        mdot_history_options other = {.struct_size = sizeof other, .half_life_s = 777, .hash_seed = {1, 1}};
        size_t bytes[2];
        mdot_history *h = filled(&o, 30 * i);
        for (int round = 0; round < 2; round++) {
            assert_int_equal(mdot_history_save(h, path, NULL), MDOT_OK);
            mdot_history_destroy(h);
            bytes[round] = read_text(texts[round], sizeof texts[round]);
            assert_int_equal(mdot_history_load(path, &other, &h, NULL), MDOT_OK);
        }
        assert_int_equal(bytes[0], bytes[1]);
        assert_memory_equal(texts[0], texts[1], bytes[0]);
        mdot_history_destroy(h);
    }
}

/* Replaces the word `column` of line `line`, both counted from 0, and loads. */
static mdot_status load_changed(const char *text, int line, int column, const char *word, mdot_error *err)
{
    static char changed[1 << 20];
    const char *at = text;
    for (int i = 0; i < line; i++) at = strchr(at, '\n') + 1;
    for (int i = 0; i < column; i++) at += strcspn(at, " \n") + 1;
    size_t before = (size_t)(at - text);
    snprintf(changed, sizeof changed, "%.*s%s%s", (int)before, text, word, at + strcspn(at, " \n"));
    write_text(changed, strlen(changed));
    mdot_history *h = NULL;
    mdot_status status = mdot_history_load(path, NULL, &h, err);
    assert_int_equal(h != NULL, status == MDOT_OK);
    mdot_history_destroy(h);
    return status;
}

/* Expects an error that names the changed line. */
static void expect_refusal(const char *text, int line, int column, const char *word)
{
    mdot_error err = {0};
    char place[32];
    snprintf(place, sizeof place, "history:%d: ", line + 1);
    assert_int_equal(load_changed(text, line, column, word, &err), MDOT_MALFORMED);
    assert_non_null(strstr(err.message, place));
}

/* Each word of a small history may be damaged, and each number of the learning may not be negative. */
static void every_damaged_word_is_refused_with_its_line(void **state)
{
    (void)state;
    static char text[1 << 20];
    static const char *const no_numbers[] = {"", "x", "nan", "inf", "-inf", "1x", "--1"};
    static const char *const no_hashes[] = {"", "g", "00000000000000001", "-1", "A", "+1", "\t1"};
    mdot_history_options o = {.struct_size = sizeof o, .half_life_s = 60};
    mdot_history *h = filled(&o, 3);
    assert_int_equal(mdot_history_save(h, path, NULL), MDOT_OK);
    mdot_history_destroy(h);
    read_text(text, sizeof text);
    int line = 0;
    for (const char *at = text; *at != '\0'; at = strchr(at, '\n') + 1, line++) {
        int words = 1;
        for (const char *c = at; *c != '\n'; c++) words += *c == ' ';
        for (int column = line == 0 ? words : 0; column < words; column++) {
            if (words > 20 && column % 31 != 0) continue;
            bool is_hash = line == 1 || (line > 3 && column == 0);
            for (size_t i = 0; i < 7; i++) expect_refusal(text, line, column, (is_hash ? no_hashes : no_numbers)[i]);
            if (line == 3) expect_refusal(text, line, column, "-1e-9");
            if (line > 3 && column == 0) expect_refusal(text, line, column, "12");
            bool is_weight = line > 3 && (column == 2 || (column > 4 && column < 9));
            if (is_weight) expect_refusal(text, line, column, "-1e-9");
            static const char *const numbers[] = {"0", "1e-9", "0.5", "1", "7e5"};
            for (size_t i = 0; i < 5 && (is_weight || line == 3); i++)
                assert_int_equal(load_changed(text, line, column, numbers[i], NULL), MDOT_OK);
        }
        if (line == 2) expect_refusal(text, line, 0, "59.999");
        if (line == 2) assert_int_equal(load_changed(text, line, 0, "60", NULL), MDOT_OK);
    }
    expect_refusal(text, 0, 0, "mdot_history");
    write_text(text, strlen(text)); /* and the unchanged text is read */
    assert_int_equal(mdot_history_load(path, NULL, &h, NULL), MDOT_OK);
    mdot_history_destroy(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_gives_the_same_estimates),
        cmocka_unit_test(a_smaller_table_keeps_the_latest_keys),
        cmocka_unit_test(a_missing_file_is_not_found),
        cmocka_unit_test(damaged_files_are_refused),
        cmocka_unit_test(negative_weights_are_refused),
        cmocka_unit_test(a_file_read_and_written_is_the_same),
        cmocka_unit_test(every_damaged_word_is_refused_with_its_line),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
