/* gmd_pool_state.h - which private pools are open and held where, and which graphs work in them,
 * after each request: what a program may ask next. One for all who make requests or carry them out.
 *
 * A pool is its name and a device. At most one pool of a device is open at a time; each begin
 * holds it once more, and a release takes one hold back. An open pool keeps one. A capture opens a
 * pool for its stream, and its graph has that hold: where a release leaves fewer holds than graphs,
 * the oldest graph goes. There is one capture at a time, and while it is under way no pool is
 * released and no graph launched. A checkpoint is of a pool that is held, lasts until the pool is
 * gone or has another one, and is neither made nor brought back while a capture is under way. The
 * begin that makes a pool gives its options, which last as long as the pool; one whose blocks serve
 * others (GMD_POOL_USE_ON_OOM) has neither graphs nor checkpoints. */
#ifndef GMD_POOL_STATE_H
#define GMD_POOL_STATE_H

#include "gmd_trace.h"

typedef struct gmd_pool_state {    /* zero-initialised: there is none */
    uint8_t open[GMD_MAX_DEVICES]; /* 1 + the pool; 0: none */
    uint8_t capturing;             /* 1 + the device; 0: no capture is under way */
    uint32_t holders[GMD_MAX_DEVICES][GMD_MAX_POOLS];
    uint32_t graphs[GMD_MAX_DEVICES][GMD_MAX_POOLS];
    bool has_checkpoint[GMD_MAX_DEVICES][GMD_MAX_POOLS];
    uint8_t options[GMD_MAX_DEVICES][GMD_MAX_POOLS]; /* gmd_pool_option; 0 where nobody holds it */
} gmd_pool_state;

/* Notes a request on a pool. NULL: done; else what would have to be there instead, and nothing
 * changed. */
const char *gmd_pool_state_note(gmd_pool_state *state, const gmd_request *request);

/* For assertions: whether it is what requests can lead to. The sentence that does not hold; NULL:
 * all does. */
const char *gmd_pool_state_violation(const gmd_pool_state *state);

#endif
