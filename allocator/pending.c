#include "pending.h"

#include "blocks.h"
#include "capture_order.h"
#include "gmd_cuda_scope.h"
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

/* --- queues ------------------------------------------------------------------------------ */

static event_queue *find_queue(const pending *p, cudaStream_t stream)
{
    const gmd_interval *found = gmd_intervals_after(&p->queues, (uintptr_t)stream);
    return found && found->address == (uintptr_t)stream ? (event_queue *)(uintptr_t)found->value
                                                        : NULL;
}

/* Made where there is none; NULL: no host memory. */
static event_queue *queue_of(pending *p, cudaStream_t stream)
{
    event_queue *q = find_queue(p, stream);
    if (q || !(q = calloc(1, sizeof *q))) {
        return q;
    }
    q->stream = stream;
    if (!gmd_intervals_insert(&p->queues, (uintptr_t)stream, (uintptr_t)stream + 1,
                              (uint64_t)(uintptr_t)q)) {
        free(q);
        return NULL;
    }
    return q;
}

/* The queue is to get an event. False: no host memory. */
static bool start_waiting(pending *p, event_queue *q)
{
    if (!q->order) {
        q->order = UINT64_MAX - ++p->orders;
    }
    return q->first ||
           gmd_intervals_insert(&p->waiting, q->order - 1, q->order, (uint64_t)(uintptr_t)q);
}

static void end_waiting_if_empty(pending *p, const event_queue *q)
{
    if (!q->first) {
        gmd_intervals_remove(&p->waiting, q->order - 1);
    }
}

/* --- recorded streams -------------------------------------------------------------------- */

static stream_use *take_use(pending *p)
{
    stream_use *use = p->spare_uses;
    if (use) {
        p->spare_uses = use->next;
        return use;
    }
    return malloc(sizeof *use);
}

bool pending_record(device_allocator *d, block *b, cudaStream_t stream)
{
    pending *p = &d->pending;
    block_detail *detail = block_detail_of(b);
    if (!(b->set_and_state & BLOCK_USED)) {
        detail->uses = NULL;
    }
    for (const stream_use *u = detail->uses; u; u = u->next) {
        if (u->by->stream == stream) {
            return true;
        }
    }
    event_queue *q = queue_of(p, stream);
    stream_use *use = q ? take_use(p) : NULL;
    if (!use) {
        return false;
    }
    *use = (stream_use){.next = detail->uses, .of = b, .by = q, .next_of_stream = q->uses};
    if (q->uses) {
        q->uses->previous_of_stream = use;
    }
    q->uses = use;
    detail->uses = use;
    b->set_and_state |= BLOCK_USED;
    return true;
}

/* `link` points to the use among those of its block. */
static void drop_use(pending *p, stream_use **link)
{
    stream_use *use = *link;
    *link = use->next;
    *(use->previous_of_stream ? &use->previous_of_stream->next_of_stream : &use->by->uses) =
        use->next_of_stream;
    if (use->next_of_stream) {
        use->next_of_stream->previous_of_stream = use->previous_of_stream;
    }
    use->next = p->spare_uses;
    p->spare_uses = use;
}

/* --- events ------------------------------------------------------------------------------ */

