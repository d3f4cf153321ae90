#!/bin/sh
# Reads every ELF file below the given folders with readelf. Each element of RPATH and RUNPATH must begin with / or $ORIGIN.
# The loader replaces an empty or relative element by the current directory, so that a program would load libraries from
# any folder in which a user starts it. Folders tests/nvrtc are left out, because they hold NVIDIA's own libraries: the test
# nvrtc_versions takes them from PyPI, and two of version 12.9 have an empty element.
#
#     scripts/check-elf.sh FOLDER…
#
# The second form checks programs and libraries of a release build: tables of addresses are read-only (full RELRO), stacks are
# not executable and guarded, calls of libc are checked (FORTIFY), programs are position-independent, and no file contains TREE,
# the path of the sources.
#
#     scripts/check-elf.sh --hardened TREE FILE…
#
# Prints each breach as "FILE: REASON"; exit status 1 if there is one, 2 if the folders contain no ELF file, 77 if there is
# no readelf.
set -eu
[ $# -gt 0 ] || { sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2; exit 2; }
command -v readelf > /dev/null || { echo "skipped: there is no readelf"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM

if [ "$1" = --hardened ]; then
    tree=$2
    shift 2
    for file; do
        LC_ALL=C readelf -hlW "$file" > "$work/headers"
        LC_ALL=C readelf -dW "$file" > "$work/dynamic"
        LC_ALL=C readelf --dyn-syms -W "$file" > "$work/symbols"
        grep -q GNU_RELRO "$work/headers" || echo "$file: no section is read-only after relocation"
        grep -Eq 'BIND_NOW|Flags:.* NOW' "$work/dynamic" || echo "$file: functions are bound lazily"
        grep -q 'GNU_STACK.* RW ' "$work/headers" || echo "$file: the stack is executable"
        grep -q 'Type: *DYN' "$work/headers" || echo "$file: not position-independent"
        grep -q __stack_chk_fail "$work/symbols" || echo "$file: stack frames are not guarded"
        grep -q '__[a-z]*_chk@' "$work/symbols" || echo "$file: no call of libc is checked"
        if LC_ALL=C grep -aqF "$tree" "$file"; then echo "$file: contains the path $tree"; fi
    done > "$work/breaches"
    [ -s "$work/breaches" ] || exit 0
    cat "$work/breaches"
    exit 1
fi

# `readelf` skips files of other formats with a message on stderr, which is discarded.
find "$@" -path '*/tests/nvrtc' -prune -o -type f \( -perm -100 -o -name '*.so' -o -name '*.so.*' \) -print0 |
    LC_ALL=C xargs -0 -n 200 readelf -dW /dev/null 2> /dev/null > "$work/dynamic" || true
awk '
    /^File: / { file = substr($0, 7) }
    /^Dynamic section/ { count++ }
    /\((RPATH|RUNPATH)\)/ {
        path = $0
        sub(/^[^[]*\[/, "", path)
        sub(/\]$/, "", path)
        parts = split(path, element, ":")
        if (parts == 0) print file ": the library path is empty"
        for (i = 1; i <= parts; i++) {
            if (element[i] == "") print file ": the library path \"" path "\" has an empty element"
            else if (element[i] !~ /^(\/|\$ORIGIN(\/|$)|\$\{ORIGIN\}(\/|$))/)
                print file ": the library path \"" path "\" has the relative element \"" element[i] "\""
        }
    }
    END { print count + 0 > "/dev/stderr" }' "$work/dynamic" > "$work/breaches" 2> "$work/count"
[ "$(cat "$work/count")" -gt 0 ] || { echo "check-elf.sh: no dynamic ELF file below $*" >&2; exit 2; }
if [ -s "$work/breaches" ]; then
    sort -u "$work/breaches"
    exit 1
fi
echo "$(cat "$work/count") ELF files: every element of their library paths is absolute"
