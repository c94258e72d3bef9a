#include "segments.h"

#include "announcements.h"
#include "blocks.h"
#include "device_limit.h"
#include "device_segments.h"
#include "expandable.h"
#include "gmd_cuda_scope.h"
#include "history.h"

#include "gmd_assert.h"
#include "gmd_min.h"

static void *device_malloc(const gmd_pool_memory *from, int device, uint64_t size)
{
    void *memory = NULL;
    cuda_scope scope;
    if (!cuda_scope_enter(&scope, device)) {
        return NULL;
    }
    if (from->allocate) {
        memory = from->allocate(from->context, size, device);
    } else if (!cuda_succeeded(cudaMalloc(&memory, size))) {
        memory = NULL;
    } else {
        announce_segment((uintptr_t)memory, size);
    }
    cuda_scope_leave(&scope);
    return memory;
}

static bool device_free(const gmd_pool_memory *to, int device, uint64_t address, uint64_t size)
{
    cuda_scope scope;
    bool is_freed = true;
    if (!cuda_scope_enter(&scope, device)) {
        return false;
    }
    if (to->allocate) {
        to->release(to->context, (void *)(uintptr_t)address, size, device);
    } else {
        announce_segment_end(address);
        is_freed = cuda_succeeded(cudaFree((void *)(uintptr_t)address));
    }
    cuda_scope_leave(&scope);
    return is_freed;
}

block *segments_add(device_allocator *d, free_set *set, uint64_t size)
{
    if (!device_is_within_limit(d, size) || !device_reserve_segment(d) ||
        !block_pool_reserve(&set->heap->blocks, 2)) {
        return NULL;
    }
    void *memory = device_malloc(&set->heap->pool->memory, d->device, size);
    if (!memory) {
        return NULL;
    }
    block *b = block_pool_take(&set->heap->blocks);
    b->address = device_add_segment(d, (uint64_t)(uintptr_t)memory, size, set);
    b->size = size;
    b->set_and_state = (uint64_t)(uintptr_t)set;
    statistics_raise_device(&d->stats, set_kind(set), FIGURE_SEGMENT, 1);
    statistics_raise_device(&d->stats, set_kind(set), FIGURE_RESERVED_BYTES, size);
    if (size >= d->settings->max_split_bytes) {
        statistics_raise_oversize(&d->stats, FIGURE_OVERSIZE_SEGMENT);
    }
    d->stats.num_device_alloc++;
    history_note(d, HISTORY_SEGMENT_ALLOC, b->address, size, set);
    return b;
}

bool segments_release(device_allocator *d, block *b)
{
    free_set *set = block_set(b);
    GMD_ASSERT(block_is_idle(b) && !block_is_split(b), "a segment that goes is one free block");
    GMD_ASSERT(!block_is_expandable(b), "pages of expandable segments go one by one");
    if (!device_free(&set->heap->pool->memory, d->device, places_address(&d->places, b->address),
                     b->size)) {
        return false;
    }
    statistics_lower_device(&d->stats, set_kind(set), FIGURE_SEGMENT, 1);
    statistics_lower_device(&d->stats, set_kind(set), FIGURE_RESERVED_BYTES, b->size);
    if (b->size >= d->settings->max_split_bytes) {
        statistics_lower_oversize(&d->stats, FIGURE_OVERSIZE_SEGMENT);
    }
    d->stats.num_device_free++;
    history_note(d, HISTORY_SEGMENT_FREE, b->address, b->size, set);
    device_remove_segment(d, b->address);
    blocks_remove(b);
    block_pool_give(&set->heap->blocks, b);
    return true;
}

/* A segment that can be given back as one. */
static bool is_whole(const block *b)
{
    return !block_is_split(b) && !block_is_expandable(b);
}

static void release_set(device_allocator *d, free_set *set)
{
    uint64_t size = 0, address = 0;
    for (block *b; (b = free_set_lower_bound(set, size, address)) != NULL;) {
        size = b->size;
        address = b->address + 1;
        if (is_whole(b)) {
            segments_release(d, b);
        }
    }
}

void segments_release_pool(device_allocator *d, pool *p)
{
    for (int kind = 0; kind < POOL_KINDS; kind++) {
        for (size_t i = 0; i < p->heap_count; i++) {
            free_set *set = &p->heaps[i]->sets[kind];
            if (d->settings->expandable_segments || d->segments) {
                expandable_release_free(d, set);
            }
            if (!d->settings->expandable_segments || d->has_both_kinds) {
                release_set(d, set);
            }
        }
    }
}

/* --- oversize blocks --------------------------------------------------------------------- */

bool segments_release_oversize(device_allocator *d, free_set *set, uint64_t size)
{
    uint64_t least = d->settings->max_split_bytes;
    if (least == UINT64_MAX || d->settings->expandable_segments) {
        return false;
    }
    uint64_t needed = gmd_max(size, least), released = 0;
    block *enough = free_set_lower_bound(set, needed, 0);
    if (enough && is_whole(enough)) {
        return segments_release(d, enough);
    }
    block *b = free_set_before(set, needed, 0);
    while (b && released < needed && b->size >= least) {
        block *smaller = free_set_before(set, b->size, b->address);
        uint64_t bytes = b->size;
        released += is_whole(b) && segments_release(d, b) ? bytes : 0;
        b = smaller;
    }
    return released >= needed;
}

/* --- garbage collection ------------------------------------------------------------------ */

typedef struct ages { /* of the segments that could be given back */
    double sum;
    uint64_t count;
} ages;

static uint64_t age_of(const pool *p, const block *b)
{
    return p->lookups[POOL_LARGE] - block_detail_seen(b)->lookups;
}

static ages ages_in(const pool *p)
{
    ages all = {0};
    for (size_t i = 0; i < p->heap_count; i++) {
        free_set *set = &p->heaps[i]->sets[POOL_LARGE];
        for (const block *b = free_set_lower_bound(set, BLOCK_BYTES, 0); b;
             b = free_set_after(set, b)) {
            if (is_whole(b)) {
                all.sum += (double)age_of(p, b);
                all.count++;
            }
        }
    }
    return all;
}

/* One round: gives back all that is at least so old, more than is wanted too: to stop there would
 * bring the next collection soon. Gives the bytes. */
static uint64_t collect_older(device_allocator *d, pool *p, double age, ages *left)
{
    uint64_t given = 0;
    for (size_t i = 0; i < p->heap_count; i++) {
        free_set *set = &p->heaps[i]->sets[POOL_LARGE];
        block *next;
        for (block *b = free_set_lower_bound(set, BLOCK_BYTES, 0); b; b = next) {
            next = free_set_after(set, b);
            uint64_t own = age_of(p, b), bytes = b->size;
            if (is_whole(b) && (double)own >= age && segments_release(d, b)) {
                given += bytes;
                left->sum -= (double)own;
                left->count--;
            }
        }
    }
    return given;
}

void segments_collect_garbage(device_allocator *d, pool *p)
{
    uint64_t reserved = statistics_reserved(&d->stats);
    uint64_t threshold = (uint64_t)(d->settings->gc_threshold * (double)d->limit_bytes);
    bool has_none = d->settings->expandable_segments && !d->has_both_kinds;
    if (has_none || reserved <= threshold) {
        return; /* pages of expandable segments are no garbage: they are given back at once */
    }
    uint64_t wanted = reserved - threshold, given = 0, now = 1;
    ages left = ages_in(p);
    while (given < wanted && now && left.count) {
        now = collect_older(d, p, left.sum / (double)left.count, &left);
        given += now;
    }
}
