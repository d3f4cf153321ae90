#!/bin/sh
# The component that becomes the package mdot-slurm has its plugins where Debian's Slurm searches them, and the files that
# its pages tell an administrator to copy. Usage: install.sh BUILD_FOLDER of the companion.
set -eu
fail() { echo "$*"; exit 1; }
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
cmake --install "$1" --component slurm --prefix "$work/usr" > "$work/log" 2>&1 || fail "$(cat "$work/log")"
[ -f "$work/usr/share/doc/mdot-slurm/mdot.conf" ] || fail "mdot.conf is missing"
folder=$(dpkg -L slurm-wlm-basic-plugins 2> /dev/null | sed -n 's|/select_[a-z_]*\.so$||p' | sort -u) || true
[ -n "$folder" ] || { echo "skipped: Debian's package slurm-wlm-basic-plugins is not installed"; exit 77; }
for plugin in job_submit_mdot spank_mdot; do
    [ -f "$work$folder/$plugin.so" ] || fail "$folder/$plugin.so is missing; the component has $(cd "$work" && find . -name '*.so')"
done
