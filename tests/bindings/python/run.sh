#!/bin/sh
# run.sh PYTHON TEST.py: runs a test of the package; 77, aloud, without a Python that is new enough.
set -eu
if ! "$1" -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2> /dev/null; then
    echo "skipped: there is no python3, 3.9 or newer, to run $2"
    exit 77
fi
# A sanitizer's library is for Python alone, not for what the test starts.
if [ -n "${MDOT_PRELOAD:-}" ]; then
    exec env LD_PRELOAD="$MDOT_PRELOAD" "$1" "$2"
fi
exec "$1" "$2"
