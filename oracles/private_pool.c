/* private_pool - memory that served a request of a private pool serves no request that went
 * elsewhere for as long as somebody holds the pool: a captured graph works in it whenever it is
 * launched. What went back to the device is nobody's any more. Ending and releasing a pool is not
 * refused. A pool that is brought back has the blocks of its checkpoint, and no others.
 *
 * Nothing is said of the other way, memory that moves into a pool. */
#include "gmd_intervals.h"
#include "gmd_min.h"
#include "list.h"
#include "wording.h"

#include <inttypes.h>
#include <stdlib.h>

typedef struct pools {
    gmd_intervals owned; /* the value: the pool's key */
    bool is_lost;        /* what came from the device and went there was not seen */
} pools;

static void *create(void)
{
    return calloc(1, sizeof(pools));
}

static void destroy(void *state)
{
    pools *p = state;
    gmd_intervals_free(&p->owned);
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

/* What came from the device in the request, or went there. */
static void follow_calls(pools *p, const gmd_view *view)
{
    p->is_lost = p->is_lost || !view->calls.are_all;
    for (size_t i = 0; i < view->calls.count && !p->is_lost && p->owned.count; i++) {
        const gmd_device_call *c = &view->calls.list[i];
        p->is_lost = !forget_range(&p->owned, c->address, c->address + c->size);
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

/* Takes up what it overlaps, so that ranges stay apart; false: it is another pool's. */
static bool take_up(pools *p, const gmd_view *view, uint64_t *address, uint64_t *end, uint64_t key,
                    gmd_judge *judge)
{
    const gmd_interval *found;
    while ((found = gmd_intervals_after(&p->owned, *address)) && found->address < *end) {
        if (found->value != key) {
            tell(view, found, judge);
            return false;
        }
        *address = gmd_min(found->address, *address);
        *end = gmd_max(found->end, *end);
        gmd_intervals_remove(&p->owned, found->address);
    }
    return true;
}

static void after_alloc(void *state, const gmd_view *view, gmd_judge *judge)
{
    pools *p = state;
    const gmd_live_block *b = view->block;
    if (!p->owned.count && !b->pool) {
        return;
    }
    follow_calls(p, view);
    uint64_t address = b->address, end = b->address + b->bytes, key = key_of(b->device, b->pool);
    if (p->is_lost || !b->bytes || !take_up(p, view, &address, &end, key, judge) || !key) {
        return;
    }
    p->is_lost = !gmd_intervals_insert(&p->owned, address, end, key);
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
    bool has_followed = view->request->op == GMD_OP_ALLOC && view->block;
    if (p->owned.count && !has_followed) {
        follow_calls(p, view);
    }
    if (view->pools.access_count && !p->is_lost) {
        check_launch(p, view, judge);
    }
    if (view->pools.is_let_go) {
        forget_pool(&p->owned, key_of(view->device, view->pools.serial));
    }
}

const gmd_oracle oracle_private_pool = {
    .entry = ORACLE_ENTRY(private_pool),
    .needs_pools = true,
    .blind_spot = blind_spot,
    .create = create,
    .destroy = destroy,
    .after_alloc = after_alloc,
    .on_canary_finding = on_canary_finding,
    .after_request = after_request,
};
