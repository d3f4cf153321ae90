#!/bin/sh
# Tests scripts/check-elf.sh: it reports empty and relative elements of library paths, and accepts absolute ones.
# Usage: elf.sh SCRIPT C_COMPILER
set -eu
script=$1 compiler=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
mkdir "$work/tree"
echo 'int main(void) { return 0; }' > "$work/main.c"

# Builds a program with this RUNPATH.
build() { "$compiler" -o "$work/tree/program" "$work/main.c" "-Wl,--enable-new-dtags,-rpath,$1"; }

# RUNPATH REASON: the script reports the program with this RUNPATH, for this reason.
expect_breach() {
    build "$1"
    if printed=$("$script" "$work/tree"); then
        echo "accepted: the library path \"$1\""
        exit 1
    fi
    [ "$printed" = "$work/tree/program: the library path \"$1\" has $2" ] || { echo "\"$1\": the script prints $printed"; exit 1; }
}

if "$script" "$work/tree" > "$work/printed" 2>&1; then echo "a folder without ELF files is accepted"; exit 1; fi
# shellcheck disable=SC2016 # $ORIGIN is the loader's
for path in /usr/lib '$ORIGIN' '$ORIGIN/../lib:/opt/lib' '${ORIGIN}/lib'; do
    build "$path"
    printed=$("$script" "$work/tree") || { echo "the library path \"$path\" is refused: $printed"; exit 1; }
done
expect_breach /usr/lib: 'an empty element'
expect_breach ::::::: 'an empty element'
expect_breach /usr/lib::/opt/lib 'an empty element'
expect_breach lib 'the relative element "lib"'
expect_breach /usr/lib:../lib 'the relative element "../lib"'
# shellcheck disable=SC2016
expect_breach '$ORIGINAL/lib' 'the relative element "$ORIGINAL/lib"'
echo "breaches are found"
