/* guide.h - inputs made of those that brought the allocator into new states. Thread safety: none.
 */
#ifndef GMD_GUIDE_H
#define GMD_GUIDE_H

#include "gmd_corpus.h"
#include "gmd_profile.h"

typedef struct guide {
    gmd_corpus *corpus; /* NULL: random bytes */
    const gmd_profile_space *space;
    gmd_random random;
    gmd_conditions header; /* that the inputs of a round share: one process runs them all */
    size_t base;           /* which entry they are made of: the corpus grows meanwhile */
    uint8_t *bytes;        /* an input in the making */
} guide;

/* A round begins: chooses what its inputs are made of, and their header. False: the corpus is
 * empty, or there is no host memory. `drawn` is a header by a profile, for a change now and then.
 */
bool guide_start(guide *guide, gmd_corpus *corpus, const gmd_profile_space *space, uint64_t seed,
                 const gmd_conditions *drawn);

/* The same for inputs that are random bytes. False: there is no host memory. */
bool guide_start_random(guide *guide, const gmd_profile_space *space, uint64_t seed);

/* One input more; `trace` need not be initialised, and is the caller's to free, also on failure. */
gmd_status guide_make(guide *guide, gmd_trace *trace, gmd_error *error);

void guide_end(guide *guide);

#endif
