/* cublas.c - the workspaces that cuBLAS keeps. */
#include "gmd_operations.h"

#define MIB ((uint64_t)1 << 20)

static void workspace(gmd_engine *engine, uint32_t role, uint64_t bytes)
{
    for (gmd_storage *known = engine->workspaces; known; known = known->next) {
        if (known->role == role && known->stream == engine->stream) {
            return;
        }
    }
    if (gmd_engine_failed(engine)) {
        return;
    }
    gmd_storage *fresh = gmd_storage_new(engine, bytes);
    if (!fresh->has_block) { /* out of memory: the next product tries again */
        gmd_storage_drop(engine, fresh);
        return;
    }
    gmd_storage_is(fresh, GMD_WORKSPACE);
    fresh->role = role;
    fresh->next = engine->workspaces;
    engine->workspaces = fresh;
}

/* Handles belong to a thread: the forward pass has one, the autograd thread another. On compute
 * capability 9.0 a handle's workspace is 32 MiB for each stream. */
void gmd_cublas_workspace(gmd_engine *engine, bool with_bias)
{
    workspace(engine, engine->in_backward ? 1 : 0, 32 * MIB);
    if (with_bias) { /* on the way back, too, where checkpointing computes again */
        workspace(engine, engine->in_backward ? 3 : 2, 1 * MIB);
    }
}

void gmd_cublas_release(gmd_engine *engine)
{
    while (engine->workspaces) {
        gmd_storage *first = engine->workspaces;
        engine->workspaces = first->next;
        gmd_storage_drop(engine, first);
    }
}
