#!/bin/sh
# scripts/release.sh: refuses trees that are not ready, and prepares a version. With "full" it makes a release of a scratch clone
# to the end, without the suite: packages, wheels, bill of materials, checksums, a signature by a key made for the test.
# Usage: release.sh SOURCE_FOLDER [full]
set -eu
source=$1 depth=${2:-}
git -C "$source" rev-parse --verify -q HEAD > /dev/null 2>&1 || { echo "skipped: the source is not a git clone"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "$*"; exit 1; }
git clone -q --no-hardlinks --depth 1 "file://$(git -C "$source" rev-parse --show-toplevel)" "$work/mdot"
cd "$work/mdot"
git config user.name test
git config user.email test@localhost
# expect WORDS COMMAND…: the command fails and prints WORDS.
expect() {
    words=$1
    shift
    if "$@" > "$work/output" 2>&1; then fail "$* succeeds"; fi
    grep -qF -- "$words" "$work/output" || fail "$* prints $(cat "$work/output"), not $words"
}
expect "is not a version" scripts/release.sh --prepare 1.2
expect "unknown option" scripts/release.sh --everything
expect "must be gpg:KEY" scripts/release.sh --sign somebody
expect "no key file" env PATH="$work/bin:$PATH" sh -c \
    'mkdir -p "$0/bin" && printf "#!/bin/sh\n" > "$0/bin/minisign" && chmod +x "$0/bin/minisign" && exec scripts/release.sh --sign minisign:/nowhere' "$work"
printf '## 9.8.7 (unreleased)\n\n' | cat - CHANGELOG.md > "$work/changelog" && cp "$work/changelog" CHANGELOG.md
git commit -qam "docs: open a section"
expect "no dated section" scripts/release.sh --no-tests --no-wheels
scripts/release.sh --prepare 9.8.7 > /dev/null
grep -q '^#define MDOT_VERSION_STRING "9.8.7"$' include/mdot/mdot_base.h || fail "the header has another version"
grep -q '^#define MDOT_VERSION_MINOR 8$' include/mdot/mdot_base.h || fail "the minor version is another one"
grep -q "^## 9.8.7 ($(date -u +%Y)-" CHANGELOG.md || fail "the section has no date"
grep -q '^version: 9.8.7$' CITATION.cff || fail "the citation has another version"
grep -q "^date-released: $(date -u +%Y)-" CITATION.cff || fail "the citation has no date"
grep -q 'find_package(mdot 9.8 ' docs/how-to/call-from-c.md || fail "the manual names another version"
expect "commit them first" scripts/release.sh --no-tests --no-wheels
sed -i 's/^version: .*/version: 9.8.6/' CITATION.cff
git commit -qam "build: prepare 9.8.7"
expect "CITATION.cff has another version" scripts/release.sh --no-tests --no-wheels
sed -i 's/^version: .*/version: 9.8.7/' CITATION.cff
git commit -qam "build: name the version in the citation"
expect "SECURITY.md does not list 9.8" scripts/release.sh --no-tests --no-wheels
sed -i 's/^| [0-9.]* | yes |$/| 9.8 | yes |/' SECURITY.md
[ "$depth" = full ] || exit 0

git commit -qam "build: release 9.8.7"
sign=''
if command -v gpg > /dev/null; then
    GNUPGHOME=$work/gnupg
    export GNUPGHOME
    mkdir -m 700 "$GNUPGHOME"
    gpg --batch --quiet --passphrase '' --quick-generate-key 'release test <test@localhost>' default default never
    sign='--sign gpg:test@localhost'
fi
# shellcheck disable=SC2086 # words
scripts/release.sh --no-tests $sign > "$work/output" 2>&1 || fail "$(tail -40 "$work/output")"
cd dist/release-9.8.7
sha256sum --quiet -c SHA256SUMS || fail "checksums are wrong"
[ -z "$sign" ] || gpg --batch --verify SHA256SUMS.asc SHA256SUMS 2> /dev/null || fail "the signature is wrong"
for file in mdot-9.8.7.tar.gz mdot-9.8.7.spdx.json mdot-9.8.7-linux-x86_64.tar.gz mdot_9.8.7_amd64.deb mdot-cluster_9.8.7_amd64.deb \
    libmdot9.8_9.8.7_amd64.deb mdot-dev_9.8.7_amd64.deb; do
    [ -f "$file" ] || fail "there is no $file: $(ls)"
done
[ "$(ls ./*.whl | wc -l)" -eq 3 ] || fail "there are not three wheels: $(ls)"
[ "$(wc -l < SHA256SUMS)" -eq "$(find . -type f ! -name 'SHA256SUMS*' | wc -l)" ] || fail "SHA256SUMS leaves out files"
for file in ./*.deb ./*.whl mdot-9.8.7.tar.gz; do
    grep -qF "\"$(basename "$file")\"" mdot-9.8.7.spdx.json || fail "the bill of materials leaves out $file"
done
