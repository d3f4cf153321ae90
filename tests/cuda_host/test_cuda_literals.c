/* test_cuda_literals.c — model numbers and names in the generated source. For all of them, both compilers accept the
 * source, and the emulator computes the reference values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "codegen/codegen.h"
#include "tests/cuda_host/program_fixture.h"
#include "tests/support/shard.h"

static const int64_t BUCKET[] = {64, 0};

/* Checks in f32 and in the 16-bit precision of sm_80. Each is compiled for a GPU as well. */
static void assert_numbers_right(const char *graph)
{
    static const cg_compute computes[] = {CG_FP32, CG_BF16};
    for (int m = 0; m < 2; m++) {
        program p = program_from_notation(graph, BUCKET, computes[m], CUDA_HOST_CHECKED);
        assert_program_fits(&p, 80);
        assert_program_right(&p, &(program_run){.length = 19, .blocks = 2, .seed = 3, .magnitude = 1});
        program_done(&p);
    }
}

/* Scores are small, because a score rounded to 16 bits is an exponential's argument. */
static void assert_scale_right(const char *scale)
{
    static const char matrices[] = "x = input f32[1,L,32]\neighth = constant f32[] [0.125]\ns = Mul(x, eighth)\n"
                                   "w = weights f32[32,96]\np = mdot.Linear(s, w)\n"
                                   "sizes = constant i64[3] [32, 32, 32]\nq, k, v = Split(p, sizes) {axis=-1}\n"
                                   "y = Attention(q, k, v) {q_num_heads=2, kv_num_heads=2, scale=%s}\nreturn y\n";
    static const char threads[] = "x = input f32[1,L,21]\n"
                                  "y = Attention(x, x, x) {q_num_heads=3, kv_num_heads=3, scale=%s}\nreturn y\n";
    char graph[512];
    snprintf(graph, sizeof graph, matrices, scale);
    assert_numbers_right(graph);
    snprintf(graph, sizeof graph, threads, scale);
    assert_numbers_right(graph);
}

static void attention_accepts_scale_one(void **state)
{
    (void)state;
    assert_scale_right("1.0");
}

static void attention_accepts_a_negative_scale(void **state)
{
    (void)state;
    assert_scale_right("-3.0");
}

static void norms_accept_one_column(void **state)
{
    (void)state;
    assert_numbers_right("x = input f32[1,L,1]\ng = weights f32[1]\nb = weights f32[1]\n"
                         "n = LayerNormalization(x, g, b) {axis=-1, epsilon=0.25}\n"
                         "m = RMSNormalization(x, g) {axis=-1, epsilon=0.25}\nreturn n, m\n");
}

static void norms_accept_integral_epsilons(void **state)
{
    (void)state;
    assert_numbers_right("x = input f32[1,L,12]\ng = weights f32[12]\n"
                         "a = LayerNormalization(x, g) {axis=-1, epsilon=0.0}\n"
                         "b = RMSNormalization(x, g) {axis=-1, epsilon=0.0}\n"
                         "c = LayerNormalization(x, g) {axis=-1, epsilon=2.0}\n"
                         "d = RMSNormalization(x, g) {axis=-1, epsilon=1e12}\nreturn a, b, c, d\n");
}

/* Beyond the largest f32, everything is divided by infinity. */
static void norms_accept_an_epsilon_beyond_f32(void **state)
{
    (void)state;
    assert_numbers_right("x = input f32[1,L,12]\ng = weights f32[12]\n"
                         "a = LayerNormalization(x, g) {axis=-1, epsilon=1e300}\n"
                         "b = RMSNormalization(x, g) {axis=-1, epsilon=1e300}\nreturn a, b\n");
}

static void floats_of_every_kind_match(void **state)
{
    (void)state;
    assert_numbers_right(
        "x = input f32[1,L,3]\nm = input bool[1,L,3]\n"
        "one = constant f32[] [1.0]\nless = constant f32[] [-1.0]\nhuge = constant f32[] [3.4e38]\n"
        "tiny = constant f32[] [1e-45]\nzero = constant f32[] [-0.0]\nodd = constant f32[] [16777217]\n"
        "inf = constant f32[] [inf]\nminus = constant f32[] [-inf]\nnan = constant f32[] [nan]\n"
        "a = Sub(one, x)\nb = Sub(x, less)\nc = Min(x, huge)\nd = Max(x, tiny)\ne = Sub(zero, x)\n"
        "f = Add(x, odd)\ng = Where(m, x, inf)\nh = Where(m, x, minus)\ni = Where(m, x, nan)\n"
        "j = Div(one, zero)\nk = Sub(x, minus)\nl = Pow(x, one)\n"
        "return a, b, c, d, e, f, g, h, i, j, k, l\n");
}

