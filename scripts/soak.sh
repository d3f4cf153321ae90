#!/bin/sh
# A scheduler's life in minutes (examples/bench/soak/soak.c): predictions on two threads while the artefact is replaced every
# second and jobs come and go; then rounds of 10,000 pairs, timed.
#
#     scripts/soak.sh [PREDICTIONS, by default 1e8 [ROUNDS, by default 1000 [BUILD, by default build/release]]]
set -eu
cd "$(dirname "$0")/.."
predictions=$(printf '%.0f' "${1:-1e8}")
rounds=${2:-1000}
build=${3:-build/release}
[ -f "$build/build.ninja" ] || cmake --preset release
cmake --build "$build" --target soak predictor -- --quiet
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
"$build/examples/soak" "$build/share/mdot/predictor.mdot" "$work" "$predictions" "$rounds" \
    examples/jobs/bert_base.onnx examples/jobs/resnet50.onnx
