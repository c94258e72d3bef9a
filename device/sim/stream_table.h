/* stream_table.h - the table of streams and their queues, shared by the files that keep them:
 * streams.c (which streams there are), queue.c (what is queued), completion.c (what an entry does),
 * schedule.c (what completes when), due.c (what ends next), push.c (how work gets onto a stream),
 * host_clock.c and happens_before.c (what runs after what in every schedule).
 *
 * A ticket is a position in a stream's queue: entries are numbered from 1, and are complete up to
 * `head` and queued up to `tail`. */
#ifndef GMD_SIM_STREAM_TABLE_H
#define GMD_SIM_STREAM_TABLE_H

#include "entry.h"
#include "gmd_past.h"
#include "state.h"

struct capture;

typedef struct stream stream;

struct stream {
    gmd_progress progress; /* first: see stream_of_progress(). Its id is the structure's, which
                              later streams use again: their tickets go on */
    cudaStream_t handle;
    int device, priority;
    unsigned flags;
    bool is_destroyed;
    bool is_running; /* a host function of its, without the lock */
    bool is_open;    /* the host does not know of all its work that it is over */
    uint32_t open_index;
    uint64_t head, tail;
    gmd_past *before;       /* what lies before the next entry besides its own and what is known */
    uint64_t need;          /* must be complete up to here before a synchronising call returns */
    uint64_t need_followed; /* GMD_SIM_LAZY: waits up to here have passed the need on */
    uint64_t end_ns;        /* when entry `head` ended */
    uint64_t saw_default;   /* the default stream's tail when this one was ordered after it */
    uint64_t seen_by_default; /* this one's tail when the default stream was ordered after it */
    uint64_t saw_blocking;    /* of the default stream: blocking_entries at that time */
    entry *ring;              /* of entries head+1 to tail, at (ticket - 1) % ring_size */
    uint64_t ring_size;
    uint32_t active_index;
    enum { DUE_NOWHERE, DUE_IN_ORDER, DUE_BY_VALUE, DUE_AFTER_ANOTHER } due_place; /* see due.h */
    uint32_t due_index;
    uint64_t due_ns;                       /* when the first entry ends */
    stream *first_waiter, *last_waiter;    /* whose first entry waits for this one, by ticket */
    stream *next_waiter, *previous_waiter; /* beside this one */
    struct capture *capture;               /* NULL: what is queued runs */
    uint32_t *capture_after;               /* the nodes that the next captured one depends on */
    uint32_t capture_after_count, capture_after_capacity;
    stream *next; /* in the list of free or of unnamed structures */
};

typedef struct gone_stream {
    uint32_t serial;
    int device;
} gone_stream;

typedef struct stream_table {
    stream **by_serial; /* [serial, from 1]; NULL: destroyed. Serials are not used again before a
                           reset, so that streams created later have higher handles; but for
                           gmd_sim_config.reuses_handles. */
    uint32_t serials, serial_capacity;
    gone_stream *gone; /* reuses_handles: whose handles come again, the last one first */
    uint32_t gone_count, gone_capacity;
    stream **all;      /* [id]: every structure ever made */
    stream **active;   /* with queued work, in no order */
    stream **open;     /* with work that the host does not know to be over, in no order */
    stream **due;      /* active, a binary heap by when the first entry ends: see due.h */
    stream **by_value; /* active, the first entry waits for a value; in no order */
    uint32_t active_count, open_count, due_count, by_value_count;
    uint32_t needed_count;       /* streams whose `need` is not complete */
    uint32_t active_capacity;    /* of all five */
    stream *free_list, *unnamed; /* unnamed: default streams, which no serial number refers to */
    uint64_t sequence;           /* entries queued, to order what ends at the same time */
    uint32_t stream_structs;
} stream_table;

extern stream_table streams; /* streams.c */

static inline entry *entry_at(const stream *s, uint64_t ticket)
{
    return &s->ring[(ticket - 1) & (s->ring_size - 1)];
}

/* The stream that a past's item is about. */
static inline stream *stream_of_progress(gmd_progress *progress)
{
    return (stream *)progress;
}

static inline bool stream_is_legacy(const stream *s)
{
    return s == sim.devices[s->device].legacy;
}

static inline bool stream_is_blocking(const stream *s)
{
    return !(s->flags & cudaStreamNonBlocking);
}

/* Which streams of a device the host waits for or asks about. */
typedef enum stream_group { STREAMS_ALL, STREAMS_BLOCKING } stream_group;

static inline bool stream_is_in(const stream *s, int device, stream_group group)
{
    return (device < 0 || s->device == device) && (group == STREAMS_ALL || stream_is_blocking(s));
}

#endif
