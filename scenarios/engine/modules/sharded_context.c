/* sharded_context.c - the end of what all sharded modules of a root share. */
#include "sharded_parts.h"

void sharded_context_drop(struct engine *engine, struct sharded_context *shared)
{
    if (!shared || --shared->refs > 0) {
        return;
    }
    storage_drop(engine, shared->gathered);
    storage_drop(engine, shared->reduce_input);
    host_give(engine, shared->order);
    host_give(engine, shared->all);
    host_give(engine, shared);
}

void sharded_context_leave(struct sharded *sharded)
{
    struct sharded_context *shared = sharded->context;
    for (size_t i = 0; shared && i < shared->count; i++) {
        shared->all[i] = shared->all[i] == sharded ? NULL : shared->all[i];
    }
    for (size_t i = 0; shared && i < shared->order_count; i++) {
        shared->order[i] = shared->order[i] == sharded ? NULL : shared->order[i];
    }
}
