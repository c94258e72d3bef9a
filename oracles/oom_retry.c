/* oom_retry - out of memory is true. Whatever the algorithm, the same request must be refused again
 * at once, when all streams are idle, and after the cache was emptied, with the open private pool
 * or while it is closed for that; the cache must have been given back before; and with everything
 * freed, nothing may be held any more and what fitted before must fit again. Where the allocator
 * says what it asks of the device (gmd_device_request), a refusal is also false when the limit and
 * the device leave that much.
 *
 * A refusal in which a planted fault hit is the fault's. The questions after it are asked without
 * faults, so from the second on they judge an ordinary refusal: what a fault leaves behind shows.
 */
#include "freed_blocks.h"
#include "list.h"
#include "wording.h"

#include "gmd_min.h"

#include <inttypes.h>
#include <stdlib.h>

typedef struct served {
    uint64_t largest; /* request served under the present limits */
    bool has_budget;  /* or had one */
    bool was_hit;     /* by a planted fault, at any time */
    uint64_t limit;
} served;

typedef struct history {
    served devices[GMD_MAX_DEVICES];
    freed_blocks freed;
} history;

static void *create(void)
{
    return calloc(1, sizeof(history));
}

static bool asked_device(const gmd_view *view)
{
    for (size_t i = 0; i < view->calls.count; i++) {
        if (!view->calls.list[i].is_free && view->calls.list[i].device == view->device) {
            return true;
        }
    }
    return false;
}

static void after_alloc(void *state, const gmd_view *view, gmd_judge *judge)
{
    (void)judge;
    served *s = &((history *)state)->devices[view->device];
    if (s->limit != view->limits.bytes) {
        bool is_lowered = s->limit > view->limits.bytes; /* 0: there was no request before */
        *s = (served){.limit = view->limits.bytes,
                      .has_budget = s->has_budget || is_lowered,
                      .was_hit = s->was_hit};
    }
    /* The cache serves memory that was taken before the budget, or the lower limit, came. */
    if (!s->has_budget || asked_device(view)) {
        s->largest = gmd_max(view->block->bytes, s->largest);
    }
}

/* A large device that is as good as empty has a page left, whatever the allocator's policy and
 * whatever it takes before its first block. Device 0 alone is judged: some allocators serve no
 * other one. */
#define LARGE_DEVICE (64 * GMD_GIB)
#define LITTLE       4096

static bool never_serves(const served *s, const gmd_view *view)
{
    return view->device == 0 && !s->largest && !s->has_budget && !s->was_hit &&
           view->request->bytes <= LITTLE && view->limits.bytes == UINT64_MAX &&
           view->limits.device_bytes >= LARGE_DEVICE && view->limits.room != GMD_STAT_UNKNOWN &&
           view->limits.room >= view->limits.device_bytes / 2;
}

static void before_free(void *state, const gmd_view *view, gmd_judge *judge)
{
    (void)judge;
    freed_blocks_add(&((history *)state)->freed, view);
}

static void after_request(void *state, const gmd_view *view, gmd_judge *judge)
{
    freed_blocks_follow(&((history *)state)->freed, view);
    served *s = &((history *)state)->devices[view->device];
    s->was_hit = s->was_hit || view->faults.hit; /* perhaps while the allocator made its start */
    if (view->request->op == GMD_OP_BUDGET) {
        s->largest = 0;
        s->has_budget = true;
    }
    if (view->out_of_memory && !view->faults.hit && !view->is_overlapped &&
        view->limits.device_request != GMD_STAT_UNKNOWN && view->limits.room != GMD_STAT_UNKNOWN &&
        view->limits.device_request <= view->limits.room) {
        gmd_violation_add(judge, GMD_KIND(oom_retry, room_was_left), GMD_NO_PARTIES,
                          "%s were refused, which take %s of the device by gmd_device_request, and "
                          "the limit and the device leave %s",
                          BYTES(view->request->bytes), BYTES(view->limits.device_request),
                          BYTES(view->limits.room));
    } else if (view->out_of_memory && !view->is_overlapped && never_serves(s, view)) {
        gmd_violation_add(judge, GMD_KIND(oom_retry, never_served), GMD_NO_PARTIES,
                          "%s were refused, nothing was served before, and %s of the device's %s "
                          "are free",
                          BYTES(view->request->bytes), BYTES(view->limits.room),
                          BYTES(view->limits.device_bytes));
    }
}

