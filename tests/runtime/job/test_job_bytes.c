/* test_job_bytes.c — runtime/job/job_bytes.c: numbers, texts and `.job` file parts, whole, cut off and overlong. */
#include "runtime/job/job_file.h"
#include "tests/support/assertions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Reads a number from `size` bytes in an exact block, so a read beyond it is detected. */
static uint64_t get(const unsigned char *bytes, size_t size, bool *out_failed, size_t *out_left)
{
    unsigned char *block = malloc(size > 0 ? size : 1);
    assert_non_null(block);
    if (size > 0) memcpy(block, bytes, size);
    rt_reader r = {.at = block, .end = block + size};
    uint64_t number = rt_get(&r);
    *out_failed = r.failed;
    *out_left = rt_bytes_left(&r);
    free(block);
    return number;
}

static void numbers_take_seven_bits_of_a_byte(void **state)
{
    (void)state;
    static const struct {
        uint64_t number;
        size_t size;
    } cases[] = {{0, 1},          {1, 1},
                 {127, 1},        {128, 2},
                 {16383, 2},      {16384, 3},
                 {2097151, 3},    {2097152, 4},
                 {1u << 28, 5},   {UINT64_C(1) << 56, 9},
                 {INT64_MAX, 9},  {(uint64_t)INT64_MAX + 1, 10},
                 {UINT64_MAX, 10}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rt_writer w = {0};
        bool failed = true;
        size_t left = 1;
        rt_put(&w, cases[i].number);
        assert_false(w.failed);
        assert_int_equal(w.size, cases[i].size);
        assert_compare(get(w.bytes, w.size, &failed, &left), ==, cases[i].number);
        assert_false(failed);
        assert_int_equal(left, 0);
        for (size_t size = 0; size < w.size; size++) { /* cut off */
            assert_compare(get(w.bytes, size, &failed, &left), ==, 0);
            assert_true(failed);
            assert_compare(left, ==, 0);
        }
        free(w.bytes);
    }
}

/* A number has one encoding, so equal jobs have equal files. */
static void overlong_numbers_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
    } cases[] = {{"\x80\x00", 2},
                 {"\x81\x00", 2},
                 {"\xff\x80\x00", 3},
                 {"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", 10},
                 {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10}, /* 65 bits */
                 {"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 11}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool failed = false;
        size_t left = 1;
        assert_compare(get((const unsigned char *)cases[i].bytes, cases[i].size, &failed, &left), ==, 0);
        if (!failed || left != 0) fail_msg("case %zu is accepted", i);
    }
}

static void numbers_beyond_their_bound_are_refused(void **state)
{
    (void)state;
    rt_writer w = {0};
    rt_put(&w, 5);
    rt_put(&w, UINT64_C(1) << 62);
    rt_put(&w, (UINT64_C(1) << 62) + 1);
    rt_reader r = {.at = w.bytes, .end = w.bytes + w.size};
    assert_int_equal(rt_get_below(&r, 6), 5);
    assert_compare(rt_get_count(&r), ==, 0x1p62);
    assert_false(r.failed);
    assert_compare(rt_get_count(&r), ==, 0);
    assert_true(r.failed);
    r = (rt_reader){.at = w.bytes, .end = w.bytes + w.size};
    assert_int_equal(rt_get_below(&r, 5), 0);
    assert_true(r.failed);
    assert_int_equal(rt_get(&r), 0); /* nor is anything read behind a failure */
    free(w.bytes);
}

static void texts_and_parts_come_back(void **state)
{
    (void)state;
    rt_writer w = {0}, part = {0};
    rt_put_text(&w, "Conv");
    rt_put_text(&w, "");
    rt_put(&part, 300);
    rt_put(&part, 7);
    rt_put_part(&w, &part);
    assert_int_equal(part.size, 0);
    rt_put(&w, 9);
    rt_reader r = {.at = w.bytes, .end = w.bytes + w.size};
    char *first = rt_get_text(&r), *second = rt_get_text(&r);
    assert_string_equal(first, "Conv");
    assert_string_equal(second, "");
    rt_reader inner = rt_get_part(&r);
    assert_int_equal(rt_bytes_left(&inner), 3);
    assert_int_equal(rt_get(&inner), 300); /* the 7 stays unread */
    assert_int_equal(rt_get(&r), 9);
    assert_false(r.failed);
    assert_false(inner.failed);
    assert_compare(rt_bytes_left(&r), ==, 0);
    free(first);
    free(second);
    free(w.bytes);
    free(part.bytes);
}

