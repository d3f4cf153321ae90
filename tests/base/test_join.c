/* test_join.c — lists of names in a fixed buffer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "tests/support/assertions.h"

static void items_are_joined_by_commas(void **state)
{
    (void)state;
    char text[64];
    bs_join list;
    bs_join_begin(&list, text, sizeof text);
    assert_string_equal(text, "");
    bs_join_add(&list, "sm_%d", 80);
    assert_string_equal(text, "sm_80");
    bs_join_add(&list, "sm_%d%s", 90, "a");
    assert_string_equal(text, "sm_80, sm_90a");
}

/* For every size of the buffer, the shown and the counted items add up to the total, and all shown items are whole. */
static void items_that_do_not_fit_are_counted(void **state)
{
    (void)state;
    enum { ITEMS = 30 };
    for (size_t size = BS_JOIN_MIN_BYTES; size < 400; size++) {
        char text[400];
        memset(text, '#', sizeof text);
        bs_join list;
        bs_join_begin(&list, text, size);
        for (int i = 0; i < ITEMS; i++) bs_join_add(&list, "item-%02d", i);
        assert_compare(strlen(text), <, size);
        for (size_t k = size; k < sizeof text; k++) assert_int_equal(text[k], '#');
        size_t shown = 0, more = 0;
        char whole[400] = "", *end = whole;
        const char *dots = strstr(text, " \xE2\x80\xA6 and ");
        for (const char *at = text; (at = strstr(at, "item-")) != NULL; at++) {
            end += sprintf(end, "%sitem-%02zu", shown > 0 ? ", " : "", shown);
            shown++;
        }
        assert_memory_equal(text, whole, strlen(whole));
        if (dots != NULL) {
            assert_int_equal(sscanf(dots, " \xE2\x80\xA6 and %zu more", &more), 1);
            assert_ptr_equal(dots, text + strlen(whole));
        } else if (shown == 0) {
            assert_int_equal(sscanf(text, "%zu more", &more), 1);
        } else {
            assert_string_equal(text, whole);
        }
        assert_int_equal(shown + more, ITEMS);
        if (size > (ITEMS * strlen("item-00, "))) assert_int_equal(more, 0);
    }
}

static void a_list_that_just_fits_is_complete(void **state)
{
    (void)state;
    static const char items[] = "aaaaaaaaaaaaaaaaaaaa, bbbbbbbbbbbbbbbbbbbb, cccccccccccccccccccc";
    char text[sizeof items];
    for (size_t size = sizeof items - 1; size <= sizeof items; size++) {
        bs_join list;
        bs_join_begin(&list, text, size);
        bs_join_add(&list, "%s", "aaaaaaaaaaaaaaaaaaaa");
        bs_join_add(&list, "%s", "bbbbbbbbbbbbbbbbbbbb");
        bs_join_add(&list, "%s", "cccccccccccccccccccc");
        assert_string_equal(text, size == sizeof items ? items : "aaaaaaaaaaaaaaaaaaaa \xE2\x80\xA6 and 2 more");
    }
}

static void items_after_an_omitted_item_are_omitted(void **state)
{
    (void)state;
    char text[64];
    bs_join list;
    bs_join_begin(&list, text, sizeof text);
    bs_join_add(&list, "%s", "first");
    bs_join_add(&list, "%080d", 0);
    bs_join_add(&list, "%s", "x");
    assert_string_equal(text, "first \xE2\x80\xA6 and 2 more");
}

static void a_custom_separator_joins_items(void **state)
{
    (void)state;
    char text[64];
    bs_join list;
    bs_join_begin(&list, text, sizeof text);
    list.separator = "; ";
    for (int i = 0; i < 3; i++) bs_join_add(&list, "%d", i);
    assert_string_equal(text, "0; 1; 2");
}

static void items_may_be_omitted_on_request(void **state)
{
    (void)state;
    char text[128];
    bs_join list;
    bs_join_begin(&list, text, sizeof text);
    bs_join_add(&list, "a");
    bs_join_add(&list, "b");
    for (int i = 0; i < 12; i++) bs_join_omit(&list);
    assert_string_equal(text, "a, b \xE2\x80\xA6 and 12 more");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_are_joined_by_commas),        cmocka_unit_test(items_that_do_not_fit_are_counted),
        cmocka_unit_test(a_list_that_just_fits_is_complete), cmocka_unit_test(items_after_an_omitted_item_are_omitted),
        cmocka_unit_test(a_custom_separator_joins_items),    cmocka_unit_test(items_may_be_omitted_on_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
