#!/bin/sh
# help_page.sh PROGRAM: prints the manual's page of a program without options, from its --help, for man.awk.
set -eu
name=$(basename "$1")
"$1" --help | awk -v name="$name" '
NR == 1 { sub(/^usage: /, ""); synopsis = $0; next }
{ text = text $0 "\n" }
END {
    summary = text
    sub(/^\n*/, "", summary)
    sub(/\.[ \n].*/, "", summary)
    gsub(/\n/, " ", summary)
    print "<!-- " tolower(substr(summary, 1, 1)) substr(summary, 2) " (generated) -->"
    print "# " name "\n\n```text\n" synopsis "\n```"
    printf "%s", text
    print "\n## Options\n\n`--help`\n:   show a short help\n\nExit status: 0 success, 1 failure, 2 usage error."
}'
