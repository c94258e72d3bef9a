#!/usr/bin/env bash
# defects.sh GMD FOLDER [--results FILE] [GATE OPTION...] - each defect of defects.txt must be found by
# `gmd gate`, by an oracle that fits. Prints a table of what was found, by which part, after how long, and how
# small the case is; --results also writes it to FILE (docs/results/gate-defects.md).
set -euo pipefail
. "$(dirname "$0")/../../ci/results"
gmd=$1 folder=$2
shift 2
if [ "${1:-}" = --results ]; then
    start_results "$2" "Defects that the gate must find" "tests/gate/defects.sh GMD TESTS${3:+ ${*:3}}"
    exec > >(tee -a "$2")
    shift 2
fi
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
status=0

printf '| %-16s | %-16s | %-12s | %-32s | %8s | %8s |\n' allocator defect oracle 'found by' seconds requests
echo '| :-- | :-- | :-- | :-- | --: | --: |'
while read -r library variable defect oracles; do
    [[ $library == '#'* ]] && continue
    code=0
    env "$variable=$defect" "$gmd" gate --allocator "$folder/lib$library.so" --fail-fast --out "$out/cases" \
        --json "$out/report.json" --quiet "$@" 2>"$out/errors" || code=$?
    row=$(python3 - "$out/report.json" <<'PYTHON' || true
import json, sys
report = json.load(open(sys.argv[1]))
for f in report["gate"]["findings"][:1]:
    print(f["oracle"], "%.1f" % f["seconds"], f["case_requests"], f["part"] + "/" + f["item"])
PYTHON
)
    read -r oracle seconds requests place <<<"${row:-none - - -}" || true
    printf '| %-16s | %-16s | %-12s | %-32s | %8s | %8s |\n' "$library" "$defect" "$oracle" "$place" "$seconds" "$requests"
    if [ "$code" -ne 1 ] || [[ ",$oracles," != *",$oracle,"* ]]; then
        echo "defects.sh: $defect: expected a finding of $oracles, got '$oracle' and exit status $code" >&2
        cat "$out/errors" >&2
        status=1
    fi
done <"$(dirname "$0")/defects.txt"
exit $status
