#!/bin/sh
# Runs all of benchmarks/gpu.sh without a GPU: packs a small model, runs all steps on the fake driver library, and checks
# the content of results.json, table.md and plot.svg. It then runs again with wrong answers, which must be detected. The test
# is independent of measured times.
#
#   dry_run.sh SOURCE BUILD FAKE_LIBRARY
#
# BUILD must be built. Exit status 77: NVRTC or Python 3 is missing. PYTHON selects another Python, for example one with numpy,
# which the peers need.
set -eu
export PYTHONDONTWRITEBYTECODE=1
export PYTHONPATH="$1/benchmarks/common"
source=$1 build=$2 fake=$3
python=${PYTHON:-python3}
command -v "$python" > /dev/null || { echo "skipped: no $python"; exit 77; }

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
gpu="$source/benchmarks/gpu.sh"
# A Python that was built without the sanitizer fails to load libraries built with it. Then numpy and the peers are left out.
if nm -D "$build/runtime/libmdot.so" | grep -q __asan_init; then
    printf '#!/bin/sh\nexec %s -S "$@"\n' "$python" > "$folder/python"
    chmod +x "$folder/python"
    python="$folder/python"
fi
log="$folder/log"

expect_failure() { # MESSAGE COMMAND…
    message=$1
    shift
    if "$@" > "$log" 2>&1; then
        echo "must fail: $*"
        exit 1
    fi
    grep -q "$message" "$log" || { echo "\"$message\" is not what it says:"; cat "$log"; exit 1; }
}

expect_failure "is empty: run gpu.sh pack first" sh "$gpu" run --pack "$folder/nowhere" --out "$folder/out"
expect_failure "gpu.sh run" sh "$gpu" run --wrong option

"$python" "$source/benchmarks/common/reference.py" "$folder/model.onnx" --width 32 --hidden 64 --layers 1
if ! sh "$gpu" pack --pack "$folder/pack" --build "$build" --model "$folder/model.onnx" --targets sm_90a \
    --buckets 16,32 > "$log" 2>&1; then
    grep -q "requires NVRTC" "$log" && { echo "skipped: no NVRTC"; exit 77; }
    cat "$log"
    exit 1
fi

expect_failure "the CUDA driver is unavailable" env MDOT_LIBCUDA=/nonexistent sh "$gpu" run --pack "$folder/pack" --out "$folder/none"

export MDOT_LIBCUDA="$fake"
sh "$gpu" run --pack "$folder/pack" --out "$folder/out" --budget 120 --lengths 16,32 --python "$python" \
    > "$log" 2>&1 || {
    cat "$log" "$folder/out/log.txt"
    exit 1
}
"$python" "$source/tests/gpu_bench/check_results.py" "$folder/out"

# A run cut in the middle of a line also has a table.
mkdir "$folder/cut"
head -c 3000 "$folder/out/rows.jsonl" > "$folder/cut/rows.jsonl"
"$python" "$source/benchmarks/gpu/gpu_report.py" "$folder/cut/rows.jsonl" "$folder/cut"
grep -q "^| reference | bf16 | predict | 16 |" "$folder/cut/table.md" || { echo "a cut run has no table"; exit 1; }

# Steps that exceed the budget are named, but are not failures.
sh "$gpu" run --pack "$folder/pack" --out "$folder/none" --budget 0 --python "$python" > "$log" 2>&1
grep -q "^| latency | no time left |" "$folder/none/table.md" || { echo "steps are left out in silence"; exit 1; }

expect_failure "steps failed" env MDOT_FAKE_SPOIL=1 sh "$gpu" run --pack "$folder/pack" --out "$folder/spoilt" \
    --budget 60 --lengths 16 --python "$python"
grep -q "wrong\*\*" "$folder/spoilt/table.md" || { echo "the table hides wrong answers"; exit 1; }
