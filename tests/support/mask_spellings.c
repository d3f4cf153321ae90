/* mask_spellings.c — see mask_spellings.h. */
#include "tests/support/mask_spellings.h"

#include <stdio.h>

/* The lines between the conditions (hidden, seen: bool) with the products (r: unscaled, s: scaled), and the context y.
 * `number` is the masked number. */
static const char *const spelling_text[MASK_SPELLINGS] = {
    "a = Where(hidden, number, zero)\nt = Add(s, a)\n",
    "f = Cast(seen) {to=1}\ni = Sub(one, f)\na = Mul(i, number)\nt = Add(a, s)\n",
    "f = Cast(hidden) {to=1}\nn = Neg(number)\na = Mul(f, n)\nt = Sub(s, a)\n",
    "t = Where(hidden, number, s)\n",
    "t = Where(seen, s, number)\n",
    "a = Where(hidden, number, zero)\nu = Add(r, a)\nt = Mul(u, quarter)\n",
    "a = Where(hidden, number, zero)\nb = Mul(kn, quarter)\nc = Add(a, b)\nt = Add(s, c)\n",
    "a = Where(hidden, number, zero)\nu = Add(s, bias)\nt = Add(u, a)\n",
    "a = Where(hidden, number, zero)\nu = Add(a, s)\nt = Add(u, bias)\n",
    "a = Where(hidden, number, zero)\nb = Where(seen, million, zero)\nu = Add(s, b)\nt = Add(u, a)\n",
    "a = Where(hidden, number, zero)\nb = Mul(kn, quarter)\nu = Add(s, a)\nw = Add(bias, u)\nt = Sub(w, b)\n",
    "a = Where(hidden, number, zero)\nb = Mul(kn, quarter)\nu = Add(s, bias)\nw = Add(u, b)\nt = Add(w, a)\n",
    "a = Where(hidden, number, zero)\nu = Add(r, a)\nw = Mul(u, quarter)\nt = Add(w, bias)\n",
    "u = Where(hidden, number, s)\nt = Add(u, bias)\n",
    "u = Add(s, bias)\nt = Where(seen, u, number)\n",
    "a = Where(hidden, number, zero)\nu = Add(s, a)\nt = Where(seen, million, u)\n",
    "a = Where(hidden, number, zero)\nu = Where(early, number, s)\nt = Add(u, a)\n",
    "a = Where(hidden, number, zero)\nu = Add(s, bias)\nw = Add(u, a)\nt = Where(early, number, w)\n",
    "a = Where(hidden, number, zero)\ny = Attention(q, k, v, a) {scale=0.25}\n",
    "t = Where(hidden, number, s)\nu = Where(hidden, number, t)\ne = Softmax(u) {axis=-1}\ny = MatMul(e, v)\n",
};

void write_masked_attention(int spelling, int number_and_magnitude, char text[static MASK_TEXT_BYTES])
{
    static const char *const numbers[] = {"-1e4", "-65504", "-1e6", "-1e9", "-3.4028234e38", "-inf"};
    static const char *const sizes[] = {"1", "64", "8192"};
    const char *number = numbers[number_and_magnitude % 6], *operators = spelling_text[spelling];
    int used = snprintf(
        text, MASK_TEXT_BYTES,
        "x = input f32[1,2,L,16]\nz = input f32[1,2,L,16]\nv = input f32[1,2,L,16]\nm = input f32[1,1,1,L]\n"
        "p = input f32[1,1,L,L]\nzero = constant f32[] [0]\none = constant f32[] [1]\nquarter = constant f32[] [0.25]\n"
        "eight = constant f32[] [8]\ntwo = constant f32[] [2]\nsize = constant f32[] [%s]\n"
        "unit = constant f32[] [0.015625]\nnumber = constant f32[] [%s]\nlimit = constant f32[1,2,1,1] [%s]\n"
        "million = constant f32[] [-1e6]\nsome = constant f32[] [-0.4]\n"
        "x8 = Mul(x, eight)\nxn = Round(x8)\nxs = Mul(xn, size)\nq = Mul(xs, unit)\nz2 = Mul(z, two)\nk = Round(z2)\n"
        "kt = Transpose(k) {perm=[0, 1, 3, 2]}\nm8 = Mul(m, eight)\nkn = Round(m8)\np8 = Mul(p, eight)\n"
        "pn = Round(p8)\nbias = Mul(pn, eight)\nhidden = Less(m, limit)\nseen = Not(hidden)\n"
        "early = Less(p, some)\n",
        sizes[number_and_magnitude / 6], number, number[1] == 'i' ? "-0.9, -0.9" : "2, 0.25");
    const char *head = "r = MatMul(q, kt)\ns = Mul(r, quarter)\n",
               *tail = "e = Softmax(t) {axis=-1}\ny = MatMul(e, v)\n";
    snprintf(text + used, MASK_TEXT_BYTES - (size_t)used, "%s%s%sreturn y\n",
             spelling == MASK_SPELLINGS - 2 ? "" : head, operators, spelling >= MASK_SPELLINGS - 2 ? "" : tail);
}
