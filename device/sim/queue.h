/* queue.h - the table of streams and their queues, shared by the files that make up the queue:
 * streams.c (which streams there are), queue.c (what is queued), schedule.c (what completes
 * when). */
#ifndef GMD_SIM_QUEUE_H
#define GMD_SIM_QUEUE_H

#include "state.h"

typedef struct stream_table {
    stream **by_serial; /* [serial, from 1]; NULL: destroyed. Serials are not used again before a
                           reset, so that streams created later have higher handles. */
    uint32_t serials, serial_capacity;
    stream **all;    /* [id]: every structure ever made; active_capacity entries */
    stream **active; /* with queued work, in no order */
    uint32_t active_count, active_capacity;
    stream *free_list, *unnamed; /* unnamed: default streams, which no serial number refers to */
    uint64_t sequence;           /* entries queued, to order what ends at the same time */
    uint32_t stream_structs;
} stream_table;

extern stream_table streams;

static inline entry *entry_at(const stream *s, uint64_t ticket)
{
    return &s->ring[(ticket - 1) & (s->ring_size - 1)];
}

static inline bool stream_is_legacy(const stream *s)
{
    return s == sim.devices[s->device].legacy;
}

static inline bool stream_is_blocking(const stream *s)
{
    return !(s->flags & cudaStreamNonBlocking);
}

/* streams.c */
stream *stream_create(int device, unsigned flags, int priority);
void stream_destroy(stream *s); /* its queued work still completes */
void stream_recycle(stream *s);

/* queue.c */
void queue_complete_first(stream *s, uint64_t end_ns); /* the effect of the first entry */
void queue_drop(stream *s);                            /* the work is gone without effect */
void queue_deactivate(stream *s);

#endif
