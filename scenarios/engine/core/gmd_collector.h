/* gmd_collector.h - the cyclic garbage collector of CPython 3.12, on object counts.
 *
 * It knows nothing of device memory: a cycle that holds gigabytes waits for as many container
 * objects to be created as a cycle that holds nothing. Facts: CPython 3.12 Modules/gcmodule.c and
 * the documentation of the gc module. */
#ifndef GMD_COLLECTOR_H
#define GMD_COLLECTOR_H

#include "gmd_engine.h"

/* `count` containers that other Python code made and keeps. While the interpreter's free lists are
 * not full (the first calls, and those after each full collection, which empties them) a call
 * counts `refill` more: what is later reused from the lists is still allocated. Ends early when
 * engine->collected has passed `most`. */
void gmd_collector_background(gmd_engine *engine, uint64_t count, uint64_t refill, uint64_t most);

/* Collects the oldest generation whose count is over its threshold, if any and if enabled. Called
 * where the interpreter would look: between two operations. */
void gmd_collector_poll(gmd_engine *engine);

/* Collects generation `collected` (0..2) and the younger ones; the number of objects found
 * unreachable. */
size_t gmd_collector_collect(gmd_engine *engine, int collected);

/* Calls `visit` for each container that there is, the oldest generation first. */
void gmd_collector_each(const gmd_engine *engine, void (*visit)(void *context, gmd_thing *thing),
                        void *context);

void gmd_collector_enable(gmd_engine *engine, bool enabled);
void gmd_collector_counts(const gmd_engine *engine, uint64_t counts[GMD_GENERATIONS]);
void gmd_collector_set_counts(gmd_engine *engine, const uint64_t counts[GMD_GENERATIONS]);
void gmd_collector_set_thresholds(
    gmd_engine *engine, const uint64_t thresholds[GMD_GENERATIONS]); /* 0: off, as in gc */

#endif
