#!/bin/sh
# Runs the tests of traced modules with a Python that has PyTorch: MDOT_TORCH_PYTHON, build/torch
# (scripts/test-torch.sh, which also runs the two long ones) or PYTHON.
# Usage: run.sh SOURCE_FOLDER PYTHON
set -eu
for python in "${MDOT_TORCH_PYTHON:-}" "$1/build/torch/bin/python" "$2"; do
    [ -n "$python" ] && "$python" -c 'import torch, torchvision, transformers' 2> /dev/null || continue
    export PYTHONPATH="$PYTHONPATH:$1/tests/bindings/python"
    for test in "$1"/tests/bindings/python/torch/test_*.py; do
        case $test in *_ready_jobs.py | *_traces.py | *_networks.py) ;; *) "$python" "$test" ;; esac
    done
    exec "$python" "$1/tests/bindings/python/torch/test_networks.py"
done
echo "skipped: no Python has PyTorch, torchvision and transformers; scripts/test-torch.sh installs them"
exit 77
