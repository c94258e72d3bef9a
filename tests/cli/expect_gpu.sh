#!/bin/sh
# expect_gpu.sh STATUS PATTERN GMD ARGUMENTS...: expect.sh on a real device; where there is none the test
# is skipped, visibly (exit status 77).
gmd=$3
here=$(dirname "$0")
probe=$("$gmd" run "$here/../data/traces/plain.gmd" --device cuda --quiet 2>&1)
if [ $? -eq 2 ]; then
    printf 'skipped, no usable GPU: %s\n' "$probe"
    exit 77
fi
exec "$here/expect.sh" "$@"
