#!/bin/sh
# Fuzzes every entry point that reads untrusted bytes with libFuzzer, for the given number of seconds each, one per core at a
# time:
#
#     scripts/fuzz.sh [--coverage] [SECONDS, by default 60 [TARGET …, by default all]]
#
# MDOT_FUZZ_SEED=1 in the environment gives the same inputs in each run, as in the tests.
# Targets are the files tests/fuzz/fuzz_TARGET.c. The corpus grows in build/fuzz/corpus/TARGET, from seeds that make_corpus
# writes. Findings are in build/fuzz/found, and the exit status is then 1.
#
# --coverage then runs each corpus once more, and prints for each folder how many of the linked functions some corpus reached.
# build/fuzz/coverage.txt has a line for each function: reached or missed, its name, and its place. With 0 SECONDS, the corpus
# stays as it is.
set -eu
cd "$(dirname "$0")/.."
coverage=no
if [ "${1:-}" = --coverage ]; then
    coverage=yes
    shift
fi
seconds=${1:-60}
[ $# -eq 0 ] || shift
[ -f build/fuzz/build.ninja ] || cmake --preset fuzz
if [ $# -eq 0 ]; then
    set -- reader job config predict graph operators artefact cubin calibration command models cuda trace tables
    if ninja -C build/fuzz -t query fuzz_store > /dev/null 2>&1; then
        set -- "$@" store
    else
        echo "store: left out, because SQLite is missing"
    fi
    if [ -n "${MDOT_PREDICTOR:-}" ] && ninja -C build/fuzz -t query fuzz_service > /dev/null 2>&1; then
        set -- "$@" service
    else
        echo "service: left out, because libmicrohttpd is missing, or MDOT_PREDICTOR does not name a compiled predictor"
    fi
fi
programs=make_corpus
for target; do programs="$programs fuzz_$target"; done
# shellcheck disable=SC2086 # names of targets
cmake --build --preset fuzz --target $programs
# Absolute paths, because a target may change its folder.
corpus="$PWD/build/fuzz/corpus" found="$PWD/build/fuzz/found" words="$PWD/build/fuzz/tests/fuzz"
build/fuzz/tests/fuzz/make_corpus "$corpus"
mkdir -p "$found"
# Hostile sizes should lead to failed allocations, which therefore do not count as findings.
export MDOT_JOBS="$PWD/weights/jobs" # of the target config
gunzip -c weights/jobs/alexnet.job.gz >build/fuzz/alexnet.job
export MDOT_SERVICE_JOB="$PWD/build/fuzz/alexnet.job" # of the target service
export ASAN_OPTIONS=allocator_may_return_null=1:max_allocation_size_mb=64
status=0
for target; do mkdir -p "$corpus/$target"; done
if [ "$seconds" -gt 0 ]; then
    export seconds corpus found words
    # The target models has no memory limit, because libFuzzer watches the limit in a thread. models runs LLVM in a
    # forked child. With that thread, the child waited forever in 3 of 1440 starts, and without it in none. Likely
    # cause: the AddressSanitizer of clang 14 leaves a lock that the thread holds closed in the child.
    #
    # One target per core at a time. The exit status of xargs shows whether a target found something.
    # shellcheck disable=SC2016 # the inner shell expands its variables
    printf '%s\n' "$@" | xargs -n 1 -P "$(nproc)" sh -c '
        target=$1 log=$found/$1.log limit=4096
        [ "$target" != models ] || limit=0
        if "$words/fuzz_$target" -seed="${MDOT_FUZZ_SEED:-0}" -max_total_time="$seconds" -timeout=120 -rss_limit_mb=$limit \
            -dict="$words/$target.dict" -artifact_prefix="$found/$target-" "$corpus/$target" > "$log" 2>&1; then
            echo "$target: $(grep "^Done" "$log" || tail -n 1 "$log")"
        else
            printf "%s\n" "$target: found; see $log, which ends:
$(tail -n 40 "$log")"
            exit 1
        fi' fuzz || status=1
fi
[ $coverage = yes ] || exit $status

# libFuzzer names each function with its file, from the debugger's information in the target.
folders='base|cli|cluster|codegen|compiler|frontend|ir|plan|runtime'
for target; do
    build/fuzz/tests/fuzz/"fuzz_$target" -runs=0 -print_coverage=1 "$corpus/$target" 2>&1 | sed -nE \
        "s/^(UN)?COVERED_FUNC: hits: [0-9]+ edges: [0-9]+\/[0-9]+ ([^ ]+) (.*\/)?(($folders)\/[^ ]*\.[ch]):([0-9]+).*/\1 \2 \4 \6/p"
done | awk '
    /onnx.pb-c/ { next } # generated
    $1 == "UN" { if (!(($2, $3) in at)) { at[$2, $3] = $4; reached[$2, $3] = 0 } next }
    { at[$1, $2] = $3; reached[$1, $2] = 1 }
    END {
        for (key in at) { split(key, part, SUBSEP); print (reached[key] ? "reached" : "missed"), part[1], part[2] ":" at[key] }
    }' |
    LC_ALL=C sort -k 3 > build/fuzz/coverage.txt
awk '{ folder = $3; sub(/\/[^\/]*$/, "", folder); all[folder]++; if ($1 == "reached") reached[folder]++ }
    END { for (folder in all) printf "%-20s %5d of %5d functions reached\n", folder, reached[folder], all[folder] }' \
    build/fuzz/coverage.txt | LC_ALL=C sort
exit $status
