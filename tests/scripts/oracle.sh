#!/bin/sh
# oracle.sh SOURCE RUNS — random graphs against ONNX Runtime. Skips without a Python that has onnx and onnxruntime
# (MDOT_ORACLE_PYTHON, or the environment of scripts/oracle.sh).
set -eu
cd "$1"
python=${MDOT_ORACLE_PYTHON:-build/oracle-venv/bin/python}
"$python" -c 'import onnx, onnxruntime, numpy' 2> /dev/null ||
    { echo "skipped: no Python with onnx and onnxruntime; set MDOT_ORACLE_PYTHON"; exit 77; }
MDOT_ORACLE_PYTHON=$python exec scripts/oracle.sh --runs "$2"
