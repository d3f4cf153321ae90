#!/bin/sh
# A program with more rights than the user who starts it (setuid) ignores the environment variables of mdot, because that user
# sets them. The same program without the additional rights follows them. Needs root, to make such a program.
# Usage: privileged.sh RUN_ENTRY PREDICTOR
set -eu
program=$1 predictor=$2
[ "$(id -u)" = 0 ] || { echo "skipped: only root can make a program that runs as another user"; exit 77; }
command -v setpriv > /dev/null || { echo "skipped: there is no setpriv"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
chmod 755 "$work"
cp "$predictor" "$work/predictor.mdot"
chmod 644 "$work/predictor.mdot"
cp "$program" "$work/plain"
cp "$program" "$work/privileged"
chmod 755 "$work/plain"
chmod 4755 "$work/privileged"

# run PROGRAM [VARIABLE=VALUE]…: as a user without rights
run() {
    name=$1
    shift
    setpriv --reuid=65534 --regid=65534 --clear-groups env "$@" "$work/$name" "$work/predictor.mdot" 40 evaluate > "$work/output" 2>&1
}
run plain LC_ALL=C || { echo "skipped: the program does not run as another user here: $(cat "$work/output")"; exit 77; }
for variable in MDOT_DEVICE MDOT_CPU_ISA; do
    if run plain "$variable=nonsense"; then echo "$variable is ignored in an ordinary program"; exit 1; fi
    grep -q nonsense "$work/output" || { echo "$variable: the message is: $(cat "$work/output")"; exit 1; }
    run privileged "$variable=nonsense" || { echo "$variable changes a privileged program: $(cat "$work/output")"; exit 1; }
done
echo "a privileged program ignores MDOT_DEVICE and MDOT_CPU_ISA"
