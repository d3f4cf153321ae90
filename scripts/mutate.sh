#!/bin/sh
# Changes code in small ways and counts the changes that no test notices:
#
#     scripts/mutate.sh [OPTION…] [FILE or FOLDER…, by default those of `areas` below]
#
#     --sample N     number of random mutants of each folder, by default 100; the same N and seed give the same mutants of
#                    the same code
#     --all          every mutant, some 15,000
#     --seed N       by default 1
#     --own          run the programs of the file only
#     --least PCT    exit status 1 if the score of all folders together is below
#     --build DIR    a build tree, by default build/release
#     --log FILE     append a line for each mutant: result, program that noticed it, file, line, number, change, and a
#                    checksum of the file and of mutants.c. While these are the same, the command runs only mutants that
#                    FILE lacks, and survivors: run it again after you have written a test, or after an interruption.
#
# tests/mutation/mutants.c makes the mutants. All mutants of a file are compiled together, without optimisation, and a
# variable of the environment selects one when the program starts. The file is linked into its test programs: those that are
# named after it (test_NAME.c and test_NAME_*.c), and those of its row in tests/sources.txt. They run first, the quickest one
# before the others. If they pass, the programs of its folder, and others that include its header, run if they take at most
# three seconds; they are built when a mutant first needs them. If they pass, too, the file's own programs run again with the address and undefined-behaviour sanitizers, except
# programs that define malloc. Programs of tests/growth are left out, because they take long.
#
# A mutant is *killed* if a program fails, crashes, leaks, or takes ten times the CPU time and five seconds. It is *equal*
# if the optimised object file is that of the original, or if no program noticed it and tests/mutation/equal.txt lists it
# with the reason. It *survives* otherwise. The score is the share of killed ones among
# killed and surviving ones. It is printed by folder, with the 95 % interval of the score of all mutants of the folder
# (Wilson's formula), because a sample only estimates it. The score of all folders together has no interval, because a large
# folder has as many mutants in the sample as a small one.
#
# Survivors are printed as "FILE:LINE: OLD -> NEW (mutant NUMBER)"; `DIR/tests/mutation/mutants write FILE NUMBER` prints
# the whole file. Files that the build omits, for example plugins without Slurm's headers, and files that no test program links
# are named and left out. The script runs at the lowest priority, and one process at a time.
set -eu
cd "$(dirname "$0")/.."
sample=100 seed=1 least=0 build=build/release only_own=no log=
while [ $# -gt 0 ]; do
    case $1 in
    --sample) sample=$2; shift 2 ;;
    --all) sample=0; shift ;;
    --seed) seed=$2; shift 2 ;;
    --own) only_own=yes; shift ;;
    --least) least=$2; shift 2 ;;
    --build) build=$2; shift 2 ;;
    --log) log=$2; shift 2 ;;
    -*) sed -n '2,/^set -eu/s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
    *) break ;;
    esac
done
areas="runtime/job runtime/perf runtime/predict/calibration_fit.c runtime/predict/calibration_transfer.c
    runtime/predict/analytic_correction.c frontend/job/settings.c frontend/job/repeats.c cluster/slurm cluster/store
    cluster/history"
