/* gmd_generator.h - what a generator of random sequences (gmd_generate.h) knows of the one that it
 * makes. */
#ifndef GMD_GENERATOR_H
#define GMD_GENERATOR_H

#include "gmd_pool_state.h"
#include "gmd_profile.h"
#include "gmd_random.h"
#include "gmd_trace.h"

#define GMD_LIVE_MAX 4096 /* a profile's live_max is mostly far below */

typedef struct gmd_generated_block {
    uint32_t block, stream;
    uint8_t device;
    uint64_t bytes;
} gmd_generated_block;

typedef struct gmd_generator {
    const gmd_profile *profile;
    const gmd_profile_space *space;
    gmd_random random;
    gmd_generated_block live[GMD_LIVE_MAX];
    uint32_t live_count;
    uint32_t next_block;
    uint64_t live_bytes[GMD_MAX_DEVICES];
    uint8_t thread;
    uint32_t weights[GMD_OP_COUNT], weight_sum; /* of what can be made */
    gmd_request planned[2];                     /* what is to come next, the last first */
    uint32_t planned_count;
    uint32_t pool_count; /* made so far */
    gmd_pool_state pools;
    uint32_t captured_stream; /* of the latest capture */
} gmd_generator;

#endif
