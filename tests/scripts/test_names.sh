#!/bin/sh
# Tests that scripts/check-test-names.sh finds each kind of breach. Each is made in a small tree, and the script must name it.
# Usage: test_names.sh SCRIPT
set -eu
script=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM

make_tree() {
    rm -rf "$work/tree"
    mkdir -p "$work/tree"
    cd "$work/tree"
    for folder in base runtime/core ir/ops frontend codegen compiler cli; do mkdir -p "$folder" "tests/$folder"; done
    mkdir tests/fault
    touch base/file.c tests/base/test_file.c ir/ops/norm.c tests/ir/ops/test_ops_norm.c cli/main.c tests/cli/test_cli.c
    echo '#include "cli/command.h"' | tee tests/fault/test_faults.c > tests/cli/test_cli.c
    printf '# source, programs\ncli/main.c test_cli test_faults\n' > tests/sources.txt
}
# expect_breach PART: the script fails and prints PART.
expect_breach() {
    if output=$("$script" "$work/tree"); then
        echo "accepted, although: $1"
        exit 1
    fi
    case $output in
    *"$1"*) ;;
    *) echo "\"$output\" lacks \"$1\""; exit 1 ;;
    esac
}

make_tree
"$script" "$work/tree" || { echo "a tree without a breach is refused"; exit 1; }
touch base/join.c
expect_breach 'base/join.c: tests/base/test_join.c is missing'
make_tree
mkdir tests/other && touch tests/other/test_other.c
expect_breach 'tests/other/test_other.c: the folder other is missing'
make_tree
touch tests/cli/test_file.c
expect_breach 'test_file.c: two test programs have this name'
make_tree
echo 'base/file.c test_cli' >> tests/sources.txt
expect_breach 'base/file.c has a test program of its own name; remove the row'
make_tree
echo 'base/gone.c test_cli' >> tests/sources.txt
expect_breach 'base/gone.c is missing'
make_tree
echo 'cli/main.c test_gone' > tests/sources.txt
expect_breach 'the test program test_gone of cli/main.c is missing'
make_tree
printf 'int main(void) { return 0; }\n' > tests/cli/test_cli.c
expect_breach 'test_cli includes no header of cli/main.c and calls none of its functions'
make_tree
mkdir -p tests/support
echo 'int main_run(void)' > cli/main.c
printf '#include "tests/support/run.h"\n' > tests/cli/test_cli.c
touch tests/support/run.h
echo 'int run(void) { return main_run(); }' > tests/support/run.c
"$script" "$work/tree" || { echo "a call in the source file of an included header is refused"; exit 1; }
