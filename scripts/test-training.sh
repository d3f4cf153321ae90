#!/bin/sh
# Runs the tests of the shipped predictor's recipe (lab), which takes one minute and needs no data. The first run
# installs the package mdot_training with its requirements, for example PyTorch (4 GB), into build/training. To use another
# environment, set MDOT_TRAINING_PYTHON=…/bin/python. The tests of the collector take six minutes and are excluded.
#
#     scripts/test-training.sh [PYTEST ARGUMENT …]    for example -k interval
set -eu
cd "$(dirname "$0")/.."
python=${MDOT_TRAINING_PYTHON:-build/training/bin/python}
if [ ! -x "$python" ]; then
    python3 -m venv build/training
    build/training/bin/pip install --quiet --editable lab
fi
export PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1
exec "$python" -m pytest -q -p no:cacheprovider lab/tests --ignore=lab/tests/collect "$@"
