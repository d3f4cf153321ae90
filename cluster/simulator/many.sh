#!/bin/sh
# Runs many simulations: every policy at every load with every seed, on all cores, as a Slurm job array, as an indexed
# Job of Kubernetes, or on Ray.
#
#     cluster/simulator/many.sh --out DIR --policies P,… [--loads L,…] [--seeds S,…] \
#         [--jobs N | --slurm [SBATCH-OPTION,…] | --kubernetes IMAGE,CLAIM,MOUNT | --ray] TRACE.csv OPTION…
#
# The options behind the trace go to mdot-simulate unchanged. A load "own" keeps the trace's. Each simulation writes
# DIR/POLICY_LOAD_SEED.json; DIR/summary.csv has one line per simulation. A simulation whose file exists is not repeated,
# so that the same command continues after an interruption. With --slurm the script returns after submission; run it again
# with the same arguments, without --slurm, to write the summary. MDOT_SIMULATE names the program if it is not in PATH.
#
# --kubernetes prints a Job for `kubectl apply -f -`, whose pods run IMAGE, with mdot-simulate, and mount the volume claim
# CLAIM at MOUNT. DIR and the trace must be absolute paths below MOUNT, also on this machine. After the Job, the same
# command without --kubernetes writes the summary. --ray runs tasks on the cluster at RAY_ADDRESS, or on this machine,
# by the Python package ray (PYTHON names the interpreter); all nodes share DIR. Then it writes the summary.
set -eu

fail() { echo "many.sh: $1" >&2; exit 2; }
need() { [ $# -ge 2 ] || fail "$1 requires a value"; }

# One simulation: its file appears only when it is complete.
run_task() { # DIR NUMBER
    line=$(sed -n "${2}p" "$1/tasks")
    policy=$(echo "$line" | cut -d' ' -f1) load=$(echo "$line" | cut -d' ' -f2) seed=$(echo "$line" | cut -d' ' -f3)
    file=$1/${policy}_${load}_$seed.json
    [ -e "$file" ] && return 0
    set --
    while IFS= read -r argument; do set -- "$@" "$argument"; done < "${file%/*}/arguments"
    [ "$load" = own ] || set -- "$@" --scale-load "$load"
    "${MDOT_SIMULATE:-mdot-simulate}" "$@" --policy "$policy" --seed "$seed" --json > "$file.part" 2> "$file.err" || {
        echo "many.sh: $policy at load $load, seed $seed: $(tail -n 1 "$file.err")" >&2
        return 1
    }
    mv "$file.part" "$file"
    rm -f "$file.err"
}

if [ "${1:-}" = --task ]; then
    run_task "$2" "${3:-${SLURM_ARRAY_TASK_ID:-$((${JOB_COMPLETION_INDEX:?} + 1))}}"
    exit
fi

out= policies= loads=own seeds=1 jobs= slurm= sbatch_options= kubernetes= ray=
while [ $# -gt 0 ]; do
    case $1 in
        --out) need "$@"; out=$2; shift 2 ;;
        --policies) need "$@"; policies=$2; shift 2 ;;
        --loads) need "$@"; loads=$2; shift 2 ;;
        --seeds) need "$@"; seeds=$2; shift 2 ;;
        --jobs) need "$@"; jobs=$2; shift 2 ;;
        --slurm)
            slurm=yes
            shift
            case ${1:-} in
                --out | --policies | --loads | --seeds | --jobs | --slurm | --slurm=*) ;; # the script's own
                --*) sbatch_options=$1; shift ;;
            esac ;;
        --kubernetes) need "$@"; kubernetes=$2; shift 2 ;;
        --ray) ray=yes; shift ;;
        --slurm=*) slurm=yes sbatch_options=${1#--slurm=}; shift ;;
        -*) fail "unknown option $1" ;;
        *) break ;;
    esac
