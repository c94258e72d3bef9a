#include "walk.h"

#include "gmd_grow.h"

#include <stdlib.h>

typedef struct head_list { /* the first block of every mapped range, maybe more than once */
    const block **heads;
    size_t count, capacity;
    bool is_short; /* of host memory */
} head_list;

static void add_head(void *context, block *b)
{
    head_list *list = context;
    if (b->previous && !block_is_unmapped(b->previous)) {
        return;
    }
    if (!GMD_GROW(&list->heads, &list->capacity, list->count + 1)) {
        list->is_short = true;
        return;
    }
    list->heads[list->count++] = b;
}

static int compare_heads(const void *a, const void *b)
{
    const block *const *x = a, *const *y = b;
    return ((*x)->address > (*y)->address) - ((*x)->address < (*y)->address);
}

static void find_heads(device_allocator *d, head_list *list)
{
    for (heap *h = d->heaps; h; h = h->next_of_device) {
        uint64_t left = h->allocated.count; /* a map that was large is mostly empty */
        for (uint64_t i = 0; left; i++) {
            block *b = block_map_at(&h->allocated, i);
            if (b) {
                add_head(list, b);
                left--;
            }
        }
        for (int kind = 0; kind < POOL_KINDS; kind++) {
            free_set_each(&h->sets[kind], add_head, list);
        }
    }
    pending_each(&d->pending, add_head, list);
}

static int state_of(const block *b)
{
    return block_is_allocated(b) ? 1 : b->set_and_state & BLOCK_PENDING ? 2 : 0;
}

static gmd_block_info describe(const block *head, uint64_t segment_size, const block *b)
{
    const free_set *set = block_set(b);
    return (gmd_block_info){.segment_address = head->address,
                            .segment_size = segment_size,
                            .address = b->address,
                            .size = b->size,
                            .requested_size = b->requested_size,
                            .stream = set->heap->stream,
                            .state = state_of(b),
                            .is_large = !set->is_small,
                            .is_expandable = block_is_expandable(b),
                            .pool_id = {set->heap->pool->id[0], set->heap->pool->id[1]}};
}

static void visit_segment(const block *head, walk_fn *visit, void *context)
{
    uint64_t segment_size = 0;
    for (const block *b = head; b && !block_is_unmapped(b); b = b->next) {
        segment_size += b->size;
    }
    for (const block *b = head; b && !block_is_unmapped(b); b = b->next) {
        gmd_block_info info = describe(head, segment_size, b);
        visit(context, b, &info);
    }
}

bool walk_blocks(device_allocator *d, walk_fn *visit, void *context)
{
    head_list list = {0};
    find_heads(d, &list);
    if (list.count) {
        qsort(list.heads, list.count, sizeof *list.heads, compare_heads);
    }
    for (size_t i = 0; !list.is_short && i < list.count; i++) {
        if (i == 0 || list.heads[i] != list.heads[i - 1]) {
            visit_segment(list.heads[i], visit, context);
        }
    }
    free(list.heads);
    return !list.is_short;
}

typedef struct outside { /* one who sees no blocks of the allocator */
    gmd_walk_fn *visit;
    void *context;
} outside;

static void show(void *context, const block *b, const gmd_block_info *info)
{
    const outside *to = context;
    (void)b;
    to->visit(to->context, info);
}

bool walk_device(device_allocator *d, gmd_walk_fn *visit, void *context)
{
    outside to = {visit, context};
    return walk_blocks(d, show, &to);
}
