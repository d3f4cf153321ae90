#!/bin/sh
# Runs a test of the package. Usage: run.sh PYTHON TEST.py. Exit status 77: Python, or mdot's package, is missing.
"$1" -c 'import sys, mdot; sys.exit(sys.version_info < (3, 9))' 2> /dev/null ||
    { echo "skipped: there is no python3, 3.9 or newer, that can import mdot"; exit 77; }
exec "$1" "$2"
