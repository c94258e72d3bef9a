/* trials.h - the sequences that tell the terms of a contract apart. */
#ifndef GMD_PROBE_TRIALS_H
#define GMD_PROBE_TRIALS_H

#include "gmd_contract.h"

typedef struct trial {
    gmd_clause clause; /* GMD_CLAUSE_COUNT: none, each contract allows it */
    const char *text;  /* a trace without its first line */
    uint8_t orders;    /* in which its threads are interleaved; 0: there is one thread */
} trial;

extern const trial trials[];
extern const size_t trial_count;

/* Swept for calls that fail. */
extern const char failing_trial[];

#endif
