#define _GNU_SOURCE
#include "guard_order.h"

#include "faults.h"
#include "launches.h"

#include <stdio.h>
#include <string.h>

static order_stream stream_of(int device, cudaStream_t stream)
{
    uint64_t handle = (uintptr_t)stream;
    return (order_stream){
        .device = device, .handle = handle, .thread = handle == 2 ? (uint64_t)pthread_self() : 0};
}

/* --- what launches ask -------------------------------------------------------------------- */

/* Most words of most kernels are no addresses of ours: those take no lock. */
static order_block *find_block(void *context, uint64_t pointer)
{
    guard *g = context;
    order_block *found = NULL;
    if (pointer < atomic_load_explicit(&g->lowest, memory_order_relaxed) ||
        pointer >= atomic_load_explicit(&g->highest, memory_order_relaxed)) {
        return NULL;
    }
    pthread_mutex_lock(&g->lock);
    const guarded_block *b = guard_find(g, pointer);
    if (b && b->order && pointer - b->address < b->size) {
        found = order_block_keep(b->order);
    }
    pthread_mutex_unlock(&g->lock);
    return found;
}

static uint64_t place(void *context)
{
    guard *g = context;
    return atomic_load(&g->is_finished) ? 0 : g->allocator.keep_stack();
}

static void lose_stream(void *context, guarded_block *b, int device, cudaStream_t stream)
{
    (void)context;
    b->has_lost_stream = b->has_lost_stream || (b->device == device && b->stream == stream);
    for (uint32_t i = 0; i < b->recorded_count && i < GUARDED_STREAMS; i++) {
        b->has_lost_stream = b->has_lost_stream || b->recorded[i] == stream;
    }
}

/* Nothing of ours may be queued there any more. */
static void stream_destroyed(void *context, order_stream stream)
{
    guard *g = context;
    cudaStream_t handle = (cudaStream_t)(uintptr_t)stream.handle;
    pthread_mutex_lock(&g->lock);
    for (size_t i = 0; g->live.slots && i <= g->live.mask; i++) {
        if (g->live.slots[i]) {
            lose_stream(g, g->live.slots[i], stream.device, handle);
        }
    }
    for (int device = 0; device < g->device_count; device++) {
        const freed_batch *gathered = &g->devices[device].gathered;
        for (uint32_t i = 0; i < gathered->count; i++) {
            lose_stream(g, gathered->blocks[i], stream.device, handle);
        }
        if (device == stream.device) {
            ready_blocks_lose_stream(&g->devices[device].ready, handle);
        }
        for (guarded_block *b = g->devices[device].held.oldest; b; b = b->next) {
            lose_stream(g, b, stream.device, handle);
        }
    }
    pthread_mutex_unlock(&g->lock);
}

/* --- findings ----------------------------------------------------------------------------- */

static guarded_block subject_block(const order_subject *s)
{
    return (guarded_block){.address = s->address,
                           .size = s->bytes,
                           .device = s->stream.device,
                           .stream = (cudaStream_t)(uintptr_t)s->stream.handle,
                           .allocated_stack = (uint32_t)s->allocated_at,
                           .freed_stack = (uint32_t)s->freed_at,
                           .number = s->serial,
                           .freed_ns = 1}; /* it was freed; when is not known here */
}