/* What the request took of the device once the cache was emptied was free before, too. */
static bool had_room(const gmd_view *view)
{
    const gmd_refusal *r = view->refusal;
    return r->taken != GMD_STAT_UNKNOWN && r->room_idle != GMD_STAT_UNKNOWN && r->taken > 0 &&
           r->taken >= view->request->bytes && r->taken <= r->room_idle;
}

/* To want the cache emptied is a policy only where it holds what the request lacks: another
 * stream's memory, say. */
static void served_when_emptied(const freed_blocks *freed, const gmd_view *view, gmd_judge *judge)
{
    const gmd_refusal *r = view->refusal;
    const freed_block *own = freed_blocks_find(freed, view);
    const char *bytes = BYTES(view->request->bytes);
    uint32_t stream = view->request->stream;
    if (had_room(view)) {
        gmd_violation_add(judge, GMD_KIND(oom_retry, served_when_emptied),
                          GMD_PARTIES({"although", "room"}),
                          "%s on stream %" PRIu32 " were refused, and are served once the cache is "
                          "emptied, although they take %s of the device, and %s were free before",
                          bytes, stream, BYTES(r->taken), BYTES(r->room_idle));
    } else if (own) {
        gmd_violation_add(
            judge, GMD_KIND(oom_retry, served_when_emptied), GMD_PARTIES({"although", "own_block"}),
            "%s on stream %" PRIu32 " were refused, and are served once the cache is "
            "emptied, although the stream has no live block, and %s was freed on it "
            "and never went back to the device",
            bytes, stream,
            block_text(view, own->born, own->bytes, own->address, (char[BLOCK_TEXT]){0}));
    } else {
        gmd_violation_add(judge, GMD_KIND(oom_retry, served_when_emptied), GMD_NO_PARTIES,
                          "%s on stream %" PRIu32
                          " were refused, and are served once the cache is emptied",
                          bytes, stream);
    }
}

static void check_answers(const freed_blocks *freed, const gmd_view *view, gmd_judge *judge)
{
    const gmd_refusal *r = view->refusal;
    const char *bytes = BYTES(view->request->bytes);
    gmd_precondition_met(
        judge, (unsigned)r->at_once | (unsigned)r->when_idle << 2 | (unsigned)r->when_emptied << 4 |
                   (unsigned)r->when_all_is_free << 6 | (unsigned)r->when_reopened << 8);
    if (r->at_once == GMD_SERVED_NOW && !view->faults.hit) {
        gmd_violation_add(judge, GMD_KIND(oom_retry, served_at_once), GMD_NO_PARTIES,
                          "%s on stream %" PRIu32
                          " were refused, and the same request is served when it is made again at "
                          "once, with nothing freed",
                          bytes, view->request->stream);
    } else if (r->when_idle == GMD_SERVED_NOW) {
        gmd_violation_add(judge, GMD_KIND(oom_retry, served_when_idle), GMD_NO_PARTIES,
                          "%s on stream %" PRIu32
                          " were refused, and are served once all streams are idle: the allocator "
                          "did not wait for freed blocks whose work was pending",
                          bytes, view->request->stream);
    } else if (r->when_emptied == GMD_SERVED_NOW) {
        served_when_emptied(freed, view, judge);
    } else if (r->when_reopened == GMD_SERVED_NOW) {
        gmd_violation_add(judge, GMD_KIND(oom_retry, served_when_reopened), GMD_NO_PARTIES,
                          "%s on stream %" PRIu32
                          " were refused while a private pool was open, and are served there once "
                          "the pool is ended, the cache emptied and the pool begun again: the "
                          "allocator does not get memory back while a pool is open",
                          bytes, view->request->stream);
    }
}

/* A segment that is larger than its request is refused where the request would fit: by its size
 * alone nobody tells that from a defect. */
static const char *policy_advice(uint64_t device_request)
{
    return device_request != GMD_STAT_UNKNOWN
               ? ""
               : ". If that is the allocator's policy, as where its segments are larger than the "
                 "request, let it export gmd_device_request, which tells what a request takes of "
                 "the device, or put the finding into a list for --known, or `pressure keeps` into "
                 "a profile";
}

