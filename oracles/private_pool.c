/* private_pool - memory that served a request of a private pool serves no request that went
 * elsewhere for as long as somebody holds the pool: a captured graph works in it whenever it is
 * launched. What went back to the device is nobody's any more. Ending and releasing a pool is not
 * refused. A pool that is brought back has the blocks of its checkpoint, and no others.
 *
 * What a pool was made with is kept to: without splits no two of its live blocks lie in one
 * allocation of the device; where its blocks serve others rather than a refusal, they do so then
 * and only then; with memory of its own it has no other, and nobody else has that.
 *
 * Nothing is said of the other way, memory that moves into a pool. */
#include "gmd_grow.h"
#include "gmd_intervals.h"
#include "gmd_min.h"
#include "list.h"
#include "wording.h"

#include <inttypes.h>
#include <stdlib.h>

typedef struct known_options {
    uint64_t key; /* of the pool */
    uint8_t options;
} known_options;

/* A block that was freed, in a pool whose blocks serve others rather than a refusal. */
typedef struct spare_block {
    gmd_live_block block; /* `bytes` 0: there is none */
    uint64_t key;
} spare_block;

enum { SPARES = 64 }; /* the latest */

#define PAGE_BYTES ((uint64_t)2 << 20) /* that memory is mapped in */

typedef struct pools {
    gmd_intervals owned; /* the value: the pool's key */
    bool is_lost;        /* what came from the device and went there was not seen */
    known_options *with_options;
    size_t count, capacity;
    gmd_intervals whole; /* allocations of the device with a live block of a pool without splits */
    spare_block spares[SPARES];
    size_t next_spare;
} pools;

static void *create(void)
{
    return calloc(1, sizeof(pools));
}

static void destroy(void *state)
{
    pools *p = state;
    gmd_intervals_free(&p->owned);
    gmd_intervals_free(&p->whole);
    free(p->with_options);
    free(p);
}

static const char *blind_spot(const gmd_view *view)
{
    if (!view->allocator.exports_pools) {
        return "the allocator exports no private pools (gmd_begin_pool, gmd_end_pool, "
               "gmd_release_pool)";
    }
    bool has_reason = view->canaries.reason && *view->canaries.reason;
    return view->figures.now || view->canaries.are_there ? NULL
           : has_reason                                  ? view->canaries.reason
                        : "which memory goes back to the device cannot be seen";
}

static uint64_t key_of(int device, uint32_t pool) /* 0: the default pool */
{
    return pool ? (uint64_t)device << 32 | pool : 0;
}

static bool keep(gmd_intervals *set, uint64_t address, uint64_t end, uint64_t key)
{
    return address >= end || gmd_intervals_insert(set, address, end, key);
}

/* The range is nobody's any more. */
static bool forget_range(gmd_intervals *set, uint64_t address, uint64_t end)
{
    const gmd_interval *found;
    bool has_memory = true;
    while (has_memory && (found = gmd_intervals_after(set, address)) && found->address < end) {
        gmd_interval old = *found;
        gmd_intervals_remove(set, old.address);
        has_memory =
            keep(set, old.address, address, old.value) && keep(set, end, old.end, old.value);
    }
    return has_memory;
}

static uint8_t options_of(const pools *p, uint64_t key)
{
    size_t i = 0;
    while (i < p->count && p->with_options[i].key != key) {
        i++;
    }
    return i < p->count ? p->with_options[i].options : 0;
}

/* Somebody else has memory of the range now, or the device. */
static void forget_spares(pools *p, uint64_t address, uint64_t end)
{
    for (size_t i = 0; i < SPARES && p->count; i++) {
        gmd_live_block *b = &p->spares[i].block;
        if (b->address < end && address < b->address + b->bytes) {
            b->bytes = 0;
        }
    }
}

/* What came from the device in the request, or went there. */
static void follow_calls(pools *p, const gmd_view *view)
{
    p->is_lost = p->is_lost || !view->calls.are_all;
    for (size_t i = 0; i < view->calls.count && !p->is_lost && p->owned.count; i++) {
        const gmd_device_call *c = &view->calls.list[i];
        p->is_lost = !forget_range(&p->owned, c->address, c->address + c->size);
        forget_spares(p, c->address, c->address + c->size);
    }
}

