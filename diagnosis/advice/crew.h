/* crew.h - trials of settings in processes of their own, several at a time. */
#ifndef GMD_ADVICE_CREW_H
#define GMD_ADVICE_CREW_H

#include "job_plan.h"
#include "replay_trial.h"

typedef struct trial {
    char conf[TRIAL_CONF];
    trial_memory memory; /* of the replay that is reported */
    bool finds_smallest; /* looks for the smallest memory, too */
    uint64_t must_beat;  /* of that: it is of interest below this only; 0: in any case */
    gmd_status status;   /* from here on: what came of it */
    char error[TRIAL_ERROR];
    trial_result result;
    uint64_t smallest; /* capacity that it fits in; 0: not looked for, or not below must_beat */
    uint32_t replays;
} trial;

typedef struct crew {
    const job_plan *plan;
    const char *lib_directory;
    unsigned processes; /* at most */
    bool has_limit;     /* memory is given as a limit: then so it is in the search for the smallest
                         */
    uint64_t most_memory; /* of a device on which nothing is refused */
} crew;

/* Carries out `count` trials, in any order. A trial whose settings are refused has the status
 * GMD_BAD_INPUT; what it returns is about the crew itself. */
gmd_status crew_run(const crew *c, trial *trials, size_t count, gmd_error *error);

#endif
