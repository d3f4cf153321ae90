#!/bin/sh
# Measures how many lines and branches in the runtime and the file readers the tests reach, with clang and llvm-cov.
#
#     scripts/coverage.sh [arguments of ctest, as -R NAME]
#
# Prints one line per file and writes build/coverage/report.txt. build/coverage/uncovered.txt has the other lines. Needs
# clang, llvm and a quarter of an hour. Lines reached only in killed child processes count as not reached. So do lines
# in tests that count allocations and system calls: the instrumentation makes some itself, so such tests fail here.
set -eu
cd "$(dirname "$0")/.."
folder=build/coverage
watched="../../base ../../runtime ../../frontend"
cmake -S . -B $folder -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_COMPILER=clang \
    -DCMAKE_C_FLAGS="-fprofile-instr-generate -fcoverage-mapping" > /dev/null
cmake --build $folder -- --quiet
rm -rf $folder/profiles
LLVM_PROFILE_FILE="$PWD/$folder/profiles/%m.profraw" ctest --test-dir $folder --output-on-failure -LE exhaustive "$@" ||
    failed=1
llvm-profdata merge -sparse -o $folder/all.profdata $folder/profiles/*.profraw
tree=$PWD
cd $folder # source paths are relative to this folder
objects="cli/mdot $(find tests -maxdepth 1 -type f -name 'test_*' -perm -u+x | sed 's/^/-object /')"
# shellcheck disable=SC2086 # several words each
llvm-cov report $objects -instr-profile all.profdata -show-region-summary=0 -show-branch-summary $watched > report.txt
# shellcheck disable=SC2086
llvm-cov show $objects -instr-profile all.profdata |
    awk -v watched="^$tree/(base|runtime|frontend)/" '/^[^ ].*:$/ { file = $0 ~ watched ? $0 : "" }
        /^ +[0-9]+\| +0\|/ && file { print file, $0 }' > uncovered.txt
cat report.txt
exit "${failed:-0}"
