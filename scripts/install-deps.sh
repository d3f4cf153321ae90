#!/bin/sh
# Installs the dependencies of building and testing mdot from the distribution's packages (Debian 12 or newer). Does nothing
# if all are installed. Requires root only if something is missing.
set -eu
# The last line has libraries that mdot builds without, too: solvers of the simulator, SQLite for the store of measured
# steps, and libmicrohttpd for the service.
packages="gcc g++ cmake ninja-build pkg-config binutils llvm-19-dev libprotobuf-c-dev protobuf-c-compiler libjson-c-dev
 libcmocka-dev coinor-libclp-dev coinor-libcbc-dev zlib1g-dev libsqlite3-dev libmicrohttpd-dev"
[ "${1:-}" = "--with-tests" ] && packages="$packages libonnx-testdata dpkg-dev clang-format clang libclang-rt-dev"
# scripts/abi.sh needs abigail-tools as soon as a release has a tag. The test aarch64_build skips without gcc-aarch64-linux-gnu,
# which is left out because it takes about 150 MB.
[ "${1:-}" = "--with-tests" ] && [ -n "$(git tag --list 'v*' 2> /dev/null)" ] && packages="$packages abigail-tools"

missing=""
for package in $packages; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q "install ok installed" || missing="$missing $package"
done
[ -z "$missing" ] && exit 0

echo "installing:$missing"
root=""
[ "$(id -u)" -eq 0 ] || root="sudo"
$root apt-get update -qq
# shellcheck disable=SC2086 # a list of words
DEBIAN_FRONTEND=noninteractive $root apt-get install -y -qq --no-install-recommends $missing
