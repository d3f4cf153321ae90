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

/* Every request up to a quarter of the address space has room behind the used bytes, which are kept. */
static void a_block_grows_to_any_size_and_keeps_its_bytes(void **state)
{
    (void)state;
    for (size_t more = 0; more < 1 << 20; more = more * 3 + 1) {
        char *bytes = NULL;
        size_t used = 0, capacity = 0;
        for (int turn = 0; turn < 3; turn++) {
            bytes = bs_grow_bytes(bytes, used, more, &capacity);
            assert_non_null(bytes);
            assert_true(capacity - used >= more);
            memset(bytes + used, 'a' + turn, more);
            used += more;
        }
        for (size_t i = 0; i < used; i++) assert_int_equal(bytes[i], 'a' + (int)(i / more));
        size_t before = capacity;
        assert_null(bs_grow_bytes(bytes, used, SIZE_MAX - used, &capacity));
        assert_null(bs_grow_bytes(bytes, used, SIZE_MAX, &capacity));
        assert_int_equal(capacity, before);
        free(bytes);
    }
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
        cmocka_unit_test(a_block_grows_to_any_size_and_keeps_its_bytes),
#ifndef MDOT_SANITIZED
        cmocka_unit_test(a_stream_without_memory_gives_null),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
