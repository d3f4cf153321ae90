#!/bin/sh
# Checks that the library files export exactly the functions of their public headers, and that shared libraries give them
# a version. Usage: exports.sh CC INCLUDE_FOLDER FILE… where FILE is lib<name>.a or lib<name>.so, and <name> is mdot, mdotjob,
# mdotc or mdotstore. Exit status 77: skipped, because a sanitizer adds its own symbols.
set -eu
cc=$1 include=$2
shift 2
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT

# Lists the functions declared by HEADER and its includes: statements outside braces, except types and code.
declared() {
    printf '#include "mdot/%s.h"\n' "$1" > "$work/header.c"
    "$cc" -I "$include" -I "$include/../cluster/include" -E "$work/header.c" > "$work/header.i"
    awk '/^# / { is_ours = index($3, "include/mdot/") > 0; next } is_ours' "$work/header.i" | tr '\n' ' ' |
        sed ':again; s/{[^{}]*}/;/g; t again' | tr ';' '\n' | grep -v '^ *\(typedef\|static\) ' |
        sed -n -E 's/.*[ *](mdot[a-z]*_[a-z0-9_]+)\(.*/\1/p' | sort -u
}

status=0
for file in "$@"; do
    name=$(basename "$file" | sed -E 's/^lib([a-z]+)\..*/\1/')
    declared mdot > "$work/core"
    case $name in
    mdot) cp "$work/core" "$work/wanted" ;;
    mdotstore) declared mdot_store | comm -23 - "$work/core" > "$work/wanted" ;;
    *) declared "$name" | comm -23 - "$work/core" > "$work/wanted" ;;
    esac
    [ -s "$work/wanted" ] || { echo "no function was found in $name.h"; exit 1; }
    case $file in
    *.a) nm -g --defined-only "$file" | awk 'NF == 3 { print $3 }' ;;
    *) nm -D --defined-only --with-symbol-versions "$file" | awk '$2 != "A" { print $3 }' ;;
    esac > "$work/names"
    if grep -q '__asan\|__odr_asan\|__sancov' "$work/names" || nm "$file" | grep -q ' __asan_init'; then
        echo "skipped: built with a sanitizer"
        exit 77
    fi
    case $file in
    *.so*)
        if grep -v '@@MDOT_[0-9]*\.[0-9]*$' "$work/names"; then
            echo "$file: these symbols have no version"
            status=1
        fi
        ;;
    esac
    sed 's/@.*//' "$work/names" | sort -u > "$work/shown"
    if ! diff "$work/wanted" "$work/shown" > "$work/difference"; then
        echo "$file: < is declared and not there, > is there and not declared:"
        grep '^[<>]' "$work/difference"
        status=1
    fi
done
exit $status
