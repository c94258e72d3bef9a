#include "generations.h"

#include <stdlib.h>

#define REFILLS_AT_START 3 /* fitted to the recordings, as REFILLS_AFTER_FULL in collector.c */

void ring_init(struct thing *head)
{
    head->prev = head->next = head;
}

void ring_add(struct thing *head, struct thing *thing)
{
    thing->prev = head->prev;
    thing->next = head;
    head->prev->next = thing;
    head->prev = thing;
}

void ring_remove(struct thing *thing)
{
    thing->prev->next = thing->next;
    thing->next->prev = thing->prev;
    thing->prev = thing->next = NULL;
}

void ring_merge(struct thing *from, struct thing *to)
{
    if (from->next != from) {
        from->next->prev = to->prev;
        from->prev->next = to;
        to->prev->next = from->next;
        to->prev = from->prev;
        ring_init(from);
    }
}

struct collector *collector_open(void)
{
    static const uint64_t thresholds[COLLECTOR_GENERATIONS] = {700, 10, 10};
    struct collector *collector = calloc(1, sizeof *collector);
    if (collector) {
        collector->enabled = true;
        collector->refills = REFILLS_AT_START;
        for (int i = 0; i < COLLECTOR_GENERATIONS; i++) {
            ring_init(&collector->generations[i].head);
            collector->generations[i].threshold = thresholds[i];
        }
    }
    return collector;
}

void collector_close(struct collector *collector)
{
    free(collector);
}

void collector_track(struct engine *engine, struct thing *thing)
{
    struct generation *youngest = &engine->collector->generations[0];
    thing->gc_refs = NOT_COLLECTED;
    ring_add(&youngest->head, thing);
    youngest->count++;
}

void collector_untrack(struct engine *engine, struct thing *thing)
{
    struct generation *youngest = &engine->collector->generations[0];
    ring_remove(thing);
    if (youngest->count > 0) {
        youngest->count--;
    }
}
