/* test_spellings.c — encoders in the ways in which exporters and people write them: each becomes the kernels that it
 * should, and computes what it did before.
 *
 * An encoder is a layer with a norm, attention of two heads, a projection with the residual, a norm and a feed-forward
 * network; a case replaces one or two of its parts. Parts are read in order and know these names: x [1,L,16], n (x
 * normalised), q, k, v [1,2,L,8], kt (k transposed), s (scaled scores), p (weights), o [1,2,L,8], a [1,L,16] (heads
 * joined), y (attention's residual), m (normalised), z (the result). `key` is a mask bool[1,1,1,L], `half`, `zero` and
 * `scale` are numbers, `count` the length, `range` 0 … L - 1.
 */
#include "ir/ops.h"
#include "ir/passes.h"
#include "ir/plan/plan.h"
#include "tests/support/graph_notation.h"
#include "tests/support/plan_oracle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define INPUTS                                                                                                         \
    "x = input f32[1,L,16]\nkey = input bool[1,1,1,L]\n"                                                               \
    "gamma = weights f32[16]\nbeta = weights f32[16]\n"                                                                \
    "wq = weights f32[16,16]\nwk = weights f32[16,16]\nwv = weights f32[16,16]\nwo = weights f32[16,16]\n"             \
    "w1 = weights f32[16,32]\nw2 = weights f32[32,16]\nb1 = weights f32[32]\nb2 = weights f32[16]\n"                   \
    "zero = constant f32[] [0]\none = constant f32[] [1]\nhalf = constant f32[] [0.5]\ntwo = constant f32[] [2]\n"     \
    "scale = constant f32[] [0.353553]\n"                                                                              \
    "i0 = constant i64[] [0]\ni1 = constant i64[] [1]\nshape_of_x = Shape(x)\ncount = Gather(shape_of_x, i1)\n"        \
    "range = Range(i0, count, i1)\n"                                                                                   \
    "rows1 = constant i64[2] [-1, 1]\nrow = constant i64[2] [1, -1]\n"                                                 \
    "one1 = constant i64[1] [1]\ncount1 = Reshape(count, one1)\n"                                                      \
    "down = Reshape(range, rows1)\nacross = Reshape(range, row)\n"                                                     \
    "to_heads = constant i64[4] [1, -1, 2, 8]\nto_rows = constant i64[3] [1, -1, 16]\n"
#define NORM "n = LayerNormalization(x, gamma, beta) {axis=-1}\n"
#define ROWS "q0 = MatMul(n, wq)\nk0 = MatMul(n, wk)\nv0 = MatMul(n, wv)\n"
#define SPLIT                                                                                                          \
    "q1 = Reshape(q0, to_heads)\nk1 = Reshape(k0, to_heads)\nv1 = Reshape(v0, to_heads)\n"                             \
    "q = Transpose(q1) {perm=[0, 2, 1, 3]}\nk = Transpose(k1) {perm=[0, 2, 1, 3]}\n"                                   \
    "v = Transpose(v1) {perm=[0, 2, 1, 3]}\n"
#define HEADS ROWS SPLIT
/* The queries and keys are to be rotated yet. */
#define HEADS0                                                                                                         \
    ROWS "q1 = Reshape(q0, to_heads)\nk1 = Reshape(k0, to_heads)\nv1 = Reshape(v0, to_heads)\n"                        \
         "q9 = Transpose(q1) {perm=[0, 2, 1, 3]}\nk9 = Transpose(k1) {perm=[0, 2, 1, 3]}\n"                            \
         "v = Transpose(v1) {perm=[0, 2, 1, 3]}\n"
#define KEYS "kt = Transpose(k) {perm=[0, 1, 3, 2]}\n"
#define SCORES "s0 = MatMul(q, kt)\ns = Mul(s0, scale)\n"
#define WEIGHTS "p = Softmax(s) {axis=-1}\n"
#define CONTEXT "o = MatMul(p, v)\n"
#define JOIN "o1 = Transpose(o) {perm=[0, 2, 1, 3]}\na = Reshape(o1, to_rows)\n"
#define OUT "a1 = MatMul(a, wo)\ny = Add(x, a1)\n"
#define SECOND_NORM "m = LayerNormalization(y, gamma, beta) {axis=-1}\n"
#define FEED "f0 = MatMul(m, w1)\nf1 = Add(f0, b1)\nf = Gelu(f1)\n"
#define LAST "g0 = MatMul(f, w2)\ng = Add(g0, b2)\nz = Add(y, g)\nreturn z\n"
#define BEHIND JOIN OUT SECOND_NORM FEED LAST

