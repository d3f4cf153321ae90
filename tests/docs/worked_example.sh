#!/bin/sh
# scripts/worked-example.py: the page's tables agree with the answers, a changed number and a missing row are found, and a page is
# rewritten. Usage: worked_example.sh PYTHON SOURCE_FOLDER MDOT
set -eu
python=$1 source=$2 mdot=$3
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2> /dev/null; then
    echo "skipped: there is no python3, 3.9 or newer"
    exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
script=$source/scripts/worked-example.py
"$python" "$script" --check "$mdot"
# expect_fault WORDS SED_COMMAND: the check finds the change.
expect_fault() {
    sed "$2" "$source/docs/explanation/worked-example.md" > "$folder/page.md"
    if "$python" "$script" --check "$mdot" "$folder/page.md" > "$folder/output" 2>&1; then echo "$2 goes unnoticed"; exit 1; fi
    grep -qF -- "$1" "$folder/output" || { cat "$folder/output"; exit 1; }
}
expect_fault "differs from the table" '/^| Conv 7x7/s/| [0-9.]* |$/| 99.9 |/'
expect_fault "run scripts/worked-example.py" '/^| Relu, 803k/d'
expect_fault "has no table sums" '/begin sums/d'
"$python" "$script" "$mdot" "$folder/page.md" > /dev/null 2>&1 && { echo "a page without a table is rewritten"; exit 1; }
sed '/^| Relu, 803k/d' "$source/docs/explanation/worked-example.md" > "$folder/page.md"
"$python" "$script" "$mdot" "$folder/page.md"
"$python" "$script" --check "$mdot" "$folder/page.md" > /dev/null
