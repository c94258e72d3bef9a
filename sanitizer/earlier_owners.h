/* earlier_owners.h - blocks that were freed, with the work that may still use them: by the memory
 * they had, and by the stream on which others may be given it. */
#ifndef EARLIER_OWNERS_H
#define EARLIER_OWNERS_H

#include "gmd_intervals.h"
#include "stream_clocks.h"

/* The latest use of a block by one stream. */
typedef struct use_mark {
    stream_clock *on;
    uint32_t epoch; /* of `on` */
    uint64_t ticket;
    order_stream stream;
    order_work work;
    bool is_certain;
} use_mark;

/* On this stream, not on an earlier one with the same structure. */
static inline bool use_mark_is_on(const use_mark *m, const stream_clock *s)
{
    return m->on == s && m->epoch == s->epoch;
}

static inline bool use_mark_is_over(const use_mark *m)
{
    return stream_clock_is_over(m->on, m->ticket);
}

typedef struct earlier_owner { /* counted; immutable but for what was said */
    uint32_t references;
    uint32_t count;
    bool was_said[2]; /* [is_certain] of a finding */
    order_subject subject;
    use_mark marks[];
} earlier_owner;

typedef struct earlier_owners { /* zero-initialised is empty */
    gmd_intervals ranges;       /* value: earlier_owner *, with a reference */
    uint32_t sweep_at;
} earlier_owners;

/* With room for so many marks; NULL: the host has no memory. */
earlier_owner *earlier_owner_create(const order_subject *subject, uint32_t count);
earlier_owner *earlier_owner_keep(earlier_owner *e);
void earlier_owner_drop(earlier_owner *e); /* NULL: nothing */
bool earlier_owner_is_over(const earlier_owner *e);

void earlier_owners_free(earlier_owners *all);

/* Memory of `e` is free from now on. False: the host has no memory, and it is not noted. */
bool earlier_owners_add(earlier_owners *all, earlier_owner *e);

/* Gives the next owner of memory in [*from, end) whose work may not be over, with a reference, and
 * takes that part of its memory away; *from goes on behind it. NULL: none. */
earlier_owner *earlier_owners_take(earlier_owners *all, uint64_t *from, uint64_t end);

#endif
