#include "blocks.h"

#include <stdlib.h>
#include <string.h>

session_block *live_blocks_at(live_blocks *b, uint32_t id)
{
    if (id >= b->capacity) {
        uint32_t capacity = b->capacity ? b->capacity : 1024;
        while (capacity <= id) {
            capacity *= 2;
        }
        session_block *list = realloc(b->list, capacity * sizeof *list);
        if (!list) {
            return NULL;
        }
        memset(list + b->capacity, 0, (capacity - b->capacity) * sizeof *list);
        b->list = list;
        b->capacity = capacity;
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
