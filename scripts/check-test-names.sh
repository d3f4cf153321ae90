#!/bin/sh
# Test programs mirror the tree:
#
#     scripts/check-test-names.sh [TREE, by default this one]
#
#   - tests/<folder>/test_<subject>.c tests <folder>, which exists. The folders of $whole hold tests of several folders;
#   - no two test programs have one name, because ctest and the build know them by it;
#   - every source file <folder>/FILE.c of $sources has a test program tests/<folder>/test_FILE.c, or with a part of the
#     folder's name in front of FILE (tests/ir/ops/test_ops_norm.c). For other source files tests/sources.txt names the
#     programs that test them, for example "plan/chain.c test_plan_random". Each row of it is needed;
#   - each program of a row refers to its source file, either itself or in a file of tests/ that it includes, or in the
#     source file of such a header. A reference is the file's header, another header of its folder or of a folder
#     above, an external function of the file, or the public entry to its code: the public header of its library, or
#     MDOT_CLI, the path of the command, for cli/ and compiler/.
#
# Every breach is printed as "FILE: REASON"; exit status 1 if there is one.
set -eu
cd "${1:-$(dirname "$0")/..}"
whole="abi cuda_host fault growth portability weights"
sources="base runtime ir plan frontend codegen compiler cli cluster/accounting cluster/store cluster/slurm cluster/service"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM

find tests cluster/tests -name 'test_*.c' | LC_ALL=C sort > "$work/programs"
[ -s "$work/programs" ] || { echo "check-test-names.sh: no test programs in $(pwd)/tests" >&2; exit 2; }
# shellcheck disable=SC2086 # a list of folders
find $sources -name '*.c' | LC_ALL=C sort > "$work/sources"

while read -r program; do
    folder=$(dirname "$program" | sed "s|tests/||")
    case " $whole " in *" $folder "*) continue ;; esac
    [ -d "$folder" ] || echo "$program: the folder $folder is missing, and $folder holds no tests of several folders"
done < "$work/programs" > "$work/breaches"
sed 's|.*/||' "$work/programs" | sort | uniq -d | sed 's/$/: two test programs have this name/' >> "$work/breaches"

touch "$work/none"
table=tests/sources.txt
[ -e "$table" ] || table=$work/none
awk -v table="$table" '
function tests(folder) { return sub(/^cluster\//, "cluster/tests/", folder) ? folder : "tests/" folder }
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
        mirrored = has[tests(folder) "/test_" file]
        parts = split(folder, part, "/")
        for (k = 1; k <= parts; k++) mirrored = mirrored || has[tests(folder) "/test_" part[k] "_" file]
        if (mirrored && row[sources[i]]) print table ": " sources[i] " has a test program of its own name; remove the row"
        if (!mirrored && !row[sources[i]])
            print sources[i] ": " tests(folder) "/test_" file " is missing, and so is a row in tests/sources.txt"
    }
}' "$work/programs" "$work/sources" "$table" >> "$work/breaches"

# Collects identifiers and included headers for each file in tests/. A test that includes tests/X.h also has the
# identifiers and headers of X.h and X.c.
find tests cluster/tests -name '*.[ch]' | LC_ALL=C sort > "$work/tests"
touch "$work/rows"
grep -v '^#' "$table" > "$work/rows" || true
awk -v table="$table" '
# Adds the tests that `file` includes to the list `closure`, in order of discovery.
function close_over(file,    at, k, to) {
    size = 1; closure[1] = file
    split("", inside); inside[file] = 1
    for (at = 1; at <= size; at++)
        for (k = 1; k <= includes[closure[at]]; k++) {
            to = included[closure[at], k]
            if ((to in is_test) && !(to in inside)) { closure[++size] = to; inside[to] = 1 }
            sub(/\.h$/, ".c", to)
            if ((to in is_test) && !(to in inside)) { closure[++size] = to; inside[to] = 1 }
        }
}
function has_word(word,    at) {
    for (at = 1; at <= size; at++) if ((closure[at], word) in words) return 1
    return 0
}
# Headers in the folder of `source` or a folder above.
function includes_near(source,    at, k, folder) {
    for (at = 1; at <= size; at++)
        for (k = 1; k <= includes[closure[at]]; k++) {
            folder = included[closure[at], k]
            if (sub(/\/[^\/]*$/, "", folder) && index(source, folder "/") == 1) return 1
        }
    return 0
}
function includes_public(source,    top, at, k, header) {
    top = source; sub(/\/.*/, "", top)
    for (at = 1; at <= size; at++)
        for (k = 1; k <= includes[closure[at]]; k++) {
            header = included[closure[at], k]
            if (header !~ /^mdot\//) continue
            if (top == "frontend" && header == "mdot/mdotjob.h") return 1
            if ((top == "compiler" || top == "codegen") && header == "mdot/mdotc.h") return 1
            if (top == "cluster" && header == "mdot/mdot_store.h") return 1
            if ((top == "runtime" || top == "base") && header !~ /mdot(job|c|_store)\.h$/) return 1
        }
    return (top == "cli" || top == "compiler") && has_word("MDOT_CLI") || top == "cluster" && (has_word("MDOT_STORE") || has_word("MDOTD"))
}
function calls(source,    line, name) {
    while ((getline line < source) > 0) {
        if (line !~ /^[a-z].*\(/ || line ~ /^(static|typedef|extern) / || line ~ /;$/) continue
        name = line; sub(/\(.*/, "", name); sub(/.*[ *]/, "", name)
        if (has_word(name)) { close(source); return 1 }
    }
    close(source)
    return 0
}
FILENAME == ARGV[1] { is_test[$1] = 1; name = $1; sub(/.*\//, "", name); sub(/\.c$/, "", name); path[name] = $1; next }
FILENAME == ARGV[2] { row[++rows] = $0; next }
/^#[ ]*include "/ {
    split($0, quoted, "\"")
    if (FILENAME ~ /^cluster\//) sub(/^(tests\/)?(accounting|history|simulator|slurm|store)\//, "cluster/&", quoted[2])
    included[FILENAME, ++includes[FILENAME]] = quoted[2]
    next
}
{
    count = split($0, part, /[^A-Za-z0-9_]+/)
    for (i = 1; i <= count; i++) words[FILENAME, part[i]] = 1
}
END {
    for (r = 1; r <= rows; r++) {
        count = split(row[r], field, " ")
        for (i = 2; i <= count; i++) {
            if (!(field[i] in path)) continue
            close_over(path[field[i]])
            if (!includes_near(field[1]) && !includes_public(field[1]) && !calls(field[1]))
                print table ": " field[i] " includes no header of " field[1] " and calls none of its functions"
        }
    }
}' "$work/tests" "$work/rows" $(cat "$work/tests") >> "$work/breaches"

cat "$work/breaches"
[ ! -s "$work/breaches" ]
