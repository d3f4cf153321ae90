#!/bin/sh
# libmdot for 64-bit ARM. Usage:
#     aarch64.sh build SOURCE_FOLDER WORK_FOLDER          builds the library, and checks its machine and its exports
#     aarch64.sh run SOURCE_FOLDER WORK_FOLDER PROGRAM    runs runtime_calls.c under qemu-aarch64 and compares its output
#                                                         with that of PROGRAM, the native build
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
kernels)
    command -v qemu-aarch64 > /dev/null || { echo "skipped: qemu-aarch64 is missing (package qemu-user)"; exit 77; }
    server=$folder.server.$$
    trap 'rm -f "$server"' EXIT
    $triple-gcc -std=gnu11 -O1 -Wall -Wextra -Werror -I "$source" -I "$source/include" -o "$server" \
        "$source/tests/portability/kernel_server.c"
    MDOT_TEST_EMULATOR="exec qemu-aarch64 -cpu max -L /usr/$triple $server" "$4"
    ;;
esac
