#!/bin/sh
# Tests the wheels in dist/ from scripts/wheel.sh with each supported Python version.
#
#     scripts/test-wheel.sh [PYTHON …]      default: python3.9 to python3.14, as PATH has them
#
# Each PYTHON gets a fresh environment with only the wheels installed. Runs tests/bindings/python and the test of
# mdot_store; mdot_schedulers is in no wheel. Prints a line for each absent version. Exit status 77 if all are.
set -eu
cd "$(dirname "$0")/.."
build=$PWD/build/wheel
pip=$build/venv/bin/pip # installs into the environments, because Debian's Python has no pip
predict=$(echo "$PWD"/dist/mdot_predict-*.whl)
compiler=$(echo "$PWD"/dist/mdot_compiler-*.whl)
store=$(echo "$PWD"/dist/mdot_store-*.whl)
for file in "$predict" "$compiler" "$store" "$build/cli/mdot"; do
    [ -f "$file" ] || { echo "test-wheel.sh: there is no $file; run scripts/wheel.sh" >&2; exit 2; }
done
[ $# -gt 0 ] || set -- python3.9 python3.10 python3.11 python3.12 python3.13 python3.14
unset PYTHONPATH MDOT_LIBRARIES MDOT_PREDICTOR
export PYTHONDONTWRITEBYTECODE=1
tested=''
for python; do
    # Shims of version managers are on PATH for versions that they do not have.
    version=$("$python" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])' 2> /dev/null) ||
        { echo "skipped: there is no $python"; continue; }
    echo "== $python, $version"
    fresh=$build/fresh-$version
    rm -rf "$fresh"
    "$python" -m venv --without-pip "$fresh"
    "$pip" --python "$fresh/bin/python" install --quiet --no-index "$predict"
    # The package alone must report the missing compiler, and its command needs nothing else on PATH.
    (cd / && "$fresh/bin/python" -c '
import mdot
try:
    mdot.compile("model.onnx", "model.mdot")
except mdot.ToolchainError as fault:
    assert "mdot-predict[compiler]" in str(fault), fault
else:
    raise SystemExit("mdot.compile works without the package mdot-compiler")')
    (cd / && PATH=$fresh/bin mdot inspect "$fresh"/lib/python*/site-packages/mdot/share/mdot/predictor.mdot > /dev/null)
    "$pip" --python "$fresh/bin/python" install --quiet --no-index "$compiler" "$store"
    (cd / && PATH=$fresh/bin mdot-store --version > /dev/null)
    for test in tests/bindings/python/test_*.py cluster/tests/python/test_mdot_store.py; do
        echo "$test"
        MDOT_EXAMPLE_JOBS=$PWD/examples/jobs MDOT_INCLUDE=$PWD/include MDOT_CLI="$build/cli/mdot" MDOT_CC="${CC:-cc}" PATH="$fresh/bin:$PATH" "$fresh/bin/python" "$test"
    done
    tested="$tested $version"
done
[ -n "$tested" ] || exit 77
echo "the wheels work with$tested"
