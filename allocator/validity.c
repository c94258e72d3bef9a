#include "validity.h"

#include "device_heaps.h"
#include "gmd_min.h"
#include "virtual_memory.h"

#include <string.h>

/* Blocks that a walk may come upon for each state that is left. */
#define STATE_ALLOWANCE 32

typedef struct sums { /* over the blocks of one kind of a heap */
    uint64_t counts[COUNTED_FIGURE_COUNT];
    uint64_t pending[2]; /* blocks and bytes, as in statistics.h */
} sums;

typedef struct walk {
    const settings *settings;
    const segment *segments; /* of the device */
    const heap *in;          /* the one that is walked */
    bool has_pending;        /* pending blocks are come upon as well */
    sums sums[POOL_KINDS];   /* of `in` */
    uint64_t reserved[POOL_KINDS], segment_count[POOL_KINDS], oversize_segments;
    uint64_t expandable_segments, oversize_blocks, events_awaited;
    const char *violation; /* the first that was found */
} walk;

static void find(walk *w, bool holds, const char *sentence)
{
    if (!holds && !w->violation) {
        w->violation = sentence;
    }
}

/* --- one block --------------------------------------------------------------------------- */

static bool is_pending(const block *b)
{
    return b->set_and_state & BLOCK_PENDING;
}

static bool must_merge(const block *lower, const block *upper)
{
    return block_is_idle(lower) && block_is_idle(upper) &&
           block_is_unmapped(lower) == block_is_unmapped(upper);
}

static void check_neighbours(walk *w, const block *b)
{
    if (b->previous) {
        find(w, b->previous->next == b, "neighbours know each other");
    }
    if (b->next) {
        const block *n = b->next;
        find(w, n->previous == b, "neighbours know each other");
        find(w, n->address == b->address + b->size, "blocks tile their segment");
        find(w, block_set(n) == block_set(b), "the blocks of a segment are of one set");
        find(w, block_is_expandable(n) == block_is_expandable(b),
             "the blocks of a segment are of one kind");
        find(w, !must_merge(b, n), "free neighbours are merged");
    }
}

static const segment *find_segment(const walk *w, const block *b)
{
    const segment *wanted = block_detail_seen(b)->expandable, *s = w->segments;
    while (s && s != wanted) {
        s = s->next;
    }
    return s;
}

static void check_pages(walk *w, const segment *s, const block *b)
{
    uint64_t offset = b->address - s->place, end = offset + b->size;
    if (block_is_unmapped(b)) {
        find(w, offset % s->page_bytes == 0 && end % s->page_bytes == 0,
             "addresses without memory are whole pages");
    } else {
        uint64_t first = offset / s->page_bytes, last = (end - 1) / s->page_bytes;
        find(w, segment_is_mapped(s, first, last - first + 1), "pages of blocks have memory");
    }
}

static void check_expandable(walk *w, const block *b)
{
    const segment *s = find_segment(w, b);
    find(w, s != NULL, "a block lies in an expandable segment of the device");
    if (!s) {
        return;
    }
    uint64_t offset = b->address - s->place;
    find(w, s->set == block_set(b), "a segment knows the set of its blocks");
    find(w, offset <= s->size && b->size <= s->size - offset, "a block lies in its segment");
    find(w, b->previous || offset == 0, "blocks tile their segment from its start");
    find(w, b->next || offset + b->size == s->size, "blocks tile their segment to its end");
    if (!w->violation) {
        check_pages(w, s, b);
    }
}

/* --- sums -------------------------------------------------------------------------------- */

static bool is_oversize(const walk *w, uint64_t size)
{
    return size >= w->settings->max_split_bytes;
}

static void add_allocated(walk *w, sums *to, const block *b)
{
    to->counts[FIGURE_ALLOCATION]++;
    to->counts[FIGURE_ALLOCATED_BYTES] += b->size;
    to->counts[FIGURE_REQUESTED_BYTES] += b->requested_size;
    w->oversize_blocks += is_oversize(w, b->size);
    find(w, b->requested_size <= b->size, "a block holds what was asked for");
    find(w, !block_is_unmapped(b), "a block in use has memory");
}

static void add_pending(walk *w, sums *to, const block *b)
{
    to->pending[0]++;
    to->pending[1] += b->size;
    to->counts[FIGURE_REQUESTED_BYTES] += b->requested_size;
    w->events_awaited += block_detail_seen(b)->event_count;
    find(w, !block_is_allocated(b), "a pending block is nobody's");
}

