#!/bin/bash
# Tests completion as bash runs it: the words are split as the shell splits them, and the result is the list offered by
# Tab. zsh, if installed, offers the same on the first and on later Tabs. Usage: completion.sh FOLDER with the scripts.
set -eu
folder=$1
source "$folder/mdot"
compopt() { :; } # only meaningful in an interactive shell
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdir folder
touch net.onnx net.job net.mdot notes.txt

# expect LIST word…: Tab offers LIST while the user types the last word
expect() {
    local wanted=$1
    shift
    COMP_WORDS=(mdot "$@")
    COMP_CWORD=$#
    COMPREPLY=()
    _mdot
    local got=${COMPREPLY[*]-}
    if [ "$got" != "$wanted" ]; then
        echo "mdot $*: offered \"$got\", not \"$wanted\""
        exit 1
    fi
}

expect "predict" pre
expect "calibrate compile check converge" c
expect "--precision" predict --pre
expect "--gpu --gpu-spec --gpus" predict --gpu
expect "fp32 fp8 fp8-rowwise fp8-blockwise" predict --precision f
expect "fp32 fp8 fp8-rowwise fp8-blockwise" predict --precision = f
expect "--precision=fp32 --precision=fp8 --precision=fp8-rowwise --precision=fp8-blockwise" predict --precision=f
expect "fp32 tf32 amp-fp16 amp-bf16 bf16 pytorch mixed-bf16 mixed-fp16 fp8 fp8-rowwise mxfp8 fp8-blockwise" predict --precision =
expect "H100-SXM-80GB H100-PCIe-80GB H100-NVL-94GB" predict net.onnx -g H100
expect "A30,H100-SXM-80GB A30,H100-PCIe-80GB A30,H100-NVL-94GB" predict net.onnx -g A30,H100
expect "x86-64-v3 x86-64-v4 x86-64-bf16 x86-64-amx" compile --target cpu : x
expect "x86-64-v3 x86-64-v4 x86-64-bf16 x86-64-amx aarch64-neon aarch64-bf16" compile -t cpu :
expect "x86-64-v4" compile --target = cpu : x86-64-v3,cpu : x86-64-v4
expect "net.job net.onnx" predict net
expect "folder" predict fo
expect "net.job net.onnx net.mdot" bench net
expect "net.mdot" predict net.onnx --model n
expect "net.onnx" compile n
expect "notes.txt" check no
expect "" predict --batch ""
expect "verify" help ver
expect "--json" inspect net.mdot --js

# zsh completes at the first Tab, which reads the file, and at the next ones.
if command -v zsh >/dev/null; then
    mkdir zdotdir
    echo "fpath=('$folder' \$fpath); PROMPT='> '; autoload -U compinit; compinit -u -D; bindkey '^X' list-choices" \
        >zdotdir/.zshrc
    cat >pty.zsh <<'END'
zmodload zsh/zpty
zpty shell env TERM=dumb ZDOTDIR=zdotdir zsh -i
for line offered in 'mdot predict --precision f' fp8-rowwise 'mdot predict net' net.onnx 'mdot predict --precision=f' '=fp8-rowwise'; do
    zpty -w -n shell "$line"$'\x18'
    zpty -r shell output "*$offered*"
    zpty -w -n shell $'\x15'
done
END
    timeout 60 zsh -f pty.zsh || { echo "zsh does not complete"; exit 1; }
fi
