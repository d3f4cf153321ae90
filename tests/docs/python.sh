#!/bin/sh
# Runs a check of this folder: python.sh CHECK.py SOURCE_FOLDER. Needs Python 3.9 or newer, without packages.
command -v python3 > /dev/null && python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))' ||
    { echo "skipped: there is no Python 3.9 or newer"; exit 77; }
exec python3 "$(dirname "$0")/$1" "$2"
