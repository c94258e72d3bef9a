#include "arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>

enum { FIRST_CHUNK = 16 << 10, LARGEST_CHUNK = 4 << 20, ALIGNMENT = 8 };

struct gmd_arena_chunk {
    gmd_arena_chunk *older;
    size_t size;
    alignas(ALIGNMENT) char bytes[];
};

void gmd_arena_init(gmd_arena *arena, size_t limit)
{
    *arena = (gmd_arena){.limit = limit};
}

void gmd_arena_free(gmd_arena *arena)
{
    while (arena->chunks) {
        gmd_arena_chunk *older = arena->chunks->older;
        free(arena->chunks);
        arena->chunks = older;
    }
    *arena = (gmd_arena){0};
}

bool gmd_arena_is_full(const gmd_arena *arena, size_t size)
{
    return size > arena->limit - arena->used;
}

/* Chunks double, so that a small file costs little and a large one few calls. */
static bool add_chunk(gmd_arena *arena, size_t size)
{
    size_t bytes = arena->chunks ? arena->chunks->size * 2 : FIRST_CHUNK;
    bytes = bytes > LARGEST_CHUNK ? LARGEST_CHUNK : bytes;
    bytes = bytes < size ? size : bytes;
    gmd_arena_chunk *chunk = malloc(sizeof *chunk + bytes);
    if (!chunk) {
        return false;
    }
    *chunk = (gmd_arena_chunk){.older = arena->chunks, .size = bytes};
    arena->chunks = chunk;
    arena->next = chunk->bytes;
    arena->end = chunk->bytes + bytes;
    return true;
}

void *gmd_arena_take(gmd_arena *arena, size_t size)
{
    if (size > SIZE_MAX - ALIGNMENT) {
        return NULL;
    }
    size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (gmd_arena_is_full(arena, size)) {
        return NULL;
    }
    if (size > (size_t)(arena->end - arena->next) && !add_chunk(arena, size)) {
        return NULL;
    }
    void *taken = arena->next;
    arena->next += size;
    arena->used += size;
    return taken;
}
