/* settings.h - the settings of PYTORCH_CUDA_ALLOC_CONF that torch 2.11's native allocator has, and
 * the sizes that follow from them.
 *
 * Source: https://docs.pytorch.org/docs/stable/notes/cuda.html (Optimizing memory usage) and the
 * answers of torch 2.11's own library (tests/torch compares the two). All sizes are bytes. */
#ifndef GMD_SETTINGS_H
#define GMD_SETTINGS_H

#include "gmd_error.h"
#include "gmd_size.h"

#include <stdbool.h>
#include <stdint.h>

#define BLOCK_BYTES         ((uint64_t)512) /* every block is a multiple of this */
#define SMALL_REQUEST_BYTES (1 * GMD_MIB)   /* up to here: small pool */
#define SMALL_SEGMENT_BYTES (2 * GMD_MIB)
#define LARGE_REQUEST_BYTES (10 * GMD_MIB) /* below: segments of large_segment_bytes */
#define SEGMENT_ROUND_BYTES (2 * GMD_MIB)  /* from LARGE_REQUEST_BYTES on: rounded up to this */

enum { ROUNDUP_INTERVALS = 16 }; /* powers of two from 1 MiB on; the last one has no upper end */

typedef struct settings {
    uint64_t max_split_bytes;              /* UINT64_MAX: every block may be split */
    uint64_t max_non_split_rounding_bytes; /* an oversize block may exceed the request by less */
    uint64_t large_segment_bytes;
    uint64_t roundup_divisions[ROUNDUP_INTERVALS]; /* 0 and 1: no rounding */
    bool rounds_up;                                /* one of the divisions is above 1 */
    double gc_threshold;                           /* of the memory limit; 0: no collection */
    double memory_fraction;                        /* of each device; 1: no limit is set */
    bool expandable_segments;
    bool reuses_in_captures; /* blocks that were freed in a capture, as its order of work allows */
} settings;

/* NULL and "" are the defaults. GMD_BAD_INPUT names the token and what was expected. */
gmd_status settings_parse(settings *out, const char *conf, gmd_error *error);

/* Settings that follow others while the allocator is in use. As in torch 2.11, max_split_size_mb,
 * roundup_power2_divisions and garbage_collection_threshold fall back to their defaults where
 * `conf` does not name them; the others stay as they were. */
gmd_status settings_parse_later(settings *out, const settings *before, const char *conf,
                                gmd_error *error);

/* Both saturate below UINT64_MAX, where no device can serve: the request then fails like any that
 * is too large (a wrap to zero here would hand out a block that is too short, pytorch#182446). */
uint64_t settings_block_size(const settings *s, uint64_t requested);
uint64_t settings_segment_size(const settings *s, uint64_t block_size);

/* The page size of expandable segments in the small or the large pool. */
uint64_t settings_page_size(const settings *s, bool is_small);

/* What is mapped or allocated for a block that nothing cached serves a part of. */
uint64_t settings_device_request(const settings *s, uint64_t block_size);

#endif