static void add_free(sums *to, const block *b)
{
    if (block_is_split(b) && !block_is_expandable(b)) {
        to->counts[FIGURE_INACTIVE_SPLIT]++;
        to->counts[FIGURE_INACTIVE_SPLIT_BYTES] += b->size;
    }
}

static void add_segment(walk *w, int kind, const block *head)
{
    if (block_is_expandable(head)) {
        w->expandable_segments++;
        return;
    }
    w->segment_count[kind]++;
    uint64_t size = 0;
    for (const block *b = head; b && w->settings->max_split_bytes != UINT64_MAX; b = b->next) {
        size += b->size;
    }
    w->oversize_segments += is_oversize(w, size);
}

static void add(walk *w, const block *b)
{
    int kind = (int)set_kind(block_set(b));
    if (is_pending(b)) {
        add_pending(w, &w->sums[kind], b);
    } else if (block_is_allocated(b)) {
        add_allocated(w, &w->sums[kind], b);
    } else {
        add_free(&w->sums[kind], b);
    }
    w->reserved[kind] += block_is_unmapped(b) ? 0 : b->size;
    if (!b->previous) {
        add_segment(w, kind, b);
    }
}

/* --- visits ------------------------------------------------------------------------------ */

/* A detail holds what its last owner left, also of blocks that nothing but a neighbour knows. */
static void forget_visits(void *context, block *b)
{
    (void)context;
    block *known[] = {b, b->previous, b->next};
    for (int i = 0; i < 3; i++) {
        if (known[i]) {
            block_detail_of(known[i])->visits = 0;
        }
    }
}

static void come_upon(void *context, block *b)
{
    walk *w = context;
    const free_set *set = block_set(b);
    block_detail *detail = block_detail_of(b);
    if (w->violation) {
        return;
    }
    find(w, set == &w->in->sets[POOL_LARGE] || set == &w->in->sets[POOL_SMALL],
         "a block is of the heap that has it");
    find(w, !detail->visits, "a block is in one place only");
    find(w, b->size && b->size % BLOCK_BYTES == 0, "a size is a multiple of 512 bytes");
    check_neighbours(w, b);
    if (!w->violation && block_is_expandable(b)) {
        check_expandable(w, b);
    }
    detail->visits = 1;
    if (!w->violation) {
        add(w, b);
    }
}

static void come_upon_allocated(void *context, block *b)
{
    find(context, block_is_allocated(b) && !is_pending(b), "the map has the allocated blocks");
    come_upon(context, b);
}

/* One that waits for several events is come upon as often. */
static void come_upon_pending(void *context, block *b)
{
    walk *w = context;
    if (w->violation || block_set(b)->heap != w->in) {
        return;
    }
    if (block_detail_seen(b)->visits) {
        block_detail_of(b)->visits++;
    } else {
        come_upon(w, b);
    }
}

/* The walk came upon the block: it must have come upon both neighbours, too. Then whatever is
 * reached from a block is in a set, in a map or pending. */
static void look_back(void *context, block *b)
{
    walk *w = context;
    const block *around[] = {b->previous, b->next};
    for (int i = 0; i < 2; i++) {
        const block *n = around[i];
        find(w, !n || block_detail_seen(n)->visits || (is_pending(n) && !w->has_pending),
             "each block of a segment is in a set, in a map or pending");
    }
    if (is_pending(b)) {
        const block_detail *detail = block_detail_seen(b);
        find(w, detail->visits - detail->event_count <= 1,
             "a pending block counts its events, and is deferred once at most");
    }
}

static void forget_visits_of_pending(void *context, block *b)
{
    walk *w = context;
    if (block_set(b)->heap == w->in) {
        forget_visits(w, b);
    }
}

static void look_back_pending(void *context, block *b)
{
    walk *w = context;
    if (block_set(b)->heap == w->in) {
        look_back(w, b);
    }
}

static const char *each_block(const heap *h, void (*allocated)(void *, block *),
                              void (*other)(void *, block *), walk *w)
{
    const char *violation = block_map_violation(&h->allocated, allocated, w);
    for (int kind = 0; kind < POOL_KINDS && !violation; kind++) {
        violation = free_set_violation(&h->sets[kind], other, w);
    }
    return violation ? violation : w->violation;
}