static void tell(const gmd_view *view, const gmd_interval *other, gmd_judge *judge)
{
    const gmd_live_block *b = view->block;
    gmd_violation_add(
        judge, GMD_KIND(private_pool, taken), GMD_PARTIES({"to", b->pool ? "private" : "default"}),
        "%s, whose request went to %s, lies in "
        "memory of private pool %" PRIu32 " of device %" PRIu32 " (0x%" PRIx64 " to 0x%" PRIx64
        "), which is held: what works there, as a captured graph does, finds it used",
        BLOCK(view, b), b->pool ? "another private pool" : "the default pool",
        gmd_pool_number((uint32_t)other->value), (uint32_t)(other->value >> 32), other->address,
        other->end);
}

/* A request for the default pool may have the memory of a pool that is meant for that, where there
 * was no other. Where it is not known what there was, it may. */
static bool may_have(const pools *p, const gmd_view *view, uint64_t key)
{
    const gmd_view_limits *l = &view->limits;
    bool is_known = l->room != GMD_STAT_UNKNOWN && l->device_request != GMD_STAT_UNKNOWN;
    return !view->block->pool && options_of(p, key) & GMD_POOL_USE_ON_OOM &&
           (!is_known || l->room < l->device_request || view->faults.hit);
}

/* Takes up what it overlaps, so that ranges stay apart; false: it is another pool's. */
static bool take_up(pools *p, const gmd_view *view, uint64_t *address, uint64_t *end, uint64_t key,
                    gmd_judge *judge)
{
    const gmd_interval *found;
    while ((found = gmd_intervals_after(&p->owned, *address)) && found->address < *end) {
        if (found->value != key) {
            if (!may_have(p, view, found->value)) {
                tell(view, found, judge);
            }
            return false;
        }
        *address = gmd_min(found->address, *address);
        *end = gmd_max(found->end, *end);
        gmd_intervals_remove(&p->owned, found->address);
    }
    return true;
}

/* The allocation of the device that a block lies in; of mapped memory the pages, since what the
 * device knows of is the reserved addresses. */
static bool find_allocation(const gmd_view *view, const gmd_live_block *b, gmd_device_range *range)
{
    if (!view->ask.find_range || !view->figures.now ||
        !view->ask.find_range(view->ask.context, b->address, range)) {
        return false;
    }
    if (view->figures.now->mapped_bytes) {
        uint64_t end = b->address + b->bytes + PAGE_BYTES - 1;
        range->address = b->address / PAGE_BYTES * PAGE_BYTES;
        range->size = end / PAGE_BYTES * PAGE_BYTES - range->address;
    }
    return true;
}

/* Two live blocks of a pool without splits lie in the same allocation. */
static void check_whole(pools *p, const gmd_view *view, gmd_judge *judge)
{
    const gmd_live_block *b = view->block;
    gmd_device_range range;
    if (!(options_of(p, key_of(b->device, b->pool)) & GMD_POOL_NO_SPLIT) || !b->bytes ||
        !find_allocation(view, b, &range)) {
        return;
    }
    const gmd_interval *found = gmd_intervals_after(&p->whole, range.address);
    if (found && found->address < range.address + range.size) {
        gmd_violation_add(judge, GMD_KIND(private_pool, split), GMD_NO_PARTIES,
                          "%s lies in an allocation of the device (%s at 0x%" PRIx64
                          ") in which the block of request %" PRIu64 " lives: private pool %" PRIu32
                          " was made with +no_split",
                          BLOCK(view, b), BYTES(range.size), range.address, found->value,
                          gmd_pool_number(b->pool));
        return;
    }
    if (!gmd_intervals_insert(&p->whole, range.address, range.address + range.size, b->born)) {
        p->is_lost = true;
    }
}

static void after_alloc(void *state, const gmd_view *view, gmd_judge *judge)
{
    pools *p = state;
    const gmd_live_block *b = view->block;
    if (!p->owned.count && !b->pool) {
        return;
    }
    follow_calls(p, view);
    check_whole(p, view, judge);
    forget_spares(p, b->address, b->address + b->bytes);
    uint64_t address = b->address, end = b->address + b->bytes, key = key_of(b->device, b->pool);
    if (p->is_lost || !b->bytes || !take_up(p, view, &address, &end, key, judge) || !key) {
        return;
    }
    p->is_lost = !gmd_intervals_insert(&p->owned, address, end, key);
}

/* --- what pools were made with ----------------------------------------------------------- */

