#include "expandable.h"

#include "blocks.h"
#include "device_limit.h"
#include "device_segments.h"
#include "gmd_cuda_scope.h"
#include "gmd_min.h"
#include "history.h"
#include "virtual_memory.h"

#include "gmd_assert.h"

/* --- finding addresses ------------------------------------------------------------------- */

/* From b on, addresses for `size` bytes follow each other that are nobody's, mapped or not. */
static bool has_addresses(const block *b, uint64_t size)
{
    uint64_t bytes = 0;
    for (; bytes < size && b && block_is_idle(b); b = b->next) {
        bytes += b->size;
    }
    return bytes >= size;
}

static block *find_addresses(const free_set *set, uint64_t size)
{
    block *b = block_tree_lower_bound(set->unmapped, BY_ADDRESS, 0, 0);
    for (; b; b = block_tree_lower_bound(set->unmapped, BY_ADDRESS, 0, b->address + 1)) {
        block *from = b->previous && block_is_idle(b->previous) ? b->previous : b;
        if (has_addresses(from, size)) {
            return from;
        }
    }
    return NULL;
}

/* A new segment, one unmapped block. */
static block *add_segment(device_allocator *d, free_set *set, segment *s)
{
    s->set = set;
    s->place = device_add_segment(d, s->address, s->size, set);
    s->next = d->segments;
    if (s->next) {
        s->next->previous = s;
    }
    d->segments = s;
    block *b = block_pool_take(&set->heap->blocks);
    b->address = s->place;
    b->size = s->size;
    b->set_and_state = (uint64_t)(uintptr_t)set | BLOCK_UNMAPPED | BLOCK_EXPANDABLE;
    block_detail_of(b)->expandable = s;
    blocks_insert(d->settings, b);
    return b;
}

static block *reserve_addresses(device_allocator *d, free_set *set, uint64_t size)
{
    uint64_t total = 0;
    uint64_t page = settings_page_size(d->settings, set->is_small);
    cuda_scope scope;
    bool is_hopeless = device_total_bytes(d->device, &total) && size > total;
    if (!total || (is_hopeless && !quirk_is_on(d, GMD_QUIRK_RESERVATION_LEFT)) ||
        !device_reserve_segment(d) || !block_pool_reserve(&set->heap->blocks, 2) ||
        !cuda_scope_enter(&scope, d->device)) {
        return NULL;
    }
    segment *s = segment_reserve(d->device, total + total / 8, page);
    cuda_scope_leave(&scope);
    return s ? add_segment(d, set, s) : NULL;
}

/* --- mapping ----------------------------------------------------------------------------- */

/* The part of an idle block behind its first `size` bytes becomes a block of its own, unmapped as
 * the block is, in no set. */
static block *split_rest(heap *h, block *b, uint64_t size)
{
    GMD_ASSERT_INTERNAL(size && size < b->size, "both parts have bytes");
    block *rest = block_pool_take(&h->blocks);
    rest->address = b->address + size;
    rest->size = b->size - size;
    rest->set_and_state = b->set_and_state;
    block_detail_of(rest)->expandable = block_detail_of(b)->expandable;
    rest->previous = b;
    rest->next = b->next;
    if (rest->next) {
        rest->next->previous = rest;
    }
    b->next = rest;
    b->size = size;
    return rest;
}

static void merge_around(device_allocator *d, heap *h, block *b)
{
    blocks_merge(h, b, b->previous);
    blocks_merge(h, b, b->next);
    blocks_insert(d->settings, b);
}

static void count_pages(device_allocator *d, free_set *set, bool is_mapped, uint64_t place,
                        uint64_t bytes)
{
    if (is_mapped) {
        statistics_raise_device(&d->stats, set_kind(set), FIGURE_RESERVED_BYTES, bytes);
        d->stats.num_device_alloc++;
    } else {
        statistics_lower_device(&d->stats, set_kind(set), FIGURE_RESERVED_BYTES, bytes);
        d->stats.num_device_free++;
    }
    history_note(d, is_mapped ? HISTORY_SEGMENT_MAP : HISTORY_SEGMENT_UNMAP, place, bytes, set);
}

