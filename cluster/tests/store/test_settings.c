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

/* The sorted form by its definition, into `out`; false for a faulty text. */
static bool sort_simply(const char *text, char *out)
{
    char name[16][40], value[16][40];
    size_t count = 0;
    while (*text != '\0') {
        size_t length = strcspn(text, "\n"), equals = strcspn(text, "=\n");
        if (length > 0) {
            if (equals == 0 || equals >= length) return false;
            snprintf(name[count], sizeof *name, "%.*s", (int)equals, text);
            snprintf(value[count], sizeof *value, "%.*s", (int)(length - equals - 1), text + equals + 1);
            if (strpbrk(name[count], " \r\t,\"#\x7f") != NULL || strchr(value[count], '\r') != NULL) return false;
            for (size_t i = 0; i < count; i++)
                if (strcmp(name[i], name[count]) == 0) return false;
            count++;
        }
        text += length + (text[length] == '\n');
    }
    *out = '\0';
    for (const char *last = "";;) { /* the least name above the last one */
        size_t next = count;
        for (size_t i = 0; i < count; i++)
            if (strcmp(name[i], last) > 0 && (next == count || strcmp(name[i], name[next]) < 0)) next = i;
        if (next == count) return true;
        last = name[next];
        if (*value[next] != '\0')
            sprintf(out + strlen(out), "%s%s=%s", *out != '\0' ? "\n" : "", name[next], value[next]);
    }
}

static void random_settings_have_their_sorted_form(void **state)
{
    (void)state;
    static const char letters[] = "aab-0c===\n\n\n\r\t ,\"#\x7fé";
    uint64_t random = 5;
    int right = 0;
    for (int trial = 0; trial < 20000; trial++) {
        char text[32], wanted[64];
        size_t length = 0, most = (size_t)trial % 24, kinds = trial % 3 == 0 ? sizeof letters - 1 : 12;
        for (; length < most; length++) {
            random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            text[length] = letters[(random >> 33) % kinds];
        }
        text[length] = '\0';
        const char *fault;
        char *sorted = st_sort_settings(text, &fault);
        bool is_right = sort_simply(text, wanted);
        if (is_right != (fault == NULL)) fail_msg("\"%s\": %s", text, fault != NULL ? fault : "no fault");
        if (is_right) assert_string_equal(sorted, wanted);
        if (!is_right) assert_null(sorted);
        right += is_right;
        free(sorted);
    }
    assert_true(right > 1000 && right < 19000);
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
        cmocka_unit_test(random_settings_have_their_sorted_form),
        cmocka_unit_test(reading_settings_are_stripped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
