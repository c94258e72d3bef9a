/* gmd_feature_map.h - which features of an allocator's state were ever seen (gmd_state_features.h).
 * Plain memory that processes may share; zero-initialised: none. */
#ifndef GMD_FEATURE_MAP_H
#define GMD_FEATURE_MAP_H

#include <stdatomic.h>
#include <stdint.h>

#define GMD_FEATURE_BITS 16 /* two that fall on one number are taken for one */

typedef enum gmd_feature_kind {
    GMD_FEATURE_CALLS,      /* of one request to the device, and how they ended */
    GMD_FEATURE_CALL_PAIRS, /* of two requests, one after the other */
    GMD_FEATURE_FULLNESS,   /* cached, split, segments, live blocks */
    GMD_FEATURE_PENDING,    /* freed blocks that wait */
    GMD_FEATURE_PLACES,     /* of a block among those freed before */
    GMD_FEATURE_USES,       /* of a freed block by streams */
    GMD_FEATURE_REFUSALS,
    GMD_FEATURE_JUDGED, /* what oracles had to judge */
    GMD_FEATURE_KIND_COUNT
} gmd_feature_kind;

typedef struct gmd_feature_map {
    _Atomic uint32_t count;
    _Atomic uint32_t of_kind[GMD_FEATURE_KIND_COUNT];
    _Atomic uint8_t seen[1u << GMD_FEATURE_BITS];
} gmd_feature_map;

#endif
