/* open.c - how an engine begins and ends. */
#include "generations.h"

#include "gmd_workspaces.h"

#include <stdlib.h>

struct engine *engine_open(const gmd_sink *sink, const struct engine_hooks *hooks, uint64_t seed)
{
    struct engine *engine = calloc(1, sizeof *engine);
    if (!engine) {
        return NULL;
    }
    engine->sink = sink;
    engine->hooks = *hooks;
    engine->random.state = seed;
    engine->grad_enabled = true;
    engine->collector = collector_open();
    if (!engine->collector) {
        free(engine);
        return NULL;
    }
    return engine;
}

void engine_close(struct engine *engine)
{
    if (!engine) {
        return;
    }
    host_give_all(engine);
    collector_close(engine->collector);
    gmd_workspaces_close(engine->builtin);
    gmd_workspaces_close(engine->missing);
    free(engine);
}
