#!/bin/sh
# cluster/simulator/sharing.sh on small made-up tables: it writes a row for every policy, and adaptive batch sizes pay.
#
#     test_sharing.sh SOURCE BUILD HAS_CBC
set -eu
source=$1 build=$2
[ "$3" = 1 ] || { echo "skipped: built without COIN-OR CBC"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
fail() { echo "test_sharing.sh: $1" >&2; exit 1; }

awk -v steps="$work/pollux_step_times.csv" -v noise="$work/pollux_gradient_noise.csv" \
    -v pairs="$work/gavel_pairs.csv" -v slices="$work/miso_mig.csv" 'BEGIN {
    count = split("bert cifar10 deepspeech2 imagenet ncf yolov3", name)
    split("12 128 20 200 256 8", batch)
    print "# made up" > steps
    print "application,placement,nodes,gpus,batch_per_gpu,step_ms,sync_ms" > steps
    print "application,batch,progress,grad_sqr,grad_var" > noise
    for (i = 1; i <= count; i++) {
        for (samples = batch[i] / 4; samples <= 4 * batch[i]; samples *= 4) {
            grad = 5 + 20 * samples / batch[i]
            printf "%s,1,1,1,%d,%.3f,0.1\n%s,2,1,2,%d,%.3f,4\n", name[i], samples, grad, name[i], samples, grad + 4 > steps
            printf "%s,11,2,2,%d,%.3f,10\n%s,,4,16,%d,%.3f,20\n", name[i], samples, grad + 10, name[i], samples, grad + 20 > steps
        }
        for (scale = 1; scale <= 32; scale *= 4) {
            printf "%s,%d,0,1,8\n%s,%d,10000,1,80\n", name[i], scale * batch[i], name[i], scale * batch[i] > noise
        }
    }
    print "table,gpu,job_a,job_b,gpus,alone_a_steps_s,alone_b_steps_s,together_a_steps_s,together_b_steps_s" > pairs
    print "simulation,v100,A,B,1,10,5,9,4.5\nsimulation,v100,A,A,1,10,10,7,7\nsimulation,v100,B,A,1,5,10,4.5,9" > pairs
    print "model,batch,slices_of_7,step_ms_median,memory_gb,step_ms_mean" > slices
    for (size = 1; size <= 7; size += size == 4 ? 3 : 1)
        printf "m,8,%d,%.1f,0,%.1f\n", size, 40 / size + 5, 40 / size + 5 > slices
}'
sh "$source/simulator/sharing.sh" "$build" "$work" 12 > "$work/out" || fail "the script failed"
for policy in fifo las srsf elastic sia pollux cognn gavel gavel-pairs muxflow miso; do
    grep -q "^| ${policy}[ ,]" "$work/out" || fail "no row of $policy"
done
mean() { awk -F'|' -v row="$1" 'index($2, row) == 2 { print int($3); exit }' "$work/out"; }
[ "$(mean 'sia, 48 T4 and 16')" -lt "$(mean 'sia ')" ] || fail "faster GPUs do not help sia"
[ "$(mean 'pollux ')" -lt "$(mean 'fifo, GPUs and batch')" ] || fail "pollux is slower than fifo"
