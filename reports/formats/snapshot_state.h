/* snapshot_state.h - the segments and blocks that a journal ends with: as the allocator showed them
 * (gmd_walk), or, where it does not or could not any more, as far as they follow from the events:
 * what the device handed out, in it the blocks that the program has, and between them the rest. */
#ifndef GMD_REPORTS_SNAPSHOT_STATE_H
#define GMD_REPORTS_SNAPSHOT_STATE_H

#include "gmd_journal.h"
#include "gmd_snapshot_file.h"

typedef struct snapshot_state_segment {
    gmd_snapshot_file_segment segment;
    size_t first_block, block_count;
} snapshot_state_segment;

typedef struct snapshot_state {       /* zero-initialised is empty */
    snapshot_state_segment *segments; /* by device and address; their blocks fill them */
    gmd_snapshot_file_block *blocks;
    size_t segment_count, segment_capacity, block_count, block_capacity;
} snapshot_state;

/* A `stack` in it is the number of the event that made it, and 1 more. False: no host memory; to be
 * released all the same. */
bool snapshot_state_make(snapshot_state *state, const gmd_journal *journal);
void snapshot_state_release(snapshot_state *state);

#endif
