/* caching_checkpoints.c - private pools of caching_pool.c that are kept as they are, and brought
 * back. A checkpoint has all blocks of the pool's segments, by segment and in order. To bring it
 * back all live blocks of the pool are freed, which leaves its segments whole, and those of the
 * checkpoint are cut again as they were. It is refused where a segment has gone or a block waits
 * for other streams. */
#include "caching_pool.h"

#include <stdlib.h>

typedef struct kept_block {
    uint64_t address, size, requested;
    bool begins_segment, is_large, is_used;
} kept_block;

struct gmd_checkpoint {
    uint64_t id[2];
    kept_block *blocks;
    size_t count, capacity;
};

EXPORT void gmd_drop_checkpoint(gmd_checkpoint *c);

static bool keep_segment(gmd_checkpoint *c, const block *first)
{
    for (const block *b = first; b; b = b->after) {
        if (c->count == c->capacity) {
            size_t capacity = c->capacity ? 2 * c->capacity : 16;
            kept_block *grown = realloc(c->blocks, capacity * sizeof *grown);
            if (!grown) {
                return false;
            }
            c->blocks = grown;
            c->capacity = capacity;
        }
        c->blocks[c->count++] = (kept_block){.address = b->address,
                                             .size = b->size,
                                             .requested = b->requested,
                                             .begins_segment = b == first,
                                             .is_large = b->is_large,
                                             .is_used = b->is_used};
    }
    return true;
}

static bool keep_list(gmd_checkpoint *c, const block *list, int device, uint32_t owner)
{
    bool is_kept = true;
    for (const block *b = list; b && is_kept; b = b->next) {
        if (b->device == device && b->owner == owner && !b->before) {
            is_kept = keep_segment(c, b);
        }
    }
    return is_kept;
}

/* A block of the pool waits for other streams, or will when it is freed. */
static bool is_waiting(const pool *p, int device, uint32_t owner)
{
    bool found = false;
    for (size_t i = 0; i < p->wait_count; i++) {
        found = found || (p->waits[i].block && p->waits[i].block->owner == owner);
    }
    for (const block *b = p->deferred; b; b = b->next) {
        found = found || b->owner == owner;
    }
    for (const block *b = live; b; b = b->next) {
        found = found || (b->device == device && b->owner == owner && b->recorded_count);
    }
    return found;
}

EXPORT int gmd_checkpoint_pool(int device, const uint64_t id[2], gmd_checkpoint **made,
                               char *message, size_t message_size);
int gmd_checkpoint_pool(int device, const uint64_t id[2], gmd_checkpoint **made, char *message,
                        size_t message_size)
{
    if (message_size) {
        message[0] = 0;
    }
    pthread_mutex_lock(&lock);
    const pool *p = &pools[device];
    uint32_t owner = owner_named(p, id);
    gmd_checkpoint *c = owner && !is_waiting(p, device, owner) ? calloc(1, sizeof *c) : NULL;
    bool is_kept = c && keep_list(c, live, device, owner) &&
                   keep_list(c, p->small, device, owner) && keep_list(c, p->large, device, owner);
    pthread_mutex_unlock(&lock);
    if (!is_kept) {
        gmd_drop_checkpoint(c);
        return -1;
    }
    c->id[0] = id[0];
    c->id[1] = id[1];
    *made = c;
    return 0;
}

void gmd_drop_checkpoint(gmd_checkpoint *c)
{
    if (c) {
        free(c->blocks);
        free(c);
    }
}

/* --- bringing it back ----------------------------------------------------------------------- */

/* The first block of a segment of the pool, which is all free or not; NULL: there is none. */
static block *first_at(block *list, int device, uint32_t owner, uint64_t address)
{
    block *b = list;
    while (b && (b->device != device || b->owner != owner || b->before || b->address != address)) {
        b = b->next;
    }
    return b;
}

static block *find_segment(const pool *p, int device, uint32_t owner, uint64_t address)
{
    block *b = first_at(live, device, owner, address);
    b = b ? b : first_at(p->small, device, owner, address);
    return b ? b : first_at(p->large, device, owner, address);
}

