/* test_error.c — tables of statuses and element types, and error messages. */
#include "mdot/mdot_base.h"
#include "tests/support/assertions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void every_status_has_a_name_and_a_text(void **state)
{
    (void)state;
#define CHECK(name, value, text)                                                                                       \
    assert_string_equal(mdot_status_name((mdot_status)value), "MDOT_" #name);                                          \
    assert_string_equal(mdot_status_text((mdot_status)value), text);
    MDOT_STATUS_MAP(CHECK)
#undef CHECK
    assert_non_null(mdot_status_name((mdot_status)1000));
    assert_non_null(mdot_status_text((mdot_status)1000));
}

static void every_dtype_has_a_name_and_a_size(void **state)
{
    (void)state;
#define CHECK(name, value, size, text)                                                                                 \
    assert_string_equal(mdot_dtype_name((mdot_dtype)value), text);                                                     \
    assert_int_equal(mdot_dtype_size_bytes((mdot_dtype)value), size);
    MDOT_DTYPE_MAP(CHECK)
#undef CHECK
    const int unknown[] = {0, 14, 15, 17, 1000, -1};
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        assert_string_equal(mdot_dtype_name((mdot_dtype)unknown[i]), "?");
        assert_int_equal(mdot_dtype_size_bytes((mdot_dtype)unknown[i]), 0);
    }
}

static void fail_formats_and_returns_the_status(void **state)
{
    (void)state;
    mdot_error err;
    assert_int_equal(mdot_fail(&err, MDOT_IO, "%s: %d", "file", 7), MDOT_IO);
    assert_int_equal(err.status, MDOT_IO);
    assert_string_equal(err.message, "file: 7");
    assert_int_equal(mdot_fail(NULL, MDOT_CORRUPT, "%s", "unheard"), MDOT_CORRUPT);
}

static void fail_adds_context_to_its_own_message(void **state)
{
    (void)state;
    mdot_error err;
    mdot_fail(&err, MDOT_IO, "disk full");
    mdot_fail(&err, err.status, "%s: %s", "model.mdot", err.message);
    assert_string_equal(err.message, "model.mdot: disk full");
}

static void long_message_is_cut_with_an_ellipsis(void **state)
{
    (void)state;
    mdot_error err;
    char text[sizeof err.message + 1];
    memset(text, 'x', sizeof text);
    text[sizeof err.message - 1] = '\0';
    mdot_fail(&err, MDOT_IO, "%s", text); /* fits exactly */
    assert_string_equal(err.message, text);
    text[sizeof err.message - 1] = 'x';
    text[sizeof err.message] = '\0';
    mdot_fail(&err, MDOT_IO, "%s", text);
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
    assert_string_equal(err.message + strlen(err.message) - 4, "x...");
}

static void message_stays_on_one_line(void **state)
{
    (void)state;
    mdot_error err;
    mdot_fail(&err, MDOT_TOOLCHAIN, "ld: a\nb\tc\x1b[31m \xC3\xA9");
    assert_string_equal(err.message, "ld: a b c?[31m \xC3\xA9");
}

/* A message is cut between characters. The lengths put the cut at either byte of "é". */
static void a_cut_message_ends_with_a_whole_character(void **state)
{
    (void)state;
    mdot_error err;
    for (size_t shift = 0; shift < 2; shift++) {
        char text[2 * sizeof err.message];
        memset(text, 'x', shift);
        for (size_t i = shift; i + 2 < sizeof text; i += 2) memcpy(text + i, "\xC3\xA9", 3);
        mdot_fail(&err, MDOT_IO, "%s", text);
        size_t length = strlen(err.message);
        assert_compare(length, >=, sizeof err.message - 2);
        assert_string_equal(err.message + length - 5, "\xC3\xA9...");
        assert_null(strchr(err.message, '?'));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_a_name_and_a_text),
        cmocka_unit_test(every_dtype_has_a_name_and_a_size),
        cmocka_unit_test(fail_formats_and_returns_the_status),
        cmocka_unit_test(fail_adds_context_to_its_own_message),
        cmocka_unit_test(long_message_is_cut_with_an_ellipsis),
        cmocka_unit_test(message_stays_on_one_line),
        cmocka_unit_test(a_cut_message_ends_with_a_whole_character),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
