/* generations.h - the containers that exist, in rings by generation, and the figures by which the
 * collector decides. Below gmd_collector.h: what creates and destroys things uses it too. */
#ifndef GMD_GENERATIONS_H
#define GMD_GENERATIONS_H

#include "gmd_engine.h"

/* gc_refs of all that the collection under way, if any, does not look at. */
#define NOT_COLLECTED SIZE_MAX

typedef struct generation {
    gmd_thing head; /* of a ring */
    uint64_t count; /* youngest: allocations less deallocations; others: collections below */
    uint64_t threshold;
    uint64_t background; /* containers of other code that have come to this generation */
} generation;

struct gmd_collector {
    generation generations[GMD_GENERATIONS];
    uint64_t long_lived_total, long_lived_pending;
    int refills; /* calls of background() for which the free lists are not full yet */
    bool enabled, collecting;
};

gmd_collector *gmd_collector_open(void); /* NULL: no memory */
void gmd_collector_close(gmd_collector *collector);

void gmd_collector_track(gmd_engine *engine, gmd_thing *thing);   /* counts as an allocation */
void gmd_collector_untrack(gmd_engine *engine, gmd_thing *thing); /* counts as a deallocation */

/* Rings: `head` is no member. A merge leaves `from` empty. */
void ring_init(gmd_thing *head);
void ring_add(gmd_thing *head, gmd_thing *thing);
void ring_remove(gmd_thing *thing);
void ring_merge(gmd_thing *from, gmd_thing *to);

#endif
