#!/bin/sh
# Tests the training code of the shipped predictor (weights/training). Installs its dependencies from PyPI, including PyTorch
# (4 GB), into build/training. The tests need no data.
#
#     scripts/test-training.sh [PYTEST ARGUMENT …]    e.g. -k interval; to use an existing environment:
#                                                     MDOT_TRAINING_PYTHON=…/bin/python
set -eu
cd "$(dirname "$0")/.."
python=${MDOT_TRAINING_PYTHON:-build/training/bin/python}
if [ ! -x "$python" ]; then
    python3 -m venv build/training
    build/training/bin/pip install --quiet --requirement weights/training/requirements.txt
fi
export PYTHONDONTWRITEBYTECODE=1
exec "$python" -m pytest -q -p no:cacheprovider weights/training/tests "$@"
