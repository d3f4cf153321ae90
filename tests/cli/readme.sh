#!/bin/sh
# Runs the examples of README.md as written. The lines after "    $ mdot …" must equal the output of that command. Lines
# "    mdot …" without output must succeed; lines with placeholders or for GPUs are skipped. The options at the start of list
# lines must be options of `mdot predict`.
#
# Usage: readme.sh SOURCE_FOLDER FOLDER_OF_MDOT
set -eu
cd "$1"
export PATH="$2:$PATH"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# Writes one file per command, and one with its expected output: the indented lines that follow.
awk -v folder="$folder" '
    /^    \$ mdot / { n++; shown = 1; print substr($0, 7) > (folder "/" n ".command"); printf "" > (folder "/" n ".want"); next }
    shown && (/^    / || /^$/) { print substr($0, 5) > (folder "/" n ".want"); next }
    { shown = 0 }' README.md
count=0
for command in "$folder"/*.command; do
    want=${command%.command}.want
    sh -e "$command" > "$folder/raw" 2> "$folder/messages" || { cat "$command" "$folder/messages"; exit 1; }
    # empty lines at the end belong to the page
    sed -e :a -e '/^\n*$/{$d;N;ba' -e '}' "$want" > "$folder/wanted"
    if ! diff "$folder/wanted" "$folder/raw" > "$folder/difference"; then
        echo "README.md is wrong about: $(cat "$command")"
        cat "$folder/difference"
        exit 1
    fi
    count=$((count + 1))
done
# Runs the commands without output in a folder that contains the predictor which they name.
shown=$count
mkdir "$folder/here"
ln -s "$PWD/weights/predictor.onnx" "$folder/here/predictor.onnx"
sed -n 's/^    \(mdot [^$]*\)$/\1/p' README.md | sed 's/ *#.*//' | grep -v '[A-Z…]' | grep -v cuda | grep -v sm_ | sort -u > "$folder/plain"
for verb in compile verify inspect bench; do
    grep "^mdot $verb " "$folder/plain" > "$folder/commands" || { echo "README.md shows no mdot $verb that could run"; exit 1; }
    while read -r command; do
        (cd "$folder/here" && sh -ec "$command" < /dev/null) > "$folder/raw" 2> "$folder/messages" ||
            { echo "README.md: $command"; cat "$folder/raw" "$folder/messages"; exit 1; }
        count=$((count + 1))
    done < "$folder/commands"
done
mdot predict --help > "$folder/help"
for option in $(sed -n '/^## Predict/,/^## Compile/p' README.md | grep '^    --' | grep -o -- '--[a-z-]*' | sort -u); do
    grep -q -- "$option\b" "$folder/help" || { echo "README.md shows $option, which mdot predict has not"; exit 1; }
done
[ "$shown" -ge 2 ] || { echo "README.md has $count examples"; exit 1; }
echo "$count examples of README.md run, and $shown print what it says"
