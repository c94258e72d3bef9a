#include "pending.h"

#include "blocks.h"
#include "cuda_scope.h"
#include "history_ring.h"

#include "gmd_assert.h"
#include "gmd_grow.h"

#include <stdlib.h>

/* --- what is kept for the next use ------------------------------------------------------- */

static cudaEvent_t take_event(pending *p)
{
    cudaEvent_t event = NULL;
    if (p->spare_events) {
        return p->events[--p->spare_events];
    }
    return cuda_succeeded(cudaEventCreateWithFlags(&event, cudaEventDisableTiming)) ? event : NULL;
}

static void give_event(pending *p, cudaEvent_t event)
{
    if (!GMD_GROW(&p->events, &p->event_capacity, p->spare_events + 1)) {
        cuda_succeeded(cudaEventDestroy(event));
        return;
    }
    p->events[p->spare_events++] = event;
}

void pending_drop_events(device_allocator *d)
{
    pending *p = &d->pending;
    while (p->spare_events) {
        cudaEvent_t event = p->events[--p->spare_events];
        if (!cuda_succeeded(cudaEventDestroy(event))) {
            cuda_succeeded(cudaEventDestroy(event)); /* else it is lost */
        }
    }
}

static pending_event *take_entry(pending *p)
{
    pending_event *e = p->spare_entries;
    if (e) {
        p->spare_entries = e->next;
        return e;
    }
    return malloc(sizeof *e);
}

static void give_entry(pending *p, pending_event *e)
{
    e->next = p->spare_entries;
    p->spare_entries = e;
}

static event_queue *queue_of(pending *p, cudaStream_t stream)
{
    for (event_queue *q = p->queues; q; q = q->next) {
        if (q->stream == stream) {
            return q;
        }
    }
    event_queue *q = calloc(1, sizeof *q);
    if (q) {
        q->stream = stream;
        q->next = p->queues;
        p->queues = q;
    }
    return q;
}

/* --- recorded streams -------------------------------------------------------------------- */

bool pending_record(device_allocator *d, block *b, cudaStream_t stream)
{
    pending *p = &d->pending;
    block_detail *detail = block_detail_of(b);
    if (!(b->set_and_state & BLOCK_USED)) {
        detail->uses = NULL;
    }
    for (const stream_use *u = detail->uses; u; u = u->next) {
        if (u->stream == stream) {
            return true;
        }
    }
    stream_use *use = p->spare_uses;
    if (use) {
        p->spare_uses = use->next;
    } else if (!(use = malloc(sizeof *use))) {
        return false;
    }
    *use = (stream_use){.next = detail->uses, .stream = stream};
    detail->uses = use;
    b->set_and_state |= BLOCK_USED;
    return true;
}

static void drop_use(pending *p, block_detail *detail)
{
    stream_use *use = detail->uses;
    detail->uses = use->next;
    use->next = p->spare_uses;
    p->spare_uses = use;
}

/* --- events ------------------------------------------------------------------------------ */

/* The block waits for all that is queued on the stream now. False: that cannot be found out now. */
static bool add_event(device_allocator *d, block *b, cudaStream_t stream)
{
    pending *p = &d->pending;
    event_queue *q = cuda_is_capturing(stream) ? NULL : queue_of(p, stream);
    pending_event *entry = q ? take_entry(p) : NULL;
    cudaEvent_t event = entry ? take_event(p) : NULL;
    if (!event || !cuda_succeeded(cudaEventRecord(event, stream))) {
        if (event) {
            give_event(p, event);
        }
        if (entry) {
            give_entry(p, entry);
        }
        return false;
    }
    *entry = (pending_event){.event = event, .block = b};
    if (q->first) {
        q->last->next = entry;
    } else {
        q->first = entry;
    }
    q->last = entry;
    block_detail_of(b)->event_count++;
    p->event_count++;
    return true;
}

/* False: streams are left for which it could not. */
static bool add_events(device_allocator *d, block *b)
{
    block_detail *detail = block_detail_of(b);
    while (detail->uses && add_event(d, b, detail->uses->stream)) {
        drop_use(&d->pending, detail);
    }
    return !detail->uses;
}

static void attend(device_allocator *d)
{
    device_attend(d, ATTEND_PENDING, !pending_is_empty(&d->pending));
}

static void release_if_done(device_allocator *d, block *b)
{
    block_detail *detail = block_detail_of(b);
    heap *h = block_set(b)->heap;
    if (detail->event_count || detail->uses) {
        return;
    }
    GMD_ASSERT(b->set_and_state & BLOCK_PENDING, "a block that is done waited");
    b->set_and_state &= ~(BLOCK_PENDING | BLOCK_USED);
    statistics_end_pending(&h->stats, set_kind(block_set(b)), b->size);
    history_add_completed(h, b);
    blocks_make_room_to_release(&d->stats, h, b);
    blocks_release(d->settings, h, b);
}

