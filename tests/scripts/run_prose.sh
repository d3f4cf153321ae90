#!/bin/sh
# Checks this tree's prose against the limits in scripts/check-prose.py. Usage: run_prose.sh SOURCE_FOLDER
set -eu
command -v python3 > /dev/null || { echo "skipped: python3 is missing"; exit 77; }
cd "$1"
exec scripts/check-prose.py --worst 20
