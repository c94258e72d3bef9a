/* misuse - where the allocator promises it: a free of what is no live block (freed already, handed
 * out by nobody, inside of one, null) is refused or ignored, and changes nothing. The driver makes
 * such frees now and then. A crash in one is its parent's to see, who speaks in this oracle's name
 * (driver/process/child.c); what it corrupts unseen shows to the other oracles, which go on
 * judging. */
#include "gmd_tokens.h"
#include "list.h"
#include "wording.h"

#include <inttypes.h>
#include <stdio.h>

static const char *blind_spot(const gmd_view *view)
{
    return view->allocator.promises & GMD_PROMISE_MISUSE
               ? NULL
               : "the allocator does not promise it (gmd_promises, --promise misuse)";
}

/* The kind may lie in memory that the allocator under test has written over. */
const char *gmd_wrong_free_text(gmd_wrong_free_kind kind)
{
    static const char *const texts[] = {
        [GMD_FREED_TWICE] = "the second free of the block",
        [GMD_FREED_INSIDE] = "the free of an address inside of the live block",
        [GMD_FREED_FOREIGN] = "the free of an address of the host's",
        [GMD_FREED_NULL] = "the free of a null pointer,",
        [GMD_FREED_STALE] = "the free of a block whose memory went back to the device",
        [GMD_FREED_ANOTHER] = "the free of a block whose memory is another library's now",
    };
    return kind < GMD_FREED_KINDS ? texts[kind] : "a free";
}

const char *gmd_wrong_free_token(gmd_wrong_free_kind kind)
{
    static const char *const tokens[] = {
        [GMD_FREED_TWICE] = "second",    [GMD_FREED_INSIDE] = "inside",
        [GMD_FREED_FOREIGN] = "foreign", [GMD_FREED_NULL] = "null",
        [GMD_FREED_STALE] = "stale",     [GMD_FREED_ANOTHER] = "another"};
    return kind < GMD_FREED_KINDS ? tokens[kind] : "unknown";
}

enum { FREE_TEXT = BLOCK_TEXT + 80 };

static const char *free_text(const gmd_view *view, char text[FREE_TEXT])
{
    const gmd_wrong_free *f = view->wrong_free;
    if (f->kind == GMD_FREED_TWICE) {
        snprintf(text, FREE_TEXT, "the second free of the %s", BLOCK(view, &f->block));
    } else if (f->kind == GMD_FREED_INSIDE) {
        snprintf(text, FREE_TEXT, "the free of 0x%" PRIx64 ", inside of the live %s,", f->address,
                 BLOCK(view, &f->block));
    } else if (f->kind == GMD_FREED_STALE || f->kind == GMD_FREED_ANOTHER) {
        snprintf(text, FREE_TEXT, "the free of the %s, whose memory %s,", BLOCK(view, &f->block),
                 f->kind == GMD_FREED_STALE ? "went back to the device"
                                            : "is another library's now");
    } else {
        snprintf(text, FREE_TEXT, "%s at 0x%" PRIx64, gmd_wrong_free_text(f->kind), f->address);
    }
    return text;
}

static void demand(const gmd_view *view, gmd_judge *judge, const char *name, uint64_t before,
                   uint64_t now, bool may_fall)
{
    bool is_kept = before != GMD_STAT_UNKNOWN && now != GMD_STAT_UNKNOWN;
    if (is_kept && now != before && !(may_fall && now < before)) {
        const gmd_wrong_free *f = view->wrong_free;
        gmd_violation_add(
            judge, GMD_KIND(misuse, figure_changed),
            GMD_PARTIES({"free", gmd_wrong_free_token(f->kind)}, {"figure", name}),
            "%s after request %" PRIu64 " was to be refused or ignored, and %s went from %" PRIu64
            " to %" PRIu64 ": another block's memory is now taken for free",
            free_text(view, (char[FREE_TEXT]){0}), view->request_index, name, before, now);
    }
}

/* Any free, a wrong one too, may notice that pending work is over. */
static void check_books(const gmd_view *view, gmd_judge *judge)
{
    const gmd_stats *now = view->stats.now, *before = view->stats.before;
    demand(view, judge, "allocated_bytes", before->allocated_bytes, now->allocated_bytes, false);
    demand(view, judge, "allocation_count", before->allocation_count, now->allocation_count, false);
    demand(view, judge, "active_bytes", before->active_bytes, now->active_bytes, true);
    demand(view, judge, "reserved_bytes", before->reserved_bytes, now->reserved_bytes, true);
}

static void check_thread(const gmd_view *view, gmd_judge *judge)
{
    const gmd_wrong_free *f = view->wrong_free;
    const gmd_thread_state *before = view->thread.before, *now = view->thread.after;
    if (now->device != before->device || now->last_error != before->last_error) {
        gmd_violation_add(judge, GMD_KIND(misuse, thread_changed),
                          GMD_PARTIES({"free", gmd_wrong_free_token(f->kind)}),
                          "%s after request %" PRIu64
                          " left the thread with device %d and CUDA error %d, which were %d and %d",
                          free_text(view, (char[FREE_TEXT]){0}), view->request_index, now->device,
                          now->last_error, before->device, before->last_error);
    }
}

static void after_wrong_free(void *state, const gmd_view *view, gmd_judge *judge)
{
    (void)state;
    gmd_precondition_met(judge, (unsigned)view->wrong_free->kind);
    const gmd_wrong_free *f = view->wrong_free;
    uint64_t bad = 0;
    for (size_t i = 0; i < view->calls.misuse_count; i++) {
        const gmd_misuse *m = &view->calls.misuses[i];
        char call[GMD_CALL_TEXT];
        gmd_violation_add(
            judge, GMD_KIND(misuse, passed_on),
            GMD_PARTIES({"free", gmd_wrong_free_token(f->kind)}, {"function", m->function}),
            "%s after request %" PRIu64 " was passed on: %s returned %d: %s",
            free_text(view, (char[FREE_TEXT]){0}), view->request_index,
            gmd_call_text(m->function, m->address, m->size, call), m->result, m->sentence);
    }
    if (view->stats.now) {
        check_books(view, judge);
    }
    const gmd_live_block *b = &f->block;
    if (f->kind == GMD_FREED_INSIDE && view->ask.is_backed &&
        !view->ask.is_backed(view->ask.context, b->address, b->bytes, b->device, &bad)) {
        gmd_violation_add(judge, GMD_KIND(misuse, memory_taken),
                          GMD_PARTIES({"free", gmd_wrong_free_token(f->kind)}),
                          "%s after request %" PRIu64 " took its memory away at 0x%" PRIx64,
                          free_text(view, (char[FREE_TEXT]){0}), view->request_index, bad);
    }
    if (f->took_anothers) {
        gmd_violation_add(judge, GMD_KIND(misuse, memory_taken),
                          GMD_PARTIES({"free", gmd_wrong_free_token(f->kind)}),
                          "%s after request %" PRIu64 " gave that library's memory back",
                          free_text(view, (char[FREE_TEXT]){0}), view->request_index);
    }
    if (view->thread.before && view->thread.after) {
        check_thread(view, judge);
    }
}

const gmd_oracle oracle_misuse = {
    .entry = ORACLE_ENTRY(misuse),
    .blind_spot = blind_spot,
    .after_wrong_free = after_wrong_free,
};
