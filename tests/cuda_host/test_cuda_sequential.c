/* test_cuda_sequential.c — running sums, rankings, scatters, recurrences and loops as generated CUDA code in the
 * emulator, with every access checked and every synchronisation needed. The lengths lie around the ends of tiles, warps
 * and buckets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "codegen/codegen.h"
#include "tests/cuda_host/program_fixture.h"
#include "tests/support/shard.h"

static const int64_t LENGTHS[] = {33, 1, 16, 31, 63, 64, 0};
static const int64_t FEW_LENGTHS[] = {37, 5, 64, 0};
static const int64_t INDEXED[] = {33, 4, 16, 64, 0}; /* the random indices are below 4 */

#define AXIS(n) "axis = constant i64[] [" #n "]\n"

/* As in RoBERTa: the positions are the running sum of the mask. */
static void positions_are_running_sums_of_a_mask(void **state)
{
    (void)state;
    assert_graph_right(
        "i = input i64[1,L]\n" AXIS(1) "pad = constant i64[] [1]\ne = Equal(i, pad)\nn = Not(e)\n"
                                       "m = Cast(n) {to=6}\nc = CumSum(m, axis)\nd = Mul(c, m)\np = Cast(d) {to=7}\n"
                                       "q = Add(p, pad)\ntable = weights f32[80,8]\nt = Gather(table, q)\n"
                                       "w = weights f32[8,8]\ny = mdot.Linear(t, w)\nreturn y, q\n",
        LENGTHS);
}

static void every_form_of_running_sum_matches(void **state)
{
    (void)state;
    assert_graph_right(
        "x = input f32[1,L,3]\ni = input i64[2,L]\n" AXIS(
            1) "a = CumSum(x, axis)\nb = CumSum(x, axis) {exclusive=1}\nc = CumSum(x, axis) {reverse=1}\n"
               "d = CumSum(x, axis) {exclusive=1, reverse=1}\ne = CumSum(i, axis)\n"
               "f = CumSum(i, axis) {exclusive=1, reverse=1}\nreturn a, b, c, d, e, f\n",
        LENGTHS);
    /* Within a unit, by threads and by warps; and in many lines across units. */
    assert_graph_right("x = input f32[1,L,7]\nz = input f32[2,L,2,40]\nlast = constant i64[] [-1]\n"
                       "middle = constant i64[] [2]\na = CumSum(x, last)\nb = CumSum(z, last) {reverse=1}\n"
                       "c = CumSum(z, middle)\nt = Tanh(a)\nreturn t, b, c\n",
                       FEW_LENGTHS);
    assert_graph_right("x = input f32[L,40]\n" AXIS(0) "s = Sigmoid(x)\na = CumSum(s, axis)\n"
                                                       "w = weights f32[40,16]\ny = mdot.Linear(a, w)\nreturn y\n",
                       FEW_LENGTHS);
    assert_graph_right("x = input f32[2,70]\ny = input i32[5]\nz = input f32[1]\n" AXIS(
                           -1) "a = CumSum(x, axis)\nb = CumSum(y, axis)\nc = CumSum(z, axis)\nreturn a, b, c\n",
                       NULL);
}

/* The logarithm of a negative number is NaN, and log 0 is infinite; a sum keeps both. */
static void sums_of_infinities_and_nan_match(void **state)
{
    (void)state;
    assert_graph_right("x = input f32[1,L]\n" AXIS(1) "f = Floor(x)\nl = Log(f)\na = CumSum(l, axis)\n"
                                                      "b = CumSum(l, axis) {exclusive=1, reverse=1}\nreturn a, b\n",
                       FEW_LENGTHS);
}

static void the_best_of_a_unit_match(void **state)
{
    (void)state;
    assert_graph_right("x = input f32[1,L,8]\nk = constant i64[1] [3]\nw = weights f32[8,8]\nh = mdot.Linear(x, w)\n"
                       "v, i = TopK(x, k)\nu, j = TopK(x, k) {largest=0, axis=2}\ns = Softmax(v) {axis=-1}\n"
                       "r = TopK(h, k)\nt = Tanh(r)\nreturn s, i, u, j, t\n",
                       LENGTHS);
}

/* Rounded numbers have many ties (the lower index comes first); the logarithm makes NaN and infinities. */
static void ties_and_nan_rank_as_on_cpus(void **state)
{
    (void)state;
    assert_graph_right(
        "x = input f32[1,L,9]\ny = input i64[2,L]\nk = constant i64[1] [5]\none = constant i64[1] [1]\n"
        "f = Floor(x)\nl = Log(f)\na, i = TopK(l, k)\nb, j = TopK(l, k) {largest=0}\nc, n = TopK(y, one)\n"
        "d, m = TopK(l, one) {axis=1}\ne, o = TopK(l, one) {axis=1, largest=0}\n"
        "return a, i, b, j, c, n, d, m, e, o\n",
        FEW_LENGTHS);
    assert_graph_right("x = input f32[3,50]\nk = constant i64[1] [45]\nf = Floor(x)\nl = Log(f)\n"
                       "a, i = TopK(l, k)\nb, j = TopK(l, k) {largest=0}\nreturn a, i, b, j\n",
                       NULL);
}

