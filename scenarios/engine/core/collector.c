#include "gmd_collector.h"

#include "generations.h"

/* Fitted to the recordings simple_cycle_leak and simple_cycle_fixed. */
#define REFILLS_AFTER_FULL 4

/* Ends the collection for the things of a ring and returns their number. */
static uint64_t release_ring(struct thing *head)
{
    uint64_t size = 0;
    for (struct thing *thing = head->next; thing != head; thing = thing->next) {
        thing->gc_refs = NOT_COLLECTED;
        size++;
    }
    return size;
}

/* The interpreter checks the counts all the time, so a collection happens where the count passes
 * the threshold and not at the end of the call. */
void collector_background(struct engine *engine, uint64_t count, uint64_t refill, uint64_t most)
{
    struct collector *collector = engine->collector;
    struct generation *youngest = &collector->generations[0];
    uint64_t left = count + (collector->refills > 0 ? refill : 0);
    collector->refills -= collector->refills > 0;
    youngest->background += count;
    while (left > 0 && engine->collected <= most) {
        uint64_t room =
            youngest->count > youngest->threshold ? 1 : youngest->threshold - youngest->count + 1;
        uint64_t step = collector->enabled && room < left ? room : left;
        youngest->count += step;
        left -= step;
        collector_poll(engine);
    }
}

static void subtract_one(struct thing *held, void *context)
{
    (void)context;
    if (held->class->traverse && held->gc_refs > 0 && held->gc_refs != NOT_COLLECTED) {
        held->gc_refs--;
    }
}

/* Marks what an object reachable from outside holds, by giving it a count again. */
static void mark_reachable(struct thing *held, void *context)
{
    struct thing *reachable = context;
    if (held->class->traverse && held->gc_refs == 0) {
        held->gc_refs = 1;
        ring_remove(held);
        ring_add(reachable, held);
    }
}

/* Returns the number of objects. */
static uint64_t subtract_internal(struct thing *young)
{
    uint64_t count = 0;
    for (struct thing *thing = young->next; thing != young; thing = thing->next, count++) {
        thing->gc_refs = thing->refs;
    }
    for (struct thing *thing = young->next; thing != young; thing = thing->next) {
        thing->class->traverse(thing, subtract_one, NULL);
    }
    return count;
}

/* Moves what is reachable from outside `young` to `reachable`; what stays is garbage. */
static void move_reachable(struct thing *young, struct thing *reachable)
{
    for (struct thing *thing = young->next, *next; thing != young; thing = next) {
        next = thing->next;
        if (thing->gc_refs > 0) {
            ring_remove(thing);
            ring_add(reachable, thing);
        }
    }
    for (struct thing *thing = reachable->next; thing != reachable; thing = thing->next) {
        thing->class->traverse(thing, mark_reachable, reachable);
    }
}

/* Empties one object after the other, which destroys it, as CPython's delete_garbage does. */
static size_t delete_garbage(struct engine *engine, struct thing *garbage)
{
    size_t found = (size_t)release_ring(garbage);
    struct thing *old = &engine->collector->generations[COLLECTOR_GENERATIONS - 1].head;
    while (garbage->next != garbage) {
        struct thing *thing = garbage->next;
        thing_keep(thing);
        thing->class->clear(engine, thing);
        if (thing->refs > 1) { /* kept by something that the collector cannot see */
            ring_remove(thing);
            ring_add(old, thing);
        }
        thing_drop(engine, thing);
    }
    return found;
}

static void age(struct collector *collector, int collected, struct thing *survivors)
{
    uint64_t background = 0;
    for (int i = 0; i <= collected; i++) {
        background += collector->generations[i].background;
        collector->generations[i].background = 0;
    }
    uint64_t survived = release_ring(survivors) + background;
    int last = COLLECTOR_GENERATIONS - 1;
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

size_t collector_collect(struct engine *engine, int collected)
{
    struct collector *collector = engine->collector;
    if (collector->collecting) {
        return 0;
    }
    collector->collecting = true;
    struct thing young, reachable;
    ring_init(&young);
    ring_init(&reachable);
    if (collected + 1 < COLLECTOR_GENERATIONS) {
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
static bool is_due(const struct collector *collector, int i)
{
    const struct generation *candidate = &collector->generations[i];
    if (candidate->count <= candidate->threshold) {
        return false;
    }
    return i < COLLECTOR_GENERATIONS - 1 ||
           collector->long_lived_pending >= collector->long_lived_total / 4;
}

void collector_poll(struct engine *engine)
{
    struct collector *collector = engine->collector;
    if (!collector->enabled || collector->generations[0].threshold == 0 || !is_due(collector, 0)) {
        return;
    }
    for (int i = COLLECTOR_GENERATIONS - 1; i >= 0; i--) {
        if (is_due(collector, i)) {
            collector_collect(engine, i);
            return;
        }
    }
}

void collector_each(const struct engine *engine, void (*visit)(void *context, struct thing *thing),
                    void *context)
{
    for (int i = COLLECTOR_GENERATIONS - 1; i >= 0; i--) {
        const struct thing *head = &engine->collector->generations[i].head;
        for (struct thing *thing = head->next; thing != head; thing = thing->next) {
            visit(context, thing);
        }
    }
}

void collector_enable(struct engine *engine, bool enabled)
{
    engine->collector->enabled = enabled;
}

void collector_counts(const struct engine *engine, uint64_t counts[COLLECTOR_GENERATIONS])
{
    for (int i = 0; i < COLLECTOR_GENERATIONS; i++) {
        counts[i] = engine->collector->generations[i].count;
    }
}

void collector_set_counts(struct engine *engine, const uint64_t counts[COLLECTOR_GENERATIONS])
{
    for (int i = 0; i < COLLECTOR_GENERATIONS; i++) {
        engine->collector->generations[i].count = counts[i];
    }
}

void collector_set_thresholds(struct engine *engine,
                              const uint64_t thresholds[COLLECTOR_GENERATIONS])
{
    for (int i = 0; i < COLLECTOR_GENERATIONS; i++) {
        engine->collector->generations[i].threshold = thresholds[i];
    }
}
