# lengths.sh - to be sourced: how long a reproducer may be. It is there to be read: 150 lines of C, 80 of Python, for a case
# of up to 10 requests, and 5 for each further one. Half as much again where only the oracle is known and not the kind of its
# verdict: then the program makes all checks of that oracle. print_unnamed says how many those were.
unnamed=0

requests='expect|alloc|free|use|record|wait|sync|advance|empty_cache|fraction|device|destroy|fault|budget|(begin|end|release)_pool'
requests+='|(begin|end)_capture|launch'

# count_requests CASE
count_requests() {
    grep -cE "^($requests)( |\$)" "$1" || true
}

# most_lines CASE VERDICT LANGUAGE
most_lines() {
    local count most
    count=$(count_requests "$1")
    case $3 in
    c) most=150 ;;
    python) most=80 ;;
    *) echo "most_lines: $3: no such language" >&2 && return 1 ;;
    esac
    case $2 in *.*) ;; *) most=$((most * 3 / 2)) ;; esac
    [ "$count" -le 10 ] || most=$((most + 5 * (count - 10)))
    echo "$most"
}

# demand_length FILE CASE VERDICT LANGUAGE
demand_length() {
    local lines most
    lines=$(wc -l <"$1")
    case $3 in *.*) ;; *) unnamed=$((unnamed + 1)) ;; esac
    most=$(most_lines "$2" "$3" "$4")
    [ "$lines" -le "$most" ] || { echo "$2, $3: $lines lines of $4, more than $most" >&2; exit 1; }
}

print_unnamed() {
    echo "$unnamed programs and scripts of verdicts whose kind is not known: half as many lines again"
}
