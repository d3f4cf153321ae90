#!/bin/bash
# Measures training steps on every type of GPU that a cluster has: an array of tasks for each, and behind them a job that
# makes one table of all, which mdot's calibration reads (weights/training/mdot_training/collect has what is measured, and how).
#
#     integrations/slurm/collect.sh FOLDER PARTITION[:TYPE]…
#
#     integrations/slurm/collect.sh /shared/steps a100 mixed:h100 mixed:l40s
#
# FOLDER, which all nodes see, gets parts/, records.jsonl.gz, summary.md, graphs/ and measured.csv. The same command again
# goes on where an earlier one ended. From the environment: PYTHON, with PyTorch (python3); TASKS of each array (8); MINUTES
# of each task (60); COLLECT, more options of `collect run` ("--cap-seconds 60").
set -eu
python=${PYTHON:-python3}

# What Slurm runs: it has a copy of this file, so that the tree's place comes as an argument.
if [ "${1:-}" = --measure ]; then
    tree=$2 parts=$3
    cd "$tree/weights/training"
    end=$(($(date +%s) + 60 * ${MINUTES:-60} - 90))
    while :; do
        status=0
        # shellcheck disable=SC2086 # COLLECT is a list of words
        "$python" -m mdot_training.collect run --out "$parts" --shard "$SLURM_ARRAY_TASK_ID/$TASKS" --deadline "$end" ${COLLECT:-} || status=$?
        # a configuration that broke the CUDA context, or killed the process, is recorded: the next one goes on behind it
        [ "$status" -eq 3 ] || [ "$status" -gt 128 ] || exit "$status"
        [ "$(date +%s)" -lt "$end" ] || exit 0
    done
fi
if [ "${1:-}" = --gather ]; then
    tree=$2 folder=$3
    cd "$tree/weights/training"
    "$python" -m mdot_training.collect merge "$folder"/parts/* --out "$folder/records.jsonl.gz" --summary "$folder/summary.md"
    # graphs that cannot be made are named; the others' rows are written
    "$python" -m mdot_training.collect export --records "$folder/records.jsonl.gz" --out "$folder/graphs" || true
    exec "$python" -m mdot_training.collect table "$folder/records.jsonl.gz" --graphs "$folder/graphs" --out "$folder/measured.csv"
fi

[ $# -ge 2 ] || { sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 2; }
tree=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$1/parts" "$1/log"
folder=$(cd "$1" && pwd)
shift
export PYTHON=$python TASKS=${TASKS:-8}
arrays=""
for place; do
    partition=${place%%:*}
    type=${place#"$partition"}
    # a folder a type: what is measured on one GPU model is still to be measured on another
    id=$(sbatch --parsable --job-name="steps-$place" --array="0-$((TASKS - 1))" --partition="$partition" --gres="gpu$type:1" \
        --time="${MINUTES:-60}" --output="$folder/log/%x-%a.txt" "$0" --measure "$tree" "$folder/parts/${place//:/-}")
    echo "$place: array $id"
    arrays=$arrays:$id
done
# afterany: a task that failed leaves what it measured
id=$(sbatch --parsable --job-name=steps-table --dependency="afterany$arrays" --partition="${partition}" \
    --output="$folder/log/%x.txt" "$0" --gather "$tree" "$folder")
echo "then $folder/measured.csv: job $id"
