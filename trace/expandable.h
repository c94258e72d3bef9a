/* expandable.h - the expandable segments of a history, worked out from their pages.
 *
 * An expandable segment is a reservation of addresses that belongs to one stream and one pool;
 * pages are mapped from its start on, holes are filled again, and when the last page is unmapped
 * the reservation is given back. */
#ifndef GMD_TRACE_EXPANDABLE_H
#define GMD_TRACE_EXPANDABLE_H

#include "gmd_intervals.h"
#include "gmd_snapshot.h"

typedef struct expandable_segment {
    uint64_t mapped; /* bytes */
    uint64_t stream;
    uint8_t device;
} expandable_segment;

typedef struct expandable_segments { /* zero-initialised: none */
    gmd_intervals ranges;      /* the addresses of each that were ever mapped: an index of items */
    expandable_segment *items; /* also those that are gone */
    size_t count, capacity;
    uint64_t nearest; /* bytes from one segment's beginning to another's, of those that were there
                         at the same time; 0: there never were two */
} expandable_segments;

typedef enum expandable_answer {
    EXPANDABLE_OLD, /* pages of a segment that is there */
    EXPANDABLE_NEW, /* the first of a segment */
    EXPANDABLE_NO_MEMORY,
} expandable_answer;

/* Pages where those of another stream were mean that its segment is gone. */
expandable_answer expandable_map(expandable_segments *segments, const gmd_snapshot_event *event);

/* False: no such pages are mapped. */
bool expandable_unmap(expandable_segments *segments, const gmd_snapshot_event *event);
void expandable_free(expandable_segments *segments);

#endif
