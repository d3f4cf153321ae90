#!/bin/sh
# Checks the boundaries between folders, from the #include lines, and the names of external symbols and files:
#
#     scripts/check-walls.sh [TREE, by default this one [BUILD FOLDER]]
#
#   - a folder may include only the headers listed after its name below, and its own files;
#   - a header must not include itself, directly or indirectly;
#   - source files and headers of the product have different names, and so have the files of the store and base/;
#   - instructions of one processor family are only in codegen/ and in files named for the family, such as cpu_x86.c;
#   - if a build is given, every external symbol of its objects has its folder's prefix.
#
# Prints each breach as "FILE: REASON". Exit status 1 if there is one. scripts/circles.sh finds circles of calls.
set -eu
tree=${1:-$(dirname "$0")/..}
build=${2:+$(cd "$2" && pwd)}
cd "$tree"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM

# A folder and the headers that it may include; a trailing slash stands for all headers of a folder. The longest folder name
# that matches a file counts. Includes across libraries go through mdot/, the public headers.
# Tables of data are exceptions, because training options (configuration.def), GPUs and operators are defined once, and each
# program that reads, prints or checks them includes the table.
cat > "$work/walls" <<'WALLS'
include         mdot_base.h mdot_run.h mdot_job.h mdot_configuration.h mdot_predict.h mdot_program.h mdot_explain.h mdot_beside.h mdot_calibrate.h mdot_record.h mdot_plan.h mdot.h
base            mdot/mdot_base.h
base/command    base/ mdot/mdot_base.h mdot/mdot.h
base/training   base/ mdot/mdot_base.h mdot/mdot.h mdot/mdotjob.h runtime/job/configuration.def runtime/job/configuration_table.h
runtime         runtime/core/core.h runtime/cuda/cuda.h runtime/job/job_model.h runtime/job/job_file.h runtime/perf/analysis.h runtime/predict/predictor_tensors.h
runtime/core    base/ mdot/
runtime/cuda    base/ mdot/ runtime/core/core.h
runtime/job     base/ mdot/ runtime/core/core.h
runtime/perf    base/ mdot/ runtime/core/core.h runtime/job/
runtime/predict base/ mdot/ runtime/core/core.h runtime/job/ runtime/perf/
runtime/search  base/ mdot/ runtime/core/core.h runtime/job/ runtime/perf/ runtime/predict/predict.h
ir              base/ mdot/mdot_base.h
frontend/onnx   base/ mdot/mdot_base.h ir/ onnx.pb-c.h
frontend/job    base/ mdot/mdotjob.h mdot/mdot.h ir/ frontend/onnx/
frontend/config base/ mdot/mdotjob.h mdot/mdot.h frontend/job/job_reader.h
plan            base/ mdot/mdot_base.h ir/
codegen         base/ mdot/mdot_base.h mdot/mdot.h mdot/mdot_abi.h ir/ plan/ codegen/cpu/cpu_images.h codegen/cuda/cuda_images.h
codegen/cpu     base/ mdot/mdot_base.h mdot/mdot_abi.h ir/ plan/ codegen/backend.h codegen/codegen.h codegen/subprocess.h codegen/byte_pool.h
codegen/cuda    base/ mdot/mdot_base.h mdot/mdot_abi.h ir/ plan/ codegen/backend.h codegen/codegen.h codegen/byte_pool.h
compiler        base/ mdot/ ir/ plan/ frontend/onnx/onnx.h codegen/backend.h codegen/codegen.h codegen/artefact.h
cli             base/ mdot/mdot_base.h mdot/mdot.h mdot/mdotjob.h mdot/mdotc.h weights/measured_gpus.def runtime/job/configuration.def runtime/job/configuration_table.h runtime/job/gpus.def
examples        mdot/mdot_base.h mdot/mdot.h mdot/mdotjob.h mdot/mdotc.h
benchmarks      mdot/mdot_base.h mdot/mdot.h mdot/mdotjob.h mdot/mdotc.h
scripts/tables  mdot/mdot.h runtime/job/configuration.def runtime/job/configuration_table.h runtime/job/gpus.def ir/ops.def ir/ops_job.def
WALLS
# The companion includes public headers and what the component `base` installs (cmake/install.cmake), thus no other folder of mdot.
while read -r folder headers; do
    echo "cluster/$folder base/ mdot/mdot_base.h mdot/mdot.h mdot/mdotjob.h $headers"
done >> "$work/walls" <<'WALLS'
accounting           mdot/mdot_store.h
history
store                mdot/mdot_store.h cluster/accounting/
store/command        mdot/mdot_store.h
slurm                cluster/history/mdot_history.h cluster/accounting/slurm_states.def
simulator            cluster/history/mdot_history.h cluster/history/row_model.h cluster/simulator/
simulator/core       cluster/history/mdot_history.h
simulator/policy     cluster/history/row_model.h cluster/simulator/core/ cluster/simulator/solve/
simulator/solve      cluster/simulator/core/arrays.h
simulator/estimate   cluster/history/mdot_history.h cluster/simulator/core/ cluster/simulator/input/
simulator/input      mdot/mdot_store.h cluster/accounting/ cluster/simulator/core/
simulator/report     cluster/simulator/core/
simulator/idle       cluster/simulator/core/ cluster/simulator/input/
service              mdot/mdot_store.h cluster/history/mdot_history.h
tests                mdot/mdot_store.h cluster/ tests/support/json.h tests/support/process.h tests/support/shard.h
WALLS
# This benchmark measures libmdot internals (subject.h gives the reason), with separate cubins.
echo "benchmarks/gpu base/file.h base/status.h mdot/ runtime/core/objects.h runtime/core/run.h runtime/cuda/ codegen/cuda/nvrtc.h" >> "$work/walls"

