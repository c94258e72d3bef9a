/* arena.h - bump allocation for values that die together, some of which are given back before, and
 * the one count of all that reading takes: arrays beside it are charged to it.
 *
 * Thread safety: none. Memory is aligned for pointers and 64-bit numbers, and not cleared. */
#ifndef GMD_TRACE_ARENA_H
#define GMD_TRACE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

typedef struct arena_chunk arena_chunk;

enum { ARENA_SIZES = 48 };

typedef struct memory_arena {
    arena_chunk *chunks;      /* the newest first */
    char *next, *end;         /* free bytes of the newest */
    size_t used, limit;       /* bytes handed out and charged, and the most that may be */
    void *given[ARENA_SIZES]; /* what was given back, by size, linked through its first bytes */
} memory_arena;

void arena_init(memory_arena *arena, size_t limit);
void arena_free(memory_arena *arena);

/* NULL: over the limit (arena_is_full tells), or the host is out of memory. */
void *arena_take(memory_arena *arena, size_t size);

/* Gives back what was taken with this size; NULL and 0 is nothing. */
void arena_give(memory_arena *arena, void *taken, size_t size);

/* True if `size` bytes more would pass the limit. */
bool arena_is_full(const memory_arena *arena, size_t size);

/* Counts an array of its owner's that has grown from `before` bytes to `now`. False: that passes
 * the limit. */
bool arena_charge(memory_arena *arena, size_t before, size_t now);

#endif
