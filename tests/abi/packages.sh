#!/bin/sh
# Checks that `cpack` makes a package per library, two for development, one for the command, the companion's (where the
# build has it), and a tarball. The dependencies must match the files, and the unpacked files must work. Usage:
# packages.sh SOURCE_FOLDER BUILD_FOLDER VERSION SOVERSION
set -eu
source=$1 build=$2 version=$3 soversion=$4
for tool in cpack dpkg-deb dpkg-shlibdeps; do
    command -v "$tool" > /dev/null || { echo "skipped: there is no $tool"; exit 77; }
done
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
fail() { echo "$*"; exit 1; }

cpack --config "$build/CPackConfig.cmake" -B "$work" > "$work/log" 2>&1 || fail "$(cat "$work/log")"
# expect PACKAGE DEPENDENCY…: the package exists, and its dependencies on mdot and LLVM packages are exactly these.
expect() {
    file=$work/$1_${version}_amd64.deb
    [ -f "$file" ] || fail "there is no $file: $(ls "$work")"
    depends=$(dpkg-deb -f "$file" Depends | tr ',' '\n' | sed 's/^ *//; s/ .*//' | grep -E '^lib(mdot|llvm|LLVM)' | sort -u | tr '\n' ' ')
    shift
    [ "$depends" = "${*:+$* }" ] || fail "$file depends on $depends, not on $*"
    dpkg-deb -x "$file" "$work/root"
}
# The command and libmdotc depend on the same LLVM.
llvm=$(dpkg-deb -f "$work/mdot_${version}_amd64.deb" Depends | tr ', ' '\n\n' | grep -i '^libllvm' | head -1)
[ -n "$llvm" ] || fail "the package of the command does not depend on LLVM"
expect "libmdot$soversion"
expect "libmdotjob$soversion" "libmdot$soversion"
expect "libmdotc$soversion" "$llvm" "libmdot$soversion"
expect mdot-dev "libmdot$soversion" "libmdotc$soversion" "libmdotjob$soversion"
expect mdot-base-dev
expect mdot "$llvm"
if [ -e "$build/cluster/CPackConfig.cmake" ]; then
    cpack --config "$build/cluster/CPackConfig.cmake" -B "$work" > "$work/log" 2>&1 || fail "$(cat "$work/log")"
    expect mdot-cluster
    for program in mdot-simulate mdot-store; do # mdot-store is absent if the build lacks SQLite
        [ ! -e "$work/root/usr/bin/$program" ] || "$work/root/usr/bin/$program" --help > "$work/output" || fail "$program does not run"
    done
    [ ! -e "$build/cluster/store/libmdotstore.so" ] || {
        expect "libmdotstore$soversion" "libmdot$soversion"
        expect mdot-cluster-dev "libmdotstore$soversion"
    }
fi
[ ! -e "$build/bin/mdotd" ] || {
    expect mdotd
    for file in usr/bin/mdotd usr/lib/systemd/system/mdotd.socket usr/lib/sysusers.d/mdotd.conf usr/share/doc/mdotd/openapi.json; do
        [ -e "$work/root/$file" ] || fail "mdotd's package lacks $file"
    done
}
[ ! -e "$build/cluster/slurm/job_submit_mdot.so" ] || {
    expect mdot-slurm
    dpkg-deb -c "$work/mdot-slurm_${version}_amd64.deb" | grep -q '/slurm-wlm/job_submit_mdot\.so$' ||
        fail "the plugin is outside Slurm's folder"
    dpkg-deb -f "$work/mdot-slurm_${version}_amd64.deb" Depends | grep -q slurm-wlm-basic-plugins ||
        fail "the plugins depend on no version of Slurm"
}

mkdir "$work/tar"
tar -xzf "$work/mdot-$version-linux-x86_64.tar.gz" -C "$work/tar" --strip-components=1
for prefix in "$work/root/usr" "$work/tar"; do
    env -u MDOT_PREDICTOR "$prefix/bin/mdot" predict "$source/examples/jobs/resnet50.onnx" --gpu T4 --batch 8 -q > "$work/output" ||
        fail "the command in $prefix does not run"
    for file in lib/libmdot.so "lib/libmdotc.so.$soversion" include/mdot/mdot.h lib/pkgconfig/mdotjob.pc \
        share/man/man1/mdot-predict.1 share/bash-completion/completions/mdot share/doc/mdot/LICENSE; do
        [ -e "$prefix/$file" ] || fail "there is no $prefix/$file"
    done
done
