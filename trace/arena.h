/* arena.h - bump allocation for values that live and die together.
 *
 * Thread safety: none. Memory is aligned for pointers and 64-bit numbers, and not cleared. */
#ifndef GMD_TRACE_ARENA_H
#define GMD_TRACE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

typedef struct gmd_arena_chunk gmd_arena_chunk;

typedef struct gmd_arena {
    gmd_arena_chunk *chunks; /* the newest first */
    char *next, *end;        /* free bytes of the newest */
    size_t used, limit;      /* bytes handed out, and the most that may be */
} gmd_arena;

void gmd_arena_init(gmd_arena *arena, size_t limit);
void gmd_arena_free(gmd_arena *arena);

/* NULL: over the limit (gmd_arena_is_full tells), or the host is out of memory. */
void *gmd_arena_take(gmd_arena *arena, size_t size);

/* True if `size` bytes more would pass the limit. */
bool gmd_arena_is_full(const gmd_arena *arena, size_t size);

#endif
