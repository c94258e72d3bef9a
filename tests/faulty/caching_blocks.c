/* caching_blocks.c - blocks of caching_pool.c: lists, best fit, splitting, merging. */
#include "caching_pool.h"

#include <stdlib.h>

uint64_t round_up(uint64_t size, uint64_t to)
{
    return (size + to - 1) / to * to;
}

/* --- lists --------------------------------------------------------------------------------- */

void list_block(block **list, block *b)
{
    b->is_listed = true;
    b->next = *list;
    b->link = list;
    if (*list) {
        (*list)->link = &b->next;
    }
    *list = b;
}

void unlist_block(block *b)
{
    b->is_listed = false;
    *b->link = b->next;
    if (b->next) {
        b->next->link = b->link;
    }
}

static block **free_list(const block *b)
{
    pool *p = &pools[b->device];
    return b->is_large ? &p->large : &p->small;
}

/* --- free blocks --------------------------------------------------------------------------- */

/* Takes the block behind `b` into it. */
static void merge_after(block *b)
{
    block *gone = b->after;
    b->size += gone->size;
    b->after = gone->after;
    if (b->after) {
        b->after->before = b;
    }
    free(gone);
}

/* What waits for events is taken for free: its waits end with nothing. */
static void forget_waits(pool *p, const block *b)
{
    for (size_t i = 0; i < p->wait_count; i++) {
        if (p->waits[i].block == b) {
            p->waits[i].block = NULL;
        }
    }
    p->active -= b->size;
}

/* Nobody uses the block any more. */
void give_to_list(block *b)
{
    pool *p = &pools[b->device];
    uint64_t own = b->size;
    b->requested = 0;
    b->freed_at = request_count;
    if (faulty_is(MERGES_PENDING) && b->after && !b->after->is_used && b->after->waits) {
        forget_waits(p, b->after);
        merge_after(b);
    } else if (b->after && b->after->is_listed) {
        unlist_block(b->after);
        merge_after(b);
    }
    if (b->before && b->before->is_listed) {
        b = b->before;
        unlist_block(b);
        merge_after(b);
    }
    p->active -= faulty_is(PYTORCH135726) ? b->size : own;
    if (faulty_is(WRONG_DEVICE)) {
        cudaGetDevice(&b->device);
    }
    list_block(free_list(b), b);
}

static bool serves(const block *b, uint64_t size, cudaStream_t stream, uint32_t owner)
{
    if (b->owner != owner && !faulty_is(PYTORCH114320)) {
        return false;
    }
    bool is_of_stream = b->stream == stream || (faulty_is(ORT32342) && !b->stream);
    return is_of_stream && b->size >= size &&
           (b->size <= SPLIT_MAX || size > SPLIT_MAX || b->size == size);
}

block *take_best_of(pool *p, uint64_t size, bool is_large, cudaStream_t stream, uint32_t owner)
{
    block *best = NULL;
    for (block *b = is_large ? p->large : p->small; b; b = b->next) {
        if (serves(b, size, stream, owner) &&
            (!best || b->size < best->size ||
             (b->size == best->size && b->address < best->address))) {
            best = b;
        }
    }
    if (best) {
        unlist_block(best);
    }
    return best;
}

block *take_best(pool *p, uint64_t size, bool is_large, cudaStream_t stream)
{
    return take_best_of(p, size, is_large, stream, owner_for(p, stream));
}

/* Small blocks give everything back that is not needed, large ones from a MiB on. */
void split(block *b, uint64_t size, uint64_t requested)
{
    uint64_t least = b->is_large ? MIB + 1 : UNIT;
    bool is_whole =
        is_kept_whole(&pools[b->device], b->owner) && (b->is_large || !faulty_is(SMALL_SPLIT));
    if (is_whole || b->size > SPLIT_MAX || b->size - size < least) {
        return;
    }
    block *rest = malloc(sizeof *rest);
    if (!rest) {
        return; /* all of it, then */
    }
    uint64_t end = b->address + size;
    if (faulty_is(RMM2002)) {
        end = b->address + round_up(requested ? requested : 1, 8);
    }
    uint64_t overlap = faulty_is(REMAINDER_EARLY) && b->is_large ? UNIT : 0;
    *rest = (block){.address = end - overlap,
                    .size = b->address + b->size - end + overlap,
                    .device = b->device,
                    .stream = b->stream,
                    .owner = b->owner,
                    .is_large = b->is_large,
                    .freed_at = b->freed_at,
                    .before = b,
                    .after = b->after};
    if (b->after) {
        b->after->before = rest;
    }
    b->after = rest;
    b->size = end - b->address;
    if (!(faulty_is(LOST_REMAINDER) && b->is_large)) {
        list_block(free_list(rest), rest);
    }
}