static uint64_t pages_for(const segment *s, uint64_t size)
{
    return (size + s->page_bytes - 1) / s->page_bytes;
}

/* Maps pages for the first `size` bytes of an unmapped block, which begins on a page. */
static bool map_front(device_allocator *d, free_set *set, block *b, uint64_t size)
{
    segment *s = block_detail_of(b)->expandable;
    GMD_ASSERT(block_is_idle(b) && block_is_unmapped(b), "memory goes where there is none");
    GMD_ASSERT_INTERNAL((b->address - s->place) % s->page_bytes == 0, "the block begins on a page");
    uint64_t first = (b->address - s->place) / s->page_bytes;
    uint64_t bytes = pages_for(s, size) * s->page_bytes, place = b->address;
    if (!block_pool_reserve(&set->heap->blocks, 2) ||
        !segment_map(s, first, bytes / s->page_bytes)) {
        return false;
    }
    blocks_remove(b);
    if (bytes < b->size) {
        blocks_insert(d->settings, split_rest(set->heap, b, bytes));
    }
    b->set_and_state &= ~BLOCK_UNMAPPED;
    merge_around(d, set->heap, b);
    count_pages(d, set, true, place, bytes);
    return true;
}

/* Memory that has to be mapped so that `size` bytes from b on have some. */
static uint64_t missing_bytes(const block *b, uint64_t size)
{
    uint64_t missing = 0;
    for (; size && b; b = b->next) {
        uint64_t part = gmd_min(size, b->size);
        const segment *s = block_detail_seen(b)->expandable;
        missing += block_is_unmapped(b) ? pages_for(s, part) * s->page_bytes : 0;
        size -= part;
    }
    return missing;
}

/* The limit holds for what is mapped; from b on, or, where that is NULL, in a new segment. As a
 * quirk: for the segment that the request would get if there were no expandable ones. */
static bool is_within_limit(device_allocator *d, const block *b, uint64_t size)
{
    uint64_t missing = b ? missing_bytes(b, size) : settings_device_request(d->settings, size);
    bool is_within = device_is_within_limit(d, missing);
    if (!quirk_is_on(d, GMD_QUIRK_EXPANDABLE_LIMIT)) {
        return is_within;
    }
    bool in_torch = device_is_within_limit(d, settings_segment_size(d->settings, size));
    if (in_torch != is_within) {
        d->quirk_counts[GMD_QUIRK_EXPANDABLE_LIMIT]++;
    }
    return in_torch;
}

/* The segment has no pages: it is one unmapped block. */
static void release_addresses(device_allocator *d, segment *s)
{
    GMD_ASSERT(!s->mapped_pages, "addresses that go have no memory");
    *(s->previous ? &s->previous->next : &d->segments) = s->next;
    if (s->next) {
        s->next->previous = s->previous;
    }
    block *b = block_tree_lower_bound(s->set->unmapped, BY_ADDRESS, 0, s->place);
    GMD_ASSERT(b && b->address == s->place && b->size == s->size,
               "a segment that goes is one block");
    blocks_remove(b);
    block_pool_give(&s->set->heap->blocks, b);
    device_remove_segment(d, s->place);
    segment_release(s);
}

/* Nothing could be mapped: the addresses would come before others that have pages, later on. */
static void release_if_empty(device_allocator *d, segment *s)
{
    if (!s->mapped_pages && !quirk_holds(d, GMD_QUIRK_RESERVATION_LEFT)) {
        release_addresses(d, s);
    }
}

