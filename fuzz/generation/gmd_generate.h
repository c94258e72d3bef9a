/* gmd_generate.h - random request sequences that a correct program could make.
 *
 * A generator appends one request after the other to a trace, as a profile says, each valid where
 * it stands; the caller's duties (ordering other streams' work before a free) are the driver's, so
 * any order of requests will do. The same profile and seed give the same requests.
 *
 * Thread safety: none; a generator belongs to one thread. */
#ifndef GMD_GENERATE_H
#define GMD_GENERATE_H

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

/* Makes `trace` (which must be initialised and empty) the beginning of a sequence: its header, and
 * the requests that set it up. */
gmd_status gmd_generator_start(gmd_generator *generator, const gmd_profile *profile,
                               const gmd_profile_space *space, uint64_t seed, gmd_trace *trace,
                               gmd_error *error);

/* Appends one request. */
gmd_status gmd_generator_step(gmd_generator *generator, gmd_trace *trace, gmd_error *error);

/* For assertions: the sentence that does not hold of what it knows of its own sequence; NULL: all
 * does. */
const char *gmd_generator_violation(const gmd_generator *generator);

/* A whole sequence. */
gmd_status gmd_generate(const gmd_profile *profile, const gmd_profile_space *space, uint64_t seed,
                        gmd_trace *trace, gmd_error *error);

#endif