/* What does not fit beside what stays may be refused without giving anything back. */
static void check_cache(const gmd_view *view, gmd_judge *judge)
{
    const gmd_refusal *r = view->refusal;
    uint64_t bound = view->limits.bytes, takes = view->request->bytes;
    uint64_t need = view->limits.device_request;
    if (view->limits.device_bytes && view->limits.device_bytes < bound) {
        bound = view->limits.device_bytes;
    }
    takes = need != GMD_STAT_UNKNOWN ? gmd_max(takes, need) : takes;
    bool could_be_served = r->held_emptied <= bound && takes <= bound - r->held_emptied;
    if (r->when_emptied == GMD_REFUSED && could_be_served && r->held_emptied < r->held_idle) {
        gmd_violation_add(judge, GMD_KIND(oom_retry, cache_kept), GMD_NO_PARTIES,
                          "%s were refused with a cache of %s: it must be given back before out of "
                          "memory is reported%s",
                          BYTES(view->request->bytes), BYTES(r->held_idle - r->held_emptied),
                          policy_advice(need));
    }
}

/* The smaller one of two requests may need more of the device: only where the allocator does not
 * say what they need is their size taken for it. */
static void check_afterwards(const served *s, const gmd_view *view, gmd_judge *judge)
{
    const gmd_refusal *r = view->refusal;
    uint64_t bytes = view->request->bytes, need = view->limits.device_request;
    if (r->when_all_is_free == GMD_NOT_ASKED) {
        return;
    }
    if (r->held_free > r->held_at_start) {
        gmd_violation_add(judge, GMD_KIND(oom_retry, held_when_all_is_free), GMD_NO_PARTIES,
                          "%s were refused; with everything freed and the cache emptied, the "
                          "allocator still holds %s",
                          BYTES(bytes), BYTES(r->held_free - r->held_at_start));
    } else if (r->when_all_is_free == GMD_REFUSED && need <= r->room && need != GMD_STAT_UNKNOWN &&
               r->room != GMD_STAT_UNKNOWN) {
        gmd_violation_add(judge, GMD_KIND(oom_retry, refused_when_all_is_free),
                          GMD_PARTIES({"although", "room"}),
                          "with everything freed and the cache emptied, %s are still refused, and "
                          "the limit and the device leave %s",
                          BYTES(bytes), BYTES(r->room));
    } else if (r->when_all_is_free == GMD_REFUSED && need == GMD_STAT_UNKNOWN &&
               s->limit == view->limits.bytes && bytes <= s->largest &&
               (r->room == GMD_STAT_UNKNOWN ||      /* a budget may be smaller now; and what the */
                bytes <= r->room + r->held_free)) { /* allocator took at its start serves, too */
        gmd_violation_add(judge, GMD_KIND(oom_retry, refused_when_all_is_free),
                          GMD_PARTIES({"although", "served_before"}),
                          "with everything freed and the cache emptied, %s are still refused, and "
                          "%s were served before%s",
                          BYTES(bytes), BYTES(s->largest), policy_advice(need));
    }
}

static void after_refusal(void *state, const gmd_view *view, gmd_judge *judge)
{
    const gmd_refusal *r = view->refusal;
    if (r->died_of_signal || r->has_ended_process) {
        gmd_violation_add(judge, GMD_KIND(oom_retry, died_when_asked_again),
                          GMD_PARTIES({"by", r->died_of_signal ? "signal" : "exit"}),
                          "%s were refused, and the allocator %s (signal %d) when it was "
                          "asked again, its cache emptied, its blocks freed",
                          BYTES(view->request->bytes),
                          r->died_of_signal ? "crashed" : "ended the process", r->died_of_signal);
        return;
    }
    if (r->error[0]) {
        gmd_violation_add(judge, GMD_KIND(oom_retry, failed_when_asked_again),
                          GMD_PARTIES({"error", r->error_token}),
                          "%s were refused, and the same request made again failed "
                          "otherwise: %s",
                          BYTES(view->request->bytes), r->error);
        return;
    }
    check_answers(&((history *)state)->freed, view, judge);
    check_cache(view, judge);
    check_afterwards(&((history *)state)->devices[view->device], view, judge);
}

const gmd_oracle oracle_oom_retry = {
    .entry = ORACLE_ENTRY(oom_retry),
    .needs_quiet = true,
    .create = create,
    .destroy = free,
    .after_alloc = after_alloc,
    .before_free = before_free,
    .after_request = after_request,
    .after_refusal = after_refusal,
};