done
[ -n "$out" ] || fail "--out is missing"
[ -n "$policies" ] || fail "--policies is missing"
[ $# -gt 0 ] || fail "the trace is missing"
for argument; do case $argument in *"
"*) fail "an argument contains a line break" ;; esac; done

mkdir -p "$out"
printf '%s\n' "$@" > "$out/arguments.new"
[ ! -e "$out/arguments" ] || cmp -s "$out/arguments" "$out/arguments.new" ||
    fail "$out holds results of other arguments; choose another folder"
mv "$out/arguments.new" "$out/arguments"
for policy in $(echo "$policies" | tr , ' '); do
    for load in $(echo "$loads" | tr , ' '); do
        for seed in $(echo "$seeds" | tr , ' '); do echo "$policy $load $seed"; done
    done
done > "$out/tasks"
count=$(wc -l < "$out/tasks")
self=$(cd "$(dirname "$0")" && pwd)/$(basename "$0")

if [ -n "$slurm" ]; then
    # shellcheck disable=SC2046 -- the options are separated by commas
    sbatch --job-name=mdot-many --array="1-$count" --output="$out/slurm_%a.log" $(echo "$sbatch_options" | tr , ' ') \
        --wrap "sh '$self' --task '$out'"
    exit
fi

if [ -n "$kubernetes" ]; then
    image=${kubernetes%%,*} rest=${kubernetes#*,}
    claim=${rest%%,*} mount=${rest#*,}
    case $rest in *,/*) ;; *) fail "--kubernetes takes IMAGE,CLAIM,MOUNT with an absolute MOUNT, not $kubernetes" ;; esac
    case $out in "${mount%/}"/*) ;; *) fail "--out $out is not below $mount, where the pods see it" ;; esac
    cp "$self" "$out/many.sh"
    cat << JOB
{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"generateName": "mdot-many-"},
 "spec": {"completionMode": "Indexed", "completions": $count, "parallelism": ${jobs:-$count}, "backoffLimit": $count,
  "template": {"spec": {"restartPolicy": "Never",
   "containers": [{"name": "simulate", "image": "$image", "command": ["sh", "$out/many.sh", "--task", "$out"],
    "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}, "volumeMounts": [{"name": "sweep", "mountPath": "$mount"}]}],
   "volumes": [{"name": "sweep", "persistentVolumeClaim": {"claimName": "$claim"}}]}}}}
JOB
    exit
fi

status=0
if [ -n "$ray" ]; then
    # Arguments are of the form COUNT SCRIPT DIR. A task's messages go to Ray's driver.
    "${PYTHON:-python3}" -c '
import os, subprocess, sys
import ray
ray.init(address=os.environ.get("RAY_ADDRESS"), include_dashboard=False, log_to_driver=True)
count, script, out = int(sys.argv[1]), *sys.argv[2:]
simulator = {key: os.environ[key] for key in ("MDOT_SIMULATE", "PATH") if key in os.environ}
@ray.remote(num_cpus=1)
def task(number):
    return subprocess.run(["sh", script, "--task", out, str(number)], env={**os.environ, **simulator}).returncode
sys.exit(any(ray.get([task.remote(number) for number in range(1, count + 1)])))
' "$count" "$self" "$out" || status=1
else
    seq "$count" | xargs -P "${jobs:-$(nproc)}" -n 1 sh "$self" --task "$out" || status=1
fi

# The fields of a result are written as "name": value.
fields="mean_jct_s median_jct_s p95_jct_s makespan_s utilisation preemptions mean_wait_s mean_bounded_slowdown cut_off"
{
    echo "policy,load,seed,$(echo "$fields" | tr ' ' ,)"
    while read -r policy load seed; do
        file=$out/${policy}_${load}_$seed.json
        [ -e "$file" ] || continue
        printf '%s,%s,%s' "$policy" "$load" "$seed"
        for field in $fields; do printf ',%s' "$(sed -n "s/.*\"$field\": \([^,}]*\).*/\1/p" "$file")"; done
        echo
    done < "$out/tasks"
} > "$out/summary.csv"
exit $status
