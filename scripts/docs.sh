#!/bin/sh
# Builds the manual: docs/*.md, include/mdot/*.h and the docstrings of bindings/python → build/docs/html/index.html.
#
#     scripts/docs.sh [FOLDER]     default: build/docs
#
# Needs doxygen (Debian's package) and Python 3.11 or newer. The packages of docs/requirements.txt are installed into
# FOLDER/venv, unless MDOT_DOCS_PYTHON names a Python that has them. A warning is an error. Exit status 77: doxygen is
# missing.
set -eu
cd "$(dirname "$0")/.."
out=${1:-build/docs}
mkdir -p "$out"
out=$(cd "$out" && pwd)
command -v doxygen > /dev/null || { echo "docs.sh: doxygen is missing (apt-get install doxygen)"; exit 77; }
python=${MDOT_DOCS_PYTHON:-$out/venv/bin/python}
if [ -z "${MDOT_DOCS_PYTHON:-}" ] && ! cmp -s docs/requirements.txt "$out/venv/requirements.txt"; then
    python3 -m venv "$out/venv"
    "$python" -m pip install --quiet --disable-pip-version-check --require-hashes -r docs/requirements.txt
    cp docs/requirements.txt "$out/venv/requirements.txt"
fi
mkdir -p "$out/doxygen"
{ cat docs/Doxyfile; echo "OUTPUT_DIRECTORY = \"$out/doxygen\""; } | doxygen - > "$out/doxygen/log" 2>&1 ||
    { cat "$out/doxygen/log"; exit 1; }
if [ -s "$out/doxygen/log" ]; then
    cat "$out/doxygen/log"
    echo "docs.sh: doxygen warns"
    exit 1
fi
MDOT_DOXYGEN_XML="$out/doxygen/xml" PYTHONDONTWRITEBYTECODE=1 \
    "$python" -m sphinx -q -W --keep-going -b html -d "$out/doctrees" docs "$out/html"
echo "$out/html/index.html"
