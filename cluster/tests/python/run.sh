#!/bin/sh
# Runs a test in Python. Usage: run.sh PYTHON TEST.py [MODULE…]. Exit status 77: Python, mdot's package or a module is missing.
python=$1 test=$2
shift 2
"$python" -c 'import sys, mdot; sys.exit(sys.version_info < (3, 9))' 2> /dev/null ||
    { echo "skipped: there is no python3, 3.9 or newer, that can import mdot"; exit 77; }
for module; do
    "$python" -c 'import importlib.util as u, sys; sys.exit(u.find_spec(sys.argv[1]) is None)' "$module" ||
        { echo "skipped: $python lacks the module $module (cluster/tests/requirements.txt)"; exit 77; }
done
exec "$python" "$test"
