#include "blocks.h"

#include "device_allocator.h"

#include "gmd_assert.h"

/* --- finding ----------------------------------------------------------------------------- */

/* What a free block of an expandable segment could become: it may grow into what lies above. */
static uint64_t expandable_size(const block *b)
{
    return b->size + (b->next && block_is_unmapped(b->next) ? b->next->size : 0);
}

/* While expandable segments are off no request goes to those that are left from before. NULL: there
 * is no other block. */
__attribute__((cold)) static block **skip_expandable(free_set *set, block **found)
{
    while (found && block_is_expandable(*found)) {
        found = free_set_find(set, (*found)->size, (*found)->address + 1);
    }
    return found;
}

/* The free end of an expandable segment counts with the size that it can grow to: as long as the
 * next larger block would grow less, that one fits better. */
__attribute__((noinline)) static block **prefer_bounded(free_set *set, block **found)
{
    for (block *b = *found;; b = *found) {
        block **next = free_set_find(set, b->size, b->address + 1);
        if (!next || expandable_size(*next) >= expandable_size(b)) {
            return found;
        }
        found = next;
    }
}

/* An oversize block is not for a request below that size, and not for a much smaller one: it would
 * be split for good. Blocks of expandable segments are split by any request anyway. */
__attribute__((cold)) static bool is_barred(const settings *s, const free_set *set, const block *b,
                                            uint64_t size)
{
    bool is_for_larger = size < s->max_split_bytes && b->size >= s->max_split_bytes;
    bool wastes = size >= s->max_split_bytes && b->size - size >= s->max_non_split_rounding_bytes;
    if (!is_for_larger && !wastes) {
        return false;
    }
    return !s->expandable_segments || quirk_holds(set->heap->device, GMD_QUIRK_OVERSIZE_EXPANDABLE);
}

block **blocks_find(const settings *s, free_set *set, uint64_t size)
{
    block **found = free_set_find(set, size, 0);
    if (!found) {
        return NULL;
    }
    if (block_is_expandable(*found)) {
        found = s->expandable_segments ? prefer_bounded(set, found) : skip_expandable(set, found);
        if (!found) {
            return NULL;
        }
    }
    if (__builtin_expect(s->max_split_bytes == UINT64_MAX, 1)) {
        return found;
    }
    return is_barred(s, set, *found, size) ? NULL : found;
}

/* A large block keeps a remainder of up to 1 MiB: splitting it off would only litter the pool. */
bool blocks_should_split(const settings *s, const block *b, uint64_t size)
{
    uint64_t remaining = b->size - size;
    if (__builtin_expect(block_set(b)->is_whole, 0)) {
        return false;
    }
    if (block_set(b)->is_small || s->expandable_segments) {
        return remaining >= BLOCK_BYTES;
    }
    return size < s->max_split_bytes && remaining > SMALL_REQUEST_BYTES;
}

/* --- room -------------------------------------------------------------------------------- */

/* What is raised by handing out; blocks of expandable segments never count as inactive splits, for
 * their memory can be given back without them. */
typedef struct rise {
    uint64_t bytes, requested, split_bytes, splits;
} rise;

static rise rise_of(const settings *s, const block *b, uint64_t size, uint64_t requested)
{
    rise r = {.bytes = b->size, .requested = requested};
    if (blocks_should_split(s, b, size)) {
        bool is_new = !block_is_split(b) && !block_is_expandable(b);
        r.bytes = size;
        r.splits = is_new;
        r.split_bytes = is_new ? b->size - size : 0;
    }
    return r;
}

bool blocks_have_room_to_occupy(const settings *s, const heap *h, const block *b, uint64_t size,
                                uint64_t requested)
{
    if (h->stats.is_only) {
        return true;
    }
    pool_kind kind = set_kind(block_set(b));
    rise r = rise_of(s, b, size, requested);
    uint64_t room = statistics_room(&h->stats, kind, FIGURE_ALLOCATION, 1) |
                    statistics_room(&h->stats, kind, FIGURE_ALLOCATED_BYTES, r.bytes) |
                    statistics_room(&h->stats, kind, FIGURE_REQUESTED_BYTES, r.requested) |
                    statistics_room(&h->stats, kind, FIGURE_INACTIVE_SPLIT, r.splits) |
                    statistics_room(&h->stats, kind, FIGURE_INACTIVE_SPLIT_BYTES, r.split_bytes);
    return (int64_t)room >= 0;
}

void blocks_make_room_to_occupy(const settings *s, statistics *all, heap *h, const block *b,
                                uint64_t size, uint64_t requested)
{
    statistics_share(all, &h->stats);
    if (h->stats.is_only) {
        return;
    }
    pool_kind kind = set_kind(block_set(b));
    rise r = rise_of(s, b, size, requested);
    statistics_make_room(all, &h->stats, kind, FIGURE_ALLOCATION, 1);
    statistics_make_room(all, &h->stats, kind, FIGURE_ALLOCATED_BYTES, r.bytes);
    statistics_make_room(all, &h->stats, kind, FIGURE_REQUESTED_BYTES, r.requested);
    statistics_make_room(all, &h->stats, kind, FIGURE_INACTIVE_SPLIT, r.splits);
    statistics_make_room(all, &h->stats, kind, FIGURE_INACTIVE_SPLIT_BYTES, r.split_bytes);
}

