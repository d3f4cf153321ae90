#!/bin/sh
# Runs the tests of traced modules with a Python that has PyTorch: MDOT_TORCH_PYTHON, build/torch
# (scripts/test-torch.sh) or PYTHON.
# Usage: run.sh SOURCE_FOLDER PYTHON
set -eu
for python in "${MDOT_TORCH_PYTHON:-}" "$1/build/torch/bin/python" "$2"; do
    [ -n "$python" ] && "$python" -c 'import torch, torchvision, transformers' 2> /dev/null || continue
    export PYTHONPATH="$PYTHONPATH:$1/tests/bindings/python"
    "$python" "$1/tests/bindings/python/torch/test_modules.py"
    "$python" "$1/tests/bindings/python/torch/test_programs.py"
    "$python" "$1/tests/bindings/python/torch/test_experts.py"
    "$python" "$1/tests/bindings/python/torch/test_messages.py"
    "$python" "$1/tests/bindings/python/torch/test_batch_terms.py"
    "$python" "$1/tests/bindings/python/torch/test_work.py"
    "$python" "$1/tests/bindings/python/torch/test_gpu_programs.py"
    "$python" "$1/tests/bindings/python/torch/test_diffusion.py"
    "$python" "$1/tests/bindings/python/torch/test_compiled.py"
    "$python" "$1/tests/bindings/python/torch/test_meta_kernels.py"
    "$python" "$1/tests/bindings/python/torch/test_recorded_trainings.py"
    "$python" "$1/tests/bindings/python/torch/test_recorded_on_gpu.py"
    exec "$python" "$1/tests/bindings/python/torch/test_networks.py"
done
echo "skipped: no Python has PyTorch, torchvision and transformers; scripts/test-torch.sh installs them"
exit 77
