/* instructions.h - how many instructions a piece of work takes in user space: the same number each
 * time, however busy the machine is.
 *
 * The processor's counter does it (perf_event_open), where there is one and the kernel lets it be
 * used; many virtual machines have none. Else the work is carried out step by step (ptrace), which
 * is thousands of times slower and just as exact. */
#ifndef GMD_BENCH_INSTRUCTIONS_H
#define GMD_BENCH_INSTRUCTIONS_H

#include "gmd_error.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum bench_counter { BENCH_COUNTER, BENCH_STEPS } bench_counter;

typedef struct bench_instructions {
    bench_counter by;
    uint64_t count;
    bool is_least; /* there are more: it was ended at the most steps */
} bench_instructions;

/* Carries out the work in a copy of this process, which has one thread; here nothing changes. The
 * work returns false where it failed. GMD_FAILED: it failed, or this machine can count in neither
 * way. */
gmd_status bench_count_instructions(bool (*work)(void *context), void *context, uint64_t steps_max,
                                    bench_instructions *out, gmd_error *error);

#endif
