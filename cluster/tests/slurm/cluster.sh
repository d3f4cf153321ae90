#!/bin/bash
# Runs Slurm with mdot's plugins on one machine, from Debian's packages and without systemd. It submits jobs and checks
# their limits, order, comments and partitions, and the handling of missing, broken or hostile files.
#
#     cluster/tests/slurm/cluster.sh [BUILD MDOT PREDICTOR JOBS]
#
# BUILD is the folder of the companion's build, by default build/release/cluster. MDOT is the command, PREDICTOR the
# predictor, and JOBS the folder with the examples' jobs, by default those of the same build and tree.
#
# Requires root for slurmd; the jobs run as the ordinary user `nobody`. Exit status: 0 = success, 1 = failure, 77 = this
# machine is unsuitable, for the printed reason.
set -u
root=$(cd "$(dirname "$0")/../../.." && pwd)
[ $# -gt 0 ] || set -- "$root/build/release/cluster" "$root/build/release/cli/mdot" "$root/build/release/share/mdot/predictor.mdot" \
    "$root/examples/jobs"
[ $# = 4 ] || { sed -n '2,11p' "$0" >&2; exit 2; }
build=$(cd "$1" && pwd) || exit 1
mdot=$2 predictor=$3 jobs=$4
cd "$(dirname "$0")/../.." || exit 1
source=$PWD
plugins=$build/slurm
top=$build # the build that the companion is a part of
[ -e "$top/CMakeCache.txt" ] || top=${top%/*}
skip() { echo "SKIPPED: $*"; exit 77; }

[ "$(id -u)" -eq 0 ] || skip "slurmd takes root"
missing=""
for package in slurmctld slurmd slurm-client libslurm-dev munge; do
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
    for daemon in slurmctld slurmd munged; do
        [ -s "$work/$daemon.pid" ] && kill "$(cat "$work/$daemon.pid")" 2> /dev/null
    done
    for _ in $(seq 50); do [ -e "$work/slurmctld.pid" ] || [ -e "$work/slurmd.pid" ] || break; sleep .1; done
    [ -z "${MDOT_KEEP:-}" ] && rm -rf "$work"
}
trap stop EXIT
chmod 755 "$work"
mkdir -p "$work/state" "$work/spool" "$work/jobs"
chmod 777 "$work/jobs"
touch "$work"/card{0,1,2,3}
# Two ports on which nothing listens, below those of outgoing connections: other clusters may run on this machine.
is_taken() { (exec 3<> "/dev/tcp/127.0.0.1/$1") 2> /dev/null; }
port=$((10000 + $$ % 10000 * 2))
while is_taken $port || is_taken $((port + 1)); do port=$((port + 2)); done
dd if=/dev/urandom of="$work/munge.key" bs=128 count=1 2> /dev/null
chmod 600 "$work/munge.key"

cat > "$work/gres.conf" << CONF
AutoDetect=off
Name=gpu Type=a100 File=$work/card[0-1]
Name=gpu Type=h100 File=$work/card[2-3]
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
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
ReturnToService=2
PriorityType=priority/multifactor
EnforcePartLimits=ALL
GresTypes=gpu
JobSubmitPlugins=mdot
PluginDir=/usr/lib/$(uname -m)-linux-gnu/slurm-wlm:$plugins
PlugStackConfig=$work/plugstack.conf
Epilog=$work/epilog.sh
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) RealMemory=1000 Gres=gpu:a100:2,gpu:h100:2 State=UNKNOWN
PartitionName=plain Nodes=$host MaxTime=INFINITE DefaultTime=7 State=UP
PartitionName=a100 Nodes=$host Default=YES MaxTime=3-0 DefaultTime=7 State=UP
PartitionName=h100 Nodes=$host MaxTime=3-0 DefaultTime=7 State=UP
PartitionName=short Nodes=$host MaxTime=30 DefaultTime=7 State=UP
PartitionName=mixed Nodes=$host MaxTime=INFINITE DefaultTime=7 State=UP
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
start() { # starts the daemons, and waits up to two minutes until the node is idle
    slurmctld -c -f "$SLURM_CONF" && slurmd -f "$SLURM_CONF" -N "$host" || return 1
    for _ in $(seq 600); do sinfo -h -o %T 2> /dev/null | grep -q idle && return; sleep .2; done
    return 1
}
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

requested=resnet50.job,batch=128,precision=amp
settle
submit --mdot=$requested,steps=100000 --gres=gpu:a100:1
check "the first submission after the start gets a limit" [ "$(minutes "$(shows TimeLimit)")" -gt 7 ]
predicted=$("$mdot" predict resnet50.job --gpu A100-SXM-40GB --batch 128 --precision amp --json -q |
    sed -n 's/.*"step_ms": *\([0-9.]*\).*/\1/p' | head -1)
check "the comment has the step time that mdot predict says" \
    awk -v a="$(field step_ms)" -v b="$predicted" 'BEGIN { exit !(a > 0 && (a-b)^2 < (b*1e-3)^2) }'
uncalibrated=$(field step_ms)
check "and the interval, the steps, the time of all" has "$(comment)" "interval_s="
check "a limit is set where none is given" [ "$(minutes "$(shows TimeLimit)")" = "$(field limit_min)" ]
check "the limit lies above the median and a startup" \
    awk -v l="$(field limit_min)" -v t="$(field total_s)" 'BEGIN { exit !(l*60 > t*1.2 + 300) }'
submit --mdot=$requested,steps=100000 --gres=gpu:a100:1 --time=11
check "a limit that is given stays" [ "$(minutes "$(shows TimeLimit)")" = 11 ]
submit --mdot=$requested,steps=1000000 --partition=short --gres=gpu:a100:1
check "a limit does not pass the partition's" [ "$(minutes "$(shows TimeLimit)")" = 30 ]
submit --mdot=$requested --gres=gpu:a100:1
check "without steps only the step is predicted" [ "$(minutes "$(shows TimeLimit)")/$(field total_s)" = 7/ ]
submit --mdot=$requested,epochs=90,dataset=1281167 --gres=gpu:a100:2
check "epochs are steps of all GPUs' batches" [ "$(field steps)/$(field gpus)" = "450450/2" ]
submit --mdot=$requested,steps=100 --comment=mine --gres=gpu:a100:1
check "the user's comment stays" has "$(scontrol -o show job "$id")" " Comment=mine"
printf '#!/bin/sh\n#SBATCH --mdot=resnet50.job,batch=32,steps=10\nsleep 60\n' > with.sh
id=$(user sbatch --parsable -H -o /dev/null --gres=gpu:1 with.sh)
check "a script's line is read" [ "$(field steps)" = 10 ]
id=$(user sbatch --parsable -H -o /dev/null --gres=gpu:1 --mdot=$requested,steps=20 with.sh)
check "the command line goes before it" [ "$(field steps)" = 20 ]
id=$(user sbatch --parsable -H -o /dev/null --gres=gpu:1 --array=0-3 --mdot=$requested,steps=20 job.sh)
check "an array's tasks have it" [ "$(field steps)" = 20 ]
submit --gres=gpu:1
check "a job without --mdot keeps its settings" [ "$(minutes "$(shows TimeLimit)")/$(comment)" = 7/ ]
submit --mdot=$requested,steps=10 --partition=plain
check "a partition that mdot.conf lacks has no prediction" [ "$(comment)" = "" ]

# choice of partitions
site Choose=time
submit --mdot=$requested,steps=100000 --partition=a100,h100 --gres=gpu:1
check "by time: the faster partition" [ "$(shows Partition)" = h100 ]
submit --mdot=$requested,steps=100000 --partition=mixed --gres=gpu:1
check "by time: the faster type of a partition" has "$(scontrol -o show job "$id")" "gres:gpu:h100:1"
submit --mdot=$requested,steps=100000 --partition=mixed --gres=gpu:a100:1
check "a requested type stays" has "$(scontrol -o show job "$id")" "gres:gpu:a100:1"
sed -i 's/MaxTime=3-0/& Price=1/;s/MaxTime=30/& Price=1/' "$work/mdot.conf"
sed -i 's/Choose=time/Choose=cost/' "$work/mdot.conf"
settle
submit --mdot=$requested,steps=100000 --partition=mixed --gpus=1
check "by cost: the cheaper type" has "$(scontrol -o show job "$id")" "gres:gpu:a100:1"
site
submit --mdot=$requested,steps=100000 --partition=a100,h100 --gres=gpu:1
check "without a choice partitions stay as they were" [ "$(shows Partition)" = a100,h100 ]

# order: three jobs that exclude one another, the longest submitted first
scancel -u nobody
for _ in $(seq 50); do [ -z "$(squeue -h)" ] && break; sleep .2; done
printf '#!/bin/sh\necho "$1" >> %s/jobs/order\n' "$work" > order.sh
# the partition is down, so that the first job waits until the last is submitted, even on a slow machine
scontrol update PartitionName=a100 State=DOWN
for steps in 1000000 30000 300; do
    user sbatch -o /dev/null --exclusive --gres=gpu:a100:1 --mdot=$requested,steps=$steps order.sh $steps > /dev/null
done
user sbatch -o /dev/null --exclusive --gres=gpu:a100:1 order.sh nothing > /dev/null
scontrol update PartitionName=a100 State=UP
for _ in $(seq 150); do [ "$(cat "$work/jobs/order" 2> /dev/null | wc -l)" = 4 ] && break; sleep .2; done
check "the shortest job runs first, a job without options last" \
    [ "$(paste -sd' ' "$work/jobs/order")" = "300 30000 1000000 nothing" ]
check "prolog and epilog do not get the job's bytes" [ "$(sort -u "$work/epilog.seen" | paste -sd' ')" = 0 ]
check "srun has the option, too" user srun --gres=gpu:1 --mdot=$requested,steps=10 true

# priorities: only with a limit that binds, and only for what was stated
priority() { scontrol -o show job "$id" | grep -o 'AdminComment=mdot.*' | tr ' ' '\n' | sed -n 's/^priority=//p'; }
submit --mdot=$requested,steps=1000000 --gres=gpu:a100:1
honest=$(priority)
submit --mdot=$requested,steps=1 --gres=gpu:a100:1 --time=3-0
check "one step and three days of one's own give less than the truth" [ "$(priority)" -lt "$honest" ]
submit --mdot=$requested,steps=1 --gres=gpu:a100:1
check "one step alone has a limit of minutes" [ "$(minutes "$(shows TimeLimit)")" -le 6 ]
submit --mdot=$requested,steps=1
check "a request without GPUs has no priority" [ "$(priority)" = "" ]
submit --mdot=$requested,steps=1000000 --gpus-per-socket=2 --sockets-per-node=1
check "GPUs of sockets are counted" [ "$(field gpus)" = 2 ]
scontrol update PartitionName=a100 State=DOWN
id=$(user sbatch --parsable -o /dev/null --gres=gpu:a100:1 --mdot=$requested,steps=1000000 job.sh)
settle
before=$(squeue -h -j "$id" -o %Q)
user scontrol update JobId="$id" Gres=gpu:a100:2
for _ in $(seq 40); do [ "$(squeue -h -j "$id" -o %Q)" -lt "$before" ] && break; sleep .2; done
check "more GPUs after the submission end the priority" [ "$(squeue -h -j "$id" -o %Q)" -lt "$before" ]
scancel -u nobody
scontrol update PartitionName=a100 State=UP
settle
id=$(user "$build/tests/slurm/hostile_client" forged a100 2> messages) || id=0
check "a forged comment does not reach the job" [ "${id:-0}" = 0 -o "$(comment 2> /dev/null)" = "" ]

# a job that ran longer than stated is remembered with the user
printf '#!/bin/sh\nsleep 4\n' > brief.sh
id=$(user sbatch --parsable -o /dev/null --gres=gpu:a100:1 --mdot=$requested,steps=1 brief.sh)
for _ in $(seq 120); do [ -s "$work/state/mdot_outcomes" ] && break; sleep .2; done
check "the time of a finished job is kept with its user" grep -q "^65534 " "$work/state/mdot_outcomes"

# Random requests: what Slurm accepts without --mdot, it accepts with it, and what starts without it, starts with it. A
# job that waits for its partition without --mdot waits for a partition with it, too, and for no additional limit. The
# two jobs have the cluster one after the other. If they waited together, one would wait for the other's GPUs.
starts() { # starts JOB SECONDS: whether it starts within these; $state is its last state and reason
    for _ in $(seq $(($2 * 5))); do
        state=$(squeue -h -t all -j "$1" -o '%T %r' 2> /dev/null)
        case $state in RUNNING* | COMPLET* | CONFIGURING*) return 0 ;; PENDING* | '') sleep .2 ;; *) return 1 ;; esac
    done
    return 1
}
is_eligible() { # is_eligible REASON: whether a job that waits for REASON starts once that has passed
    case $1 in
        PENDING\ PartitionDown | PENDING\ PartitionInactive | PENDING\ Resources | PENDING\ Priority | PENDING\ None) return 0 ;;
        *) return 1 ;;
    esac
}
remove() { # removes a job, and waits until its GPUs are free
    scancel "$1"
    for _ in $(seq 300); do [ -z "$(squeue -h)" ] && break; sleep .2; done
}
RANDOM=${SEED:-1}
worse=0
tried=0
started=0
waiting=0
pick() { eval "picked=\${$((RANDOM % $# + 1))}"; }
for round in $(seq "${ROUNDS:-6}"); do
    pick ALL ANY NO
    sed -i "s/^EnforcePartLimits=.*/EnforcePartLimits=$picked/" "$SLURM_CONF"
    enforced=$picked
    pick "" Choose=time Choose=cost
    site $picked
    sed -i 's/MaxTime=3-0/& Price=1/;s/MaxTime=30/& Price=1/' "$work/mdot.conf"
    scontrol reconfigure
    for partition in a100 h100 short mixed plain; do
        pick UP UP UP DOWN INACTIVE DRAIN
        scontrol update PartitionName=$partition State="$picked"
        pick ALL ALL ALL root
        scontrol update PartitionName=$partition AllowGroups="$picked"
        pick 5 30 600 INFINITE
        scontrol update PartitionName=$partition MaxTime="$picked"
        pick 2 7 40 INFINITE
        scontrol update PartitionName=$partition DefaultTime="$picked"
    done
    settle
    for _ in $(seq 12); do
        pick a100 h100 short mixed plain a100,h100 short,a100 mixed,h100,short plain,a100
        options="--partition=$picked"
        pick --gres=gpu:1 --gres=gpu:a100:1 --gpus=2 --gres=gpu:h100:2 ""
        options="$options $picked"
        pick "" "" --time=4 --time=25 --time=2-0
        options="$options $picked"
        pick "" "" --time-min=3 --time-min=20
        options="$options $picked"
        pick "" "" --deadline=now+8minutes --deadline=now+3hours
        options="$options $picked"
        pick "" "" --exclusive --nodes=1-2 --ntasks=2 --array=0 --begin=now+1 --nice=10 --gpus-per-task=1
        options="$options $picked"
        pick 1 3000 100000 1000000
        steps=$picked
        # shellcheck disable=SC2086 # words
        plain=$(user sbatch --parsable -o /dev/null $options job.sh 2> /dev/null) || continue
        tried=$((tried + 1))
        does_start=no
        starts "$plain" 2 && does_start=yes
        waits_for=$state
        remove "$plain"
        # shellcheck disable=SC2086
        if ! with=$(user sbatch --parsable -o /dev/null $options --mdot=$requested,steps="$steps" job.sh 2> messages); then
            echo "FAILED: $enforced $options is refused with steps=$steps: $(cat messages)"
            worse=$((worse + 1))
            continue
        fi
        if [ $does_start = yes ]; then
            started=$((started + 1))
            starts "$with" 60 || {
                echo "FAILED: $enforced $options does not start with steps=$steps: $state"
                worse=$((worse + 1))
            }
        elif is_eligible "$waits_for"; then
            waiting=$((waiting + 1))
            starts "$with" 2 || is_eligible "$state" || {
                echo "FAILED: $enforced $options waits for $state with steps=$steps, and for $waits_for without --mdot"
                worse=$((worse + 1))
            }
        fi
        remove "$with"
    done
