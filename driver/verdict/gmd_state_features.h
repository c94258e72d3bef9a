/* gmd_state_features.h - state coverage: what a request made of the allocator, boiled down to
 * numbers that are new or not. They guide a search where no instrumentation does: all of them are
 * seen from outside.
 *
 * A feature is a class of situations, never an exact figure: which calls a request made the
 * allocator make and how they ended (the stages of its retry ladder), and after which others; how
 * full it is (cached, split, waiting for events, segments, by powers of two); where a block lies
 * relative to those freed before (exactly there, inside, over several; of the same stream or not);
 * what oracles had to judge. Only whether one was ever seen counts, so that nothing is cleared
 * between inputs.
 *
 * Thread safety: many processes may share one map; one state_features belongs to one session, whose
 * threads take turns. */
#ifndef GMD_STATE_FEATURES_H
#define GMD_STATE_FEATURES_H

#include "gmd_feature_map.h"
#include "gmd_oracle.h"
#include "gmd_sim.h"

#define GMD_FREED_BLOCKS 8  /* that are remembered */
#define GMD_CALL_NAMES   64 /* likewise, a power of two */

typedef struct call_name { /* what is worked out of a function's name */
    const char *function;
    uint32_t hash, weight; /* weight: what how the call ended is multiplied by */
    bool is_creation;      /* of an event */
} call_name;

struct state_features {
    gmd_feature_map *map;      /* NULL: nothing is noted */
    uint32_t fresh;            /* features that nobody had seen before, since the last start */
    uint32_t calls, last_call; /* of the request under way: their signature */
    uint32_t call_count, kinds;
    uint32_t previous, previous_kinds; /* of the request before */
    bool has_begun;
    uint64_t retries, ooms;
    gmd_live_block freed[GMD_FREED_BLOCKS];
    uint32_t freed_count;
    call_name names[GMD_CALL_NAMES]; /* by where the name lies */
};
typedef struct state_features state_features;

/* A new input begins. */
void features_start(state_features *features, gmd_feature_map *map);

/* The allocator made a call to the device. */
void features_call(state_features *features, const gmd_sim_call *call);

/* The request that the view shows is over. */
void features_request(state_features *features, const gmd_view *view);

/* Anything else that is worth telling apart: a family and what distinguishes its members. */
void features_add(state_features *features, uint32_t family, uint32_t member);

#endif
