#!/bin/sh
# The libraries' binary interface, as abidw (abigail-tools) reads it from debug information, compared with what is committed:
#
#     scripts/abi.sh check  [BUILD FOLDER]   by default build/release; 1 when any public struct or function is another
#     scripts/abi.sh update [BUILD FOLDER]   builds the libraries and writes abi/, when what `check` prints is what the rules
#                                            allow: new functions, new enumerators, new fields at the end of structs that
#                                            begin with struct_size
#
# 77 where abigail is absent or the build has no debug information. HACKING.md, "The interface".
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
        sed -i "s#path='$(pwd -P)/#path='#" "$build/new.abi" # where the compiler was called with absolute paths
        if grep -n "path='/" "$build/new.abi"; then
            echo "$library was compiled elsewhere: these paths would be committed"
            exit 1
        fi
        mv "$build/new.abi" "$reference"
        ;;
    check)
        if abidiff --suppressions abi/suppressions \
            "$reference" "$library" > "$build/abidiff.txt" 2>&1; then continue; fi
        echo "$library is not what $reference says:"
        cat "$build/abidiff.txt"
        status=1
        ;;
    *) sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 2 ;;
    esac
done
exit $status
