#!/bin/sh
# cluster/simulator/published.sh on small made-up tables: it compares each workload with the mean that stands beside it, and fails if
# they differ by more than 5 %.
#
#     test_published.sh SOURCE BUILD
set -eu
source=$1 build=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
fail() { echo "test_published.sh: $1" >&2; cat "$work/out" "$work/err" >&2; exit 1; }

# A step on one GPU takes 10 ms at every batch size, and a larger batch makes no more progress per sample (no noise).
awk -v steps="$work/pollux_step_times.csv" -v noise="$work/pollux_gradient_noise.csv" 'BEGIN {
    count = split("bert 12 cifar10 128 deepspeech2 20 imagenet 200 ncf 256 yolov3 8", fact, " ")
    print "# made up\napplication,placement,nodes,gpus,batch_per_gpu,step_ms,sync_ms" > steps
    print "application,batch,progress,grad_sqr,grad_var" > noise
    for (i = 1; i < count; i += 2) {
        for (samples = fact[i + 1]; samples <= 128 * fact[i + 1]; samples *= 2)
            printf "%s,1,1,1,%d,10,0.1\n", fact[i], samples > steps
        for (scale = 1; scale <= 128; scale *= 128) printf "%s,%d,0,1,0\n", fact[i], scale * fact[i + 1] > noise
    }
}'
mkdir -p "$work/workloads" "$work/results-jobload/pollux-1.0"
printf 'name,time,application,num_replicas,batch_size\nncf-0,60,ncf,1,32768\nbert-1,90,bert,8,384\n' > "$work/workloads/workload-1.csv"
run() { # MEAN: the published one
    printf '{\n    "avgs": {\n        "workload-1": %s\n    },\n    "mean": 7\n}' "$1" > "$work/results-jobload/pollux-1.0/summary.json"
    status=0
    sh "$source/simulator/published.sh" "$build" "$work" "$work" "$work/jobs" > "$work/out" 2> "$work/err" || status=$?
}
# ncf: 194,174 steps of 10 ms and a start of 30 s are 1,971.74 s. bert: 14,774 steps are 147.74 s, and 177.74 s with its start.
# Decisions are 60 s apart, so that ncf waits 60 s and bert 30 s: the mean is 1,119.74 s.
run 1119.74
[ $status = 0 ] || fail "equal means fail"
grep -q '^| 1.0 | 1 | 1120 | 1120 | +0.0 % |$' "$work/out" || fail "no row of the workload"
[ "$(grep -c -e '^ncf-0,60,' -e '^bert-1,60,' "$work/jobs/1.0-workload-1.csv")" = 2 ] || fail "no times of jobs"
run 1178
[ $status = 0 ] && grep -q ' -4.9 % |$' "$work/out" || fail "a difference of 4.9 % fails"
run 1182
[ $status = 1 ] && grep -q ' -5.3 % |$' "$work/out" || fail "a difference of 5.3 % passes"
run 1041.6
[ $status = 1 ] && grep -q ' +7.5 % |$' "$work/out" || fail "a difference of 7.5 % passes"
sed -i 's/workload-1/workload-2/' "$work/results-jobload/pollux-1.0/summary.json"
sh "$source/simulator/published.sh" "$build" "$work" "$work" > "$work/out" 2> "$work/err" && fail "a missing mean passes"
grep -q 'has no mean of workload-1' "$work/err" || fail "a missing mean is not named"
rm "$work/results-jobload/pollux-1.0/summary.json"
sh "$source/simulator/published.sh" "$build" "$work" "$work" > "$work/out" 2> "$work/err" && fail "an empty folder passes"
grep -q 'no workloads' "$work/err" || fail "an empty folder is not named"
