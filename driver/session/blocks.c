#include "blocks.h"

#include <stdlib.h>
#include <string.h>

session_block *block_at(gmd_session *s, uint32_t id)
{
    if (id >= s->block_capacity) {
        uint32_t capacity = s->block_capacity ? s->block_capacity : 1024;
        while (capacity <= id) {
            capacity *= 2;
        }
        session_block *blocks = realloc(s->blocks, capacity * sizeof *blocks);
        if (!blocks) {
            return NULL;
        }
        memset(blocks + s->block_capacity, 0, (capacity - s->block_capacity) * sizeof *blocks);
        s->blocks = blocks;
        s->block_capacity = capacity;
    }
    s->block_end = id >= s->block_end ? id + 1 : s->block_end;
    return &s->blocks[id];
}

bool blocks_reserve(gmd_session *s, uint32_t count)
{
    return count == 0 || block_at(s, count - 1) != NULL;
}

uint64_t block_address(const gmd_session *session, uint32_t block)
{
    return block < session->block_capacity ? session->blocks[block].live.address : 0;
}
