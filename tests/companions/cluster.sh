#!/bin/sh
# Installs mdot alone to a scratch prefix, and configures, builds and tests a copy of cluster/ against it in a clean folder.
# Usage: cluster.sh SOURCE_FOLDER BUILD_FOLDER [LABEL, by default fast [CMAKE OPTION…]]
set -eu
source=$1 build=$2 label=${3:-fast}
[ $# -le 3 ] && shift $# || shift 3
command -v ninja > /dev/null || { echo "skipped: there is no ninja"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
fail() { echo "$1"; tail -50 "$work/log"; exit 1; }

for component in runtime job compiler dev base command; do
    cmake --install "$build" --prefix "$work/prefix" --component $component > "$work/log" 2>&1 || fail "cannot install $component"
done
if find "$work/prefix" -name '*store*' | grep .; then echo "the product's components have files of the store"; exit 1; fi
cp -r "$source/cluster" "$work/cluster"
cd "$work/cluster"
cmake -S . -B build -G Ninja -D CMAKE_PREFIX_PATH="$work/prefix" -D MDOT_PYTHON="$source/bindings/python" "$@" > "$work/log" 2>&1 ||
    fail "cluster/ does not configure"
cmake --build build -- --quiet > "$work/log" 2>&1 || fail "cluster/ does not build"
ctest --test-dir build -L "^$label\$" -j 2 --output-on-failure > "$work/log" 2>&1 || fail "tests of cluster/ fail"
sed -n '/tests passed/,$p' "$work/log"
