#!/bin/sh
# Builds wheels of the Python package from this tree: dist/mdot_predict-*.whl (libmdot, libmdotjob, libmdotstore with SQLite,
# the shipped predictor) and dist/mdot_compiler-*.whl (libmdotc with LLVM inside), for Python 3.9 or newer on Linux x86-64.
# auditwheel determines the oldest supported glibc.
#
#     scripts/wheel.sh [--no-tests]
#
# Needs mdot's build dependencies (scripts/install-deps.sh), Python with venv, and scripts/release/requirements.txt from PyPI.
set -eu
cd "$(dirname "$0")/.."
build=$PWD/build/wheel
stage=$build/stage
version=$(sed -n 's/^#define MDOT_VERSION_STRING "\(.*\)"/\1/p' include/mdot/mdot_base.h)

mkdir -p build
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DMDOT_TESTS=OFF -DMDOT_STATIC_LLVM=ON > "$build.log" 2>&1 ||
    { cat "$build.log"; exit 1; }
rm -f "$build.log"
cmake --build "$build" --target mdot_shared mdotjob_shared mdotstore_shared mdotc_shared predictor -- --quiet

[ -x "$build/venv/bin/python" ] || python3 -m venv "$build/venv"
"$build/venv/bin/pip" install --quiet --require-hashes --requirement scripts/release/requirements.txt
# Wheels have the date of the commit, so that the same commit gives the same wheels.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH

rm -rf "$stage" dist/*.whl
mkdir -p "$stage" dist
cp -r bindings/python "$stage/mdot"
mv "$stage/mdot/compiler" "$stage/compiler"
cp "$stage/mdot/setup.py" "$stage/compiler/"
cp LICENSE "$stage/mdot/" && cp LICENSE "$stage/compiler/"
printf '%s\n' "$version" > "$stage/compiler/VERSION"
printf 'mdot-predict==%s\n' "$version" > "$stage/compiler/REQUIRES"
mkdir "$stage/mdot/mdot/lib" "$stage/compiler/mdot_compiler/lib"
soname=.so.${version%.*}
cp -L "$build/runtime/libmdot$soname" "$build/frontend/libmdotjob$soname" "$build/store/libmdotstore$soname" \
    "$build/share/mdot/predictor.mdot" "$stage/mdot/mdot/lib/"
cp -L "$build/compiler/libmdotc$soname" "$stage/compiler/mdot_compiler/lib/"
strip --strip-unneeded "$stage"/*/*/lib/*"$soname"

for package in mdot compiler; do
    "$build/venv/bin/pip" wheel --quiet --no-deps --no-build-isolation --wheel-dir "$stage/$package/raw" "$stage/$package"
    # Excludes libraries that are in this wheel already, or in the other one, which the loader has opened before.
    PATH=$build/venv/bin:$PATH "$build/venv/bin/auditwheel" repair --exclude "libmdot$soname" \
        --wheel-dir dist "$stage/$package"/raw/*.whl
done
ls -sh dist

[ "${1:-}" = --no-tests ] && exit 0
rm -rf "$build/fresh"
python3 -m venv "$build/fresh"
"$build/fresh/bin/pip" install --quiet --no-index dist/mdot_predict-*.whl
unset PYTHONPATH MDOT_LIBRARIES MDOT_PREDICTOR
# Tests the package alone, because it must report the missing compiler.
(cd / && "$build/fresh/bin/python" -c '
import mdot
try:
    mdot.compile("model.onnx", "model.mdot")
except mdot.ToolchainError as fault:
    assert "mdot-predict[compiler]" in str(fault), fault
else:
    raise SystemExit("mdot.compile works without the package mdot-compiler")')
"$build/fresh/bin/pip" install --quiet --no-index dist/mdot_compiler-*.whl
cmake --build "$build" --target mdot_cli -- --quiet
for test in tests/bindings/python/test_*.py; do
    echo "$test"
    MDOT_CLI="$build/cli/mdot" MDOT_CC="${CC:-cc}" PYTHONDONTWRITEBYTECODE=1 "$build/fresh/bin/python" "$test"
done
