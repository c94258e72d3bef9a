/* stream_clocks.h - the streams of a program with their vector clocks: what runs after what in
 * every schedule. The rules of the legacy default stream are kept here: its work waits for all
 * earlier work of the device's blocking streams, and theirs for all earlier work of its (CUDA
 * programming guide, "Default stream").
 *
 * Structures are used again for later streams once the host knows that all of the stream's work is
 * over; their tickets go on, so that an old ticket is known to be over. */
#ifndef STREAM_CLOCKS_H
#define STREAM_CLOCKS_H

#include "gmd_past.h"
#include "handle_table.h"
#include "order_types.h"

struct capture;
struct earlier_owner;

typedef struct stream_clock stream_clock;

struct stream_clock {
    gmd_progress progress; /* first: a past's items point to it */
    order_stream name;
    uint64_t tail;    /* the ticket of what was queued last */
    gmd_past *before; /* what lies before the next ticket on other streams */
    uint32_t epoch;   /* counts the streams that had this structure */
    bool is_blocking, is_gone;
    uint64_t saw_default;     /* the default stream's tail when this one was ordered after it */
    uint64_t seen_by_default; /* this one's tail when the default stream was ordered after it */
    struct capture *capture;  /* not NULL: this is a stream's part of a capture, and does not run */
    stream_clock *captured;   /* the stream is captured: what is queued goes there */
    struct earlier_owner **pending; /* owners of memory that was freed here before it was safe */
    uint32_t pending_count, pending_capacity;
    stream_clock *next; /* in a list of gone or of spare ones */
};

typedef struct device_clocks {
    stream_clock *legacy;    /* NULL: never used */
    stream_clock **blocking; /* that wait for it */
    uint32_t blocking_count, blocking_capacity;
    uint64_t blocking_entries, saw_entries; /* queued on those; so many, when the legacy one was
                                               last ordered after them all */
} device_clocks;

typedef struct stream_clocks { /* zero-initialised is empty */
    handle_table by_name;
    stream_clock **all; /* [id] */
    uint32_t count, capacity;
    device_clocks *devices;
    uint32_t device_count;
    stream_clock *gone, *spare;
} stream_clocks;

/* What was queued on `on` up to `ticket`. */
typedef struct clock_point {
    stream_clock *on; /* NULL: nothing */
    uint64_t ticket;
    gmd_past *before; /* what lies before it on other streams */
} clock_point;

void stream_clocks_free(stream_clocks *all);

/* The number by which a stream is known; 1 stands for 0. Never 0. */
uint64_t stream_key(order_stream name);
static inline bool stream_is_same(order_stream a, order_stream b)
{
    return stream_key(a) == stream_key(b);
}

/* NULL: nobody spoke of it. */
stream_clock *stream_clocks_find(const stream_clocks *all, order_stream name);

/* Found or made; NULL: the host has no memory, or there are too many. */
stream_clock *stream_clocks_get(stream_clocks *all, order_stream name);
stream_clock *stream_clocks_create(stream_clocks *all, order_stream name, bool is_blocking);

/* A clock that no name leads to: a stream's part of a capture. */
stream_clock *stream_clocks_create_captured(stream_clocks *all, const stream_clock *of,
                                            struct capture *capture);
void stream_clocks_end_captured(stream_clocks *all, stream_clock *s);

void stream_clocks_destroy(stream_clocks *all, order_stream name);

/* All below: false: the host has no memory; order that is there may then not be known. */

/* Brings in what the default stream's rules demand of what is queued next. */
bool stream_clock_order_default(stream_clocks *all, stream_clock *s);
/* A piece of work is queued: its ticket is s->tail. */
bool stream_clock_push(stream_clocks *all, stream_clock *s);
bool stream_clock_follow(stream_clock *s, clock_point p);

static inline clock_point stream_clock_point(const stream_clock *s)
{
    return (clock_point){.on = (stream_clock *)s, .ticket = s->tail, .before = s->before};
}

static inline bool stream_clock_is_over(const stream_clock *s, uint64_t ticket)
{
    return s->progress.known >= ticket;
}

/* What is queued on `s` from now on runs after that; call stream_clock_order_default before. */
static inline bool stream_clock_is_after(const stream_clock *s, const stream_clock *other,
                                         uint64_t ticket)
{
    return s == other || stream_clock_is_over(other, ticket) ||
           gmd_past_on(s->before, &other->progress) >= ticket;
}

/* The host knows that a point is over, or all that is queued on a device. */
void stream_clocks_learn(clock_point p);
void stream_clocks_learn_device(stream_clocks *all, int device);

#endif
