/* encoder_patterns.c — see encoder_patterns.h. The macros here define cases. Each macro covers one part of an
 * encoder that may vary. The parts follow one another and use these names: x [1,L,width], n (x normalised), q, k, v
 * [1,heads,L,head], kt (k transposed), s (scaled scores), p (weights), o [1,heads,L,head], a [1,L,width] (heads
 * joined), y (attention's residual), m (normalised), z (the result). `key` is a mask bool[1,1,1,L], `half`, `zero`
 * and `scale` are numbers, `count` the length, `range` 0 … L - 1. */
#include "tests/support/encoder_patterns.h"
#include "tests/support/assertions.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define INPUTS                                                                                                         \
    "x = input f32[1,L,$width]\nkey = input bool[1,1,1,L]\n"                                                           \
    "gamma = weights f32[$width]\nbeta = weights f32[$width]\n"                                                        \
    "wq = weights f32[$width,$width]\nwk = weights f32[$width,$width]\nwv = weights f32[$width,$width]\nwo = weights " \
    "f32[$width,$width]\n"                                                                                             \
    "w1 = weights f32[$width,$inner]\nw2 = weights f32[$inner,$width]\nb1 = weights f32[$inner]\nb2 = weights "        \
    "f32[$width]\n"                                                                                                    \
    "zero = constant f32[] [0]\none = constant f32[] [1]\nhalf = constant f32[] [0.5]\ntwo = constant f32[] [2]\n"     \
    "scale = constant f32[] [$scale]\n"                                                                                \
    "i0 = constant i64[] [0]\ni1 = constant i64[] [1]\nshape_of_x = Shape(x)\ncount = Gather(shape_of_x, i1)\n"        \
    "range = Range(i0, count, i1)\n"                                                                                   \
    "rows1 = constant i64[2] [-1, 1]\nrow = constant i64[2] [1, -1]\n"                                                 \
    "one1 = constant i64[1] [1]\ncount1 = Reshape(count, one1)\n"                                                      \
    "down = Reshape(range, rows1)\nacross = Reshape(range, row)\n"                                                     \
    "to_heads = constant i64[4] [1, -1, $heads, $head]\nto_rows = constant i64[3] [1, -1, $width]\n"
#define NORM "n = LayerNormalization(x, gamma, beta) {axis=-1}\n"
#define ROWS "q0 = MatMul(n, wq)\nk0 = MatMul(n, wk)\nv0 = MatMul(n, wv)\n"
#define SPLIT                                                                                                          \
    "q1 = Reshape(q0, to_heads)\nk1 = Reshape(k0, to_heads)\nv1 = Reshape(v0, to_heads)\n"                             \
    "q = Transpose(q1) {perm=[0, 2, 1, 3]}\nk = Transpose(k1) {perm=[0, 2, 1, 3]}\n"                                   \
    "v = Transpose(v1) {perm=[0, 2, 1, 3]}\n"
#define HEADS ROWS SPLIT
/* The queries and keys still lack the rotary embedding. */
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

/* Whole encoders around the part that varies. */
/* text: from q, k to p */
#define WITH_SCORES(text) INPUTS NORM HEADS text CONTEXT BEHIND
/* text: from s to t */
#define MASKED(text) INPUTS NORM HEADS KEYS SCORES text "p = Softmax(t) {axis=-1}\n" CONTEXT BEHIND
/* text: from s to w */
#define WEIGHED(text) INPUTS NORM HEADS KEYS SCORES text "o = MatMul(w, v)\n" BEHIND
/* text: from s and other scores u to w */
#define DIFFERENTIAL(text)                                                                                             \
    WEIGHED("wq2 = weights f32[$width,$width]\nwk2 = weights f32[$width,$width]\nq20 = MatMul(n, wq2)\n"               \
            "k20 = MatMul(n, wk2)\nq21 = Reshape(q20, to_heads)\nk21 = Reshape(k20, to_heads)\n"                       \
            "q2 = Transpose(q21) {perm=[0, 2, 1, 3]}\nkt2 = Transpose(k21) {perm=[0, 2, 3, 1]}\n"                      \
            "u0 = MatMul(q2, kt2)\nu = Mul(u0, scale)\n" text)
