#!/bin/sh
# Latency of a compiled predictor on one core against what else PyPI has, interleaved in one process, outputs compared:
#
#   benchmarks/run.sh [MODEL.onnx] [--out DIR] [--lengths 32,64,…] [--peers onnxruntime,openvino,torch]
#                         [--samples N] [--seconds S]
#
# Without a model it is the reference predictor, which PyTorch knows as a module. Builds mdot, compiles the model in fp32
# and bf16, makes a Python environment with the peers (build/bench-venv; PyTorch takes 6 GB of disk there) and measures
# until every side has N quiet samples (10) at every length, or for S seconds (300). DIR, build/bench-results by default,
# gets table.md, results.json, fp32.svg and bf16.svg. README.md beside this has more.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
tools="$root/benchmarks"
out="$root/build/bench-results" model="" peers=onnxruntime,openvino,torch
export PYTHONDONTWRITEBYTECODE=1 # nothing appears in the working tree
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

# The environment grows by the peers that are asked for; ONNX Runtime is who answers are compared with.
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
rm -rf "$out/inductor" # a run that was killed leaves half-written libraries there
# shellcheck disable=SC2086 # numbers and names without spaces
TORCHINDUCTOR_CACHE_DIR="$out/inductor" "$venv/bin/python" "$tools/cpu/measure.py" "$model" "$out/model.mdot" \
    --library "$build/runtime/libmdot.so" --probe "$build/benchmarks/cpu/libbench_peak.so" --command "$build/cli/mdot" \
    --json "$out/results.json" --peers "$peers" $arguments
status=0
"$venv/bin/python" "$tools/cpu/report.py" "$out/results.json" "$out" || status=$?
cat "$out/table.md"
exit "$status"
