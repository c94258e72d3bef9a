/* gmd_collector.h - the cyclic garbage collector of CPython 3.12, on object counts.
 *
 * It knows nothing of device memory: a cycle that holds gigabytes waits for as many container
 * objects to be created as a cycle that holds nothing. Facts: CPython 3.12 Modules/gcmodule.c and
 * the documentation of the gc module. */
#ifndef GMD_COLLECTOR_H
#define GMD_COLLECTOR_H

#include "gmd_engine.h"

/* Counts `count` containers that other Python code made and keeps. While the interpreter's free
 * lists are not full (the first calls, and those after each full collection, which empties them), a
 * call counts `refill` more: objects that later come from the lists are still allocated then. Ends
 * early when engine->collected has passed `most`. */
void collector_background(struct engine *engine, uint64_t count, uint64_t refill, uint64_t most);

/* Collects the oldest generation whose count is over its threshold, if there is one and the
 * collector is enabled. Called where the interpreter would check: between two operations. */
void collector_poll(struct engine *engine);

/* Collects generation `collected` (0..2) and the younger ones. Returns the number of objects found
 * unreachable. */
size_t collector_collect(struct engine *engine, int collected);

/* Calls `visit` for each container that there is, the oldest generation first. */
void collector_each(const struct engine *engine, void (*visit)(void *context, struct thing *thing),
                    void *context);

void collector_enable(struct engine *engine, bool enabled);
void collector_counts(const struct engine *engine, uint64_t counts[COLLECTOR_GENERATIONS]);
void collector_set_counts(struct engine *engine, const uint64_t counts[COLLECTOR_GENERATIONS]);
void collector_set_thresholds(
    struct engine *engine, const uint64_t thresholds[COLLECTOR_GENERATIONS]); /* 0: off, as in gc */

#endif
