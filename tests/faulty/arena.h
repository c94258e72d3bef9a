/* arena.h - superblocks and their chunks, as arena.c uses them: memory of the device that is cut
 * from, and the global arena that keeps those that belong to no stream. */
#ifndef ARENA_H
#define ARENA_H

#include "faulty.h"

#include <pthread.h>

/* The order is that of faulty_defects in arena.c. */
enum {
    RMM1393,
    CUPY1165,
    RMM1912,
    DALI3402,
    CUB705,
    PYTORCH97833,
    RMM397,
    CUB328_COUNT,
    RMM2039,
    RMM2366,
    RMM2489_STEAL,
    STEALS_UNORDERED,
    DEFRAGMENTS_UNORDERED,
    FREES_UNORDERED,
    THREAD_NOT_DEVICE,
    NULL_ARENA,
    RELEASED_IN_USE,
    SPLIT_TOO_EARLY,
};

#ifndef FAULTY_UNIT
#define FAULTY_UNIT 256
#endif
#define UNIT ((uint64_t)FAULTY_UNIT)

typedef struct chunk {
    struct chunk *next; /* ascending addresses; neighbours are merged */
    uint64_t address, size;
} chunk;

typedef struct superblock {
    struct superblock *next;
    uint64_t address, size;
    chunk *free;
} superblock;

/* 0: no chunk is large enough. */
uint64_t superblock_take(superblock *s, uint64_t size);
void superblock_put(superblock *s, uint64_t address, uint64_t size);
bool superblock_is_free(const superblock *s);
bool superblock_has(const superblock *s, uint64_t address);
/* The one of a list that an address is in, taken out of it or not. NULL: none. */
superblock *superblock_find(superblock *list, uint64_t address);

/* Superblocks of one size. */
typedef struct bin {
    uint64_t size;
    superblock *superblocks;
} bin;

/* The global arena of one device. What is free in it is known to be done with. */
typedef struct global {
    pthread_mutex_t lock;
    bin *bins; /* ascending sizes */
    size_t bin_count, bin_capacity;
    uint64_t limit; /* of reserved bytes; 0: none */
    gmd_stats stats;
} global;

/* With the lock held. */
superblock *global_take(global *g, uint64_t size); /* with a chunk that is large enough */
superblock *global_find(const global *g, uint64_t address);
void global_put(global *g, superblock *s);
void global_drop_bins(global *g); /* those that are empty */
superblock *global_grow(global *g, uint64_t size);
/* All that nobody has a block in. */
void global_release(global *g);

#endif
