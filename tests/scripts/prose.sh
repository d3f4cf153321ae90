#!/bin/sh
# Tests that scripts/check-prose.py finds each kind of fault: one text breaks each limit, and the script must name it.
# Usage: prose.sh SCRIPT
set -eu
script=$1
command -v python3 > /dev/null || { echo "skipped: python3 is missing"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
mkdir -p "$work/base" "$work/include/mdot" "$work/tests/golden/cli"
cd "$work"

# Good prose: 32 words with a reason and an example.
good='The planner merges two buffers because buffer lifetimes are disjoint. For example, a convolution result reuses the
input memory. The kernel order remains fixed. Each pass runs once per bucket, and tests compare both graphs.'
mark='#' # apart, so that the bad comments below are no comments of this file

# expect_pass FILE TEXT: the file follows all rules.
expect_pass() {
    printf '%s\n' "$2" > "$1"
    output=$("$script" "$1") || { echo "refused: $2: $output"; exit 1; }
}
# expect_fault FILE TEXT PART: the script fails, and its output contains PART.
expect_fault() {
    printf '%s\n' "$2" > "$1"
    if output=$("$script" "$1"); then
        echo "accepted: $2"
        exit 1
    fi
    case $output in
    *"$3"*) ;;
    *) echo "$2: \"$output\" lacks \"$3\""; exit 1 ;;
    esac
}

expect_pass a.md "$good"
expect_fault a.md "$good The loader checks what follows." 'documents: what/who'
expect_fault a.md "$good The loader returns no name." 'documents: negations'
expect_fault a.md "$good The header says so." 'documents: told/said'
expect_fault a.md "$good The size of the rows of weights is fixed." 'documents: of '
expect_fault a.md "$good Plans keep their order." 'documents: its/their '
expect_fault a.md "$good The pass that runs last wins." 'documents: that/which '
expect_fault a.md "$(echo "$good" | tr -d '.')" 'documents: words/sentence'
expect_fault a.md "$good The rooms are components." 'a.md: rejected word "rooms"'
expect_pass a.md "$good Use \`rooms\` and
\`\`\`
what is told
\`\`\`"
expect_pass a.c "/* $good */ int what, who, told;"
expect_fault a.c "/* $good Sizes of rows of weights. */" 'C comments: of '
expect_fault include/mdot/a.h "/* $good Its size is fixed. */" 'public headers: its/their '
expect_fault a.c "/* $good */
// The handle keeps its armor." 'a.c: rejected word "armor"'
expect_pass a.py "# $(echo "$good" | tr '\n' ' ')
told = 'what'"
expect_fault a.py "\"\"\"What the planner merges. $good\"\"\"" 'Python comments: what/who'
expect_pass a.def 'ROW("the value must be between 1 and 9") /* One row for each operator. */'
expect_fault a.def '/* What a row says. */' 'table comments: what/who'
expect_fault a.def 'ROW("the value is told by the file")' 'messages: told/said'
expect_pass a.sh "$mark Builds the library.
run what"
expect_fault a.sh "run $mark What it says." 'script comments: told/said'
expect_fault CMakeLists.txt "$mark Who reads this." 'script comments: what/who'
expect_fault base/a.c 'int f(void) { return mdot_fail(err, 1, "%s has no bytes" " at the end", name); }' 'messages: negations'
expect_fault base/a.c 'static const cli_option option = {.help = "what the model costs there", .value = 1};' 'messages: what/who'
expect_fault base/a.c 'int f(void) { return printf("the step is modelled on this machine\n"); }' 'rejected word "modelled"'
echo "$good" > tests/golden/cli/run.txt
"$script" tests/golden/cli/run.txt > /dev/null || { echo "a good help text is refused"; exit 1; }
expect_fault tests/golden/cli/run.txt '      --run   what to run' 'help: what/who'

# --worst prints the sentence to mend.
echo "What it says is nothing that nobody told." > a.md
if output=$("$script" --worst 1 a.md); then exit 1; fi
case $output in
*"a.md: What it says is nothing that nobody told."*) ;;
*) echo "--worst lacks the sentence: $output"; exit 1 ;;
esac
