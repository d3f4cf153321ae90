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
# shellcheck source=start_cluster.sh
. "$(dirname "$0")/start_cluster.sh"

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
check "by time: the faster type of a partition" has "$(scontrol -o show job "$id")" "gpu:h100:1"
submit --mdot=$requested,steps=100000 --partition=mixed --gres=gpu:a100:1
check "a requested type stays" has "$(scontrol -o show job "$id")" "gpu:a100:1"
sed -i 's/MaxTime=3-0/& Price=1/;s/MaxTime=30/& Price=1/' "$work/mdot.conf"
sed -i 's/Choose=time/Choose=cost/' "$work/mdot.conf"
settle
submit --mdot=$requested,steps=100000 --partition=mixed --gpus=1
check "by cost: the cheaper type" has "$(scontrol -o show job "$id")" "gpu:a100:1"
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

# GPU counts are those that Slurm allocates
for options in "--gres=gpu:2" "--gres=gpu:1 --gpus-per-node=2" "--gres=gpu:2 --gpus-per-node=1" "--gpus=2" "--gres=gpu:0 --gpus=2" \
    "--gpus-per-socket=1 --sockets-per-node=2" "--gpus-per-socket=1 --sockets-per-node=2 --ntasks=2" \
    "--gpus-per-socket=1 --sockets-per-node=2 --cpus-per-task=2" "--gpus-per-socket=2 --sockets-per-node=1" "--gpus-per-task=1 --ntasks=2" \
    "--ntasks-per-gpu=1 --ntasks=2" "--gpus-per-node=2 --nodes=1"; do
    # shellcheck disable=SC2086 # words
    id=$(user sbatch --parsable -o /dev/null --partition=a100 $options --mdot=$requested,steps=10 job.sh 2> messages) || continue
    for _ in $(seq 150); do [ "$(shows JobState)" = RUNNING ] && break; sleep .2; done
    allocated=$(scontrol -o -d show job "$id" | grep -o ' GRES=gpu[^ ]*' | grep -oE ':[0-9]+\(' | tr -dc '0-9\n' | awk '{ s += $1 } END { print s }')
    check "$options: ${allocated:-none} GPUs" [ "$(field gpus)" = "$allocated" ]
    scancel "$id"
    for _ in $(seq 300); do [ -z "$(squeue -h)" ] && break; sleep .2; done
done
submit --mdot=$requested,steps=10 --gres=gpu:0
check "no GPU, no prediction" [ "$(comment)" = "" ]

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