static void the_best_single_element_is_published(void **state)
{
    (void)state;
    assert_graph_right("x = input f32[300]\nk = constant i64[1] [1]\nv, i = TopK(x, k)\nreturn v\n", NULL);
    assert_graph_right("x = input f32[6,3]\nk = constant i64[1] [6]\nv, i = TopK(x, k) {axis=0}\nreturn i\n", NULL);
}

#define REDUCTIONS(operation, attributes)                                                                              \
    "a = " operation "(x, i, u) {" attributes "}\n"                                                                    \
    "b = " operation "(x, i, u) {" attributes ", reduction=\"add\"}\n"                                                 \
    "c = " operation "(x, i, u) {" attributes ", reduction=\"mul\"}\n"                                                 \
    "d = " operation "(x, i, u) {" attributes ", reduction=\"max\"}\n"                                                 \
    "e = " operation "(x, i, u) {" attributes ", reduction=\"min\"}\nreturn a, b, c, d, e\n"

static void elements_are_updated_in_order(void **state)
{
    (void)state;
    /* In a unit; along the length; with fewer indices than data; and of every type. */
    assert_graph_right(
        "x = input f32[1,L,8]\ni = input i64[1,L,5]\nu = input f32[1,L,5]\n" REDUCTIONS("ScatterElements", "axis=2"),
        LENGTHS);
    assert_graph_right(
        "x = input f32[3,L]\ni = input i64[2,L]\nu = input f32[2,L]\n" REDUCTIONS("ScatterElements", "axis=1"),
        FEW_LENGTHS);
    assert_graph_right(
        "x = input i64[L,3,4]\ni = input i64[5,2,3]\nu = input i64[5,2,3]\n" REDUCTIONS("ScatterElements", "axis=0"),
        FEW_LENGTHS);
    assert_graph_right("x = input i32[1,L,8]\nb = input bool[1,L,8]\ni = input i64[1,L,5]\nu = input i32[1,L,5]\n"
                       "v = input bool[1,L,5]\na = ScatterElements(x, i, u) {axis=2, reduction=\"add\"}\n"
                       "c = ScatterElements(b, i, v) {axis=2}\nreturn a, c\n",
                       FEW_LENGTHS);
}

static void slices_are_updated_in_order(void **state)
{
    (void)state;
    assert_graph_right(
        "x = input f32[L,6]\ni = input i64[L,1]\nu = input f32[L,6]\n" REDUCTIONS("ScatterND", "mdot.none=0"), INDEXED);
    assert_graph_right(
        "x = input f32[4,6]\ni = input i64[9,2]\nu = input f32[9]\n" REDUCTIONS("ScatterND", "mdot.none=0"), NULL);
    /* Only as many updates as a mask selects. */
    assert_graph_right("x = input f32[L,6]\nm = input bool[2,L]\nn = NonZero(m)\none = constant i64[] [1]\n"
                       "t = Gather(n, one)\nr = Gather(x, t)\nw = weights f32[6,6]\ne = MatMul(r, w)\n"
                       "last = constant i64[1] [-1]\nu = Unsqueeze(t, last)\ns = Shape(e)\nv = Expand(u, s)\n"
                       "a = ScatterND(x, u, e) {reduction=\"add\"}\n"
                       "b = ScatterElements(x, v, e) {axis=0, reduction=\"max\"}\nreturn a, b\n",
                       LENGTHS);
}

/* The result is only read by a matmul, which holds it in 16 bits where the precision has them. */
static void a_scatter_before_a_matmul_matches(void **state)
{
    (void)state;
    assert_graph_right("x = input f32[1,L,16]\ni = input i64[1,L,4]\nu = input f32[1,L,4]\ns = Tanh(x)\n"
                       "a = ScatterElements(s, i, u) {axis=2, reduction=\"add\"}\nw = weights f32[16,16]\n"
                       "y = mdot.Linear(a, w)\nreturn y\n",
                       LENGTHS);
}

static void caches_are_written_at_their_places(void **state)
{
    (void)state;
    assert_graph_right("c = input f32[2,3,9,4]\nu = input f32[2,3,4,4]\ns = input i64[2]\n"
                       "a = TensorScatter(c, u, s)\nb = TensorScatter(c, u, s) {mode=\"circular\"}\n"
                       "d = TensorScatter(c, u)\nreturn a, b, d\n",
                       NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(positions_are_running_sums_of_a_mask), cmocka_unit_test(every_form_of_running_sum_matches),
        cmocka_unit_test(sums_of_infinities_and_nan_match),     cmocka_unit_test(the_best_of_a_unit_match),
        cmocka_unit_test(ties_and_nan_rank_as_on_cpus),         cmocka_unit_test(the_best_single_element_is_published),
        cmocka_unit_test(elements_are_updated_in_order),        cmocka_unit_test(slices_are_updated_in_order),
        cmocka_unit_test(a_scatter_before_a_matmul_matches),    cmocka_unit_test(caches_are_written_at_their_places),
    };
    if (!cuda_host_available()) {
        print_message("skipped: no C++ compiler\n");
        return 77;
    }
    return shard_run_group_tests(tests, NULL, NULL);
}
