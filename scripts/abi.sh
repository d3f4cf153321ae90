#!/bin/sh
# Compares the libraries' binary interface, as abidw (abigail-tools) reads it from debug information, with the committed one:
#
#     scripts/abi.sh check  [BUILD FOLDER]   by default build/release; exit status 1 if a public struct or function differs
#     scripts/abi.sh update [BUILD FOLDER]   builds the libraries and writes abi/. Use it if the rules allow the differences
#                                            of `check`: new functions, new enumerators, and new fields at the end of
#                                            structs that begin with struct_size
#
# Exit status 77 if abigail is absent or the build lacks debug information. See HACKING.md, "The interface".
set -eu
cd "$(dirname "$0")/.."
action=${1:-check} build=${2:-build/release} version=0.2
for tool in abidw abidiff; do
    command -v "$tool" > /dev/null || { echo "skipped: there is no $tool (abigail-tools)"; exit 77; }
done
[ "$action" != update ] || cmake --build "$build" --target mdot mdotjob mdotc -- --quiet
status=0
for file in runtime/libmdot frontend/libmdotjob compiler/libmdotc; do
    library=$build/$file.so reference=abi/$(basename "$file")-$version.abi
    if ! readelf -S "$library" | grep -q '\.debug_info'; then
        echo "skipped: $library has no debug information"
        exit 77
    fi
    case $action in
    update)
        abidw --no-corpus-path --no-comp-dir-path --no-show-locs --out-file "$build/new.abi" "$library"
        sed -i "s#path='$(pwd -P)/#path='#" "$build/new.abi" # the compiler may have been called with absolute paths
        if grep -n "path='/" "$build/new.abi"; then
            echo "$library contains paths of another machine, which must not be committed:"
            exit 1
        fi
        mv "$build/new.abi" "$reference"
        ;;
    check)
        if abidiff --suppressions abi/suppressions \
            "$reference" "$library" > "$build/abidiff.txt" 2>&1; then continue; fi
        echo "$library differs from $reference:"
        cat "$build/abidiff.txt"
        status=1
        ;;
    *) sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 2 ;;
    esac
done
exit $status
