#include "blocks.h"

#include "gmd_grow.h"

#include <stdlib.h>
#include <string.h>

session_block *live_blocks_at(live_blocks *b, uint32_t id)
{
    if (id >= b->capacity) {
        uint32_t before = b->capacity;
        if (!GMD_GROW(&b->list, &b->capacity, (size_t)id + 1)) {
            return NULL;
        }
        memset(b->list + before, 0, (b->capacity - before) * sizeof *b->list);
    }
    b->end = id >= b->end ? id + 1 : b->end;
    return &b->list[id];
}

bool live_blocks_reserve(live_blocks *b, uint32_t count)
{
    return count == 0 || live_blocks_at(b, count - 1) != NULL;
}

void live_blocks_restart_peak(live_blocks *b)
{
    b->peak_bytes = b->bytes[0];
}

void live_blocks_clear(live_blocks *b)
{
    if (b->list) {
        memset(b->list, 0, b->end * sizeof *b->list);
    }
    *b = (live_blocks){.list = b->list, .capacity = b->capacity};
}

void live_blocks_free(live_blocks *b)
{
    free(b->list);
    *b = (live_blocks){0};
}

const char *live_blocks_violation(const live_blocks *b)
{
    uint64_t count[GMD_MAX_DEVICES] = {0}, bytes[GMD_MAX_DEVICES] = {0};
    uint64_t empty_count[GMD_MAX_DEVICES] = {0};
    const session_block *block = NULL;
    if (b->end > b->capacity) {
        return "the places of blocks are in their list";
    }
    for (uint32_t id = 0; (block = live_blocks_next(b, &id)) != NULL;) {
        const gmd_live_block *live = &block->live;
        if (live->id != id - 1) {
            return "a block is at the place of its number";
        }
        if (live->device < 0 || live->device >= GMD_MAX_DEVICES) {
            return "a block is of a device";
        }
        count[live->device]++;
        bytes[live->device] += live->bytes;
        empty_count[live->device] += !live->bytes;
    }
    if (memcmp(count, b->count, sizeof count) != 0 ||
        memcmp(empty_count, b->empty_count, sizeof empty_count) != 0) {
        return "a device's live blocks are counted";
    }
    return memcmp(bytes, b->bytes, sizeof bytes) != 0
               ? "a device's live bytes are the sum over its blocks"
               : NULL;
}