/* --- a heap ------------------------------------------------------------------------------ */

static const char *sums_violation(const walk *w, const heap *h)
{
    for (int kind = 0; kind < POOL_KINDS; kind++) {
        const sums *s = &w->sums[kind];
        bool is_whole = w->has_pending || !h->stats.pending[kind][0];
        for (int which = 0; which < COUNTED_FIGURE_COUNT; which++) {
            uint64_t current = h->stats.counts[kind][which].current;
            if (current != s->counts[which] && (is_whole || which != FIGURE_REQUESTED_BYTES)) {
                return "a heap's figures are sums over its blocks";
            }
        }
        if (w->has_pending && (s->pending[0] != h->stats.pending[kind][0] ||
                               s->pending[1] != h->stats.pending[kind][1])) {
            return "a heap's pending figures are sums over its pending blocks";
        }
    }
    return NULL;
}

/* Sums over the device go on, those of the heap begin anew. */
static const char *walk_heap(walk *w, heap *h, const pending *p)
{
    w->in = h;
    w->sums[POOL_LARGE] = w->sums[POOL_SMALL] = (sums){0};
    const char *violation = each_block(h, forget_visits, forget_visits, w);
    if (p && !violation) {
        pending_each(p, forget_visits_of_pending, w);
        pending_each(p, come_upon_pending, w);
    }
    violation = violation ? violation : each_block(h, come_upon_allocated, come_upon, w);
    violation = violation ? violation : each_block(h, look_back, look_back, w);
    if (p && !violation) {
        pending_each(p, look_back_pending, w);
    }
    violation = violation ? violation : w->violation;
    return violation ? violation : sums_violation(w, h);
}

const char *heap_violation(heap *h)
{
    walk w = {.settings = h->device->settings, .segments = h->device->segments};
    return walk_heap(&w, h, NULL);
}

/* --- the device -------------------------------------------------------------------------- */

static bool is_in_pool(const pool *p, const heap *wanted)
{
    return device_find_heap(p, wanted->stream) == wanted;
}

/* Pools are few. */
static const char *pool_violation(const device_allocator *d, const pool *p)
{
    for (size_t i = 0; i < p->heap_count; i++) {
        const heap *h = p->heaps[i];
        if (h->pool != p || h->device != d) {
            return "a heap knows its pool and its device";
        }
        if (i && (uintptr_t)p->heaps[i - 1]->stream >= (uintptr_t)h->stream) {
            return "the heaps of a pool are in the order of their streams, one of each";
        }
    }
    for (const pool *other = p->next; other; other = other->next) {
        if (other->id[0] == p->id[0] && other->id[1] == p->id[1]) {
            return "a pool is there once";
        }
    }
    return NULL;
}

static const char *routes_violation(const device_allocator *d)
{
    for (const route *r = d->routes; r; r = r->next) {
        const pool *p = d->default_pool.next;
        while (p && p != r->to) {
            p = p->next;
        }
        if (!p) {
            return "a route leads to a private pool of the device";
        }
    }
    return NULL;
}

/* Counts a heap's figures; NULL: all holds. */
static const char *heap_figures_violation(const heap *h, uint64_t *sharing,
                                          settled_figures *settled)
{
    if (h->stats.is_sharing) {
        ++*sharing;
        return NULL;
    }
    statistics_add_current(&h->stats, settled);
    return atomic_load_explicit(&h->entry, memory_order_relaxed) == HEAP_CLOSED
               ? NULL
               : "a heap that does not share in the peaks is closed";
}

static uint64_t count_sharing(const statistics *s)
{
    uint64_t count = 0;
    for (const heap_statistics *h = s->sharing; h; h = h->next) {
        count++;
    }
    return count;
}

static const char *heaps_violation(const device_allocator *d)
{
    uint64_t heaps = 0, sharing = 0;
    settled_figures settled = {0};
    for (const heap *h = d->heaps; h; h = h->next_of_device) {
        const char *violation = heap_figures_violation(h, &sharing, &settled);
        if (violation) {
            return violation;
        }
        if (!is_in_pool(h->pool, h)) {
            return "each heap is of a pool";
        }
        heaps++;
    }
    if (heaps != d->stats.heap_count || sharing != count_sharing(&d->stats)) {
        return "the figures of each heap are counted, once";
    }
    return memcmp(settled.current, d->stats.settled.current, sizeof settled.current) == 0
               ? NULL
               : "settled figures are sums over the heaps that do not share";
}

