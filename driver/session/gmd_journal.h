/* gmd_journal.h - what happened to the memory of a run, event by event, in the terms of PyTorch's
 * memory history, and what the allocator held when the requests were over.
 *
 * Plain data in memory that the driver's child shares with its parent, so that what came before a
 * crash survives it. Whoever reads it must reckon with an allocator that has written there. */
#ifndef GMD_JOURNAL_H
#define GMD_JOURNAL_H

#include "gmd_error.h"
#include "gmd_snapshot.h"

#include <stdbool.h>
#include <stdint.h>

#define GMD_JOURNAL_EVENT_MAX ((uint64_t)1 << 24)
#define GMD_JOURNAL_BLOCK_MAX ((uint64_t)1 << 22)

typedef struct gmd_journal_event {
    uint64_t address; /* OOM: the device's free bytes */
    uint64_t size;    /* asked for; of pages and segments their own */
    uint64_t stream;  /* the recorded handle; where there is none, the stream's number */
    uint64_t time_us; /* of a recorded history as recorded; else on a real device since the epoch,
                         on the simulated one the request's index, a microsecond for each, as its
                         clock may stand still */
    uint32_t request; /* index */
    union {
        uint32_t line;   /* where the request was read from; 0: nowhere */
        uint32_t origin; /* of a recorded history (gmd_workload.recorded): of the snapshot's */
    };
    uint8_t action; /* gmd_action, and 1 more; 0: it is not whole */
    uint8_t device;
    char name[22]; /* of the block, cut to fit; "": it has none */
} gmd_journal_event;

/* A block of the allocator's, as gmd_walk shows it (gmd_abi.h). */
typedef struct gmd_journal_block {
    uint64_t segment_address, segment_size;
    uint64_t address, size, requested_size, stream;
    uint64_t pool_id[2];
    uint8_t device, state;           /* state: gmd_block_state */
    uint8_t is_large, is_expandable; /* no bool: whatever is written there is one of its values */
} gmd_journal_block;

typedef struct gmd_journal {
    uint64_t count, dropped; /* events */
    uint64_t block_count;
    uint8_t is_walked; /* `blocks` holds all there were after the last event */
    uint32_t device_count;
    char conf[4200]; /* the allocator's settings, as it was given them */
    gmd_journal_block blocks[GMD_JOURNAL_BLOCK_MAX];
    gmd_journal_event events[GMD_JOURNAL_EVENT_MAX];
} gmd_journal;

/* Memory is taken as it fills. NULL: none is left. */
gmd_journal *gmd_journal_open(gmd_error *error);
void gmd_journal_close(gmd_journal *journal); /* accepts NULL */

#endif
