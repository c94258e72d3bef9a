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
    GMD_POOL_CHECKPOINT,
    GMD_POOL_RESTORE,
    GMD_POOL_PLAIN_ACTS,
    /* GMD_POOL_BEGIN and GMD_POOL_BEGIN_ON with options: one for each set of them but the first */
    GMD_POOL_BEGIN_WITH = GMD_POOL_PLAIN_ACTS,
    GMD_POOL_BEGIN_ON_WITH = GMD_POOL_BEGIN_WITH + GMD_POOL_OPTION_SETS - 1,
    GMD_POOL_ACTS = GMD_POOL_BEGIN_ON_WITH + GMD_POOL_OPTION_SETS - 1
} gmd_input_pool_act;

#define GMD_POOL_FIRST_ACTS GMD_POOL_CHECKPOINT /* those before it the first inputs knew */

enum { GMD_POOL_NOT_LISTED = 255 };

/* The options of a begin, and the act without them. */
static inline uint8_t gmd_input_pool_options(gmd_input_pool_act act)
{
    uint32_t first = act < GMD_POOL_BEGIN_ON_WITH ? GMD_POOL_BEGIN_WITH : GMD_POOL_BEGIN_ON_WITH;
    return act < GMD_POOL_PLAIN_ACTS ? 0 : (uint8_t)(act - first + 1);
}

static inline gmd_input_pool_act gmd_input_pool_plain(gmd_input_pool_act act)
{
    return act < GMD_POOL_PLAIN_ACTS      ? act
           : act < GMD_POOL_BEGIN_ON_WITH ? GMD_POOL_BEGIN
                                          : GMD_POOL_BEGIN_ON;
}

static inline gmd_input_pool_act gmd_input_pool_begin_with(gmd_input_pool_act begin,
                                                           uint8_t options)
{
    uint32_t first = begin == GMD_POOL_BEGIN ? GMD_POOL_BEGIN_WITH : GMD_POOL_BEGIN_ON_WITH;
    return options ? (gmd_input_pool_act)(first + options - 1) : begin;
}

/* The value of a record, and back. What the first inputs had in their values means what it meant.
 */
#define GMD_POOL_FURTHER_ACT UINT32_C(0xc7000000)

static inline gmd_input_pool_act gmd_input_pool_act_from(uint32_t value)
{
    uint32_t further = GMD_POOL_ACTS - GMD_POOL_FIRST_ACTS;
    return (value & 0xff000000) == GMD_POOL_FURTHER_ACT
               ? (gmd_input_pool_act)(GMD_POOL_FIRST_ACTS + (value & 0xffffff) % further)
               : (gmd_input_pool_act)(value % GMD_POOL_FIRST_ACTS);
}

static inline uint32_t gmd_input_pool_value(gmd_input_pool_act act)
{
    return act < GMD_POOL_FIRST_ACTS ? (uint32_t)act
                                     : GMD_POOL_FURTHER_ACT | (act - GMD_POOL_FIRST_ACTS);
}

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
                                        gmd_input_pool_act act_with_options)
{
    static const uint8_t ops[GMD_POOL_PLAIN_ACTS] = {
        GMD_OP_BEGIN_POOL,    GMD_OP_BEGIN_POOL, GMD_OP_END_POOL,        GMD_OP_RELEASE_POOL,
        GMD_OP_BEGIN_CAPTURE, GMD_OP_LAUNCH,     GMD_OP_CHECKPOINT_POOL, GMD_OP_RESTORE_POOL};
    gmd_input_pool_act act = gmd_input_pool_plain(act_with_options);
    uint32_t named = target % p->count;
    bool is_new = p->index[named] == GMD_POOL_NOT_LISTED;
    uint8_t open = p->state.open[r->device];
    bool is_capturing = p->state.capturing == r->device + 1;
    r->op = act == GMD_POOL_END && is_capturing ? GMD_OP_END_CAPTURE : ops[act];
    r->stream = act == GMD_POOL_BEGIN                         ? GMD_ALL_STREAMS
                : gmd_op_has_any(ops[act], GMD_STREAM_FIELDS) ? r->stream
                                                              : 0;
    r->pool = act == GMD_POOL_END && open ? open - 1u : is_new ? p->used : p->index[named];
    if (r->op == GMD_OP_BEGIN_POOL) {
        r->pool_options = gmd_input_pool_options(act_with_options);
    }
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
        return is_of_capture
                   ? GMD_POOL_CAPTURE
                   : gmd_input_pool_begin_with(r->stream == GMD_ALL_STREAMS ? GMD_POOL_BEGIN
                                                                            : GMD_POOL_BEGIN_ON,
                                               r->pool_options);
    case GMD_POOL_STEP_LAUNCH:
        return GMD_POOL_LAUNCH;
    case GMD_POOL_STEP_RELEASE:
        return GMD_POOL_RELEASE;
    case GMD_POOL_STEP_CHECKPOINT:
        return GMD_POOL_CHECKPOINT;
    case GMD_POOL_STEP_RESTORE:
        return GMD_POOL_RESTORE;
    default:
        return GMD_POOL_END;
    }
}

#endif
