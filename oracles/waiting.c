#include "waiting.h"

#define ANY_STREAM ((uint64_t)1 << 63)

static uint64_t bit_of(uint32_t stream)
{
    return stream < 63 ? (uint64_t)1 << stream : ANY_STREAM;
}

/* The streams that record_stream named, whose work up to the free is waited for, and those of uses
 * that the allocator was not told of: it may know of them otherwise. */
static uint64_t streams_of(const gmd_view *view)
{
    uint64_t set = view->uses.recorded;
    for (size_t i = 0; i < view->uses.count; i++) {
        set |= view->uses.list[i].stream != view->block->stream ? bit_of(view->uses.list[i].stream)
                                                                : 0;
    }
    return set;
}

static void note_free(waiting_blocks *w, const gmd_view *view)
{
    uint64_t before = view->stats.before->allocated_bytes, now = view->stats.now->allocated_bytes;
    uint64_t streams = streams_of(view);
    if (before == GMD_STAT_UNKNOWN || now == GMD_STAT_UNKNOWN || now > before ||
        w->count == WAITING_MAX) {
        w->is_lost = true;
    } else if (streams) {
        w->blocks[w->count++] =
            (waiting_block){.bytes = before - now, .streams = streams, .device = view->device};
        w->bytes[view->device] += before - now;
    }
}

static void note_sync(waiting_blocks *w, const gmd_view *view)
{
    uint32_t stream = view->request->stream;
    uint64_t over = stream == GMD_ALL_STREAMS ? UINT64_MAX : bit_of(stream) & ~ANY_STREAM;
    size_t kept = 0;
    for (size_t i = 0; i < w->count; i++) {
        waiting_block b = w->blocks[i];
        b.streams &= b.device == view->device ? ~over : UINT64_MAX;
        if (b.streams) {
            w->blocks[kept++] = b;
        } else {
            w->bytes[b.device] -= b.bytes;
        }
    }
    w->count = kept;
}

/* False once it is not known any more what waits: a block that is freed during a capture waits
 * for its end, too; requests that overlapped others were not shown; the set of recorded streams has
 * none of a high number; a fault may have kept an event from being recorded or asked. */
static bool is_in_order(waiting_blocks *w, const gmd_view *view)
{
    bool is_next = view->request_index == w->next_request;
    w->next_request = view->request_index + 1;
    bool is_gone = view->request->op == GMD_OP_DESTROY; /* blocks that wait for its work still do */
    bool is_unseen =
        view->request->op == GMD_OP_RECORD && bit_of(view->request->stream) == ANY_STREAM;
    w->is_lost = w->is_lost || view->pools.is_capturing || !is_next || is_unseen || is_gone ||
                 view->is_overlapped || view->faults.hit;
    return !w->is_lost;
}

bool waiting_after(waiting_blocks *w, const gmd_view *view, uint64_t *excess)
{
    const gmd_stats *now = view->stats.now;
    if (!is_in_order(w, view)) {
        return false;
    }
    if (view->request->op == GMD_OP_FREE && view->block) {
        note_free(w, view);
    } else if (view->request->op == GMD_OP_SYNC) {
        note_sync(w, view);
    }
    bool has_looked = view->request->op == GMD_OP_ALLOC && view->block;
    if (!has_looked || now->active_bytes == GMD_STAT_UNKNOWN ||
        now->allocated_bytes == GMD_STAT_UNKNOWN || now->active_bytes < now->allocated_bytes) {
        return false;
    }
    uint64_t waiting = now->active_bytes - now->allocated_bytes, may = w->bytes[view->device];
    *excess = waiting > may ? waiting - may : 0;
    return *excess > 0;
}
