#!/usr/bin/env bash
# reproducer_lengths.sh GMD CASES - the reproducers of kept cases, of the kinds that take the most lines, are short enough to
# be read (lengths.sh), the C programs have lines of at most 100 columns, and the scripts parse.
set -eu
gmd=$1 cases=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
. "$(dirname "$0")/lengths.sh"
scripts=0

c_program() { # CASE VERDICT
    "$gmd" report "$cases/$1.gmd" -o "$folder/program.c" --oracle "$2"
    demand_length "$folder/program.c" "$cases/$1.gmd" "$2" c
    if grep -n '.\{101\}' "$folder/program.c"; then
        echo "$1, $2: lines of more than 100 columns" >&2
        exit 1
    fi
}

script() { # CASE VERDICT
    scripts=$((scripts + 1))
    "$gmd" report "$cases/$1.gmd" -o "$folder/$scripts.py" --oracle "$2" --allocator torch
    demand_length "$folder/$scripts.py" "$cases/$1.gmd" "$2" python
}

both() { # CASE VERDICT
    c_program "$1" "$2"
    script "$1" "$2"
}

# Captures and private pools.
both faulty/cases/llamacpp26771 backing.graph_without_memory
both faulty/cases/pytorch190348 leak.allocations
both faulty/cases/pytorch159594 api_misuse.forbidden_call
both faulty/cases/pytorch106235 api_misuse.forbidden_call
both faulty/cases/capture_ignores_record stream_order.reused_in_capture
both faulty/cases/pytorch175560 accounting.kept_active
both faulty/cases/pytorch175015 oom_retry.served_when_reopened
both data/traces/graph_beside_cache backing.graph_without_memory

# Everything is freed, and what was served before is known.
c_program faulty/cases/null_arena_refused "oom_retry.died_when_asked_again by=signal"
c_program faulty/cases/keeps_claim "oom_retry.refused_when_all_is_free although=served_before"
both faulty/cases/fraction_of_free oom_retry.room_was_left

# Statistics, beside what the device had before.
both faulty/cases/vllm37111 accounting.segments
both faulty/cases/pytorch71616 accounting.kept_active
both faulty/cases/pending_kept "accounting.wrong figure=active_bytes truth=nothing_live"
both faulty/cases/peak_not_kept "accounting.out_of_order figure=active_bytes_peak above=reserved_bytes_peak"
c_program faulty/cases/cupy3008 accounting.device

# Threads, many devices, many records.
c_program faulty/cases/rmm1912 leak.allocations
c_program faulty/cases/dali2988 peak_bound.reserved
c_program faulty/cases/cub156 stream_order.reused_early
c_program faulty/cases/eight_devices "backing.wrong_device when=handed_out"
c_program faulty/cases/eight_devices device_state.current_device
both faulty/cases/first_stream_only stream_order.reused_early

# Found by fuzzing: calls of the device fail, or a stream's handle is used again.
c_program ../fuzz/cases/torch-2.11/failed_access_memory_lost accounting.device
c_program ../fuzz/cases/torch-2.11/failed_event_wrong_device device_state.current_device
c_program ../fuzz/cases/torch-2.11/failed_create_no_memory oom_retry.refused_when_all_is_free
c_program ../fuzz/cases/reference/record_on_a_stream_that_is_gone stream_order.reused_early

# The kind is not known.
for oracle in accounting alignment api_misuse backing leak oom_retry peak_bound private_pool progress size stream_order; do
    both faulty/cases/pytorch175015 "$oracle"
done
print_unnamed
! command -v python3 >/dev/null || python3 -m py_compile "$folder"/*.py
