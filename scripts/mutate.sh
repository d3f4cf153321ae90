#!/bin/sh
# Changes code in small ways and counts the changes that no test notices:
#
#     scripts/mutate.sh [OPTION…] [FILE or FOLDER…, by default runtime/job runtime/perf integrations/slurm]
#
#     --sample N     number of random mutants, by default 100; the same N and seed give the same mutants of the same code
#     --all          every mutant, some 11,000: days
#     --seed N       by default 1
#     --own          run the programs of the file only
#     --least PCT    exit status 1 if the score is below
#     --build DIR    a build tree, by default build/release
#
# tests/mutation/mutants.c makes the mutants. For each, one file is compiled without optimisation and linked into the test
# programs of the file: those that are named after it, and those of its row in tests/sources.txt. If they pass, the other
# programs of the same folder of tests/ follow. A mutant is *killed* if a program fails, crashes, or takes ten times as long
# as without the mutant. It is *equal* if the optimised object file is that of the original. It *survives* otherwise. The
# score is the share of killed ones among killed and surviving ones.
#
# Survivors are printed as "FILE:LINE: OLD -> NEW (mutant NUMBER)"; `DIR/tests/mutation/mutants write FILE NUMBER` prints
# the whole file. Files that the build omits, for example plugins without Slurm's headers, are named and left out.
set -eu
cd "$(dirname "$0")/.."
sample=100 seed=1 least=0 build=build/release own=no
while [ $# -gt 0 ]; do
    case $1 in
    --sample) sample=$2; shift 2 ;;
    --all) sample=0; shift ;;
    --seed) seed=$2; shift 2 ;;
    --own) own=yes; shift ;;
    --least) least=$2; shift 2 ;;
    --build) build=$2; shift 2 ;;
    -*) sed -n '2,/^set -eu/s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
    *) break ;;
    esac
