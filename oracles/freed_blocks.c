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

void freed_blocks_add(freed_blocks *b, const gmd_view *view)
{
    const gmd_live_block *block = view->block;
    if (!block->bytes) {
        return; /* owns nothing */
    }
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

/* Of others nobody knows what they do to a cache. */
static bool keeps_cache(const gmd_view *view)
{
    uint8_t op = view->request->op;
    return op == GMD_OP_ALLOC || op == GMD_OP_FREE || op == GMD_OP_USE || op == GMD_OP_WAIT ||
           op == GMD_OP_SYNC || op == GMD_OP_BUDGET;
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

void freed_blocks_follow(freed_blocks *b, const gmd_view *view)
{
    bool is_next = view->request_index == b->next_request;
    b->next_request = view->request_index + 1;
    if (!view->request || !is_next || view->is_overlapped || view->faults.hit ||
        !keeps_cache(view)) {
        b->count = 0;
        return;
    }
    follow_calls(b, view);
    if (view->request->op == GMD_OP_ALLOC && view->block) {
        drop_range(b, view->block->device, view->block->address, view->block->bytes);
        drop_other_streams(b, view->block);
    }
}

typedef struct on_stream {
    uint32_t stream;
    bool is_any;
} on_stream;

static void look(void *context, const gmd_live_block *block)
{
    on_stream *s = context;
    s->is_any = s->is_any || block->stream == s->stream;
}

const freed_block *freed_blocks_find(const freed_blocks *b, const gmd_view *view)
{
    const gmd_request *r = view->request;
    on_stream live = {.stream = r->stream};
    if (view->workload.has_pool_requests || !view->ask.each_live) {
        return NULL;
    }
    view->ask.each_live(view->ask.context, view->device, look, &live);
    for (uint32_t i = 0; !live.is_any && i < b->count; i++) {
        const freed_block *f = &b->list[i];
        if (f->bytes == r->bytes && f->stream == r->stream && f->device == view->device &&
            f->thread == r->thread) {
            return f;
        }
    }
    return NULL;
}
