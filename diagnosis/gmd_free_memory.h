/* gmd_free_memory.h - why reserved memory is more than what is allocated: the free parts of it at a
 * moment, by what keeps them from being used or given back. */
#ifndef GMD_FREE_MEMORY_H
#define GMD_FREE_MEMORY_H

#include "gmd_error.h"
#include "gmd_places.h"
#include "gmd_recording.h"

/* One list: names are those in JSON and on the screen. */
#define GMD_FREE_CAUSES(CAUSE)                                                                     \
    CAUSE(CACHED, "cached", "segments without a block: empty_cache() gives them back")             \
    CAUSE(SPLIT, "split", "parts of segments that other blocks keep")                              \
    CAUSE(EXPANDABLE, "expandable", "free pages of expandable segments")                           \
    CAUSE(PENDING, "pending", "freed, and waiting for another stream")                             \
    CAUSE(PRIVATE, "private", "in private pools, of CUDA graphs")                                  \
    CAUSE(OTHER_STREAM, "other_stream", "cached for another stream")                               \
    CAUSE(OTHER_POOL, "other_pool", "in segments for large requests; this one is small")           \
    CAUSE(TOO_SMALL, "too_small", "of the right stream and pool, but each part is too small")      \
    CAUSE(OVERSIZE, "oversize", "kept whole for larger requests, by max_split_size_mb")            \
    CAUSE(FITTING, "fitting", "free, and large enough")

typedef enum gmd_free_cause {
#define GMD_FREE_CAUSE_NUMBER(name, text, sentence) GMD_FREE_##name,
    GMD_FREE_CAUSES(GMD_FREE_CAUSE_NUMBER)
#undef GMD_FREE_CAUSE_NUMBER
        GMD_FREE_CAUSE_COUNT
} gmd_free_cause;

/* A request that the free memory is looked at for. */
typedef struct gmd_asked {
    uint64_t requested, stream;
} gmd_asked;

typedef struct gmd_keeper { /* a line whose blocks keep free parts of segments from going back */
    uint32_t frame;         /* GMD_NO_PLACE: no frames were recorded */
    uint64_t bytes;         /* free bytes in segments that its blocks are in, shared among lines */
    uint64_t blocks;
} gmd_keeper;

typedef struct gmd_free_memory {
    gmd_amount amount;                       /* at the moment */
    uint64_t by_cause[GMD_FREE_CAUSE_COUNT]; /* bytes; their sum is reserved less allocated */
    bool is_for_large;                       /* the request is, if there is one */
    uint64_t rounding;     /* bytes of allocated blocks beyond what was asked for: not in the sum */
    uint64_t largest_part; /* bytes, of the right stream and pool; without a request of any */
    gmd_keeper *keepers;   /* most bytes first */
    size_t keeper_count;
} gmd_free_memory;

/* What is free after a moment's event. With a request (`asked` not NULL) free memory is divided
 * by why it does not serve it: FITTING, OVERSIZE, TOO_SMALL, OTHER_POOL, OTHER_STREAM, PRIVATE,
 * PENDING; without one, by what it is: CACHED, SPLIT, EXPANDABLE, PRIVATE, PENDING. */
gmd_status gmd_free_memory_find(gmd_free_memory *free_memory, const gmd_recording *recording,
                                const gmd_places *places, uint32_t moment, const gmd_asked *asked,
                                gmd_error *error);
void gmd_free_memory_release(gmd_free_memory *free_memory);

const char *gmd_free_cause_name(gmd_free_cause cause);
const char *gmd_free_cause_sentence(const gmd_free_memory *free_memory, gmd_free_cause cause);

#endif
