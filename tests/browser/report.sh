#!/bin/sh
# Tests `mdot report` in a real browser, which is optional in CI: Debian's chromium opens a page in headless mode, offline.
# The rendered page must contain every drawing, and the browser must report zero errors.
#
#     tests/browser/report.sh [MDOT [SCREENSHOT.png]]
#
# Exit status 77: chromium is missing (apt-get install chromium).
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
mdot=${1:-$root/build/release/cli/mdot}
command -v chromium > /dev/null || { echo "report.sh: no chromium here; skipped"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$mdot" report "$root/examples/jobs/resnet50.onnx" "$root/examples/jobs/bert_base.onnx" --dim sequence=128 --precision amp \
    --torch 1.12,2.4 -q -o "$folder/page.html"
browse() {
    timeout 60 chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --host-resolver-rules='MAP * ~NOTFOUND' \
        --user-data-dir="$folder/profile" --enable-logging=stderr --window-size=1000,2400 "$@" "file://$folder/page.html"
}
browse --dump-dom > "$folder/dom.html" 2> "$folder/log"
fail() {
    echo "report.sh: $1"
    exit 1
}
[ "$(grep -o '<svg ' "$folder/dom.html" | wc -l)" -eq 24 ] || fail "there are not four drawings for each of two jobs, in three widths"
[ "$(grep -o '<section class="job">' "$folder/dom.html" | wc -l)" -eq 2 ] || fail "there are not two jobs"
[ "$(grep -o ", 1\.12</td>" "$folder/dom.html" | wc -l)" -eq 14 ] || fail "versions of PyTorch are not rows"
if grep -E 'CONSOLE|Refused|ERR_' "$folder/log"; then fail "the browser complains"; fi
browse --screenshot="$folder/page.png" > /dev/null 2>&1
[ "$(wc -c < "$folder/page.png")" -gt 50000 ] || fail "the page is all but empty"
[ $# -lt 2 ] || cp "$folder/page.png" "$2"
echo "report.sh: the page is whole"
