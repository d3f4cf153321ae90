#!/bin/sh
# Runs the tests of NVRTC, and compiles a predictor for a GPU, with the oldest NVRTC that the README promises, with the last one
# of CUDA 12 and with one of CUDA 13. The wheels come from PyPI and stay in FOLDER. Neither a GPU nor a driver is needed.
# Usage: nvrtc_versions.sh FOLDER PYTHON TEST_NVRTC MDOT MODEL.onnx
set -eu
folder=$1 python=$2 tests=$3 mdot=$4 model=$5
"$python" -m pip --version > /dev/null 2>&1 || { echo "skipped: there is no pip for $python"; exit 77; }
mkdir -p "$folder"

# try PACKAGE VERSION SHA256 [SHA256…]: the hashes are those of the wheel on each processor.
try() {
    to=$folder/$2
    if [ -z "$(find "$to" -name 'libnvrtc.so.*' 2> /dev/null)" ]; then
        (printf '%s==%s' "$1" "$2"; shift 2; printf ' --hash=sha256:%s' "$@"; echo) > "$folder/requirements.txt"
        "$python" -m pip install --quiet --no-deps --target "$to" --require-hashes -r "$folder/requirements.txt" > "$folder/log" 2>&1 ||
            {
                if grep -q 'DO NOT MATCH THE HASHES' "$folder/log"; then cat "$folder/log"; exit 1; fi
                echo "skipped: PyPI does not provide $1 $2 here: $(tail -1 "$folder/log")"
                exit 77
            }
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

try nvidia-cuda-nvrtc-cu12 12.1.105 \
    0a98a522d9ff138b96c010a65e145dc1b4850e9ecb75a0172371793752fd46ed \
    339b385f50c309763ca65456ec75e17bbefcbbf2893f462cb8b90584cd27a1c2
try nvidia-cuda-nvrtc-cu12 12.9.86 \
    096d4de6bda726415dfaf3198d4f5c522b8e70139c97feef5cd2ca6d4cd9cead \
    210cf05005a447e29214e9ce50851e83fc5f4358df8b453155d5e1918094dcb4 \
    72972ebdcf504d69462d3bcd67e7b81edd25d0fb85a2c46d3ea3517666636349
try nvidia-cuda-nvrtc 13.0.88 \
    6bcd4e7f8e205cbe644f5a98f2f799bef9556fefc89dd786e79a16312ce49872 \
    ad9b6d2ead2435f11cbb6868809d2adeeee302e9bb94bcf0539c7a40d80e8575 \
    d27f20a0ca67a4bb34268a5e951033496c5b74870b868bacd046b1b8e0c3267b
