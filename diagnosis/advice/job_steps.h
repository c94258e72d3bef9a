/* job_steps.h - requests that are replayed, in the form that takes the least time. */
#ifndef GMD_ADVICE_JOB_STEPS_H
#define GMD_ADVICE_JOB_STEPS_H

#include "gmd_trace.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct job_step {
    uint8_t op; /* gmd_op */
    bool was_refused;
    uint32_t block, stream;
    union {
        uint64_t bytes;       /* ALLOC */
        uint64_t duration_ns; /* USE, ADVANCE */
    };
} job_step;

/* The requests to one device. A block is allocated once, and freed once at most. */
typedef struct job_steps {
    job_step *items;
    size_t count, capacity;
    uint32_t block_count, stream_count; /* stream 0 is the default one */
} job_steps;

#endif
