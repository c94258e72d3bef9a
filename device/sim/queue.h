/* queue.h - the table of streams and their queues, shared by the files that make up the queue:
 * streams.c (which streams there are), queue.c (what is queued), schedule.c (what completes
 * when), happens_before.c (what runs after what in every schedule). */
#ifndef GMD_SIM_QUEUE_H
#define GMD_SIM_QUEUE_H

#include "state.h"

typedef struct stream_table {
    stream **by_serial; /* [serial, from 1]; NULL: destroyed. Serials are not used again before a
                           reset, so that streams created later have higher handles. */
    uint32_t serials, serial_capacity;
    stream **all;    /* [id]: every structure ever made */
    stream **active; /* with queued work, in no order */
    stream **open;   /* with work that the host does not know to be over, in no order */
    uint32_t active_count, open_count;
    uint32_t active_capacity;    /* of all three */
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

static inline bool stream_is_in(const stream *s, int device, stream_group group)
{
    return (device < 0 || s->device == device) && (group == STREAMS_ALL || stream_is_blocking(s));
}

/* streams.c */
stream *stream_create(int device, unsigned flags, int priority);
void stream_destroy(stream *s);        /* its queued work still completes */
void stream_recycle_unused(stream *s); /* where nothing refers to it any more */

/* queue.c */
bool queue_wait(stream *s, stream *on, uint64_t ticket); /* takes a ticket in any case */
void queue_complete_first(stream *s, uint64_t end_ns);   /* the effect of the first entry */
void queue_drop(stream *s);                              /* the work is gone without effect */
void queue_deactivate(stream *s);

/* schedule.c: with GMD_SIM_EAGER, completes what can be. */
void schedule_eager(void);

/* happens_before.c */
void stream_open(stream *s);  /* something was queued that the host does not know to be over */
void stream_close(stream *s); /* it knows now, or need not */

/* streams.c: what does not hold of streams, queues and tickets; NULL: all does. */
const char *streams_violation(void);

#endif