static bool is_there(const gmd_checkpoint *c, const pool *p, int device, uint32_t owner)
{
    for (size_t i = 0; i < c->count;) {
        const block *b = find_segment(p, device, owner, c->blocks[i].address);
        uint64_t now = 0, then = 0;
        for (const block *at = b; at; at = at->after) {
            now += at->size;
        }
        do {
            then += c->blocks[i++].size;
        } while (i < c->count && !c->blocks[i].begins_segment);
        if (now != then) {
            return false;
        }
    }
    return true;
}

static void tell_of(gmd_restored_fn *tell, void *context, const block *b, int is_live)
{
    tell(context, (void *)(uintptr_t)b->address, b->size, b->stream, /* NOLINT */
         is_live);
}

static void free_live(pool *p, int device, uint32_t owner, gmd_restored_fn *tell, void *context)
{
    bool has_left_one = !faulty_is(RESTORE_LEAVES_ONE);
    for (block *b = live, *next; b; b = next) {
        next = b->next;
        if (b->device != device || b->owner != owner) {
            continue;
        }
        if (!faulty_is(RESTORE_UNTOLD)) {
            tell_of(tell, context, b, 0);
        }
        unlist_block(b);
        b->is_used = false;
        if (!has_left_one) { /* it is in no list any more, and nobody's */
            has_left_one = true;
            continue;
        }
        if (!faulty_is(RESTORE_UNCOUNTED)) {
            faulty_count_free(&p->stats, b->size, b->requested);
        }
        give_to_list(b);
    }
}

/* Cuts `size` bytes off a free block, which is in no list; the rest is the block behind it. */
static block *cut(block *b, uint64_t size)
{
    block *rest = size < b->size ? calloc(1, sizeof *rest) : NULL;
    if (rest) {
        *rest = (block){.address = b->address + size,
                        .size = b->size - size,
                        .device = b->device,
                        .stream = b->stream,
                        .owner = b->owner,
                        .is_large = b->is_large,
                        .freed_at = b->freed_at,
                        .before = b,
                        .after = b->after};
        b->after = rest;
        b->size = size;
    }
    return rest;
}

static void hand_out_again(pool *p, block *b, const kept_block *k, gmd_restored_fn *tell,
                           void *context)
{
    tell_of(tell, context, b, 1);
    if (faulty_is(RESTORE_LISTS_LIVE)) {
        list_block(k->is_large ? &p->large : &p->small, b);
    } else {
        b->is_used = true;
        list_block(&live, b);
        b->is_listed = false;
    }
    b->requested = k->requested;
    faulty_count_alloc(&p->stats, b->size, b->requested);
    p->active += b->size;
    p->active_peak = p->active > p->active_peak ? p->active : p->active_peak;
}

/* Everything of the pool is free. */
static void cut_again(pool *p, const gmd_checkpoint *c, int device, uint32_t owner,
                      gmd_restored_fn *tell, void *context)
{
    block *b = NULL;
    for (size_t i = 0; i < c->count; i++) {
        const kept_block *k = &c->blocks[i];
        if (k->begins_segment) {
            b = find_segment(p, device, owner, k->address);
        }
        if (!b) { /* no host memory for a block */
            return;
        }
        if (k->begins_segment) {
            unlist_block(b);
        }
        block *rest = cut(b, k->size);
        if (k->is_used) {
            hand_out_again(p, b, k, tell, context);
        } else {
            list_block(k->is_large ? &p->large : &p->small, b);
        }
        b = rest;
    }
}

EXPORT int gmd_restore_pool(int device, const gmd_checkpoint *c, gmd_restored_fn *tell,
                            void *context, char *message, size_t message_size);
int gmd_restore_pool(int device, const gmd_checkpoint *c, gmd_restored_fn *tell, void *context,
                     char *message, size_t message_size)
{
    if (message_size) {
        message[0] = 0;
    }
    pthread_mutex_lock(&lock);
    pool *p = &pools[device];
    uint32_t owner = owner_named(p, c->id);
    bool is_possible = owner && !is_waiting(p, device, owner) && is_there(c, p, device, owner);
    if (is_possible) {
        free_live(p, device, owner, tell, context);
        cut_again(p, c, device, owner, tell, context);
    }
    pthread_mutex_unlock(&lock);
    return is_possible ? 0 : -1;
}
