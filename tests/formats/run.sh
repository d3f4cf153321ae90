#!/bin/sh
# Runs test_formats.py with the same arguments. Needs Python 3.10 or newer, without packages.
command -v python3 > /dev/null && python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
    { echo "skipped: there is no Python 3.10 or newer"; exit 77; }
exec python3 "$(dirname "$0")/test_formats.py" "$@"