/* text: from n to q, k, v */
#define WITH_HEADS(text) INPUTS NORM text KEYS SCORES WEIGHTS CONTEXT BEHIND
#define ATTENDED(text) INPUTS NORM text OUT SECOND_NORM FEED LAST                              /* text: from n to a */
#define FED(text) INPUTS NORM HEADS KEYS SCORES WEIGHTS CONTEXT JOIN OUT SECOND_NORM text LAST /* text: from m to f */
#define NORMED(text) INPUTS text HEADS KEYS SCORES WEIGHTS CONTEXT BEHIND                      /* text: from x to n */

#define SELECT(c) "c = constant f32[] [" c "]\nt = Where(key, s, c)\n"
#define CAUSAL "seen = LessOrEqual(across, down)\n"
#define PAIRS "rows2 = Transpose(key) {perm=[0, 1, 3, 2]}\npair = And(key, rows2)\n"
#define CAP "cap = constant f32[] [3]\nc0 = Div(s, cap)\nc1 = Tanh(c0)\ncapped = Mul(c1, cap)\n"
#define TABLE                                                                                                          \
    "table = weights f32[9,$heads]\ndistance = Sub(down, across)\nfar = constant i64[] [4]\nnear = constant i64[] "    \
    "[-4]\n"                                                                                                           \
    "clipped = Clip(distance, near, far)\nat = Add(clipped, far)\npicked = Gather(table, at)\n"                        \
    "by_head = Transpose(picked) {perm=[2, 0, 1]}\naxis0 = constant i64[1] [0]\nbias = Unsqueeze(by_head, axis0)\n"
#define ANGLES "frequency = weights f32[1,$half]\nplace = Cast(down) {to=1}\nangle = Mul(place, frequency)\n"
#define ROTATE_HALF(x, y)                                                                                              \
    y "a = Slice(" x ", from0, to_half, last)\n" y "b = Slice(" x ", to_half, to_head, last)\n" y "n = Neg(" y         \
      "b)\n" y "r = Concat(" y "n, " y "a) {axis=-1}\n" y "c = Mul(" x ", cosine)\n" y "s = Mul(" y "r, sine)\n" y     \
      " = Add(" y "c, " y "s)\n"
#define SLICES                                                                                                         \
    "from0 = constant i64[1] [0]\nto_half = constant i64[1] [$half]\nto_head = constant i64[1] [$head]\nlast = "       \
    "constant i64[1] [-1]\n"

const encoder_pattern encoder_patterns[] = {
/* clang-format off */
#include "tests/support/encoder_patterns.inc"
    /* clang-format on */
};
const int encoder_pattern_count = sizeof encoder_patterns / sizeof *encoder_patterns;

enum { MAX_NAME_BYTES = 64 };

/* Returns the number for "$name". */
static double size_of(const char *name, const encoder_form *form)
{
    const int head = form->width / form->heads;
    const struct {
        const char *name;
        double value;
    } sizes[] = {
        {"width", form->width},
        {"width2", 2 * form->width},
        {"width3", 3 * form->width},
        {"heads", form->heads},
        {"head", head},
        {"head3", 3 * head},
        {"half", head / 2},
        {"inner", form->inner},
        {"inner2", 2 * form->inner},
        {"scale", 1 / sqrt(head)},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (strcmp(sizes[i].name, name) == 0) return sizes[i].value;
    }
    fail_msg("an encoder has no size $%s", name);
    return 0;
}

/* Copies the word at `at` and returns its end. */
static const char *read_word(const char *at, char word[MAX_NAME_BYTES])
{
    size_t length = strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    assert_compare(length, <, MAX_NAME_BYTES);
    memcpy(word, at, length);
    word[length] = 0;
    return at + length;
}

