#!/bin/sh
# Reports circles of files through headers:
#
#     scripts/check-headers.sh [TREE, by default this one [FOLDER …, by default all libraries and programs]]
#
# X.c and X.h are one file. A file depends on another if it includes the other's header. A header without a source file
# counts as a file, too. No file in a circle can be read, tested or reused alone, although the headers themselves may be
# free of circles (scripts/check-walls.sh checks those). Prints each file in a circle with the next file it includes.
# Exit status 1 if there is one.
set -eu
tree=${1:-$(dirname "$0")/..}
[ $# -eq 0 ] || shift
cd "$tree"
[ $# -gt 0 ] || set -- base benchmarks cli cluster codegen compiler frontend ir plan runtime
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM

for folder in "$@"; do
    find "$folder" -name '*.[ch]' 2> "$work/missing" | LC_ALL=C sort > "$work/found"
    [ -s "$work/found" ] || { echo "check-headers.sh: no sources in $(pwd)/$folder" >&2; exit 2; }
    cat "$work/found"
done > "$work/files"
# "FILE FILE" for every include, without extensions. A file's own header makes no edge.
xargs grep -H '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' < "$work/files" |
    sed 's/^\([^:]*\)\.[ch]:[^"]*"\([^"]*\)\.h".*/\1 \2/' |
    awk '/^cluster\// && $2 ~ /^(accounting|history|simulator|slurm|store)\// { $2 = "cluster/" $2 } { print }' |
    awk 'NF == 2 && $1 != $2' | LC_ALL=C sort -u > "$work/edges"

# A file is in a circle if it reaches itself. The graph has about three thousand edges.
awk '
{ next_of[$1, ++degree[$1]] = $2; node[$1] = node[$2] = 1 }
function walk(start,    top, at, k, to) {
    top = 1; stack[1] = start
    while (top > 0) {
        at = stack[top--]
        for (k = 1; k <= degree[at]; k++) {
            to = next_of[at, k]
            if ((start, to) in reaches) continue
            reaches[start, to] = 1
            stack[++top] = to
        }
    }
}
END {
    for (n in node) walk(n)
    for (n in node)
        for (k = 1; k <= degree[n]; k++)
            if ((next_of[n, k], n) in reaches) print n ": is in a circle: includes " next_of[n, k] ".h"
}' "$work/edges" | LC_ALL=C sort > "$work/circles"
cat "$work/circles"
[ ! -s "$work/circles" ]
