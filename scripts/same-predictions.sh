#!/bin/sh
# Checks that predictions equal another revision's, for changes that must not alter them:
#
#     scripts/same-predictions.sh REVISION [JOB…]
#
# Builds that revision's command beside this tree's, each with the predictor from the same tree. Predicts every job in
# 36 configurations with both, as JSON with the explanation by operator and all float digits, and compares the texts
# except the versions. The default jobs are those of examples/ and tests/, and the networks of lab/graphs.tar.xz in two
# configurations. Ends with a line of counts. Exit status 0 only if all are equal. A configuration refused by both is
# counted apart. MDOT_SAME_BUILD names a finished build of the revision to use instead.
set -eu
cd "$(dirname "$0")/.."
[ $# -ge 1 ] || { sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 2; }
revision=$(git rev-parse --verify "$1^{commit}")
shift
work=$PWD/build/same-predictions
mkdir -p "$work"

build() { # source folder, build folder
    cmake -S "$1" -B "$2" -G Ninja -DCMAKE_BUILD_TYPE=Release -DMDOT_TESTS=OFF > "$work/build.log" 2>&1 &&
        cmake --build "$2" --target mdot_cli predictor >> "$work/build.log" 2>&1 || { cat "$work/build.log"; exit 1; }
}
before=${MDOT_SAME_BUILD:-}
if [ -z "$before" ]; then
    [ -d "$work/source" ] || git worktree add --detach "$work/source" "$revision" > /dev/null 2>&1 ||
        { git worktree prune; git worktree add --detach "$work/source" "$revision" > /dev/null; }
    git -C "$work/source" checkout --detach -q "$revision"
    before=$work/before
    build "$work/source" "$before"
fi
build . "$work/after"

cat > "$work/configurations" <<'CONFIGURATIONS'
--gpu A100 --batch 1
--gpu A100 --batch 32
--gpu T4 --batch 7 --precision amp
--gpu H100 --batch 64 --precision amp-bf16
--gpu H100 --batch 64 --precision bf16 --compile
--gpu H200 --batch 128 --precision fp8 --attention flash
--gpu B200 --batch 16 --precision mxfp8
--gpu V100 --batch 48 --precision mixed-fp16 --layout nhwc
--gpu MI300X --batch 32 --precision mixed-bf16
--gpu RTX-3090 --batch 24 --layout nhwc --torch 1.12
--gpu RTX-3090 --batch 24 --precision amp --layout nhwc --compile
--gpu P100 --batch 8 --precision fp32 --optimizer adam
--gpu A100 --batch 32 --optimizer adamw --torch 2.4
--gpu A100 --batch 32 --optimizer adamw-fused --optimizer-kernels fused
--gpu A100 --batch 32 --optimizer adafactor --accumulate 4
--gpu A100 --batch 32 --optimizer muon --precision bf16
--gpu A100 --batch 32 --optimizer adam8bit --offload=pages
--gpu A100 --batch 32 --checkpoint
--gpu A100 --batch 32 --checkpoint=selective --precision amp
--gpu A100 --batch 32 --step-in-backward --optimizer sgd-plain
--gpu A100 --batch 32 --precision mixed-bf16 --gradient-type fp32
--gpu A100 --batch 32 --loss fused --ema
--gpu A100 --batch 32 --loss chunked --offload-activations
--gpu A100 --batch 32 --power-limit 200
--gpu A100 --batch 32 --attention eager --host-launch-us 20
--gpu A100 --batch 32 --mode inference
--gpu L4 --batch 1 --mode inference --precision amp-fp16
--gpu T4 --batch 8 --mode inference --precision bf16 --compile
--gpu A100 --batch 32 --gpus 8
--gpu A100 --batch 16 --gpus 8 --parallel fsdp=8 --precision mixed-bf16 --keep-gathered
--gpu A100 --batch 16 --gpus 8 --parallel fsdp=8 --accumulate 4 --whole-gradients --reduce-type half
--gpu H100 --batch 16 --parallel dp=2,tp=4,sp=1 --precision bf16
--gpu H100 --batch 16 --parallel pp=2,tp=2,micro=8 --precision mixed-bf16 --nodes 2 --network 40
--gpu H100 --batch 16 --parallel pp=4,vpp=2,micro=8 --precision bf16 --schedule zero-bubble
--gpu H100 --batch 8 --parallel dp=2,cp=2,zero=1 --precision bf16 --link 100
--gpu A100 --batch 32 --precision amp --frozen-weights nf4 --offload --measured ms=400
CONFIGURATIONS

# Writes the answer of a command to a job in a configuration, without versions. An empty file means a refusal.
cat > "$work/answer.sh" <<'ANSWER'
#!/bin/sh
job=$1 out=$2 build=$3 line=$4
case $job in */bert_base.onnx) line="$line --dim sequence=128" ;; esac
# shellcheck disable=SC2086 # the line holds options
"$build/cli/mdot" predict "$job" $line --json --explain -m "$build/share/mdot/predictor.mdot" --quiet 2> /dev/null |
    sed 's/"mdot": "[^"]*"/"mdot"/; s/"compiler": "[^"]*"/"compiler"/' > "$out"
ANSWER

if [ $# -gt 0 ]; then
    printf '%s\n' "$@" > "$work/jobs"
else
    git ls-files 'examples/*.onnx' 'tests/*.onnx' 'tests/*.job' > "$work/jobs"
    mkdir -p "$work/graphs"
    if [ -f lab/graphs.tar.xz ]; then
        tar -xf lab/graphs.tar.xz -C "$work/graphs"
        find "$work/graphs" -name '*.job' | sort > "$work/networks"
    fi
fi
count=$(grep -c . "$work/configurations")
: > "$work/runs"
awk -v n="$count" '{ for (i = 1; i <= n; i++) print $0 "\t" i }' "$work/jobs" >> "$work/runs"
[ ! -s "$work/networks" ] || [ $# -gt 0 ] || awk -v n="$count" '{ print $0 "\t" 2; print $0 "\t" n - 7 }' "$work/networks" >> "$work/runs"
rm -rf "$work/answers"
mkdir -p "$work/answers"
number=0
while IFS='	' read -r job configuration; do
    number=$((number + 1))
    line=$(sed -n "${configuration}p" "$work/configurations")
    printf '%s\0' "$job" "$work/answers/$number.before" "$before" "$line" "$job" "$work/answers/$number.after" "$work/after" "$line"
done < "$work/runs" | xargs -0 -P "$(nproc)" -n 4 sh "$work/answer.sh"

number=0 same=0 refused=0 different=0
while IFS='	' read -r job configuration; do
    number=$((number + 1))
    if ! cmp -s "$work/answers/$number.before" "$work/answers/$number.after"; then
        different=$((different + 1))
        echo "$job: $(sed -n "${configuration}p" "$work/configurations"):"
        diff "$work/answers/$number.before" "$work/answers/$number.after" | head -4 | cut -c1-300 || true
    elif [ -s "$work/answers/$number.after" ]; then
        same=$((same + 1))
    else
        refused=$((refused + 1))
    fi
done < "$work/runs"
echo "$same equal predictions, $different different ones, $refused refused by both"
[ "$different" -eq 0 ] && [ "$same" -gt 0 ]
