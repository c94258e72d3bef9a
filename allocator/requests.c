#include "requests.h"

#include "blocks.h"
#include "capture_order.h"
#include "device_access.h"
#include "device_heaps.h"
#include "device_limit.h"
#include "device_segments.h"
#include "expandable.h"
#include "gmd_cuda_scope.h"
#include "history.h"
#include "live_blocks.h"
#include "pending.h"
#include "private_pools.h"
#include "segments.h"
#include "validity.h"

#include "gmd_assert.h"

typedef struct request {
    device_allocator *d;
    uint64_t requested, size; /* as asked for, and as the block must be */
    cudaStream_t stream;
    pool *pool;
    free_set *set;
} request;

/* --- a cached block, while other streams work -------------------------------------------- */

/* The two requests for a cached block, malloc_cached and free_cached, are one function each for the
 * compiler: calls and saved registers were a tenth of their time. What is cold stays outside. */

static block *occupy_cached(const settings *s, heap *h, uint64_t size, uint64_t requested)
{
    free_set *set = &h->sets[size <= SMALL_REQUEST_BYTES ? POOL_SMALL : POOL_LARGE];
    block **found = blocks_find(s, set, size);
    if (!found || !blocks_have_room_to_occupy(s, h, *found, size, requested) ||
        !block_map_reserve(&h->allocated) || !block_pool_reserve(&h->blocks, 1)) {
        return NULL;
    }
    block *b = blocks_occupy(s, h, free_set_take(set, found), size, requested);
    history_add_alloc(h, b);
    return b;
}

/* Ends a request that a cached block served. */
static inline void leave_cached(heap *h)
{
    GMD_ASSERT_VALID(heap_due_violation(h));
    heap_leave(h);
}

__attribute__((flatten)) static void *malloc_cached(device_allocator *d, uint64_t requested,
                                                    cudaStream_t stream)
{
    const settings *s = device_settings(d);
    heap *h = device_cached_heap(d, stream);
    uint64_t size = settings_block_size(s, requested);
    if (!h || size >= s->max_split_bytes || !heap_try_enter(h)) {
        return NULL;
    }
    uint64_t address = 0;
    bool is_current = s == device_settings(d); /* while it is entered they do not change */
    if (is_current && !atomic_load_explicit(&d->attention, memory_order_relaxed) && !h->is_idle) {
        block *b = occupy_cached(s, h, size, requested);
        address = b ? places_address(&d->places, b->address) : 0;
    }
    leave_cached(h);
    return (void *)(uintptr_t)address;
}

/* --- any request, with exclusive access --------------------------------------------------- */

static block *take_cached(request *r)
{
    pool_kind kind = set_kind(r->set);
    if (atomic_load_explicit(&r->d->attention, memory_order_relaxed) & ATTEND_AGES) {
        r->pool->lookups[kind]++;
    }
    block **found = blocks_find(r->d->settings, r->set, r->size);
    return found ? free_set_take(r->set, found) : NULL;
}

/* A block with memory that the device gives now; NULL: the limit or the device refuses. */
static block *take_new(request *r)
{
    const settings *s = r->d->settings;
    bool has_own_memory = r->pool->memory.allocate;
    return s->expandable_segments && !has_own_memory
               ? expandable_add(r->d, r->set, r->size)
               : segments_add(r->d, r->set, settings_segment_size(s, r->size));
}

/* Pools first whose turn it is in torch: the default one, its large blocks before its small ones.
 */
static void release_cache(device_allocator *d)
{
    segments_release_pool(d, &d->default_pool);
    private_pools_release_free(d);
}

/* A cached block that was not there, or not the best fit, when it was looked for first. */
static block *take_settled(request *r)
{
    block **found = blocks_find(r->d->settings, r->set, r->size);
    return found && !quirk_holds(r->d, GMD_QUIRK_SPURIOUS_OOM) ? free_set_take(r->set, found)
                                                               : NULL;
}

/* Waits for pending frees, which may be all that it takes; then gives back the cache. */
static block *take_after_release(request *r)
{
    device_allocator *d = r->d;
    d->stats.num_sync_all_streams++;
    pending_settle(d);
    block *b = take_settled(r);
    if (b) {
        return b;
    }
    release_cache(d);
    d->stats.num_alloc_retries++;
    b = take_settled(r); /* with pages gone, another block may be the best fit, and serve */
    return b ? b : take_new(r);
}

/* What is done where no cached block serves, from the cheapest step on. While the stream is being
 * captured nothing may be given back or waited for: the graph would be invalid. */
static block *take_by_all_means(request *r)
{
    device_allocator *d = r->d;
    bool is_captured = cuda_is_capturing(r->stream);
    bool collects = d->settings->gc_threshold > 0 && d->limit_bytes != UINT64_MAX;
    if (collects && !is_captured) {
        segments_collect_garbage(d, &d->default_pool);
    }
    block *b = take_new(r);
    if (b || is_captured) {
        return b;
    }
    if (!private_pools_keeps_segments(d, r->pool) &&
        segments_release_oversize(d, r->set, r->size)) {
        b = take_new(r);
    }
    return b ? b : take_after_release(r);
}

