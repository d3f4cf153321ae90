#!/bin/sh
# Runs lab's tests against an installed mdot, in one minute. They need no data.
#
#     lab/test.sh [PYTEST ARGUMENT …]    for example -k interval
#
# The first run installs mdot_lab with its requirements, for example PyTorch (4 GB), into lab/venv. MDOT_LAB_PYTHON names another
# Python. The tests find mdot by its Python package, the command on PATH, or MDOT_SCHEMA (README.md). Without PyTorch, or without
# mdot, the script says so and its exit status is 77. The collector's tests take six minutes and are excluded.
set -eu
cd "$(dirname "$0")"
python=${MDOT_LAB_PYTHON:-venv/bin/python}
if [ ! -x "$python" ] && [ -z "${MDOT_LAB_PYTHON:-}" ]; then
    python3 -m venv venv
    venv/bin/pip install --quiet --editable .
fi
"$python" -c 'import torch, pytest, numpy' 2> /dev/null || { echo "skipped: $python lacks PyTorch, pytest or NumPy"; exit 77; }
"$python" -c 'import importlib.util as u, sys; sys.exit(u.find_spec("mdot") is None)' || command -v mdot > /dev/null ||
    [ -n "${MDOT_SCHEMA:-}" ] || { echo "skipped: mdot is not installed (README.md)"; exit 77; }
export PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1
exec "$python" -m pytest -q -p no:cacheprovider tests --ignore=tests/collect "$@"
