#include "freed_blocks.h"

static void drop(freed_blocks *b, uint32_t index)
{
    b->list[index] = b->list[--b->count];
}

static void drop_range(freed_blocks *b, int device, uint64_t address, uint64_t size)
{
    for (uint32_t i = b->count; i-- > 0;) {
        const freed_block *f = &b->list[i];
        if (f->device == device && f->address < address + size && address < f->address + f->bytes) {
            drop(b, i);
        }
    }
}

/* It may have taken all that lay beside it, too. */
static void drop_other_streams(freed_blocks *b, const gmd_live_block *owner)
{
    for (uint32_t i = b->count; i-- > 0;) {
        if (b->list[i].device == owner->device && b->list[i].stream != owner->stream) {
            drop(b, i);
        }
    }
}

static freed_stream *find_stream(freed_blocks *b, int device, uint32_t stream)
{
    for (uint32_t i = 0; i < b->stream_count; i++) {
        if (b->streams[i].stream == stream && b->streams[i].device == device) {
            return &b->streams[i];
        }
    }
    if (b->stream_count == FREED_STREAMS) {
        b->is_lost = true;
        return NULL;
    }
    freed_stream *s = &b->streams[b->stream_count++];
    *s = (freed_stream){.stream = stream, .device = device};
    return s;
}

static void add(freed_blocks *b, const gmd_view *view)
{
    const gmd_live_block *block = view->block;
    if (b->count == FREED_BLOCKS) {
        drop(b, (uint32_t)(view->request_index % FREED_BLOCKS));
    }
    b->list[b->count++] = (freed_block){.address = block->address,
                                        .bytes = block->bytes,
                                        .born = block->born,
                                        .stream = block->stream,
                                        .device = block->device,
                                        .thread = view->request ? view->request->thread : 0};
}

void freed_blocks_add(freed_blocks *b, const gmd_view *view)
{
    const gmd_live_block *block = view->block;
    freed_stream *s = b->is_lost ? NULL : find_stream(b, block->device, block->stream);
    if (!s || !s->live) {
        return;
    }
    s->live--;
    if (s->first_born == block->born && block->bytes) { /* of 0 B: it owns nothing */
        add(b, view);
    }
}

static void take(freed_blocks *b, const gmd_live_block *block)
{
    freed_stream *s = find_stream(b, block->device, block->stream);
    drop_range(b, block->device, block->address, block->bytes);
    drop_other_streams(b, block);
    if (s && s->live++ == 0) {
        s->first_born = block->born;
    }
}

static void follow_calls(freed_blocks *b, const gmd_view *view)
{
    for (size_t i = 0; i < view->calls.count; i++) {
        const gmd_device_call *call = &view->calls.list[i];
        if (call->is_free) {
            drop_range(b, call->device, call->address, call->size);
        }
    }
}

/* What the others do to a cache is not known. */
static bool keeps_cache(const gmd_view *view)
{
    uint8_t op = view->request->op;
    return op == GMD_OP_ALLOC || op == GMD_OP_FREE || op == GMD_OP_USE || op == GMD_OP_WAIT ||
           op == GMD_OP_SYNC || op == GMD_OP_BUDGET;
}

void freed_blocks_follow(freed_blocks *b, const gmd_view *view)
{
    b->is_lost = b->is_lost || view->is_overlapped; /* the oracle is not shown what it overlaps */
    if (b->is_lost || !view->request) {
        return;
    }
    if (view->faults.hit || !keeps_cache(view)) {
        b->count = 0;
    }
    follow_calls(b, view);
    if (view->request->op == GMD_OP_ALLOC && view->block) {
        take(b, view->block);
    }
}

static bool has_live_block(const freed_blocks *b, int device, uint32_t stream)
{
    for (uint32_t i = 0; i < b->stream_count; i++) {
        if (b->streams[i].stream == stream && b->streams[i].device == device) {
            return b->streams[i].live > 0;
        }
    }
    return false;
}

const freed_block *freed_blocks_find(const freed_blocks *b, const gmd_view *view)
{
    const gmd_request *r = view->request;
    if (b->is_lost || view->workload.has_pool_requests ||
        has_live_block(b, view->device, r->stream)) {
        return NULL;
    }
    for (uint32_t i = 0; i < b->count; i++) {
        const freed_block *f = &b->list[i];
        if (f->bytes == r->bytes && f->stream == r->stream && f->device == view->device &&
            f->thread == r->thread) {
            return f;
        }
    }
    return NULL;
}
