#!/bin/sh
# Builds wheels of the Python packages from this tree, for Python 3.9 or newer on Linux x86-64: dist/mdot_predict-*.whl (libmdot,
# libmdotjob, the command without the compiler, the shipped predictor), dist/mdot_compiler-*.whl (libmdotc with LLVM inside)
# and dist/mdot_store-*.whl (libmdotstore and the command mdot-store, with SQLite). auditwheel determines the oldest
# supported glibc. Then tests them with python3.
#
#     scripts/wheel.sh [--no-tests]
#
# The same commit gives the same wheels in every folder. scripts/test-wheel.sh tests them with other versions of Python.
# Needs mdot's build dependencies (scripts/install-deps.sh), Python with venv, and scripts/release/requirements.txt from PyPI.
set -eu
umask 022 # wheels hold the modes of files
cd "$(dirname "$0")/.."
build=$PWD/build/wheel
stage=$build/stage
version=$(sed -n 's/^#define MDOT_VERSION_STRING "\(.*\)"/\1/p' include/mdot/mdot_base.h)

mkdir -p build
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DMDOT_TESTS=OFF -DMDOT_STATIC_LLVM=ON -DMDOT_CLUSTER=ON > "$build.log" 2>&1 ||
    { cat "$build.log"; exit 1; }
rm -f "$build.log"
cmake --build "$build" --target mdot_shared mdotjob_shared mdotstore_shared mdotc_shared predictor interference \
    mdot_cli_without_compiler mdot_cli mdot_store_command -- --quiet

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
cp -r cluster/python "$stage/store"
cp "$stage/mdot/setup.py" "$stage/store/"
for package in mdot compiler store; do cp LICENSE "$stage/$package/"; done
for package in compiler store; do # their libraries need libmdot of the same version
    printf '%s\n' "$version" > "$stage/$package/VERSION"
    printf 'mdot-predict==%s\n' "$version" > "$stage/$package/REQUIRES"
done
mkdir -p "$stage/mdot/mdot/bin" "$stage/mdot/mdot/lib" "$stage/mdot/mdot/share/mdot" "$stage/compiler/mdot_compiler/lib" "$stage/store/mdot_store/bin" "$stage/store/mdot_store/lib"
soname=.so.${version%.*}
cp -L "$build/runtime/libmdot$soname" "$build/frontend/libmdotjob$soname" "$stage/mdot/mdot/lib/"
cp "$build/without_compiler/mdot" "$stage/mdot/mdot/bin/"
cp "$build/share/mdot/predictor.mdot" "$build/share/mdot/interference.mdot" docs/schema.json "$stage/mdot/mdot/share/mdot/"
cp -r weights/jobs "$stage/mdot/mdot/share/mdot/"
cp -L "$build/compiler/libmdotc$soname" "$stage/compiler/mdot_compiler/lib/"
cp -L "$build/cluster/store/libmdotstore$soname" "$stage/store/mdot_store/lib/"
cp "$build/bin/mdot-store" "$stage/store/mdot_store/bin/"
strip --strip-unneeded "$stage"/*/*/lib/*"$soname" "$stage"/*/*/bin/*
chmod -R u=rwX,go=rX "$stage" # a clone or an earlier build may have been made under another umask

for package in mdot compiler store; do
    "$build/venv/bin/pip" wheel --quiet --no-deps --no-build-isolation --wheel-dir "$stage/$package/raw" "$stage/$package"
    # Excludes libraries that are in this wheel already, or in the other one, which the loader has opened before.
    PATH=$build/venv/bin:$PATH "$build/venv/bin/auditwheel" repair --exclude "libmdot$soname" \
        --wheel-dir dist "$stage/$package"/raw/*.whl
done
ls -sh dist

[ "${1:-}" = --no-tests ] && exit 0
exec scripts/test-wheel.sh python3
