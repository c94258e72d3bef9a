#!/bin/sh
# man_page.sh PREFIX: the installed manual page has a section for each command, each option of each, and no mistakes.
set -eu
page=$(mktemp)
trap 'rm -f "$page"' EXIT
zcat "$1/share/man/man1/gmd.1.gz" >"$page"
gmd=$1/bin/gmd
for command in $("$gmd" --help | sed -n 's/^  gmd \([a-z]*\) .*/\1/p'); do
    grep -q "^.SH \"GMD $(echo "$command" | tr '[:lower:]' '[:upper:]')\"" "$page" || { echo "no section for $command"; exit 1; }
    for option in $("$gmd" "$command" --help | sed -n 's/^  *\(-[^ -], \)\{0,1\}--\([a-z-]*\).*/\2/p'); do
        case $option in help | usage) continue ;; esac
        grep -q "^.B .*\\\\-\\\\-$(echo "$option" | sed 's/-/\\\\-/g')" "$page" || { echo "$command --$option is missing"; exit 1; }
    done
done
if command -v groff >/dev/null; then
    mistakes=$(groff -man -ww -z "$page" 2>&1)
    [ -z "$mistakes" ] || { echo "$mistakes"; exit 1; }
fi
