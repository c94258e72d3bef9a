/* open.c - how an engine begins and ends. */
#include "generations.h"

#include <stdlib.h>

gmd_engine *gmd_engine_open(const gmd_sink *sink, const gmd_engine_hooks *hooks, uint64_t seed)
{
    gmd_engine *engine = calloc(1, sizeof *engine);
    if (!engine) {
        return NULL;
    }
    engine->sink = sink;
    engine->hooks = *hooks;
    engine->random.state = seed;
    engine->grad_enabled = true;
    engine->collector = gmd_collector_open();
    if (!engine->collector) {
        free(engine);
        return NULL;
    }
    return engine;
}

void gmd_engine_close(gmd_engine *engine)
{
    if (!engine) {
        return;
    }
    gmd_give_all(engine);
    gmd_collector_close(engine->collector);
    free(engine);
}
