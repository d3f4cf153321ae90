/* test_limit_rows.c — kernels behind NonZero stop at the selected rows, and no reader sees the others. The interpreted
 * plan fills memory with NaN first, so a row that is read without being computed shows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "plan/plan.h"
#include "tests/support/graph_code.h"

static const int64_t lengths[] = {1, 2, 7, 16, 33, 40, 0};

/* How many kernels of a kind have a limit. */
static int count_limited(const char *text, pl_kind kind)
{
    ir_arena *arena = ir_arena_create(0);
    const pl_plan *plan = graph_plan(text, 40, arena);
    int count = 0;
    for (int k = 0; k < plan->kernel_count; k++)
        count += plan->kernels[k].limit != NULL && plan->kernels[k].kind == kind;
    ir_arena_destroy(arena);
    return count;
}

/* An expert of two products on the rows r, which are 8 wide. */
#define EXPERT                                                                                                         \
    "w = weights f32[8,16]\nv = weights f32[16,8]\nwb = weights f32[16]\ne = Gemm(r, w, wb)\ng = Gelu(e)\n"            \
    "d = MatMul(g, v)\n"
#define SLOTS "x = input f32[L,8]\nm = input bool[2,L]\ni = NonZero(m)\none = constant i64[] [1]\nt = Gather(i, one)\n"
#define PICKED "ax = constant i64[1] [-1]\nu = Unsqueeze(t, ax)\nr = Gather(x, t)\n"

static void experts_compute_selected_rows(void **state)
{
    (void)state;
    const char *text = SLOTS PICKED EXPERT "y = ScatterND(x, u, d) {reduction=\"add\"}\nreturn y\n";
    assert_code_agrees_everywhere(text, lengths);
    assert_int_equal(count_limited(text, PL_LINEAR), 2);
    assert_int_equal(count_limited(text, PL_NEST), 1); /* the gather; integers have all rows */
}

static void other_readers_need_all_rows(void **state)
{
    (void)state;
    const char *text = SLOTS PICKED EXPERT "y = ScatterND(x, u, d) {reduction=\"add\"}\nzero = constant i64[1] [0]\n"
                                           "z = ReduceMax(d, zero)\nreturn y, z\n";
    assert_code_agrees(text, lengths);
    assert_int_equal(count_limited(text, PL_LINEAR), 0);
    /* Two selections of one tensor's rows have two counts. */
    text = SLOTS PICKED EXPERT "n = input bool[2,L]\nj = NonZero(n)\ns = Gather(j, one)\nus = Unsqueeze(s, ax)\n"
                               "q = Gather(x, s)\nf = Mul(q, q)\ny = ScatterND(x, u, d) {reduction=\"add\"}\n"
                               "z = ScatterND(y, us, f) {reduction=\"add\"}\nreturn z\n";
    assert_code_agrees(text, lengths);
}

static uint64_t random_state;

static int below(int limit)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (int)((random_state >> 33) % (uint64_t)limit);
}

/* A selection by a random mask, row-wise operators on its rows, and scatters of one or two results. */
static void random_selections_agree(void **state)
{
    (void)state;
    static const char *const masks[] = {
        "m = input bool[L]\nj = NonZero(m)\nz0 = constant i64[] [0]\nt = Gather(j, z0)\n",
        "m = input bool[3,L]\nj = NonZero(m)\nz0 = constant i64[] [1]\nt = Gather(j, z0)\n",
        "m = input bool[L,2]\nj = NonZero(m)\nz0 = constant i64[] [0]\nt = Gather(j, z0)\n",
    };
    static const char *const rows[] = {
        "r%d = Exp(r%d)\n",
        "a%1$d = weights f32[8,8]\nr%1$d = MatMul(r%2$d, a%1$d)\n",
        "a%1$d = weights f32[8,24]\nb%1$d = weights f32[24,8]\nc%1$d = MatMul(r%2$d, a%1$d)\ne%1$d = Relu(c%1$d)\n"
        "r%1$d = MatMul(e%1$d, b%1$d)\n",
        "a%1$d = weights f32[8]\nr%1$d = LayerNormalization(r%2$d, a%1$d) {axis=-1}\n",
        "r%d = Softmax(r%d) {axis=-1}\n",
        "a%1$d = Gather(x, t)\nr%1$d = Mul(r%2$d, a%1$d)\n",
        "a%1$d = constant i64[3] [-1, 2, 4]\nc%1$d = Reshape(r%2$d, a%1$d)\nw%1$d = weights f32[4,4]\n"
        "h%1$d = MatMul(c%1$d, w%1$d)\nb%1$d = constant i64[2] [-1, 8]\nr%1$d = Reshape(h%1$d, b%1$d)\n",
        "a%1$d = constant i64[1] [-1]\nn%1$d = ReduceMean(r%2$d, a%1$d)\nr%1$d = Sub(r%2$d, n%1$d)\n",
        "a%1$d = constant i64[1] [4]\nb%1$d = constant i64[1] [0]\nc%1$d = constant i64[1] [1]\n"
        "d%1$d = constant i64[1] [8]\ne%1$d = Slice(r%2$d, b%1$d, a%1$d, c%1$d)\n"
        "f%1$d = Slice(r%2$d, a%1$d, d%1$d, c%1$d)\nr%1$d = Concat(f%1$d, e%1$d) {axis=1}\n",
    };
    static const char *const ends[] = {
        "u%1$d = Unsqueeze(t, one)\ny%1$d = ScatterND(y%2$d, u%1$d, r%3$d) {reduction=\"add\"}\n",
        ("u%1$d = Unsqueeze(t, one)\ns%1$d = Shape(r%3$d)\nv%1$d = Expand(u%1$d, s%1$d)\n"
         "y%1$d = ScatterElements(y%2$d, v%1$d, r%3$d) {axis=0, reduction=\"add\"}\n"),
        "u%1$d = Unsqueeze(t, one)\ny%1$d = ScatterND(y%2$d, u%1$d, r%3$d) {reduction=\"max\"}\n",
    };
    for (int number = 0; number < 24; number++) {
        char text[8192];
        random_state = (uint64_t)number + 51;
        size_t end = (size_t)snprintf(text, sizeof text,
                                      "x = input f32[L,8]\ny0 = Mul(x, x)\none = constant i64[1] [1]\n%s"
                                      "r0 = Gather(x, t)\n",
                                      masks[below(3)]);
        int last = 0, results = 0;
        for (int step = 1 + below(5); step > 0; step--) {
            end += (size_t)snprintf(text + end, sizeof text - end, rows[below(9)], last + 1, last);
            last++;
            if (step > 1 && below(4) > 0) continue;
            end += (size_t)snprintf(text + end, sizeof text - end, ends[below(3)], results + 1, results, last);
            results++;
        }
        snprintf(text + end, sizeof text - end, "return y%d\n", results);
        assert_code_agrees(text, lengths);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(experts_compute_selected_rows),
        cmocka_unit_test(other_readers_need_all_rows),
        cmocka_unit_test(random_selections_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
