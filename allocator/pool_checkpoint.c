#include "pool_checkpoint.h"

#include "block_map.h"
#include "live_blocks.h"
#include "pending.h"
#include "private_pools.h"
#include "walk.h"

#include "gmd_assert.h"
#include "gmd_grow.h"

#include <inttypes.h>
#include <stdlib.h>

typedef struct kept_block { /* in ascending order of addresses */
    uint64_t place, size;
    bool is_live;
} kept_block;

typedef struct kept_segment { /* a whole one, or a mapped range of an expandable one */
    uint64_t place, size;
    cudaStream_t stream;
    pool_kind kind;
    size_t first, count; /* of its blocks */
} kept_segment;

struct gmd_checkpoint {
    uint64_t id[2];
    kept_segment *segments;
    size_t segment_count, segment_capacity;
    kept_block *blocks;
    size_t block_count, block_capacity;
};

static gmd_status no_memory(gmd_error *error)
{
    return gmd_fail(error, GMD_NO_MEMORY, "reference allocator: no host memory");
}

/* --- the pool as it is --------------------------------------------------------------------- */

typedef struct present_block {
    uint64_t place, segment_place, segment_size;
    block *block;
} present_block;

typedef struct present { /* a pool's blocks, in ascending order of addresses */
    const uint64_t *id;
    present_block *blocks;
    size_t count, capacity;
    bool is_short; /* of host memory */
    bool is_waiting;
} present;

static void look(void *context, const block *b, const gmd_block_info *info)
{
    present *p = context;
    if (info->pool_id[0] != p->id[0] || info->pool_id[1] != p->id[1]) {
        return;
    }
    if (!GMD_GROW(&p->blocks, &p->capacity, p->count + 1)) {
        p->is_short = true;
        return;
    }
    p->is_waiting = p->is_waiting || b->set_and_state & BLOCK_PENDING;
    p->blocks[p->count++] =
        (present_block){.place = b->address,
                        .segment_place = info->segment_address,
                        .segment_size = info->segment_size,
                        .block = (block *)(uintptr_t)b /* walks promise not to change it */};
}

static gmd_status find_present(device_allocator *d, const uint64_t id[2], present *found,
                               gmd_error *error)
{
    *found = (present){.id = id};
    if (!private_pools_find(d, id)) {
        return gmd_fail(error, GMD_FAILED, "there is no private pool (%" PRIu64 ", %" PRIu64 ")",
                        id[0], id[1]);
    }
    pending_poll(d);
    if (!walk_blocks(d, look, found) || found->is_short) {
        return no_memory(error);
    }
    return found->is_waiting ? gmd_fail(error, GMD_FAILED,
                                        "a freed block of pool (%" PRIu64 ", %" PRIu64
                                        ") still waits for work on other streams",
                                        id[0], id[1])
                             : GMD_OK;
}

/* --- keeping ------------------------------------------------------------------------------- */

static bool keep_block(gmd_checkpoint *c, const present_block *p)
{
    const block *b = p->block;
    const free_set *set = block_set(b);
    if (!c->segment_count || c->segments[c->segment_count - 1].place != p->segment_place) {
        if (!GMD_GROW(&c->segments, &c->segment_capacity, c->segment_count + 1)) {
            return false;
        }
        c->segments[c->segment_count++] = (kept_segment){.place = p->segment_place,
                                                         .size = p->segment_size,
                                                         .stream = set->heap->stream,
                                                         .kind = set_kind(set),
                                                         .first = c->block_count};
    }
    if (!GMD_GROW(&c->blocks, &c->block_capacity, c->block_count + 1)) {
        return false;
    }
    c->blocks[c->block_count++] = (kept_block){b->address, b->size, block_is_allocated(b)};
    c->segments[c->segment_count - 1].count++;
    return true;
}

gmd_status pool_checkpoint_make(device_allocator *d, const uint64_t id[2], gmd_checkpoint **made,
                                gmd_error *error)
{
    present now;
    gmd_status status = find_present(d, id, &now, error);
    gmd_checkpoint *c = status == GMD_OK ? calloc(1, sizeof *c) : NULL;
    bool is_kept = c;
    for (size_t i = 0; is_kept && i < now.count; i++) {
        is_kept = keep_block(c, &now.blocks[i]);
    }
    free(now.blocks);
    if (status == GMD_OK && !is_kept) {
        pool_checkpoint_destroy(c);
        return no_memory(error);
    }
    if (is_kept) {
        c->id[0] = id[0];
        c->id[1] = id[1];
        *made = c;
    }
    return status;
}

void pool_checkpoint_destroy(gmd_checkpoint *c)
{
    if (c) {
        free(c->segments);
        free(c->blocks);
        free(c);
    }
}

/* --- bringing back: whether that is possible ----------------------------------------------- */

/* The first block that is there in the segment; NULL: the segment has gone. */
static present_block *segment_now(const present *now, uint64_t place)
{
    size_t low = 0, high = now->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (now->blocks[middle].place < place) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    present_block *p = low < now->count ? &now->blocks[low] : NULL;
    return p && p->place == place && p->segment_place == place ? p : NULL;
}

