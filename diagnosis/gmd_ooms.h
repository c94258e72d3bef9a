/* gmd_ooms.h - each out-of-memory of a recorded job: what was asked for, what was free and why it
 * did not serve, and what the cause was.
 *
 * PyTorch records an OOM after it has given its cache back to the device and asked again, so what
 * is still free then lies beside blocks that are in use. */
#ifndef GMD_OOMS_H
#define GMD_OOMS_H

#include "gmd_facts.h"
#include "gmd_free_memory.h"

/* One list: names are those in JSON. */
#define GMD_OOM_CAUSES(CAUSE)                                                                      \
    CAUSE(LEAK, "leak")                   /* what has leaked until then would have been enough */  \
    CAUSE(CAPACITY, "capacity")           /* the live blocks and the request do not fit */         \
    CAUSE(FRAGMENTATION, "fragmentation") /* they would, if free memory were in one piece */       \
    CAUSE(LIMIT, "limit")                 /* the device has it, and a limit forbids it */          \
    CAUSE(ALLOCATOR, "allocator")         /* a free block would have served: pytorch#189504 */

typedef enum gmd_oom_cause {
#define GMD_OOM_CAUSE_NUMBER(name, text) GMD_OOM_##name,
    GMD_OOM_CAUSES(GMD_OOM_CAUSE_NUMBER)
#undef GMD_OOM_CAUSE_NUMBER
        GMD_OOM_CAUSE_COUNT
} gmd_oom_cause;

enum { GMD_OOM_CHANGE_TEXT = 240 };

typedef struct gmd_oom {
    uint32_t moment;
    uint32_t origin; /* of the request */
    uint64_t requested, stream;
    uint64_t device_free; /* as the device said; UINT64_MAX: not recorded */
    gmd_amount amount;    /* at that moment */
    gmd_free_memory free; /* why each free part did not serve; its keepers */
    uint64_t largest;     /* bytes: the largest request that would have been served */
    uint64_t missing;     /* bytes of device memory that would have let it pass */
    uint64_t leaked;      /* bytes that had leaked until then */
    gmd_oom_cause cause;
    uint32_t repeats; /* further OOMs of the same line and size, not looked at one by one */
    char change[GMD_OOM_CHANGE_TEXT]; /* the smallest change that would have let it pass */
} gmd_oom;

typedef struct gmd_ooms { /* in order; of equal line and size the first only */
    gmd_oom *items;
    size_t count;
    uint64_t left_out; /* of further lines and sizes: there were too many */
} gmd_ooms;

/* `leak_frames`: the lines whose blocks leak, by what was found: what is live of them has leaked.
 */
gmd_status gmd_ooms_find(gmd_ooms *ooms, const gmd_facts *facts, const uint32_t *leak_frames,
                         size_t leak_frame_count, gmd_error *error);
void gmd_ooms_free(gmd_ooms *ooms);

const char *gmd_oom_cause_name(gmd_oom_cause cause);

#endif
