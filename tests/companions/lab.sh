#!/bin/sh
# Installs mdot to a scratch prefix, and lab from a copy of its folder alone, and runs lab's tests there: they see mdot's installed
# files and Python package, and neither the source tree nor the build. Usage: lab.sh SOURCE_FOLDER BUILD_FOLDER
#
# MDOT_LAB_PYTHON is a Python with lab's requirements. The test skips without PyTorch.
set -eu
source=$1 build=$2
python=${MDOT_LAB_PYTHON:-python3}
"$python" -c 'import torch, pytest, numpy' 2> /dev/null || { echo "skipped: $python lacks PyTorch, pytest or NumPy"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM

cmake --install "$build" --prefix "$work/prefix" > "$work/log" 2>&1 || { cat "$work/log"; exit 1; }
mkdir "$work/site" "$work/source"
cp -r "$source/bindings/python/mdot" "$work/site/mdot" # as in the wheel, whose libraries stand in the prefix here
cp -r "$source/lab/mdot_lab" "$source/lab/tests" "$source/lab/test.sh" "$source/lab/pyproject.toml" "$source/lab/requirements.txt" \
    "$source/lab/README.md" "$work/source/"
"$python" -m pip install --quiet --no-deps --no-build-isolation --target "$work/site" "$work/source"
rm -r "$work/source/mdot_lab" "$work/source/build" # the tests shall see the installed package

cd "$work/source"
MDOT_LIBRARIES=$(dirname "$(find "$work/prefix" -name 'libmdot.so.*' | head -n 1)")
PATH=$work/prefix/bin:$PATH PYTHONPATH=$work/site
export MDOT_LIBRARIES PATH PYTHONPATH MDOT_LAB_PYTHON="$python"
unset MDOT_SCHEMA MDOT_PREDICTOR
! find "$work/site/mdot_lab" -name '*.py' -exec grep -nE "parents\[[1-9]" {} + || { echo "a module leaves its package"; exit 1; }
./test.sh