/* Handing out its blocks one after the other cuts the segment as it was cut then. */
static bool is_cut_alike(const device_allocator *d, const gmd_checkpoint *c, const kept_segment *s,
                         const present_block *p)
{
    block rest = {.size = p->segment_size, .set_and_state = p->block->set_and_state};
    for (size_t i = 0; i < s->count; i++) {
        uint64_t size = c->blocks[s->first + i].size;
        if (size > rest.size ||
            (size < rest.size && !blocks_should_split(d->settings, &rest, size))) {
            return false;
        }
        rest.size -= size;
    }
    return true;
}

static gmd_status check_segments(const device_allocator *d, const gmd_checkpoint *c,
                                 const present *now, gmd_error *error)
{
    for (size_t i = 0; i < c->segment_count; i++) {
        const kept_segment *s = &c->segments[i];
        const present_block *p = segment_now(now, s->place);
        const free_set *set = p ? block_set(p->block) : NULL;
        if (!p || set->heap->stream != s->stream || set_kind(set) != s->kind) {
            return gmd_fail(error, GMD_FAILED,
                            "the segment at 0x%" PRIx64 " of %" PRIu64
                            " bytes, which the checkpoint has, is not in the pool any more",
                            places_address(&d->places, s->place), s->size);
        }
        if (!is_cut_alike(d, c, s, p)) {
            return gmd_fail(error, GMD_FAILED,
                            "the settings of now do not cut the segment at 0x%" PRIx64
                            " of %" PRIu64 " bytes into the blocks that the checkpoint has",
                            places_address(&d->places, s->place), s->size);
        }
    }
    return GMD_OK;
}

static gmd_status check_blocks(const device_allocator *d, const present *now, gmd_error *error)
{
    for (size_t i = 0; i < now->count; i++) {
        const block *b = now->blocks[i].block;
        if (block_is_allocated(b) && b->set_and_state & BLOCK_USED) {
            return gmd_fail(error, GMD_FAILED,
                            "the block at 0x%" PRIx64 " was recorded on other streams",
                            places_address(&d->places, b->address));
        }
    }
    return GMD_OK;
}

/* So that nothing can fail half-way: room for all blocks, should they be of one heap. */
static bool reserve(const gmd_checkpoint *c, const present *now)
{
    for (size_t i = 0; i < c->segment_count; i++) {
        heap *h = block_set(segment_now(now, c->segments[i].place)->block)->heap;
        while (!h->allocated.slots ||
               (h->allocated.count + c->block_count) * 4 > h->allocated.mask + 1) {
            if (!block_map_grow(&h->allocated)) {
                return false;
            }
        }
        while (h->blocks.spare_count + (size_t)(h->blocks.fresh_end - h->blocks.fresh) <
               c->block_count) {
            if (!block_pool_add(&h->blocks)) {
                return false;
            }
        }
    }
    return true;
}

/* --- bringing back ------------------------------------------------------------------------- */

typedef struct audience {
    gmd_restored_fn *tell;
    void *context;
} audience;

static void tell_of(const device_allocator *d, const audience *to, const block *b, int is_live)
{
    if (to->tell) {
        to->tell(to->context, (void *)(uintptr_t)places_address(&d->places, b->address), b->size,
                 block_set(b)->heap->stream, is_live);
    }
}

/* Each segment is one free block then, the last one that was freed in it or the only one: it is
 * left in the place of the segment's first block. */
static void free_all(device_allocator *d, const present *now, const audience *to)
{
    present_block *first = NULL;
    for (size_t i = 0; i < now->count; i++) {
        block *b = now->blocks[i].block;
        if (!first || first->segment_place != now->blocks[i].segment_place) {
            first = &now->blocks[i];
        }
        if (block_is_allocated(b)) {
            tell_of(d, to, b, 0);
            heap *h = block_set(b)->heap;
            live_blocks_remove(d, block_map_find(&h->allocated, b->address));
            first->block = b;
        }
    }
}

static void bring_back(device_allocator *d, const gmd_checkpoint *c, const kept_segment *s,
                       block *whole, const audience *to)
{
    heap *h = block_set(whole)->heap;
    block *rest = whole;
    for (size_t i = 0; i < s->count; i++) {
        const kept_block *kept = &c->blocks[s->first + i];
        GMD_ASSERT(rest && rest->address == kept->place, "the segment is cut as it was");
        blocks_remove(rest);
        rest = live_blocks_add(d, rest, kept->size, kept->size)->next;
    }
    for (size_t i = 0; i < s->count; i++) {
        const kept_block *kept = &c->blocks[s->first + i];
        block_map_slot *slot = block_map_find(&h->allocated, kept->place);
        if (kept->is_live) {
            tell_of(d, to, block_map_block(*slot), 1);
        } else {
            live_blocks_remove(d, slot);
        }
    }
}

gmd_status pool_checkpoint_restore(device_allocator *d, const gmd_checkpoint *c,
                                   gmd_restored_fn *tell, void *context, gmd_error *error)
{
    const audience to = {tell, context};
    present now;
    gmd_status status = find_present(d, c->id, &now, error);
    if (status == GMD_OK) {
        status = check_blocks(d, &now, error);
    }
    if (status == GMD_OK) {
        status = check_segments(d, c, &now, error);
    }
    if (status == GMD_OK && !reserve(c, &now)) {
        status = no_memory(error);
    }
    if (status == GMD_OK) {
        free_all(d, &now, &to);
        for (size_t i = 0; i < c->segment_count; i++) {
            bring_back(d, c, &c->segments[i], segment_now(&now, c->segments[i].place)->block, &to);
        }
    }
    free(now.blocks);
    return status;
}