/* Bytes by which a free raises the inactive splits, less what merging takes away again. */
static void release_changes(const block *b, int64_t *splits, int64_t *bytes)
{
    const block *around[] = {b->previous, b->next};
    bool stays_split = false;
    *splits = 0;
    *bytes = (int64_t)b->size;
    uint64_t merged = 0;
    for (int i = 0; i < 2; i++) {
        const block *n = around[i];
        if (n && block_is_idle(n)) {
            merged += n->size;
            *splits -= 1;
            stays_split = stays_split || (i == 0 ? n->previous != NULL : n->next != NULL);
        } else {
            stays_split = stays_split || n;
        }
    }
    if (stays_split) {
        *splits += 1;
    } else {
        *bytes = -(int64_t)merged;
    }
}

bool blocks_have_room_to_release(const heap *h, const block *b)
{
    if (h->stats.is_only || block_is_expandable(b)) {
        return true;
    }
    int64_t splits, bytes;
    release_changes(b, &splits, &bytes);
    pool_kind kind = set_kind(block_set(b));
    uint64_t more = splits > 0, more_bytes = bytes > 0 ? (uint64_t)bytes : 0;
    uint64_t room = statistics_room(&h->stats, kind, FIGURE_INACTIVE_SPLIT, more) |
                    statistics_room(&h->stats, kind, FIGURE_INACTIVE_SPLIT_BYTES, more_bytes);
    return (int64_t)room >= 0;
}

void blocks_make_room_to_release(statistics *all, heap *h, const block *b)
{
    statistics_share(all, &h->stats);
    if (block_is_expandable(b)) {
        return;
    }
    int64_t splits, bytes;
    release_changes(b, &splits, &bytes);
    pool_kind kind = set_kind(block_set(b));
    statistics_make_room(all, &h->stats, kind, FIGURE_INACTIVE_SPLIT, splits > 0);
    statistics_make_room(all, &h->stats, kind, FIGURE_INACTIVE_SPLIT_BYTES,
                         bytes > 0 ? (uint64_t)bytes : 0);
}

/* --- sets -------------------------------------------------------------------------------- */

void blocks_insert(const settings *s, block *b)
{
    free_set *set = block_set(b);
    GMD_ASSERT_INTERNAL(block_is_idle(b), "what is put into a set is nobody's");
    GMD_ASSERT_INTERNAL(b->size && b->size % BLOCK_BYTES == 0, "a size is a multiple of 512 bytes");
    if (block_is_unmapped(b)) {
        block_tree_insert(&set->unmapped, BY_ADDRESS, b);
        return;
    }
    if (s->gc_threshold > 0) {
        block_detail_of(b)->lookups = set->heap->pool->lookups[set_kind(set)];
    }
    free_set_insert(set, b);
}

void blocks_remove(block *b)
{
    free_set *set = block_set(b);
    GMD_ASSERT_INTERNAL(block_is_idle(b), "what is taken out of a set is nobody's");
    if (block_is_unmapped(b)) {
        block_tree_remove(&set->unmapped, BY_ADDRESS, b);
    } else {
        free_set_remove(set, b);
    }
}

/* --- handing out ------------------------------------------------------------------------- */

/* Cuts `size` bytes off the front of a block that is in no set; the rest goes back to the set. The
 * rest keeps the block's identity (and its last requested size), as PyTorch's snapshots show. */
static block *split_front(const settings *s, heap *h, block *rest, uint64_t size)
{
    block *front = block_pool_take(&h->blocks);
    front->address = rest->address;
    front->size = size;
    front->set_and_state = rest->set_and_state;
    front->previous = rest->previous;
    front->next = rest;
    if (front->previous) {
        front->previous->next = front;
    }
    if (block_is_expandable(rest)) {
        block_detail_of(front)->expandable = block_detail_of(rest)->expandable;
    }
    rest->previous = front;
    rest->address += size;
    rest->size -= size;
    GMD_ASSERT_INTERNAL(front->address + front->size == rest->address, "the parts are neighbours");
    blocks_insert(s, rest);
    return front;
}

static void count_split(heap *h, pool_kind kind, bool was_split, uint64_t taken, uint64_t remaining)
{
    if (was_split) {
        statistics_lower(&h->stats, kind, FIGURE_INACTIVE_SPLIT_BYTES, taken);
    } else {
        statistics_raise(&h->stats, kind, FIGURE_INACTIVE_SPLIT_BYTES, remaining);
        statistics_raise(&h->stats, kind, FIGURE_INACTIVE_SPLIT, 1);
    }
}

