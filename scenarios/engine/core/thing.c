/* thing.c - things with reference counts: creation, references, destruction. */
#include "generations.h"

void thing_init(struct engine *engine, struct thing *thing, const struct thing_class *class)
{
    thing->class = class;
    thing->refs = 1;
    if (class->traverse) {
        collector_track(engine, thing);
    }
}

struct thing *thing_keep(struct thing *thing)
{
    if (thing) {
        thing->refs++;
    }
    return thing;
}

static void destroy(struct engine *engine, struct thing *thing)
{
    engine->destroying++;
    thing->class->destroy(engine, thing);
    engine->destroying--;
    host_give(engine, thing);
}

/* A chain of a million linked objects must not recurse a million deep: beyond some depth things to
 * be destroyed are queued. */
void thing_drop(struct engine *engine, struct thing *thing)
{
    if (!thing || --thing->refs > 0) {
        return;
    }
    if (thing->handle) {
        engine->hooks.gone(engine->hooks.context, thing);
    }
    if (thing->class->traverse) {
        collector_untrack(engine, thing);
    }
    if (engine->destroying >= 100) {
        thing->next = engine->doomed;
        engine->doomed = thing;
        return;
    }
    destroy(engine, thing);
    while (engine->destroying == 0 && engine->doomed) {
        struct thing *first = engine->doomed;
        engine->doomed = first->next;
        destroy(engine, first);
    }
}
