#!/bin/sh
# Runs all measurements on a GPU, on a machine that has a GPU and little else:
#
#   benchmarks/gpu.sh pack [--pack DIR] [--build DIR] [--model FILE.onnx] [--targets T,…] [--buckets N,…]
#   benchmarks/gpu.sh run  [--pack DIR] [--out DIR] [--budget SECONDS] [--python PROGRAM] [--lengths N,…]
#
# `pack` runs on the build machine. It builds everything that `run` needs: artefacts and programs, under 64 MB in
# one folder (build/gpu in the working tree). It needs mdot's build dependencies and NVRTC. `run` needs that folder, this
# working tree, NVIDIA's driver and Python. It uses PyTorch, ONNX Runtime and compute-sanitizer if they are installed. It
# writes results.json, table.md and plot.svg, most important results first, and stops when the budget (default 540 s) is
# used up. `pack --build` takes the programs from an existing build. README.md in this folder explains more.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
tools="$root/benchmarks/gpu"
pack="$root/build/gpu"
export PYTHONDONTWRITEBYTECODE=1 # keep the working tree clean
export PYTHONPATH="$root/benchmarks/common"

usage() {
    sed -n '4,5s/^# *//p' "$0" >&2
    exit 2
}

fail() {
    echo "gpu.sh: $*" >&2
    exit 1
}

# ---- pack --------------------------------------------------------------------------------------------------------------

# The reference predictor: the shared one if it exists, otherwise one of the same shape.
find_model() {
    if [ -n "$model" ]; then
        cp "$model" "$pack/reference.onnx"
    elif [ -f "$root/../shared/onnx/predictor/reference_a/model.onnx" ]; then
        cp "$root/../shared/onnx/predictor/reference_a/model.onnx" "$pack/reference.onnx"
    else
        python3 "$root/benchmarks/common/reference.py" "$pack/reference.onnx"
    fi
}

# compile MODEL NAME COMPUTE
compile() {
    "$build/cli/mdot" compile "$1" -o "$pack/$2.$3.mdot" --name "$2" --target "cpu,$targets" \
        ${buckets:+--buckets "$buckets"} --kernel-precision "cpu=fp32,cuda=$3"
}

pack() {
    build="" model="" buckets="" targets=sm_80,sm_86,sm_89,sm_90a,sm_100,sm_120
    while [ $# -gt 0 ]; do
        [ $# -ge 2 ] || usage
        case $1 in
        --pack) pack=$2 ;;
        --build) build=$2 ;;
        --model) model=$2 ;;
        --targets) targets=$2 ;;
        --buckets) buckets=$2 ;;
        *) usage ;;
        esac
        shift 2
    done
    if [ -z "$build" ]; then
        "$root/scripts/install-deps.sh"
        build="$root/build/release"
        (cd "$root" && cmake --preset release > /dev/null)
        cmake --build "$build" --target mdot_cli mdot_shared gpu_bench gpu_check
    fi
    mkdir -p "$pack"
    rm -f "$pack"/*.mdot "$pack"/*.onnx "$pack/pack.jsonl"
    find_model
    compile "$pack/reference.onnx" reference bf16
    compile "$pack/reference.onnx" reference fp32 # for verification
    if [ -z "$model" ]; then compile "$root/weights/predictor.onnx" predictor bf16; fi
    cp "$build/benchmarks/gpu/gpu_bench" "$build/tests/gpu_bench/gpu_check" "$pack/"
    cp -L "$build/runtime/libmdot.so" "$pack/"
    strip --strip-unneeded "$pack/gpu_bench" "$pack/gpu_check" "$pack/libmdot.so"
    commit=$(git -C "$root" describe --always --dirty 2> /dev/null || echo unknown)
    echo "{\"section\": \"pack\", \"commit\": \"$commit\", \"targets\": \"$targets\"}" > "$pack/pack.jsonl"
    kilobytes=$(du -sk "$pack" | cut -f 1)
    [ "$kilobytes" -lt 65536 ] || fail "$pack takes $kilobytes kB, which is more than 64 MB"
    echo "$pack: $kilobytes kB"
}

# ---- run ---------------------------------------------------------------------------------------------------------------

now() {
    date +%s
}

left() {
    echo $((start + budget - $(now)))
}

# note NAME TEXT: records a step that is skipped, and the reason
note() {
    echo "gpu.sh: $1: $2" >&2
    echo "{\"section\": \"step\", \"name\": \"$1\", \"status\": null, \"seconds\": 0, \"note\": \"$2\"}" >> "$rows"
}

# step NAME SECONDS COMMAND…: runs it within SECONDS and the rest of the budget, and reports a failure at the end
step() {
    name=$1 limit=$2
    shift 2
    if [ "$(left)" -lt 5 ]; then
        note "$name" "no time left"
        return
    fi
    if [ "$limit" -gt "$(left)" ]; then limit=$(left); fi
    echo "gpu.sh: $name" >&2
    began=$(now) status=0
    echo "== $name: $*" >> "$log"
    timeout -k 5 "$limit" "$@" >> "$log" 2>&1 || status=$?
    if [ "$status" -ne 0 ]; then
        failed=$((failed + 1))
        tail -n 3 "$log" >&2
    fi
    echo "{\"section\": \"step\", \"name\": \"$name\", \"status\": $status, \"seconds\": $(($(now) - began))}" >> "$rows"
}

# Finds the packed programs, or builds them here if this machine's libc is older than that of the build machine.
find_programs() {
    bench="$pack/gpu_bench" check="$pack/gpu_check" library="$pack/libmdot.so"
    status=0
    "$bench" > /dev/null 2>&1 || status=$?
    [ "$status" -ne 2 ] || return 0 # status 2 is its usage, therefore it starts
    echo "gpu.sh: the packed programs do not start here; building them again" >&2
    mkdir -p "$out/built"
    bench="$out/built/gpu_bench" check="$out/built/gpu_check" library="$out/built/libmdot.so"
    set -- -std=c11 -D_GNU_SOURCE -O2 -fPIC -I"$root" -I"$root/include" "$root"/base/*.c "$root"/runtime/*.c "$root"/runtime/*/*.c \
        -ldl -lm -lpthread
    cc -o "$bench" "$tools/gpu_bench.c" "$tools/gpu_device.c" "$tools/result_rows.c" "$tools/subject.c" \
        "$tools/latency.c" "$@"
    cc -o "$check" "$root/tests/gpu_bench/gpu_check.c" "$tools/result_rows.c" "$tools/subject.c" "$@"
    cc -shared -o "$library" "$@"
}

