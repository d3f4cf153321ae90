/* test_printable.c — text from files is made safe for a terminal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"

static void expect(const char *text, const char *printable)
{
    char copy[256];
    snprintf(copy, sizeof copy, "%s", text);
    bs_make_printable(copy);
    assert_string_equal(copy, printable);
}

static void letters_of_all_scripts_are_kept(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "layer.0/Gelu", "größe", "层", "\xF0\x9F\x8D\xB0 cake", "\xC2\xA0\xC3\xBF"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) expect(texts[i], texts[i]);
}

static void line_ends_and_tabs_become_spaces(void **state)
{
    (void)state;
    expect("a\nb\tc\r", "a b c ");
}

static void control_characters_of_both_sets_are_replaced(void **state)
{
    (void)state;
    expect("\033[2J", "?[2J");
    expect("\x7F\x01\x1F", "???");
    expect("a\xC2\x9B"
           "2Jb",
           "a?2Jb"); /* U+009B: CSI as one character */
    expect("\xC2\x80\xC2\x9F\xC2\xA1", "??\xC2\xA1");
    expect("\x9B"
           "31m",
           "?31m"); /* the same in Latin-1 */
}

/* With U+202E after "evil", "gnp.exe" would be displayed as "evilexe.png". */
static void direction_controls_are_replaced(void **state)
{
    (void)state;
    expect("\xD8\x9C", "?");                                          /* U+061C */
    expect("\xE2\x80\x8E\xE2\x80\x8F", "??");                         /* U+200E, U+200F */
    expect("\xE2\x80\xAA.\xE2\x80\xAE.", "?.?.");                     /* U+202A, U+202E */
    expect("\xE2\x81\xA6\xE2\x81\xA9\xE2\x81\xAA", "??\xE2\x81\xAA"); /* U+2066, U+2069; U+206A stays */
    expect("\xE2\x80\xA8\xE2\x80\xA9", "??");                         /* line and paragraph separators */
    expect("\xE2\x80\xA7\xE2\x80\xAF", "\xE2\x80\xA7\xE2\x80\xAF");
}

static void invalid_utf_8_is_replaced_byte_by_byte(void **state)
{
    (void)state;
    expect("\xFF\xFE", "??");
    expect("\xC3", "?");                  /* truncated */
    expect("\xC0\x80", "??");             /* overlong */
    expect("\xED\xA0\x80", "???");        /* a surrogate */
    expect("\xF4\x90\x80\x80.", "????."); /* above U+10FFFF */
}

static void code_points_are_decoded(void **state)
{
    (void)state;
    assert_int_equal(bs_utf8_code("A"), 'A');
    assert_int_equal(bs_utf8_code("\xC3\xBF"), 0xFF);
    assert_int_equal(bs_utf8_code("\xE2\x80\xAE"), 0x202E);
    assert_int_equal(bs_utf8_code("\xF0\x9F\x8D\xB0"), 0x1F370);
}

static void one_unprintable_character_makes_a_text_unprintable(void **state)
{
    (void)state;
    assert_true(bs_is_printable(""));
    assert_true(bs_is_printable("H100 \xC3\xA9\xE2\x82\xAC"));
    assert_false(bs_is_printable("H100\n"));
    assert_false(bs_is_printable("\xC3"));
    assert_false(bs_is_printable("a\xE2\x80\xAE"));
}

static void texts_are_cut_after_a_whole_character(void **state)
{
    (void)state;
    static const char text[] = "a\xC3\xA9\xF0\x9F\x8D\xB0\xFFz";
    static const size_t kept[] = {0, 1, 1, 3, 3, 3, 3, 7, 8, 9, 9};
    for (size_t most = 0; most < sizeof kept / sizeof *kept; most++)
        assert_int_equal(bs_cut_length(text, most), kept[most]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(letters_of_all_scripts_are_kept),
        cmocka_unit_test(line_ends_and_tabs_become_spaces),
        cmocka_unit_test(control_characters_of_both_sets_are_replaced),
        cmocka_unit_test(direction_controls_are_replaced),
        cmocka_unit_test(invalid_utf_8_is_replaced_byte_by_byte),
        cmocka_unit_test(code_points_are_decoded),
        cmocka_unit_test(one_unprintable_character_makes_a_text_unprintable),
        cmocka_unit_test(texts_are_cut_after_a_whole_character),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
