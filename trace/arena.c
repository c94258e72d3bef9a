#include "arena.h"

#include "gmd_min.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* AddressSanitizer sees a use of what was given back, as it does after free(). */
#if defined __has_feature
#define HAS_FEATURE(name) __has_feature(name)
#else
#define HAS_FEATURE(name) 0
#endif
#if defined __SANITIZE_ADDRESS__ || HAS_FEATURE(address_sanitizer)
#include <sanitizer/asan_interface.h>
#define FORBID_USE(bytes, count) __asan_poison_memory_region((bytes), (count))
#define ALLOW_USE(bytes, count)  __asan_unpoison_memory_region((bytes), (count))
#else
#define FORBID_USE(bytes, count) ((void)(bytes), (void)(count))
#define ALLOW_USE(bytes, count)  ((void)(bytes), (void)(count))
#endif

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

/* Chunks double, so that a small file costs little and a large one few calls. */
static bool add_chunk(memory_arena *arena, size_t size)
{
    size_t bytes = arena->chunks ? arena->chunks->size * 2 : FIRST_CHUNK;
    bytes = gmd_min(bytes, LARGEST_CHUNK);
    bytes = gmd_max(bytes, size);
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

/* Sizes are powers of two from 16 on, so that what is given back serves what is taken later. */
static unsigned size_class(size_t size)
{
    enum { SMALLEST = 4 };
    return size <= 1 << SMALLEST ? SMALLEST : 64 - (unsigned)__builtin_clzll(size - 1);
}

static void *take_given(memory_arena *arena, unsigned class)
{
    void *taken = arena->given[class];
    if (taken) {
        ALLOW_USE(taken, (size_t)1 << class);
        memcpy(&arena->given[class], taken, sizeof taken);
    }
    return taken;
}

/* What is counted is what is taken from the host. */
static size_t room_for(size_t size)
{
    return (size_t)1 << size_class(size);
}

bool arena_is_full(const memory_arena *arena, size_t size)
{
    return size > arena->limit || room_for(size) > arena->limit - arena->used;
}

bool arena_charge(memory_arena *arena, size_t before, size_t now)
{
    size_t used = arena->used - before;
    arena->used = used + now;
    return now <= arena->limit && used <= arena->limit - now;
}

void *arena_take(memory_arena *arena, size_t size)
{
    if (arena_is_full(arena, size)) {
        return NULL;
    }
    unsigned class = size_class(size);
    size_t room = room_for(size);
    void *taken = take_given(arena, class);
    if (!taken) {
        if (room > (size_t)(arena->end - arena->next) && !add_chunk(arena, room)) {
            return NULL;
        }
        taken = arena->next;
        arena->next += room;
    }
    arena->used += room;
    return taken;
}

void arena_give(memory_arena *arena, void *taken, size_t size)
{
    if (size) {
        unsigned class = size_class(size);
        memcpy(taken, &arena->given[class], sizeof taken);
        arena->given[class] = taken;
        arena->used -= room_for(size);
        FORBID_USE(taken, (size_t)1 << class);
    }
}
