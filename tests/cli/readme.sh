#!/bin/sh
# Examples of README.md run as they are written: of every line "    $ mdot …" the lines behind it are what the command prints.
#
# Usage: readme.sh SOURCE_FOLDER FOLDER_OF_MDOT
set -eu
cd "$1"
export PATH="$2:$PATH"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# One file a command, and one with what it should print: indented lines up to the next that is not.
awk -v folder="$folder" '
    /^    \$ mdot / { n++; shown = 1; print substr($0, 7) > (folder "/" n ".command"); printf "" > (folder "/" n ".want"); next }
    shown && (/^    / || /^$/) { print substr($0, 5) > (folder "/" n ".want"); next }
    { shown = 0 }' README.md
count=0
for command in "$folder"/*.command; do
    want=${command%.command}.want
    sh -e "$command" > "$folder/raw" 2> "$folder/messages" || { cat "$command" "$folder/messages"; exit 1; }
    # empty lines at the end are the page's
    sed -e :a -e '/^\n*$/{$d;N;ba' -e '}' "$want" > "$folder/wanted"
    if ! diff "$folder/wanted" "$folder/raw" > "$folder/difference"; then
        echo "README.md is wrong about: $(cat "$command")"
        cat "$folder/difference"
        exit 1
    fi
    count=$((count + 1))
done
[ "$count" -ge 2 ] || { echo "README.md has $count examples"; exit 1; }
echo "$count examples of README.md print what it says"
