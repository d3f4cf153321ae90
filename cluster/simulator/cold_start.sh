#!/bin/sh
# Repeats the experiment of results/cold_start.json:
#
#     cluster/simulator/cold_start.sh BUILD FOLDER_OF_TRACES OUT_PREFIX [OPTION…]
#
# BUILD is the folder of the companion's build (build/release/cluster). FOLDER_OF_TRACES has philly_all.csv and
# itp_all.csv. These lack users and names, so a synthetic trace stands beside them
# (cluster/durations/synthetic_trace.py). Options are those of mdot-cold-start.
set -eu
[ $# -ge 3 ] || { sed -n '2,8p' "$0" >&2; exit 2; }
build=$1 traces=$2 out=$3
shift 3
here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
python3 "$here/../durations/synthetic_trace.py" mdot "$work/synthetic.csv" --jobs 50000 --seed 1
"$build/simulator/mdot-cold-start" Synthetic="$work/synthetic.csv" Philly="$traces/philly_all.csv" ITP="$traces/itp_all.csv" \
    --predictions "$here/../../weights/results/families.csv" --out "$out" "$@"
python3 "$here/draw.py" "$out.json"
