#include "gmd_storage.h"

#include "gmd_observer.h"

gmd_storage *gmd_storage_new(gmd_engine *engine, uint64_t bytes)
{
    gmd_storage *storage = gmd_take(engine, sizeof *storage);
    storage->refs = 1;
    storage->bytes = bytes;
    storage->stream = engine->stream;
    if (bytes > 0 && !gmd_engine_failed(engine)) {
        gmd_request request = {.op = GMD_OP_ALLOC,
                               .block = engine->next_block,
                               .stream = engine->stream,
                               .bytes = bytes};
        storage->block = engine->next_block++;
        storage->has_block = gmd_ask(engine, &request);
        if (engine->observer && storage->has_block) {
            engine->observer->made(engine->observer->context, storage);
        }
        engine->live_bytes += storage->has_block ? bytes : 0;
        engine->peak_bytes =
            engine->live_bytes > engine->peak_bytes ? engine->live_bytes : engine->peak_bytes;
    }
    return storage;
}

gmd_storage *gmd_storage_keep(gmd_storage *storage)
{
    if (storage) {
        storage->refs++;
    }
    return storage;
}

void gmd_storage_drop(gmd_engine *engine, gmd_storage *storage)
{
    if (!storage || --storage->refs > 0) {
        return;
    }
    if (engine->observer && storage->has_block) {
        engine->observer->gone(engine->observer->context, storage);
    }
    if (storage->has_block) {
        gmd_request request = {
            .op = GMD_OP_FREE, .block = storage->block, .stream = storage->stream};
        engine->live_bytes -= storage->bytes;
        gmd_ask(engine, &request);
    }
    gmd_give(engine, storage);
}

void gmd_scratch(gmd_engine *engine, uint64_t bytes)
{
    if (bytes > 0) {
        gmd_storage_drop(engine, gmd_storage_new(engine, bytes));
    }
}
