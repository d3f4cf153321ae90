#!/bin/sh
# Holds mdotd to openapi.json: schemathesis (PyPI) sends requests that the contract allows, and others, and compares answers.
#
#     contract.sh MDOTD PREDICTOR JOB OPENAPI [PYTHON with schemathesis]
#
# Skips (77) without schemathesis.
set -eu
mdotd=$1 predictor=$2 job=$3 openapi=$4 python=${5:-python3}
folder=$(cd "$(dirname "$0")" && pwd)
"$python" -c 'import schemathesis' 2> /dev/null || {
    echo "SKIPPED: $python lacks schemathesis (pip install schemathesis)"
    exit 77
}
work=$(mktemp -d)
trap 'kill $pid 2> /dev/null || true; wait; rm -rf "$work"' EXIT INT TERM
echo "contract-test-token-0123456789" > "$work/token"
port=$("$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
"$mdotd" --socket "$work/s" --tcp "$port" --token-file "$work/token" --model "$predictor" --store "$work/steps.store" \
    --folder "$work" --client-rate 0 --plan-seconds 1 2> "$work/log" &
pid=$!
for i in $(seq 100); do [ -S "$work/s" ] && break || sleep 0.1; done
MDOTD_JOB=$("$python" - "$port" "$job" << 'PYTHON'
import json, sys, urllib.request
request = urllib.request.Request(f"http://127.0.0.1:{sys.argv[1]}/v1/jobs", open(sys.argv[2], "rb").read(),
                                 {"Authorization": "Bearer contract-test-token-0123456789"})
print(json.load(urllib.request.urlopen(request))["job"])
PYTHON
)
export MDOTD_JOB
export SCHEMATHESIS_HOOKS=contract_hooks PYTHONPATH="$folder"
cd "$work"
"$python" -m schemathesis.cli run "$openapi" --url "http://127.0.0.1:$port" --seed 1 --generation-database none \
    --header "Authorization: Bearer contract-test-token-0123456789" --max-examples "${MDOT_CONTRACT_EXAMPLES:-30}" --no-color \
    --checks not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance \
    --request-timeout 20 > "$work/out" 2>&1 || { cat "$work/out"; exit 1; }
kill -0 "$pid"
grep -E "cases|passed|Tested" "$work/out" || true
