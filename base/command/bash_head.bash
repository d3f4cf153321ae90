# bash completion for @NAME@(1), made by the program

# Files with one of the suffixes in $1 (onnx|job; * for all), and folders.
_@FUNCTION@_files() {
    local file
    compopt -o filenames 2>/dev/null
    while IFS= read -r file; do
        if [[ -d $file || $1 == '*' || $file =~ \.($1)$ ]]; then COMPREPLY+=("$file"); fi
    done < <(compgen -f -- "$cur")
}

_@FUNCTION@_words() {
    local word
    while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W "$1" -- "$cur")
}

# The last of a list with commas.
_@FUNCTION@_list() {
    local head=
    if [[ $cur == *,* ]]; then head=${cur%,*},; fi
    local word
    while IFS= read -r word; do COMPREPLY+=("$head$word"); done < <(compgen -W "$1" -- "${cur##*,}")
    compopt -o nospace 2>/dev/null
}

# $cur is the word that is written, $prev the one before it.
_@FUNCTION@_command() {
