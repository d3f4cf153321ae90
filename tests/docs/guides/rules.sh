#!/bin/sh
# Tests run_page.py on small pages: which of them pass, fail or are skipped, and how MDOT_UPDATE_GOLDEN rewrites a page.
# Usage: rules.sh PYTHON SOURCE_FOLDER BUILD_FOLDER
set -eu
unset MDOT_UPDATE_GOLDEN
python=$1 source=$2 build=$3
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2> /dev/null; then
    echo "skipped: there is no python3, 3.9 or newer"
    exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
page=$folder/page.md

# expect STATUS TEXT [OPTION]: runs the page; TEXT must be in the output.
expect() {
    status=0
    "$python" "$source/tests/docs/guides/run_page.py" ${3:+"$3"} "$source" "$build" "$page" > "$folder/output" 2>&1 || status=$?
    if [ "$status" -ne "$1" ] || ! grep -qF -- "$2" "$folder/output"; then
        echo "expected status $1 and \"$2\", but the status is $status, and the output of this page:"
        cat "$page" "$folder/output"
        exit 1
    fi
}

printf '# Page\n\n```console\n$ name=world\n$ echo "hello\n> $name"\nhello\nworld\n```\n\n    $ echo one; echo two\n    one\n    two\n\nText.\n' > "$page"
expect 0 "3 commands"
printf '1. Item\n\n   ```console\n   $ echo 1\n   1\n   ```\n\n2. Item\n\n   ```sh\n   $ false\n   ```\n' > "$page"
expect 0 "1 commands"

printf '```console\n$ echo right\nwrong\n```\n\n```text\nkept\n```\n' > "$page"
expect 1 "+right"
MDOT_UPDATE_GOLDEN=1 expect 0 "rewritten"
[ "$(cat "$page")" = "$(printf '```console\n$ echo right\nright\n```\n\n```text\nkept\n```')" ] || { cat "$page"; exit 1; }
expect 0 "1 commands"

printf '<!-- numbers vary -->\n\n```console\n$ echo "took 12.5 ms"\ntook 7 ms\n```\n' > "$page"
expect 0 "1 commands"
printf '<!-- numbers vary -->\n\n```console\n$ echo "took 12.5 s"\ntook 7 ms\n```\n' > "$page"
expect 1 "took 12.5 s"
printf '<!-- output varies -->\n```console\n$ echo one\n```\n' > "$page"
expect 0 "1 commands"

printf '```console\n$ false\n```\n' > "$page"
expect 1 "exit status 1 instead of 0"
printf '<!-- exit status 1 -->\n\n```console\n$ false\n```\n' > "$page"
expect 0 "1 commands"
printf '<!-- exit status 1 -->\n\n```console\n$ true\n```\n' > "$page"
expect 1 "exit status 0 instead of 1"

printf 'No commands.\n' > "$page"
expect 1 "has no commands"
printf '```console\n$ true\n```\n\n```{literalinclude} ../forgotten.py\n```\n' > "$page"
expect 1 "no command runs"

printf '# Page\n\nText.\n\n## Section\n\n<!-- needs Python: no_such_module -->\n\n```console\n$ false\n```\n\n```console\n$ true\n```\n' > "$page"
expect 77 "no Python has no_such_module"
expect 0 "left out: line 10" --without-modules
printf '# Page\n\n<!-- needs the store -->\n\n```console\n$ true\n```\n' > "$page"
[ ! -e "$build/bin/mdot-store" ] || expect 0 "1 commands"
(build=$folder && expect 77 "no mdot-store")

printf '```console\n$ exit 3\n$ true\n```\n' > "$page"
expect 1 "the shell ended early"
echo "the rules of pages hold"
