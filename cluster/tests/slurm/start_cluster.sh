# start_cluster.sh — sourced by the scripts beside it, with their arguments: starts a Slurm cluster of one node with mdot's
# plugins, on loopback and in one folder, and ends it with the script. Defines the commands below.
#
# cards=N: GPUs of each type (2); cores=N: claimed CPUs; accounting_type=slurmdbd: with slurmdbd and a MariaDB of its own.
set -u
root=$(cd "$(dirname "$0")/../../.." && pwd)
[ $# -gt 0 ] || set -- "$root/build/release/cluster" "$root/build/release/cli/mdot" "$root/build/release/share/mdot/predictor.mdot" \
    "$root/examples/jobs"
[ $# = 4 ] || { sed -n '2,11p' "$0" >&2; exit 2; }
build=$(cd "$1" && pwd) || exit 1
mdot=$(realpath "$2") predictor=$(realpath "$3") jobs=$(realpath "$4")
cd "$(dirname "$0")/../.." || exit 1
source=$PWD
plugins=$build/slurm
top=$build # the build that the companion is a part of
[ -e "$top/CMakeCache.txt" ] || top=${top%/*}
skip() { echo "SKIPPED: $*"; exit 77; }

[ "$(id -u)" -eq 0 ] || skip "slurmd takes root"
missing=""
more=""
[ "${accounting_type:-none}" = none ] || more="slurmdbd slurm-wlm-mysql-plugin mariadb-server"
for package in slurmctld slurmd slurm-client libslurm-dev munge $more; do
    dpkg-query -W -f '${Status}' $package 2>/dev/null | grep -q "install ok installed" || missing="$missing $package"
done
if [ -n "$missing" ]; then
    [ "${MDOT_INSTALL:-yes}" = yes ] || skip "these packages are missing:$missing"
    command -v apt-get > /dev/null || skip "no apt-get to install$missing with"
    echo "installing:$missing"
    # shellcheck disable=SC2086 # a list of words
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing; } \
        > /dev/null 2>&1 || skip "cannot install$missing"
fi
[ -e "$plugins/job_submit_mdot.so" ] || cmake "$top" > /dev/null # Slurm's headers may have been installed just now
cmake --build "$top" --target job_submit_mdot spank_mdot hostile_client mdot_predictions -- --quiet || exit 1

# ---- A cluster of one node, on loopback, with all its files in one folder ---------------------------------------------

work=$(mktemp -d)
host=$(hostname -s)
export SLURM_CONF=$work/slurm.conf
stop() {
    if [ -e "$work/slurmctld.pid" ]; then # ends all jobs before the cluster
        scancel -u nobody 2> /dev/null
        for _ in $(seq 50); do [ -z "$(squeue -h -t R,CG 2> /dev/null)" ] && break; sleep .2; done
    fi
    for daemon in slurmctld slurmd slurmdbd mariadbd munged; do
        [ -s "$work/$daemon.pid" ] && kill "$(cat "$work/$daemon.pid")" 2> /dev/null
    done
    for _ in $(seq 50); do [ -e "$work/slurmctld.pid" ] || [ -e "$work/slurmd.pid" ] || break; sleep .1; done
    [ -z "${MDOT_KEEP:-}" ] && rm -rf "$work"
}
trap stop EXIT
chmod 755 "$work"
mkdir -p "$work/state" "$work/spool" "$work/jobs"
chmod 777 "$work/jobs"
cards=${cards:-2} cores=${cores:-$(nproc)} accounting_type=${accounting_type:-none}
for i in $(seq 0 $((2 * cards - 1))); do touch "$work/card$i"; done
# Three ports on which nothing listens, below those of outgoing connections: other clusters may run on this machine.
is_taken() { (exec 3<> "/dev/tcp/127.0.0.1/$1") 2> /dev/null; }
port=$((10000 + $$ % 10000 * 2))
while is_taken $port || is_taken $((port + 1)) || is_taken $((port + 2)); do port=$((port + 3)); done
dd if=/dev/urandom of="$work/munge.key" bs=128 count=1 2> /dev/null
chmod 600 "$work/munge.key"

cat > "$work/gres.conf" << CONF
AutoDetect=off
Name=gpu Type=a100 File=$work/card[0-$((cards - 1))]
Name=gpu Type=h100 File=$work/card[$cards-$((2 * cards - 1))]
CONF
cat > "$work/slurm.conf" << CONF
ClusterName=mdot
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$work/munge.socket
CredType=cred/munge
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd.log
SlurmctldPort=$port
SlurmdPort=$((port + 1))
ProctrackType=proctrack/pgid
TaskPlugin=task/none
MpiDefault=none
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,bf_interval=1
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
AccountingStorageType=accounting_storage/$accounting_type
JobAcctGatherType=jobacct_gather/none
ReturnToService=2
PriorityType=priority/multifactor
EnforcePartLimits=ALL
GresTypes=gpu
JobSubmitPlugins=mdot
PluginDir=/usr/lib/$(uname -m)-linux-gnu/slurm-wlm:$plugins
PlugStackConfig=$work/plugstack.conf
Epilog=$work/epilog.sh
SlurmdParameters=config_overrides
NodeName=$host NodeAddr=127.0.0.1 Sockets=2 CoresPerSocket=$(((cores + 1) / 2)) RealMemory=1000 Gres=gpu:a100:$cards,gpu:h100:$cards State=UNKNOWN
PartitionName=plain Nodes=$host MaxTime=INFINITE DefaultTime=7 State=UP
PartitionName=a100 Nodes=$host Default=YES MaxTime=3-0 DefaultTime=7 State=UP
PartitionName=h100 Nodes=$host MaxTime=3-0 DefaultTime=7 State=UP
PartitionName=short Nodes=$host MaxTime=30 DefaultTime=7 State=UP
PartitionName=mixed Nodes=$host MaxTime=INFINITE DefaultTime=7 State=UP
CONF
[ "$accounting_type" = none ] || cat >> "$work/slurm.conf" << CONF
AccountingStorageHost=127.0.0.1
AccountingStoragePort=$((port + 2))
AccountingStoragePass=$work/munge.socket
AccountingStorageEnforce=limits,qos
CONF
echo "required $plugins/spank_mdot.so" > "$work/plugstack.conf"
printf '#!/bin/sh\nenv | grep -c MDOT_ >> %s/epilog.seen\nexit 0\n' "$work" > "$work/epilog.sh"
chmod 755 "$work/epilog.sh"
settle() { sleep 4.5; } # the plugin looks at the cluster every two seconds
site() { # site LINE…: writes mdot.conf with these additional lines, and waits until the plugin has read them
    cat > "$work/mdot.conf.new" << CONF
Predictor=$predictor
Quantile=0.9
Margin=1.2
Startup=5
MaxMilliseconds=1000
LimitDoubtful=yes
PriorityWeight=10000
Partition=a100  Gpu=A100-SXM-40GB  MaxTime=3-0
Partition=h100  Gpu=H100-SXM-80GB  MaxTime=3-0
Partition=short Gpu=A100-SXM-40GB  MaxTime=30
Partition=mixed Gpu=A100-SXM-40GB  Type=a100 MaxTime=INFINITE Price=1
Partition=mixed Gpu=H100-SXM-80GB  Type=h100 MaxTime=INFINITE Price=8
CONF
    printf '%s\n' "$@" >> "$work/mdot.conf.new"
    mv "$work/mdot.conf.new" "$work/mdot.conf"
    [ -e "$work/slurmctld.pid" ] && settle
    return 0
}
site

munged --force --key-file="$work/munge.key" --socket="$work/munge.socket" --pid-file="$work/munged.pid" \
    --log-file="$work/munged.log" --seed-file="$work/munged.seed" 2> "$work/munged.err" || { cat "$work/munged.err"; exit 1; }
start_accounting() { # starts MariaDB and slurmdbd
    mkdir -m 755 "$work/db"
    mariadb-install-db --no-defaults --datadir="$work/db" --auth-root-authentication-method=normal --user=root > /dev/null 2>&1 || return 1
    mariadbd --no-defaults --datadir="$work/db" --socket="$work/db.socket" --pid-file="$work/mariadbd.pid" --user=root \
        --skip-networking --innodb-buffer-pool-size=64M > "$work/mariadbd.log" 2>&1 &
    for _ in $(seq 150); do [ -S "$work/db.socket" ] && break; sleep .2; done
    cat > "$work/slurmdbd.conf" << CONF
AuthType=auth/munge
AuthInfo=socket=$work/munge.socket
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort=$((port + 2))
SlurmUser=root
LogFile=$work/slurmdbd.log
PidFile=$work/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StorageLoc=slurm
CONF
    chmod 600 "$work/slurmdbd.conf"
    MYSQL_UNIX_PORT=$work/db.socket SLURM_CONF=$work/slurmdbd.conf slurmdbd || return 1
    for _ in $(seq 150); do is_taken $((port + 2)) && break; sleep .2; done
    sacctmgr -i add cluster mdot > /dev/null
}
start() { # starts the daemons, and waits up to two minutes until the node is idle
    slurmctld -c -f "$SLURM_CONF" && slurmd -f "$SLURM_CONF" -N "$host" || return 1
    for _ in $(seq 600); do sinfo -h -o %T 2> /dev/null | grep -q idle && return; sleep .2; done
    return 1
}
[ "$accounting_type" = none ] || start_accounting || skip "MariaDB or slurmdbd does not start here"
if ! start; then # this machine is unsuitable, unless Slurm starts without mdot's plugins
    sinfo
    for log in "$work"/slurm*.log; do tail -n 20 "$log"; done
    for daemon in slurmctld slurmd; do [ -s "$work/$daemon.pid" ] && kill "$(cat "$work/$daemon.pid")"; done
    for _ in $(seq 50); do [ -e "$work/slurmctld.pid" ] || [ -e "$work/slurmd.pid" ] || break; sleep .1; done
    sed -i '/^JobSubmitPlugins=/d' "$work/slurm.conf"
    : > "$work/plugstack.conf"
    start && { echo "FAILED: Slurm starts only without mdot's plugins"; exit 1; }
    skip "Slurm does not start here; the ends of its logs are above"
fi

# ---- User commands and their results ----------------------------------------------------------------------------------

cd "$work/jobs" || exit 1
"$mdot" extract "$jobs/resnet50.onnx" -o resnet50.job > /dev/null || exit 1
printf '#!/bin/sh\nsleep 60\n' > job.sh
id=""
failures=0
user() { runuser -u nobody -- env SLURM_CONF="$SLURM_CONF" "$@"; }
# submit OPTION…: submits a held job, for inspection of the controller's answer. $id is the job number.
submit() {
    id=$(user sbatch --parsable -H -o /dev/null "$@" job.sh 2> messages)
    [ -n "$id" ] && return
    echo "FAILED: sbatch $* was refused: $(cat messages)"
    failures=$((failures + 1))
    id=0
}
shows() { scontrol -o show job "$id" 2> /dev/null | tr ' ' '\n' | sed -n "s/^$1=//p" | head -1; }
comment() { scontrol -o show job "$id" | grep -o 'AdminComment=mdot: .*' | sed 's/AdminComment=//'; }
logged() { tail -n +"$((mark + 1))" "$work/slurmctld.log"; }
begin() { mark=$(wc -l < "$work/slurmctld.log"); }
check() { # check WHAT CONDITION…
    local what=$1
    shift
    if "$@"; then echo "ok: $what"; else echo "FAILED: $what ($*)"; failures=$((failures + 1)); fi
}
has() { [[ "$1" == *"$2"* ]]; }
field() { comment | tr ' ' '\n' | sed -n "s/^$1=//p"; }
minutes() { # converts a TimeLimit to minutes
    echo "$1" | awk -F'[-:]' '{ if (NF == 4) print $1*1440+$2*60+$3; else if (NF == 3) print $1*60+$2; else print $1 }'
}
