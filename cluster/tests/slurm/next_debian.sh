#!/bin/bash
# Builds the plugins with the Slurm of the next Debian release, and runs their tests on that Slurm, in a chroot:
#
#     cluster/tests/slurm/next_debian.sh FOLDER [SUITE, by default trixie]
#
# FOLDER receives the chroot, about 4 GB; a second run reuses its packages and objects. REQUESTS and SEED are those of
# never_worse.sh. Takes root, debootstrap and a package mirror; exits with 77 without them.
set -eu
[ $# -ge 1 ] || { sed -n '2,8p' "$0" >&2; exit 2; }
mkdir -p "$1"
folder=$(realpath "$1") suite=${2:-trixie} root=$(cd "$(dirname "$0")/../../.." && pwd)
skip() { echo "SKIPPED: $*"; exit 77; }
[ "$(id -u)" -eq 0 ] || skip "chroot takes root"
command -v debootstrap > /dev/null || skip "debootstrap is missing"

if [ ! -e "$folder/usr/bin/apt-get" ]; then
    debootstrap --variant=minbase --include=ca-certificates "$suite" "$folder" > "$folder.log" 2>&1 ||
        { tail -3 "$folder.log"; skip "debootstrap fails"; }
    cp /etc/resolv.conf /etc/hosts "$folder/etc/"
fi
leave() { umount -l "$folder/proc" "$folder/sys" "$folder/dev" 2> /dev/null || true; }
trap leave EXIT
mount -t proc proc "$folder/proc"
for name in sys dev; do mount --rbind --make-rslave "/$name" "$folder/$name"; done
rm -rf "$folder/source"
git clone -q "$root" "$folder/source"
git -C "$root" diff HEAD --binary | git -C "$folder/source" apply --allow-empty

chroot "$folder" env DEBIAN_FRONTEND=noninteractive CCACHE_DIR=/ccache REQUESTS="${REQUESTS:-300}" SEED="${SEED:-1}" \
    MDOT_INSTALL=no bash -eu << 'COMMANDS'
apt-get update -qq
apt-get install -y -qq --no-install-recommends git ccache procps slurmctld slurmd slurm-client libslurm-dev munge slurmdbd \
    slurm-wlm-mysql-plugin mariadb-server > /log 2>&1 || { tail -3 /log; exit 77; }
cd /source
scripts/install-deps.sh > /log 2>&1 || { tail -3 /log; exit 77; }
cmake --preset release -B /build -D CMAKE_C_COMPILER_LAUNCHER=ccache > /log 2>&1 || { tail -20 /log; exit 1; }
tests="test_job_submit_mdot test_job_submit_mdot_jobs test_spank_mdot test_decision"
# shellcheck disable=SC2086 # a list of words
cmake --build /build --target mdot_cli mdot_predictions job_submit_mdot spank_mdot hostile_client predictor $tests -- --quiet
ctest --test-dir /build -R "^(${tests// /|})$" --output-on-failure
dpkg-query -W -f 'Slurm ${Version}\n' slurmctld
set -- /build/cluster /build/cli/mdot /build/share/mdot/predictor.mdot /source/examples/jobs
run() { "cluster/tests/slurm/$1" "${@:2}" < /dev/null; } # Slurm's commands would read the lines below
run cluster.sh "$@" || [ $? = 77 ]
status=0
run never_worse.sh "$@" || status=$?
[ $status != 77 ] || ACCOUNTING=none run never_worse.sh "$@" || status=$?
[ $status = 0 ] || [ $status = 77 ]
COMMANDS
