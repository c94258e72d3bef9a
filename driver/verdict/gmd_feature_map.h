/* gmd_feature_map.h - which features of an allocator's state were ever seen (gmd_state_features.h).
 * Plain memory that processes may share; zero-initialised: none. */
#ifndef GMD_FEATURE_MAP_H
#define GMD_FEATURE_MAP_H

#include <stdatomic.h>
#include <stdint.h>

#define GMD_FEATURE_BITS 16 /* two that fall on one number are taken for one */

typedef struct gmd_feature_map {
    _Atomic uint32_t count;
    _Atomic uint8_t seen[1u << GMD_FEATURE_BITS];
} gmd_feature_map;

#endif
