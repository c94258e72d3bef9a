#include "gmd_grow.h"

#include "gmd_min.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ITEMS = 16, FIRST_BYTES = 2 << 10 };

/* Few where items are large: many an array of them never has more, and is made again and again. */
static size_t first_room(size_t item_bytes)
{
    size_t fitting = FIRST_BYTES / item_bytes;
    return fitting > FIRST_ITEMS ? FIRST_ITEMS : fitting ? fitting : 1;
}

bool gmd_grow_items(void *items, size_t *capacity, size_t needed, size_t item_bytes)
{
    void *old, *larger;
    size_t twice = *capacity <= SIZE_MAX / 2 ? *capacity * 2 : needed;
    size_t first = first_room(item_bytes);
    size_t room = gmd_max(twice, first);
    room = gmd_max(room, needed);
    if (room > SIZE_MAX / item_bytes) {
        return false;
    }
    memcpy(&old, items, sizeof old); /* whatever type it points to */
    larger = realloc(old, room * item_bytes);
    if (!larger) {
        return false;
    }
    memcpy(items, &larger, sizeof larger);
    *capacity = room;
    return true;
}

bool gmd_grow_items_32(void *items, uint32_t *capacity, size_t needed, size_t item_bytes)
{
    size_t room = *capacity;
    if (needed > UINT32_MAX || room > UINT32_MAX / 2 ||
        !gmd_grow_items(items, &room, needed, item_bytes)) {
        return false;
    }
    *capacity = (uint32_t)room;
    return true;
}
