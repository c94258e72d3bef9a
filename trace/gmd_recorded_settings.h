/* gmd_recorded_settings.h - what the settings of a recorded job mean for sizes: the rules of
 * PyTorch's algorithm that reading a history needs. */
#ifndef GMD_TRACE_RECORDED_SETTINGS_H
#define GMD_TRACE_RECORDED_SETTINGS_H

#include "gmd_snapshot.h"

#define GMD_RECORDED_BLOCK_UNIT 512u /* bytes: sizes of blocks are multiples of it */

typedef struct gmd_recorded_settings {
    uint64_t max_split_bytes; /* UINT64_MAX: none */
    uint64_t max_non_split_rounding_bytes;
    uint64_t large_segment_bytes;
    uint64_t roundup_divisions[GMD_ROUNDUP_INTERVALS];
    double gc_threshold; /* 0: none */
    bool is_expandable;
    bool is_exact; /* blocks are of the size that was asked for */
} gmd_recorded_settings;

/* From the snapshot's values, and from its string what it has no values for. */
gmd_recorded_settings gmd_recorded_settings_of(const gmd_snapshot *snapshot);

/* The block that serves a request, before any remainder that it keeps. */
uint64_t gmd_recorded_block_size(const gmd_recorded_settings *s, uint64_t requested);

/* The segment that the device is asked for when no cached block serves. It is held against the
 * memory limit with expandable segments, too, where less may be mapped in the end. */
uint64_t gmd_recorded_segment_size(const gmd_recorded_settings *s, uint64_t requested);

bool gmd_recorded_is_small(const gmd_recorded_settings *s, uint64_t requested);

/* Whether a cached segment of that size, of the request's stream and pool, would have served it. */
bool gmd_recorded_serves(const gmd_recorded_settings *s, uint64_t segment_bytes,
                         uint64_t requested);

#endif
