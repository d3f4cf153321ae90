#!/bin/sh
# Builds the manual without warnings, checks its links, and opens every page in headless Chromium from the file system, offline:
# at the width of a desktop and of a phone, in light and dark, with search, navigation and tables (browse.html).
#
#     run.sh SOURCE_FOLDER WORK_FOLDER
#
# Exit status 77: doxygen, Sphinx with the packages of docs/requirements.txt, or chromium is missing. MDOT_DOCS_PYTHON names the
# Python that has the packages; without it, that of build/docs/venv (scripts/docs.sh) or python3 is used.
set -eu
source=$1
work=$2
tests=$(cd "$(dirname "$0")" && pwd)
command -v doxygen > /dev/null || { echo "skipped: doxygen is missing (apt-get install doxygen)"; exit 77; }
python=${MDOT_DOCS_PYTHON:-$source/build/docs/venv/bin/python}
[ -x "$python" ] || python=$(command -v python3) || { echo "skipped: python3 is missing"; exit 77; }
"$python" -c 'import breathe, furo, myst_parser, sphinx' 2> /dev/null ||
    { echo "skipped: $python lacks the packages of docs/requirements.txt; scripts/docs.sh installs them"; exit 77; }
export PYTHONDONTWRITEBYTECODE=1 # in the source folder
mkdir -p "$work"
MDOT_DOCS_PYTHON="$python" "$source/scripts/docs.sh" "$work"
html=$work/html
"$python" "$tests/links.py" "$html" || { echo "docs: links are broken"; exit 1; }
if grep -rlE --include='*.html' '^(<p>)?\| .* \|' "$html"; then echo "docs: these pages show a table as text"; exit 1; fi
"$python" "$tests/facts.py" "$source" || { echo "docs: facts that are missing go unnoticed"; exit 1; }
command -v chromium > /dev/null || { echo "skipped after the build: chromium is missing (apt-get install chromium)"; exit 77; }
cp "$tests/browse.html" "$work/browse.html"
{
    echo "const pages = {root: 'html', searches: [['mdot_predict_many', 'reference/c/predict.html'], ['checksum', 'formats/mdot.html'],"
    echo "        ['gpu-not-measured', 'reference/statuses.html#'], ['MDOT_CPU_ISA', 'reference/environment.html#'],"
    echo "        ['host_launch_us', 'reference/configuration.html#'], ['RTX-A5000', 'reference/gpus.html#'],"
    echo "        ['RTX 4090', 'reference/gpus.html#'],"
    echo "        ['Einsum', 'reference/operators.html#']],"
    echo "    list: ["
    (cd "$html" && find . -name '*.html' ! -name search.html | sed "s|^\./\(.*\)|        '\1',|" | LC_ALL=C sort)
    echo "    ]};"
} > "$work/pages.js"
rm -rf "$work/profile"
timeout 600 chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --allow-file-access-from-files --disable-web-security \
    --host-resolver-rules='MAP * ~NOTFOUND' --user-data-dir="$work/profile" --window-size=1400,1000 --virtual-time-budget=600000 \
    --dump-dom "file://$work/browse.html" > "$work/dom.html" 2> "$work/chromium.log" || { tail -5 "$work/chromium.log"; exit 1; }
rm -rf "$work/profile"
awk '/<pre id="result">/ { shown = 1; sub(/.*<pre id="result">/, "") }
     shown { is_end = sub(/<\/pre>.*/, ""); print; if (is_end) exit }' "$work/dom.html" > "$work/result"
grep -qx done "$work/result" || { echo "docs: the browser stopped early"; cat "$work/result"; tail -5 "$work/chromium.log"; exit 1; }
[ "$(cat "$work/result")" = "done" ] || { cat "$work/result"; exit 1; }
echo "docs: $(grep -c "html'," "$work/pages.js") pages are whole"
