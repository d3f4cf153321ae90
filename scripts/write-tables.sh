#!/bin/sh
# Writes the documents and the Python module that are made of the tables of training options, GPUs and operators
# (runtime/job/configuration.def, runtime/job/gpus.def, ir/ops.def, ir/ops_job.def, mdot_job.h), and the measured figures of
# documents (weights/results). Run it after you change a table or a result.
#
#     scripts/write-tables.sh [--check]
#
# --check changes nothing and fails if a file differs. scripts/tables/write_tables.py lists the files. dump_tables.c reads
# the tables; the compiler is $CC, or cc.
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
"${CC:-cc}" -std=c11 -D_GNU_SOURCE -I. -Iinclude scripts/tables/dump_tables.c -o "$work/dump_tables"
python3 scripts/tables/write_tables.py "$work/dump_tables" . "$@"
