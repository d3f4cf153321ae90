#!/bin/sh
# Runs the commands of a page of the manual (run_page.py). If Python is too old or missing, prints the reason and returns
# 77.
# Usage: run.sh PYTHON [--without-modules] SOURCE BUILD PAGE.md
set -eu
python=$1
shift
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2> /dev/null; then
    echo "skipped: there is no python3, 3.9 or newer"
    exit 77
fi
exec "$python" "$(dirname "$0")/run_page.py" "$@"
