/* plan.h - what a program does for a case, call by call: each request in steps that need no further
 * thought, so that C and Python only differ in how they write a step.
 *
 * All that follows from the requests alone is settled here, as if each of them were served: which
 * streams a free must come after, what a capture forbids, which work is over when the host waits or
 * the clock moves, what is left to be freed at the end. */
#ifndef GMD_REPRODUCERS_PLAN_H
#define GMD_REPRODUCERS_PLAN_H

#include "gmd_trace.h"

typedef enum step_kind {
    STEP_ALLOC,          /* allocation, device, stream, bytes */
    STEP_FREE,           /* allocation; number: its last work, or -1 */
    STEP_NEW_HANDLE,     /* allocation: its stream is gone, `stream` has the name now */
    STEP_WORK,           /* number, allocation, device, stream */
    STEP_GRAPH_WORK,     /* number, allocation, stream: while it is captured; other: its graph */
    STEP_MAY_END,        /* number: that work is held back no longer */
    STEP_FINISH,         /* number: likewise, and the host waits for it */
    STEP_RECORD,         /* allocation, stream */
    STEP_WAIT,           /* stream waits for other */
    STEP_WAIT_IF_UNTOLD, /* likewise, where the allocator takes no gmd_record_stream() */
    STEP_JOIN,           /* the same in a capture, which other belongs to */
    STEP_SYNC_STREAM,    /* device, stream */
    STEP_SYNC_DEVICE,    /* device */
    STEP_SPOIL,          /* the host waits for a captured stream, which makes the capture fail */
    STEP_EMPTY_CACHE,    /* number: times */
    STEP_FRACTION,       /* device, fraction */
    STEP_DEVICE,         /* device */
    STEP_FORGET,         /* device, stream: the allocator is told that the stream goes */
    STEP_DESTROY,        /* device, stream */
    STEP_MAKE_STREAM,    /* device, stream: again, after it was destroyed */
    STEP_FAULT,          /* of the request */
    STEP_BUDGET,         /* likewise */
    STEP_BEGIN_POOL,     /* device, pool, life, stream or GMD_ALL_STREAMS */
    STEP_END_POOL,       /* device, pool, life */
    STEP_RELEASE_POOL,   /* device, pool, life */
    STEP_BEGIN_CAPTURE,  /* device, pool, life, stream, number: of the graph */
    STEP_END_CAPTURE,    /* stream, number: of the graph; is_spoilt */
    STEP_LAUNCH,         /* device, stream, number: of the graph */
    STEP_CHECK_WORK,     /* device, number, which is work of the graph `other`: before its launch */
    STEP_DESTROY_GRAPH,  /* device, number */
    STEP_CHECK_GRAPH,    /* allocation, number: work of the graph that nothing orders before it */
    STEP_LEAVE_ERROR,    /* of the program's own: it is not looked at */
    STEP_LEFT_OUT,       /* CUDA forbids the request while a stream is captured */
} step_kind;

#define NO_REQUEST SIZE_MAX /* of a step of the end */

typedef struct step {
    step_kind kind;
    size_t request; /* that it is of; NO_REQUEST */
    uint8_t device, thread;
    bool is_captured; /* ALLOC: the stream is */
    bool is_spoilt;   /* the capture is, by the program itself */
    uint32_t allocation, stream, other, pool;
    uint32_t life; /* of the pool: its name ends with the last hold */
    int64_t number;
    uint64_t bytes;
    double fraction;
} step;

/* One allocation, of the many that a block of the trace may have one after the other. */
typedef struct plan_allocation {
    uint32_t block, round; /* of that block: 0 is its first one */
} plan_allocation;

typedef struct plan {
    step *steps;
    plan_allocation *allocations;
    size_t step_count, step_capacity, allocation_count, allocation_capacity;
    uint32_t work_count, graph_work_count, graph_count, device_count, stream_count;
    bool *has_stream; /* [device * stream_count + stream]: the case names it */
} plan;

/* For the first `count` requests, and for freeing everything after them. `made` is
 * zero-initialised; to be released also after a failure, which is want of host memory. */
bool plan_make(plan *made, const gmd_trace *trace, size_t count);
void plan_free(plan *made);

/* Behind the steps of the request that begin with `first`. */
const step *plan_request_end(const plan *made, const step *first);

bool plan_has(const plan *made, step_kind kind);

/* Whether that graph is there to be launched, and is: its capture may be made to fail by the
 * program itself. */
bool plan_is_launched(const plan *made, int64_t graph);

/* The last request for memory; trace->count: there is none. */
size_t plan_last_alloc(const gmd_trace *trace);

#endif
