#!/bin/sh
# Builds the wheels in two clones, at paths of different lengths and with different umasks. They must be equal, byte by byte,
# and fit any Python 3. Then tests them with each version of Python on PATH (scripts/test-wheel.sh).
# Usage: wheels.sh SOURCE_FOLDER
set -eu
source=$1
git -C "$source" rev-parse --verify -q HEAD > /dev/null 2>&1 || { echo "skipped: the source is not a git clone"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "$*"; exit 1; }
first=$work/a second=$work/deeper/folder/of/another/length
from=$(git -C "$source" rev-parse --show-toplevel)
for clone in "$first" "$second"; do
    git clone -q --no-hardlinks --depth 1 "file://$from" "$clone"
    from=$first # the same commit, although the source may get another one meanwhile
    # ccache would answer the second build with the first one's files
    (cd "$clone" && CCACHE_DISABLE=1 scripts/wheel.sh --no-tests) > "$work/log" 2>&1 || fail "$(tail -40 "$work/log")"
    (cd "$clone/dist" && sha256sum -- *.whl) > "$clone.sums"
    umask 077
done
cat "$first.sums"
diff "$first.sums" "$second.sums" || fail "the wheels depend on the folder, the time or the umask of the build"
[ "$(grep -c -- '-py3-none-manylinux_[0-9_]*_x86_64.whl$' "$first.sums")" -eq 3 ] ||
    fail "there are not three wheels for any Python 3"
"$first/scripts/test-wheel.sh" > "$work/log" 2>&1 || fail "$(tail -60 "$work/log")"
grep -E '^(skipped|the wheels work)' "$work/log"
