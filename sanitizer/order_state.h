/* order_state.h - what the files of an order share: order.c (the functions of order.h, one lock),
 * order_blocks.c (uses of blocks, and what is wrong with them), order_graphs.c (captures). All
 * functions here are called with the lock held. */
#ifndef ORDER_STATE_H
#define ORDER_STATE_H

#include "earlier_owners.h"
#include "handle_table.h"
#include "order_types.h"
#include "stream_clocks.h"

#include <pthread.h>
#include <stdatomic.h>

#define MARKS_INLINE 2

/* An earlier owner whose work must be over, or ordered, before this block is used. */
typedef struct inherited {
    earlier_owner *from;
    bool has_memory; /* it had memory of this block; false: this block could have been given its */
} inherited;

struct order_block {
    atomic_uint references;
    order_subject subject;
    uint64_t capture;         /* the number of the capture in which it was allocated; 0: none */
    uint64_t used_by_capture; /* the latest that uses it, as its use_index-th block */
    uint32_t use_index;
    atomic_bool is_freed; /* written with the lock */
    bool is_in_graph_pool;
    bool was_said[2]; /* [is_certain]: used after it was freed */
    uint32_t mark_count, mark_capacity;
    uint32_t inherited_count, recorded_count, recorded_capacity;
    use_mark *marks; /* NULL: own_marks */
    use_mark own_marks[MARKS_INLINE];
    inherited *inherited;
    order_stream *recorded;
};

typedef struct graph_use {
    order_block *block; /* with a reference */
    const char *what;
    bool is_certain;
} graph_use;

typedef struct graph_uses { /* counted */
    uint32_t references;
    uint32_t count, capacity;
    graph_use *list;
} graph_uses;

typedef struct capture {
    uint64_t number;
    stream_clock *origin;
    stream_clock **joined; /* streams that are captured */
    uint32_t count, capacity;
    graph_uses *uses;
} capture;

typedef struct recorded_event {
    clock_point at; /* its past is kept */
    uint32_t epoch; /* of at.on */
} recorded_event;

typedef struct queued_finding {
    order_finding finding;
    struct queued_finding *next;
} queued_finding;

struct order {
    pthread_mutex_t lock;
    order_settings settings;
    order_statistics counts;
    atomic_uint_fast64_t live_blocks;
    atomic_uint_fast64_t lowest, beyond; /* of all blocks' addresses; 0 and 0: none */
    stream_clocks clocks;
    earlier_owners earlier;
    handle_table events, graphs, execs; /* of recorded_event, graph_uses */
    uint64_t captures;                  /* that have begun */
    atomic_uint captures_now;           /* under way */
    queued_finding *first, **last;      /* to be delivered once the lock is released */
};

/* order_blocks.c: `s` is where the work is, `work` what it is. */
void order_use_block(order *o, stream_clock *s, order_block *b, bool is_certain,
                     const order_work *work);
void order_inherit(order *o, order_block *b);
void order_free_block(order *o, order_block *b);
void order_forget_block(order *o, order_block *b); /* nobody refers to it */
void order_say_used_after_free(order *o, const stream_clock *s, order_block *b, bool is_certain,
                               const order_work *work);
/* The clock on which a block's own work runs: of the capture it belongs to, as long as that lasts;
 * NULL: none, the capture is over or the host has no memory. */
stream_clock *order_clock_of_block(order *o, const order_block *b);

/* One reference more, with or without the lock; one less, with it. */
static inline order_block *order_keep_block(order_block *b)
{
    if (b) {
        atomic_fetch_add_explicit(&b->references, 1, memory_order_relaxed);
    }
    return b;
}
void order_drop_block(order *o, order_block *b);

/* order_graphs.c */
void order_capture_use(order *o, capture *c, order_block *b, bool is_certain, const char *what);
/* The clock on which the work of `s` is captured, which joins the capture of `with` if it is in
 * none; NULL: the host has no memory. */
stream_clock *order_capture_join(order *o, capture *c, stream_clock *s);
void order_begin_capture(order *o, order_stream stream);
void order_end_capture(order *o, order_stream stream, uint64_t graph);
void order_instantiate(order *o, uint64_t graph, uint64_t exec);
void order_drop_graph(order *o, uint64_t graph);
void order_drop_exec(order *o, uint64_t exec);
void order_launch_graph(order *o, uint64_t exec, stream_clock *s, uint64_t place);
void order_drop_uses(order *o, graph_uses *uses);
void order_graphs_free(order *o);

#endif
