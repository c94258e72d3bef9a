#!/bin/sh
# expect.sh STATUS PATTERN COMMAND...: the command must end with this exit status, and what it prints
# (standard output and error together) must match the extended regular expression.
status=$1
pattern=$2
shift 2
output=$("$@" 2>&1)
got=$?
if [ "$got" -ne "$status" ]; then
    printf 'expected exit status %s, got %s\n%s\n' "$status" "$got" "$output"
    exit 1
fi
if ! printf '%s\n' "$output" | grep -Eq -- "$pattern"; then
    printf 'expected output that matches: %s\ngot:\n%s\n' "$pattern" "$output"
    exit 1
fi