done
check "of $tried random requests, $started of which start at once and $waiting wait for a partition, none is worse off with --mdot" \
    [ "$worse" = 0 ]
check "(with requests to compare)" [ "$tried" -gt 10 ]
for partition in a100 h100 short mixed plain; do
    scontrol update PartitionName=$partition State=UP AllowGroups=ALL DefaultTime=7
done
scontrol update PartitionName=short MaxTime=30
for partition in a100 h100; do scontrol update PartitionName=$partition MaxTime=3-0; done
for partition in mixed plain; do scontrol update PartitionName=$partition MaxTime=INFINITE; done
site
scancel -u nobody

# hostile files
refused() { # refused WHAT TEXT OPTION: the job is submitted without a comment, and the log contains TEXT as the reason
    begin
    submit --gres=gpu:a100:1 "$3"
    check "$1: submitted without a prediction" [ "$id/$(comment)/$(minutes "$(shows TimeLimit)")" = "$id//7" ]
    check "$1: the log has the reason" has "$(logged)" "$2"
}
head -c 3000 resnet50.job > cut.job
cp resnet50.job flipped.job
printf '\377' | dd of=flipped.job bs=1 seek=2000 conv=notrunc 2> /dev/null
head -c 5000 /dev/urandom > noise.job
head -c 300000 /dev/zero > large.job
: > empty.job
cp resnet50.job root.job
mkfifo pipe.job
mkdir folder.job
cp "$jobs/resnet50.onnx" network.onnx
refused "a missing file" "nowhere.job" --mdot=nowhere.job,batch=8
refused "a file that is cut" "cut.job" --mdot=cut.job,batch=8
refused "a file with a wrong byte" "flipped.job" --mdot=flipped.job,batch=8
refused "noise" "noise.job" --mdot=noise.job,batch=8
refused "a large file" "large.job has more than" --mdot=large.job,batch=8
refused "an empty file" "empty.job" --mdot=empty.job,batch=8
chmod 600 root.job
refused "a file of another user" "root.job: Permission denied" --mdot=root.job,batch=8
refused "a pipe" "pipe.job is not a regular file" --mdot=pipe.job,batch=8
refused "a folder" "folder.job is not a regular file" --mdot=folder.job,batch=8
refused "a network" "mdot extract network.onnx" --mdot=network.onnx,batch=8
refused "a setting that is none" "is not a setting" --mdot=resnet50.job,bacth=8
refused "a batch that is none" "batch must be an integer" --mdot=resnet50.job,batch=-8
refused "a terminal's codes" "control character" "--mdot=$(printf 'x\033[2J.job'),batch=8"
check "none of them reaches the log" [ "$(grep -c $'\033' "$work/slurmctld.log")" = 0 ]
check "the user gets a message" has "$(cat messages)" "submitted without a prediction"

