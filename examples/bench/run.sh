#!/bin/sh
# Latency of a compiled predictor against ONNX Runtime from PyPI, interleaved, outputs compared:
#
#   examples/bench/run.sh MODEL.onnx [--lengths 32,64,…] [--rounds N] [--json FILE]
#
# Builds mdot, compiles the model, makes a Python environment in build/bench-venv and measures there.
set -eu
model=${1:?usage: examples/bench/run.sh MODEL.onnx [OPTION]…}
shift
root=$(cd "$(dirname "$0")/../.." && pwd)
model=$(realpath "$model")

"$root/scripts/install-deps.sh"
(cd "$root" && cmake --preset release > /dev/null && cmake --build --preset release --target mdot_cli mdot_shared -- --quiet)
venv="$root/build/bench-venv"
if [ ! -x "$venv/bin/python" ]; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet onnxruntime==1.30.0 numpy
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$root/build/release/cli/mdot" compile "$model" -o "$work/model.mdot" --quiet
"$venv/bin/python" "$root/examples/bench/bench.py" "$model" "$work/model.mdot" \
    --library "$root/build/release/runtime/libmdot.so" "$@"
