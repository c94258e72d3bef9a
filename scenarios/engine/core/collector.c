#include "gmd_collector.h"

#include "generations.h"

/* Fitted to the recordings simple_cycle_leak and simple_cycle_fixed. */
#define REFILLS_AFTER_FULL 4

/* Ends the collection for the things of a ring; how many they are. */
static uint64_t release_ring(gmd_thing *head)
{
    uint64_t size = 0;
    for (gmd_thing *thing = head->next; thing != head; thing = thing->next) {
        thing->gc_refs = NOT_COLLECTED;
        size++;
    }
    return size;
}

/* The interpreter looks at the counts all the time, so a collection falls where the count passes
 * the threshold and not at the end of the call. */
void gmd_collector_background(gmd_engine *engine, uint64_t count, uint64_t refill, uint64_t most)
{
    gmd_collector *collector = engine->collector;
    generation *youngest = &collector->generations[0];
    uint64_t left = count + (collector->refills > 0 ? refill : 0);
    collector->refills -= collector->refills > 0;
    youngest->background += count;
    while (left > 0 && engine->collected <= most) {
        uint64_t room =
            youngest->count > youngest->threshold ? 1 : youngest->threshold - youngest->count + 1;
        uint64_t step = collector->enabled && room < left ? room : left;
        youngest->count += step;
        left -= step;
        gmd_collector_poll(engine);
    }
}

static void subtract_one(gmd_thing *held, void *context)
{
    (void)context;
    if (held->class->traverse && held->gc_refs > 0 && held->gc_refs != NOT_COLLECTED) {
        held->gc_refs--;
    }
}

/* Marks what an object reachable from outside holds, by giving it a count again. */
static void mark_reachable(gmd_thing *held, void *context)
{
    gmd_thing *reachable = context;
    if (held->class->traverse && held->gc_refs == 0) {
        held->gc_refs = 1;
        ring_remove(held);
        ring_add(reachable, held);
    }
}

/* How many objects there are. */
static uint64_t subtract_internal(gmd_thing *young)
{
    uint64_t count = 0;
    for (gmd_thing *thing = young->next; thing != young; thing = thing->next, count++) {
        thing->gc_refs = thing->refs;
    }
    for (gmd_thing *thing = young->next; thing != young; thing = thing->next) {
        thing->class->traverse(thing, subtract_one, NULL);
    }
    return count;
}

/* Moves what is reachable from outside `young` to `reachable`; what stays is garbage. */
static void move_reachable(gmd_thing *young, gmd_thing *reachable)
{
    for (gmd_thing *thing = young->next, *next; thing != young; thing = next) {
        next = thing->next;
        if (thing->gc_refs > 0) {
            ring_remove(thing);
            ring_add(reachable, thing);
        }
    }
    for (gmd_thing *thing = reachable->next; thing != reachable; thing = thing->next) {
        thing->class->traverse(thing, mark_reachable, reachable);
    }
}

/* As CPython's delete_garbage: one after the other is emptied, and dies of it. */
static size_t delete_garbage(gmd_engine *engine, gmd_thing *garbage)
{
    size_t found = (size_t)release_ring(garbage);
    gmd_thing *old = &engine->collector->generations[GMD_GENERATIONS - 1].head;
    while (garbage->next != garbage) {
        gmd_thing *thing = garbage->next;
        gmd_thing_keep(thing);
        thing->class->clear(engine, thing);
        if (thing->refs > 1) { /* kept by something that the collector cannot see */
            ring_remove(thing);
            ring_add(old, thing);
        }
        gmd_thing_drop(engine, thing);
    }
    return found;
}

static void age(gmd_collector *collector, int collected, gmd_thing *survivors)
{
    uint64_t background = 0;
    for (int i = 0; i <= collected; i++) {
        background += collector->generations[i].background;
        collector->generations[i].background = 0;
    }
    uint64_t survived = release_ring(survivors) + background;
    int last = GMD_GENERATIONS - 1;
    int older = collected < last ? collected + 1 : last;
    if (collected == last) {
        collector->long_lived_pending = 0;
        collector->long_lived_total = survived;
        collector->refills = REFILLS_AFTER_FULL;
    } else if (collected == last - 1) {
        collector->long_lived_pending += survived;
    }
    collector->generations[older].background += background;
    ring_merge(survivors, &collector->generations[older].head);
}

size_t gmd_collector_collect(gmd_engine *engine, int collected)
{
    gmd_collector *collector = engine->collector;
    if (collector->collecting) {
        return 0;
    }
    collector->collecting = true;
    gmd_thing young, reachable;
    ring_init(&young);
    ring_init(&reachable);
    if (collected + 1 < GMD_GENERATIONS) {
        collector->generations[collected + 1].count++;
    }
    for (int i = collected; i >= 0; i--) {
        collector->generations[i].count = 0;
        ring_merge(&collector->generations[i].head, &young);
    }
    engine->collected += 1 + subtract_internal(&young);
    move_reachable(&young, &reachable);
    age(collector, collected, &reachable);
    size_t found = delete_garbage(engine, &young);
    collector->collecting = false;
    return found;
}

/* A full collection also waits until a quarter of the long-lived objects is new, so that its cost
 * stays linear in the number of objects created. */
static bool is_due(const gmd_collector *collector, int i)
{
    const generation *candidate = &collector->generations[i];
    if (candidate->count <= candidate->threshold) {
        return false;
    }
    return i < GMD_GENERATIONS - 1 ||
           collector->long_lived_pending >= collector->long_lived_total / 4;
}

void gmd_collector_poll(gmd_engine *engine)
{
    gmd_collector *collector = engine->collector;
    if (!collector->enabled || collector->generations[0].threshold == 0 || !is_due(collector, 0)) {
        return;
    }
    for (int i = GMD_GENERATIONS - 1; i >= 0; i--) {
        if (is_due(collector, i)) {
            gmd_collector_collect(engine, i);
            return;
        }
    }
}

void gmd_collector_each(const gmd_engine *engine, void (*visit)(void *context, gmd_thing *thing),
                        void *context)
{
    for (int i = GMD_GENERATIONS - 1; i >= 0; i--) {
        const gmd_thing *head = &engine->collector->generations[i].head;
        for (gmd_thing *thing = head->next; thing != head; thing = thing->next) {
            visit(context, thing);
        }
    }
}

void gmd_collector_enable(gmd_engine *engine, bool enabled)
{
    engine->collector->enabled = enabled;
}

void gmd_collector_counts(const gmd_engine *engine, uint64_t counts[GMD_GENERATIONS])
{
    for (int i = 0; i < GMD_GENERATIONS; i++) {
        counts[i] = engine->collector->generations[i].count;
    }
}

void gmd_collector_set_counts(gmd_engine *engine, const uint64_t counts[GMD_GENERATIONS])
{
    for (int i = 0; i < GMD_GENERATIONS; i++) {
        engine->collector->generations[i].count = counts[i];
    }
}

void gmd_collector_set_thresholds(gmd_engine *engine, const uint64_t thresholds[GMD_GENERATIONS])
{
    for (int i = 0; i < GMD_GENERATIONS; i++) {
        engine->collector->generations[i].threshold = thresholds[i];
    }
}
