#!/bin/sh
# Compares the latency of a compiled predictor on one core with runtimes from PyPI, interleaved, and compares outputs:
#
#   benchmarks/cpu.sh [MODEL.onnx] [--out DIR] [--lengths 32,64,…] [--peers onnxruntime,openvino,torch]
#                         [--samples N] [--seconds S]
#
# The default model is the reference predictor, which also exists as a PyTorch module. Builds mdot, compiles the model in
# fp32 and bf16, makes a Python environment with the peers (build/bench-venv; PyTorch takes 6 GB of disk there) and measures
# until each side has N quiet samples (10) at every length, or for S seconds (300). Writes table.md, results.json, fp32.svg
# and bf16.svg to DIR, by default build/bench-results. README.md in this folder explains more.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
tools="$root/benchmarks"
out="$root/build/bench-results" model="" peers=onnxruntime,openvino,torch
export PYTHONDONTWRITEBYTECODE=1 # keep the working tree clean
export PYTHONPATH="$tools/common"

usage() {
    sed -n '4,5s/^# *//p' "$0" >&2
    exit 2
}

arguments=""
while [ $# -gt 0 ]; do
    case $1 in
    --out | --peers | --lengths | --samples | --seconds)
        [ $# -ge 2 ] || usage
        case $1 in
        --out) out=$2 ;;
        --peers) peers=$2 ;;
        *) arguments="$arguments $1 $2" ;;
        esac
        shift 2
        ;;
    -*) usage ;;
    *)
        [ -z "$model" ] || usage
        model=$(realpath "$1")
        shift
        ;;
    esac
done

build="$root/build/release"
"$root/scripts/install-deps.sh"
(cd "$root" && cmake --preset release > /dev/null && cmake --build --preset release --target mdot_cli mdot_shared bench_peak -- --quiet)

# Installs the requested peers. ONNX Runtime is always installed, because outputs are compared with it.
venv="$root/build/bench-venv"
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check numpy onnxruntime==1.30.0
case $peers in *openvino*) "$venv/bin/pip" install --quiet --disable-pip-version-check openvino==2026.4.0 ;; esac
case $peers in *torch*) "$venv/bin/pip" install --quiet --disable-pip-version-check torch==2.15.0 ;; esac

mkdir -p "$out"
if [ -z "$model" ]; then
    model="$out/reference.onnx"
    "$venv/bin/python" "$tools/common/reference.py" "$model"
fi
"$build/cli/mdot" compile "$model" -o "$out/model.mdot" --kernel-precision cpu=fp32,bf16 --quiet
rm -rf "$out/inductor" # a killed run may have left incomplete libraries
# shellcheck disable=SC2086 # numbers and names without spaces
TORCHINDUCTOR_CACHE_DIR="$out/inductor" "$venv/bin/python" "$tools/cpu/measure.py" "$model" "$out/model.mdot" \
    --library "$build/runtime/libmdot.so" --probe "$build/benchmarks/cpu/libbench_peak.so" --command "$build/cli/mdot" \
    --json "$out/results.json" --peers "$peers" $arguments
status=0
"$venv/bin/python" "$tools/cpu/cpu_report.py" "$out/results.json" "$out" || status=$?
cat "$out/table.md"
exit "$status"
