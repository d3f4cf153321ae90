#!/bin/sh
# hardware_bound_networks.sh TEST ARCHIVE: runs test_hardware_bound on 60 networks of the ARCHIVE
# lab/graphs.tar.xz: 12 language models, 8 networks of torchvision and 40 others, of each kind at equal
# distances in the sorted list of names.
set -eu
test=$1 archive=$2
command -v xz > /dev/null || { echo "hardware_bound_networks.sh: skipped, because xz is missing"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT INT TERM

# spread NUMBER: so many lines of the input, at equal distances
spread() {
    awk -v wanted="$1" '{ line[NR] = $0 } END { for (i = 0; i < wanted; i++) print line[1 + int(i * NR / wanted)] }'
}
tar tJf "$archive" | grep '\.job$' | LC_ALL=C sort > "$folder/names"
{
    grep '^language\.' "$folder/names" | spread 12
    grep '^torchvision\.' "$folder/names" | spread 8
    grep -v -e '^language\.' -e '^torchvision\.' "$folder/names" | spread 40
} | uniq > "$folder/picked"
[ "$(wc -l < "$folder/picked")" = 60 ] || { echo "hardware_bound_networks.sh: too few networks in $archive" >&2; exit 1; }
tar xJf "$archive" -C "$folder" -T "$folder/picked"
cd "$folder"
xargs "$test" < picked
