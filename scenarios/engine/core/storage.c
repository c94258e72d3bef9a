#include "gmd_storage.h"

#include "gmd_min.h"
#include "gmd_observer.h"

static void note_peaks(struct engine *engine)
{
    uint64_t live = engine->live_bytes;
    engine->peak_bytes = gmd_max(engine->peak_bytes, live);
    engine->peak_least = gmd_max(engine->peak_least, live - engine->may_be_less);
    engine->peak_most = gmd_max(engine->peak_most, live + engine->may_be_more);
}

static void take_block(struct engine *engine, struct storage *storage)
{
    gmd_request request = {.op = GMD_OP_ALLOC,
                           .block = engine->next_block,
                           .stream = engine->stream,
                           .bytes = storage->bytes};
    storage->stream = engine->stream;
    storage->is_on_host = engine->on_host;
    if (storage->bytes == 0 || engine->on_host || engine_failed(engine)) {
        return;
    }
    storage->block = engine->next_block++;
    storage->has_block = engine_request(engine, &request);
    if (engine->observer && storage->has_block) {
        engine->observer->made(engine->observer->context, storage);
    }
    engine->live_bytes += storage->has_block ? storage->bytes : 0;
    note_peaks(engine);
}

static void give_block(struct engine *engine, struct storage *storage)
{
    if (!storage->has_block) {
        return;
    }
    if (engine->observer) {
        engine->observer->gone(engine->observer->context, storage);
    }
    gmd_request request = {.op = GMD_OP_FREE, .block = storage->block, .stream = storage->stream};
    engine->live_bytes -= storage->bytes;
    engine_request(engine, &request);
    storage->has_block = false;
}

struct storage *storage_new(struct engine *engine, uint64_t bytes)
{
    struct storage *storage = host_take(engine, sizeof *storage);
    storage->refs = 1;
    storage->bytes = bytes;
    take_block(engine, storage);
    return storage;
}

void storage_empty(struct engine *engine, struct storage *storage)
{
    give_block(engine, storage);
}

void storage_refill(struct engine *engine, struct storage *storage)
{
    if (!storage->has_block) {
        take_block(engine, storage);
    }
}

struct storage *storage_keep(struct storage *storage)
{
    if (storage) {
        storage->refs++;
    }
    return storage;
}

void storage_drop(struct engine *engine, struct storage *storage)
{
    if (!storage || --storage->refs > 0) {
        return;
    }
    give_block(engine, storage);
    host_give(engine, storage);
}

void storage_scratch(struct engine *engine, uint64_t bytes)
{
    if (bytes > 0) {
        storage_drop(engine, storage_new(engine, bytes));
    }
}
