#!/bin/sh
# Fuzzes every entry point that reads untrusted bytes with libFuzzer, each for the given number of seconds:
#
#     scripts/fuzz.sh [SECONDS, by default 60 [TARGET …, by default all]]
#
# MDOT_FUZZ_SEED=1 in the environment gives the same inputs in each run, as in the tests.
# Targets are the files tests/fuzz/fuzz_TARGET.c. The corpus grows in build/fuzz/corpus/TARGET, from seeds that make_corpus
# writes. Findings are in build/fuzz/found, and the exit status is then 1.
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-60}
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- reader job graph operators artefact cubin calibration command models cuda trace tables
programs=make_corpus
for target; do programs="$programs fuzz_$target"; done
[ -f build/fuzz/build.ninja ] || cmake --preset fuzz
# shellcheck disable=SC2086 # names of targets
cmake --build --preset fuzz --target $programs
corpus="$PWD/build/fuzz/corpus" found="$PWD/build/fuzz/found" # absolute paths, because a target may change its folder
build/fuzz/tests/fuzz/make_corpus "$corpus"
mkdir -p "$found"
# Hostile sizes should lead to failed allocations, which therefore do not count as findings.
export ASAN_OPTIONS=allocator_may_return_null=1:max_allocation_size_mb=64
status=0
for target; do
    mkdir -p "$corpus/$target"
    if build/fuzz/tests/fuzz/"fuzz_$target" -seed="${MDOT_FUZZ_SEED:-0}" -max_total_time="$seconds" -timeout=120 -rss_limit_mb=4096 \
        -artifact_prefix="$found/$target-" "$corpus/$target" > "$found/$target.log" 2>&1; then
        echo "$target: $(tail -n 1 "$found/$target.log")"
    else
        echo "$target: found; see $found/$target.log, which ends:"
        tail -n 40 "$found/$target.log"
        status=1
    fi
done
exit $status
