#!/bin/sh
# Runs a test of the package. If Python is too old or missing, prints the reason and returns 77.
# Usage: run.sh PYTHON TEST.py
set -eu
if ! "$1" -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2> /dev/null; then
    echo "skipped: there is no python3, 3.9 or newer, to run $2"
    exit 77
fi
# The sanitizer's library is preloaded only into Python. support.py removes it for the programs that the test starts.
if [ -n "${MDOT_PRELOAD:-}" ]; then
    exec env LD_PRELOAD="$MDOT_PRELOAD" "$1" "$2"
fi
exec "$1" "$2"