static void cut_texts_and_parts_are_refused(void **state)
{
    (void)state;
    static const unsigned char beyond[] = {3, 'a', 'b'}, with_nul[] = {3, 'a', 0, 'b'}, whole[] = {2, 'a', 'b'};
    rt_reader r = {.at = beyond, .end = beyond + sizeof beyond};
    assert_null(rt_get_text(&r));
    assert_true(r.failed);
    r = (rt_reader){.at = with_nul, .end = with_nul + sizeof with_nul};
    assert_null(rt_get_text(&r));
    assert_true(r.failed);
    r = (rt_reader){.at = whole, .end = whole + sizeof whole};
    char *text = rt_get_text(&r);
    assert_string_equal(text, "ab");
    assert_false(r.failed);
    free(text);
    r = (rt_reader){.at = beyond, .end = beyond + sizeof beyond};
    rt_reader part = rt_get_part(&r);
    assert_true(r.failed);
    assert_true(part.failed);
    assert_compare(rt_bytes_left(&part), ==, 0);
    assert_compare(rt_bytes_left(&r), ==, 0);
    r = (rt_reader){.at = whole, .end = whole + sizeof whole};
    part = rt_get_bytes(&r, 3);
    assert_false(part.failed || r.failed);
    assert_int_equal(rt_bytes_left(&part), 3);
    part = rt_get_bytes(&r, 1);
    assert_true(part.failed);
    assert_true(r.failed);
}

static void a_failed_part_makes_its_writer_fail(void **state)
{
    (void)state;
    rt_writer w = {0}, part = {.failed = true}, plain = {0};
    rt_put_part(&w, &plain);
    assert_false(w.failed);
    rt_put_part(&w, &part);
    assert_true(w.failed);
    rt_put_part(&w, &plain);
    assert_true(w.failed); /* for good */
    free(w.bytes);
}

/* ---- Operators --------------------------------------------------------------------------------------------------- */

/* An operator with two settings, one negative, two loads and one input, and with settings and loads unknown to this
 * version. */
static rt_writer write_operator(uint64_t settings, uint64_t loads, uint64_t input)
{
    rt_writer w = {0};
    rt_put(&w, 1000);
    rt_put(&w, settings);
    for (int s = 0; s < 64; s++)
        if (settings >> s & 1) rt_put_signed(&w, s % 2 == 0 ? -s - 1 : s + 1);
    rt_put(&w, loads);
    for (int k = 0; k < 64; k++)
        if (loads >> k & 1) rt_put(&w, (uint64_t)k + 10);
    rt_put(&w, 1);
    rt_put(&w, input);
    return w;
}

static bool read_operator(rt_writer *w, size_t index, mdot_job_operator *out, uint32_t *out_input)
{
    rt_decoded d = {0};
    size_t input_count = 0;
    assert_true(rt_make_operators(&d, index + 1, w->size));
    assert_int_equal(d.description.struct_size, sizeof d.description);
    rt_reader r = {.at = w->bytes, .end = w->bytes + w->size};
    rt_get_numbers(&r, &d, index, &input_count);
    *out = d.operators[index];
    assert_int_equal(input_count, r.failed ? input_count : 1);
    *out_input = d.inputs[0];
    bool is_read = !r.failed && rt_bytes_left(&r) == 0;
    assert_true(is_read || out->input_count == 0 || !r.failed);
    free(d.operators);
    free(d.inputs);
    free(w->bytes);
    return is_read;
}

static void operators_keep_known_numbers_and_skip_others(void **state)
{
    (void)state;
    const uint64_t last = UINT64_C(1) << 63;
    mdot_job_operator op;
    uint32_t input = 0;
    rt_writer w = write_operator(1 | 1 << 3 | last, 1 | UINT64_C(1) << (RT_LOAD_COUNT - 1) | last, 2);
    assert_true(read_operator(&w, 5, &op, &input));
    assert_int_equal(op.struct_size, sizeof op);
    assert_compare(op.parameters, ==, 1000);
    assert_int_equal(op.setting[0], -1);
    assert_int_equal(op.setting[3], 4);
    for (int s = 0; s < MDOT_SETTING_COUNT; s++)
        if (s != 0 && s != 3) assert_int_equal(op.setting[s], 0);
    for (int k = 0; k < RT_LOAD_COUNT; k++)
        assert_compare(*rt_load_at(&op, k), ==, k == 0 ? 10 : k == RT_LOAD_COUNT - 1 ? RT_LOAD_COUNT + 9 : 0);
    assert_int_equal(op.input_count, 1);
    assert_int_equal(input, 3);                                  /* operator 5 reads the one two before */
    w = write_operator(UINT64_C(1) << 40, UINT64_C(1) << 41, 1); /* all unknown */
    assert_true(read_operator(&w, 1, &op, &input));
    assert_int_equal(input, 0);
    w = write_operator(last, last, 1);
    assert_true(read_operator(&w, 1, &op, &input));
    w = write_operator(0, 0, 1);
    assert_true(read_operator(&w, 1, &op, &input));
    assert_int_equal(input, 0);
    w = write_operator(0, 0, 2); /* before the first operator */
    assert_false(read_operator(&w, 1, &op, &input));
    assert_int_equal(op.input_count, 0);
    w = write_operator(0, 0, 0); /* the first operator has no inputs */
    assert_false(read_operator(&w, 0, &op, &input));
    assert_int_equal(op.input_count, 0);
}

