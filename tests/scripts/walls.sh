#!/bin/sh
# Tests that scripts/check-walls.sh finds every kind of breach. Each is made in a small tree, and the script must name it.
# Usage: walls.sh SCRIPT C-COMPILER
set -eu
script=$1
compiler=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM

# Makes a tree without a breach: one file per folder, with allowed includes.
make_tree() {
    rm -rf "$work/tree"
    for folder in include/mdot base runtime/core runtime/cuda runtime/job runtime/perf ir/ops frontend/onnx frontend/job codegen/cpu \
        codegen/cuda compiler cli examples benchmarks/gpu; do
        mkdir -p "$work/tree/$folder"
    done
    cd "$work/tree"
    echo '#include <stddef.h>' > include/mdot/mdot_base.h
    echo '#include "mdot_base.h"' > include/mdot/mdot.h
    echo '#include "mdot/mdot_base.h"' > base/text.h
    printf '#include "base/text.h"\n#include "mdot/mdot.h"\n' > runtime/core/core.h
    echo '#include "runtime/core/core.h"' > runtime/core/objects.h
    echo '#include "runtime/core/objects.h"' > runtime/core/run.c
    echo '  #  include "runtime/core/core.h"' > runtime/cuda/cuda.h
    printf '#include "runtime/core/core.h"\n#include "runtime/cuda/cuda.h"\n' > runtime/components.c
    echo '#include "ir/ops/sums.h"' > ir/ops/sums.c
    echo '#include "base/text.h"' > ir/ops/sums.h
    echo '#include "ir/ops/sums.h"' > codegen/cpu/cpu_images.h
    echo '#include "codegen/cpu/cpu_images.h"' > codegen/table_builder.c
    echo '#include "mdot/mdot.h"' > cli/main.c
    echo '#include "runtime/core/objects.h"' > benchmarks/gpu/subject.h
}

expect_whole() {
    output=$("$script" "$work/tree") || { echo "a tree without a breach is refused: $output"; exit 1; }
    [ -z "$output" ]
}

# FILE LINE PART: appends the line to FILE. The script must then fail with a message that contains FILE and PART.
expect_breach() {
    make_tree
    echo "$2" >> "$1"
    if output=$("$script" "$work/tree"); then
        echo "not found: $2 in $1"
        exit 1
    fi
    case $output in
    "$1: "*"$3"*) ;;
    *) echo "$2 in $1: \"$output\" lacks $3"; exit 1 ;;
    esac
}

make_tree
expect_whole
expect_breach base/text.h '#include "ir/ops/sums.h"' 'includes ir/ops/sums.h, which base/ may not'
expect_breach base/text.h '#include "mdot/mdot.h"' 'includes mdot/mdot.h, which base/ may not'
expect_breach runtime/core/run.c '#include "runtime/cuda/cuda.h"' 'includes runtime/cuda/cuda.h, which runtime/core/ may not'
expect_breach runtime/cuda/cuda.c '#include "runtime/core/objects.h"' 'which runtime/cuda/ may not'
expect_breach runtime/job/job_model.c '#include "runtime/cuda/cuda.h"' 'which runtime/job/ may not'
expect_breach runtime/job/job_model.c '#include "runtime/perf/sharding.h"' 'which runtime/job/ may not'
expect_breach runtime/perf/sharding.c '#include "runtime/predict/predict.h"' 'which runtime/perf/ may not'
expect_breach runtime/components.c '#include "runtime/core/objects.h"' 'which runtime/ may not'
expect_breach ir/ops/sums.c '#include "codegen/cpu/cpu_images.h"' 'which ir/ may not'
expect_breach ir/ops/sums.c '	#	include	"mdot/mdot.h"' 'which ir/ may not'
expect_breach frontend/onnx/read.c '#include "frontend/job/fe_job.h"' 'which frontend/onnx/ may not'
expect_breach frontend/job/extract_operators.c '#include "codegen/codegen.h"' 'which frontend/job/ may not'
expect_breach codegen/cuda/nest.c '#include "codegen/cpu/cpu_images.h"' 'which codegen/cuda/ may not'
expect_breach codegen/table_builder.c '#include "codegen/cpu/emit.h"' 'which codegen/ may not'
expect_breach codegen/table_builder.c '#include "compiler/compiler.h"' 'which codegen/ may not'
expect_breach compiler/onnx_test_check.c '#include "runtime/core/core.h"' 'which compiler/ may not'
expect_breach cli/main.c '#include "ir/ops/sums.h"' 'which cli/ may not'
expect_breach cli/main.c '#include "mdot/mdot_abi.h"' 'which cli/ may not'
expect_breach examples/quickstart.c '#include "runtime/core/core.h"' 'which examples/ may not'
expect_breach benchmarks/gpu/subject.h '#include "runtime/predict/predictor_tensors.h"' 'which benchmarks/gpu/ may not'
expect_breach runtime/core/core.h '#include "runtime/core/objects.h"' 'is in a circle of headers'
expect_breach ir/ops/sums.h '#include "ir/ops/sums.h"' 'is in a circle of headers'
expect_breach runtime/job/run.c '#include "mdot/mdot.h"' 'the product has runtime/core/run.c with the same name'
expect_breach compiler/table_builder.c '#include "ir/ops/sums.h"' 'with the same name'
expect_breach runtime/core/run.c '    __builtin_ia32_pause();' 'line 2 is for one processor family'
expect_breach cli/main.c '#include <cpuid.h>' 'is for one processor family'
expect_breach base/text.h '__asm__("nop");' 'is for one processor family'
make_tree
echo '#include <immintrin.h>' | tee runtime/core/cpu_x86.c > codegen/cpu/emit.c
expect_whole

# A companion's file may have the name of a product file.
make_tree
mkdir -p cluster/simulator/core
echo '#include "mdot/mdot_base.h"' | tee cluster/simulator/core/run.c > cluster/simulator/core/main.c
expect_whole
# External symbols of the objects of a build, by folder.
make_tree
for folder in base runtime ir plan frontend codegen compiler; do
    mkdir -p "$work/build/$folder/CMakeFiles/mdot_$folder.dir"
done
compile() {
    mkdir -p "$(dirname "$work/build/$1")"
    echo "$2" | "$compiler" -x c -c -o "$work/build/$1.o" -
}
compile base/CMakeFiles/mdot_base.dir/list.c 'static int count; int bs_join(void) { return ++count; }'
compile codegen/CMakeFiles/mdot_codegen.dir/cuda/nest.c 'int cu_nest, cg_nest;'
output=$("$script" "$work/tree" "$work/build") || { echo "right names are refused: $output"; exit 1; }
compile codegen/CMakeFiles/mdot_codegen.dir/cuda/text.c 'int ir_text;'
if output=$("$script" "$work/tree" "$work/build"); then
    echo "a wrong prefix is not found"
    exit 1
fi
[ "$output" = "codegen/cuda/text.c: ir_text is external and begins with none of cg_ cu_" ] || { echo "$output"; exit 1; }

if output=$("$script" "$work/tree/cli" 2> /dev/null); then
    echo "a folder without sources is taken"
    exit 1
fi