done
[ $# -gt 0 ] || set -- runtime/job runtime/perf integrations/slurm
[ -f "$build/build.ninja" ] || { echo "mutate.sh: $build has no build.ninja: run cmake --preset release" >&2; exit 2; }
build=$(cd "$build" && pwd)
tree=$(pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
mkdir "$work/mutant" "$work/original" "$work/links" "$work/limits" "$work/tmp"
export CCACHE_DISABLE=1 TMPDIR="$work/tmp"
ulimit -c 0
linker=
for name in lld gold; do command -v "ld.$name" > /dev/null && { linker=-fuse-ld=$name; break; }; done

# ---- Files and their test programs ------------------------------------------------------------------------------------------

# Prints the command that compiles $1, without its input and output.
compile_command() {
    awk -v file="$tree/$1" '
        /^ *"command":/ { command = $0; sub(/^ *"command": "/, "", command); sub(/",$/, "", command); gsub(/\\"/, "\"", command) }
        index($0, "\"file\": \"" file "\"") { print command; exit }' "$build/compile_commands.json" |
        sed -E 's/ -o [^ ]+ -c [^ ]+$//; s/ -O[0-3sgz]*( |$)/ /g; s/ -g( |$)/ /g; s/^ccache //'
}

# Prints the names of the programs that are tests of $1 first of all.
own_tests() {
    folder=$(dirname "$1") name=$(basename "$1" .c) prefix=
    [ ! -f "tests/$folder/test_$name.c" ] || echo "test_$name"
    for part in $(echo "$folder" | tr / ' '); do
        [ ! -f "tests/$folder/test_${part}_$name.c" ] || echo "test_${part}_$name"
    done
    awk -v file="$1" '$1 == file { for (i = 2; i <= NF; i++) print $i }' tests/sources.txt
}

folder_tests() {
    [ $own = yes ] || find "tests/$(dirname "$1")" -maxdepth 1 -name 'test_*.c' -exec basename {} .c \; | LC_ALL=C sort
}

files=
for argument; do
    if [ -d "$argument" ]; then list=$(find "$argument" -maxdepth 1 -name '*.c' | LC_ALL=C sort); else list=$argument; fi
    for file in $list; do
        if [ -z "$(compile_command "$file")" ]; then
            echo "$file: not built here; left out"
        else
            files="$files $file"
        fi
    done
done
[ -n "$files" ] || { echo "mutate.sh: no files" >&2; exit 2; }

# Builds everything that a mutant is linked to. A program that the build omits, for example without Slurm's headers, is no test.
ninja -C "$build" --quiet build.ninja > /dev/null
targets=$(ninja -C "$build" -t targets all | sed 's/: .*//' | grep -E '(^|/)(test_[a-z0-9_]+|mutants)$')
for file in $files; do { own_tests "$file"; folder_tests "$file"; }; done | sort -u > "$work/programs"
for program in $(cat "$work/programs") mutants; do
    target=$(echo "$targets" | grep -E "^tests/(.*/)?$program$" | head -n 1) || true
    [ -z "$target" ] || echo "$program $target"
done > "$work/targets"
# shellcheck disable=SC2046 # names of targets
ninja -C "$build" --quiet $(awk '{ print $2 }' "$work/targets") > "$work/build.log" || { tail -n 40 "$work/build.log"; exit 2; }
mutants=$build/$(awk '$1 == "mutants" { print $2 }' "$work/targets")

# ---- One mutant -------------------------------------------------------------------------------------------------------------

# compile SOURCE OBJECT OPTIMISATION, for $file
compile() {
    (cd "$build" && eval "$command $3 -g0 -w -U_FORTIFY_SOURCE -o '$2' -c '$1'") > "$work/compile.log" 2>&1
}

# Runs program $1 with $work/mutant.o in place of the file's object; the result is 0 if it passes within $2 seconds.
run() {
    if [ ! -f "$work/links/$1" ]; then
        target=$(awk -v name="$1" '$1 == name { print $2 }' "$work/targets")
        # The object stands in front of the libraries, so that they are not searched for its functions.
        ninja -C "$build" -t commands "$target" | tail -n 1 |
            sed "s|-o $target |-o $work/program $linker -Wl,--as-needed $work/mutant.o |" > "$work/links/$1"
    fi
    (cd "$build" && sh "$work/links/$1") > "$work/link.log" 2>&1 || return 3
    status=0
    (cd "$build/tests" && ulimit -v 8000000; exec timeout -k 1 "$2" "$work/program") > "$work/test.log" 2>&1 || status=$?
    [ $status -ne 77 ] || status=0 # skipped
    rm -rf "$work/tmp/"*
    return $status
}

# Prints the time limit of program $1 for $file in seconds, after a run without a mutant.
limit_of() {
    known=$work/limits/$(echo "$file $1" | tr '/ ' '__')
    if [ ! -f "$known" ]; then
        mv "$work/mutant.o" "$work/kept.o" && cp "$work/original.o" "$work/mutant.o"
        before=$(date +%s)
        run "$1" 600 || { echo "mutate.sh: $1 fails without a mutant of $file:" >&2; tail -n 20 "$work/link.log" "$work/test.log" >&2; exit 2; }
        echo $((10 * ($(date +%s) - before) + 10)) > "$known"
        mv "$work/kept.o" "$work/mutant.o"
    fi
    cat "$known"
}

# Prints killed, survived, equal or broken (does not compile), and the program that noticed the mutant.
judge() {
    "$mutants" write "$file" "$number" > "$work/mutant/$base"
    compile "$work/mutant/$base" "$work/mutant.o" -O0 || { echo broken; return; }
    for program in $tests; do
        limit=$(limit_of "$program") || exit 2
        run "$program" "$limit" || { echo "killed $program"; return; }
    done
    compile "$work/mutant/$base" "$work/optimised.o" -O2
    if cmp -s "$work/optimised.o" "$work/original_optimised.o"; then echo equal; else echo survived; fi
}

# shellcheck disable=SC2086 # names of files
"$mutants" list "$seed" "$sample" $files > "$work/list"
echo "$(wc -l < "$work/list") mutants, seed $seed"
last=
while IFS="$(printf '\t')" read -r file number line change; do
    if [ "$file" != "$last" ]; then
        last=$file command=$(compile_command "$file") base=$(basename "$file")
        tests=$({ own_tests "$file"; folder_tests "$file"; } | awk 'NR == FNR { built[$1]; next } $1 in built && !seen[$1]++' "$work/targets" -)
        [ -n "$tests" ] || { echo "mutate.sh: $file has no test program" >&2; exit 2; }
        cp "$file" "$work/original/$base"
        compile "$work/original/$base" "$work/original.o" -O0 && compile "$work/original/$base" "$work/original_optimised.o" -O2 ||
            { cat "$work/compile.log"; exit 2; }
    fi
    result=$(judge) || exit 2
    printf '%s\t%s\n' "${result%% *}" "$file" >> "$work/results"
    case $result in survived) echo "$file:$line: $change (mutant $number)" ;; esac
    [ -z "${MDOT_MUTATE_LOG:-}" ] || printf '%s\t%s\t%s\t%s\t%s\n' "$result" "$file" "$line" "$number" "$change" >> "$MDOT_MUTATE_LOG"
done < "$work/list"

# ---- Report -----------------------------------------------------------------------------------------------------------------

awk -F '\t' -v least="$least" '
{ folder = $2; sub(/\/[^\/]*$/, "", folder); if (!(folder in seen)) { seen[folder]; order[++folders] = folder }
  count[folder, $1]++; count["all", $1]++ }
function report(name,    judged) {
    judged = count[name, "killed"] + count[name, "survived"]
    printf "%-20s %6d killed %6d survived %6d equal %6d not compiled   score %.1f %%\n", name, count[name, "killed"],
           count[name, "survived"], count[name, "equal"], count[name, "broken"], (judged > 0 ? 100 * count[name, "killed"] / judged : 100)
    return judged == 0 || 100 * count[name, "killed"] >= least * judged
}
END {
    for (i = 1; i <= folders; i++) report(order[i])
    if (!report("all")) { printf "the score is below %s %%\n", least; exit 1 }
}' "$work/results"
