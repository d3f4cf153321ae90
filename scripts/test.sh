#!/bin/sh
# The whole test suite on a fresh Debian 12 clone, nothing before it: installs what is needed, runs the demo, builds twice
# (release, and with the address and undefined-behaviour sanitizers and every verifier on), runs all tests except those labelled
# exhaustive, and where there is a clang, each fuzz target for 20 seconds. The exit status is 0 only when all passed.
set -eu
cd "$(dirname "$0")/.."
scripts/install-deps.sh --with-tests
scripts/demo.sh
status=0
for preset in asan release; do
    echo "== $preset: build"
    cmake --preset "$preset" > "build-$preset.log" 2>&1 || { cat "build-$preset.log"; exit 1; }
    rm -f "build-$preset.log"
    cmake --build --preset "$preset" -- --quiet
    echo "== $preset: tests"
    ctest --preset "$preset" -j "$(nproc)" || status=1
done
if command -v clang > /dev/null; then
    echo "== fuzz"
    MDOT_FUZZ_SEED=1 scripts/fuzz.sh 20 || status=1
fi
exit $status
