/* gmd_facts.h - what was read out of one device's events, before anything is found wrong. */
#ifndef GMD_FACTS_H
#define GMD_FACTS_H

#include "gmd_categories.h"
#include "gmd_error.h"
#include "gmd_iterations.h"
#include "gmd_places.h"
#include "gmd_recording.h"

/* All that was read out of one device's events. */
typedef struct gmd_facts {
    const gmd_snapshot *snapshot;
    gmd_places places;
    gmd_recording recording;
    gmd_iterations iterations;
    gmd_categories categories;
} gmd_facts;

gmd_status gmd_facts_make(gmd_facts *facts, const gmd_snapshot *snapshot, uint8_t device,
                          gmd_error *error);
void gmd_facts_free(gmd_facts *facts);

#endif
