# summary.awk - sums up JSON reports of gmd for a person: the first of `replay --check`, the others of
# `run SCENARIO leak=true,false`. It relies on the layout that json.h promises: one key a line, one phase
# a line, two spaces for each level.

# The value in a line `"key": value,`.
function value(text) {
    sub(/^[^:]*: */, "", text)
    sub(/,$/, "", text)
    gsub(/^"|"$/, "", text)
    return text
}

# The number in a row `{"key": 1, ...}`.
function figure(row, key) {
    if (!match(row, "\"" key "\": [0-9]+")) {
        return 0
    }
    row = substr(row, RSTART, RLENGTH)
    sub(/.* /, "", row)
    return row + 0
}

function grouped(number, digits, text) {
    digits = sprintf("%.0f", number)
    while (length(digits) > 3) {
        text = "," substr(digits, length(digits) - 2) text
        digits = substr(digits, 1, length(digits) - 3)
    }
    return digits text
}

function mib(bytes, tenths) {
    tenths = sprintf("%.0f", (bytes < 0 ? -bytes : bytes) / 1048576 * 10)
    return (bytes < 0 ? "-" : "") grouped(int(tenths / 10)) "." tenths % 10 " MiB"
}

function duration(seconds) {
    return seconds < 1 ? sprintf("%.1f ms", seconds * 1000) : sprintf("%.2f s", seconds)
}

# The phase in which the leaking variant has most more live memory than the fixed one.
function worst_phase(name, i, worst) {
    worst = 1
    for (i = 1; i <= phases[name, 1] && i <= phases[name, 0]; i++) {
        if (live[name, 1, i] - live[name, 0, i] > live[name, 1, worst] - live[name, 0, worst]) {
            worst = i
        }
    }
    return worst
}

FNR == 1 {
    in_runs = 0
    is_replay = FILENAME == ARGV[1]
}

/^  "(scenarios|replays)": \[/ { in_runs = 1 }

!in_runs && /^  "requests":/ { requests += value($0) }
!in_runs && /^  "seconds":/ {
    seconds += value($0)
    if (is_replay) { replay_seconds = value($0) }
}
!in_runs && /^    "(requests|matched|device_events|blocks_compared|figures_compared|exact)":/ {
    check[substr($1, 2, length($1) - 3)] = value($0)
}

/^  "oracles": \[/ { in_oracles = 1; next }
in_oracles && /^  \]/ { in_oracles = 0 }
in_oracles {
    oracle = $1
    gsub(/[",]/, "", oracle)
    if (!seen[oracle]++) { oracles = oracles (oracles == "" ? "" : ", ") oracle }
}

in_runs && /^      "name":/ {
    name = value($0)
    runs++
    if (is_replay) { history = name }
}
in_runs && /^      "variant":/ {
    leaks = value($0) == "leak=true"
    if (leaks) { scenarios[++scenario_count] = name }
}
in_runs && /^ *\{"label":/ {
    phase = ++phases[name, leaks]
    live[name, leaks, phase] = figure($0, "allocated")
    reserved[name, leaks] = figure($0, "max_reserved")
    split($0, quoted, "\"")
    labels[name, phase] = leaks ? quoted[4] : labels[name, phase]
}

END {
    printf "recorded  %s is %s: %s of %s requests, %s device events, %s blocks and %s statistics\n",
        history, check["exact"] == "true" ? "exact" : "NOT EXACT", grouped(check["matched"]),
        grouped(check["requests"]), grouped(check["device_events"]), grouped(check["blocks_compared"]),
        grouped(check["figures_compared"])
    printf "\n%-22s %42s   %36s\n", "", "live memory where they differ most", "peak reserved"
    printf "%-22s %12s %12s %16s   %12s %12s %10s\n", "leak", "leaking", "fixed", "at phase", "leaking",
        "fixed", "more"
    for (i = 1; i <= scenario_count; i++) {
        name = scenarios[i]
        worst = worst_phase(name)
        printf "%-22s %12s %12s %16s   %12s %12s %10s\n", name, mib(live[name, 1, worst]),
            mib(live[name, 0, worst]), labels[name, worst], mib(reserved[name, 1]), mib(reserved[name, 0]),
            sprintf("%+.0f%%", reserved[name, 0] ? 100 * (reserved[name, 1] / reserved[name, 0] - 1) : 0)
    }
    printf "\nchecked   %d runs, %s requests: nothing wrong in the allocator\n", runs, grouped(requests)
    printf "oracles   %s\n", oracles
    if (seconds > 0) {
        printf "speed     %s requests/s with these oracles on; the recorded history in %s\n",
            grouped(requests / seconds), duration(replay_seconds)
    }
}
