#!/bin/sh
# Runs many simulations: every policy at every load with every seed, on all cores or as a Slurm job array.
#
#     cluster/simulator/many.sh --out DIR --policies P,… [--loads L,…] [--seeds S,…] [--jobs N | --slurm [SBATCH-OPTION,…]] \
#         TRACE.csv OPTION…
#
# The options behind the trace go to mdot-simulate unchanged. A load "own" keeps the trace's. Each simulation writes
# DIR/POLICY_LOAD_SEED.json; DIR/summary.csv has one line per simulation. A simulation whose file exists is not repeated,
# so that the same command continues after an interruption. With --slurm the script returns after submission; run it again
# with the same arguments, without --slurm, to write the summary. MDOT_SIMULATE names the program if it is not in PATH.
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
    run_task "$2" "${3:-${SLURM_ARRAY_TASK_ID:?}}"
    exit
fi

out= policies= loads=own seeds=1 jobs= slurm= sbatch_options=
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

status=0
seq "$count" | xargs -P "${jobs:-$(nproc)}" -n 1 sh "$self" --task "$out" || status=1

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
