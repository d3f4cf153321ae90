#!/bin/sh
# Compares policies that change widths and batch sizes, share GPUs, or divide them into slices, and writes the table in
# results/sharing.md:
#
#     cluster/simulator/sharing.sh BUILD MEASURED [JOBS] > OUT.md
#
# BUILD is the folder of the companion's build (build/release/cluster). MEASURED has the measurements by Pollux' authors
# (pollux_step_times.csv and pollux_gradient_noise.csv), Gavel's (gavel_pairs.csv) and MISO's (miso_mig.csv), in the
# forms described by docs/simulator.md. Traces are synthetic: Poisson arrivals, and job kinds drawn at random with a fixed seed.
# JOBS is the job count (default 160; in eight hours).
set -eu
[ $# -ge 2 ] || { sed -n '2,10p' "$0" >&2; exit 2; }
simulate=$1/simulator/mdot-simulate measured=$2 jobs=${3:-160}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM

# A generator of random numbers that every awk computes alike (Lehmer's, modulus 2^31 - 1).
random='function unit() { state = (state * 16807) % 2147483647; return state / 2147483647 }
BEGIN { state = 20261126; for (i = 0; i < 10; i++) unit() }'
# Column names in measurement tables: at["gpus"] is the column's number. `next` skips comments and the header.
columns='{ sub(/\r$/, "") } /^#/ { next } !has_header { has_header = 1; for (i = 1; i <= NF; i++) at[$i] = i; next }'
nodes() { # COUNT TYPE GPUS
    awk -v count="$1" -v type="$2" -v gpus="$3" 'BEGIN { for (i = 0; i < count; i++) print type "-" i "," type "," gpus }'
}
compare() { # LABEL ARGUMENT…
    label=$1
    shift
    "$simulate" "$@" > "$work/out"
    awk -v label="$label" 'NR > 2 { printf "| %s%s | %.0f | %.0f | %.0f | %.0f | %s |\n", $1, label, $3, $4, $5, $6, $7 }' \
        "$work/out"
}
header() {
    echo "| policy | mean, s | median, s | P95, s | makespan, s | GPUs in use |"
    echo "| --- | --- | --- | --- | --- | --- |"
}

# ---- Pollux' applications: each job is a whole training. Users ask for 1, 2 or 4 GPUs.
awk -v jobs="$jobs" "$random"'
BEGIN {
    count = split("cifar10 ncf bert deepspeech2 yolov3 imagenet", name)
    split("39063 194174 14774 28536 103444 576526", steps)
    split("128 256 12 20 8 200", batch)
    split(".36 .72 .81 .90 .98 1", below)
    print "job_id,submit_s,gpus,job_type,steps,batch"
    for (job = 0; job < jobs; job++) {
        time -= log(1 - unit()) * 28800 / jobs
        drawn = unit()
        for (kind = 1; kind < count && drawn > below[kind];) kind++
        gpus = 2 ^ int(3 * unit())
        printf "%d,%.0f,%d,%s,%d,%d\n", job, time, gpus, name[kind], steps[kind], batch[kind] * gpus
    }
}' > "$work/fixed.csv"
cut -d, -f1-5 "$work/fixed.csv" > "$work/adaptive.csv"
{ echo node,type,gpus; nodes 16 t4 4; } > "$work/t4.csv"
{ echo node,type,gpus; nodes 12 t4 4; nodes 4 fast 4; } > "$work/mixed.csv"
# The fast type is synthetic: a step on one GPU takes 0.4 times the T4's time. Other placements follow from that.
awk -F, -v OFS=, '{ sub(/\r$/, "") } /^#/ { next } { type = seen++ ? "t4" : "type"; print $0, type }
    type == "type" { for (i = 1; i <= NF; i++) at[$i] = i; next }
    $at["nodes"] == 1 && $at["gpus"] == 1 { $at["step_ms"] *= .4; $at["sync_ms"] *= .4; print $0, "fast" }' \
    "$measured/pollux_step_times.csv" > "$work/types.csv"
tables="--gradient-noise $measured/pollux_gradient_noise.csv --restart-cost 30"
pollux="--step-times $measured/pollux_step_times.csv $tables"
cat << END
# Policies that change widths, share GPUs, or divide them

cluster/simulator/sharing.sh writes this table from public measurements of Pollux' authors (Apache-2.0), Gavel's and MISO's (both
MIT). Traces are synthetic, $jobs jobs in eight hours, and each row is one simulation. Differences between single
simulations are rough: another seed moves them.

