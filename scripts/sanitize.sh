#!/bin/sh
# Runs the runtime under tools for races and misused memory: ThreadSanitizer for the tests of threads and the soak test,
# valgrind for its tests.
#
#     scripts/sanitize.sh [thread | valgrind …, by default both]
#
# The preset `asan` has AddressSanitizer and UndefinedBehaviorSanitizer. Valgrind lacks AVX-512, therefore it runs x86-64-v3.
set -eu
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- thread valgrind
threaded="test_predict_calls test_context test_handle_validation test_lock test_runtime_run test_workers
          test_runtime_cuda test_runtime_cuda_faults test_runtime_cuda_limits"
# Excludes tests that count allocations or forbid system calls, because valgrind makes both itself.
checked="test_artefact_copy test_context test_runtime_open test_handle_validation test_handle_validation_calls test_info
         test_table_check test_job_model test_job_file test_predict test_operator_features"
status=0
for tool; do
    case $tool in
        thread)
            cmake --preset tsan > /dev/null
            # shellcheck disable=SC2086 # names of targets
            cmake --build build/tsan --target $threaded soak -- --quiet
            for test in $threaded; do
                TSAN_OPTIONS=halt_on_error=1 "build/tsan/tests/$test" || status=1
            done
            TSAN_OPTIONS=halt_on_error=1 BUILD=build/tsan scripts/soak.sh --predictions 1e6 --rounds 2 || status=1
            ;;
        valgrind)
            [ -f build/release/build.ninja ] || cmake --preset release > /dev/null
            # shellcheck disable=SC2086 # names of targets
            cmake --build build/release --target $checked -- --quiet
            for test in $checked; do
                valgrind --quiet --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite \
                    "build/release/tests/$test" || [ $? -eq 77 ] || status=1
            done
            ;;
        *)
            echo "sanitize.sh: unknown tool $tool; known are thread and valgrind" >&2
            exit 2
            ;;
    esac
done
exit $status
