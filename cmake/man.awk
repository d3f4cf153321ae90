# man.awk — turns a page of the manual of commands (`mdot help --markdown COMMAND`) into a man page, section 1.
#
#     awk -v version=0.4.0 -f man.awk predict.md > mdot-predict.1
#
# It reads the subset of Markdown that base/command/markdown.c writes: the summary in the first comment, one block with
# the synopsis, headings, definition lists of options, tables of commands, links, code, and escaped characters.

# Text for roff: a dash that can be copied, and no request at the start of a line (groff_char(7), man-pages(7)).
function roff(text) {
    gsub(/\\/, "\\e", text)
    gsub(/-/, "\\-", text)
    gsub(/`/, "\\(ga", text)
    gsub(/'/, "\\(aq", text)
    return text
}

# Code is bold. The value of an option is in italics.
function code(text,    at) {
    at = substr(text, 1, 2) == "--" ? match(text, /( |\[=)/) : 0
    if (at == 0) return "\\fB" roff(text) "\\fR"
    if (substr(text, at, 1) == " ") return "\\fB" roff(substr(text, 1, at - 1)) "\\fR \\fI" roff(substr(text, at + 1)) "\\fR"
    text = substr(text, 1, length(text) - 1)
    return "\\fB" roff(substr(text, 1, at - 1)) "\\fR[=\\fI" roff(substr(text, at + 2)) "\\fR]"
}

# A line of Markdown without its markup.
function inline(text,    out, at, mark, end) {
    while (match(text, /[\\`\[]/)) {
        at = RSTART
        mark = substr(text, at, 1)
        out = out roff(substr(text, 1, at - 1))
        text = substr(text, at + 1)
        if (mark == "\\") {
            if (text == "") return out "\n.br"
            out = out roff(substr(text, 1, 1))
            text = substr(text, 2)
        } else if (mark == "`") {
            end = index(text, "`")
            out = out code(substr(text, 1, end - 1))
            text = substr(text, end + 1)
        } else {
            end = index(text, "](")
            mark = substr(text, 1, end - 1)
            gsub(/ /, "-", mark)
            out = out "\\fB" roff(mark) "\\fR(1)"
            text = substr(text, end)
            text = substr(text, index(text, ")") + 1)
        }
    }
    out = out roff(text)
    return out ~ /^\./ ? "\\&" out : out
}

function line(text) {
    if (pending) print pending
    pending = ""
    print text
}

NR == 1 {
    sub(/^<!-- /, "")
    sub(/ \([^()]*\) -->$/, "")
    summary = $0
    next
}
/^# / {
    name = title = substr($0, 3)
    gsub(/ /, "-", name)
    printf ".TH %s 1 \"\" \"mdot %s\" \"User Commands\"\n.SH NAME\n%s \\- %s\n", roff(toupper(name)), version, roff(name),
        inline(summary)
    next
}
/^```/ {
    line(is_synopsis++ ? ".SH DESCRIPTION" : ".SH SYNOPSIS")
    is_first = 1
    next
}
is_synopsis == 1 {
    line((lines++ ? ".br\n" : "") "\\fB" roff(title) "\\fR" roff(substr($0, length(title) + 1)))
    next
}
/^## / {
    line(".SH " toupper(substr($0, 4)))
    has_commands = has_commands || $0 == "## Commands"
    is_first = 1
    next
}
/^### / {
    line(".SS " inline(substr($0, 5)))
    is_first = 1
    next
}
/^$/ {
    if (!is_first && NR > 1 && is_synopsis) pending = ".PP"
    is_first = 0
    next
}
/^\| \[/ {
    split($0, cell, " \\| ")
    sub(/^\| /, "", cell[1])
    sub(/ \|$/, "", cell[2])
    pending = ""
    line(".TP\n" inline(cell[1]) "\n" inline(cell[2]))
    next
}
/^\|/ { next }
/^`.*`$/ {
    held = inline($0)
    next
}
/^:   / {
    pending = ""
    line(".TP\n" held "\n" inline(substr($0, 5)))
    held = ""
    next
}
{
    if (held) line(held)
    held = ""
    line(inline($0))
}
END { if (!has_commands) print ".SH SEE ALSO\n\\fBmdot\\fR(1)" }