static void report_order(void *context, const order_finding *o)
{
    guard *g = context;
    static const finding_kind kinds[] = {[ORDER_FREED_EARLY] = FINDING_FREED_EARLY,
                                         [ORDER_REUSED_EARLY] = FINDING_REUSED_EARLY,
                                         [ORDER_USED_AFTER_FREE] = FINDING_USED_AFTER_FREE};
    finding f = {.kind = kinds[o->kind],
                 .moment = MOMENT_QUEUED,
                 .block = subject_block(&o->block),
                 .now_ns = guard_now_ns(),
                 .evidence = o->is_certain ? EVIDENCE_HAPPENS_BEFORE : EVIDENCE_POSSIBLE,
                 .use = o->use.what ? o->use.what : "work",
                 .use_stack = (uint32_t)o->use.place,
                 .use_stream = (cudaStream_t)(uintptr_t)o->use_stream.handle};
    if (atomic_load(&g->is_finished)) {
        return;
    }
    guard_note_accused(g, &f);
    if (o->kind != ORDER_USED_AFTER_FREE) {
        f.owner = subject_block(&o->taker);
    }
    pthread_mutex_lock(&g->reporting);
    report_finding(g->report, &f);
    pthread_mutex_unlock(&g->reporting);
}

static void queued(void *context, const launches_work *work)
{
    guard_note_work(context, work);
}

static void failed(void *context, int device, int result)
{
    guard *g = context;
    guard_see_result(g, device, result, g->allocator.keep_stack());
}

/* --- starting ----------------------------------------------------------------------------- */

void guard_order_start(guard *g)
{
    const order_settings settings = {.found = report_order, .context = g};
    const launches_callbacks callbacks = {.context = g,
                                          .find_block = find_block,
                                          .place = place,
                                          .stream_destroyed = stream_destroyed,
                                          .queued = g->recent ? queued : NULL,
                                          .failed = g->recent ? failed : NULL};
    char message[512] = "the host has no memory";
    if (!g->options.watches_order) {
        return;
    }
    g->order = order_create(&settings);
    if (!g->order ||
        !launches_start(g->order, &callbacks, NULL, &g->launches, message, sizeof message)) {
        fprintf(stderr, "==gmd sanitizer== happens-before is not watched: %s\n", message);
        order_destroy(g->order);
        g->order = NULL;
    }
}

void guard_order_mute(guard *g)
{
    launches_stop(g->launches);
    g->launches = NULL;
}

void guard_order_stop(guard *g)
{
    order_destroy(g->order);
    g->order = NULL;
}

/* --- blocks ------------------------------------------------------------------------------- */

static void widen_bounds(guard *g, const guarded_block *b)
{
    uint64_t lowest = atomic_load(&g->lowest), highest = atomic_load(&g->highest);
    while (b->memory < lowest && !atomic_compare_exchange_weak(&g->lowest, &lowest, b->memory)) {
    }
    while (b->memory + b->total > highest &&
           !atomic_compare_exchange_weak(&g->highest, &highest, b->memory + b->total)) {
    }
}

void guard_order_allocated(guard *g, guarded_block *b)
{
    if (g->order) {
        widen_bounds(g, b);
        b->order = order_allocated(g->order, b->address, b->size, stream_of(b->device, b->stream),
                                   b->allocated_stack, b->is_plain);
    }
}

void guard_order_recorded(guard *g, struct order_block *block, cudaStream_t stream)
{
    if (g->order && block) {
        int device = 0;
        (void)cudaGetDevice(&device);
        order_record_stream(g->order, block, stream_of(device, stream));
        order_block_drop(g->order, block);
    }
}

void guard_order_freed(guard *g, guarded_block *b)
{
    if (g->order) {
        order_freed(g->order, b->order, b->freed_stack);
    }
}

void guard_order_dropped(guard *g, guarded_block *b)
{
    if (g->order) {
        order_block_drop(g->order, b->order);
    }
    b->order = NULL;
}

void guard_order_used(guard *g, uint64_t address, const char *what, cudaStream_t stream)
{
    order_use use = {.block = g->order ? find_block(g, address) : NULL, .is_certain = true};
    if (!use.block) {
        return;
    }
    int device = 0;
    (void)cudaGetDevice(&device);
    order_stream on = stream_of(device, stream);
    uint64_t where = order_is_remarkable(use.block, on) ? place(g) : 0;
    order_queued(g->order, on, what, where, &use, 1);
    order_block_drop(g->order, use.block);
}
