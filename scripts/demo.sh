#!/bin/sh
# From a clone to predictions on a fresh Debian 12: installs the dependencies, builds the command, compiles the shipped
# predictor for this machine, and predicts the training-step times of two networks. Completed steps are skipped, therefore
# a second run takes seconds.
set -eu
cd "$(dirname "$0")/.."
scripts/install-deps.sh

echo "== building mdot, and compiling weights/predictor.onnx with it"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
{ cmake --preset release && cmake --build --preset release --target mdot_cli predictor -- --quiet; } > "$log" 2>&1 ||
    { cat "$log"; exit 1; }

# Prints a command as a user would type it, then runs it.
show() {
    echo
    echo "\$ mdot $*"
    build/release/cli/mdot "$@"
}
show predict examples/jobs/resnet50.onnx --gpu T4,RTX-3090,A100,H100 --sweep batch=32..256 --precision amp
show predict examples/jobs/bert_base.onnx --dim sequence=128 --gpu T4,RTX-3090,A100,H100 --sweep batch=8..64 \
    --precision amp --optimizer adamw --epochs 3 --dataset 100000
