/* abilities.h - what the allocator under test exports, found out by loading it once. */
#ifndef GMD_GATE_ABILITIES_H
#define GMD_GATE_ABILITIES_H

#include "gmd_driver.h"
#include "gmd_subject.h"

typedef struct first_look {
    gmd_abilities abilities;
    bool waits_unjudged; /* freed blocks stay active while other streams use them, and no promise
                            (prompt) says until when */
} first_look;

/* Loads the allocator, makes a few allocations and frees them, in a process of its own.
 * GMD_BAD_INPUT: it cannot be loaded. A crash or a hang is reported in `outcome` (which the caller
 * allocates). */
gmd_status abilities_find(first_look *look, const gmd_run_options *run, gmd_outcome *outcome,
                          gmd_error *error);

/* Why a trace is not for this allocator: it needs what is not exported. NULL: it can be run. */
const char *abilities_lacking(const gmd_abilities *abilities, const gmd_trace *trace);

#endif