/* The block waits for all that is queued on the stream now. False: that cannot be found out now. */
static bool add_event(device_allocator *d, block *b, event_queue *q)
{
    pending *p = &d->pending;
    bool is_possible = !cuda_is_capturing(q->stream) && start_waiting(p, q);
    pending_event *entry = is_possible ? take_entry(p) : NULL;
    cudaEvent_t event = entry ? take_event(p) : NULL;
    if (!event || !cuda_succeeded(cudaEventRecord(event, q->stream))) {
        if (event) {
            give_event(p, event);
        }
        if (entry) {
            give_entry(p, entry);
        }
        if (is_possible) {
            end_waiting_if_empty(p, q);
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
    while (detail->uses && add_event(d, b, detail->uses->by)) {
        drop_use(&d->pending, &detail->uses);
    }
    return !detail->uses;
}

static void forget_order(const pending *p, const block *b)
{
    if (p->captured) {
        capture_order_forget(p->captured, b);
    }
}

/* What is captured may say when it is free, too. A capture has a pool open. */
static void note_order(device_allocator *d, block *b)
{
    pending *p = &d->pending;
    const heap *own = block_set(b)->heap;
    bool is_private = own->pool != &d->default_pool;
    if (!d->settings->reuses_in_captures || !d->routes || !is_private || own->is_idle) {
        return;
    }
    if (!p->captured) {
        p->captured = calloc(1, sizeof *p->captured);
    }
    if (p->captured) {
        capture_order_mark(p->captured, b, own->stream);
    }
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
    statistics_share(&d->stats, &h->stats);
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
    heap *h = block_set(b)->heap;
    statistics_share(&d->stats, &h->stats);
    statistics_add_pending(&h->stats, set_kind(block_set(b)), b->size);
    cuda_scope scope;
    if (!block_detail_of(b)->uses) { /* their streams are gone */
        release_if_done(d, b);
        return;
    }
    bool is_entered = cuda_scope_enter(&scope, d->device);
    if (is_entered) { /* before uses that have events go */
        note_order(d, b);
    }
    if (!is_entered || !add_events(d, b)) {
        b->right = d->pending.deferred;
        d->pending.deferred = b;
    } else {
        forget_order(&d->pending, b);
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
            forget_order(&d->pending, b);
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
    end_waiting_if_empty(&d->pending, q);
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
    uint64_t order = 0;
    for (event_queue *q; (q = pending_next_queue(&d->pending, order)) != NULL; order = q->order) {
        while (q->first && cuda_succeeded(cudaEventQuery(q->first->event))) {
            pop(d, q);
        }
    }
    cuda_scope_leave(&scope);
    attend(d);
}

static void drop_uses(pending *p, block *b)
{
    while (block_detail_of(b)->uses) {
        drop_use(p, &block_detail_of(b)->uses);
    }
}

static void remove_deferred(pending *p, const block *b)
{
    block **link = &p->deferred;
    while (*link != b) {
        link = &(*link)->right;
    }
    *link = b->right;
}

void pending_reuse_captured(device_allocator *d, cudaStream_t stream)
{
    cuda_scope scope;
    pending *p = &d->pending;
    if (!p->captured || !p->captured->marks || !cuda_scope_enter(&scope, d->device)) {
        return;
    }
    for (block *b; (b = capture_order_take(p->captured, stream)) != NULL;) {
        remove_deferred(p, b);
        drop_uses(p, b);
        release_if_done(d, b);
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
    uint64_t order = 0;
    for (event_queue *q; (q = pending_next_queue(&d->pending, order)) != NULL; order = q->order) {
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
        drop_uses(&d->pending, b);
        forget_order(&d->pending, b);
        release_if_done(d, b); /* else with the last of its events */
    }
    d->pending.deferred = NULL;
    uint64_t order = 0;
    for (event_queue *q; (q = pending_next_queue(&d->pending, order)) != NULL; order = q->order) {
        while (q->first) {
            pop(d, q);
        }
    }
    attend(d);
}

static stream_use **link_of(const stream_use *use)
{
    stream_use **link = &block_detail_of(use->of)->uses;
    while (*link != use) {
        link = &(*link)->next;
    }
    return link;
}

void pending_forget(device_allocator *d, cudaStream_t stream)
{
    event_queue *q = find_queue(&d->pending, stream);
    while (q && q->uses) {
        drop_use(&d->pending, link_of(q->uses));
    }
    pending_poll(d);
}

static void free_queues(pending *p)
{
    uint64_t from = 0;
    for (const gmd_interval *i; (i = gmd_intervals_after(&p->queues, from)) != NULL;) {
        from = i->end;
        free((event_queue *)(uintptr_t)i->value);
    }
    gmd_intervals_free(&p->queues);
    gmd_intervals_free(&p->waiting);
}

void pending_release(device_allocator *d)
{
    pending *p = &d->pending;
    GMD_ASSERT(pending_is_empty(p), "nothing waits at the end");
    pending_drop_events(d);
    free(p->events);
    free_queues(p);
    if (p->captured) {
        capture_order_release(p->captured);
        free(p->captured);
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
