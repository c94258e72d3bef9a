#!/usr/bin/env bash
# program_parts.sh GMD - C programs have the parts of program.c.in that matter to their case, and not the others.
set -eu
gmd=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

write_program() { # VERDICT LINE...
    local verdict=$1
    shift
    printf '%s\n' "gmd-trace 1" "capacity 1GiB" "$@" >"$folder/case.gmd"
    "$gmd" report "$folder/case.gmd" -o "$folder/program.c" --oracle "$verdict"
}

demand() { # TEXT
    grep -q "$1" "$folder/program.c" || { echo "no $1 in:" && cat "$folder/program.c" && exit 1; } >&2
}

demand_no() { # TEXT
    ! grep -q "$1" "$folder/program.c" || { echo "$1 in:" && cat "$folder/program.c" && exit 1; } >&2
}

# A real device is kept to the capacity where the case may fill it.
write_program overlap "alloc a 600MiB s1"
demand 'shrink_device(1073741824)'
write_program overlap "alloc a 1MiB s1" "alloc b 1MiB s1"
demand_no 'shrink_device'
write_program overlap "conf garbage_collection_threshold:0.5" "alloc a 1MiB s1"
demand 'shrink_device(1073741824)'
write_program peak_bound "alloc a 1MiB s1"
demand 'limit_memory(1)'

# Only the simulated device makes calls fail, and it has the case's capacity.
write_program overlap "fault cudaMalloc 1 2" "alloc a 600MiB s1"
demand_no 'shrink_device'
demand "NEED(gmd_sim_fault, "
write_program overlap "budget 64MiB" "alloc a 600MiB s1"
demand "NEED(gmd_sim_budget, "

# It is told which calls are the program's own where the program calls what is to fail.
write_program overlap "fault cuMemCreate 1 2" "alloc a 1MiB s1" "free a"
demand_no 'gmd_sim_harness'
write_program overlap "fault cudaStreamSynchronize 1 2" "alloc a 1MiB s1" "free a"
demand 'gmd_sim_harness(false)'

# What was served under an earlier limit counts where there was one.
write_program oom_retry.refused_when_all_is_free "alloc a 1MiB s1" "alloc b 1MiB s1"
demand_no 'is_within'
write_program oom_retry.refused_when_all_is_free "fraction 0.5" "alloc a 1MiB s1" "alloc b 1MiB s1"
demand 'is_within'
