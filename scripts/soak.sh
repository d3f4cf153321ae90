#!/bin/sh
# Simulates a scheduler's life in minutes (tests/soak/soak.c): predictions on two threads while the artefact is
# replaced every second and jobs come and go; then timed rounds of 10,000 pairs.
#
#     scripts/soak.sh                                       # 10^8 predictions, 1000 rounds
#     scripts/soak.sh --rounds 3600 --period-ms 1000        # a round a second for an hour
#     BUILD=build/tsan scripts/soak.sh --predictions 2e5
set -eu
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- --predictions 1e8 --rounds 1000
build=${BUILD:-build/release}
[ -f "$build/build.ninja" ] || cmake --preset "${build#build/}"
cmake --build "$build" --target soak predictor -- --quiet
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
"$build/tests/soak" "$build/share/mdot/predictor.mdot" "$work" \
    examples/jobs/bert_base.onnx examples/jobs/resnet50.onnx "$@"
