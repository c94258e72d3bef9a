/* generations.h - the containers that exist, in rings by generation, and the counts by which the
 * collector decides. It lies below gmd_collector.h because creation and destruction of things use
 * it too. */
#ifndef GMD_GENERATIONS_H
#define GMD_GENERATIONS_H

#include "gmd_engine.h"

/* gc_refs of every thing that no collection under way examines. */
#define NOT_COLLECTED SIZE_MAX

struct generation {
    struct thing head; /* of a ring */
    uint64_t count;    /* youngest: allocations less deallocations; others: collections of the next
                          younger one */
    uint64_t threshold;
    uint64_t background; /* containers of other Python code that have reached this generation */
};

struct collector {
    struct generation generations[COLLECTOR_GENERATIONS];
    uint64_t long_lived_total, long_lived_pending;
    int refills; /* calls of collector_background() for which the free lists are not full yet */
    bool enabled, collecting;
};

struct collector *collector_open(void); /* NULL: no memory */
void collector_close(struct collector *collector);

void collector_track(struct engine *engine, struct thing *thing);   /* counts as an allocation */
void collector_untrack(struct engine *engine, struct thing *thing); /* counts as a deallocation */

/* Rings: `head` is not a member. A merge leaves `from` empty. */
void ring_init(struct thing *head);
void ring_add(struct thing *head, struct thing *thing);
void ring_remove(struct thing *thing);
void ring_merge(struct thing *from, struct thing *to);

#endif
