/* test_configuration_table.c — the training option table: it covers mdot_configuration, the ranges are enforced, and
 * the public header documents the same. The test `tables` compares the documents and the Python module with it. */
#include "runtime/job/configuration.h"
#include "runtime/job/configuration_table.h"
#include "tests/support/assertions.h"
#include "tests/support/process.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static mdot_status read_status(mdot_configuration c, mdot_error *err)
{
    rt_gpu_names names = {0};
    rt_configuration complete;
    return rt_configuration_read(&c, 0, &names, &complete, err);
}

static mdot_configuration valid(void)
{
    return (mdot_configuration){.struct_size = sizeof(mdot_configuration), .batch = 8, .gpu = "A100"};
}

static void each_member_of_the_struct_has_one_row(void **state)
{
    (void)state;
    unsigned char rows[sizeof(mdot_configuration)] = {0};
    for (size_t i = 0; i < RT_OPTION_COUNT; i++)
        for (size_t k = 0; k < rt_options[i].size_bytes; k++) rows[rt_options[i].offset + k]++;
    size_t end = sizeof rows; /* the last member's; padding may follow */
    while (rows[end - 1] == 0 && end > offsetof(mdot_configuration, batch)) end--;
    for (size_t at = offsetof(mdot_configuration, batch); at < end; at++)
        if (rows[at] != 1) fail_msg("byte %zu of mdot_configuration belongs to %d rows", at, rows[at]);
    assert_compare(sizeof rows - end, <, sizeof(double));
}

static void expect_value_refused(const rt_option *option, double value)
{
    mdot_configuration c = valid();
    mdot_error err = {0};
    char name[64];
    rt_option_set(&c, option, value);
    snprintf(name, sizeof name, "%s is ", rt_option_label_of(option).text);
    if (read_status(c, &err) != MDOT_INVALID_ARGUMENT) fail_msg("%s accepts %g", option->field, value);
    expect_contains(err.message, name);
}

static void values_outside_the_range_are_refused_by_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < RT_OPTION_COUNT; i++) {
        const rt_option *option = &rt_options[i];
        if (option->kind == RT_KIND_GPU) continue;
        expect_value_refused(option, option->kind == RT_KIND_REAL ? 2 * option->most : option->most + 1);
        if (option->kind == RT_KIND_REAL) expect_value_refused(option, option->least / 2);
        if (option->least > 1) expect_value_refused(option, option->least - 1);
        if (option->least == 1 && !option->accepts_zero) expect_value_refused(option, 0);
    }
}

/* Values that need another one beside them, such as a GPU with NVLink, are in test_predict.c. */
static void defaults_are_accepted(void **state)
{
    (void)state;
    mdot_configuration c = valid();
    mdot_error err = {0};
    for (size_t i = 0; i < RT_OPTION_COUNT; i++)
        if (rt_options[i].section != RT_SECTION_JOB) rt_option_set(&c, &rt_options[i], rt_options[i].fallback);
    if (read_status(c, &err) != MDOT_OK) fail_msg("%s", err.message);
    assert_int_equal(c.precision, MDOT_PRECISION_PYTORCH);
}

static void values_are_stored_in_their_members(void **state)
{
    (void)state;
    for (size_t i = 0; i < RT_OPTION_COUNT; i++) {
        mdot_configuration c = {0}, zero = {0};
        rt_option_set(&c, &rt_options[i], 3);
        assert_compare(rt_option_get(&c, &rt_options[i]), ==, rt_options[i].kind == RT_KIND_GPU ? 0 : 3);
        rt_option_set(&c, &rt_options[i], 0);
        assert_memory_equal(&c, &zero, sizeof c);
    }
}

static void inputs_are_those_of_the_public_map(void **state)
{
    (void)state;
    static const char *const names[] = {
#define NAME(id, name) name,
        MDOT_CONFIGURATION_MAP(NAME)
#undef NAME
    };
    assert_int_equal(RT_OPTION_INPUT_COUNT, sizeof names / sizeof *names);
    for (size_t i = 0; i < RT_OPTION_INPUT_COUNT; i++) {
        const rt_option *option = &rt_options[rt_option_inputs[i].option];
        assert_string_equal(rt_option_inputs[i].name, names[i]);
        assert_true(option->choices != NULL ? rt_option_inputs[i].ones != 0 : rt_option_inputs[i].ones == 0);
        if (option->choices != NULL) assert_compare(rt_option_inputs[i].ones >> 1, <=, 1u << (int)option->most);
    }
}

static void each_synonym_stands_for_a_choice(void **state)
{
    (void)state;
    for (size_t i = 0; i < RT_OPTION_COUNT; i++)
        for (const bs_choice_word *w = rt_options[i].words; w != NULL && w->word != NULL; w++) {
            const char *const *name = rt_options[i].choices;
            while (*name != NULL && strcmp(*name, w->name) != 0) name++;
            if (*name == NULL)
                fail_msg("%s: %s stands for %s, which is no choice", rt_options[i].field, w->word, w->name);
        }
}

/* Each accepted word is found in any case, with either dash, and behind a dotted name. */
static void each_word_is_accepted_or_only_suggested(void **state)
{
    (void)state;
    for (size_t i = 0; i < RT_OPTION_COUNT; i++)
        for (const bs_choice_word *w = rt_options[i].words; w != NULL && w->word != NULL; w++) {
            char changed[64];
            snprintf(changed, sizeof changed, "some.package.%s", w->word);
            int found = rt_option_find_choice(&rt_options[i], changed);
            for (char *c = changed; *c != '\0'; c++) *c = *c == '-' ? '_' : (char)toupper((unsigned char)*c);
            assert_int_equal(found, rt_option_find_choice(&rt_options[i], changed));
            assert_int_equal(found, rt_option_find_choice(&rt_options[i], w->word));
            assert_int_equal(found, w->is_same ? bs_find_choice(w->name, rt_options[i].choices, NULL) : BS_NO_CHOICE);
        }
}