# hostile requests: a user's own client may send other texts than the option does
sent() { # sent KIND TEXT: the log must contain TEXT
    begin
    id=$(user "$build/tests/slurm/hostile_client" "$1" a100 2> messages) || id=0
    check "a client that sends $1: submitted" [ "$id/$(comment)" = "$id/" -a "$id" != 0 ]
    check "a client that sends $1: the log has the reason" has "$(logged)" "$2"
}
sent noise "not valid base64"
sent large "larger than 131072 bytes"
sent endless "the request has no job"
sent gap "piece 1 of the job is truncated"
sent bytes "header of a job file"
sent nothing "the job is empty"
sent blank "the request has no job"
sent long "more than 1023 characters"
sent problem "error on the submit host: x?error: ?[2J"
check "lines of the log are the plugin's own" [ "$(logged | grep -c '^error:')" = 0 ]

# measures the cluster's GPUs, simulated by their nodes' CPUs; needs a Python with PyTorch and onnx
if user "${PYTHON:-python3}" -c 'import torch, onnx' 2> /dev/null; then
    site
    mkdir -m 777 "$work/steps"
    user env PYTHON="$(command -v "${PYTHON:-python3}")" PYTHONDONTWRITEBYTECODE=1 TASKS=2 MINUTES=4 \
        COLLECT="--device cpu --only torch/mlp_mnist --max-batch 1" "$source/slurm/collect.sh" "$work/steps" a100 mixed:h100 > messages
    check "an array for each type, and a job behind them" [ "$(grep -c ': array' messages)/$(grep -c 'measured.csv: job' messages)" = 2/1 ]
    for _ in $(seq 1500); do [ -z "$(squeue -h -o %j | grep ^steps)" ] && break; sleep .2; done
    check "the table has a row for each step that was measured" \
        [ "$(tail -n +2 "$work/steps/measured.csv" | wc -l)" -gt 3 ]
    sed 's/\.onnx,,/.onnx,A100,/' "$work/steps/measured.csv" > "$work/steps/as_of_a100.csv" # a processor has no name here
    check "and mdot reads it" "$build/simulator/mdot-predictions" "$work/steps/as_of_a100.csv" \
        "$predictor" > "$work/steps/messages"
    check "and mdot calibrate, too" "$mdot" calibrate "$work/steps/as_of_a100.csv" -q -o "$work/site.cal" > /dev/null
    site "Calibration=$work/site.cal"
    begin
    submit --gres=gpu:a100:1 --mdot=$requested,steps=10
    check "and the controller answers by it" has "$(logged)/$(comment)" "mdot.conf and its predictor are read"
    check "(with another step time)" [ "$(field step_ms)" != "$uncalibrated" ]
