#include "wrong_frees.h"

#include "frames.h"
#include "view.h"

enum { AT_FIRST = 8, FIRST_INTERVAL = 1024 };

static bool is_possible(const gmd_session *s)
{
    return s->judge.listener_count[GMD_HOOK_AFTER_WRONG_FREE] && !s->interleaving.overlap &&
           !s->options->judging.is_compared;
}

static bool is_due(gmd_session *s)
{
    wrong_free_counts *made = &s->wrong_frees;
    if (!is_possible(s)) {
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
    enum { KINDS = GMD_FREED_NULL + 1 }; /* the others have their own time */
    gmd_wrong_free f = {.kind = (gmd_wrong_free_kind)((s->wrong_frees.count - 1) % KINDS),
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
    enter_allocator(s, "gmd_free", &frame);
    s->subject.free((void *)(uintptr_t)f->address, (size_t)f->bytes, freed->device, stream);
    leave_allocator(s, &frame);
    if (is_silent) {
        mute_end(&s->muting.mute);
    }
    atomic_store(&s->shared->is_freeing_wrongly, 0);
}

static void judge(gmd_session *s, const gmd_wrong_free *f)
{
    view_refresh(s);
    s->view.thread.error_text = s->view.thread.error_token = NULL; /* it may well complain */
    s->view.wrong_free = f;
    s->view.calls.misuses = s->calls.misuses;
    s->view.calls.misuse_count = s->calls.misuse_count;
    judge_ask(&s->judge, GMD_HOOK_AFTER_WRONG_FREE, &s->view);
    s->view.wrong_free = NULL;
    call_list_judged(&s->calls);
}

/* --- stale addresses --------------------------------------------------------------------- */

/* More and more rarely; and not again where nothing has gone back since. */
static bool is_stale_due(gmd_session *s)
{
    stale_frees *stale = &s->wrong_frees.stale;
    if (!s->runtime.sim || !stale->freed_count ||
        s->request_index - stale->last < stale->interval ||
        s->calls.memory_calls == stale->memory_calls) {
        return false;
    }
    stale->memory_calls = s->calls.memory_calls;
    return true;
}

/* The allocator may have got the address again, for another of its devices. */
static bool is_gone(const gmd_session *s, uint64_t address)
{
    int device = 0;
    while (device < s->device_count &&
           !s->runtime.sim->gmd_sim_is_backed(address, 1, device, NULL)) {
        device++;
    }
    return device == s->device_count;
}

static const gmd_live_block *find_stale(const gmd_session *s)
{
    const stale_frees *stale = &s->wrong_frees.stale;
    uint64_t count = stale->freed_count < STALE_MAX ? stale->freed_count : STALE_MAX;
    for (uint64_t i = 1; i <= count; i++) { /* the last one first */
        const gmd_live_block *b = &stale->freed[(stale->freed_count - i) % STALE_MAX];
        if (is_gone(s, b->address)) {
            return b;
        }
    }
    return NULL;
}

/* Every other time its memory is another library's by then. */
static void free_stale(gmd_session *s, const gmd_live_block *b)
{
    stale_frees *stale = &s->wrong_frees.stale;
    gmd_wrong_free f = {
        .kind = GMD_FREED_STALE, .address = b->address, .bytes = b->bytes, .block = *b};
    const gmd_sim_api *sim = s->runtime.sim;
    if (stale->count % 2 == 0 && sim->gmd_sim_occupy(b->device, b->address, b->bytes) == 0) {
        f.kind = GMD_FREED_ANOTHER;
    }
    view_device(s, b->device);
    call_list_begin(&s->calls);
    make(s, b, &f);
    f.took_anothers = f.kind == GMD_FREED_ANOTHER && sim->gmd_sim_vacate(b->address) != 0;
    judge(s, &f);
    stale->count++;
    stale->last = s->request_index;
    stale->interval += 1 + stale->interval / 2;
}

void session_free_stale(gmd_session *s)
{
    const gmd_live_block *b = is_possible(s) && is_stale_due(s) ? find_stale(s) : NULL;
    if (b) {
        free_stale(s, b);
    }
}

/* --- any time ---------------------------------------------------------------------------- */

void session_free_wrongly(gmd_session *s, const gmd_live_block *freed)
{
    stale_frees *stale = &s->wrong_frees.stale;
    if (freed->bytes) {
        stale->freed[stale->freed_count++ % STALE_MAX] = *freed;
    }
    if (!freed->bytes || !is_due(s)) { /* blocks of 0 B may share an address: a second free of one
                                          may be the first of another */
        return;
    }
    gmd_wrong_free f = choose(s, freed);
    view_device(s, freed->device);
    call_list_begin(&s->calls);
    make(s, freed, &f);
    judge(s, &f);
}