static void integers_of_every_size_match(void **state)
{
    (void)state;
    assert_numbers_right("i = input i64[1,L]\nj = input i32[1,L]\n"
                         "least = constant i64[] [-9223372036854775808]\nmost = constant i64[] [9223372036854775807]\n"
                         "small = constant i64[] [-2147483648]\nlarge = constant i64[] [2147483648]\n"
                         "low = constant i32[] [-2147483648]\nhigh = constant i32[] [2147483647]\n"
                         "a = Add(i, least)\nb = Max(i, least)\nc = Min(i, most)\nd = Sub(most, i)\n"
                         "e = Max(i, small)\nf = Min(i, large)\ng = Mul(i, large)\nh = Add(i, small)\n"
                         "k = Max(j, low)\nl = Add(j, low)\nm = Min(j, high)\nn = Sub(low, j)\no = Less(i, most)\n"
                         "return a, b, c, d, e, f, g, h, k, l, m, n, o\n");
}

/* Small I64 values are computed as int, so functions with two arguments must convert both to one type. */
static void mixed_integer_sizes_are_converted(void **state)
{
    (void)state;
    assert_numbers_right("i = input i64[1,L]\nj = input i32[1,L]\nm = input bool[1,L]\n"
                         "zero = constant i64[] [0]\nfive = constant i64[] [5]\nsmall = constant i64[] [-2147483648]\n"
                         "n = Cast(m) {to=7}\nc = Clip(i, zero, five)\n"
                         "a = Max(n, five)\nb = Max(n, i)\nd = Max(c, n)\ne = Mod(n, five)\nf = Max(c, small)\n"
                         "g = Div(n, five)\nl = Where(m, c, i)\no = Max(l, n)\np = Neg(n)\n"
                         "q = Max(p, small)\n"
                         "return a, b, d, e, f, g, l, o, p, q\n");
}

static void reductions_of_small_integers_match(void **state)
{
    (void)state;
    assert_numbers_right("i = input i64[1,L,4]\nm = input bool[1,L,4]\nzero = constant i64[] [0]\n"
                         "five = constant i64[] [5]\naxes = constant i64[1] [2]\nrows = constant i64[1] [1]\n"
                         "c = Clip(i, zero, five)\nn = Cast(m) {to=7}\n"
                         "a = ReduceSum(c, axes)\nb = ReduceMax(c, rows)\nd = ReduceSum(n, axes)\n"
                         "e = ReduceProd(n, rows)\nf = ReduceMin(n, axes)\ng = ArgMax(n) {axis=2}\n"
                         "return a, b, d, e, f, g\n");
}

/* Names stand in comments and in identifiers, and next to the source's own names. */
static void names_may_have_any_characters(void **state)
{
    (void)state;
    static const char *const names[] = {"double",
                                        "*/ int x; /*",
                                        "end in a backslash \\",
                                        "two\nlines",
                                        "%s%n",
                                        "\"quoted\" ?\?/",
                                        "\xc3\xa4\xff\xfe",
                                        "t",
                                        "8 bits",
                                        "for",
                                        "/a/very/long/name/of/a/module/that/is/as/deep/as/they/come/in/exports"};
    static const char graph[] = "x = input f32[1,L,16]\nw = weights f32[16,48]\nh = mdot.Linear(x, w)\n"
                                "sizes = constant i64[3] [16, 16, 16]\nq, k, v = Split(h, sizes) {axis=-1}\n"
                                "a = Attention(q, k, v) {q_num_heads=1, kv_num_heads=1}\n"
                                "axes = constant i64[1] [1]\ns = ReduceSum(a, axes) {keepdims=0}\n"
                                "n = Softmax(s) {axis=-1}\ny = Exp(n)\nreturn y, h\n";
    for (size_t turn = 0; turn < 11; turn++) {
        const char *turned[11];
        for (size_t k = 0; k < 11; k++) turned[k] = names[(k + turn) % 11];
        program p =
            program_from_variant(graph, &(program_variant){.names = turned}, BUCKET, CG_BF16, CUDA_HOST_CHECKED);
        if (turn % 5 == 0) assert_program_fits(&p, 80);
        assert_program_right(&p, &(program_run){.length = 19, .blocks = 2, .seed = 3, .magnitude = 1});
        program_done(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention_accepts_scale_one),
        cmocka_unit_test(attention_accepts_a_negative_scale),
        cmocka_unit_test(norms_accept_one_column),
        cmocka_unit_test(norms_accept_integral_epsilons),
        cmocka_unit_test(norms_accept_an_epsilon_beyond_f32),
        cmocka_unit_test(floats_of_every_kind_match),
        cmocka_unit_test(integers_of_every_size_match),
        cmocka_unit_test(mixed_integer_sizes_are_converted),
        cmocka_unit_test(reductions_of_small_integers_match),
        cmocka_unit_test(names_may_have_any_characters),
    };
    if (!cuda_host_available()) {
        print_message("skipped: no C++ compiler\n");
        return 77;
    }
    return shard_run_group_tests(tests, NULL, NULL);
}
