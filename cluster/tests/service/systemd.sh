#!/bin/sh
# The systemd units: they are valid, expose little, and mdotd takes the socket that systemd passes.
#
#     systemd.sh MDOTD PREDICTOR UNITS
set -eu
mdotd=$1 predictor=$2 units=$3
for program in systemd-analyze systemd-socket-activate curl; do
    command -v $program > /dev/null || { echo "SKIPPED: $program is missing"; exit 77; }
done
work=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill $pid 2> /dev/null || true; wait; rm -rf "$work"' EXIT INT TERM
# an exposure of 1.0 of 10, as the threshold counts tenths
systemd-analyze security --offline=true --threshold=10 "$units/mdotd.service" > "$work/security" || { tail -3 "$work/security"; exit 1; }
tail -1 "$work/security"
sed "s|/usr/bin/mdotd|$mdotd|" "$units/mdotd.service" > "$work/mdotd.service"
cp "$units/mdotd.socket" "$work"
systemd-analyze verify "$work/mdotd.socket" "$work/mdotd.service" > "$work/verify" 2>&1 || true
! grep -E 'Unknown|Failed to parse|Invalid' "$work/verify"
# The program starts at the first connection.
systemd-socket-activate --listen "$work/s" "$mdotd" --model "$predictor" --folder "$work" 2> "$work/log" &
pid=$!
for i in $(seq 100); do [ -S "$work/s" ] && break || sleep 0.1; done
answer=$(curl -s --retry 20 --retry-connrefused --unix-socket "$work/s" http://mdotd/healthz)
[ "$answer" = ok ] || { echo "systemd.sh: the answer is \"$answer\""; cat "$work/log"; exit 1; }
