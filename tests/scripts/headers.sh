#!/bin/sh
# Tests scripts/check-headers.sh: it reports circles of files through headers and accepts everything else.
# Usage: headers.sh SCRIPT
set -eu
script=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM

make_tree() {
    rm -rf "$work/tree"
    mkdir -p "$work/tree/base" "$work/tree/runtime/job" "$work/tree/runtime/perf"
    cd "$work/tree"
    echo '#include <stddef.h>' > base/text.h
    echo '#include "base/text.h"' > runtime/job/job.h
    printf '#include "runtime/job/job.h"\n#include "runtime/job/pool.h"\n' > runtime/job/job.c
    echo '#include "runtime/job/pool.h"' > runtime/job/pool.c
    echo '#include <stddef.h>' > runtime/job/pool.h
    echo '#include "runtime/job/job.h"' > runtime/perf/roofline.h
    echo '#include "runtime/perf/roofline.h"' > runtime/perf/roofline.c
}

# FILE LINE EXPECTED: with this line added to FILE, the script fails and prints EXPECTED.
expect_circle() {
    make_tree
    echo "$2" >> "$1"
    if printed=$("$script" "$work/tree" base runtime); then
        echo "not found: $2 in $1"
        exit 1
    fi
    [ "$printed" = "$3" ] || { echo "$2 in $1: \"$printed\" instead of \"$3\""; exit 1; }
}

make_tree
printed=$("$script" "$work/tree" base runtime) || { echo "a tree without a circle is refused: $printed"; exit 1; }
[ -z "$printed" ]
expect_circle runtime/job/pool.c ' #  include "runtime/job/job.h"' \
    'runtime/job/job: is in a circle: includes runtime/job/pool.h
runtime/job/pool: is in a circle: includes runtime/job/job.h'
expect_circle runtime/job/pool.h '#include "runtime/perf/roofline.h"' \
    'runtime/job/job: is in a circle: includes runtime/job/pool.h
runtime/job/pool: is in a circle: includes runtime/perf/roofline.h
runtime/perf/roofline: is in a circle: includes runtime/job/job.h'
expect_circle base/text.h '#include "runtime/job/job.h"' \
    'base/text: is in a circle: includes runtime/job/job.h
runtime/job/job: is in a circle: includes base/text.h'
if "$script" "$work/tree" runtime/none 2> "$work/message"; then
    echo "a folder without sources is accepted"
    exit 1
fi
