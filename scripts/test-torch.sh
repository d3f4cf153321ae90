#!/bin/sh
# Runs the Python package's tests that need PyTorch. Installs pinned versions of PyTorch and of the network libraries (4 GB)
# into build/torch, builds the package's libraries, and reads every network of tests/bindings/python/torch. Checks types, too.
#
#     scripts/test-torch.sh [NETWORK …]       e.g. llama; to use an existing environment: MDOT_TORCH_PYTHON=…/bin/python
set -eu
cd "$(dirname "$0")/.."
python=${MDOT_TORCH_PYTHON:-build/torch/bin/python}
if [ ! -x "$python" ]; then
    python3 -m venv build/torch
    build/torch/bin/pip install --quiet --requirement tests/bindings/python/torch/requirements.txt ||
        { rm -rf build/torch; exit 1; }
fi
cmake --preset release > build-torch.log 2>&1 || { cat build-torch.log; exit 1; }
rm -f build-torch.log
cmake --build --preset release --target mdot_shared mdotjob_shared mdotc_shared predictor interference mdot_cli -- --quiet
build=$PWD/build/release
export PYTHONPATH="$PWD/bindings/python:$PWD/tests/bindings/python" PYTHONDONTWRITEBYTECODE=1 MDOT_CLI="$build/cli/mdot" \
    MDOT_LIBRARIES="$build/runtime:$build/frontend:$build/compiler:$build/cli" MDOT_PREDICTOR="$build/share/mdot/predictor.mdot"
case $python in /*) ;; *) python=$PWD/$python ;; esac
(cd bindings/python && "$python" -m mypy)
if [ $# -eq 0 ]; then
    export MDOT_JOBS="$PWD/weights/jobs"
    for test in tests/bindings/python/torch/test_*.py; do
        case $test in *_networks.py) ;; *) "$python" "$test" ;; esac
    done
fi
exec "$python" tests/bindings/python/torch/test_networks.py "$@"
