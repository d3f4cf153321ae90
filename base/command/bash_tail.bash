}

_@FUNCTION@() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev cut= at=$((COMP_CWORD - 1))
    COMPREPLY=()
    if [[ $cur == ':' ]]; then cur= at=$COMP_CWORD; fi
    while ((at > 1)) && [[ ${COMP_WORDS[at]} == ':' ]]; do
        cut=${COMP_WORDS[at - 1]}:$cut
        at=$((at - 2))
    done
    prev=${COMP_WORDS[at]}
    local option= # zsh leaves --option=value whole
    if [[ $cur == --*=* ]]; then prev=${cur%%=*} option=$prev= cur=${cur#*=}; fi
    if [[ $cur == '=' ]]; then cur=; elif [[ $prev == '=' ]]; then prev=${COMP_WORDS[at - 1]}; fi
    cur=$cut$cur
    _@FUNCTION@_command
    if ((${#COMPREPLY[@]} > 0)); then COMPREPLY=("${COMPREPLY[@]#"$cut"}") && COMPREPLY=("${COMPREPLY[@]/#/$option}"); fi
}

complete -F _@FUNCTION@ @NAME@
