#!/bin/sh
# Tests the mutant generator: on a small file it finds each kind of change, `write` makes one, and `combine` makes
# several, selected by the environment. Usage: mutants.sh MUTANTS COMPILER
set -eu
mutants=$1 compiler=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
cat > "$work/small.c" <<'C'
#include <stdio.h>
void *calloc(unsigned long, unsigned long);
#define LIMIT 7
static const int table[2] = {3, 0};
/* 5 + 6 stays */
static int pick(int a, int (*f)(int), const char *text)
{
    int sum = a + 1;
    if (a > 2) sum += f(a);
    for (int i = 0; i < 2 && !text; i++) sum--;
    puts(text);
    return sum == 4 ? table[0] : sum;
}
static int twice(int x)
{
    return 2 * x;
}
unsigned mix(unsigned a, unsigned *b)
{
    unsigned hash = a * 31 + 4;
    hash = hash ^ (b != 0);
    return hash + 6;
}
void *room(unsigned long n)
{
    return n == 8 ? calloc((n) + 1, 9) : calloc(n + 1 * n, 1);
}
int main(void)
{
    printf("%d %d\n", pick(1, twice, "1 < 2"), pick(3, twice, ""));
    return 0;
}
static unsigned sum_to(unsigned n)
{
    return n == 0 ? 0 : n + sum_to(n - 1);
}
C
cd "$work"
"$mutants" list 1 0 small.c > list
fail() { echo "$1"; cat list; exit 1; }
expect() { cut -f 3- list | grep -qxF "$(printf "$1")" || fail "lacks: $1"; }
expect '4\tfile\t3 -> (3 + 1)'
expect '8\tfunction\t+ -> -'
expect '8\tfunction\t1 -> 0'
expect '9\tfunction\t(a > 2) -> (0)'
expect '9\tfunction\t> -> >='
expect '9\tfunction\tsum += f(a) -> (nothing)'
expect '9\tfunction\t+= -> -='
expect '10\tfunction\ti < 2 && !text -> 0'
expect '10\tfunction\t! -> (nothing)'
expect '10\tfunction\t-- -> ++'
expect '11\tfunction\tputs(text) -> (nothing)'
expect '12\tfunction\t? -> || 1 ?'
expect '12\tfunction\tsum == 4 ? table[0] : sum -> 0'
expect '16\tfunction\t* -> /'
# Neither comments, strings, preprocessor lines, sizes of arrays nor plain results.
if cut -f 3 list | grep -qxE '1|3|5'; then fail "changes a comment or a preprocessor line"; fi
[ "$(cut -f 3 list | grep -cx 4)" = 2 ] || fail "changes the size of an array"
# Nor arithmetic of hashes, nor the further element of an allocation.
expect '22\tfunction\t+ -> -'
expect '26\tfunction\t1 -> 0'
if cut -f 3 list | grep -qxE '20|21'; then fail "changes a hash"; fi
[ "$(cut -f 3,5 list | grep -cxF "$(printf '26\t1 -> 0')")" = 2 ] || fail "changes the further element of an allocation"
[ "$("$mutants" list 1 5 small.c | wc -l)" = 5 ] || fail "a sample has another size"
[ "$("$mutants" list 9 5 small.c)" = "$("$mutants" list 9 5 small.c)" ] || fail "a sample differs from itself"
number=$(awk -F '\t' '$5 == "* -> /" { print $2 }' list)
"$mutants" write small.c "$number" > mutant.c
[ "$(diff small.c mutant.c | grep -c '^>')" = 1 ] && grep -qxF '    return 2 / x;' mutant.c || fail "the mutant is another one"
other=$(awk -F '\t' '$5 == "(a > 2) -> (0)" { print $2 }' list)
"$mutants" combine small.c "$number" "$other" > combined.c
"$compiler" -w -o combined combined.c
[ "$(./combined | tail -n 1)" = "2 10" ] || fail "combined: $(./combined)"
[ "$(MDOT_MUTANT=$number ./combined | tail -n 1)" = "2 3" ] || fail "mutant $number: $(MDOT_MUTANT=$number ./combined)"
[ "$(MDOT_MUTANT=$other ./combined | tail -n 1)" = "2 3" ] || fail "mutant $other: $(MDOT_MUTANT=$other ./combined)"
# A function that calls itself.
"$mutants" combine small.c $(awk -F '\t' '$3 == 35 { print $2 }' list) > combined.c
"$compiler" -w -Werror=implicit-function-declaration -o combined combined.c || fail "a function that calls itself"
if "$mutants" write small.c 9999 2> /dev/null; then fail "an unknown number is accepted"; fi