find include base runtime ir plan frontend codegen compiler cli examples benchmarks cluster scripts \
    -name '*.[ch]' -o -name '*.def' 2> "$work/missing" |
    LC_ALL=C sort > "$work/files"
[ -s "$work/files" ] || { echo "check-walls.sh: no sources in $(pwd)" >&2; exit 2; }
# Prints "FILE HEADER" for every line #include "HEADER".
xargs grep -H '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' < "$work/files" |
    sed 's/^\([^:]*\):[^"]*"\([^"]*\)".*/\1 \2/' |
    awk '/^cluster\// && $2 ~ /^(tests\/)?(accounting|history|service|simulator|slurm|store)\// { $2 = "cluster/" $2 } { print }' > "$work/includes"

awk '
FNR == NR { allowed[$1] = " " substr($0, length($1) + 1) " "; next }
{
    folder = ""
    for (name in allowed) if (index($1, name "/") == 1 && length(name) > length(folder)) folder = name
    if (folder == "") { print $1 ": is in no folder that scripts/check-walls.sh knows"; next }
    # a nested folder, for example ir/ops or benchmarks/cpu, belongs to its parent
    if (index($2, folder "/") == 1) {
        behind_wall = ""
        for (name in allowed) if (index($2, name "/") == 1 && length(name) > length(behind_wall)) behind_wall = name
        if (behind_wall == folder) next
    }
    if (index(allowed[folder], " " $2 " ")) next
    count = split(allowed[folder], may, " ")
    for (i = 1; i <= count; i++) if (may[i] ~ /\/$/ && index($2, may[i]) == 1) next
    print $1 ": includes " $2 ", which " folder "/ may not"
}' "$work/walls" "$work/includes" > "$work/breaches"

# tsort lists the headers of a circle, but treats a header that includes itself as unordered.
awk -v breaches="$work/breaches" '$1 ~ /\.h$/ {
    from = $1; sub(/^include\//, "", from)
    to = $2; if ($1 ~ /^include\// && to !~ /\//) to = "mdot/" to
    if (from == to) print $1 ": is in a circle of headers" >> breaches
    print from, to
}' "$work/includes" > "$work/headers"
tsort "$work/headers" 2>&1 > "$work/sorted" |
    sed -n 's/^tsort: \([^ ]*\.h\)$/\1: is in a circle of headers/p' >> "$work/breaches"

# Reports files with the name of another file on standard input.
unique() {
    awk -v whole="$1" '
    { name = $0; sub(/.*\//, "", name) }
    name in first { print $0 ": " whole " has " first[name] " with the same name"; next }
    { first[name] = $0 }'
}
{
    grep -v '^cluster/' "$work/files" | unique "the product"
    grep -E '^(base|cluster/store|cluster/accounting)/.*\.c$' "$work/files" | unique libmdotstore
} >> "$work/breaches"

# x86 intrinsics and their headers, inline assembly and system calls. codegen/ makes code for x86 by nature.
grep -v -e '^codegen/' -e '_x86\.[ch]$' "$work/files" | xargs grep -nE \
    -e '__builtin_ia32_|<(cpuid|[a-z]*mmintrin|immintrin|x86intrin)\.h>|\b_mm(256|512)?_[a-z0-9_]+\(' \
    -e '\b__asm__\b|\basm +volatile|SYS_arch_prctl' |
    sed 's/^\([^:]*\):\([0-9]*\):.*/\1: line \2 is for one processor family; move it to a file named for it, such as cpu_x86.c/' \
        >> "$work/breaches" || true

# Shared symbols begin with the folder's prefix, and public ones with the library's. protoc-c names its own output.
cat > "$work/prefixes" <<'PREFIXES'
base      bs_ cli_ measured_ predict_ mdot_
runtime   rt_ mdot_
ir        ir_
plan      pl_
frontend  fe_ mdot_ mdotjob_ onnx__
codegen   cg_ cu_
compiler  co_ mdotc_
cluster   ac_ st_ hs_ mdot_ mdotstore_
PREFIXES
if [ -n "$build" ]; then
    store=$build/cluster/store/CMakeFiles/mdot_store_objects.dir # absent from builds without the companion or SQLite
    [ -d "$store" ] || store=
    find "$build/base" "$build/runtime" "$build/ir" "$build/plan" "$build/frontend" "$build/codegen" "$build/compiler" ${store:+"$store"} \
        -path '*.dir/*.o' > "$work/objects"
    [ -s "$work/objects" ] || { echo "check-walls.sh: no objects in $build" >&2; exit 2; }
    # names with two leading underscores belong to the compiler
    (cd "$build" && sed "s|^$build/||" "$work/objects" | xargs nm -A -P -g --defined-only) |
        sed 's|/CMakeFiles/[^ ]*\.dir/|/|; s|\.o: | |' |
        awk '
        FNR == NR { prefixes[$1] = substr($0, length($1) + 1); next }
        $2 ~ /^__/ { next }
        {
            folder = substr($1, 1, index($1, "/") - 1)
            count = split(prefixes[folder], may, " ")
            for (i = 1; i <= count; i++) if (index($2, may[i]) == 1) next
            print $1 ": " $2 " is external and begins with none of" prefixes[folder]
        }' "$work/prefixes" - | sed 's/of  */of /' >> "$work/breaches"
fi

LC_ALL=C sort -u "$work/breaches"
[ ! -s "$work/breaches" ]