static void count_whole(heap *h, pool_kind kind, bool was_split, uint64_t taken)
{
    if (was_split) {
        statistics_lower(&h->stats, kind, FIGURE_INACTIVE_SPLIT_BYTES, taken);
        statistics_lower(&h->stats, kind, FIGURE_INACTIVE_SPLIT, 1);
    }
}

static block *cut(const settings *s, heap *h, pool_kind kind, block *b, uint64_t size)
{
    bool was_split = block_is_split(b), is_counted = !block_is_expandable(b);
    if (!blocks_should_split(s, b, size)) {
        if (is_counted) {
            count_whole(h, kind, was_split, b->size);
        }
        return b;
    }
    uint64_t remaining = b->size - size;
    block *front = split_front(s, h, b, size);
    if (is_counted) {
        count_split(h, kind, was_split, size, remaining);
    }
    return front;
}

block *blocks_occupy(const settings *s, heap *h, block *b, uint64_t size, uint64_t requested)
{
    pool_kind kind = set_kind(block_set(b));
    GMD_ASSERT_INTERNAL(block_set(b)->heap == h, "a block is handed out by its heap");
    GMD_ASSERT_INTERNAL(block_is_idle(b) && !block_is_unmapped(b), "a free block is handed out");
    GMD_ASSERT_INTERNAL(requested <= size && size <= b->size, "the block is large enough");
    GMD_ASSERT_INTERNAL(blocks_have_room_to_occupy(s, h, b, size, requested),
                        "figures that are raised stay under their peaks");
    b = cut(s, h, kind, b, size);
    GMD_ASSERT_INTERNAL(b->size == size || !blocks_should_split(s, b, size),
                        "a block that can be split was");
    b->requested_size = requested;
    b->set_and_state |= BLOCK_ALLOCATED;
    block_map_insert(&h->allocated, b);
    statistics_raise(&h->stats, kind, FIGURE_ALLOCATION, 1);
    statistics_raise(&h->stats, kind, FIGURE_ALLOCATED_BYTES, b->size);
    statistics_raise(&h->stats, kind, FIGURE_REQUESTED_BYTES, requested);
    return b;
}

/* --- freeing ----------------------------------------------------------------------------- */

uint64_t blocks_merge(heap *h, block *b, block *neighbour)
{
    if (!neighbour || !block_is_idle(neighbour) ||
        block_is_unmapped(neighbour) != block_is_unmapped(b)) {
        return 0;
    }
    uint64_t gained = neighbour->size;
    GMD_ASSERT_INTERNAL(block_set(neighbour) == block_set(b), "neighbours are of one set");
    blocks_remove(neighbour);
    if (neighbour == b->previous) {
        GMD_ASSERT_INTERNAL(neighbour->address + gained == b->address, "neighbours touch");
        b->address = neighbour->address;
        b->previous = neighbour->previous;
        if (b->previous) {
            b->previous->next = b;
        }
    } else {
        GMD_ASSERT_INTERNAL(b->address + b->size == neighbour->address, "neighbours touch");
        b->next = neighbour->next;
        if (b->next) {
            b->next->previous = b;
        }
    }
    b->size += gained;
    block_pool_give(&h->blocks, neighbour);
    return gained;
}

void blocks_disown(heap *h, block *b)
{
    pool_kind kind = set_kind(block_set(b));
    GMD_ASSERT_INTERNAL(block_is_allocated(b), "what is freed is allocated");
    GMD_ASSERT_INTERNAL(!block_map_find(&h->allocated, b->address), "what is freed left the map");
    b->set_and_state &= ~BLOCK_ALLOCATED;
    statistics_lower(&h->stats, kind, FIGURE_ALLOCATION, 1);
    statistics_lower(&h->stats, kind, FIGURE_ALLOCATED_BYTES, b->size);
}

void blocks_release(const settings *s, heap *h, block *b)
{
    pool_kind kind = set_kind(block_set(b));
    GMD_ASSERT_INTERNAL(block_set(b)->heap == h, "a block is released to its heap");
    GMD_ASSERT_INTERNAL(block_is_idle(b), "what is released is nobody's, and no work uses it");
    GMD_ASSERT_INTERNAL(blocks_have_room_to_release(h, b),
                        "figures that are raised stay under their peaks");
    statistics_lower(&h->stats, kind, FIGURE_REQUESTED_BYTES, b->requested_size);
    uint64_t below = blocks_merge(h, b, b->previous);
    uint64_t above = blocks_merge(h, b, b->next);
    blocks_insert(s, b);
    if (block_is_expandable(b)) {
        return;
    }
    int64_t blocks = -(int64_t)(below != 0) - (int64_t)(above != 0);
    int64_t bytes = -(int64_t)(below + above);
    if (block_is_split(b)) {
        blocks += 1;
        bytes += (int64_t)b->size;
    }
    statistics_change(&h->stats, kind, FIGURE_INACTIVE_SPLIT, blocks);
    statistics_change(&h->stats, kind, FIGURE_INACTIVE_SPLIT_BYTES, bytes);
}
