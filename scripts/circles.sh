#!/bin/sh
# Finds circles of files that call each other, in the object files of a build:
#
#     scripts/circles.sh [BUILD FOLDER, by default build/release]
#
# A file calls another in the same library if the other defines one of its undefined symbols. Files that reach each
# other form a circle. A circle is harmful because no member can be read, tested or removed alone. Prints each circle
# with the symbols that connect it. Exit status 1 if there is one. Calls between two libraries may go in one direction
# only.
set -eu
cd "$(dirname "$0")/.."
build=${1:-build/release}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM

# Lines "FILE d SYMBOL" and "FILE u SYMBOL" for every library object file, by source name. An object compiled twice, for
# a static and a shared library, counts as one file.
sed -n 's|^ *"command": .* -o \([^ ]*\.o\) .*|\1|p' "$build/compile_commands.json" |
    grep -E '^(base|runtime|ir|plan|weights|frontend|codegen|compiler|cluster|cli)/' | grep -v '^cluster/tests/' > "$work/objects" ||
    { echo "circles.sh: $build/compile_commands.json names no object files" >&2; exit 2; }
(cd "$build" && xargs nm -A -P -g) < "$work/objects" |
    sed 's|/CMakeFiles/[^ ]*\.dir/|/|; s|\.o: | |' | awk '{ print $1, $3 == "U" ? "u" : "d", $2 }' | sort -u > "$work/symbols"

# Strongly connected components by reachability, of files within a library and of libraries: a few dozen files each.
awk '
function library(file) { # base/command and base/training are not parts of the other libraries, unlike the files of base/
    return match(file, /^base\/(command|training)\//) ? substr(file, 1, RLENGTH - 1) : substr(file, 1, index(file, "/") - 1)
}
function edge(from, to, symbol,    key) {
    key = from " → " to
    if (!(key in ties)) { next_of[from, ++degree[from]] = to; ties[key] = symbol } else ties[key] = ties[key] " " symbol
    node[from] = node[to] = 1
}
function walk(start,    top, at, k, to) { # finds the nodes that are reachable from start
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
$2 == "d" { owner[$3] = owner[$3] " " $1 }
$3 == "cli_program" { next } # each program defines it for base/command
$2 == "u" { user[++users] = $1; wanted[users] = $3 }
END {
    for (u = 1; u <= users; u++) {
        here = library(user[u])
        count = split(owner[wanted[u]], owners, " ")
        inside = 0
        for (o = 1; o <= count; o++) inside = inside || library(owners[o]) == here
        for (o = 1; o <= count; o++) {
            if (library(owners[o]) == here && owners[o] != user[u]) edge(user[u], owners[o], wanted[u])
            if (!inside) edge(here, library(owners[o]), user[u] ":" wanted[u])
        }
    }
    for (n in node) walk(n)
    for (n in node) {
        if (!((n, n) in reaches) || n in seen) continue
        size = 0; text = ""
        for (m in node) {
            if (!((n, m) in reaches) || !((m, n) in reaches)) continue
            seen[m] = 1
            member[++size] = m
        }
        for (a = 1; a <= size; a++)
            for (b = 1; b <= size; b++)
                if ((member[a] " → " member[b]) in ties) {
                    line = "    " member[a] " → " member[b] ": " ties[member[a] " → " member[b]]
                    text = text substr(line, 1, 200) "\n"
                }
        circles++
        printf "a circle of %d:\n%s", size, text
    }
    print circles + 0, circles == 1 ? "circle" : "circles"
    exit circles > 0
}' "$work/symbols"
