#!/bin/sh
# Checks generated kernels for the same instructions as at another revision, for changes that must not alter them:
#
#     scripts/same-kernels.sh REVISION [MODEL.onnx…]
#
# Builds that revision's command beside this tree's and compiles every model with both. Compares the artefacts function
# by function: instructions, jumps relative to the function, and loaded constants; and the CUDA source generated for
# sm_80, without NVRTC. The default models are the shipped predictor, ONNX's node tests if Debian's libonnx-testdata is
# installed, and the encoders of ../shared if they exist. Ends with a line of counts. Exit status 0 only if all are
# equal. A model that fails to compile at both revisions counts as refused.
set -eu
cd "$(dirname "$0")/.."
[ $# -ge 1 ] || { sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 2; }
revision=$(git rev-parse --verify "$1^{commit}")
shift
work=$PWD/build/same-kernels
mkdir -p "$work"

build() { # source folder, build folder
    cmake -S "$1" -B "$2" -G Ninja -DCMAKE_BUILD_TYPE=Release -DMDOT_TESTS=OFF > "$work/build.log" 2>&1 &&
        cmake --build "$2" --target mdot_cli >> "$work/build.log" 2>&1 || { cat "$work/build.log"; exit 1; }
}
[ -d "$work/source" ] || git worktree add --detach "$work/source" "$revision" > /dev/null 2>&1 ||
    { git worktree prune; git worktree add --detach "$work/source" "$revision" > /dev/null; }
git -C "$work/source" checkout --detach -q "$revision"
build "$work/source" "$work/then"
build . "$work/now"

# One line per function, sorted: name and instructions, without addresses of code and constants. Constants are compared
# as the word set in .rodata.
cat > "$work/listing.sh" <<'LISTING'
#!/bin/sh
set -eu
command=$1 model=$2 out=$3
if ! "$command" compile "$model" -o "$out.mdot" --quiet 2> "$out.refused"; then
    sed 's/^mdot compile: //' "$out.refused" > "$out.listing"
    rm -f "$out.refused"
    exit 0
fi
{
    objdump -d --no-show-raw-insn --no-addresses -j .text "$out.mdot" | awk '
        function put() { if (name != "") print name "\t" body }
        /^<.*>:$/ { put(); name = substr($0, 2, length($0) - 3); body = ""; next }
        name == "" || /^[ \t]*(nop|data16|cs nop|xchg +%ax,%ax|int3)/ || NF == 0 { next }
        { sub(/[-+]?0x[0-9a-f]+\(%rip\).*/, "CONSTANT"); sub(/^[ \t]+/, ""); sub(/[ \t]*#.*/, ""); body = body $0 ";" }
        END { put() }' | sort
    objcopy -O binary -j .rodata "$out.mdot" "$out.rodata" 2> /dev/null &&
        od -An -v -t x4 -w4 "$out.rodata" | sort -u | tr -d '\n'
    echo
    MDOT_NVRTC=/nonexistent "$command" compile "$model" -o "$out.cuda.mdot" --quiet --target sm_80 --dump cuda \
        2> /dev/null | sed '/^ *\/\//d' || true # without comments
} > "$out.listing"
rm -f "$out.mdot" "$out.cuda.mdot" "$out.rodata" "$out.refused"
LISTING

models=$work/models
if [ $# -gt 0 ]; then
    printf '%s\n' "$@" > "$models"
else
    {
        echo weights/predictor.onnx
        for folder in /usr/share/libonnx-testdata/data/node ../shared/onnx/predictor ../shared/onnx/real/transformer; do
            [ ! -d "$folder" ] || find "$folder" -name '*.onnx' -size -20M | sort
        done
    } > "$models"
fi
rm -rf "$work/listings"
mkdir -p "$work/listings"
for side in then now; do
    awk -v out="$work/listings" -v side="$side" '{ printf "%s\n%s/%d.%s\n", $0, out, NR, side }' "$models" |
        xargs -P "$(nproc)" -n 2 sh "$work/listing.sh" "$work/$side/cli/mdot"
done

same=0 refused=0 different=0 number=0
while read -r model; do
    number=$((number + 1))
    then=$work/listings/$number.then.listing now=$work/listings/$number.now.listing
    if ! grep -q "	" "$then" && ! grep -q "	" "$now"; then
        refused=$((refused + 1))
    elif cmp -s "$then" "$now"; then
        same=$((same + 1))
    else
        different=$((different + 1))
        kernels=$(diff "$then" "$now" | awk -F '\t' '/^[<>]/ { print substr($1, 1, 60) }' | sort -u | head -4 | tr '\n' ' ')
        echo "$model: $kernels"
    fi
done < "$models"
echo "$same models with the same kernels, $different with different kernels, $refused refused by both"
[ "$different" -eq 0 ]
