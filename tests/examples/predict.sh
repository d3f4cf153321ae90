#!/bin/sh
# Checks that examples/predict.py prints the step time of quickstart.c, four rows of a sweep, and the largest batch.
# Usage: predict.sh SOURCE_FOLDER QUICKSTART C-COMPILER, with the environment of the bindings/python tests
set -eu
if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2> /dev/null; then
    echo "skipped: python3, 3.9 or newer, is missing"
    exit 77
fi
job=$1/examples/jobs/resnet50.onnx
if nm -D "${MDOT_LIBRARIES%%:*}/libmdot.so" | grep -q __asan_init; then # the interpreter loads the sanitizer first
    output=$(LD_PRELOAD=$("$3" -print-file-name=libasan.so) ASAN_OPTIONS=detect_leaks=0 python3 "$1/examples/predict.py" "$job" A100 T4)
else
    output=$(python3 "$1/examples/predict.py" "$job" A100 T4)
fi
echo "$output"
expected=$("$2" "$job" A100 "$MDOT_PREDICTOR" | sed -n 's/^batch 32: \([0-9.]* ms ([0-9.]* to [0-9.]*)\), .*/A100, batch 32: \1/p')
[ -n "$expected" ] || { echo "quickstart prints no step time for batch 32"; exit 1; }
echo "$output" | grep -qxF "$expected" || { echo "the line \"$expected\" is missing"; exit 1; }
[ "$(echo "$output" | grep -c '^[AT][0-9]*, batch [0-9]*: [0-9]* samples/s$')" -eq 4 ] || { echo "the sweep lacks rows"; exit 1; }
echo "$output" | grep -q '^largest batch on A100: [1-9][0-9]*$' || { echo "the largest batch is missing"; exit 1; }