/* The order of a pool's heaps comes first: others are found by it. */
static const char *lists_violation(const device_allocator *d)
{
    const char *violation = NULL;
    for (const pool *p = &d->default_pool; p && !violation; p = p->next) {
        violation = pool_violation(d, p);
    }
    violation = violation ? violation : heaps_violation(d);
    return violation ? violation : routes_violation(d);
}

static const char *attention_violation(const device_allocator *d)
{
    uint32_t now = atomic_load_explicit(&d->attention, memory_order_relaxed);
    bool agrees = !(now & ATTEND_PENDING) == pending_is_empty(&d->pending) &&
                  !(now & ATTEND_ROUTES) == !d->routes && !(now & ATTEND_YIELDED) == !d->loan;
    return agrees ? NULL : "what needs attention is marked, and nothing else";
}

static uint64_t count_segments(const segment *s)
{
    uint64_t count = 0;
    for (; s; s = s->next) {
        count++;
    }
    return count;
}

static const char *totals_violation(const device_allocator *d, const walk *w)
{
    for (int kind = 0; kind < POOL_KINDS; kind++) {
        const figure *of = d->stats.pooled[kind];
        if (of[FIGURE_RESERVED_BYTES].current != w->reserved[kind]) {
            return "what is reserved is the sum over all blocks with memory";
        }
        if (of[FIGURE_SEGMENT].current != w->segment_count[kind]) {
            return "each segment of cudaMalloc is counted";
        }
    }
    if (d->stats.oversize[FIGURE_OVERSIZE_SEGMENT].current != w->oversize_segments ||
        d->stats.oversize[FIGURE_OVERSIZE_ALLOCATION].current != w->oversize_blocks) {
        return "oversize segments and allocations are counted";
    }
    if (w->expandable_segments != count_segments(d->segments)) {
        return "each expandable segment has blocks";
    }
    return w->events_awaited == d->pending.event_count
               ? NULL
               : "each event is one that a pending block waits for";
}

const char *device_violation(device_allocator *d)
{
    walk w = {.settings = d->settings, .segments = d->segments, .has_pending = true};
    const char *violation = lists_violation(d);
    violation = violation ? violation : attention_violation(d);
    violation = violation ? violation : pending_violation(&d->pending);
    violation = violation ? violation : statistics_violation(&d->stats);
    violation = violation ? violation : places_violation(&d->places);
    for (heap *h = d->heaps; h && !violation; h = h->next_of_device) {
        violation = walk_heap(&w, h, &d->pending);
    }
    return violation ? violation : totals_violation(d, &w);
}

/* --- when -------------------------------------------------------------------------------- */

static uint64_t heap_cost(const heap *h)
{
    return 16 + h->allocated.mask / 8 + h->sets[POOL_LARGE].block_count +
           h->sets[POOL_SMALL].block_count;
}

static bool is_due(uint32_t *unchecked, uint64_t cost)
{
    bool is_full = *unchecked > UINT32_MAX - STATE_ALLOWANCE;
    *unchecked += is_full ? 0 : STATE_ALLOWANCE;
    if (*unchecked < cost && !is_full) {
        return false;
    }
    *unchecked = 0;
    return true;
}

const char *heap_due_violation(heap *h)
{
    return is_due(&h->unchecked, heap_cost(h)) ? heap_violation(h) : NULL;
}

static uint64_t device_cost(const device_allocator *d)
{
    uint64_t cost = 16;
    for (const heap *h = d->heaps; h; h = h->next_of_device) {
        cost += heap_cost(h) + d->pending.event_count;
    }
    for (const segment *s = d->segments; s; s = s->next) {
        cost += s->mapped_pages;
    }
    return cost;
}

/* There may be thousands of heaps: what a walk would cost is not asked again before an eighth more
 * than that could have been walked. */
const char *device_due_violation(device_allocator *d)
{
    if (d->unchecked < d->ask_cost_at) {
        d->unchecked += STATE_ALLOWANCE;
        return NULL;
    }
    uint64_t cost = device_cost(d);
    if (!is_due(&d->unchecked, cost)) {
        d->ask_cost_at = gmd_min(cost + cost / 8, UINT32_MAX - STATE_ALLOWANCE);
        return NULL;
    }
    d->ask_cost_at = 0;
    return device_violation(d);
}
