/* cublas.c - the memory that cuBLAS and cuDNN keep. */
#include "gmd_operations.h"
#include "gpu.h"

#define MIB ((uint64_t)1 << 20)

static void workspace(struct engine *engine, uint32_t role, uint64_t bytes)
{
    for (struct storage *known = engine->workspaces; known; known = known->next) {
        if (known->role == role && known->stream == engine->stream) {
            return;
        }
    }
    if (engine_failed(engine)) {
        return;
    }
    struct storage *fresh = storage_new(engine, bytes);
    if (!fresh->has_block) { /* out of memory: the next product tries again */
        storage_drop(engine, fresh);
        return;
    }
    storage_mark(fresh, GMD_WORKSPACE);
    fresh->role = role;
    fresh->next = engine->workspaces;
    engine->workspaces = fresh;
}

/* Handles belong to a thread: the forward pass has one, the autograd thread another. On compute
 * capability 9.0 a handle's workspace is 32 MiB for each stream. */
void cublas_workspace_use(struct engine *engine, bool with_bias)
{
    workspace(engine, engine->in_backward ? 1 : 0, 32 * MIB);
    if (with_bias) { /* also in the backward pass, where checkpointing computes again */
        workspace(engine, engine->in_backward ? 3 : 2, 1 * MIB);
    }
}

/* One state of 48 bytes for each of 1,024 threads on each multiprocessor. */
void cudnn_dropout_use(struct engine *engine)
{
    workspace(engine, 4, (uint64_t)GPU_MULTIPROCESSORS * 1024 * 48);
}

void cublas_workspace_release(struct engine *engine)
{
    while (engine->workspaces) {
        struct storage *first = engine->workspaces;
        engine->workspaces = first->next;
        storage_drop(engine, first);
    }
}
