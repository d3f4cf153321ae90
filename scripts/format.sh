#!/bin/sh
# Checks that every C file has the formatting of clang-format 14 (Debian 12's version) with .clang-format.
#
#     scripts/format.sh [--fix]
#
# Comments keep line breaks (ReflowComments), so tables and drawings in them stay intact. This script checks comment
# lines for at most 120 characters. Other versions of clang-format differ in details. Therefore the exit status is 77 if
# version 14 is missing, which ctest shows as skipped.
set -eu
cd "$(dirname "$0")/.."
formatter=
for name in clang-format-14 clang-format; do
    case $("$name" --version 2> /dev/null) in *"version 14."*) formatter=$name && break ;; esac
done
[ -n "$formatter" ] || { echo "format.sh: there is no clang-format 14"; exit 77; }
files=$(mktemp)
trap 'rm -f "$files"' EXIT INT TERM
find . \( -path ./build -o -path './.*' \) -prune -o -name '*.[ch]' -print | sort > "$files"
if [ "${1:-}" = --fix ]; then
    xargs "$formatter" -i < "$files"
fi
status=0
xargs "$formatter" --dry-run -Werror < "$files" || status=1
if LC_ALL=C.UTF-8 xargs grep -nE '^.{121,}' /dev/null < "$files" | grep -E '^[^:]*:[0-9]+: *(/?\*|//)'; then
    echo "format.sh: these comments are longer than 120 characters"
    status=1
fi
exit $status
