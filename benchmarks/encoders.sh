#!/bin/sh
# Compares encoders in every pattern of docs/reference/fused-patterns.md with ONNX Runtime: one thread, fp32, interleaved in one process.
#
#   benchmarks/encoders.sh [--out DIR] [--length N] [--rounds N] [--only TEXT]
#
# Builds mdot. Writes the encoders (tests/support/encoder_patterns.h) as two layers of width 128, the plain one also in
# MiniLM's shape and some in fp16, and compiles them. Makes a Python environment with ONNX Runtime (build/bench-venv) and
# measures N rounds (21). Writes table.md and results.json to DIR, by default build/encoder-results. README.md in this
# folder explains them. `--only` selects the encoders whose names contain TEXT, and those that they are compared with.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
tools="$root/benchmarks"
out="$root/build/encoder-results" length=128 arguments="" only=""
export PYTHONDONTWRITEBYTECODE=1
export PYTHONPATH="$tools/common"

while [ $# -ge 2 ]; do
    case $1 in
    --out) out=$2 ;;
    --length) length=$2 ;;
    --rounds) arguments="--rounds $2" ;;
    --only) only=$2 ;;
    *) break ;;
    esac
    shift 2
done
[ $# -eq 0 ] || { sed -n '4s/^# *//p' "$0" >&2; exit 2; }

build="$root/build/release"
"$root/scripts/install-deps.sh"
(cd "$root" && cmake --preset release > /dev/null && cmake --build --preset release --target mdot_cli mdot_shared bench_peak write_encoders -- \
    --quiet)
venv="$root/build/bench-venv"
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check numpy onnxruntime==1.30.0

# Each line is FILE<tab>NAME<tab>GROUP. The first three are the reference for the others.
models="$out/models" list="$out/models/list"
plain="scale behind"
rm -rf "$models"
mkdir -p "$models"
written() { # GROUP WIDTH HEADS INNER LAYERS f32|f16 [NAME]
    group=$1
    shift
    mkdir -p "$models/$group"
    "$build/tests/encoders/write_encoders" "$models/$group" "$@" | sed "s|^|$group/|; s|\$|\t$group|"
}
"$venv/bin/python" "$tools/common/reference.py" "$models/reference.onnx"
{
    printf 'reference.onnx\treference predictor\treference\n'
    written two-layers 128 4 512 2 f32 "$plain"
    written minilm 384 12 1536 6 f32 "GELU by erf"
    written two-layers 128 4 512 2 f32 | grep -F -- "$only" | grep -vF "	$plain	" || true
    for name in "$plain" "added, (1 - m) * -1e4" "causal linear attention" "GELU by erf" "RMSNormalization by a root"; do
        written fp16 128 4 512 2 f16 "$name" | grep -F -- "$only" || true
    done
} > "$list"
while IFS='	' read -r file _; do
    "$build/cli/mdot" compile "$models/$file" -o "$models/${file%.onnx}.mdot" --buckets "$length" --quiet
done < "$list"

status=0
# shellcheck disable=SC2086 # a number
"$venv/bin/python" "$tools/cpu/encoders.py" "$models" --length "$length" --library "$build/runtime/libmdot.so" \
    --command "$build/cli/mdot" --probe "$build/benchmarks/cpu/libbench_peak.so" --out "$out" $arguments || status=$?
cat "$out/table.md"
exit "$status"
