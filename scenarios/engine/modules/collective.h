/* collective.h - what a collective over all ranks does on this one: streams wait, and memory is at
 * work. */
#ifndef GMD_ENGINE_COLLECTIVE_H
#define GMD_ENGINE_COLLECTIVE_H

#include "gmd_tensor.h"

/* What is queued on `stream` from now on begins when what `other` has so far is done. Nothing for
 * one and the same stream. */
void stream_waits(struct engine *engine, uint32_t stream, uint32_t other);

/* A collective on `stream` works with the memory, for a time by its size; memory without a block is
 * left alone. */
void collective_use(struct engine *engine, const struct storage *storage, uint32_t stream);

#endif
