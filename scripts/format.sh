#!/bin/sh
# Is every C file as clang-format 14 (Debian 12's) leaves it, by .clang-format?
#
#     scripts/format.sh [--fix]
#
# Comments are left to their authors (ReflowComments), so that tables and drawings in them stay what they are; no line of
# them is longer than 120 characters, which is checked here. Other versions of clang-format differ in details: without
# version 14 the answer is 77, which ctest shows as skipped.
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