void pending_add(device_allocator *d, block *b)
{
    GMD_ASSERT(block_is_idle(b) && b->set_and_state & BLOCK_USED,
               "a block that waits is freed, and was recorded on a stream");
    block_detail_of(b)->event_count = 0;
    b->set_and_state |= BLOCK_PENDING;
    statistics_add_pending(&block_set(b)->heap->stats, set_kind(block_set(b)), b->size);
    cuda_scope scope;
    if (!block_detail_of(b)->uses) { /* their streams are gone */
        release_if_done(d, b);
        return;
    }
    bool is_entered = cuda_scope_enter(&scope, d->device);
    if (!is_entered || !add_events(d, b)) {
        b->right = d->pending.deferred;
        d->pending.deferred = b;
    }
    if (is_entered) {
        cuda_scope_leave(&scope);
    }
    attend(d);
}

static void add_deferred(device_allocator *d)
{
    for (block **link = &d->pending.deferred; *link;) {
        block *b = *link;
        if (add_events(d, b)) {
            *link = b->right;
            release_if_done(d, b); /* its events may have been complete before */
        } else {
            link = &b->right;
        }
    }
}

static void pop(device_allocator *d, event_queue *q)
{
    pending_event *e = q->first;
    q->first = e->next;
    d->pending.event_count--;
    give_event(&d->pending, e->event);
    block *b = e->block;
    give_entry(&d->pending, e);
    GMD_ASSERT(block_detail_of(b)->event_count, "the block waits for the event");
    block_detail_of(b)->event_count--;
    release_if_done(d, b);
}

void pending_poll(device_allocator *d)
{
    cuda_scope scope;
    if (pending_is_empty(&d->pending) || !cuda_scope_enter(&scope, d->device)) {
        return;
    }
    add_deferred(d);
    for (event_queue *q = d->pending.queues; q; q = q->next) {
        while (q->first && cuda_succeeded(cudaEventQuery(q->first->event))) {
            pop(d, q);
        }
    }
    cuda_scope_leave(&scope);
    attend(d);
}

bool pending_settle(device_allocator *d)
{
    cuda_scope scope;
    if (pending_is_empty(&d->pending)) {
        return true;
    }
    if (!cuda_scope_enter(&scope, d->device)) {
        return false;
    }
    add_deferred(d);
    for (event_queue *q = d->pending.queues; q; q = q->next) {
        while (q->first && cuda_succeeded(cudaEventSynchronize(q->first->event))) {
            pop(d, q);
        }
    }
    cuda_scope_leave(&scope);
    attend(d);
    return pending_is_empty(&d->pending);
}

void pending_abandon(device_allocator *d)
{
    for (block *b = d->pending.deferred, *next; b; b = next) {
        next = b->right;
        while (block_detail_of(b)->uses) {
            drop_use(&d->pending, block_detail_of(b));
        }
        release_if_done(d, b); /* else with the last of its events */
    }
    d->pending.deferred = NULL;
    for (event_queue *q = d->pending.queues; q; q = q->next) {
        while (q->first) {
            pop(d, q);
        }
    }
    attend(d);
}

static void forget_uses(pending *p, block *b, cudaStream_t stream)
{
    block_detail *detail = block_detail_of(b);
    for (stream_use **link = &detail->uses; *link;) {
        stream_use *use = *link;
        if (use->stream == stream) {
            *link = use->next;
            use->next = p->spare_uses;
            p->spare_uses = use;
        } else {
            link = &use->next;
        }
    }
}

void pending_forget(device_allocator *d, cudaStream_t stream)
{
    for (heap *h = d->heaps; h; h = h->next_of_device) {
        for (uint64_t i = 0; h->allocated.slots && i <= h->allocated.mask; i++) {
            block *b = block_map_at(&h->allocated, i);
            if (b && b->set_and_state & BLOCK_USED) {
                forget_uses(&d->pending, b, stream);
            }
        }
    }
    for (block *b = d->pending.deferred; b; b = b->right) {
        forget_uses(&d->pending, b, stream);
    }
    pending_poll(d);
}

void pending_release(device_allocator *d)
{
    pending *p = &d->pending;
    GMD_ASSERT(pending_is_empty(p), "nothing waits at the end");
    pending_drop_events(d);
    free(p->events);
    for (event_queue *q = p->queues, *next; q; q = next) {
        next = q->next;
        free(q);
    }
    for (stream_use *u = p->spare_uses, *next; u; u = next) {
        next = u->next;
        free(u);
    }
    for (pending_event *e = p->spare_entries, *next; e; e = next) {
        next = e->next;
        free(e);
    }
    *p = (pending){0};
}
