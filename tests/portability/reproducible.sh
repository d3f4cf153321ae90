#!/bin/sh
# Checks that two builds in different folders give the same libraries, byte by byte, because nothing of a build's place or time
# is in them. "all" compares the three libraries, which takes minutes; "runtime" compares libmdot alone.
# Usage: reproducible.sh SOURCE_FOLDER runtime|all
set -eu
source=$1 part=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "$*"; exit 1; }
compiler=OFF targets='mdot mdot_shared'
[ "$part" = runtime ] || { compiler=ON targets='mdot mdot_shared mdotjob mdotjob_shared mdotc mdotc_shared'; }
for build in "$work/a" "$work/deeper/folder/of/another/length"; do
    cmake -S "$source" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DMDOT_TESTS=OFF -DMDOT_COMPILER=$compiler > "$work/log" 2>&1 ||
        fail "$(cat "$work/log")"
    # ccache would answer the second build with the first one's files
    # shellcheck disable=SC2086 # a list of words
    CCACHE_DISABLE=1 cmake --build "$build" --target $targets > "$work/log" 2>&1 || fail "$(tail -20 "$work/log")"
    (cd "$build" && find . -name 'libmdot*.so*' -o -name 'libmdot*.a' | sort | xargs sha256sum) > "$work/sums.$(basename "$build")"
done
[ -s "$work/sums.a" ] || fail "no library was built"
diff "$work/sums.a" "$work/sums.length" || fail "the libraries depend on the folder or the time of the build"
strings -a "$work/a"/runtime/libmdot.so.* | grep -F "$work" && fail "libmdot contains the path of its build folder"
exit 0
