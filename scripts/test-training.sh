#!/bin/sh
# Tests of the shipped predictor's recipe (weights/training): what it needs of PyPI, PyTorch among it (4 GB), is installed into
# build/training; no data is needed.
#
#     scripts/test-training.sh [PYTEST ARGUMENT …]    e.g. -k interval; an environment that has it all:
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
