#!/bin/sh
# Builds programs against an installed libmdotstore: by pkg-config, pkg-config --static, and CMake's find_package with shared and
# static libraries. Asks each program for help. Usage: install.sh BUILD_FOLDER, which installs both mdot and the companion.
set -eu
build=$1
here=$(cd "$(dirname "$0")" && pwd)
for tool in cmake ninja pkg-config cc; do
    command -v "$tool" > /dev/null || { echo "skipped: there is no $tool"; exit 77; }
done
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
fail() { echo "$*"; exit 1; }
prefix=$work/installed
cmake --install "$build" --prefix "$prefix" > "$work/log" 2>&1 || fail "$(cat "$work/log")"
# Each installed program says how to use it, and notices that nobody could read it.
for program in "$prefix"/bin/*; do
    name=$(basename "$program")
    for options in --help -h; do
        "$program" $options > "$work/output" 2> "$work/errors" || fail "$program $options fails"
        [ "$(wc -l < "$work/output")" -gt 2 ] && [ ! -s "$work/errors" ] || fail "$program $options prints $(cat "$work/output" "$work/errors")"
        grep -q -- --version "$work/output" || fail "$program $options lacks --version"
    done
    for options in --version "--version --version"; do
        # shellcheck disable=SC2086 # words
        "$program" $options > "$work/output" 2> "$work/errors" || fail "$program $options fails"
        [ "$(cut -d ' ' -f 1 "$work/output")" = "$name" ] && grep -qx '[a-z0-9-]* [0-9]*\.[0-9]*\.[0-9]*' "$work/output" && [ ! -s "$work/errors" ] ||
            fail "$program $options prints $(cat "$work/output" "$work/errors")"
    done
    for option in --help --version; do
        if "$program" $option > /dev/full 2> "$work/errors"; then fail "$program $option succeeds on a full disk"; fi
        [ "$(cat "$work/errors")" = "$name: cannot write the output: No space left on device" ] || fail "$program $option: $(cat "$work/errors")"
    done
    for option in --no-such-option --hlep --verzion; do
        status=0
        "$program" $option > "$work/output" 2> "$work/errors" || status=$?
        [ $status = 2 ] && [ ! -s "$work/output" ] && grep -q "unknown option $option" "$work/errors" || fail "$program $option: status $status, $(cat "$work/errors")"
        case $option in
        --hlep) nearest=--help ;;
        --verzion) nearest=--version ;;
        *) continue ;;
        esac
        grep -q "did you mean.*$nearest" "$work/errors" || fail "$program $option suggests nothing: $(cat "$work/errors")"
    done
done
libraries=$(dirname "$(find "$prefix" -name libmdot.a)")
needed() { readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'; }
# A folder that contains only the archives, because -l prefers shared libraries.
cp -r "$prefix" "$work/archives"
find "$work/archives" -name '*.so*' -exec rm {} +
export PKG_CONFIG_PATH="$work/archives${libraries#"$prefix"}/pkgconfig"

# store KIND FLAG…: builds the program with pkg-config's flags and runs it
store() {
    kind=$1
    shift
    # shellcheck disable=SC2046 # words
    cc -o "$work/store-$kind" "$here/installed.c" $(pkg-config "$@" --cflags --libs mdotstore) || fail "store, $kind: does not build"
    LD_LIBRARY_PATH=$libraries "$work/store-$kind" "$work/$kind.store" > "$work/output" || fail "store, $kind: does not run"
    grep -q '^1 [0-9]*\.[0-9]*\.[0-9]*$' "$work/output" || fail "store, $kind: prints $(cat "$work/output")"
    echo "store, $kind: built, run"
}
store static --static
if needed "$work/store-static" | grep -q libmdot; then fail "the static store needs a shared libmdot"; fi
export PKG_CONFIG_PATH="$libraries/pkgconfig"
store shared
needed "$work/store-shared" | grep -q sqlite && fail "pkg-config without --static names what libmdotstore needs itself"
mkdir "$work/cmake-store"
cat > "$work/cmake-store/CMakeLists.txt" <<'PROJECT'
cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES C)
find_package(mdot-store 0.4 REQUIRED)
foreach(kind IN ITEMS "" -static)
  add_executable(store${kind} ${SOURCE}/installed.c)
  target_link_libraries(store${kind} PRIVATE mdot::mdotstore${kind})
endforeach()
PROJECT
cmake -S "$work/cmake-store" -B "$work/cmake-store/build" -G Ninja -D CMAKE_PREFIX_PATH="$prefix" -D SOURCE="$here" > "$work/log" 2>&1 &&
    cmake --build "$work/cmake-store/build" > "$work/log" 2>&1 || fail "$(cat "$work/log")"
for kind in "" -static; do
    "$work/cmake-store/build/store$kind" "$work/cmake$kind.store" > "$work/output" || fail "store$kind: does not run"
done
