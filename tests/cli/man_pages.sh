#!/bin/sh
# Checks that groff accepts every page in FOLDER without a warning, and shows the page's name and all sections. Usage:
# man_pages.sh FOLDER
set -eu
command -v groff >/dev/null || { echo "skipped: there is no groff"; exit 77; }
count=0
for page in "$1"/*.1; do
    name=$(basename "$page" .1)
    output=$(groff -k -man -Tutf8 -ww -z "$page" 2>&1) || { echo "$page: groff fails: $output"; exit 1; }
    [ -z "$output" ] || { echo "$page: $output"; exit 1; }
    # plain text: overstriking and colour are off
    shown=$(groff -k -man -Tascii -P-c -P-b -P-u -P-o "$page" 2>/dev/null)
    for part in NAME SYNOPSIS DESCRIPTION OPTIONS "EXIT STATUS" "$name"; do
        printf '%s\n' "$shown" | grep -qF -- "$part" || { echo "$page: no $part in it"; exit 1; }
    done
    count=$((count + 1))
done
[ "$count" -ge 9 ] || { echo "only $count pages in $1"; exit 1; }