/* A word for one option is neither another word's nor an option's name, and stands for an option. */
static void each_foreign_option_stands_for_one_option(void **state)
{
    (void)state;
    static const char *const of_commands[] = {
        "length",  "global-batch",      "parallel fsdp",    "epochs",        "steps",
        "samples", "interrupted-every", "gpu-failure",      "grid",          "deadline",
        "budget",  "evaluate-every",    "checkpoint-every", "output-tokens", "lora"};
    for (const bs_choice_word *w = rt_option_words; w->word != NULL; w++) {
        bool is_found = false;
        for (size_t i = 0; i < sizeof of_commands / sizeof *of_commands; i++)
            is_found = is_found || strcmp(of_commands[i], w->name) == 0; /* of some commands only: test_commands.c */
        for (size_t i = 0; i < RT_OPTION_COUNT; i++) {
            is_found = is_found || strcmp(rt_option_label_of(&rt_options[i]).text + 2, w->name) == 0;
            if (rt_options[i].section != RT_SECTION_DEGREE) assert_string_not_equal(rt_options[i].command, w->word);
        }
        if (!is_found) fail_msg("%s stands for %s, which is no option", w->word, w->name);
        for (const bs_choice_word *other = rt_option_words; other < w; other++)
            assert_string_not_equal(other->word, w->word);
    }
}

/* The caller frees it. */
static char *read_header(void)
{
    enum { MAX_BYTES = 1 << 20 };
    FILE *file = fopen(MDOT_SOURCE_DIR "/include/mdot/mdot_configuration.h", "rb");
    char *text = calloc(1, MAX_BYTES);
    assert_non_null(file);
    assert_non_null(text);
    assert_compare(fread(text, 1, MAX_BYTES - 1, file), >, 0);
    fclose(file);
    return text;
}

/* Copies the comment behind the member's declaration, or the one above it, in one line. */
static void comment_of(const char *header, const char *field, char *out, size_t size)
{
    char declaration[64];
    snprintf(declaration, sizeof declaration, "%s;", field);
    const char *start = strstr(header, "typedef struct mdot_configuration {"), *from = NULL, *to = NULL;
    const char *at = strstr(start, declaration);
    while (at != NULL && (isalnum((unsigned char)at[-1]) || at[-1] == '_')) at = strstr(at + 1, declaration);
    const char *behind = at != NULL ? at + strlen(declaration) : "";
    behind += strspn(behind, " ");
    for (const char *c = start; at != NULL && *behind != '/' && (c = strstr(c, "/* ")) != NULL && c < at; c++) from = c;
    if (*behind == '/') from = behind;
    if (from != NULL) to = strstr(from, " */");
    if (to == NULL) fail_msg("%s has no comment in mdot_configuration.h", field);
    size_t used = 0;
    for (const char *c = from + 3; c < to && used + 1 < size; c++) {
        if (*c == '\n') {
            c += strspn(c, "\n ") + 1; /* to the '*' of the next line, and the blank behind it */
            out[used++] = ' ';
        } else {
            out[used++] = *c;
        }
    }
    out[used] = '\0';
}

/* A range's text in comments: "1 to 2^24", "up to 2^16", "0 to 3", "1e-6 to 1e9". */
static void range_of(const rt_option *option, char *out, size_t size)
{
    int power = 0;
    while (1 << power < (int)option->most && power < 30) power++;
    out[0] = '\0';
    if (option->kind == RT_KIND_COUNT) snprintf(out, size, "up to 2^%d", power);
    if (option->kind == RT_KIND_WHOLE && power > 0 && 1 << power == (int)option->most)
        snprintf(out, size, "%.0f to 2^%d", option->least, power);
    else if (option->kind == RT_KIND_WHOLE)
        snprintf(out, size, "%.0f to %.0f", option->least, option->most);
    if (option->kind == RT_KIND_REAL) snprintf(out, size, "1e-6 to 1e9");
    if (option->kind == RT_KIND_REAL) {
        assert_compare(option->least, ==, 1e-6);
        assert_compare(option->most, ==, 1e9);
    }
}

static void header_documents_the_meaning_and_range_of_each_member(void **state)
{
    (void)state;
    char *header = read_header(), comment[1024], range[32];
    for (size_t i = 0; i < RT_OPTION_COUNT; i++) {
        const rt_option *option = &rt_options[i];
        comment_of(header, option->field, comment, sizeof comment);
        if (strncmp(comment, option->meaning, strlen(option->meaning)) != 0)
            fail_msg("%s: mdot_configuration.h has \"%s\", configuration.def has \"%s\"", option->field, comment,
                     option->meaning);
        range_of(option, range, sizeof range);
        expect_contains(comment, range);
    }
    free(header);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_member_of_the_struct_has_one_row),
        cmocka_unit_test(values_outside_the_range_are_refused_by_name),
        cmocka_unit_test(defaults_are_accepted),
        cmocka_unit_test(values_are_stored_in_their_members),
        cmocka_unit_test(inputs_are_those_of_the_public_map),
        cmocka_unit_test(each_synonym_stands_for_a_choice),
        cmocka_unit_test(each_word_is_accepted_or_only_suggested),
        cmocka_unit_test(each_foreign_option_stands_for_one_option),
        cmocka_unit_test(header_documents_the_meaning_and_range_of_each_member),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
