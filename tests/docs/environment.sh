#!/bin/sh
# Runs environment.py on SOURCE_FOLDER.
command -v python3 > /dev/null || { echo "skipped: python3 is missing"; exit 77; }
exec python3 "$(dirname "$0")/environment.py" "$1"
