#!/bin/sh
# Test programs mirror the tree:
#
#     scripts/check-test-names.sh [TREE, by default this one]
#
#   - tests/<folder>/test_<subject>.c tests <folder>, which exists. The folders of $whole hold tests of several folders;
#   - no two test programs have one name, because ctest and the build know them by it;
#   - every source file <folder>/FILE.c of $sources has a test program tests/<folder>/test_FILE.c, or with a part of the
#     folder's name in front of FILE (tests/ir/ops/test_ops_norm.c). For other source files tests/sources.txt names the
#     programs that test them, for example "ir/plan/chain.c test_plan_random". Each row of it is needed.
#
# Every breach is printed as "FILE: REASON"; exit status 1 if there is one.
set -eu
cd "${1:-$(dirname "$0")/..}"
whole="abi cuda_host fault growth portability weights"
sources="base runtime ir frontend codegen compiler cli"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM

find tests -name 'test_*.c' | LC_ALL=C sort > "$work/programs"
[ -s "$work/programs" ] || { echo "check-test-names.sh: no test programs in $(pwd)/tests" >&2; exit 2; }
# shellcheck disable=SC2086 # a list of folders
find $sources -name '*.c' | LC_ALL=C sort > "$work/sources"

while read -r program; do
    folder=$(dirname "${program#tests/}")
    case " $whole " in *" $folder "*) continue ;; esac
    [ -d "$folder" ] || echo "$program: the folder $folder is missing, and $folder holds no tests of several folders"
done < "$work/programs" > "$work/breaches"
sed 's|.*/||' "$work/programs" | sort | uniq -d | sed 's/$/: two test programs have this name/' >> "$work/breaches"

touch "$work/none"
table=tests/sources.txt
[ -e "$table" ] || table=$work/none
awk -v table="$table" '
FILENAME == ARGV[1] { has[$1] = 1; name = $1; sub(/.*\//, "", name); sub(/\.c$/, "", name); known[name] = 1; next }
FILENAME == ARGV[2] { exists[$1] = 1; sources[++count] = $1; next }
/^#/ || NF == 0 { next }
{
    row[$1] = 1
    if (!exists[$1]) print table ": " $1 " is missing"
    if (NF < 2) print table ": " $1 " has no test program"
    for (i = 2; i <= NF; i++) if (!known[$i]) print table ": the test program " $i " of " $1 " is missing"
}
END {
    for (i = 1; i <= count; i++) {
        folder = sources[i]; sub(/\/[^\/]*$/, "", folder)
        file = sources[i]; sub(/.*\//, "", file)
        mirrored = has["tests/" folder "/test_" file]
        parts = split(folder, part, "/")
        for (k = 1; k <= parts; k++) mirrored = mirrored || has["tests/" folder "/test_" part[k] "_" file]
        if (mirrored && row[sources[i]]) print table ": " sources[i] " has a test program of its own name; remove the row"
        if (!mirrored && !row[sources[i]]) print sources[i] ": tests/" folder "/test_" file " is missing, and so is a row in tests/sources.txt"
    }
}' "$work/programs" "$work/sources" "$table" >> "$work/breaches"

cat "$work/breaches"
[ ! -s "$work/breaches" ]
