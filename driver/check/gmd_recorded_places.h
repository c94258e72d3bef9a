/* gmd_recorded_places.h - where the recorded device put memory, so that the simulated one does the
 * same: best fit breaks ties by address. */
#ifndef GMD_RECORDED_PLACES_H
#define GMD_RECORDED_PLACES_H

#include "gmd_history.h"
#include "gmd_sim.h"

typedef struct gmd_recorded_places {
    gmd_sim_recorded *segments; /* in the order in which the history has them */
    size_t segment_count;
    uint64_t *reservations; /* where expandable segments begin, likewise */
    size_t reservation_count;
    uint64_t most_memory; /* the device had no more: else reservations of addresses, which follow
                             it, would overlap where the recorded ones lay side by side; 0: they
                             tell nothing */
} gmd_recorded_places;

/* On failure (no host memory) it is left empty. `name` is for the message. */
gmd_status gmd_recorded_places_make(gmd_recorded_places *places, const gmd_history *history,
                                    const char *name, gmd_error *error);
void gmd_recorded_places_free(gmd_recorded_places *places);

#endif