END
echo "## Widths and batch sizes: $jobs trainings of Pollux' applications on 64 T4, restarts of 30 s"
echo
header
# shellcheck disable=SC2086
{
    compare ", GPUs and batch of the user" "$work/fixed.csv" --cluster "$work/t4.csv" $pollux --policy fifo,las,srsf
    compare ", batch of the user" "$work/fixed.csv" --cluster "$work/t4.csv" $pollux --policy elastic,sia
    compare "" "$work/adaptive.csv" --cluster "$work/t4.csv" $pollux --policy pollux,sia
    compare ", 48 T4 and 16 GPUs that are 2.5 times as fast" "$work/adaptive.csv" --cluster "$work/mixed.csv" \
        --step-times "$work/types.csv" $tables --policy sia
}

# ---- Gavel's pairs: jobs of one GPU; a third of them are services in the second trace.
awk -F, -v OFS=, 'BEGIN { print "job_type", "gpus", "type", "steps_per_s" }'"$columns"'
    $at["table"] == "simulation" && $at["gpu"] == "v100" && $at["gpus"] == 1 && !seen[$at["job_a"]]++ {
        print $at["job_a"], 1, "v100", $at["alone_a_steps_s"]
    }' "$measured/gavel_pairs.csv" > "$work/v100.csv"
draw_jobs() { # GPUS; reads lines "kind,steps per second"
    awk -F, -v jobs="$jobs" -v gpus="$1" "$random"'{ name[++count] = $1; speed[count] = $2 }
    END {
        print "job_id,submit_s,gpus,job_type,steps,online"
        for (job = 0; job < jobs; job++) {
            time -= log(1 - unit()) * 28800 / jobs
            kind = 1 + int(count * unit())
            steps = int(speed[kind] * 600 * 36 ^ unit()) + 1
            printf "%d,%.0f,%d,%s,%d,%d\n", job, time, gpus, name[kind], steps, unit() < 1 / 3
        }
    }'
}
awk -F, 'NR > 1 { print $1 "," $4 }' "$work/v100.csv" | draw_jobs 1 > "$work/services.csv"
cut -d, -f1-5 "$work/services.csv" > "$work/jobs.csv"
{ echo node,type,gpus; nodes 6 v100 4; } > "$work/v100s.csv"
gavel="--cluster $work/v100s.csv --throughputs $work/v100.csv --pairs $measured/gavel_pairs.csv"
echo
echo "## Pairs: $jobs jobs of Gavel's kinds on 24 V100"
echo
header
# shellcheck disable=SC2086
{
    compare "" "$work/jobs.csv" $gavel --policy fifo,cognn,srsf,gavel,gavel-pairs
    compare ", a third of the jobs are services" "$work/services.csv" $gavel --policy fifo,muxflow
}

# ---- MISO's slices: jobs of its networks, of which each fits a slice of 4 sevenths.
awk -F, "$columns"'{ kind = $at["model"] " (batch size " $at["batch"] ")" }
    $at["slices_of_7"] == 4 { fits[kind] = 1 }
    $at["slices_of_7"] == 7 && fits[kind] { print kind "," 1000 / $at["step_ms_median"] }' \
    "$measured/miso_mig.csv" | draw_jobs 7 | cut -d, -f1-5 > "$work/mig_jobs.csv"
{ echo node,type,gpus; nodes 16 mig 7; } > "$work/mig.csv"
echo
echo "## Slices: $jobs jobs of MISO's networks on 16 A100"
echo
header
mig="--cluster $work/mig.csv --throughputs $measured/miso_mig.csv"
# shellcheck disable=SC2086
{
    compare ", whole GPUs" "$work/mig_jobs.csv" $mig --policy fifo,srsf
    compare ", slices, restarts of 30 s" "$work/mig_jobs.csv" $mig --restart-cost 30 --policy miso
}
