#!/bin/sh
# Compares pollux with the authors' published simulation, workload by workload, and writes the table in
# results/published.md:
#
#     cluster/simulator/published.sh BUILD MEASURED PUBLISHED [PER_JOB_FOLDER] > OUT.md
#
# BUILD is the folder of the companion's build (build/release/cluster). MEASURED has pollux_step_times.csv and
# pollux_gradient_noise.csv, in the forms that docs/simulator.md describes. PUBLISHED is the folder `simulator` of Pollux'
# artefact (petuum/adaptdl, branch osdi21-artifact): its workloads, workloads-0.5, … and
# results-jobload/pollux-LOAD/summary.json. Loads whose files are absent are left out. PER_JOB_FOLDER gets completion
# times per workload and job. The exit status is 1 if a mean completion time differs from the published one by more than
# 5 %, the authors' margin for repeated runs.
set -eu
[ $# -ge 3 ] || { sed -n '2,12p' "$0" >&2; exit 2; }
simulate=$1/simulator/mdot-simulate measured=$2 published=$3 per_job=${4:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
[ -n "$per_job" ] || per_job=$work
mkdir -p "$per_job"

# As in the authors' simulation: 16 nodes with 4 T4 each, 30 s restarts, jobs up to 64 GPUs. A training ends at the
# progress of the smallest batch size after so many epochs; ncf has one GPU and batch size 32768.
{ echo node,type,gpus; for node in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do echo "t4-$node,t4,4"; done; } > "$work/t4.csv"
make_trace() { # WORKLOAD.csv
    awk -F, 'BEGIN {
        split("cifar10 39063 ncf 194174 bert 14774 deepspeech2 28536 yolov3 103444 imagenet 576526", fact, " ")
        for (i = 1; i < 12; i += 2) steps[fact[i]] = fact[i + 1]
        print "job_id,submit_s,gpus,min_gpus,max_gpus,job_type,steps,batch"
    }
    { sub(/\r$/, "") }
    NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    {
        kind = $at["application"]
        if (!(kind in steps)) { print FILENAME ": unknown application " kind > "/dev/stderr"; exit 1 }
        printf "%s,%s,1,1,%d,%s,%d,%s\n", $at["name"], $at["time"], kind == "ncf" ? 1 : 64, kind, steps[kind], kind == "ncf" ? 32768 : ""
    }' "$1"
}
cat << END
# Pollux, as its authors simulated it

cluster/simulator/published.sh writes this table. Workloads and published means are those of petuum/adaptdl, branch osdi21-artifact
(Apache-2.0): 160 trainings at load 1.0 on 64 T4, starts and restarts of 30 s. The authors expect another run of their own
simulation within 5 %, because its genetic search is random. Mean completion times in seconds:

| load | workload | published | here | difference |
| --- | --- | --- | --- | --- |
END
status=0 compared=0
for load in 0.5 1.0 1.5 2.0; do
    folder=$published/workloads-$load summary=$published/results-jobload/pollux-$load/summary.json
    [ "$load" = 1.0 ] && folder=$published/workloads
    [ -d "$folder" ] && [ -e "$summary" ] || continue
    for file in "$folder"/workload-*.csv; do
        name=$(basename "$file" .csv)
        expected=$(sed -n "s/^ *\"$name\": *\([0-9.]*\),\{0,1\} *$/\1/p" "$summary")
        [ -n "$expected" ] || { echo "published.sh: $summary has no mean of $name" >&2; exit 2; }
        make_trace "$file" > "$work/trace.csv"
        "$simulate" "$work/trace.csv" --cluster "$work/t4.csv" --step-times "$measured/pollux_step_times.csv" \
            --gradient-noise "$measured/pollux_gradient_noise.csv" --restart-cost 30 --start-cost --policy pollux \
            --per-job "$per_job/$load-$name.csv" --json > "$work/out"
        mean=$(sed -n 's/.*"mean_jct_s": *\([0-9.]*\).*/\1/p' "$work/out")
        compared=$((compared + 1))
        echo "$load ${name#workload-} $expected $mean"
    done > "$work/means"
    awk 'function row(name, expected, mean) {
        printf "| %s | %s | %.0f | %.0f | %+.1f %% |\n", $1, name, expected, mean, 100 * (mean / expected - 1)
    }
    { row($2, $3, $4); all += $3; own += $4; if ($4 > 1.05 * $3 || $4 < 0.95 * $3) wrong = 1 }
    END { if (NR > 1) row("all", all / NR, own / NR); exit wrong }' "$work/means" || status=1
done
[ $compared -gt 0 ] || { echo "published.sh: $published has no workloads with a summary.json" >&2; exit 2; }
exit $status
