#!/bin/sh
# Measures how the cost of a scheduler round grows with the operators per job and with configurations. Writes a table,
# JSON and two plots:
#
#   benchmarks/round.sh [--out DIR] [--seconds S]
#
# Builds mdot and its predictor. Writes round.json, operators.svg, configurations.svg to DIR (build/round-results).
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
out="$root/build/round-results" seconds=1
while [ $# -ge 2 ]; do
    case $1 in
    --out) out=$2 ;;
    --seconds) seconds=$2 ;;
    *) break ;;
    esac
    shift 2
done
[ $# -eq 0 ] || { echo "benchmarks/round.sh [--out DIR] [--seconds S]" >&2; exit 2; }

build="$root/build/release"
"$root/scripts/install-deps.sh"
(cd "$root" && cmake --preset release > /dev/null && cmake --build --preset release --target mdot_cli predictor -- --quiet)
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$root/benchmarks/common" python3 "$root/benchmarks/cpu/round_growth.py" \
    "$build/cli/mdot" "$build/share/mdot/predictor.mdot" "$out" --seconds "$seconds"
