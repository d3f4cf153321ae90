#!/bin/sh
# Pages for contributors and the workflow name existing things: scripts, presets, and link targets in Markdown files.
# CITATION.cff has the headers' version. The list of design decisions counts the records per area, each record has three
# parts, and each recipe for an addition names a past change. Usage: contributors.sh SOURCE_FOLDER
set -eu
cd "$1"
fail() { echo "$*"; exit 1; }
pages="README.md CONTRIBUTING.md SECURITY.md docs/contributing/*.md .github/*.md .github/ISSUE_TEMPLATE/*.md .github/workflows/ci.yml"
scripts=0
# shellcheck disable=SC2086 # words
for script in $(grep -ohE '\bscripts/[a-z-]+\.(sh|py)\b' $pages | sort -u); do
    [ -x "$script" ] || fail "a page for contributors names $script, which is missing or not executable"
    scripts=$((scripts + 1))
done
[ "$scripts" -ge 15 ] || fail "the pages name $scripts scripts"
# shellcheck disable=SC2086
for preset in $(grep -ohE -- '--preset [a-z]+' $pages | cut -d' ' -f2 | sort -u); do
    grep -q "\"name\": \"$preset\"" CMakePresets.json || fail "a page for contributors names the preset $preset, which CMakePresets.json lacks"
done
links=0
for page in README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md CODE_OF_CONDUCT.md weights/MODEL_CARD.md cluster/*/*.md lab/*.md; do
    for target in $(sed '/^```/,/^```/d' "$page" | grep -oE '\]\([^)# ]+' | cut -c3- | grep -v '://'); do
        [ -e "$(dirname "$page")/$target" ] || fail "$page links to $target, which is missing"
        links=$((links + 1))
    done
done
[ "$links" -ge 15 ] || fail "the pages have $links links"
areas=0
for area in docs/decisions/*.md; do
    [ "$area" = docs/decisions/index.md ] && continue
    page=$area
    if grep -qF '{include}' "$area"; then page=cluster/docs/decisions.md; fi # the companion's records
    records=$(grep -c '^## [A-Z]-[0-9]*: ' "$page")
    grep -q "](${area##*/}) | [A-Z] | $records |\$" docs/decisions/index.md ||
        fail "docs/decisions/index.md has another number than $records for the records of $area"
    for part in Decision Why Rejected; do
        [ "$(grep -c "^- \*\*$part\.\*\* " "$page")" -eq "$records" ] || fail "$area: not every record has a part $part"
    done
    areas=$((areas + 1))
done
[ "$areas" -ge 10 ] || fail "there are $areas areas of decisions"
for recipe in docs/how-to/add-*.md cluster/docs/add-*.md; do
    grep -qF '{include}' "$recipe" && continue
    grep -qi 'past change' "$recipe" && grep -qE '`[0-9a-f]{8}`' "$recipe" || fail "$recipe names no past change"
done
version=$(sed -n 's/^#define MDOT_VERSION_STRING "\(.*\)"/\1/p' include/mdot/mdot_base.h)
grep -qx "version: $version" CITATION.cff || fail "CITATION.cff has another version than $version; run scripts/release.sh --prepare"
echo "$scripts scripts and $links links exist"