static void before_free(void *state, const gmd_view *view, gmd_judge *judge)
{
    pools *p = state;
    const gmd_live_block *b = view->block;
    (void)judge;
    if (!p->count) {
        return;
    }
    const gmd_interval *found = gmd_intervals_after(&p->whole, b->address);
    if (found && found->address <= b->address && found->value == b->born) {
        gmd_intervals_remove(&p->whole, found->address);
    }
    uint64_t key = key_of(b->device, b->pool);
    if (options_of(p, key) & GMD_POOL_USE_ON_OOM && !view->uses.recorded_count) {
        p->spares[p->next_spare++ % SPARES] = (spare_block){*b, key};
    }
}

/* Where the refused request could have had the very block of another one. */
static void check_refusal(const pools *p, const gmd_view *view, gmd_judge *judge)
{
    const gmd_request *r = view->request;
    bool is_judged = !view->pools.serial && !view->pools.is_capturing && !view->faults.hit &&
                     !p->is_lost && r->bytes;
    for (size_t i = 0; i < SPARES && is_judged; i++) {
        const gmd_live_block *b = &p->spares[i].block;
        if (b->bytes == r->bytes && b->stream == r->stream && b->device == r->device) {
            gmd_violation_add(judge, GMD_KIND(private_pool, unused), GMD_NO_PARTIES,
                              "%s for the default pool were refused while a block of that size and "
                              "stream was free in private pool %" PRIu32 " (0x%" PRIx64
                              ", of request %" PRIu64 "), which was made with +use_on_oom",
                              BYTES(r->bytes), gmd_pool_number(b->pool), b->address, b->born);
            return;
        }
    }
}

static void follow_options(pools *p, const gmd_view *view)
{
    bool has_options = view->request->op == GMD_OP_BEGIN_POOL && view->pools.options;
    uint64_t key = key_of(view->device, view->pools.serial);
    if (!has_options || options_of(p, key)) {
        return;
    }
    size_t i = 0; /* an entry whose pool is gone, else a new one */
    while (i < p->count && p->with_options[i].options) {
        i++;
    }
    if (i == p->count && !GMD_GROW(&p->with_options, &p->capacity, i + 1)) {
        p->is_lost = true;
        return;
    }
    p->with_options[i] = (known_options){key, view->pools.options};
    p->count += i == p->count;
}

/* Blocks that outlive their pool keep their allocations; it serves nobody any more. */
static void forget_options(pools *p, uint64_t key)
{
    for (size_t i = 0; i < p->count; i++) {
        if (p->with_options[i].key == key) {
            p->with_options[i].options = 0;
        }
    }
    for (size_t i = 0; i < SPARES && p->count; i++) {
        p->spares[i].block.bytes = p->spares[i].key == key ? 0 : p->spares[i].block.bytes;
    }
}

/* A stream that is gone; one that is made under its name is another one. */
static void forget_stream(pools *p, const gmd_request *r)
{
    for (size_t i = 0; i < SPARES && p->count; i++) {
        gmd_live_block *b = &p->spares[i].block;
        b->bytes = b->stream == r->stream && b->device == r->device ? 0 : b->bytes;
    }
}

static void check_source(const gmd_view *view, gmd_judge *judge)
{
    if (view->pools.source && !view->faults.hit) {
        gmd_violation_add(
            judge, GMD_KIND(private_pool, source), GMD_PARTIES({"what", view->pools.source->token}),
            "private pool %" PRIu32 ", which was made with +own_memory: %s (0x%" PRIx64 ")",
            gmd_pool_number(view->pools.source_serial), view->pools.source->sentence,
            view->pools.source_address);
    }
}

static void forget_pool(gmd_intervals *set, uint64_t key)
{
    const gmd_interval *found;
    for (uint64_t at = 0; (found = gmd_intervals_after(set, at));) {
        at = found->end;
        if (found->value == key) {
            gmd_intervals_remove(set, found->address);
        }
    }
}

/* The bytes of the range, from its start, that are the pool's. */
static uint64_t owned_bytes(const pools *p, const gmd_graph_access *a, uint64_t key)
{
    uint64_t at = a->address, end = a->address + a->bytes;
    const gmd_interval *found;
    while (at < end && (found = gmd_intervals_after(&p->owned, at)) && found->address <= at &&
           found->value == key) {
        at = found->end;
    }
    return at < end ? at - a->address : a->bytes;
}

