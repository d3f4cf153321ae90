#!/bin/sh
# Compares the libraries' binary interface with that of the last release:
#
#     scripts/abi.sh [BUILD FOLDER]     by default build/release
#
# abidw and abidiff (Debian's package abigail-tools) read the interface from debug information. The last release is the
# newest tag vX.Y.Z of the same X.Y. That release's libraries are built in a separate worktree below the build folder.
# Changes allowed by the rules pass: new functions, new enumerators, and new fields at the end of structs that begin
# with struct_size. Exit status 1 if the interface changed otherwise. Exit status 77, with the reason, if the comparison
# is impossible, for example because no release has a tag yet. docs/contributing/interface.md.
set -eu
cd "$(dirname "$0")/.."
build=${1:-build/release}
version=$(sed -n 's/^#define MDOT_VERSION_STRING "\([0-9]*\.[0-9]*\)\..*/\1/p' include/mdot/mdot_base.h)
tag=$(git tag --list "v$version.*" --sort=-version:refname 2> /dev/null | head -1)
[ -n "$tag" ] || { echo "skipped: no release of version $version has a tag, so that there is no interface to keep"; exit 77; }
command -v abidiff > /dev/null || { echo "skipped: abidiff is missing (package abigail-tools)"; exit 77; }

released=$build/abi/$tag
if [ ! -e "$released/build/compiler/libmdotc.so" ]; then
    rm -rf "$released"
    mkdir -p "$released"
    git archive "$tag" | tar -x -C "$released"
    cmake -S "$released" -B "$released/build" -G Ninja -D CMAKE_BUILD_TYPE=Release -D MDOT_TESTS=OFF -D MDOT_CLUSTER=ON > "$released/log" 2>&1 &&
        cmake --build "$released/build" --target mdot_shared mdotjob_shared mdotc_shared mdotstore_shared \
            > "$released/log" 2>&1 ||
        { cat "$released/log"; exit 1; }
fi
# Programs hold pointers to the first entry's types, with hidden contents.
cat > "$build/abi/suppressions" <<'SUPPRESSIONS'
[suppress_type]
  name_regexp = ^(mdot_predictor|mdot_context|mdot_job|rt_.*|fe_.*|bs_.*)$
[suppress_type]
  type_kind = struct
  has_data_member = struct_size
  has_data_member_inserted_at = end
[suppress_type]
  type_kind = enum
  changed_enumerators_regexp = .*_COUNT$
SUPPRESSIONS
status=0
for file in runtime/libmdot frontend/libmdotjob compiler/libmdotc cluster/store/libmdotstore; do
    [ -e "$released/build/$file.so" ] || continue # the release lacks the library
    if abidiff --no-added-syms --suppressions "$build/abi/suppressions" "$released/build/$file.so" "$build/$file.so" \
        > "$build/abi/difference.txt" 2>&1; then continue; fi
    echo "$build/$file.so differs from $tag:"
    cat "$build/abi/difference.txt"
    status=1
done
exit $status
