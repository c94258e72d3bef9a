/* abilities.h - what the allocator under test exports, found out by loading it once. */
#ifndef GMD_GATE_ABILITIES_H
#define GMD_GATE_ABILITIES_H

#include "gmd_driver.h"

typedef struct gmd_gate_abilities {
    bool has_settings, has_fraction, has_record_stream, has_empty_cache, has_stats, has_pools;
} gmd_gate_abilities;

/* Loads the allocator, makes one small allocation and frees it, in a process of its own.
 * GMD_BAD_INPUT: it cannot be loaded. A crash or a hang is told in `outcome` (which the caller
 * allocates). */
gmd_status gmd_gate_find_abilities(gmd_gate_abilities *abilities, const gmd_run_options *run,
                                   gmd_outcome *outcome, gmd_error *error);

/* Why a trace is not for this allocator: it needs what is not exported. NULL: it can be run. */
const char *gmd_gate_lacks(const gmd_gate_abilities *abilities, const gmd_trace *trace);

#endif