/* Writes the parts other than value names: numbers, types, attributes. */
static void write_plain(FILE *out, const char *at, const char *end, const encoder_form *form)
{
    char word[MAX_NAME_BYTES];
    while (at < end) {
        if (*at == '$') {
            at = read_word(at + 1, word);
            fprintf(out, "%.9g", size_of(word, form));
        } else if (form->half && strncmp(at, "f32[", 4) == 0) {
            fputs("f16", out);
            at += strlen("f32");
        } else if (form->half && strncmp(at, "{to=1}", 6) == 0) {
            fputs("{to=10}", out);
            at += 6;
        } else {
            fputc(*at++, out);
        }
    }
}

typedef struct nth_layer {
    int number;         /* from 0 */
    const char *inputs; /* " x key " */
} nth_layer;

/* Values in later layers end in the layer's number. A layer's x is the z of the layer before. */
static void write_names(FILE *out, const char *at, const char *end, const nth_layer *layer)
{
    char name[MAX_NAME_BYTES], spaced[MAX_NAME_BYTES + 2];
    while (at < end) {
        const char *behind = read_word(at, name);
        if (behind == at) {
            fputc(*at++, out);
            continue;
        }
        at = behind;
        snprintf(spaced, sizeof spaced, " %s ", name);
        int number = layer->number;
        if (number > 0 && strcmp(name, "x") == 0) {
            strcpy(name, "z");
            number--;
        } else if (strstr(layer->inputs, spaced) != NULL) {
            number = 0;
        }
        fputs(name, out);
        if (number > 0 && strcmp(name, "_") != 0) fprintf(out, "_%d", number);
    }
}

/* "a, b = Operator(x, y) {…}", "w = weights f32[…]", "x = input f32[…]" or "return z". */
static void write_line(FILE *out, const char *line, const char *end, const nth_layer *layer, const encoder_form *form)
{
    const char *equals = memchr(line, '=', (size_t)(end - line));
    bool is_input = equals != NULL && strncmp(equals, "= input ", 8) == 0;
    if (equals == NULL ? layer->number < form->layers - 1 : is_input && layer->number > 0) return;
    if (equals == NULL) {
        assert_compare(strncmp(line, "return ", 7), ==, 0);
        fputs("return ", out);
        write_names(out, line + 7, end, layer);
    } else {
        bool is_data = is_input || strncmp(equals, "= constant ", 11) == 0 || strncmp(equals, "= weights ", 10) == 0;
        const char *open = is_data ? NULL : memchr(equals, '(', (size_t)(end - equals));
        const char *close = open == NULL ? equals : memchr(open, ')', (size_t)(end - open));
        write_names(out, line, equals, layer);
        if (open != NULL) {
            fwrite(equals, 1, (size_t)(open - equals), out);
            write_names(out, open, close, layer);
        }
        write_plain(out, close, end, form);
    }
    fputc('\n', out);
}

/* Returns the inputs of a text, for example " x key ". */
static char *inputs_of(const char *text)
{
    char *list = NULL, name[MAX_NAME_BYTES];
    size_t size;
    FILE *out = open_memstream(&list, &size);
    assert_non_null(out);
    fputc(' ', out);
    for (const char *line = text, *end; *line; line = end + 1) {
        end = strchr(line, '\n');
        assert_non_null(end);
        if (strncmp(read_word(line, name), " = input ", 9) == 0) fprintf(out, "%s ", name);
    }
    fclose(out);
    return list;
}

char *encoder_notation(const encoder_pattern *pattern, const encoder_form *form)
{
    char *notation = NULL, *inputs = inputs_of(pattern->text);
    size_t size;
    FILE *out = open_memstream(&notation, &size);
    assert_non_null(out);
    for (int number = 0; number < form->layers; number++) {
        const nth_layer layer = {.number = number, .inputs = inputs};
        for (const char *line = pattern->text, *end; *line; line = end + 1) {
            end = strchr(line, '\n');
            assert_non_null(end);
            write_line(out, line, end, &layer, form);
        }
    }
    fclose(out);
    free(inputs);
    return notation;
}
