/* gmd_holders.h - who holds the memory at a moment: bytes and blocks by line, by stack, by
 * category, by age, by stream. */
#ifndef GMD_HOLDERS_H
#define GMD_HOLDERS_H

#include "gmd_categories.h"
#include "gmd_iterations.h"
#include "gmd_places.h"
#include "gmd_recording.h"

typedef enum gmd_grouping {
    GMD_BY_LINE,     /* key: a frame; GMD_NO_PLACE: no frames were recorded */
    GMD_BY_FRAME,    /* key: the innermost frame of Python, be it a library's; else as by line */
    GMD_BY_STACK,    /* key: a stack */
    GMD_BY_CATEGORY, /* key: a gmd_category */
    GMD_BY_AGE,      /* key: iterations since it was allocated; GMD_SET_UP: from before them */
    GMD_BY_STREAM,   /* key: the recorded handle */
} gmd_grouping;

typedef struct gmd_holder {
    uint64_t key;
    uint64_t bytes;  /* of blocks */
    uint64_t blocks; /* how many */
} gmd_holder;

typedef struct gmd_holders { /* most bytes first; equal ones by key */
    gmd_holder *items;
    size_t count;
    uint64_t bytes; /* of all */
} gmd_holders;

/* What the facts say of a recording, as far as holders need it. */
typedef struct gmd_holder_facts {
    const gmd_recording *recording;
    const gmd_places *places;
    const gmd_iterations *iterations;
    const gmd_categories *categories;
} gmd_holder_facts;

gmd_status gmd_holders_find(gmd_holders *holders, const gmd_holder_facts *facts,
                            gmd_grouping grouping, uint32_t moment, gmd_error *error);
void gmd_holders_free(gmd_holders *holders);

#endif
