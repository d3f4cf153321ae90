#!/bin/sh
# Compares mdot with ONNX Runtime on random graphs (benchmarks/oracle). Findings go to build/oracle; a later call continues.
#
#     scripts/oracle.sh [--runs N] [--seconds S] [--seed N] [--only Sin,Tan] [--replay CASE]
#
# Installs onnx, onnxruntime and numpy into build/oracle-venv. To use an existing environment: MDOT_ORACLE_PYTHON=…/bin/python
set -eu
cd "$(dirname "$0")/.."
python=${MDOT_ORACLE_PYTHON:-build/oracle-venv/bin/python}
if [ ! -x "$python" ]; then
    python3 -m venv build/oracle-venv
    build/oracle-venv/bin/pip install --quiet --requirement benchmarks/oracle/requirements.txt ||
        { rm -rf build/oracle-venv; exit 1; }
fi
cmake --preset release > build-oracle.log 2>&1 || { cat build-oracle.log; exit 1; }
rm -f build-oracle.log
cmake --build --preset release --target mdot_cli mdot_shared -- --quiet
exec "$python" benchmarks/oracle/oracle.py "$@"
