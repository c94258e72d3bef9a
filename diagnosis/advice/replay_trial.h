/* replay_trial.h - one replay of a job under one setting and with so much memory, and what came of
 * it. Plain data: it lies in memory that processes share. */
#ifndef GMD_ADVICE_REPLAY_TRIAL_H
#define GMD_ADVICE_REPLAY_TRIAL_H

#include "gmd_error.h"

#include <stdbool.h>
#include <stdint.h>

enum { TRIAL_CONF = 512, TRIAL_ERROR = 400 };

typedef struct trial_memory {
    uint64_t capacity_bytes; /* of the device */
    uint64_t limit_bytes;    /* of reserved memory, by the memory fraction; 0: none */
} trial_memory;

typedef struct trial_result {
    uint64_t peak_allocated, peak_reserved, retries;
    uint64_t refused;       /* requests */
    uint64_t newly_refused; /* those of them that were served when it was recorded */
    uint64_t newly_served;  /* requests that were refused then */
    uint64_t device_calls;  /* that take or give back memory */
    double device_ns;       /* what they take on a real device: an estimate */
} trial_result;

#endif