# sanitize TOOL: checks the reference predictor under compute-sanitizer, if that works here
sanitize() {
    if [ -z "$sanitizer" ]; then
        note "$1" "compute-sanitizer is not installed"
    elif ! timeout 60 "$sanitizer" --error-exitcode 9 "$bench" machine >> "$log" 2>&1; then
        note "$1" "compute-sanitizer does not work on this machine"
    else
        step "$1" 90 "$sanitizer" --tool "$1" --error-exitcode 9 "$check" --quick --name "reference, $1" \
            --artefact "$pack/reference.bf16.mdot" --rows "$rows"
    fi
}

run_peers() {
    if ! "$python" -c "import numpy" 2> /dev/null; then
        note peers "no Python with numpy"
        return
    fi
    step peers 240 "$python" "$tools/gpu_peers.py" --model "$pack/reference.onnx" --library "$library" \
        --artefact "$pack/reference.bf16.mdot" --rows "$rows" --seconds "$(share 6)" ${lengths:+--lengths "$lengths"}
}

# share N: the Nth part of the budget, in seconds
share() {
    echo $((budget / $1))
}

run() {
    out="$root/build/gpu-results" budget=540 python=python3 lengths=""
    while [ $# -gt 0 ]; do
        [ $# -ge 2 ] || usage
        case $1 in
        --pack) pack=$2 ;;
        --out) out=$2 ;;
        --budget) budget=$2 ;;
        --python) python=$2 ;;
        --lengths) lengths=$2 ;;
        *) usage ;;
        esac
        shift 2
    done
    command -v "$python" > /dev/null || fail "there is no $python, which makes the table"
    [ -f "$pack/pack.jsonl" ] || fail "$pack is empty: run gpu.sh pack first, on the machine where mdot is built"
    mkdir -p "$out"
    start=$(now) failed=0 rows="$out/rows.jsonl" log="$out/log.txt"
    sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2> /dev/null || true)
    cp "$pack/pack.jsonl" "$rows"
    : > "$log"
    find_programs
    step machine 60 "$bench" machine --rows "$rows"
    [ "$failed" -eq 0 ] || fail "$(tail -n 1 "$log")"
    step "check, bf16" 90 "$check" --name reference --artefact "$pack/reference.bf16.mdot" --rows "$rows"
    step latency 120 "$bench" latency --name reference --artefact "$pack/reference.bf16.mdot" \
        --seconds "$(share 20)" --rows "$rows"
    step "check, fp32" 90 "$check" --name reference --artefact "$pack/reference.fp32.mdot" --rows "$rows"
    step batch 90 "$bench" batch --name reference --artefact "$pack/reference.bf16.mdot" \
        --seconds "$(share 30)" --rows "$rows"
    if [ -f "$pack/predictor.bf16.mdot" ]; then
        step "check, shipped predictor" 60 "$check" --name predictor --artefact "$pack/predictor.bf16.mdot" \
            --rows "$rows"
        step "latency, shipped predictor" 60 "$bench" latency --name predictor --artefact "$pack/predictor.bf16.mdot" \
            --seconds "$(share 30)" --rows "$rows"
    fi
    sanitize memcheck
    sanitize racecheck
    run_peers # last, because torch.compile takes minutes
    "$python" "$tools/gpu_report.py" "$rows" "$out"
    cat "$out/table.md"
    [ "$failed" -eq 0 ] || fail "$failed steps failed; see $log"
}

[ $# -ge 1 ] || usage
command=$1
shift
case $command in
pack) pack "$@" ;;
run) run "$@" ;;
*) usage ;;
esac