# shellcheck disable=SC2086 # names
[ $# -gt 0 ] || set -- $areas
[ -f "$build/build.ninja" ] || { echo "mutate.sh: $build has no build.ninja: run cmake --preset release" >&2; exit 2; }
build=$(cd "$build" && pwd)
tree=$(pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
mkdir "$work/original" "$work/mutant" "$work/tmp" "$work/links"
chmod 711 "$work" # tests of the store look into it as an ordinary user
: > "$work/results"
export CCACHE_DISABLE=1
renice -n 19 $$ > /dev/null 2>&1 || true
ulimit -c 0
export ASAN_OPTIONS=allocator_may_return_null=1 # as in tests of the sanitized build
linker=
for name in lld gold; do command -v "ld.$name" > /dev/null && { linker=-fuse-ld=$name; break; }; done

# ---- Files and their test programs ------------------------------------------------------------------------------------------

# Prints the compile command for $1, without input, output and optimisation.
compile_command() {
    awk -v file="$tree/$1" '
        /^ *"command":/ { command = $0; sub(/^ *"command": "/, "", command); sub(/",$/, "", command); gsub(/\\"/, "\"", command) }
        index($0, "\"file\": \"" file "\"") { print command; exit }' "$build/compile_commands.json" |
        sed -E 's/ -o [^ ]+ -c [^ ]+$//; s/ -O[0-3sgz]*( |$)/ /g; s/ -g( |$)/ /g; s/^ccache //'
}

# Prints the names of the main test programs for $1.
own_tests() {
    folder=$(dirname "$1") name=$(basename "$1" .c)
    tests=$(echo "tests/$folder" | sed 's|^tests/cluster/|cluster/tests/|')
    find "$tests" -maxdepth 1 \( -name "test_$name.c" -o -name "test_${name}_*.c" \) 2> /dev/null |
        LC_ALL=C sort | sed 's|.*/||; s|\.c$||'
    for part in $(echo "$folder" | tr / ' '); do
        [ ! -f "$tests/test_${part}_$name.c" ] || echo "test_${part}_$name"
    done
    awk -v file="$1" '$1 == file { for (i = 2; i <= NF; i++) print $i }' tests/sources.txt
}

# Prints the names of programs including the header of $1, and of those of its folder. Small source files share a folder
# header. test_unload loads a built plugin, not the mutant.
other_tests() {
    [ $only_own = yes ] || find "$(echo "tests/$(dirname "$1")" | sed 's|^tests/cluster/|cluster/tests/|')" -maxdepth 1 \
        -name 'test_*.c' ! -name test_unload.c 2> /dev/null | LC_ALL=C sort | sed 's|.*/||; s|\.c$||'
    header="#include \"$(echo "${1%.c}" | sed 's|^cluster/||').h\""
    [ -e "${1%.c}.h" ] || header=$(grep -m 1 "^#include \"$(dirname "$1" | sed 's|^cluster/||')/" "$1") || return 0
    [ $only_own = yes ] || find tests cluster/tests -path tests/growth -prune -o -name 'test_*.c' \
        -exec grep -lF "$header" {} + |
        LC_ALL=C sort | sed 's|.*/||; s|\.c$||'
}

# Keeps the names that the build has, each once.
built() {
    awk 'NR == FNR { built[$1]; next } $1 in built && !seen[$1]++' "$work/targets" -
}

files=
for argument; do
    if [ -d "$argument" ]; then list=$(find "$argument" -maxdepth 1 -name '*.c' | LC_ALL=C sort); else list=$argument; fi
    for file in $list; do
        if [ -z "$(compile_command "$file")" ]; then
            echo "$file: not built here; left out"
        elif [ -z "$(own_tests "$file")$(other_tests "$file")" ]; then
            echo "$file: no test program; left out"
        elif grep -q '^int main(' "$file"; then
            echo "$file: a program itself; left out"
        else
            files="$files $file"
        fi
    done
done
[ -n "$files" ] || { echo "mutate.sh: no files" >&2; exit 2; }

# Finds the targets of programs. One that the build omits, for example without Slurm's headers, is no test.
ninja -C "$build" --quiet build.ninja > /dev/null
targets=$(ninja -C "$build" -t targets all | sed 's/: .*//' | grep -E '(^|/)(test_[a-z0-9_]+|mutants)$')
for file in $files; do own_tests "$file"; other_tests "$file"; done | sort -u > "$work/programs"
for program in $(cat "$work/programs") mutants; do
    target=$(echo "$targets" | grep -E "^(cluster/)?tests/(.*/)?$program$" | grep -v '^tests/growth/' | head -n 1) || true
    [ -z "$target" ] || echo "$program $target"
done > "$work/targets"

target_of() {
    awk -v name="$1" '$1 == name { print $2 }' "$work/targets"
}

# Builds the programs $@.
build_programs() {
    [ $# -gt 0 ] || return 0
    for program; do target_of "$program"; done > "$work/wanted"
    # shellcheck disable=SC2046 # names of targets
    ninja -C "$build" -j 2 --quiet $(cat "$work/wanted") > "$work/build.log" || { tail -n 40 "$work/build.log"; exit 2; } >&2
}
build_programs mutants
mutants=$build/$(target_of mutants)

# ---- Programs ---------------------------------------------------------------------------------------------------------------

# compile SOURCE OBJECT OPTION…, for $file
compile() {
    source=$1 object=$2
    shift 2
    (cd "$build" && eval "$command $* -g0 -w -U_FORTIFY_SOURCE -o '$object' -c '$source'") > "$work/compile.log" 2>&1
}

# Programs and objects are of two kinds: plain, and sanitized, which take much longer.
flags_of() {
    [ "$1" = plain ] || echo "-fsanitize=address,undefined -fno-sanitize-recover=undefined"
}

# Links test program $2 of kind $1 with $work/KIND.o in place of the file's object.
link_program() {
    if [ ! -f "$work/links/$1-$2" ]; then
        target=$(target_of "$2")
        # The object precedes the libraries, so the linker does not search them for these functions.
        ninja -C "$build" -t commands "$target" | tail -n 1 |
            sed "s|-o $target |-o $work/$1/$2 $linker $(flags_of "$1") -Wl,--as-needed,-S $work/$1.o |" > "$work/links/$1-$2"
    fi
    (cd "$build" && sh "$work/links/$1-$2") > "$work/link.log" 2>&1
}

# Runs program $2 of kind $1 with $3 seconds of CPU time, mutant $4 (-1: none) and $5 seconds of elapsed time, including
# sed, because a child left behind by the program may keep the pipe open. The first test that fails ends the program,
# because sed does not read on. Status 124: the elapsed time ended it.
run_for() {
    echo 124 > "$work/status"
    # shellcheck disable=SC2016 # sh expands them
    (cd "$build/tests" && TMPDIR=$work/tmp MDOT_MUTANT=$4 && export TMPDIR MDOT_MUTANT &&
        timeout -k 1 "$5" sh -c 'ulimit -t "$1" && { "$2"; echo $? > "$3"; } 2>&1 | sed "/^\[  FAILED  \]/q"' \
            run "$3" "$work/$1/$2" "$work/status") > "$work/test.log" 2>&1 || true
    read -r status < "$work/status"
    [ "$status" -ne 77 ] || status=0 # skipped
    rm -rf "$work/tmp/"*
    return "$status"
}

# The same, with a limit of elapsed time for programs that sleep for ever. On a busy machine, a program that only waits
# for a core may reach it. Therefore the program then runs without the mutant, and the mutant up to three times more if
# that run takes long, too.
run() {
    for attempt in 1 2 3 4; do
        status=0
        run_for "$1" "$2" "$3" "$4" $((60 + 10 * $3)) || status=$?
        [ $status -eq 124 ] && [ "$4" -ge 0 ] && [ $attempt -lt 4 ] || break
        ! run_for "$1" "$2" "$3" -1 $((20 + 2 * $3)) || { status=124; break; }
    done
    return $status
}

# Runs the built program $1 once in all, and adds its CPU time in milliseconds to `durations`.
measure() {
    ! grep -q " $1\$" "$work/durations" || return 0
    target=$(target_of "$1")
    (
        status=0
        cd "$build/tests"
        TMPDIR="$work/tmp" timeout -k 1 600 "$build/$target" > "$work/test.log" 2>&1 || status=$?
        echo $status
        times
    ) > "$work/measured"
    read -r status < "$work/measured"
    [ "$status" = 0 ] || [ "$status" = 77 ] || { echo "mutate.sh: $1 fails:"; tail -n 20 "$work/test.log"; exit 2; } >&2
    # the last line is the time of child processes, for example 0m1.230s 0m0.040s
    tail -n 1 "$work/measured" | tr ms '  ' |
        awk -v name="$1" '{ print int(1000 * (60 * ($1 + $3) + $2 + $4)), name }' >> "$work/durations"
}

# Links program $2 (kind $1) at the first use for $file, and runs it without a mutant.
prepare() {
    [ ! -f "$work/$1/$2" ] || return 0
    link_program "$1" "$2" && run "$1" "$2" 600 -1 ||
        { echo "mutate.sh: $2 ($1) fails without a mutant of $file:"; tail -n 20 "$work/link.log" "$work/test.log"; exit 2; } >&2
}

# Prints the programs in $1 that leave malloc to the sanitizer.
keep_allocator() {
    for program in $1; do
        nm "$build/$(target_of "$program")" | grep -q ' T malloc$' || echo "$program"
    done
}

# Prints the first program in $2 (kind $1) that notices mutant $3.
find_killer() {
    for program in $2; do
        prepare "$1" "$program"
        limit=$(awk -v name="$program" '$2 == name { print int($1 / 100) + 5 }' "$work/durations")
        run "$1" "$program" "$limit" "$3" || { echo "$program"; return; }
    done
}

# Whether mutant $1 makes no difference to an optimised object file.
is_equal() {
    "$mutants" write "$file" "$1" > "$work/mutant/$base"
    [ -f "$work/original.o" ] || compile "$work/original/$base" "$work/original.o" -O2 &&
        compile "$work/mutant/$base" "$work/mutant.o" -O2 && cmp -s "$work/mutant.o" "$work/original.o"
}

# Whether tests/mutation/equal.txt lists mutant $1: the file, and the changed line, or "without" and a removed one.
is_listed() {
    line=$("$mutants" write "$file" "$1" | diff "$file" - |
        awk '/^< / { sub(/^< */, ""); old = old $0 } /^> / { sub(/^> */, ""); new = new $0 }
            END { print (new == ";" ? "without " old : new) }')
    awk -F '\t' -v file="$file" -v line="$line" '$1 == file && $2 == line { found = 1 } END { exit !found }' tests/mutation/equal.txt
}

# report RESULT PROGRAM NUMBER
report() {
    awk -F '\t' -v result="$1" -v program="$2" -v number="$3" -v log_file="$log" -v sum="$sum" '$2 != number { next }
        { if (result == "survived") printf "%s:%s: %s (mutant %s)\n", $1, $3, $5, number
          if (log_file != "") printf "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", result, program, $1, $3, number, $5, sum >> log_file
        }' "$work/of_file"
    printf '%s\t%s\n' "$1" "$file" >> "$work/results"
}

# Takes the log's results for this file's text, and removes these mutants from `of_file`.
recall() {
    [ -z "$log" ] || [ ! -s "$log" ] || {
        awk -F '\t' -v file="$file" -v sum="$sum" -v results="$work/results" -v left="$work/left_of_file" '
            NR == FNR { if ($3 == file && $7 == sum) result[$5] = $1; next }
            ($2 in result) && result[$2] != "survived" { printf "%s\t%s\n", result[$2], file >> results; next }
            { print > left }' "$log" "$work/of_file"
        if [ -s "$work/left_of_file" ]; then mv "$work/left_of_file" "$work/of_file"; else : > "$work/of_file"; fi
    }
}

# settle NUMBER KILLER
settle() {
    if [ -n "$2" ]; then report killed "$2" "$1"
    elif is_listed "$1" || is_equal "$1"; then report equal - "$1"
    else report survived - "$1"; fi
}

# ---- Mutants ----------------------------------------------------------------------------------------------------------------

# Makes plain.o with all function mutants of $file; sets $numbers to the compiling ones.
make_plain() {
    numbers=$(awk -F '\t' '$4 == "function" { print $2 }' "$work/of_file")
    while [ -n "$numbers" ]; do
        # shellcheck disable=SC2086 # numbers
        "$mutants" combine "$file" $numbers > "$work/mutant/combined.c"
        compile "$work/mutant/combined.c" "$work/plain.o" -O0 -fmax-errors=0 && return
        grep -oE '(^|[^0-9a-z_])mutant_[0-9]+:[0-9:]* error' "$work/compile.log" |
            sed -E 's/.*mutant_([0-9]+).*/\1/' | sort -u > "$work/broken"
        [ -s "$work/broken" ] || { tail -n 20 "$work/compile.log" >&2; exit 2; }
        for number in $(cat "$work/broken"); do report broken - "$number"; done
        numbers=$(echo "$numbers" | grep -vxFf "$work/broken") || true
    done
    cp "$work/original/$base" "$work/mutant/combined.c"
    compile "$work/mutant/combined.c" "$work/plain.o" -O0
}

# Prints those of the programs $2 that take less than $1 ms, the quickest first.
by_duration() {
    for program in $2; do awk -v name="$program" -v most="$1" '$2 == name && $1 < most { print }' "$work/durations"; done |
        sort -n | cut -d ' ' -f 2
}

# Runs the programs $1 with each of the mutants $2, and sets $left to those that they do not notice.
judge() {
    left=
    for number in $2; do
        killer=$(find_killer plain "$1" "$number") || exit 2
        if [ -n "$killer" ]; then report killed "$killer" "$number"; else left="$left $number"; fi
    done
}

# Mutants outside functions: one object each.
judge_constants() {
    for number in $constants; do
        "$mutants" write "$file" "$number" > "$work/mutant/$base"
        if compile "$work/mutant/$base" "$work/plain.o" -O0; then
            rm -rf "$work/plain" && mkdir "$work/plain"
            killer=
            for program in $tests; do
                link_program plain "$program" && run plain "$program" 120 "$number" || { killer=$program; break; }
            done
            settle "$number" "$killer"
        else
            report broken - "$number"
        fi
    done
}

for folder in $(for file in $files; do dirname "$file"; done | awk '!seen[$0]++'); do
    of_folder=$(for file in $files; do [ "$(dirname "$file")" != "$folder" ] || echo "$file"; done)
    # shellcheck disable=SC2086 # names of files
    "$mutants" list "$seed" "$sample" $of_folder
done > "$work/list"
: > "$work/durations"
echo "$(wc -l < "$work/list") mutants, seed $seed"
for file in $(cut -f 1 "$work/list" | uniq); do
    awk -F '\t' -v file="$file" '$1 == file' "$work/list" > "$work/of_file"
    command=$(compile_command "$file") base=$(basename "$file")
    sum=$(cat "$file" tests/mutation/mutants.c | cksum | cut -d ' ' -f 1)
    recall
    [ -s "$work/of_file" ] || continue
    own=$(own_tests "$file" | built)
    others=$(other_tests "$file" | built | grep -vxF "${own:-(none)}") || true
    # shellcheck disable=SC2086 # names of programs
    build_programs $own
    for program in $own; do measure "$program"; done
    own=$(by_duration 600000 "$own")
    tests=$own
    rm -rf "$work/plain" "$work/sanitized" "$work/original.o" && mkdir "$work/plain" "$work/sanitized"
    cp "$file" "$work/original/$base"
    make_plain
    constants=$(awk -F '\t' '$4 != "function" { print $2 }' "$work/of_file")
    judge "$own" "$numbers"
    if [ -n "$left$constants" ] && [ -n "$others" ]; then
        # shellcheck disable=SC2086 # names of programs
        build_programs $others
        for program in $others; do measure "$program"; done
        others=$(by_duration 3000 "$others")
        tests="$own $others"
        judge "$others" "$left"
    fi
    [ -n "$tests" ] || { echo "mutate.sh: $file: the build has none of its test programs" >&2; exit 2; }
    if [ -n "$left" ]; then
        compile "$work/mutant/combined.c" "$work/sanitized.o" -O0 "$(flags_of sanitized)"
        sanitizable=$(keep_allocator "$own")
        for number in $left; do
            killer=$(find_killer sanitized "$sanitizable" "$number") || exit 2
            settle "$number" "$killer"
        done
    fi
    judge_constants
done

# ---- Report -----------------------------------------------------------------------------------------------------------------

awk -F '\t' -v least="$least" '
{ folder = $2; sub(/\/[^\/]*$/, "", folder); if (!(folder in seen)) { seen[folder]; order[++folders] = folder }
  count[folder, $1]++; count["all", $1]++ }
function print_line(name,    killed, judged, share, middle, half, line) {
    killed = count[name, "killed"]
    judged = killed + count[name, "survived"]
    share = judged > 0 ? killed / judged : 1
    line = sprintf("%-20s %6d killed %6d survived %6d equal %6d not compiled   score %.1f %%", name, killed,
                   count[name, "survived"], count[name, "equal"], count[name, "broken"], 100 * share)
    if (judged > 0 && name != "all") {
        middle = (share + 1.92 / judged) / (1 + 3.84 / judged)
        half = 1.96 * sqrt(share * (1 - share) / judged + 0.96 / judged ^ 2) / (1 + 3.84 / judged)
        line = line sprintf(" (%.1f to %.1f)", 100 * (middle - half), 100 * (middle + half))
    }
    print line
    return 100 * share
}
END {
    for (i = 1; i <= folders; i++) total = print_line(order[i])
    if (folders > 1) total = print_line("all")
    if (total < least) { printf "the score is below %s %%\n", least; exit 1 }
}' "$work/results"