static void check_launch(const pools *p, const gmd_view *view, gmd_judge *judge)
{
    uint64_t key = key_of(view->device, view->pools.serial);
    for (size_t i = 0; i < view->pools.access_count; i++) {
        const gmd_graph_access *a = &view->pools.accesses[i];
        uint64_t owned = owned_bytes(p, a, key);
        if (owned < a->bytes) {
            gmd_violation_add(judge, GMD_KIND(private_pool, given_back), GMD_NO_PARTIES,
                              "the graph of private pool %" PRIu32 " works on %s at 0x%" PRIx64
                              " (captured in request %" PRIu64 "), and from 0x%" PRIx64
                              " on that memory went back to the device "
                              "since, while the pool was held",
                              view->request->pool, BYTES(a->bytes), a->address, a->request,
                              a->address + owned);
            return;
        }
    }
}

/* On a real device a graph writes its blocks whenever it is launched, and reads them then. */
static void on_canary_finding(void *state, const gmd_view *view, gmd_judge *judge)
{
    (void)state;
    const gmd_canary_finding *finding = view->canaries.finding;
    const gmd_live_block *b = &finding->block, *other = &finding->other;
    if (!gmd_canary_is_about_graphs(finding)) {
        return;
    }
    gmd_violation_add(
        judge, GMD_KIND(private_pool, handed_on),
        GMD_PARTIES({"found_by", finding->is_captured ? "graph" : "stream"},
                    {"left_by", finding->other_is_captured ? "graph" : "stream"}),
        "%s that request %" PRIu64 " %s on stream %" PRIu32
        " found, %s into its %s (request %" PRIu64 "), what %s%s (request %" PRIu64
        ") had written: memory of private pool %" PRIu32 " was handed on while a graph works in it",
        finding->is_captured ? "the graph's work" : "the work", finding->use.request,
        finding->is_captured ? "captured" : "queued", finding->use.stream, BYTES(finding->offset),
        BLOCK(view, b), b->born, finding->other_is_captured ? "the launched graph in its " : "the ",
        BLOCK(view, other), other->born,
        gmd_pool_number(finding->is_captured ? b->pool : other->pool));
}

static void after_request(void *state, const gmd_view *view, gmd_judge *judge)
{
    pools *p = state;
    if (view->pools.failure && !view->faults.hit) {
        gmd_violation_add(judge, GMD_KIND(private_pool, call_failed),
                          GMD_PARTIES({"failure", view->pools.failure->token}),
                          "private pool %" PRIu32 " of device %d: %s", view->request->pool,
                          view->device, view->pools.failure->sentence);
    }
    if (view->pools.restored && !view->faults.hit) {
        gmd_violation_add(judge, GMD_KIND(private_pool, restored),
                          GMD_PARTIES({"told", view->pools.restored->token}),
                          "private pool %" PRIu32 " of device %d was brought back: %s (0x%" PRIx64
                          ")",
                          view->request->pool, view->device, view->pools.restored->sentence,
                          view->pools.restored_address);
    }
    check_source(view, judge);
    follow_options(p, view);
    bool has_followed = view->request->op == GMD_OP_ALLOC && view->block;
    if (p->owned.count && !has_followed) {
        follow_calls(p, view);
    }
    if (view->out_of_memory) {
        check_refusal(p, view, judge);
    } else if (view->request->op == GMD_OP_DESTROY) {
        forget_stream(p, view->request);
    }
    if (view->pools.access_count && !p->is_lost) {
        check_launch(p, view, judge);
    }
    if (view->pools.is_let_go) {
        forget_pool(&p->owned, key_of(view->device, view->pools.serial));
        forget_options(p, key_of(view->device, view->pools.serial));
    }
}

/* Most memory of pools goes back when everything is freed. */
static void at_end(void *state, const gmd_view *view, gmd_judge *judge)
{
    (void)state;
    check_source(view, judge);
}

const gmd_oracle oracle_private_pool = {
    .entry = ORACLE_ENTRY(private_pool),
    .needs_pools = true,
    .blind_spot = blind_spot,
    .create = create,
    .destroy = destroy,
    .after_alloc = after_alloc,
    .before_free = before_free,
    .on_canary_finding = on_canary_finding,
    .after_request = after_request,
    .at_end = at_end,
};
