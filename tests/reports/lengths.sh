# lengths.sh - to be sourced: how long a reproducer may be. It is there to be read: 150 lines of C, 80 of Python, for a case
# of up to 10 requests. What takes more stands here, with what it takes it for.

# most_lines_c CASE VERDICT
most_lines_c() {
    if grep -q '^begin_capture' "$1"; then
        echo 210 # captures, the work in them and their graphs are functions of their own
        return
    fi
    case $2 in
    accounting.device | accounting.segments | accounting.wrong*truth=nothing_live | accounting.kept_active)
        echo 165 ;; # statistics, beside what the device had before
    oom_retry.died_* | oom_retry.failed_*) echo 200 ;; # not known which question it is: all
    oom_retry.*_all_is_free | oom_retry.room_was_left | oom_retry.never_served)
        echo 190 ;; # everything is freed, waited for, and what was served before is known
    stream_order.reused_early | leak.*) echo 160 ;; # memory recorded on many streams; private pools
    *.*) echo 150 ;;
    *) echo 235 ;; # the kind is not known: all that the oracle finds
    esac
}

# most_lines_python CASE VERDICT
most_lines_python() {
    case $2 in
    backing.*) echo 175 ;; # the segments of all graphs, and what of them came back
    accounting.out_of_order*) echo 85 ;;
    accounting*) echo 110 ;; # statistics of every kind: PyTorch does not have those of each verdict
    *) if grep -q '^begin_capture' "$1"; then echo 120; else echo 80; fi ;; # captures, as in C
    esac
}

# demand_length FILE MOST
demand_length() {
    local lines
    lines=$(wc -l <"$1")
    [ "$lines" -le "$2" ] || { echo "$(basename "$1") has $lines lines, more than $2" >&2; exit 1; }
}
