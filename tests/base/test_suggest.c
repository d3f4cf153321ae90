/* test_suggest.c — suggestions for misspelt names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/suggest.h"
#include "tests/support/assertions.h"

static const char *const names[] = {"precision", "layout", "optimizer", "gpu", "gpus", "steps", "amp-bf16", "A100"};

static const char *nearest(const char *wrong)
{
    bs_suggest near = bs_suggest_begin(wrong);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) bs_suggest_add(&near, names[i]);
    return near.found;
}

static void one_edit_is_suggested(void **state)
{
    (void)state;
    assert_string_equal(nearest("precison"), "precision");   /* a missing letter */
    assert_string_equal(nearest("precisiion"), "precision"); /* an additional letter */
    assert_string_equal(nearest("layoud"), "layout");        /* a wrong letter */
    assert_string_equal(nearest("layuot"), "layout");        /* two swapped letters */
    assert_string_equal(nearest("setps"), "steps");
}

static void two_edits_are_suggested_for_longer_names_only(void **state)
{
    (void)state;
    assert_string_equal(nearest("optimiser"), "optimizer");
    assert_string_equal(nearest("0ptimiser"), "optimizer");
    assert_null(nearest("0ptimis3r"));
    assert_null(nearest("stxxs"));
    assert_null(nearest("xy"));
}

static void two_letter_names_are_suggested_if_they_share_a_first_letter(void **state)
{
    (void)state;
    bs_suggest near = bs_suggest_begin("tb");
    bs_suggest_add(&near, "dp");
    bs_suggest_add(&near, "tp");
    assert_string_equal(near.found, "tp");
    near = bs_suggest_begin("xp"); /* equally near to both */
    bs_suggest_add(&near, "dp");
    bs_suggest_add(&near, "tp");
    assert_null(near.found);
    near = bs_suggest_begin("smm");
    bs_suggest_add(&near, "sm");
    assert_string_equal(near.found, "sm");
    near = bs_suggest_begin("t");
    bs_suggest_add(&near, "tp");
    assert_null(near.found);
}

static void case_is_ignored(void **state)
{
    (void)state;
    assert_string_equal(nearest("a100"), "A100");
    assert_string_equal(nearest("PRECISION"), "precision");
}

static void a_part_is_suggested_from_three_letters_on(void **state)
{
    (void)state;
    assert_string_equal(nearest("bf16"), "amp-bf16");
    assert_string_equal(nearest("optimizers-name"), "optimizer");
    assert_null(nearest("am"));
}

static void the_nearest_of_several_wins(void **state)
{
    (void)state;
    assert_string_equal(nearest("gpus"), "gpus");
    assert_string_equal(nearest("gpu"), "gpu");
    assert_string_equal(nearest("gpux"), "gpu"); /* as near as "gpus", but earlier */
}

static void very_long_names_are_compared_by_their_prefix(void **state)
{
    (void)state;
    char wrong[1000];
    memset(wrong, 'x', sizeof wrong - 1);
    wrong[sizeof wrong - 1] = '\0';
    assert_null(nearest(wrong));
}

static void a_hint_follows_the_wrong_name(void **state)
{
    (void)state;
    bs_suggest near = bs_suggest_begin("layuot");
    assert_string_equal(bs_suggest_end(&near).text, "");
    bs_suggest_add(&near, "layout");
    assert_string_equal(bs_suggest_end(&near).text, " (did you mean layout?)");
    near.found = "a name that is far longer than any that is compared";
    assert_string_equal(bs_suggest_end(&near).text, " (did you mean a name that is far longer than a?)");
}

