/* gmd_timeline.h - what a run asked of its allocator, request by request, with the memory after
 * each.
 *
 * Plain data in memory that the driver's child shares with its parent, so that what came before a
 * crash survives it. A full timeline counts what it left out. */
#ifndef GMD_TIMELINE_H
#define GMD_TIMELINE_H

#include "gmd_error.h"

#include <stdbool.h>
#include <stdint.h>

#define GMD_TIMELINE_MAX ((uint64_t)1 << 22)

typedef struct gmd_timeline_entry {
    uint64_t bytes, address;      /* of an allocation; address 0: it was refused */
    uint64_t allocated, reserved; /* of the device, afterwards; GMD_STAT_UNKNOWN: not known */
    uint32_t block, stream;
    union { /* as in gmd_journal_event */
        uint32_t line, origin;
    };
    uint8_t op, device; /* op: gmd_op */
} gmd_timeline_entry;

typedef struct gmd_timeline {
    uint64_t count, dropped;
    gmd_timeline_entry entries[GMD_TIMELINE_MAX]; /* entry number i is of request i */
} gmd_timeline;

/* Memory is taken as it fills. NULL: none is left. */
gmd_timeline *gmd_timeline_open(gmd_error *error);
void gmd_timeline_close(gmd_timeline *timeline); /* accepts NULL */

#endif
