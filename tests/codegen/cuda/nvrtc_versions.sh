#!/bin/sh
# Runs the tests of NVRTC, and compiles a predictor for a GPU, with the oldest NVRTC that the README promises, with the last one
# of CUDA 12 and with one of CUDA 13. The wheels come from PyPI and stay in FOLDER. Neither a GPU nor a driver is needed.
# Usage: nvrtc_versions.sh FOLDER PYTHON TEST_NVRTC MDOT MODEL.onnx
set -eu
folder=$1 python=$2 tests=$3 mdot=$4 model=$5
"$python" -m pip --version > /dev/null 2>&1 || { echo "skipped: there is no pip for $python"; exit 77; }
mkdir -p "$folder"

# try PACKAGE VERSION
try() {
    to=$folder/$2
    if [ -z "$(find "$to" -name 'libnvrtc.so.*' 2> /dev/null)" ]; then
        "$python" -m pip install --quiet --no-deps --target "$to" "$1==$2" > "$folder/log" 2>&1 ||
            { echo "skipped: PyPI does not provide $1 $2 here: $(tail -1 "$folder/log")"; exit 77; }
    fi
    library=$(find "$to" -name 'libnvrtc.so.[0-9]*' ! -name '*.alt.*' | head -1)
    [ -n "$library" ] || { echo "$1 $2 has no libnvrtc"; exit 1; }
    # the library loads its builtins by name
    export MDOT_NVRTC="$library" LD_LIBRARY_PATH="$(dirname "$library")"
    "$tests" > "$folder/log" 2>&1 || { cat "$folder/log"; echo "NVRTC $2: its tests fail"; exit 1; }
    if grep -q '\[  SKIPPED \]' "$folder/log"; then cat "$folder/log"; echo "NVRTC $2 was not loaded"; exit 1; fi
    "$mdot" compile "$model" -o "$folder/gpu.mdot" -b 16 -t sm_80 -q > "$folder/log" 2>&1 ||
        { cat "$folder/log"; echo "NVRTC $2: a predictor does not compile"; exit 1; }
    echo "NVRTC $2: resources of cubins are read, a predictor compiles"
}

try nvidia-cuda-nvrtc-cu12 12.1.105
try nvidia-cuda-nvrtc-cu12 12.9.86
try nvidia-cuda-nvrtc 13.0.88
