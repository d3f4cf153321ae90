# clang-dump.awk — parses clang's -ast-dump, one node per line, for scripts with rules behind it (awk -f this -f rules).
# For each node it sets depth, kind and place; `rest`, the text after both; and nth[depth], the node's index among
# siblings. above[depth] is the ancestor's kind.
function place(text) { # parses a location: "FILE:LINE:COLUMN", "line:LINE:COLUMN", "col:COLUMN"
    count = split(text, part, ":")
    if (text ~ /^col:/) { column = part[2] + 0; return }
    if (text ~ /^line:/) { line = part[2] + 0; column = part[3] + 0; return }
    if (text ~ /^</ || count < 3) { return }
    file = part[1]; line = part[count - 1] + 0; column = part[count] + 0
}
{
    match($0, /[A-Za-z<]/)
    depth = (RSTART - 1) / 2
    node = substr($0, RSTART)
    if (node ~ /^<<<NULL>>>/) { nth[depth]++; next }
    split(node, word, " ")
    kind = word[1]
    # one or two pairs of angle brackets follow: <locations> and, for casts, <kind of cast>
    rest = node
    if (match(rest, /<[^>]*>/)) {
        where = substr(rest, RSTART + 1, RLENGTH - 2)
        rest = substr(rest, RSTART + RLENGTH)
        if (where ~ /^<invalid sloc/) { sub(/^[^>]*>/, "", rest) }
        else {
            split(where, ends, ", ")
            place(ends[1]); begin_file = file; begin_line = line; begin_column = column
            if (ends[2] != "") place(ends[2])
            end_line = line; end_column = column
        }
    }
    if (rest ~ /^ (line|col):[0-9]/ || rest ~ /^ [^ ']*:[0-9]+:[0-9]+ /) { split(rest, token, " "); place(token[1]) }
    nth[depth]++; nth[depth + 1] = 0; above[depth] = kind
}
