#!/bin/sh
# The options at the start of list lines of docs/how-to/describe-a-training.md must be options of `mdot predict`.
# Usage: options.sh SOURCE_FOLDER MDOT
set -eu
page=$1/docs/how-to/describe-a-training.md mdot=$2
help=$("$mdot" predict --help)
count=0
for option in $(grep '^    --' "$page" | grep -o -- '--[a-z-]*' | sort -u); do
    echo "$help" | grep -qE -- "$option([^a-z-]|$)" || { echo "$page shows $option, which mdot predict has not"; exit 1; }
    count=$((count + 1))
done
[ "$count" -ge 20 ] || { echo "$page shows $count options"; exit 1; }
echo "mdot predict has all $count options of the page"
