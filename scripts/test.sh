#!/bin/sh
# Runs the whole test suite on a fresh clone on Debian 12, in three steps, and prints the time of each:
#
#     scripts/test.sh [product|cluster|lab …, by default all]
#
# product: installs the dependencies, runs the demo, builds twice (release, and with the address and undefined-behaviour
# sanitizers and every verifier on), and runs all tests except those labelled exhaustive. If clang is installed, runs each fuzz
# target for 20 seconds. cluster and lab: the companions, each in a clean folder against an installed mdot. The exit status is 0
# only if all passed.
set -eu
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- product cluster lab
scripts/install-deps.sh --with-tests
status=0

build() { # PRESET [CMAKE OPTION…]
    preset=$1
    shift
    echo "== $preset: build"
    cmake --preset "$preset" "$@" > "build-$preset.log" 2>&1 || { cat "build-$preset.log"; exit 1; }
    rm -f "build-$preset.log"
    cmake --build --preset "$preset" -- --quiet
}

product() {
    scripts/demo.sh
    for preset in asan release; do
        build $preset -D MDOT_CLUSTER=OFF
        echo "== $preset: tests"
        ctest --preset $preset -E '^companion_' -j "$(nproc)" || status=1
    done
    if command -v clang > /dev/null; then
        echo "== fuzz"
        MDOT_FUZZ_SEED=1 scripts/fuzz.sh 20 || status=1
    fi
}

cluster() {
    build release -D MDOT_CLUSTER=ON
    # Kueue, SkyPilot and Ray (label schedulers) skip without the packages of cluster/tests/requirements.txt.
    tests/companions/cluster.sh "$PWD" "$PWD/build/release" '(full|schedulers)' \
        -D MDOT_SCHEDULERS_PYTHON="${MDOT_CLUSTER_PYTHON:-}" || status=1
    # These need both in one build: the store's symbols and installed files, all packages, pages with mdot-store.
    ctest --preset release -R '^(store_|abi_packages$|guide_calibrate_to_your_cluster$)' --no-tests=error || status=1
    build asan -D MDOT_CLUSTER=OFF
    tests/companions/cluster.sh "$PWD" "$PWD/build/asan" full -D MDOT_ASAN=ON -D CMAKE_BUILD_TYPE=RelWithDebInfo || status=1
}

lab() {
    build release -D MDOT_CLUSTER=OFF
    tests/companions/lab.sh "$PWD" "$PWD/build/release" || { [ $? -eq 77 ] || status=1; }
}

for step; do
    case $step in
    product | cluster | lab) ;;
    *) echo "test.sh: $step is not a step; choose product, cluster or lab" >&2; exit 2 ;;
    esac
    begin=$(date +%s)
    $step
    echo "== $step: $(($(date +%s) - begin)) s"
done
exit $status