static void listed_names_are_compared_one_by_one(void **state)
{
    (void)state;
    assert_string_equal(bs_suggest_among("cuad", "cpu, cuda, others that there are").text, " (did you mean cuda?)");
    assert_string_equal(bs_suggest_among("fp23", "fp16, fp32, fp32").text, " (did you mean fp32?)");
    assert_string_equal(bs_suggest_among("others", "cpu, others that there are").text, "");
    assert_string_equal(bs_suggest_among("others", "").text, "");
    assert_string_equal(bs_suggest_among("", "cpu, cuda").text, "");
    assert_string_equal(bs_suggest_among("abc", "a-name-that-is-longer-than-any-that-is-compared-abc, abcd").text,
                        " (did you mean abcd?)");
}

static void nearest_names_are_in_order_of_distance(void **state)
{
    (void)state;
    static const char *const gpus[] = {"A10", "RTX-3090", "A100-SXM-40GB", "L40S", "RTX-4090", "T4", "RTX-3080"};
    bs_nearest nearest = bs_nearest_begin("rtx-309");
    for (size_t i = 0; i < sizeof gpus / sizeof *gpus; i++) bs_nearest_add(&nearest, gpus[i], gpus[i]);
    assert_int_equal(nearest.count, BS_NEAREST_COUNT);
    assert_string_equal(nearest.item[0].name, "RTX-3090");
    assert_string_equal(nearest.item[1].name, "RTX-4090"); /* as near as the next, and earlier */
    assert_string_equal(nearest.item[2].name, "RTX-3080");
    for (size_t i = 1; i < nearest.count; i++)
        assert_compare(nearest.item[i - 1].distance, <=, nearest.item[i].distance);
}

/* A name that lacks letters is nearer than one with a wrong letter. Further words leave a name near, further letters do
 * not. */
static void a_part_of_a_name_is_near_to_it(void **state)
{
    (void)state;
    static const char *const gpus[] = {"A10", "H100", "H200", "H20"};
    static const struct {
        const char *wrong, *first;
    } cases[] = {{"H10", "H100"}, {"H20O", "H200"}, {"H20 96GB", "H20"}, {"96GB-H20", "H20"}, {"96GBH200", "H200"}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        bs_nearest nearest = bs_nearest_begin(cases[c].wrong);
        for (size_t i = 0; i < sizeof gpus / sizeof *gpus; i++) bs_nearest_add(&nearest, gpus[i], gpus[i]);
        assert_string_equal(nearest.item[0].name, cases[c].first);
    }
}

static void an_alias_brings_its_name_nearer_once(void **state)
{
    (void)state;
    static const char name[] = "A100-SXM-40GB", other[] = "A10";
    bs_nearest nearest = bs_nearest_begin("A1OO");
    bs_nearest_add(&nearest, name, name);
    bs_nearest_add(&nearest, other, other);
    assert_ptr_equal(nearest.item[0].name, other);
    bs_nearest_add(&nearest, "A100", name);
    assert_int_equal(nearest.count, 2);
    assert_compare(nearest.item[0].distance, <=, 0.5);
    bs_nearest_add(&nearest, "A1OOO", name);
    assert_ptr_equal(nearest.item[0].name, name);
    assert_int_equal(nearest.count, 2);
    bs_nearest empty = bs_nearest_begin("");
    bs_nearest_add(&empty, name, name);
    assert_compare(empty.item[0].distance, ==, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_edit_is_suggested),
        cmocka_unit_test(two_edits_are_suggested_for_longer_names_only),
        cmocka_unit_test(two_letter_names_are_suggested_if_they_share_a_first_letter),
        cmocka_unit_test(case_is_ignored),
        cmocka_unit_test(nearest_names_are_in_order_of_distance),
        cmocka_unit_test(a_part_of_a_name_is_near_to_it),
        cmocka_unit_test(an_alias_brings_its_name_nearer_once),
        cmocka_unit_test(a_part_is_suggested_from_three_letters_on),
        cmocka_unit_test(the_nearest_of_several_wins),
        cmocka_unit_test(very_long_names_are_compared_by_their_prefix),
        cmocka_unit_test(a_hint_follows_the_wrong_name),
        cmocka_unit_test(listed_names_are_compared_one_by_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
