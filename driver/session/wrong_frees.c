#include "wrong_frees.h"

#include "frames.h"
#include "view.h"

enum { AT_FIRST = 8, FIRST_INTERVAL = 1024 };

static bool is_due(gmd_session *s)
{
    wrong_free_counts *made = &s->wrong_frees;
    if (!s->judge.listener_count[GMD_HOOK_AFTER_WRONG_FREE] || s->interleaving.overlap ||
        s->options->judging.is_compared) {
        return false;
    }
    bool is_one_of_the_first = made->count < AT_FIRST;
    if (!is_one_of_the_first && s->request_index - made->last < made->interval) {
        return false;
    }
    made->interval = is_one_of_the_first ? FIRST_INTERVAL : made->interval + made->interval / 4;
    made->last = s->request_index;
    made->count++;
    return true;
}

/* A block that has lost its memory already is the business of `backing`, when it is freed. */
static bool is_backed(const gmd_session *s, const gmd_live_block *b)
{
    uint64_t bad = 0;
    return !s->view.ask.is_backed ||
           s->view.ask.is_backed(s->view.ask.context, b->address, b->bytes, b->device, &bad);
}

static const gmd_live_block *find_live(const gmd_session *s, int device)
{
    const session_block *b = NULL;
    for (uint32_t id = 0; (b = live_blocks_next(&s->blocks, &id)) != NULL;) {
        if (b->live.device == device && b->live.bytes > 1 && is_backed(s, &b->live)) {
            return &b->live;
        }
    }
    return NULL;
}

static gmd_wrong_free choose(const gmd_session *s, const gmd_live_block *freed)
{
    static char nobodys[16];
    gmd_wrong_free f = {.kind = (gmd_wrong_free_kind)((s->wrong_frees.count - 1) % GMD_FREED_KINDS),
                        .address = freed->address,
                        .bytes = freed->bytes};
    const gmd_live_block *live = find_live(s, freed->device);
    if (f.kind == GMD_FREED_INSIDE && live) {
        f.block = *live;
        f.address = live->address + (live->bytes > 512 ? 512 : 1);
        f.bytes = live->bytes;
    } else if (f.kind == GMD_FREED_FOREIGN) {
        f.address = (uint64_t)(uintptr_t)nobodys;
    } else if (f.kind == GMD_FREED_NULL) {
        f.address = f.bytes = 0;
    } else {
        f.kind = GMD_FREED_TWICE;
        f.block = *freed;
    }
    return f;
}

static void make(gmd_session *s, const gmd_live_block *freed, const gmd_wrong_free *f)
{
    cudaStream_t stream = NULL;
    streams_find(&s->streams, freed->device, freed->stream, &stream);
    s->shared->wrong_free = *f;
    atomic_store(&s->shared->is_freeing_wrongly, 1);
    bool is_silent = !s->muting.is_needless && mute_begin(&s->muting.mute);
    call_frame frame;
    enter_allocator(s, &frame);
    s->subject.free((void *)(uintptr_t)f->address, (size_t)f->bytes, freed->device, stream);
    leave_allocator(s, &frame);
    if (is_silent) {
        mute_end(&s->muting.mute);
    }
    atomic_store(&s->shared->is_freeing_wrongly, 0);
}

void session_free_wrongly(gmd_session *s, const gmd_live_block *freed)
{
    if (!freed->bytes || !is_due(s)) { /* blocks of 0 B may share an address: a second free of one
                                          may be the first of another */
        return;
    }
    gmd_wrong_free f = choose(s, freed);
    view_device(s, freed->device);
    call_list_begin(&s->calls);
    make(s, freed, &f);
    view_refresh(s);
    s->view.thread.error_text = s->view.thread.error_token = NULL; /* it may well complain */
    s->view.wrong_free = &f;
    s->view.calls.misuses = s->calls.misuses;
    s->view.calls.misuse_count = s->calls.misuse_count;
    judge_ask(&s->judge, GMD_HOOK_AFTER_WRONG_FREE, &s->view);
    s->view.wrong_free = NULL;
    call_list_judged(&s->calls);
}
