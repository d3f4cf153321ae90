/* test_settings.c — row settings: sorted, checked, and without options for reading the job. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "store/settings.h"

static void sorts_to(const char *settings, const char *wanted)
{
    const char *fault;
    char *sorted = st_sort_settings(settings, &fault);
    assert_null(fault);
    assert_non_null(sorted);
    assert_string_equal(sorted, wanted);
    free(sorted);
}

static void refuses(const char *settings, const char *part)
{
    const char *fault;
    assert_null(st_sort_settings(settings, &fault));
    assert_non_null(fault);
    if (strstr(fault, part) == NULL) fail_msg("%s: %s", settings, fault);
}

static void settings_are_sorted_and_empty_values_dropped(void **state)
{
    (void)state;
    sorts_to("precision=amp\ngpus=8\nlink=", "gpus=8\nprecision=amp");
    sorts_to("parallel=dp=4,tp=2", "parallel=dp=4,tp=2");
    sorts_to("\n\nb=1\na=2\n", "a=2\nb=1");
    sorts_to("ab=1\na=2", "a=2\nab=1");
    sorts_to("", "");
    sorts_to(NULL, "");
}

static void faulty_settings_are_refused(void **state)
{
    (void)state;
    refuses("precision", "name=value");
    refuses("=amp", "name=value");
    refuses("a=1\nb", "name=value");
    refuses("a=1\na=2", "twice");
    refuses("ms=3", "another column");
    refuses("a b=1", "blanks");
    refuses("a=1\r", "more than one line");
}

static void reading_settings_are_stripped(void **state)
{
    (void)state;
    char *text = st_strip_reading("dim=seq=128\nfrozen=encoder\ngpus=8\ntrained=*.lora\nzero=1");
    assert_string_equal(text, "gpus=8\nzero=1");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_are_sorted_and_empty_values_dropped),
        cmocka_unit_test(faulty_settings_are_refused),
        cmocka_unit_test(reading_settings_are_stripped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
