#define _GNU_SOURCE
#include "faults.h"

#include <stdlib.h>

enum { WORKS = 64, BLOCKS_OF_WORK = 8 };

typedef struct recent_block {
    guarded_block block;
    bool is_freed;
} recent_block;

typedef struct recent_work {
    const char *what;
    uint32_t place;
    order_stream stream;
    uint32_t count;
    recent_block blocks[BLOCKS_OF_WORK];
} recent_work;

typedef struct recent_works {
    pthread_mutex_t lock;
    uint64_t count, over; /* that there were, and how many of them are known to be over */
    recent_work ring[WORKS];
    finding accused; /* evidence 0: nobody since `over` */
    uint64_t accused_at;
} recent_works;

recent_works *recent_works_create(void)
{
    recent_works *w = calloc(1, sizeof *w);
    if (w) {
        pthread_mutex_init(&w->lock, NULL);
    }
    return w;
}

void recent_works_destroy(recent_works *w)
{
    if (w) {
        pthread_mutex_destroy(&w->lock);
    }
    free(w);
}

/* --- what was queued ----------------------------------------------------------------------- */

static guarded_block block_of(const order_subject *s, bool is_freed)
{
    return (guarded_block){.address = s->address,
                           .size = s->bytes,
                           .device = s->stream.device,
                           .stream = (cudaStream_t)(uintptr_t)s->stream.handle,
                           .allocated_stack = (uint32_t)s->allocated_at,
                           .freed_stack = (uint32_t)s->freed_at,
                           .number = s->serial,
                           .freed_ns = is_freed};
}

/* Freed blocks come first where there are more than are kept. */
static void note_block(recent_work *w, const order_subject *subject, bool is_freed)
{
    if (w->count < BLOCKS_OF_WORK) {
        w->blocks[w->count++] = (recent_block){block_of(subject, is_freed), is_freed};
    } else if (is_freed) {
        w->blocks[BLOCKS_OF_WORK - 1] = (recent_block){block_of(subject, true), true};
    }
}

void guard_note_work(guard *g, const launches_work *work)
{
    recent_work noted = {
        .what = work->what, .place = (uint32_t)work->place, .stream = work->stream};
    recent_works *w = g->recent;
    if (!w) {
        return;
    }
    for (size_t i = 0; i < work->count; i++) {
        order_subject subject;
        bool is_freed = order_describe(g->order, work->uses[i].block, &subject);
        note_block(&noted, &subject, is_freed);
    }
    pthread_mutex_lock(&w->lock);
    w->ring[w->count++ % WORKS] = noted;
    pthread_mutex_unlock(&w->lock);
}

void guard_note_accused(guard *g, const finding *f)
{
    recent_works *w = g->recent;
    if (w && f->kind == FINDING_USED_AFTER_FREE) {
        pthread_mutex_lock(&w->lock);
        w->accused = *f;
        w->accused_at = w->count;
        pthread_mutex_unlock(&w->lock);
    }
}

uint64_t guard_works_so_far(guard *g)
{
    uint64_t count = 0;
    if (g->recent) {
        pthread_mutex_lock(&g->recent->lock);
        count = g->recent->count;
        pthread_mutex_unlock(&g->recent->lock);
    }
    return count;
}

void guard_works_are_over(guard *g, uint64_t so_far)
{
    recent_works *w = g->recent;
    if (w) {
        pthread_mutex_lock(&w->lock);
        w->over = so_far > w->over ? so_far : w->over;
        if (w->accused_at < so_far) {
            w->accused.evidence = 0;
        }
        pthread_mutex_unlock(&w->lock);
    }
}

/* --- who it was ---------------------------------------------------------------------------- */

static void take_use(finding *f, const recent_work *work)
{
    f->use = work->what;
    f->use_stack = work->place;
    f->use_stream = (cudaStream_t)(uintptr_t)work->stream.handle;
}

/* The latest work that has such a block. */
static bool suspect_block(const recent_works *w, uint64_t from, bool is_freed, finding *f)
{
    for (uint64_t n = w->count; n > from; n--) {
        const recent_work *work = &w->ring[(n - 1) % WORKS];
        for (uint32_t i = 0; i < work->count; i++) {
            if (work->blocks[i].is_freed == is_freed) {
                take_use(f, work);
                f->block = work->blocks[i].block;
                f->suspicion = is_freed ? SUSPECT_PARAMETER : SUSPECT_BOUNDS;
                return true;
            }
        }
    }
    return false;
}

/* Where launches are waited for, it was the latest. */
static uint64_t first_suspect(const guard *g)
{
    const recent_works *w = g->recent;
    uint64_t kept = w->count > WORKS ? w->count - WORKS : 0;
    uint64_t from = w->over > kept ? w->over : kept;
    return g->options.waits_for_launches && w->count > from ? w->count - 1 : from;
}

static bool suspect_work(const guard *g, finding *f)
{
    recent_works *w = g->recent;
    pthread_mutex_lock(&w->lock);
    uint64_t from = first_suspect(g);
    bool is_known = suspect_block(w, from, true, f);
    if (!is_known && w->accused.evidence && w->accused_at >= from) {
        f->block = w->accused.block;
        f->use = w->accused.use;
        f->use_stack = w->accused.use_stack;
        f->use_stream = w->accused.use_stream;
        f->suspicion = SUSPECT_PARAMETER;
        is_known = true;
    }
    is_known = is_known || suspect_block(w, from, false, f);
    if (!is_known && w->count) {
        take_use(f, &w->ring[(w->count - 1) % WORKS]);
    }
    pthread_mutex_unlock(&w->lock);
    return is_known;
}

static void suspect_latest(guard *g, int device, finding *f)
{
    pthread_mutex_lock(&g->lock);
    const guarded_block *latest = g->devices[device].gone.youngest;
    if (latest) {
        f->block = *latest;
        f->suspicion = SUSPECT_LATEST;
    }
    pthread_mutex_unlock(&g->lock);
}

void guard_see_result(guard *g, int device, int result, uint32_t stack)
{
    if (result != cudaErrorIllegalAddress || !g->recent || atomic_exchange(&g->is_lost, true)) {
        return;
    }
    finding f = {.kind = FINDING_ILLEGAL_ACCESS,
                 .moment = MOMENT_FAULT,
                 .block = {.device = device},
                 .current_stack = stack,
                 .now_ns = guard_now_ns(),
                 .evidence = EVIDENCE_FAULT};
    if (!suspect_work(g, &f)) {
        suspect_latest(g, device, &f);
    }
    pthread_mutex_lock(&g->reporting);
    report_finding(g->report, &f);
    pthread_mutex_unlock(&g->reporting);
}