/* Callbacks may free blocks of this very device: they run while nobody has it. What they ask for
 * themselves is served without callbacks, or they would call each other without end. */
static bool run_callbacks(device_allocator *d)
{
    static _Thread_local bool is_running;
    bool any = false;
    memory_callback *c = d->callbacks;
    if (is_running) {
        return false;
    }
    is_running = true;
    device_leave(d);
    for (; c; c = c->next) {
        any = c->release(c->context) || any;
    }
    device_enter(d);
    is_running = false;
    return any;
}

static bool find_set(request *r)
{
    r->pool = private_pools_route(r->d, r->stream);
    heap *h = device_heap(r->d, r->pool, r->stream);
    if (!h || !block_map_reserve(&h->allocated) || !block_pool_reserve(&h->blocks, 2)) {
        return false;
    }
    h->is_idle = false;
    r->set = &h->sets[r->size <= SMALL_REQUEST_BYTES ? POOL_SMALL : POOL_LARGE];
    if (r->pool != &r->d->default_pool && !r->pool->is_captured) { /* by cached blocks, too */
        r->pool->is_captured = cuda_is_capturing(r->stream);
    }
    return true;
}

static block *find_block(request *r)
{
    device_allocator *d = r->d;
    pending_poll(d);
    if (d->settings->reuses_in_captures) {
        pending_reuse_captured(d, r->stream);
    }
    if (!find_set(r)) {
        return NULL;
    }
    block *b = take_cached(r);
    if (!b && d->callbacks && run_callbacks(d)) {
        if (!find_set(r)) { /* all may have changed meanwhile */
            return NULL;
        }
        b = take_cached(r);
    }
    return b ? b : take_by_all_means(r);
}

/* For a request that would be refused: the free blocks of private pools that are meant for that. */
static block *take_from_reserve(request *r)
{
    pool *own = r->pool;
    for (pool *p = own == &r->d->default_pool ? own->next : NULL; p; p = p->next) {
        heap *h = p->is_reserve && p->holders ? device_find_heap(p, r->stream) : NULL;
        if (h && block_map_reserve(&h->allocated) && block_pool_reserve(&h->blocks, 2)) {
            r->pool = p;
            r->set = &h->sets[r->size <= SMALL_REQUEST_BYTES ? POOL_SMALL : POOL_LARGE];
            block *b = take_cached(r);
            if (b) {
                return b;
            }
        }
    }
    r->pool = own;
    return NULL;
}

static void note_refusal(request *r)
{
    r->d->stats.num_ooms++;
    if (r->set && r->set->heap->history) {
        size_t free_bytes = 0, total;
        cuda_scope scope;
        if (cuda_scope_enter(&scope, r->d->device)) {
            cuda_succeeded(cudaMemGetInfo(&free_bytes, &total));
            cuda_scope_leave(&scope);
        }
        history_add(r->set->heap, HISTORY_OOM, free_bytes, r->size);
    }
}

static void note_capture(const request *r, block *b)
{
    cuda_scope scope;
    block_detail_of(b)->capture = 0;
    if (cuda_scope_enter(&scope, r->d->device)) {
        capture_order_begin(b, r->stream);
        cuda_scope_leave(&scope);
    }
}

static uint64_t serve(request *r)
{
    device_allocator *d = r->d;
    if (atomic_load_explicit(&d->attention, memory_order_relaxed) & ATTEND_YIELDED) {
        return 0;
    }
    device_resolve_limit(d);
    block *b = find_block(r);
    b = b || !r->set ? b : take_from_reserve(r);
    if (!b || !block_map_reserve(&r->set->heap->allocated) ||
        !block_pool_reserve(&r->set->heap->blocks, 1)) {
        if (b) {
            blocks_insert(d->settings, b);
        }
        note_refusal(r);
        return 0;
    }
    GMD_ASSERT_INTERNAL(block_set(b) == r->set && b->size >= r->size, "the block serves");
    b = live_blocks_add(d, b, r->size, r->requested);
    if (d->settings->reuses_in_captures && r->pool != &d->default_pool) {
        note_capture(r, b);
    }
    return places_address(&d->places, b->address);
}

/* Apart, so that the path of a cached block saves no registers for it. */
__attribute__((noinline)) static void *malloc_alone(device_allocator *d, size_t size,
                                                    cudaStream_t stream)
{
    request r = {.d = d,
                 .requested = size,
                 .size = settings_block_size(d->settings, size),
                 .stream = stream};
    device_enter(d);
    uint64_t address = serve(&r);
    device_leave(d);
    return (void *)(uintptr_t)address;
}

void *requests_malloc(device_allocator *d, size_t size, cudaStream_t stream)
{
    device_note_caller(d, GMD_STACKS_ALLOCATIONS);
    void *cached = malloc_cached(d, size, stream);
    return cached ? cached : malloc_alone(d, size, stream);
}

