/* Memory comes, in this order (CUDA C++ Programming Guide, "Stream-Ordered Memory Allocator", on
 * the reuse policies): from what was freed, as far as its earlier owner's work comes before anyway;
 * from the device; and where the device has no more, from what other streams still have work on,
 * behind a wait.
 *
 * A pool grows by chunks of 32 MiB, or of what one request needs in whole pages. What is freed is
 * joined with its free neighbours where one place in the work says when both are free: both are
 * already, or one stream freed them. A block that is free now is never joined with one that work
 * still comes before, since all of it would then have to wait. */
#include "pool_memory.h"

#include "happens_before.h"
#include "host_clock.h"
#include "memory.h"
#include "schedule.h"

#include "gmd_min.h"

enum { BLOCK_UNIT = 512, SCAN_MAX = 16 };

#define CHUNK_BYTES ((uint64_t)32 << 20)

static uint64_t round_up(uint64_t value, uint64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

/* --- blocks on shelves -------------------------------------------------------------------- */

static bool is_whole(const block *b)
{
    return b->shelf == SHELF_DONE && !b->below && !b->above;
}

static void take_off_shelf(pool *p, uint32_t slot)
{
    p->whole_count -= is_whole(block_at(slot));
    shelf_take(&p->shelves, slot);
    block_at(slot)->shelf = SHELF_NONE;
}

/* `lower` takes in the block above it; neither is on a shelf. */
static void join(uint32_t lower)
{
    block *b = block_at(lower);
    uint32_t upper = b->above;
    b->span += block_at(upper)->span;
    b->above = block_at(upper)->above;
    if (b->above) {
        block_at(b->above)->below = lower;
    }
    map_join(b->address);
    block_delete(upper);
}

/* A block on no shelf, free from its point on: joined with what is free alike. Without host memory
 * for a shelf it is lost to the pool, but not to the device's reset. */
static void put_on_shelf(pool *p, uint32_t slot)
{
    uint32_t number = shelf_open(&p->shelves, block_at(slot)->freed_at.on);
    if (number == SHELF_NONE) {
        return;
    }
    uint32_t below = block_at(slot)->below, above = block_at(slot)->above;
    if (above && block_at(above)->shelf == number) {
        take_off_shelf(p, above);
        join(slot);
    }
    if (below && block_at(below)->shelf == number) {
        take_off_shelf(p, below);
        point_store(&block_at(below)->freed_at, block_at(slot)->freed_at); /* the later one */
        join(below);
        slot = below;
    }
    shelf_put(&p->shelves, number, slot);
    p->whole_count += is_whole(block_at(slot));
}

void pool_put(pool *p, uint32_t slot, point at)
{
    block *b = block_at(slot);
    allocation *a = map_find(b->address);
    a->size = a->span;
    b->is_live = false;
    p->live_count--;
    p->used -= b->size;
    point_store(&b->freed_at, host_is_after(at) ? (point){.on = NULL} : at);
    put_on_shelf(p, slot);
}

void pool_settle(pool *p)
{
    for (uint32_t i = 1; i <= p->shelves.count; i++) {
        for (uint32_t slot; (slot = shelf_at(&p->shelves, i)->oldest);) {
            if (!host_is_after(block_at(slot)->freed_at)) {
                break; /* nor are the newer ones */
            }
            take_off_shelf(p, slot);
            point_store(&block_at(slot)->freed_at, (point){.on = NULL});
            put_on_shelf(p, slot);
        }
    }
}

/* --- finding ------------------------------------------------------------------------------ */

/* Work of `s` from now on may have the block as it is: its earlier owner's comes before. */
static bool may_follow(const pool *p, const block *b, const stream *s)
{
    return (p->follows_events && stream_is_after(s, b->freed_at)) ||
           (p->is_opportunistic && b->freed_at.on->head >= b->freed_at.ticket);
}

static uint32_t smaller(uint32_t slot, uint32_t other)
{
    if (!slot || !other) {
        return slot ? slot : other;
    }
    const block *a = block_at(slot), *b = block_at(other);
    bool is_first = a->span != b->span ? a->span < b->span : a->address < b->address;
    return is_first ? slot : other;
}

/* What is over on a stream is a run from its oldest free, so the shelf is passed by where that is
 * not; else the first few that are large enough are looked at. */
static uint32_t find_followed(const pool *p, const shelf *from, uint64_t span, const stream *s)
{
    if (!from->root || !may_follow(p, block_at(from->oldest), s)) {
        return 0;
    }
    uint32_t slot = shelf_lower_bound(from, span, 0);
    for (int i = 0; slot && i < SCAN_MAX; i++) {
        const block *b = block_at(slot);
        if (may_follow(p, b, s)) {
            return slot;
        }
        slot = shelf_lower_bound(from, b->span, b->address + 1);
    }
    return 0;
}

/* The smallest free block that serves without a wait; 0: none. */
static uint32_t find_free(pool *p, uint64_t span, const stream *s)
{
    uint32_t own = shelf_lower_bound(&p->shelves.done, span, 0), followed = 0;
    for (uint32_t i = 1; i <= p->shelves.count; i++) {
        const shelf *from = shelf_at(&p->shelves, i);
        if (from->on == s) {
            own = smaller(own, shelf_lower_bound(from, span, 0));
        }
    }
    for (uint32_t i = 1; !own && i <= p->shelves.count; i++) {
        followed = smaller(followed, find_followed(p, shelf_at(&p->shelves, i), span, s));
    }
    return own ? own : followed;
}

/* The smallest that serves behind a wait; 0: none, or the pool may add no waits. */
static uint32_t find_behind_wait(pool *p, uint64_t span)
{
    uint32_t found = 0;
    for (uint32_t i = 1; p->adds_dependencies && i <= p->shelves.count; i++) {
        found = smaller(found, shelf_lower_bound(shelf_at(&p->shelves, i), span, 0));
    }
    return found;
}

/* --- growing and giving back -------------------------------------------------------------- */

static uint32_t new_chunk(pool *p, uint64_t bytes)
{
    uint64_t address;
    uint32_t slot = block_new(0, bytes, p->number);
    if (!slot || !memory_allocate(p->device, bytes, slot, &address)) {
        if (slot) {
            block_delete(slot);
        }
        return 0;
    }
    block_at(slot)->address = address;
    p->reserved += bytes;
    p->reserved_high = gmd_max(p->reserved, p->reserved_high);
    put_on_shelf(p, slot);
    return slot;
}

static uint32_t grow(pool *p, uint64_t span)
{
    uint64_t least = round_up(span, GMD_SIM_PAGE_BYTES);
    uint64_t left = p->max_bytes > p->reserved ? p->max_bytes - p->reserved : 0;
    if (least > left) {
        return 0;
    }
    uint32_t slot = 0;
    if (least < CHUNK_BYTES && CHUNK_BYTES <= left) {
        slot = new_chunk(p, CHUNK_BYTES);
    }
    return slot ? slot : new_chunk(p, least);
}

static void give_chunk_back(pool *p, uint32_t slot)
{
    take_off_shelf(p, slot);
    p->reserved -= block_at(slot)->span;
    memory_release_at(block_at(slot)->address);
    block_delete(slot);
}

void pool_give_back(pool *p, uint64_t keep)
{
    pool_settle(p);
    uint32_t slot = p->whole_count ? p->shelves.done.oldest : 0;
    while (slot && p->whole_count && p->reserved > keep) {
        uint32_t next = block_at(slot)->newer;
        if (is_whole(block_at(slot))) {
            give_chunk_back(p, slot);
        }
        slot = next;
    }
}

/* --- taking ------------------------------------------------------------------------------- */

/* Takes a block off its shelf, where what is above its first `span` bytes stays as a block of its
 * own; without host memory for that it is taken whole. */
static void take_front(pool *p, uint32_t slot, uint64_t span)
{
    uint64_t middle = block_at(slot)->address + span, left = block_at(slot)->span - span;
    uint32_t rest = left >= BLOCK_UNIT ? block_new(middle, left, p->number) : 0;
    allocation *a = rest ? map_split(block_at(slot)->address, middle) : NULL;
    if (a) {
        a->pool_block = rest;
        point_store(&block_at(rest)->freed_at, block_at(slot)->freed_at);
        shelf_put_after(&p->shelves, rest, slot);
    } else if (rest) {
        block_delete(rest);
    }
    take_off_shelf(p, slot);
    if (a) {
        block *lower = block_at(slot), *upper = block_at(rest);
        upper->below = slot;
        upper->above = lower->above;
        lower->above = rest;
        lower->span = span;
        if (upper->above) {
            block_at(upper->above)->below = rest;
        }
    }
}

static void count_use(pool *p, uint64_t size)
{
    p->live_count++;
    p->used += size;
    p->used_high = gmd_max(p->used, p->used_high);
}

uint32_t pool_take(pool *p, stream *s, uint64_t size)
{
    uint64_t span = round_up(size, BLOCK_UNIT);
    uint32_t slot = find_free(p, span, s);
    if (!slot) {
        pool_settle(p); /* what is over by now may have free neighbours */
        slot = find_free(p, span, s);
    }
    slot = slot ? slot : grow(p, span);
    if (!slot && p->whole_count) { /* too small each, but together there may be room */
        pool_give_back(p, 0);
        slot = grow(p, span);
    }
    slot = slot ? slot : find_behind_wait(p, span);
    if (!slot || !stream_follow(s, block_at(slot)->freed_at)) {
        return 0;
    }
    take_front(p, slot, span);
    block *b = block_at(slot);
    point_store(&b->freed_at, (point){.on = NULL});
    b->is_live = true;
    b->size = size;
    allocation *a = map_find(b->address);
    a->size = size;
    a->buffer_id = ++sim.buffers;
    count_use(p, size);
    return slot;
}

/* --- waiting, and the end of a pool -------------------------------------------------------- */

void pool_wait(pool *p)
{
    for (uint32_t i = 1; i <= p->shelves.count; i++) {
        uint32_t newest = shelf_at(&p->shelves, i)->newest;
        if (newest) {
            point at = {.on = NULL};
            point_store(&at, block_at(newest)->freed_at);
            stream_force(at.on, at.ticket);
            host_learn(at);
            point_store(&at, (point){.on = NULL});
        }
    }
    pool_settle(p);
}

/* Block by block, the lowest of each chunk as the one that stays. */
void pool_abandon(pool *p)
{
    for (uint32_t slot = 1; slot < block_limit(); slot++) {
        if (block_at(slot)->span && block_at(slot)->pool == p->number && !block_at(slot)->below) {
            while (block_at(slot)->above) {
                join(slot);
            }
            map_find(block_at(slot)->address)->size = block_at(slot)->span;
            memory_release_at(block_at(slot)->address);
            block_delete(slot);
        }
    }
    shelves_clear(&p->shelves);
}

/* --- validity ------------------------------------------------------------------------------ */

typedef struct pool_sums {
    uint64_t reserved, used;
    uint32_t live, whole, shelved;
} pool_sums;

static const char *neighbour_violation(const block *b, uint32_t slot)
{
    const block *above = b->above ? block_at(b->above) : NULL;
    if (above && (above->below != slot || above->address != b->address + b->span ||
                  above->pool != b->pool)) {
        return "the blocks of a chunk tile it, and know each other";
    }
    bool must_join = above && !b->is_live && !above->is_live && b->shelf == above->shelf &&
                     b->shelf != SHELF_NONE;
    return must_join ? "free neighbours on one shelf are joined" : NULL;
}

static const char *block_violation(const pool *p, uint32_t slot, pool_sums *sums)
{
    const block *b = block_at(slot);
    const allocation *a = map_find(b->address);
    if (!a || a->address != b->address || a->span != b->span || a->pool_block != slot ||
        a->size != (b->is_live ? b->size : b->span) || a->device != p->device) {
        return "a block of a pool has its range in the map";
    }
    if (b->is_live && (b->shelf != SHELF_NONE || !b->size || b->size > b->span)) {
        return "a block in use is on no shelf, and as large as was asked for";
    }
    sums->reserved += b->span;
    sums->used += b->is_live ? b->size : 0;
    sums->live += b->is_live;
    sums->whole += is_whole(b);
    sums->shelved += b->shelf != SHELF_NONE;
    return neighbour_violation(b, slot);
}

const char *pool_violation(pool *p)
{
    pool_sums sums = {0};
    for (uint32_t slot = 1; slot < block_limit(); slot++) {
        bool is_own = block_at(slot)->span && block_at(slot)->pool == p->number;
        const char *violation = is_own ? block_violation(p, slot, &sums) : NULL;
        if (violation) {
            return violation;
        }
    }
    if (p->reserved != sums.reserved || p->used != sums.used || p->live_count != sums.live ||
        p->whole_count != sums.whole || p->reserved > p->reserved_high || p->used > p->used_high) {
        return "a pool's figures are sums over its blocks, at most their peaks";
    }
    uint32_t shelved = 0;
    const char *violation = shelf_violation(&p->shelves, SHELF_DONE, &shelved);
    for (uint32_t i = 1; i <= p->shelves.count && !violation; i++) {
        violation = shelf_violation(&p->shelves, i, &shelved);
    }
    return violation || shelved == sums.shelved ? violation : "each free block is on its shelf";
}
