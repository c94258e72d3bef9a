#include "arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>

enum { FIRST_CHUNK = 16 << 10, LARGEST_CHUNK = 4 << 20, ALIGNMENT = 8 };

struct arena_chunk {
    arena_chunk *older;
    size_t size;
    alignas(ALIGNMENT) char bytes[];
};

void arena_init(memory_arena *arena, size_t limit)
{
    *arena = (memory_arena){.limit = limit};
}

void arena_free(memory_arena *arena)
{
    while (arena->chunks) {
        arena_chunk *older = arena->chunks->older;
        free(arena->chunks);
        arena->chunks = older;
    }
    *arena = (memory_arena){0};
}

bool arena_is_full(const memory_arena *arena, size_t size)
{
    return size > arena->limit - arena->used;
}

/* Chunks double, so that a small file costs little and a large one few calls. */
static bool add_chunk(memory_arena *arena, size_t size)
{
    size_t bytes = arena->chunks ? arena->chunks->size * 2 : FIRST_CHUNK;
    bytes = bytes > LARGEST_CHUNK ? LARGEST_CHUNK : bytes;
    bytes = bytes < size ? size : bytes;
    arena_chunk *chunk = malloc(sizeof *chunk + bytes);
    if (!chunk) {
        return false;
    }
    *chunk = (arena_chunk){.older = arena->chunks, .size = bytes};
    arena->chunks = chunk;
    arena->next = chunk->bytes;
    arena->end = chunk->bytes + bytes;
    return true;
}

void *arena_take(memory_arena *arena, size_t size)
{
    if (size > SIZE_MAX - ALIGNMENT) {
        return NULL;
    }
    size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (arena_is_full(arena, size)) {
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
