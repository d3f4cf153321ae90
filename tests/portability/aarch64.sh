#!/bin/sh
# libmdot for 64-bit ARM. Usage:
#     aarch64.sh build SOURCE_FOLDER WORK_FOLDER          builds the library, and checks its machine and its exports
#     aarch64.sh run SOURCE_FOLDER WORK_FOLDER PROGRAM    runs runtime_calls.c under qemu-aarch64 and compares its output
#                                                         with that of PROGRAM, the native build
#     aarch64.sh artefact SOURCE_FOLDER WORK_FOLDER PROGRAM MDOT
#                                                         compiles models for AArch64 and runs run_artefact.c under
#                                                         qemu-aarch64, on CPUs with and without FEAT_BF16. Compares the
#                                                         results with those of PROGRAM, the native build
#     aarch64.sh kernels SOURCE_FOLDER WORK_FOLDER PROGRAM  runs a test of kernels, whose code runs under qemu-aarch64
set -eu
action=$1 source=$2 folder=$3
triple=aarch64-linux-gnu
for tool in $triple-gcc ninja; do
    command -v "$tool" > /dev/null || { echo "skipped: $tool is missing (package gcc-$triple)"; exit 77; }
done
fail() { echo "$*"; exit 1; }
library=$folder/build/runtime/libmdot.so

case $action in
build)
    cmake -S "$source" -B "$folder/build" -G Ninja -D CMAKE_BUILD_TYPE=Release -D MDOT_COMPILER=OFF \
        -D CMAKE_TOOLCHAIN_FILE="$source/cmake/aarch64.toolchain.cmake" > "$folder.log" 2>&1 || fail "$(cat "$folder.log")"
    cmake --build "$folder/build" > "$folder.log" 2>&1 || fail "$(cat "$folder.log")"
    if grep 'warning:' "$folder.log"; then fail "the cross compiler prints warnings"; fi
    readelf -h "$library" | grep -q 'Machine: *AArch64' || fail "$library is for $(readelf -h "$library" | grep Machine)"
    sed -n 's/^ *\(mdot_[a-z0-9_]*\);$/\1/p' "$source/runtime/libmdot.map" | sort > "$folder.map"
    readelf --dyn-syms -W "$library" | awk '$4 == "FUNC" && $7 != "UND" { sub(/@.*/, "", $8); print $8 }' | sort > "$folder.exports"
    [ -s "$folder.map" ] || fail "runtime/libmdot.map lists no symbol"
    diff "$folder.map" "$folder.exports" || fail "< is missing from the library, > is missing from runtime/libmdot.map"
    echo "$library: AArch64, $(wc -l < "$folder.exports") functions"
    ;;
run)
    command -v qemu-aarch64 > /dev/null || { echo "skipped: qemu-aarch64 is missing (package qemu-user)"; exit 77; }
    $triple-gcc -std=c11 -Wall -Wextra -Werror -I "$source/include" -o "$folder/runtime_calls" \
        "$source/tests/portability/runtime_calls.c" "$library"
    qemu-aarch64 -L "/usr/$triple" -E LD_LIBRARY_PATH="$folder/build/runtime" "$folder/runtime_calls" > "$folder.lines"
    "$4" > "$folder.native"
    diff "$folder.native" "$folder.lines" || fail "< is the native output, > is the output on AArch64"
    cat "$folder.lines"
    ;;
artefact)
    command -v qemu-aarch64 > /dev/null || { echo "skipped: qemu-aarch64 is missing (package qemu-user)"; exit 77; }
    mdot=$5 work=$folder.artefact
    mkdir -p "$work"
    $triple-gcc -std=c11 -Wall -Wextra -Werror -I "$source/include" -o "$work/run" "$source/tests/portability/run_artefact.c" "$library"
    emulate() { # CPU, artefact
        qemu-aarch64 -cpu "$1" -L "/usr/$triple" -E LD_LIBRARY_PATH="$folder/build/runtime" "$work/run" "$2"
    }
    expect() { # CPU, artefact, first line, tolerance: the lines after the first agree with those of the native build
        emulate "$1" "$2" > "$work/lines" || fail "$2 fails on $1"
        first=$(head -n 1 "$work/lines")
        [ "$first" = "$3" ] || fail "$2 runs '$first' on $1, not '$3'"
        awk -v most="$4" 'function size(x) { return x < 0 ? -x : x }
            NR == FNR { if (FNR > 1) { name[FNR] = $1 " " $2 " " $3 " " $4; value[FNR] = $5 }; lines = FNR; next }
            FNR > 1 && ($1 " " $2 " " $3 " " $4 != name[FNR] ||
                        ($5 != value[FNR] && !(size($5 - value[FNR]) <= most * (1 + size(value[FNR]))))) {
                print "line " FNR ": " $0 ", but " value[FNR] " natively"; wrong++ }
            END { if (wrong > 0 || FNR != lines || lines < 2) exit 1 }' "$work/native" "$work/lines" ||
            fail "$2 gives other results on $1 than natively"
        echo "$2 on $1: $first, $(wc -l < "$work/lines") values"
    }
    refuses() { # CPU, artefact, part of the message
        if emulate "$1" "$2" > /dev/null 2> "$work/message"; then fail "$1 runs $2"; fi
        grep -q "$3" "$work/message" || fail "$2 on $1: $(cat "$work/message")"
    }
    for model in examples/own_predictor weights/predictor; do # two buckets, to compile less
        "$mdot" compile "$source/$model.onnx" -o "$work/native.mdot" --quiet --buckets 32,128 --target x86-64
        "$4" "$work/native.mdot" > "$work/native"
        "$mdot" compile "$source/$model.onnx" -o "$work/both.mdot" --quiet --buckets 32,128 --target aarch64 --kernel-precision bf16,fp32
        "$mdot" compile "$source/$model.onnx" -o "$work/fp32.mdot" --quiet --buckets 32,128 --target aarch64
        expect max "$work/both.mdot" "aarch64-bf16 bf16" 0.05
        expect cortex-a72 "$work/both.mdot" "aarch64-neon bf16" 0.05
        expect cortex-a72 "$work/fp32.mdot" "aarch64-neon fp32" 1e-4
        expect max "$work/fp32.mdot" "aarch64-neon fp32" 1e-4
    done
    "$mdot" compile "$source/examples/own_predictor.onnx" -o "$work/bf16.mdot" --quiet --target cpu:aarch64-bf16 --kernel-precision bf16
    refuses cortex-a72 "$work/bf16.mdot" "for aarch64-bf16, this machine lacks FEAT_BF16"
    refuses max "$work/native.mdot" "the file is for another processor: x86-64 (ELF machine 62) instead of AArch64"
    if "$4" "$work/fp32.mdot" > /dev/null 2> "$work/message"; then fail "x86-64 runs $work/fp32.mdot"; fi
    grep -q "for another processor: AArch64" "$work/message" || fail "$(cat "$work/message")"
    ;;
kernels)
    command -v qemu-aarch64 > /dev/null || { echo "skipped: qemu-aarch64 is missing (package qemu-user)"; exit 77; }
    server=$folder.server.$$
    trap 'rm -f "$server"' EXIT
    $triple-gcc -std=gnu11 -O1 -Wall -Wextra -Werror -I "$source" -I "$source/include" -o "$server" \
        "$source/tests/portability/kernel_server.c"
    MDOT_TEST_EMULATOR="exec qemu-aarch64 -cpu max -L /usr/$triple $server" "$4"
    ;;
esac
