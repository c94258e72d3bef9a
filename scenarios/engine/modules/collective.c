#include "collective.h"

#define BYTES_PER_NS 100 /* it only says how long memory is in use */

void stream_waits(struct engine *engine, uint32_t stream, uint32_t other)
{
    gmd_request request = {.op = GMD_OP_WAIT, .stream = stream, .other_stream = other};
    if (stream != other) {
        engine_request(engine, &request);
    }
}

void collective_use(struct engine *engine, const struct storage *storage, uint32_t stream)
{
    gmd_request request = {.op = GMD_OP_USE,
                           .block = storage->block,
                           .stream = stream,
                           .duration_ns = 1000 + storage->bytes / BYTES_PER_NS};
    if (storage->has_block) {
        engine_request(engine, &request);
    }
}