block *expandable_add(device_allocator *d, free_set *set, uint64_t size)
{
    block *b = find_addresses(set, size);
    if (!is_within_limit(d, b, size)) {
        return NULL;
    }
    b = b ? b : reserve_addresses(d, set, size);
    if (!b || (block_is_unmapped(b) && !map_front(d, set, b, gmd_min(b->size, size)))) {
        if (b) {
            release_if_empty(d, block_detail_of(b)->expandable);
        }
        return NULL;
    }
    while (b->size < size) { /* what follows is unmapped: free neighbours are merged */
        block *next = b->next;
        if (!next || !map_front(d, set, next, gmd_min(next->size, size - b->size))) {
            return NULL;
        }
        b = next;
    }
    GMD_ASSERT_INTERNAL(b->size >= size && block_is_idle(b), "the block serves");
    blocks_remove(b);
    return b;
}

/* --- unmapping --------------------------------------------------------------------------- */

/* The caller has waited for the device. */
static void unmap_block(device_allocator *d, free_set *set, block *b)
{
    segment *s = block_detail_of(b)->expandable;
    heap *h = set->heap;
    GMD_ASSERT(block_is_idle(b) && !block_is_unmapped(b), "memory goes of what is free");
    uint64_t offset = b->address - s->place;
    uint64_t first = (offset + s->page_bytes - 1) / s->page_bytes;
    uint64_t end = (offset + b->size) / s->page_bytes;
    if (first >= end || !block_pool_reserve(&h->blocks, 2)) {
        return;
    }
    uint64_t pages = segment_unmap(s, first, end - first);
    if (!pages) {
        return;
    }
    blocks_remove(b);
    uint64_t place = s->place + first * s->page_bytes, bytes = pages * s->page_bytes;
    if (place > b->address) {
        block *rest = split_rest(h, b, place - b->address);
        rest->requested_size = b->requested_size; /* what is unmapped keeps the identity */
        b->requested_size = 0;
        blocks_insert(d->settings, b);
        b = rest;
    }
    if (bytes < b->size) {
        blocks_insert(d->settings, split_rest(h, b, bytes));
    }
    b->set_and_state |= BLOCK_UNMAPPED;
    merge_around(d, h, b);
    count_pages(d, set, false, place, bytes);
}

/* All that uses free blocks of a set is on its stream: other streams' work was waited for when they
 * became free. The device as a whole is not asked, for that would end any capture on it. */
static bool wait_for_stream(const device_allocator *d, const heap *h)
{
    cuda_scope scope;
    if (h->is_idle || d->is_known_idle) {
        return true;
    }
    if (!cuda_scope_enter(&scope, d->device)) {
        return false;
    }
    bool is_done =
        !cuda_is_capturing(h->stream) && cuda_succeeded(cudaStreamSynchronize(h->stream));
    cuda_scope_leave(&scope);
    return is_done;
}

void expandable_release_free(device_allocator *d, free_set *set)
{
    /* Unlike cudaFree, unmapping does not wait for work that was queued before. */
    if (!set->block_count || !wait_for_stream(d, set->heap)) {
        return;
    }
    uint64_t size = 0, address = 0;
    for (block *b; (b = free_set_lower_bound(set, size, address)) != NULL;) {
        size = b->size;
        address = b->address + 1;
        if (!block_is_expandable(b)) {
            continue;
        }
        segment *s = block_detail_of(b)->expandable;
        unmap_block(d, set, b); /* what is left of it is smaller: it comes before in the order */
        if (!s->mapped_pages) {
            release_addresses(d, s);
        }
    }
}

void expandable_abandon(device_allocator *d)
{
    for (segment *s = d->segments, *next; s; s = next) {
        next = s->next;
        segment_abandon(s);
    }
    d->segments = NULL;
}

void expandable_release_empty(device_allocator *d)
{
    for (segment *s = d->segments, *next; s; s = next) {
        next = s->next;
        if (!s->mapped_pages) {
            release_addresses(d, s);
        }
    }
}
