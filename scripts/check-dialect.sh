#!/bin/sh
# Checks the dialect: pointers must be compared with NULL, and statuses with MDOT_OK, wherever a truth value is expected.
#
#     scripts/check-dialect.sh BUILD [FOLDER…, by default all]
#
# Reads clang's dump of the syntax tree (with BUILD's generated headers). Prints each breach as "FILE:LINE:COLUMN: …". Exit
# status 1 if there is a breach, 77 if clang is missing or its dump format is unsupported.
set -eu
[ $# -ge 1 ] || { echo "usage: check-dialect.sh BUILD [FOLDER…]" >&2; exit 2; }
build=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
shift
[ $# -gt 0 ] || set -- base benchmarks cli cluster codegen compiler examples frontend ir plan runtime
command -v clang > /dev/null || { echo "skipped: there is no clang"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM

cat > "$work/breaches.awk" <<'AWK'
# Finds pointers and statuses that clang's -ast-dump shows as truth values.
function type_of(text, parts, count) { # the last of the quoted types after the locations
    count = split(text, parts, "'")
    return count >= 5 && parts[3] == ":" ? parts[4] : parts[2]
}
{
    type = type_of(rest)
    parent = above[depth - 1]; index_here = nth[depth]
    asked = parent == "IfStmt" && index_here == 1 || parent == "WhileStmt" && index_here == 1 ||
            parent == "DoStmt" && index_here == 2 || parent == "ForStmt" && index_here == 3 ||
            parent == "ConditionalOperator" && index_here == 1 || parent == "truth"
    if (kind == "BinaryOperator" && rest ~ / '(&&|\|\|)'/) above[depth] = "truth"
    else if (kind == "UnaryOperator" && rest ~ / prefix '!'/) above[depth] = "truth"
    else if (kind == "ImplicitCastExpr" && rest ~ /<(PointerToBoolean|IntegralToBoolean)>/) above[depth] = "truth"
    else if (asked && (kind == "ImplicitCastExpr" && rest ~ /<IntegralCast>/ || kind == "ParenExpr")) above[depth] = "truth"
    is_pointer = type ~ /\*( ?(const|restrict))?$/ || type ~ /\(\*\)/
    is_status = type == "mdot_status" || type == "enum mdot_status"
    if (asked && above[depth] != "truth" && (is_pointer || is_status) && begin_file == wanted)
        print begin_file ":" begin_line ":" begin_column ": not compared with " (is_pointer ? "NULL" : "MDOT_OK")
}
AWK

# breaches NAME < dump
breaches() {
    awk -v wanted="$1" -f scripts/clang-dump.awk -f "$work/breaches.awk"
}

# The script must find exactly the known breaches of this sample. Otherwise the format of the dump is unsupported.
cat > "$work/sample.c" <<'C'
typedef enum mdot_status { MDOT_OK } mdot_status;
struct s { struct s *next; int n; };
mdot_status run(void);
int f(struct s *p, mdot_status status, int n, int (*call)(void))
{
    if (p) return 1;
    if (!p->next && status) return 2;
    _Bool b = p;
    while (run()) b = !status;
    for (struct s *q = p; q; q = q->next) n += call ? 1 : 0;
    if (n || b || p != 0 || status == MDOT_OK || p->n) return 3;
    return status ? n : b;
}
C
clang -fsyntax-only -Xclang -ast-dump "$work/sample.c" 2> /dev/null | breaches "$work/sample.c" | cut -d: -f2,3 |
    tr '\n' ' ' > "$work/known"
[ "$(cat "$work/known")" = "6:9 7:10 7:21 8:15 9:12 9:24 10:27 10:48 12:12 " ] ||
    { echo "skipped: unknown format of this clang's dump: $(cat "$work/known")"; exit 77; }

system=$(grep -o -- '-isystem [^ "]*' "$build/compile_commands.json" | sort -u | tr '\n' ' ')
count=0
for folder in "$@"; do find "$folder" -path cluster/tests -prune -o -name '*.c' -print; done | LC_ALL=C sort > "$work/files"
while read -r file; do
    # shellcheck disable=SC2086 # a list of words
    if ! clang -std=c11 -D_GNU_SOURCE -I. -Iinclude -Icluster -Icluster/include -I"$build/frontend" $system -fsyntax-only -Xclang -ast-dump "$file" \
        2> "$work/errors" > "$work/dump"; then
        # Slurm's plugins are skipped if Slurm's headers are absent
        grep -qF "/$file\"" "$build/compile_commands.json" || { echo "$file: not built here"; continue; }
        cat "$work/errors" >&2
        echo "$file: clang fails" >&2
        exit 2
    fi
    breaches "$file" < "$work/dump" >> "$work/found"
    count=$((count + 1))
done < "$work/files"
[ "$count" -gt 0 ] || { echo "no sources in: $*" >&2; exit 2; }
sort -u "$work/found"
[ ! -s "$work/found" ] || exit 1
echo "$count files"
