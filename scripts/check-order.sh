#!/bin/sh
# Checks that generated code is independent of the C compiler that built mdot: at most one argument of a call may emit code
# or add to a graph.
#
#     scripts/check-order.sh BUILD
#
# The rule exists because C leaves the evaluation order of arguments to the compiler: f(e, g(e), h(e)) may emit
# different code with each compiler. Reads clang's syntax tree dump. A function emits if it calls, directly or
# indirectly, an emitting function of LLVM or an adding function of ir/graph.h, or any function pointer. Initialisers
# are allowed, because gcc and clang evaluate them in order. Prints each breach as "FILE:LINE:COLUMN: …". Exit status 1
# if there is a breach, 77 if clang is missing or its dump format is unsupported.
set -eu
[ $# -eq 1 ] || { echo "usage: check-order.sh BUILD" >&2; exit 2; }
build=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
command -v clang > /dev/null || { echo "skipped: there is no clang"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM

cat > "$work/calls.awk" <<'AWK'
# Prints "calls FUNCTION CALLED" for each call, and "within PLACE ARGUMENT CALLED" for each call inside an argument.
function called(name,    d) {
    print "calls", caller, name
    for (d = depth - 3; d > 0; d--)
        if (above[d] == "CallExpr" && nth[d + 1] > 1 && file_of[d] == wanted)
            print "within", file_of[d] ":" place_of[d], nth[d + 1], name
}
{
    file_of[depth] = begin_file; place_of[depth] = begin_line ":" begin_column
    if (kind == "FunctionDecl" && match(rest, /[A-Za-z_0-9]+ '/)) caller = substr(rest, RSTART, RLENGTH - 2)
    if (above[depth - 1] == "CallExpr" && nth[depth] == 1 && rest ~ /<LValueToRValue>/) { depth++; called("*"); depth-- }
    if (above[depth - 2] == "CallExpr" && nth[depth - 1] == 1 && match(rest, / Function 0x[0-9a-f]+ '[^']*'/)) {
        split(substr(rest, RSTART, RLENGTH), quoted, "'")
        called(quoted[2])
    }
}
AWK

cat > "$work/breaches.awk" <<'AWK'
$1 == "calls" {
    from[++count] = $2; to[count] = $3
    if ($3 ~ /^(\*$|ir_graph_add_|LLVM(Build|Add|Append|Insert|Position))/) emits[$3] = 1
}
$1 == "within" { site[++sites] = $2; argument[sites] = $3; name[sites] = $4 }
END {
    do {
        more = 0
        for (i = 1; i <= count; i++) if (to[i] in emits && !(from[i] in emits)) { emits[from[i]] = 1; more = 1 }
    } while (more)
    for (i = 1; i <= sites; i++) {
        if (!(name[i] in emits) || (site[i], argument[i]) in seen) continue
        seen[site[i], argument[i]] = 1
        if (++arguments[site[i]] == 2) print site[i] ": two arguments emit code, one of them by " name[i]
    }
}
AWK

# The script must find exactly the known breaches of this sample. Otherwise the format of the dump is unsupported.
cat > "$work/sample.c" <<'C'
int LLVMBuildAdd(int e, int a, int b);
static int one(int e) { return LLVMBuildAdd(e, 1, 2); }
static int two(int e) { return one(e); }
static int none(int e) { return e; }
int f(int e, int (*emit)(int e))
{
    int a = LLVMBuildAdd(e, one(e), none(e));
    int b = LLVMBuildAdd(e, one(e), 1 + two(e));
    int c[] = {one(e), two(e)};
    int d = none(one(none(two(e))));
    return LLVMBuildAdd(a, emit(b), one(c[0])) + LLVMBuildAdd(d, none(e), 1);
}
C

# dump FILE OPTION…
dump() {
    file=$1
    shift
    clang "$@" -fsyntax-only -Xclang -ast-dump "$file" 2> "$work/errors" |
        awk -v wanted="$file" -f scripts/clang-dump.awk -f "$work/calls.awk"
}
dump "$work/sample.c" | awk -f "$work/breaches.awk" | cut -d: -f2,3 | sort | tr '\n' ' ' > "$work/known"
[ "$(cat "$work/known")" = "11:12 8:13 " ] ||
    { echo "skipped: unknown format of this clang's dump: $(cat "$work/known")"; exit 77; }

system=$(grep -o -- '-isystem [^ "]*' "$build/compile_commands.json" | sort -u | tr '\n' ' ')
for source in codegen/cpu/*.c ir/passes/*.c; do
    # shellcheck disable=SC2086 # a list of words
    dump "$source" -std=c11 -D_GNU_SOURCE -I. -Iinclude $system >> "$work/calls"
    grep -q '^calls' "$work/calls" && ! grep -q 'error:' "$work/errors" ||
        { cat "$work/errors" >&2; echo "$source: clang fails" >&2; exit 2; }
done
awk -f "$work/breaches.awk" "$work/calls" | sort > "$work/found"
cat "$work/found"
[ ! -s "$work/found" ] || exit 1
