#!/bin/sh
# join.sh CMAKE SCRIPT - how modules become one script, and what of them is refused.
set -eu
cmake=$1 script=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

template='<meta><!-- gmd:csp --><title><!-- gmd:title --></title><!-- gmd:style --><!-- gmd:data --><!-- gmd:script -->'

# begin: a page of two modules that joins.
begin() {
    rm -rf page && mkdir page
    printf '%s\n' "$template" >page/template.html
    echo 'body { color: red }' >page/style.css
    printf 'format.js\nmain.js\n' >page/modules.txt
    printf 'export function size(n) {\n  return `${n} [B];\\n`;\n}\nexport const unit = "a;b";\n' >page/format.js
    printf 'import {\n  size,\n  unit,\n} from "./format.js";\n\nconst shown = size(1) + unit;\n' >page/main.js
}

join() { "$cmake" -DFOLDER="$work/page" -DOUTPUT="$work/page.h" -DSYMBOL=text -P "$script" >said 2>&1; }

# refused WORDS: it does not join, and these are said. Line breaks of CMake's messages do not count.
refused() {
    if join; then echo "expected to be refused: $1"; exit 1; fi
    tr -s ' \n' ' ' <said | grep -q -- "$1" || { cat said; echo "expected: $1"; exit 1; }
}

has() { grep -qF -- "$1" page.h.html || { cat page.h.html; echo "expected: $1"; exit 1; }; }

begin
join || { cat said; exit 1; }
# shellcheck disable=SC2016 # JavaScript's
has 'return `${n} [B];\n`;'
has 'function size(n) {'
has 'const unit = "a;b";'
has 'const shown = size(1) + unit;'
if grep -E '^(import|export)' page.h.html; then echo "an import or export was left"; exit 1; fi
has '"use strict";'
has '<title><!-- gmd:title --></title>'

begin && echo 'const unit = 2;' >>page/main.js
refused "'unit' is declared by another module, too"
begin && echo 'export default size;' >>page/format.js
refused "the join knows no 'export default size;'"
begin && echo 'const s = "</script>";' >>page/main.js
refused "may have neither"
begin && echo 'const s = "<!--";' >>page/main.js
refused "may have neither"
begin && echo 'a::after { content: "</style>" }' >>page/style.css
refused "may have neither"
begin && printf '<!-- gmd:data -->' >>page/template.html
refused "'<!-- gmd:data -->' must be in it exactly once"
begin && printf '<html></html>' >page/template.html
refused "'<!-- gmd:csp -->' must be in it exactly once"
