#!/bin/sh
# Tests that write_tables finds a page whose figure differs from weights/results, repairs it, and refuses unknown results.
# Usage: figures.sh DUMP_TABLES SOURCE_FOLDER
set -eu
dump=$1 source=$2
command -v python3 > /dev/null || { echo "skipped: python3 is missing"; exit 77; }
write_tables() { python3 "$source/scripts/tables/write_tables.py" "$dump" "$@"; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "$*"; exit 1; }
cd "$source"
cp -r --parents docs README.md weights/MODEL_CARD.md weights/results bindings/python/mdot/options.py bindings/python/mdot/option_words.py "$work"
page=$work/docs/explanation/accuracy.md
write_tables "$work" --check || fail "the copy differs from the tree"

# try TITLE SED: changes a page, which the check must find and the program must repair.
try() {
    cp "$page" "$work/kept"
    sed -i "$2" "$page"
    ! cmp -s "$page" "$work/kept" || fail "$1: the page has no such text"
    ! write_tables "$work" --check 2> /dev/null || fail "$1: not found"
    write_tables "$work" && cmp "$page" "$work/kept" || fail "$1: not repaired"
}
try "a figure" 's/\(=accuracy.families.mean-->\)[0-9.]*/\19.9/'
try "a row of a table" '/^| the same in FP8/d'
try "a cell of a table" 's/^| the same in FP8 | [0-9.]*/| the same in FP8 | 1.0/'

sed -i 's/=accuracy.families.mean-->/=accuracy.families.average-->/' "$page"
! write_tables "$work" --check 2> "$work/error" || fail "an unknown column is accepted"
grep -q 'no result for <!--=accuracy.families.average' "$work/error" || fail "the message is: $(cat "$work/error")"