/* Whole encoders around what differs. */
#define WITH_SCORES(text) INPUTS NORM HEADS text CONTEXT BEHIND                                     /* from q, k to p */
#define MASKED(text) INPUTS NORM HEADS KEYS SCORES text "p = Softmax(t) {axis=-1}\n" CONTEXT BEHIND /* from s to t */
#define WEIGHED(text) INPUTS NORM HEADS KEYS SCORES text "o = MatMul(w, v)\n" BEHIND                /* from s to w */
#define WITH_HEADS(text) INPUTS NORM text KEYS SCORES WEIGHTS CONTEXT BEHIND                   /* from n to q, k, v */
#define ATTENDED(text) INPUTS NORM text OUT SECOND_NORM FEED LAST                              /* from n to a */
#define FED(text) INPUTS NORM HEADS KEYS SCORES WEIGHTS CONTEXT JOIN OUT SECOND_NORM text LAST /* from m to f */
#define NORMED(text) INPUTS text HEADS KEYS SCORES WEIGHTS CONTEXT BEHIND                      /* from x to n */

#define SELECT(c) "c = constant f32[] [" c "]\nt = Where(key, s, c)\n"
#define CAUSAL "seen = LessOrEqual(across, down)\n"
#define PAIRS "rows2 = Transpose(key) {perm=[0, 1, 3, 2]}\npair = And(key, rows2)\n"
#define CAP "cap = constant f32[] [3]\nc0 = Div(s, cap)\nc1 = Tanh(c0)\ncapped = Mul(c1, cap)\n"
#define TABLE                                                                                                          \
    "table = weights f32[9,2]\ndistance = Sub(down, across)\nfar = constant i64[] [4]\nnear = constant i64[] [-4]\n"   \
    "clipped = Clip(distance, near, far)\nat = Add(clipped, far)\npicked = Gather(table, at)\n"                        \
    "by_head = Transpose(picked) {perm=[2, 0, 1]}\naxis0 = constant i64[1] [0]\nbias = Unsqueeze(by_head, axis0)\n"
#define ANGLES                                                                                                         \
    "frequency = constant f32[1,4] [1, 0.3, 0.1, 0.03]\nplace = Cast(down) {to=1}\nangle = Mul(place, frequency)\n"
#define ROTATE_HALF(x, y)                                                                                              \
    y "a = Slice(" x ", from0, to4, last)\n" y "b = Slice(" x ", to4, to8, last)\n" y "n = Neg(" y "b)\n" y            \
      "r = Concat(" y "n, " y "a) {axis=-1}\n" y "c = Mul(" x ", cosine)\n" y "s = Mul(" y "r, sine)\n" y " = Add(" y  \
      "c, " y "s)\n"
#define SLICES                                                                                                         \
    "from0 = constant i64[1] [0]\nto4 = constant i64[1] [4]\nto8 = constant i64[1] [8]\nlast = constant i64[1] [-1]\n"

typedef struct spelling {
    const char *name, *text, *kernels; /* "attention linear4 nest2 norm2" */
} spelling;

static const spelling spellings[] = {
/* clang-format off */
#include "tests/ir/passes/spellings.inc"
    /* clang-format on */
};

/* "attention linear4 norm2": kinds that occur, and how often where more than once. */
static const char *kernels_of(const pl_plan *plan, ir_arena *arena)
{
    static const pl_kind order[] = {PL_ATTENTION, PL_LINEAR, PL_NEST, PL_NORM, PL_SEQUENTIAL};
    const char *text = "";
    for (size_t k = 0; k < sizeof order / sizeof *order; k++) {
        int count = 0;
        for (int i = 0; i < plan->kernel_count; i++) count += plan->kernels[i].kind == order[k];
        if (count == 0) continue;
        text = ir_arena_printf(arena, "%s%s%s", text, *text ? " " : "", pl_kind_name(order[k]));
        if (count > 1) text = ir_arena_printf(arena, "%s%d", text, count);
    }
    return text;
}

static bool check(const spelling *s)
{
    ir_arena *arena = ir_arena_create(0);
    ir_graph *before = graph_from_notation(s->text, 32, arena), *after = ir_graph_clone(before, arena);
    mdot_error err;
    pl_plan *plan = NULL;
    print_message("%s\n", s->name); /* of which a failed comparison is */
    if (ir_run_passes(after, NULL, &err) != MDOT_OK || pl_build(after, arena, &plan, &err) != MDOT_OK)
        fail_msg("%s: %s", s->name, err.message);
    assert_same_values(before, after, 1, 2e-6);
    assert_same_values(before, after, 7, 2e-6);
    assert_plan_agrees(before, plan, 11, 2e-6);
    const char *kernels = kernels_of(plan, arena);
    bool same = strcmp(kernels, s->kernels) == 0;
    if (!same) print_error("%s: \"%s\", not \"%s\"\n", s->name, kernels, s->kernels);
    ir_arena_destroy(arena);
    return same;
}

static void every_spelling_becomes_its_kernels(void **state)
{
    (void)state;
    int wrong = 0;
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) wrong += !check(&spellings[i]);
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_spelling_becomes_its_kernels)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
