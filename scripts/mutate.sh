#!/bin/sh
# Changes code in small ways and counts the changes that no test notices:
#
#     scripts/mutate.sh [OPTION…] [FILE or FOLDER…, by default runtime/job runtime/perf integrations/slurm]
#
#     --sample N     number of random mutants, by default 100; the same N and seed give the same mutants of the same code
#     --all          every mutant, some 11,000
#     --seed N       by default 1
#     --own          run the programs of the file only
#     --least PCT    exit status 1 if the score is below
#     --build DIR    a build tree, by default build/release
#     --log FILE     append a line for each mutant: result, program that noticed it, file, line, number and change
#
# tests/mutation/mutants.c makes the mutants. All mutants of a file are compiled together, without optimisation, and a
# variable of the environment selects one when the program starts. The file is linked into its test programs: those that are
# named after it, and those of its row in tests/sources.txt; and into those others that include its header and take at most a
# second. The quickest ones run first. If they pass, its own programs run again with the address and undefined-behaviour
# sanitizers. Programs of tests/growth are left out, because they take long.
#
# A mutant is *killed* if a program fails, crashes, leaks, or takes ten times as long as without the mutant. It is *equal* if
# the optimised object file is that of the original. It *survives* otherwise. The score is the share of killed ones among
# killed and surviving ones.
#
# Survivors are printed as "FILE:LINE: OLD -> NEW (mutant NUMBER)"; `DIR/tests/mutation/mutants write FILE NUMBER` prints
# the whole file. Files that the build omits, for example plugins without Slurm's headers, are named and left out. The
# script runs at the lowest priority, and one process at a time.
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
[ $# -gt 0 ] || set -- runtime/job runtime/perf integrations/slurm
[ -f "$build/build.ninja" ] || { echo "mutate.sh: $build has no build.ninja: run cmake --preset release" >&2; exit 2; }
build=$(cd "$build" && pwd)
tree=$(pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
mkdir "$work/original" "$work/mutant" "$work/tmp" "$work/links"
: > "$work/results"
export CCACHE_DISABLE=1
renice -n 19 $$ > /dev/null 2>&1 || true
ulimit -c 0
export ASAN_OPTIONS=allocator_may_return_null=1 # as in tests of the sanitized build
linker=
for name in lld gold; do command -v "ld.$name" > /dev/null && { linker=-fuse-ld=$name; break; }; done

# ---- Files and their test programs ------------------------------------------------------------------------------------------

# Prints the command that compiles $1, without its input, its output and its optimisation.
compile_command() {
    awk -v file="$tree/$1" '
        /^ *"command":/ {
            command = $0; sub(/^ *"command": "/, "", command); sub(/",$/, "", command); gsub(/\\"/, "\"", command)
        }
        index($0, "\"file\": \"" file "\"") { print command; exit }' "$build/compile_commands.json" |
        sed -E 's/ -o [^ ]+ -c [^ ]+$//; s/ -O[0-3sgz]*( |$)/ /g; s/ -g( |$)/ /g; s/^ccache //'
}

# Prints the names of the programs that are tests of $1 first of all.
own_tests() {
    folder=$(dirname "$1") name=$(basename "$1" .c)
    [ ! -f "tests/$folder/test_$name.c" ] || echo "test_$name"
    for part in $(echo "$folder" | tr / ' '); do
        [ ! -f "tests/$folder/test_${part}_$name.c" ] || echo "test_${part}_$name"
    done
    awk -v file="$1" '$1 == file { for (i = 2; i <= NF; i++) print $i }' tests/sources.txt
}

# Prints the names of the programs that include the header of $1.
other_tests() {
    [ $only_own = yes ] ||
        find tests -path tests/growth -prune -o -name 'test_*.c' -exec grep -lF "#include \"${1%.c}.h\"" {} + |
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
        else
            files="$files $file"
        fi
    done
done
[ -n "$files" ] || { echo "mutate.sh: no files" >&2; exit 2; }

# Builds everything that a mutant is linked to. A program that the build omits, for example without Slurm's headers, is no test.
ninja -C "$build" --quiet build.ninja > /dev/null
targets=$(ninja -C "$build" -t targets all | sed 's/: .*//' | grep -E '(^|/)(test_[a-z0-9_]+|mutants)$')
for file in $files; do own_tests "$file"; other_tests "$file"; done | sort -u > "$work/programs"
for program in $(cat "$work/programs") mutants; do
    target=$(echo "$targets" | grep -E "^tests/(.*/)?$program$" | grep -v '^tests/growth/' | head -n 1) || true
    [ -z "$target" ] || echo "$program $target"
done > "$work/targets"
# shellcheck disable=SC2046 # names of targets
ninja -C "$build" --quiet $(awk '{ print $2 }' "$work/targets") > "$work/build.log" || { tail -n 40 "$work/build.log"; exit 2; }
mutants=$build/$(awk '$1 == "mutants" { print $2 }' "$work/targets")

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
        target=$(awk -v name="$2" '$1 == name { print $2 }' "$work/targets")
        # The object stands in front of the libraries, so that they are not searched for its functions.
        ninja -C "$build" -t commands "$target" | tail -n 1 |
            sed "s|-o $target |-o $work/$1/$2 $linker $(flags_of "$1") -Wl,--as-needed,-S $work/$1.o |" > "$work/links/$1-$2"
    fi
    (cd "$build" && sh "$work/links/$1-$2") > "$work/link.log" 2>&1
}

# Runs program $2 of kind $1 for $3 seconds with mutant $4 (-1: none).
run() {
    status=0
    (cd "$build/tests" && TMPDIR="$work/tmp" MDOT_MUTANT=$4 exec timeout -k 1 "$3" "$work/$1/$2") > "$work/test.log" 2>&1 ||
        status=$?
    [ $status -ne 77 ] || status=0 # skipped
    rm -rf "$work/tmp/"*
    return $status
}

# Runs the built program $1 once in all, and adds its time in milliseconds to `durations`.
measure() {
    target=$(awk -v name="$1" '$1 == name { print $2 }' "$work/targets")
    before=$(date +%s%N) status=0
    (cd "$build/tests" && TMPDIR="$work/tmp" exec timeout -k 1 600 "$build/$target") > "$work/test.log" 2>&1 || status=$?
    [ $status = 0 ] || [ $status = 77 ] || { echo "mutate.sh: $1 fails:"; tail -n 20 "$work/test.log"; exit 2; } >&2
    echo "$((($(date +%s%N) - before) / 1000000)) $1" >> "$work/durations"
}

# Links program $2 of kind $1 at its first use for $file, and runs it without a mutant.
prepare() {
    [ ! -f "$work/$1/$2" ] || return 0
    link_program "$1" "$2" && run "$1" "$2" 600 -1 ||
        {
            echo "mutate.sh: $2 ($1) fails without a mutant of $file:"
            tail -n 20 "$work/link.log" "$work/test.log"
            exit 2
        } >&2
}

# Prints the first of the programs $2 of kind $1 that notices mutant $3.
find_killer() {
    for program in $2; do
        prepare "$1" "$program"
        limit=$(awk -v name="$program" '$2 == name { print int($1 / 100) + 10 }' "$work/durations")
        run "$1" "$program" "$limit" "$3" || { echo "$program"; return; }
    done
}

# Whether mutant $1 makes no difference to an optimised object file.
is_equal() {
    "$mutants" write "$file" "$1" > "$work/mutant/$base"
    [ -f "$work/original.o" ] || compile "$work/original/$base" "$work/original.o" -O2 &&
        compile "$work/mutant/$base" "$work/mutant.o" -O2 && cmp -s "$work/mutant.o" "$work/original.o"
}

# report RESULT PROGRAM NUMBER
report() {
    awk -F '\t' -v result="$1" -v program="$2" -v number="$3" -v log_file="$log" '$2 != number { next }
        { if (result == "survived") printf "%s:%s: %s (mutant %s)\n", $1, $3, $5, number
          if (log_file != "")
              printf "%s\t%s\t%s\t%s\t%s\t%s\n", result, program, $1, $3, number, $5 >> log_file }' "$work/of_file"
    printf '%s\t%s\n' "$1" "$file" >> "$work/results"
}

# settle NUMBER KILLER
settle() {
    if [ -n "$2" ]; then report killed "$2" "$1"
    elif is_equal "$1"; then report equal - "$1"
    else report survived - "$1"; fi
}

# ---- Mutants ----------------------------------------------------------------------------------------------------------------

# Makes plain.o with all mutants of functions of $file; sets $numbers to those that compile.
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

# Mutants outside of functions: each in an object of its own.
judge_constants() {
    for number in $(awk -F '\t' '$4 != "function" { print $2 }' "$work/of_file"); do
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

# shellcheck disable=SC2086 # names of files
"$mutants" list "$seed" "$sample" $files > "$work/list"
: > "$work/durations"
for program in $(for file in $(cut -f 1 "$work/list" | uniq); do own_tests "$file"; other_tests "$file"; done | built); do
    measure "$program"
done
echo "$(wc -l < "$work/list") mutants, seed $seed"
for file in $(cut -f 1 "$work/list" | uniq); do
    awk -F '\t' -v file="$file" '$1 == file' "$work/list" > "$work/of_file"
    command=$(compile_command "$file") base=$(basename "$file")
    own=$(own_tests "$file" | built)
    # Other programs take at most a second.
    tests=$({ own_tests "$file"; other_tests "$file"; } | built | awk -v own="$own" '
        BEGIN { count = split(own, name, "\n"); for (i = 1; i <= count; i++) is_own[name[i]] }
        NR == FNR { took[$2] = $1; next } $1 in is_own || took[$1] < 1000 { print took[$1], $1 }' "$work/durations" - |
        sort -n | cut -d ' ' -f 2)
    [ -n "$tests" ] || { echo "mutate.sh: $file has no test program" >&2; exit 2; }
    rm -rf "$work/plain" "$work/sanitized" "$work/original.o" && mkdir "$work/plain" "$work/sanitized"
    cp "$file" "$work/original/$base"
    make_plain
    left=
    for number in $numbers; do
        killer=$(find_killer plain "$tests" "$number") || exit 2
        if [ -n "$killer" ]; then report killed "$killer" "$number"; else left="$left $number"; fi
    done
    if [ -n "$left" ]; then
        compile "$work/mutant/combined.c" "$work/sanitized.o" -O0 "$(flags_of sanitized)"
        for number in $left; do
            killer=$(find_killer sanitized "$own" "$number") || exit 2
            settle "$number" "$killer"
        done
    fi
    judge_constants
done

# ---- Report -----------------------------------------------------------------------------------------------------------------

awk -F '\t' -v least="$least" '
{ folder = $2; sub(/\/[^\/]*$/, "", folder); if (!(folder in seen)) { seen[folder]; order[++folders] = folder }
  count[folder, $1]++; count["all", $1]++ }
function score(name,    judged) {
    judged = count[name, "killed"] + count[name, "survived"]
    return judged > 0 ? 100 * count[name, "killed"] / judged : 100
}
function print_line(name) {
    printf "%-20s %6d killed %6d survived %6d equal %6d not compiled   score %.1f %%\n", name, count[name, "killed"],
           count[name, "survived"], count[name, "equal"], count[name, "broken"], score(name)
}
END {
    for (i = 1; i <= folders; i++) print_line(order[i])
    print_line("all")
    if (score("all") < least) { printf "the score is below %s %%\n", least; exit 1 }
}' "$work/results"
