/* thing.c - things with reference counts: creation, references, destruction. */
#include "generations.h"

void gmd_thing_init(gmd_engine *engine, gmd_thing *thing, const gmd_thing_class *class)
{
    thing->class = class;
    thing->refs = 1;
    if (class->traverse) {
        gmd_collector_track(engine, thing);
    }
}

gmd_thing *gmd_thing_keep(gmd_thing *thing)
{
    if (thing) {
        thing->refs++;
    }
    return thing;
}

static void destroy(gmd_engine *engine, gmd_thing *thing)
{
    engine->destroying++;
    thing->class->destroy(engine, thing);
    engine->destroying--;
    gmd_give(engine, thing);
}

/* A list of a million linked objects must not recurse a million deep: beyond some depth the dead
 * queue up. */
void gmd_thing_drop(gmd_engine *engine, gmd_thing *thing)
{
    if (!thing || --thing->refs > 0) {
        return;
    }
    if (thing->handle) {
        engine->hooks.gone(engine->hooks.context, thing);
    }
    if (thing->class->traverse) {
        gmd_collector_untrack(engine, thing);
    }
    if (engine->destroying >= 100) {
        thing->next = engine->doomed;
        engine->doomed = thing;
        return;
    }
    destroy(engine, thing);
    while (engine->destroying == 0 && engine->doomed) {
        gmd_thing *first = engine->doomed;
        engine->doomed = first->next;
        destroy(engine, first);
    }
}
