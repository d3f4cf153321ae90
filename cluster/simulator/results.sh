#!/bin/sh
# Repeats the experiments of results/. Run it after the predictor has changed, and figure4 after the simulator has:
#
#     cluster/simulator/results.sh BUILD TRACES [figure4|predictors|backfill|cold_start …, by default all]
#
# BUILD is the companion's build (build/release/cluster). TRACES has philly_all.csv and itp_all.csv. The errors are those of
# weights/results/families.csv, which `python3 -m mdot_lab.predictor export-cv` writes. Each experiment
# writes results/NAME.md, .json and .svg when it is complete, so that a run may be interrupted and continued with the
# names that are left. The programs use all cores. Then write the new figures into docs/results.md.
set -eu
[ $# -ge 2 ] || { sed -n '2,9p' "$0" >&2; exit 2; }
build=$1 traces=$2
shift 2
[ $# -gt 0 ] || set -- figure4 predictors backfill cold_start
here=$(dirname "$0")
predictions=$here/../../weights/results/families.csv
for name; do
    case $name in
        figure4 | predictors | backfill | cold_start) ;;
        *) echo "results.sh: $name is not an experiment; choose figure4, predictors, backfill or cold_start" >&2; exit 2 ;;
    esac
done
for name; do
    echo "$name: begins at $(date -u +%H:%M:%S)"
    case $name in
        figure4)
            "$build/simulator/mdot-figure4" Philly="$traces/philly_all.csv" ITP="$traces/itp_all.csv" --seeds 3 --windows 10 \
                --out "$here/results/figure4"
            "$here/draw.py" "$here/results/figure4.json" ;;
        predictors)
            "$build/simulator/mdot-figure4" Philly="$traces/philly_all.csv" ITP="$traces/itp_all.csv" \
                --predictions "$predictions" --out "$here/results/predictors"
            "$here/draw.py" "$here/results/predictors.json" ;;
        backfill)
            "$build/simulator/mdot-backfill" Philly="$traces/philly_all.csv" ITP="$traces/itp_all.csv" \
                --predictions "$predictions" --out "$here/results/backfill"
            "$here/draw.py" "$here/results/backfill.json" ;;
        cold_start) "$here/cold_start.sh" "$build" "$traces" "$here/results/cold_start" ;;
    esac
    echo "$name: ends at $(date -u +%H:%M:%S)"
done