/* The first settings and loads unknown to this version are skipped, as the last ones are. */
static void the_first_unknown_numbers_are_skipped(void **state)
{
    (void)state;
    const uint64_t settings = UINT64_C(3) << (MDOT_SETTING_COUNT - 1), loads = UINT64_C(3) << (RT_LOAD_COUNT - 1);
    mdot_job_operator op;
    uint32_t input = 0;
    rt_writer w = write_operator(settings, loads, 1);
    assert_true(read_operator(&w, 1, &op, &input));
    for (int s = 0; s < MDOT_SETTING_CAPACITY; s++) assert_int_equal(op.setting[s] != 0, s == MDOT_SETTING_COUNT - 1);
    for (int k = 0; k < RT_LOAD_COUNT; k++) assert_compare(*rt_load_at(&op, k) > 0, ==, k == RT_LOAD_COUNT - 1);
    w = write_operator(1, UINT64_C(1) << RT_LOAD_COUNT, 1);
    assert_true(read_operator(&w, 1, &op, &input));
    for (int k = 0; k < RT_LOAD_COUNT; k++) assert_compare(*rt_load_at(&op, k), ==, 0);
}

/* An operator cut anywhere is refused, and so is a number beyond the limit. */
static void cut_operators_have_no_inputs(void **state)
{
    (void)state;
    rt_writer whole = write_operator(UINT64_MAX, UINT64_MAX, 1);
    for (size_t size = 0; size < whole.size; size++) {
        mdot_job_operator op;
        uint32_t input = 0;
        rt_writer w = {.bytes = malloc(size + 1), .size = size};
        assert_non_null(w.bytes);
        memcpy(w.bytes, whole.bytes, size);
        assert_false(read_operator(&w, 1, &op, &input));
        assert_int_equal(op.input_count, 0);
    }
    free(whole.bytes);
}

static void signs_are_in_the_lowest_bit(void **state)
{
    (void)state;
    static const struct {
        int64_t number;
        uint64_t coded;
    } cases[] = {
        {0, 0}, {-1, 1}, {1, 2}, {-2, 3}, {63, 126}, {-64, 127}, {INT64_MAX, UINT64_MAX - 1}, {INT64_MIN, UINT64_MAX}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rt_writer w = {0};
        rt_put_signed(&w, cases[i].number);
        rt_reader r = {.at = w.bytes, .end = w.bytes + w.size};
        assert_compare(rt_get(&r), ==, cases[i].coded);
        assert_false(r.failed);
        free(w.bytes);
    }
}

/* A writer grows by the missing bytes, however many it is given at once. */
static void writers_keep_bytes_of_every_size(void **state)
{
    (void)state;
    enum { MOST = 700 };
    unsigned char bytes[MOST];
    for (size_t i = 0; i < MOST; i++) bytes[i] = (unsigned char)(i * 7 + 1);
    rt_writer w = {0};
    size_t total = 0;
    for (size_t size = 0; size < MOST; total += size, size += 13) rt_put_bytes(&w, bytes, size);
    assert_false(w.failed);
    assert_int_equal(w.size, total);
    const unsigned char *at = w.bytes;
    for (size_t size = 0; size < MOST; at += size, size += 13) assert_memory_equal(at, bytes, size);
    free(w.bytes);
}

static void a_job_may_have_no_operators(void **state)
{
    (void)state;
    rt_decoded d = {0};
    assert_true(rt_make_operators(&d, 0, 0));
    free(d.operators);
    free(d.inputs);
}

/* Each load has a separate place. */
static void loads_have_places(void **state)
{
    (void)state;
    mdot_job_operator op = {0};
    for (int k = 0; k < RT_LOAD_COUNT; k++) *rt_load_at(&op, k) = k + 1;
    for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++) {
        const mdot_load *sample = &op.per_sample[phase], *step = &op.per_step[phase];
        double first = phase * 6 + 1;
        assert_compare(sample->flops, ==, first);
        assert_compare(sample->bytes_read, ==, first + 1);
        assert_compare(sample->bytes_written, ==, first + 2);
        assert_compare(step->flops, ==, first + 3);
        assert_compare(step->bytes_read, ==, first + 4);
        assert_compare(step->bytes_written, ==, first + 5);
        assert_compare(op.per_square[phase].flops, ==, 3 * phase + 19);
        assert_compare(op.per_square[phase].bytes_written, ==, 3 * phase + 21);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_take_seven_bits_of_a_byte),
        cmocka_unit_test(overlong_numbers_are_refused),
        cmocka_unit_test(numbers_beyond_their_bound_are_refused),
        cmocka_unit_test(texts_and_parts_come_back),
        cmocka_unit_test(cut_texts_and_parts_are_refused),
        cmocka_unit_test(a_failed_part_makes_its_writer_fail),
        cmocka_unit_test(operators_keep_known_numbers_and_skip_others),
        cmocka_unit_test(the_first_unknown_numbers_are_skipped),
        cmocka_unit_test(cut_operators_have_no_inputs),
        cmocka_unit_test(signs_are_in_the_lowest_bit),
        cmocka_unit_test(writers_keep_bytes_of_every_size),
        cmocka_unit_test(a_job_may_have_no_operators),
        cmocka_unit_test(loads_have_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
