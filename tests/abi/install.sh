#!/bin/sh
# Installs the build into a folder, moves the folder, and builds programs against it as users do: by CMake's find_package with
# shared and with static libraries, by pkg-config, by pkg-config --static. The examples are built with a C compiler, program.cc
# with a C++ compiler. All variants must print the same. Usage: install.sh SOURCE_FOLDER BUILD_FOLDER PREDICTOR
set -eu
source=$1 build=$2 predictor=$3
here=$source/tests/abi
for tool in cmake ninja pkg-config cc c++; do
    command -v "$tool" > /dev/null || { echo "skipped: there is no $tool"; exit 77; }
done
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
fail() { echo "$*"; exit 1; }

cmake --install "$build" --prefix "$work/installed" > "$work/log" 2>&1 || fail "$(cat "$work/log")"
prefix=$work/moved
mv "$work/installed" "$prefix"
libraries=$(dirname "$(find "$prefix" -name libmdot.a)")
if grep -rIlE "$build|$source|$work" "$prefix"; then fail "these files know where they were built or installed"; fi
"$source/scripts/check-elf.sh" "$prefix" || fail "a library path of the installation lets the current directory provide libraries"

# ---- The command -----------------------------------------------------------------------------------------------------

job=$source/examples/jobs/resnet50.onnx
env -u MDOT_PREDICTOR "$prefix/bin/mdot" predict "$job" --gpu T4 --batch 8 -q > "$work/output" || fail "the command does not run"
grep -q 'step .* ms' "$work/output" || fail "the command says: $(cat "$work/output")"

# Ready jobs are those of the build, and each fourth is predicted as by the build, without its files or an environment.
"$build/cli/mdot" jobs > "$work/jobs"
(cd / && env -i "$prefix/bin/mdot" jobs) | cmp - "$work/jobs" || fail "the installed ready jobs differ"
awk 'NR % 4 == 2 { print $1 }' "$work/jobs" > "$work/names"
[ "$(wc -l < "$work/names")" -gt 40 ] || fail "there are few ready jobs"
while read -r name; do
    "$build/cli/mdot" predict "$name" --gpu H100 -q > "$work/output" || fail "$name: $(cat "$work/output")"
    (cd / && env -i "$prefix/bin/mdot" predict "$name" --gpu H100 -q) | cmp - "$work/output" || fail "$name differs when installed"
done < "$work/names"

# ---- Programs --------------------------------------------------------------------------------------------------------

# try KIND FOLDER: runs the three programs there. The output must equal the first variant's.
try() {
    "$2/run_entry" "$predictor" 40 evaluate > "$work/$1.output" || fail "$1: run_entry failed"
    "$2/quickstart" "$job" A100 "$predictor" >> "$work/$1.output" || fail "$1: quickstart failed"
    "$2/program" "$job" "$predictor" >> "$work/$1.output" || fail "$1: program failed"
    [ -e "$work/first" ] || cp "$work/$1.output" "$work/first"
    cmp -s "$work/first" "$work/$1.output" || fail "$1: $(diff "$work/first" "$work/$1.output")"
    echo "$1: built, run"
}
needed() { readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'; }

cmake -S "$here/project" -B "$work/project" -G Ninja -D CMAKE_PREFIX_PATH="$prefix" -D EXAMPLES="$source/examples" \
    -D CMAKE_BUILD_TYPE=Release > "$work/log" 2>&1 || fail "$(cat "$work/log")"
cmake --build "$work/project" > "$work/log" 2>&1 || fail "$(cat "$work/log")"
try cmake-shared "$work/project"
mkdir "$work/static"
for name in run_entry quickstart program; do mv "$work/project/$name-static" "$work/static/$name"; done
try cmake-static "$work/static"
needed "$work/project/program" | grep -q '^libmdotc\.so\.[0-9]*\.[0-9]*$' || fail "the shared program needs no libmdotc"
if needed "$work/static/program" | grep -q libmdot; then fail "the static program needs a shared libmdot"; fi

# pc KIND: builds the programs with pkg-config's flags; $static is --static or empty
pc() {
    mkdir "$work/$1"
    flags() { pkg-config $static --cflags --libs "$@"; }
    # shellcheck disable=SC2046 # words
    cc -o "$work/$1/run_entry" "$source/examples/run_entry.c" $(flags mdot) &&
        cc -o "$work/$1/quickstart" "$source/examples/quickstart.c" $(flags mdotjob) &&
        c++ -std=c++11 -o "$work/$1/program" "$here/program.cc" $(flags mdotc mdotjob) || fail "$1: does not build"
}
export PKG_CONFIG_PATH="$libraries/pkgconfig"
static=""
pc pkg-config
(export LD_LIBRARY_PATH="$libraries" && try pkg-config "$work/pkg-config")
needed "$work/pkg-config/program" | grep -q LLVM && fail "pkg-config without --static names what libmdotc needs itself"
# A folder that contains only the archives, because -l prefers shared libraries.
cp -r "$prefix" "$work/archives"
find "$work/archives" -name '*.so*' -exec rm {} +
export PKG_CONFIG_PATH="$work/archives${libraries#"$prefix"}/pkgconfig"
static=--static
pc pkg-config-static
try pkg-config-static "$work/pkg-config-static"
