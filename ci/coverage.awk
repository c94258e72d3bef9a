# coverage.awk - sums up lcov's tracefiles by folder. Usage:
#   awk -v root=FOLDER/ -v judged="FOLDER FOLDER..." -v lines=PERCENT -v branches=PERCENT -f coverage.awk
#       list=LIST FUZZING.info ALL.info
# It prints a table of what fuzzing covers by itself, and with the tests. Then it names functions of the judged folders
# that have lines which nothing ran, except those in LIST ("FILE FUNCTION REASON" a line, # begins a comment), and
# entries of LIST that are covered, which is no failure: threads and time decide about some. Exit status 1: less
# than so many percent, or LIST lacks something.

function is_judged(folder) {
    return (" " judged " ") ~ (" " folder " ")
}

function percent(hit, found) {
    return found ? 100 * hit / found : 100
}

function cell(part, kind, folder) {
    return sprintf("%5.1f %%", percent(hit[part, kind, folder], found[part, kind, folder]))
}

function count(kind, is_hit) {
    found[part, kind, folder]++
    hit[part, kind, folder] += is_hit
}

FILENAME == list {
    if ($0 !~ /^#/ && NF > 2) {
        listed[$1 " " $2] = 1
    }
    next
}

FNR == 1 { part = parts++ }
/^SF:/ {
    file = substr($0, 4)
    sub("^" root, "", file)
    folder = file
    sub("/.*", "", folder)
    folders[folder] = 1
    functions = 0
}
/^FN:/ {
    split(substr($0, 4), at, ",")
    begin[functions] = at[1]
    name[functions++] = at[2]
}
/^DA:/ {
    split(substr($0, 4), line, ",")
    count("lines", line[2] > 0)
    if (part == 1 && line[2] == 0 && is_judged(folder)) {
        missed[file] = missed[file] " " line[1]
    }
}
/^BRDA:/ {
    split(substr($0, 6), branch, ",")
    count("branches", branch[4] != "-" && branch[4] > 0)
}
/^end_of_record/ && part == 1 && file in missed { name_missed() }

# The function of a line is the last one that begins before it.
function name_missed(    lines_of, i, j, of, n) {
    n = split(missed[file], lines_of, " ")
    for (i = 1; i <= n; i++) {
        of = -1
        for (j = 0; j < functions; j++) {
            if (begin[j] <= lines_of[i] && (of < 0 || begin[j] > begin[of])) {
                of = j
            }
        }
        key = file " " (of < 0 ? "-" : name[of])
        lacking[key] = lacking[key] " " lines_of[i]
    }
}

function row_text(folder) {
    return sprintf("%-12s %10s %10s %12s %10s", folder, cell(0, "lines", folder), cell(1, "lines", folder),
        cell(0, "branches", folder), cell(1, "branches", folder))
}

function judge(kind, folder, least) {
    if (percent(hit[1, kind, folder], found[1, kind, folder]) < least) {
        printf "ci/coverage: %s/ has %s of its %s; %s %% are asked for\n", folder, cell(1, kind, folder), kind,
            least
        failed = 1
    }
}

END {
    printf "%-12s %21s %23s\n", "", "lines", "branches"
    printf "%-12s %10s %10s %12s %10s\n", "", "fuzzing", "and tests", "fuzzing", "and tests"
    sorted = "sort"
    for (f in folders) {
        if (!is_judged(f)) {
            print row_text(f) | sorted
        }
    }
    close(sorted)
    n = split(judged, name_of, " ")
    for (i = 1; i <= n; i++) {
        print row_text(name_of[i])
    }
    for (i = 1; i <= n; i++) {
        judge("lines", name_of[i], lines)
        judge("branches", name_of[i], branches)
    }
    for (key in lacking) {
        if (!(key in listed)) {
            printf "ci/coverage: nothing runs %s, lines%s: a test is wanted, or a reason in %s\n", key, lacking[key],
                list | sorted
            failed = 1
        }
    }
    for (key in listed) {
        if (!(key in lacking)) {
            printf "ci/coverage: %s is in %s, and it is all covered, or gone\n", key, list | sorted
        }
    }
    close(sorted)
    exit failed
}