/* --- frees ------------------------------------------------------------------------------- */

static bool is_simple_free(const settings *s, const heap *h, const block *b)
{
    return !(b->set_and_state & BLOCK_USED) && b->size < s->max_split_bytes &&
           blocks_have_room_to_release(h, b);
}

__attribute__((flatten)) static bool free_cached(device_allocator *d, uint64_t address,
                                                 cudaStream_t stream)
{
    heap *h = device_cached_heap(d, stream);
    if (!h || !heap_try_enter(h)) {
        return false;
    }
    block_map_slot *slot =
        h->is_idle ? NULL : block_map_find(&h->allocated, places_place(&d->places, address));
    const settings *s = device_settings(d);
    bool is_freed = slot && is_simple_free(s, h, block_map_block(*slot));
    if (is_freed) {
        live_blocks_disown(s, h, slot, block_map_block(*slot));
    }
    leave_cached(h);
    return is_freed;
}

static block_map_slot *find_live(device_allocator *d, uint64_t address, heap **in)
{
    uint64_t place = places_place(&d->places, address);
    const free_set *set = device_set_at(d, place);
    *in = set ? set->heap : NULL;
    return set ? block_map_find(&set->heap->allocated, place) : NULL;
}

__attribute__((noinline)) static bool free_alone(device_allocator *d, uint64_t address,
                                                 cudaStream_t stream)
{
    heap *h = NULL;
    device_enter(d);
    block_map_slot *slot = find_live(d, address, &h);
    if (slot) {
        h->is_idle = h->is_idle && h->stream != stream; /* the handle is in use again */
        live_blocks_remove(d, slot);
    }
    device_leave(d);
    return slot;
}

bool requests_free(device_allocator *d, void *ptr, cudaStream_t stream)
{
    uint64_t address = (uint64_t)(uintptr_t)ptr;
    device_note_caller(d, GMD_STACKS_ALL);
    return free_cached(d, address, stream) || free_alone(d, address, stream);
}

uint64_t requests_block_size(device_allocator *d, const void *ptr)
{
    heap *h = NULL;
    device_enter(d);
    block_map_slot *slot = find_live(d, (uint64_t)(uintptr_t)ptr, &h);
    uint64_t size = slot ? block_map_block(*slot)->size : 0;
    device_leave(d);
    return size;
}

bool requests_record_stream(device_allocator *d, void *ptr, cudaStream_t stream)
{
    heap *h = NULL;
    device_enter(d);
    block_map_slot *slot = find_live(d, (uint64_t)(uintptr_t)ptr, &h);
    /* Work on the allocation stream needs no further care. */
    bool is_recorded =
        slot && (h->stream == stream || pending_record(d, block_map_block(*slot), stream));
    device_leave(d);
    return is_recorded;
}

/* Their work is done, and nobody asks about their streams any more until they are used again. */
static void forget_heaps(device_allocator *d, cudaStream_t stream)
{
    for (const pool *p = &d->default_pool; p; p = p->next) {
        heap *h = device_find_heap(p, stream);
        if (h) {
            h->is_idle = true;
        }
    }
}

/* Where the wait for the stream fails, all of the device's are waited for. */
static bool finish_work(const device_allocator *d, cudaStream_t stream)
{
    return !cuda_is_capturing(stream) &&
           (cuda_succeeded(cudaStreamSynchronize(stream)) ||
            (!private_pools_are_captured(d) && cuda_succeeded(cudaDeviceSynchronize())));
}

/* A new stream may get the same handle, and with it the blocks that the old one's work still used.
 */
void requests_forget_stream(device_allocator *d, cudaStream_t stream)
{
    device_note_caller(d, GMD_STACKS_ALL);
    device_enter(d);
    cuda_scope scope;
    if (cuda_scope_enter(&scope, d->device)) {
        bool is_done = finish_work(d, stream);
        cuda_scope_leave(&scope);
        if (is_done) {
            pending_forget(d, stream);
            forget_heaps(d, stream);
        }
    }
    device_leave(d);
}

void requests_empty_cache(device_allocator *d)
{
    device_note_caller(d, GMD_STACKS_ALL);
    device_enter(d);
    if (!private_pools_are_captured(d)) {
        d->stats.num_sync_all_streams++;
        pending_settle(d);
        release_cache(d);
        pending_drop_events(d);
    }
    device_leave(d);
}

bool requests_empty_pool(device_allocator *d, const uint64_t id[2])
{
    device_note_caller(d, GMD_STACKS_ALL);
    device_enter(d);
    pool *p = private_pools_find(d, id);
    if (p && !private_pools_are_captured(d)) {
        d->stats.num_sync_all_streams++;
        pending_settle(d);
        private_pools_release_free_of(d, p);
        pending_drop_events(d);
    }
    device_leave(d);
    return p;
}
