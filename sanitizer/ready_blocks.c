#include "ready_blocks.h"

#include "gmd_hash.h"

static guarded_block **slot_of(ready_blocks *r, uint64_t size, cudaStream_t stream)
{
    uint64_t hash = gmd_hash_add(gmd_hash_add(0, size), (uintptr_t)stream);
    return &r->slots[(hash >> 32) % READY_SLOTS];
}

void ready_blocks_add(ready_blocks *r, guarded_block *block)
{
    guarded_block **slot = slot_of(r, block->size, block->stream);
    block->next = *slot;
    *slot = block;
    r->bytes += block->total;
}

static guarded_block *take_at(ready_blocks *r, guarded_block **at)
{
    guarded_block *b = *at;
    *at = b->next;
    b->next = NULL;
    r->bytes -= b->total;
    return b;
}

guarded_block *ready_blocks_take(ready_blocks *r, uint64_t size, cudaStream_t stream)
{
    for (guarded_block **at = slot_of(r, size, stream); *at; at = &(*at)->next) {
        if ((*at)->size == size && (*at)->stream == stream && !(*at)->has_lost_stream) {
            return take_at(r, at);
        }
    }
    return NULL;
}

guarded_block *ready_blocks_take_any(ready_blocks *r)
{
    for (size_t i = 0; r->bytes && i < READY_SLOTS; i++) {
        if (r->slots[i]) {
            return take_at(r, &r->slots[i]);
        }
    }
    return NULL;
}

void ready_blocks_lose_stream(ready_blocks *r, cudaStream_t stream)
{
    for (size_t i = 0; r->bytes && i < READY_SLOTS; i++) {
        for (guarded_block *b = r->slots[i]; b; b = b->next) {
            b->has_lost_stream = b->has_lost_stream || b->stream == stream;
        }
    }
}
