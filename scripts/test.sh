#!/bin/sh
# Runs the whole test suite on a fresh clone on Debian 12: installs the dependencies, runs the demo, builds twice (release, and
# with the address and undefined-behaviour sanitizers and every verifier on), and runs all tests except those labelled
# exhaustive. If clang is installed, runs each fuzz target for 20 seconds. The exit status is 0 only if all passed.
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
