#!/bin/sh
# replay_case.sh GMD ORACLE ARGUMENTS...: what `gmd run ARGUMENTS` finds leaves a case, and the case,
# without the arguments, shows a violation of the same oracle.
gmd=$1
oracle=$2
shift 2
cases=$(mktemp -d gmd-cases-XXXXXX) || exit 1
trap 'rm -rf "$cases"' EXIT
"$gmd" run "$@" --quiet --cases "$cases/a/b"
[ $? -eq 1 ] || { echo "the first run did not end with a finding"; exit 1; }
set -- "$cases"/a/b/*.gmd
[ -f "$1" ] || { echo "no case was written"; exit 1; }
cat "$1"
output=$("$gmd" run "$1" --cases "$cases")
[ $? -eq 1 ] || { printf 'the case found nothing:\n%s\n' "$output"; exit 1; }
printf '%s\n' "$output" | grep -q "^  $oracle, request" || { printf '%s\n' "$output"; exit 1; }
