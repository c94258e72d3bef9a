# options.awk - the --help of one command (argp, no line broken, explanations in column 61) as a section of gmd.1.
# The common options are printed with the first command only (common=first), in a section of their own at its end.
function text(s) {
    gsub(/\\/, "\\e", s)
    gsub(/-/, "\\-", s)
    return s ~ /^[.']/ ? "\\&" s : s
}

function option(line,  name, what) {
    name = substr(line, 1, 60)
    what = substr(line, 61)
    sub(/^ +/, "", name)
    sub(/ +$/, "", name)
    return ".TP\n.B " text(name) "\n" text(what)
}

NR == 1 { printf ".SH \"GMD %s\"\n", toupper(command) }
/^(Usage:|  or:)/ {
    sub(/^(Usage:|  or:) +/, "")
    printf("%s.B %s\n", (NR > 1 ? ".br\n" : ""), text($0))
    next
}
/^ Common options/ { group = "common"; next }
/^ [^ ].*:$/ { group = ""; sub(/^ /, ""); print ".PP\n" text($0); next }
/^ +(-[^ ]+, )?--(help|usage|version) / { next }
/^ +-/ && group == "common" { shared = shared option($0) "\n"; next }
/^ +-/ { print option($0); next }
/^$/ { group = ""; next }
{ print ".PP\n" text($0) }

END {
    if (common == "first")
        printf ".SH \"COMMON OPTIONS\"\nSizes take KiB, MiB and GiB.\n%s", shared
}
