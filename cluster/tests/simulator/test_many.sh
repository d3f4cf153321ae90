#!/bin/sh
# many.sh runs each simulation once, continues after an interruption, reports failures, and submits a job array. Here
# sbatch is a script that runs the array's tasks at once.
set -eu
many=$1/simulator/many.sh
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT INT TERM
fail() { echo "test_many.sh: $1" >&2; exit 1; }

{
    echo job_id,submit_s,gpus,duration_s
    seq 60 | awk '{ print $1 "," 7 * $1 "," 1 + $1 % 3 "," 10 + 37 * $1 % 101 }'
} > "$folder/trace one.csv"
set -- --policies fifo,srsf --loads own,0.5 --seeds 1,2,3 "$folder/trace one.csv" --gpus 4 --estimate error:0.5
sh "$many" --out "$folder/a" "$@"
[ "$(wc -l < "$folder/a/summary.csv")" = 13 ] || fail "the summary has $(wc -l < "$folder/a/summary.csv") lines"
awk -F, 'NR > 1 && !($4 > 0 && $8 > 0 && $8 <= 1) { exit 1 }' "$folder/a/summary.csv" || fail "the summary lacks values"
[ "$(grep -c '^srsf,0.5,' "$folder/a/summary.csv")" = 3 ] || fail "a combination is missing"

# A finished simulation is not repeated, a missing one is.
echo '{"mean_jct_s": 4711}' > "$folder/a/fifo_own_1.json"
rm "$folder/a/fifo_own_2.json"
sh "$many" --out "$folder/a" "$@"
grep -q '^fifo,own,1,4711' "$folder/a/summary.csv" || fail "a finished simulation ran again"
[ -e "$folder/a/fifo_own_2.json" ] || fail "a missing simulation did not run"

# Other arguments need another folder. A failure is reported, and the other results are kept.
if sh "$many" --out "$folder/a" --policies fifo "$folder/trace one.csv" --gpus 5 2> "$folder/err"; then
    fail "results of other arguments were mixed"
fi
grep -q "other arguments" "$folder/err" || fail "no reason for the refusal"
if sh "$many" --out "$folder/b" --policies fifo,none "$folder/trace one.csv" --gpus 4 2> "$folder/err"; then
    fail "an unknown policy succeeded"
fi
grep -q none "$folder/err" || fail "the failure names no policy"
grep -q '^fifo,' "$folder/b/summary.csv" || fail "a failure lost the other results"

# A job array gives the same results.
mkdir "$folder/bin"
cat > "$folder/bin/sbatch" <<'S'
#!/bin/sh
for argument; do
    case $argument in --array=1-*) last=${argument#--array=1-} ;; esac
    command=$argument
done
for SLURM_ARRAY_TASK_ID in $(seq "$last"); do export SLURM_ARRAY_TASK_ID; sh -c "$command"; done
S
chmod +x "$folder/bin/sbatch"
PATH=$folder/bin:$PATH sh "$many" --out "$folder/c" --slurm --mem=1G,--time=5 "$@"
sh "$many" --out "$folder/c" "$@"
rm "$folder/a/fifo_own_1.json"
sh "$many" --out "$folder/a" "$@"
cmp "$folder/a/summary.csv" "$folder/c/summary.csv" || fail "the job array gives other results"

# So does an indexed Job: each completion runs the container's command with its index.
MDOT_SIMULATE=${MDOT_SIMULATE:-mdot-simulate} sh "$many" --out "$folder/e" --kubernetes "image:1,claim,$folder" "$@" > "$folder/job.json"
python3 - "$folder/job.json" << 'P' || fail "the indexed Job fails"
import json, os, subprocess, sys
spec = json.load(open(sys.argv[1]))["spec"]
pod = spec["template"]["spec"]
[container] = pod["containers"]
assert spec["completionMode"] == "Indexed" and container["image"] == "image:1"
assert pod["volumes"][0]["persistentVolumeClaim"]["claimName"] == "claim"
for index in range(spec["completions"]):
    subprocess.run(container["command"], env={**os.environ, "JOB_COMPLETION_INDEX": str(index)}, check=True)
P
sh "$many" --out "$folder/e" "$@"
cmp "$folder/a/summary.csv" "$folder/e/summary.csv" || fail "the indexed Job gives other results"
if sh "$many" --out "$folder/e" --kubernetes "image,claim,/elsewhere" "$@" 2> "$folder/err"; then
    fail "a folder that pods do not see is accepted"
fi
grep -q "not below /elsewhere" "$folder/err" || fail "no reason for the refusal"

# Ray gives the same results, and does not repeat finished simulations.
if "${PYTHON:-python3}" -c "import ray" 2> "$folder/err"; then
    sh "$many" --out "$folder/f" --policies fifo --loads own,0.5 --seeds 1,2,3 "$folder/trace one.csv" --gpus 4 \
        --estimate error:0.5
    sh "$many" --out "$folder/f" --ray "$@" > "$folder/ray" 2>&1 || fail "on Ray: $(tail -n 3 "$folder/ray")"
    cmp "$folder/a/summary.csv" "$folder/f/summary.csv" || fail "Ray gives other results"
else
    echo "test_many.sh: skipped Ray: ${PYTHON:-python3} has no package ray"
fi

# Options of the script may follow --slurm, in any order.
for order in "--slurm --out $folder/d" "--out $folder/d --slurm" "--slurm=--time=5,--mem=1G --out $folder/d"; do
    rm -rf "$folder/d"
    # shellcheck disable=SC2086 # words
    PATH=$folder/bin:$PATH sh "$many" $order "$@" || fail "$order is refused"
    [ -e "$folder/d/fifo_own_1.json" ] || fail "$order did not run"
done
