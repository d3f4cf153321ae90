#!/bin/sh
# The walls between folders, from the #include lines, and the names by which files of a library know each other:
#
#     scripts/check-walls.sh [TREE, by default this one [BUILD FOLDER]]
#
#   - a folder includes nothing but what stands behind its name below (its own files are always right);
#   - no header needs itself, over however many others;
#   - no two source files of a library have one name;
#   - where a build is given, every external symbol of its objects has its folder's prefix.
#
# Every breach is printed as "FILE: REASON"; exit status 1 when there is one. Circles of calls: scripts/circles.sh.
set -eu
tree=${1:-$(dirname "$0")/..}
build=${2:+$(cd "$2" && pwd)}
cd "$tree"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM

# A folder, the longest name that fits a file counts, and what it may include: a header, or with a slash at its end, all
# of a folder. What crosses the border of a library goes through mdot/, the public headers.
cat > "$work/walls" <<'WALLS'
include         mdot_base.h mdot_run.h mdot_predict.h mdot_calibrate.h mdot.h
base            mdot/mdot_base.h
runtime         runtime/core/core.h runtime/cuda/cuda.h runtime/job/job_model.h runtime/job/job_file.h runtime/job/freeze.h runtime/perf/job_analyzer.h runtime/predict/predict_extension.h
runtime/core    base/ mdot/mdot.h mdot/mdot_abi.h
runtime/cuda    base/ mdot/mdot.h mdot/mdot_abi.h runtime/core/core.h
runtime/job     base/ mdot/mdot.h mdot/mdot_abi.h runtime/core/core.h
runtime/perf    base/ mdot/mdot.h runtime/core/core.h runtime/job/
runtime/predict base/ mdot/mdot.h mdot/mdot_abi.h runtime/core/core.h runtime/job/ runtime/perf/
ir              base/ mdot/mdot_base.h
frontend/onnx   base/ mdot/mdot_base.h ir/ onnx.pb-c.h
frontend/job    base/ mdot/mdotjob.h mdot/mdot.h ir/ frontend/onnx/
codegen         base/ mdot/mdot_base.h mdot/mdot.h mdot/mdot_abi.h ir/ codegen/cpu/cpu_backend.h codegen/cuda/cuda_backend.h
codegen/cpu     base/ mdot/mdot_base.h mdot/mdot_abi.h ir/ codegen/backend.h codegen/codegen.h codegen/subprocess.h codegen/machine.h codegen/byte_pool.h codegen/table_builder.h
codegen/cuda    base/ mdot/mdot_base.h mdot/mdot_abi.h ir/ codegen/backend.h codegen/codegen.h codegen/machine.h codegen/byte_pool.h codegen/table_builder.h
compiler        base/ mdot/ ir/ frontend/onnx/onnx.h codegen/backend.h codegen/codegen.h
cli             base/ mdot/mdot_base.h mdot/mdot.h mdot/mdotjob.h mdot/mdotc.h weights/measured_gpus.def
examples        mdot/mdot_base.h mdot/mdot.h mdot/mdotjob.h mdot/mdotc.h
benchmarks      mdot/mdot_base.h mdot/mdot.h mdot/mdotjob.h mdot/mdotc.h
integrations/slurm  mdot/mdot_base.h mdot/mdot.h
simulator           mdot/mdot_base.h mdot/mdot.h mdot/mdotjob.h simulator/
simulator/core      mdot/mdot_base.h
simulator/policy    mdot/mdot_base.h simulator/core/ simulator/solve/
simulator/solve     mdot/mdot_base.h
simulator/estimate  mdot/mdot_base.h mdot/mdot.h mdot/mdotjob.h simulator/core/ simulator/input/
simulator/input     mdot/mdot_base.h simulator/core/
simulator/report    mdot/mdot_base.h simulator/core/
simulator/idle      mdot/mdot_base.h simulator/core/ simulator/input/
simulator/experiment mdot/mdot_base.h simulator/
WALLS
# Measures what libmdot does not show (subject.h says why), with cubins of its own.
echo "benchmarks/gpu base/file.h mdot/ runtime/core/objects.h runtime/core/run.h runtime/cuda/ codegen/cuda/nvrtc.h" >> "$work/walls"

# What becomes one library; nothing is in two lines of one library twice.
cat > "$work/libraries" <<'LIBRARIES'
libmdot    base runtime
libmdotjob base ir frontend
libmdotc   base ir frontend/onnx codegen compiler
LIBRARIES

find include base runtime ir frontend codegen compiler cli examples benchmarks integrations simulator -name '*.[ch]' -o -name '*.def' 2> "$work/missing" |
    LC_ALL=C sort > "$work/files"
[ -s "$work/files" ] || { echo "check-walls.sh: no sources in $(pwd)" >&2; exit 2; }
# "FILE HEADER" for every line #include "HEADER"
xargs grep -H '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' < "$work/files" |
    sed 's/^\([^:]*\):[^"]*"\([^"]*\)".*/\1 \2/' > "$work/includes"

awk '
FNR == NR { allowed[$1] = " " substr($0, length($1) + 1) " "; next }
{
    folder = ""
    for (name in allowed) if (index($1, name "/") == 1 && length(name) > length(folder)) folder = name
    if (folder == "") { print $1 ": is in no folder that scripts/check-walls.sh knows"; next }
    # a folder within one, ir/ops or benchmarks, belongs to it
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

# tsort names the headers of a circle, but takes a header with itself for one without an order.
awk -v breaches="$work/breaches" '$1 ~ /\.h$/ {
    from = $1; sub(/^include\//, "", from)
    to = $2; if ($1 ~ /^include\// && to !~ /\//) to = "mdot/" to
    if (from == to) print $1 ": is in a circle of headers" >> breaches
    print from, to
}' "$work/includes" > "$work/headers"
tsort "$work/headers" 2>&1 > "$work/sorted" | sed -n 's/^tsort: \([^ ]*\.h\)$/\1: is in a circle of headers/p' >> "$work/breaches"

while read -r library folders; do
    for folder in $folders; do grep "^$folder/.*\.c$" "$work/files" || true; done |
        awk -v library="$library" '
        { name = $0; sub(/.*\//, "", name) }
        name in first { print $0 ": " library " has " first[name] " of the same name"; next }
        { first[name] = $0 }'
done < "$work/libraries" >> "$work/breaches"

# What is shared begins with the folder's letters, what is public with the library's; protoc-c names what it makes.
cat > "$work/prefixes" <<'PREFIXES'
base      bs_ mdot_
runtime   rt_ mdot_
ir        ir_ pl_
frontend  fe_ mdot_ mdotjob_ onnx__
codegen   cg_ cu_
compiler  co_ mdotc_
PREFIXES
if [ -n "$build" ]; then
    find "$build/base" "$build/runtime" "$build/ir" "$build/frontend" "$build/codegen" "$build/compiler" \
        -path '*.dir/*.o' > "$work/objects"
    [ -s "$work/objects" ] || { echo "check-walls.sh: no objects in $build" >&2; exit 2; }
    # names with two underscores in front are the compiler's
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
