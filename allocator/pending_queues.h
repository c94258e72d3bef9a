/* pending_queues.h - the blocks that wait for other streams, and the events that they wait for
 * (pending.h says why, and in which order). */
#ifndef GMD_PENDING_QUEUES_H
#define GMD_PENDING_QUEUES_H

#include "block.h"
#include "gmd_cuda.h"
#include "gmd_intervals.h"

typedef struct event_queue event_queue;
typedef struct pending_event pending_event;

struct pending_event {
    pending_event *next;
    cudaEvent_t event;
    block *block;
};

struct event_queue {
    cudaStream_t stream;
    uint64_t order; /* in which the queues are looked at; 0: no event was ever put into it */
    pending_event *first, *last;
    stream_use *uses; /* of all blocks by the stream */
};

struct stream_use {
    stream_use *next; /* of the block */
    block *of;
    event_queue *by;
    stream_use *next_of_stream, *previous_of_stream;
};

typedef struct pending {
    gmd_intervals queues;  /* all, by the handles of their streams */
    gmd_intervals waiting; /* those with events, by their order */
    uint64_t orders;       /* so many were given: what got its own last is looked at first */
    uint64_t event_count;  /* in all queues */
    block *deferred;       /* blocks without events yet, linked by block.right */
    cudaEvent_t *events;   /* not in use, to be recorded again */
    size_t spare_events, event_capacity;
    stream_use *spare_uses;
    pending_event *spare_entries;
    struct capture_order *captured; /* NULL: no block was freed in a capture that reuses them */
} pending;

static inline bool pending_is_empty(const pending *p)
{
    return !p->event_count && !p->deferred;
}

/* The first queue with events that comes after an order, 0 before all; NULL: none. */
event_queue *pending_next_queue(const pending *p, uint64_t order);

/* Visits every pending block, some more than once. */
void pending_each(const pending *p, void (*visit)(void *context, block *b), void *context);

/* What does not hold of queues and counts; NULL: all does. */
const char *pending_violation(const pending *p);

#endif
