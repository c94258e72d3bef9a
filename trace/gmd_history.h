/* gmd_history.h - a recorded history as requests: what the program asked, and what the recorded
 * allocator answered and asked of the device in turn.
 *
 * A snapshot records events, not calls. The requests behind them are inferred: an `alloc` or `oom`
 * event is an allocation, with the segment events right before it as its doing; `free_requested` is
 * a free; segment_free events that no request explains are an empty_cache() call. Pages mapped into
 * and unmapped from expandable segments are read in the same way; where such a segment begins is
 * not recorded, but its first mapping is there. */
#ifndef GMD_HISTORY_H
#define GMD_HISTORY_H

#include "gmd_error.h"
#include "gmd_history_hints.h"
#include "gmd_snapshot.h"
#include "gmd_trace.h"

#include <stdbool.h>
#include <stdint.h>

/* A segment that the recorded allocator asked for or gave back, or pages of an expandable one. */
typedef struct gmd_recorded_call {
    uint64_t address, size; /* bytes */
    bool is_free;
    bool is_mapping;    /* of pages: segment_map, segment_unmap */
    bool opens_segment; /* the first pages of an expandable segment: where its addresses begin */
    uint8_t device;
} gmd_recorded_call;

/* What was recorded for the request of the same index. */
typedef struct gmd_recorded {
    uint64_t address;    /* ALLOC that was served; else 0 */
    uint64_t event;      /* index of its event in the snapshot, for messages */
    uint32_t first_call; /* into gmd_history.calls */
    uint32_t call_count;
    uint32_t origin;           /* of its event; 0: nothing was recorded */
    uint32_t completed_origin; /* FREE: of its free_completed */
    uint64_t time_us;          /* of its event */
    bool is_oom;               /* ALLOC that was refused */
} gmd_recorded;

typedef struct gmd_history {
    gmd_trace trace; /* streams are numbered in ascending order of their recorded handles */
    gmd_recorded *recorded;
    gmd_recorded_call *calls;
    size_t call_count;
    uint64_t limit_bytes; /* of reserved memory; 0: none */
    bool limit_inferred;
    bool limit_is_contradicted; /* a request was served above it, or refused below: it changed, it
                                   is of one device of several, or the device itself had no more */
    uint64_t empty_cache_count; /* inferred calls */
    uint64_t oom_count;
    uint64_t
        deferred_frees; /* frees that were completed later: the block was used on other streams */
    bool waits_again;   /* of the hints */
    uint64_t orphan_frees;                 /* of blocks from before the recording; left out */
    uint64_t orphan_segments;              /* given back, but from before the recording */
    uint64_t first_deferred, first_orphan; /* requests: where the first of each shows */
    uint64_t mapped_events;                /* segment_map and segment_unmap */
    uint64_t nearest_reservations; /* bytes from one's beginning to the next one's; 0: none */
} gmd_history;

/* A history that contradicts itself (a free whose size or stream is not its block's, a segment
 * event without its allocation) is GMD_BAD_INPUT; the message names the event and the request. How
 * the limit is inferred: docs/replay.md; gmd_history.limit_inferred tells. Events of several
 * devices may be interleaved. `name` is for messages. On failure `history` is left empty. */
gmd_status gmd_history_build(gmd_history *history, const gmd_snapshot *snapshot,
                             const gmd_history_hints *hints, const char *name, gmd_error *error);
void gmd_history_free(gmd_history *history);

#endif
