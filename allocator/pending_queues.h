/* pending_queues.h - the blocks that wait for other streams, and the events that they wait for
 * (pending.h says why, and in which order). */
#ifndef GMD_PENDING_QUEUES_H
#define GMD_PENDING_QUEUES_H

#include "block.h"
#include "gmd_cuda.h"

typedef struct event_queue event_queue;
typedef struct pending_event pending_event;

struct pending_event {
    pending_event *next;
    cudaEvent_t event;
    block *block;
};

struct event_queue {
    event_queue *next;
    cudaStream_t stream;
    pending_event *first, *last;
};

struct stream_use {
    stream_use *next;
    cudaStream_t stream;
};

typedef struct pending {
    event_queue *queues;  /* one for each stream that was ever recorded */
    uint64_t event_count; /* in all queues */
    block *deferred;      /* blocks without events yet, linked by block.right */
    cudaEvent_t *events;  /* not in use, to be recorded again */
    size_t spare_events, event_capacity;
    stream_use *spare_uses;
    pending_event *spare_entries;
} pending;

static inline bool pending_is_empty(const pending *p)
{
    return !p->event_count && !p->deferred;
}

/* Visits every pending block, some more than once. */
void pending_each(const pending *p, void (*visit)(void *context, block *b), void *context);

/* What does not hold of queues and counts; NULL: all does. */
const char *pending_violation(const pending *p);

#endif
