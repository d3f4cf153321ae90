/* test_memstream.c — text that is written into memory is either complete or, if memory ran out, absent. */
#include "base/text.h"
#include "tests/support/assertions.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { LINES = 3000 }; /* more than any initial buffer holds */

static void write_lines(FILE *file)
{
    for (int i = 0; i < LINES; i++) fprintf(file, "line %d\n", i);
}

static void text_is_complete(void **state)
{
    (void)state;
    bs_memstream s;
    size_t size_bytes = 0;
    assert_true(bs_memstream_open(&s));
    write_lines(s.file);
    char *text = bs_memstream_close(&s, &size_bytes);
    assert_non_null(text);
    assert_int_equal(strlen(text), size_bytes);
    const char *at = text;
    for (int i = 0; i < LINES; i++) {
        char line[32];
        int length = snprintf(line, sizeof line, "line %d\n", i);
        assert_memory_equal(at, line, (size_t)length);
        at += length;
    }
    assert_int_equal(at - text, size_bytes);
    free(text);
}

static void an_unwritten_stream_gives_an_empty_text(void **state)
{
    (void)state;
    bs_memstream s;
    assert_true(bs_memstream_open(&s));
    char *text = bs_memstream_close(&s, NULL);
    assert_string_equal(text, "");
    free(text);
}

#ifndef MDOT_SANITIZED /* sanitizers have their own realloc */
extern void *__libc_realloc(void *, size_t);
static int grants = -1; /* number of successful realloc calls; negative = all */
static int refusals;

void *realloc(void *memory, size_t size)
{
    if (grants == 0) {
        refusals++;
        errno = ENOMEM;
        return NULL;
    }
    if (grants > 0) grants--;
    return __libc_realloc(memory, size);
}

static void a_stream_without_memory_gives_null(void **state)
{
    (void)state;
    int granted = 0;
    bool is_whole = false;
    for (; !is_whole; granted++) {
        bs_memstream s;
        refusals = 0;
        grants = granted;
        if (bs_memstream_open(&s)) write_lines(s.file);
        char *text = bs_memstream_close(&s, NULL);
        grants = -1;
        is_whole = text != NULL;
        assert_int_equal(is_whole, refusals == 0);
        free(text);
    }
    assert_compare(granted, >, 2);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_complete),
        cmocka_unit_test(an_unwritten_stream_gives_an_empty_text),
#ifndef MDOT_SANITIZED
        cmocka_unit_test(a_stream_without_memory_gives_null),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
