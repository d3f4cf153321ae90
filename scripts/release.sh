#!/bin/sh
# Makes a release of this tree in dist/release-VERSION: source tarball, Debian packages, binary tarball, wheels, a bill of
# materials (SPDX), checksums and signatures.
#
#     scripts/release.sh --prepare VERSION     writes version and date into headers, CHANGELOG.md and CITATION.cff; commit that
#     scripts/release.sh [OPTION …]            makes the release of the committed tree
#
# --sign gpg:KEY          signs SHA256SUMS by gpg with KEY, a name or fingerprint
# --sign minisign:FILE    signs it by minisign with the secret key in FILE
# --no-wheels             leaves out the wheels, which take most of the time
# --no-tests              leaves out the tests. Without it, scripts/test.sh runs first
#
# The same commit and build machine give the same files, except signatures: dates are those of the commit. Needs mdot's build
# dependencies (scripts/install-deps.sh), Python with venv, and access to PyPI for scripts/release/requirements.txt.
set -eu
umask 022 # packages hold the modes of files and folders
cd "$(dirname "$0")/.."
fail() { echo "release.sh: $*" >&2; exit 1; }

header=include/mdot/mdot_base.h
version_of() { sed -n 's/^#define MDOT_VERSION_STRING "\(.*\)"/\1/p' "$header"; }

prepare() {
    echo "$1" | grep -Eqx '[0-9]+\.[0-9]+\.[0-9]+' || fail "$1 is not a version such as 1.2.3"
    grep -q '^## .* (unreleased)$' CHANGELOG.md || fail "CHANGELOG.md has no section that is marked (unreleased)"
    major=${1%%.*} rest=${1#*.}
    sed -i "s/^\(#define MDOT_VERSION_MAJOR \).*/\1$major/; s/^\(#define MDOT_VERSION_MINOR \).*/\1${rest%%.*}/
            s/^\(#define MDOT_VERSION_PATCH \).*/\1${rest#*.}/; s/^\(#define MDOT_VERSION_STRING \).*/\1\"$1\"/" "$header"
    sed -i "s/^VERSION = .*/VERSION = \"$1\"/" bindings/python/mdot/version.py
    minor=${1%.*} # while the version is 0.x, each minor version has an interface of its own
    sed -i "s/^SOVERSION = .*/SOVERSION = \"$minor\"/" bindings/python/mdot/library/libraries.py
    sed -i "s/^MDOT_[0-9.]* {/MDOT_$minor {/" */lib*.map cluster/*/lib*.map
    sed -i "s/find_package(mdot\(-store\)\{0,1\} [0-9.]*/find_package(mdot\1 $minor/" docs/how-to/call-from-c.md cmake/mdotConfig.cmake.in \
        tests/abi/project/CMakeLists.txt cluster/CMakeLists.txt cluster/store/mdot-storeConfig.cmake.in cluster/tests/store/install.sh
    sed -i "s/^version = .*/version = \"$1\"/" lab/pyproject.toml cluster/pyproject.toml
    sed -i "s/^version: .*/version: $1/; s/^date-released: .*/date-released: $(date -u +%Y-%m-%d)/" CITATION.cff
    sed -i "s/^## .* (unreleased)\$/## $1 ($(date -u +%Y-%m-%d))/" CHANGELOG.md
    echo "the tree has version $1 now; commit it, then run scripts/release.sh"
}

sign='' wheels=1 tests=1
while [ $# -gt 0 ]; do
    case $1 in
    --prepare) [ $# -eq 2 ] || fail "--prepare needs a version"; prepare "$2"; exit ;;
    --sign) [ $# -ge 2 ] || fail "--sign needs gpg:KEY or minisign:FILE"; sign=$2; shift ;;
    --no-wheels) wheels=0 ;;
    --no-tests) tests=0 ;;
    *) fail "unknown option $1" ;;
    esac
    shift
done
case $sign in
'') ;;
gpg:?*) command -v gpg > /dev/null || fail "there is no gpg; install gnupg"
    gpg --batch --list-secret-keys "${sign#gpg:}" > /dev/null 2>&1 || fail "gpg has no secret key ${sign#gpg:}" ;;
minisign:?*) command -v minisign > /dev/null || fail "there is no minisign; install it"
    [ -f "${sign#minisign:}" ] || fail "there is no key file ${sign#minisign:}" ;;
*) fail "--sign is $sign, and must be gpg:KEY or minisign:FILE" ;;
esac

version=$(version_of)
[ -z "$(git status --porcelain --untracked-files=no)" ] || fail "files differ from the last commit; commit them first"
grep -Eq "^## $version \([0-9]{4}-[0-9]{2}-[0-9]{2}\)\$" CHANGELOG.md ||
    fail "CHANGELOG.md has no dated section $version; run scripts/release.sh --prepare $version"
grep -q "^VERSION = \"$version\"\$" bindings/python/mdot/version.py || fail "mdot/version.py differs from $header"
grep -q "^version: $version\$" CITATION.cff || fail "CITATION.cff has another version than $header"
grep -q "^| ${version%.*} | yes |\$" SECURITY.md || fail "SECURITY.md does not list ${version%.*} as a supported version"
commit=$(git rev-parse HEAD)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH # packages and wheels have the date of the commit
out=$PWD/dist/release-$version
rm -rf "$out"
mkdir -p "$out"

if [ $tests -eq 1 ]; then
    scripts/test.sh
fi
echo "== source"
git archive --format=tar --prefix="mdot-$version/" "$commit" | gzip -9n > "$out/mdot-$version.tar.gz"

echo "== packages"
build=$PWD/build/package
mkdir -p build
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DMDOT_TESTS=OFF -DMDOT_CLUSTER=ON > "$build.log" 2>&1 || { cat "$build.log"; exit 1; }
cmake --build "$build" -- --quiet
packed=$(mktemp -d)
trap 'rm -rf "$packed"' EXIT
for config in "$build" "$build/cluster"; do
    cpack --config "$config/CPackConfig.cmake" -B "$packed" > "$build.log" 2>&1 || { cat "$build.log"; exit 1; }
done
cp "$packed"/*.deb "$packed"/*.tar.gz "$out"

venv=$PWD/build/release-tools
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet --require-hashes --requirement scripts/release/requirements.txt
if [ $wheels -eq 1 ]; then
    echo "== wheels"
    scripts/wheel.sh
    cp dist/mdot_predict-*.whl dist/mdot_compiler-*.whl dist/mdot_store-*.whl "$out"
fi

echo "== bill of materials, checksums, signature"
(cd "$out" && "$venv/bin/python" "$OLDPWD/scripts/release/sbom.py" --version "$version" --commit "$commit" \
    --date "$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)" --out "mdot-$version.spdx.json" -- *)
(cd "$out" && sha256sum -- * > "$packed/SHA256SUMS" && mv "$packed/SHA256SUMS" .)
case $sign in
gpg:*) gpg --batch --yes --local-user "${sign#gpg:}" --armor --detach-sign "$out/SHA256SUMS" ;;
minisign:*) minisign -S -s "${sign#minisign:}" -m "$out/SHA256SUMS" ;;
*) echo "SHA256SUMS is unsigned, because --sign is missing" ;;
esac
echo "$out:"
ls -sh "$out"
