/* gmd_input_pools.h - requests on private pools, from the fields of a record and back. */
#ifndef GMD_INPUT_POOLS_H
#define GMD_INPUT_POOLS_H

#include "gmd_pool_state.h"

#include <stdbool.h>
#include <string.h>

/* What a record does to the pool that its target names. */
typedef enum gmd_input_pool_act {
    GMD_POOL_BEGIN,    /* for all streams */
    GMD_POOL_BEGIN_ON, /* for the record's */
    GMD_POOL_END,      /* the open one, whichever is named; with the capture in it */
    GMD_POOL_RELEASE,
    GMD_POOL_CAPTURE, /* of the record's stream */
    GMD_POOL_LAUNCH,  /* likewise */
    GMD_POOL_ACTS
} gmd_input_pool_act;

enum { GMD_POOL_NOT_LISTED = 255 };

typedef struct gmd_input_pools {
    uint32_t count; /* that records can name; 0: there are none, and the rest is not set */
    uint32_t used;  /* so far: pools are numbered by their first request, as a text does it */
    gmd_pool_state state;
    uint8_t index[GMD_MAX_POOLS];
} gmd_input_pools;

static inline void gmd_input_pools_open(gmd_input_pools *p, uint32_t count)
{
    p->count = count;
    p->used = 0;
    if (count) {
        memset(&p->state, 0, sizeof p->state);
        memset(p->index, GMD_POOL_NOT_LISTED, sizeof p->index);
    }
}

/* `r` has the record's device and stream. False: it makes no sense here, and nothing changed. */
static inline bool gmd_input_pools_make(gmd_input_pools *p, gmd_request *r, uint32_t target,
                                        gmd_input_pool_act act)
{
    static const uint8_t ops[GMD_POOL_ACTS] = {GMD_OP_BEGIN_POOL,    GMD_OP_BEGIN_POOL,
                                               GMD_OP_END_POOL,      GMD_OP_RELEASE_POOL,
                                               GMD_OP_BEGIN_CAPTURE, GMD_OP_LAUNCH};
    uint32_t named = target % p->count;
    bool is_new = p->index[named] == GMD_POOL_NOT_LISTED;
    uint8_t open = p->state.open[r->device];
    bool is_capturing = p->state.capturing == r->device + 1;
    r->op = act == GMD_POOL_END && is_capturing ? GMD_OP_END_CAPTURE : ops[act];
    r->stream = act == GMD_POOL_BEGIN                            ? GMD_ALL_STREAMS
                : act == GMD_POOL_END || act == GMD_POOL_RELEASE ? 0
                                                                 : r->stream;
    r->pool = act == GMD_POOL_END && open ? open - 1u : is_new ? p->used : p->index[named];
    if (gmd_pool_state_note(&p->state, r)) {
        return false;
    }
    bool is_begin = act <= GMD_POOL_BEGIN_ON || act == GMD_POOL_CAPTURE;
    if (is_begin && is_new) {
        p->index[named] = (uint8_t)p->used++;
    }
    return true;
}

static inline gmd_input_pool_act gmd_input_pool_act_of(const gmd_request *r)
{
    bool is_of_capture = gmd_op_is_of_capture(r->op);
    switch ((gmd_pool_step)gmd_request_rows[r->op].pool_step) {
    case GMD_POOL_STEP_BEGIN:
        return is_of_capture                  ? GMD_POOL_CAPTURE
               : r->stream == GMD_ALL_STREAMS ? GMD_POOL_BEGIN
                                              : GMD_POOL_BEGIN_ON;
    case GMD_POOL_STEP_LAUNCH:
        return GMD_POOL_LAUNCH;
    case GMD_POOL_STEP_RELEASE:
        return GMD_POOL_RELEASE;
    default:
        return GMD_POOL_END;
    }
}

#endif
