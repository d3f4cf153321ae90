#!/bin/bash
# Measures training steps on every GPU model of a cluster. It submits an array of tasks for each, and a final job that merges
# the results into one table for mdot's calibration (lab/mdot_lab/collect documents the measurements).
#
#     cluster/slurm/collect.sh FOLDER PARTITION[:TYPE]…
#
#     cluster/slurm/collect.sh /shared/steps a100 mixed:h100 mixed:l40s
#
# FOLDER must be visible to all nodes. It receives parts/, records.jsonl.gz, summary.md, graphs/ and measured.csv. The same
# command continues where an earlier one ended. Environment: PYTHON, with PyTorch (python3); TASKS of each array (8);
# MINUTES of each task (60); COLLECT, further options of `collect run` ("--cap-seconds 60").
set -eu
python=${PYTHON:-python3}

# Slurm runs a copy of this file, therefore the location of the tree is passed as an argument.
if [ "${1:-}" = --measure ]; then
    tree=$2 parts=$3
    cd "$tree/lab"
    end=$(($(date +%s) + 60 * ${MINUTES:-60} - 90))
    while :; do
        status=0
        # shellcheck disable=SC2086 # COLLECT is a list of words
        "$python" -m mdot_lab.collect run --out "$parts" --shard "$SLURM_ARRAY_TASK_ID/$TASKS" --deadline "$end" ${COLLECT:-} || status=$?
        # a configuration that broke the CUDA context, or killed the process, is recorded; the next run continues after it
        [ "$status" -eq 3 ] || [ "$status" -gt 128 ] || exit "$status"
        [ "$(date +%s)" -lt "$end" ] || exit 0
    done
fi
if [ "${1:-}" = --gather ]; then
    tree=$2 folder=$3
    cd "$tree/lab"
    "$python" -m mdot_lab.collect merge "$folder"/parts/* --out "$folder/records.jsonl.gz" --summary "$folder/summary.md"
    # graphs that could not be made are listed; the rows of the others are written
    "$python" -m mdot_lab.collect export --records "$folder/records.jsonl.gz" --out "$folder/graphs" || true
    exec "$python" -m mdot_lab.collect table "$folder/records.jsonl.gz" --graphs "$folder/graphs" --out "$folder/measured.csv"
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
    # one folder for each GPU model, so that results of one do not count as done for another
    id=$(sbatch --parsable --job-name="steps-$place" --array="0-$((TASKS - 1))" --partition="$partition" --gres="gpu$type:1" \
        --time="${MINUTES:-60}" --output="$folder/log/%x-%a.txt" "$0" --measure "$tree" "$folder/parts/${place//:/-}")
    echo "$place: array $id"
    arrays=$arrays:$id
done
# afterany: failed tasks count, too, because they leave their measurements
id=$(sbatch --parsable --job-name=steps-table --dependency="afterany$arrays" --partition="${partition}" \
    --output="$folder/log/%x.txt" "$0" --gather "$tree" "$folder")
echo "then $folder/measured.csv: job $id"
