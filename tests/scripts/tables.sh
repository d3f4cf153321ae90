#!/bin/sh
# Tests that the texts made from the C tables are up to date.
# Usage: tables.sh DUMP_TABLES SOURCE_FOLDER
command -v python3 > /dev/null || { echo "skipped: python3 is missing"; exit 77; }
exec python3 "$2/scripts/tables/write_tables.py" "$1" "$2" --check