else
    echo "skipped: nobody has a ${PYTHON:-python3} with PyTorch and onnx: collect.sh is not run"
fi

# faults of the site's own files
begin
site Quantile=2
submit --gres=gpu:a100:1 --mdot=$requested,steps=10
check "a wrong mdot.conf is logged, and the old one stays in use" has "$(logged)/$(comment)" "Quantile must be a number"
check "(with predictions)" has "$(comment)" "steps=10"
begin
submit --gres=gpu:a100:1 --mdot=$requested,steps=10
check "and logged once" [ "$(logged | grep -c 'Quantile must be a number')" = 0 ]
site
printf 'not an artefact' > "$work/bad.mdot"
sed -i "s|^Predictor=.*|Predictor=$work/bad.mdot|" "$work/mdot.conf"
settle
submit --gres=gpu:a100:1 --mdot=$requested,steps=10
check "a wrong predictor is logged" has "$(logged)" "bad.mdot"
check "and the old one stays in use" has "$(comment)" "steps=10"

slowest=$(grep -o 'job_submit/mdot: user [0-9]* in [0-9]* us' "$work/slurmctld.log" | awk '{ if ($5 > m) m = $5 } END { print m }')
echo "the controller's part of a submission took up to $slowest us here"
check "slurmctld still answers" scontrol ping
[ "$failures" -eq 0 ] || { echo "$failures checks failed; the end of slurmctld's log:"; tail -30 "$work/slurmctld.log"; exit 1; }
echo "all is right"
