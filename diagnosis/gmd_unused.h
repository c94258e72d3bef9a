/* gmd_unused.h - what was reserved and not allocated where reserved memory was most, and what the
 * last of it was taken for. */
#ifndef GMD_UNUSED_H
#define GMD_UNUSED_H

#include "gmd_facts.h"
#include "gmd_free_memory.h"

typedef struct gmd_unused {
    gmd_free_memory free; /* by what it was, once the request is served that memory was taken for */
    bool has_request;     /* the recording has the request that memory was taken for then */
    uint32_t origin;      /* of the request */
    uint64_t requested, stream;
    gmd_free_memory refused; /* by why it did not serve the request */
} gmd_unused;

gmd_status gmd_unused_find(gmd_unused *unused, const gmd_facts *facts, gmd_error *error);
void gmd_unused_release(gmd_unused *unused);

#endif
