#define _GNU_SOURCE
#include "releases.h"

#include "guard_order.h"
#include "patterns.h"

#include "gmd_cuda_scope.h"

#include <stdlib.h>

/* Blocks of one stream, which one kernel verifies. */
typedef struct release_batch {
    guard *guard;
    guarded_block *blocks[SWEEP_MANY / 3];
    sweep_range ranges[SWEEP_MANY];
    uint32_t count, range_count;
    bool keeps; /* what is verified may serve the next request */
} release_batch;

enum { READY_BLOCK_MOST = 16 << 20 }; /* bytes: larger ones are few, and the allocator needs them */

/* What was not filled, or not to the end, waits for its streams as without a sanitizer. */
void guard_give_back(guard *g, guarded_block *b, bool is_ordered)
{
    void *memory = (void *)(uintptr_t)b->memory;
    for (uint32_t i = 0; i < b->recorded_count && i < GUARDED_STREAMS && !is_ordered; i++) {
        g->allocator.record_stream(memory, b->recorded[i]);
    }
    if (b->filled) {
        cuda_succeeded(cudaEventDestroy(b->filled));
    }
    guard_order_dropped(g, b);
    if (!b->mapped.memory) { /* else the process ends, and nobody waits for the device */
        g->allocator.free(memory, b->total, b->device, b->stream);
    }
    free(b);
}

static bool wait_for_fills(const release_batch *batch)
{
    bool is_ordered = true;
    for (uint32_t i = 0; i < batch->count && is_ordered; i++) {
        const guarded_block *b = batch->blocks[i];
        is_ordered = !b->filled || cuda_succeeded(cudaStreamWaitEvent(b->stream, b->filled, 0));
    }
    return is_ordered;
}

static bool verify(const release_batch *batch)
{
    cuda_scope scope;
    const guarded_block *first = batch->blocks[0];
    if (!cuda_scope_enter(&scope, first->device)) {
        return false;
    }
    bool is_verified = !cuda_is_capturing(first->stream) && wait_for_fills(batch) &&
                       sweeps_run(batch->guard->sweeps, first->device, first->stream, batch->ranges,
                                  batch->range_count) == cudaSuccess;
    cuda_scope_leave(&scope);
    return is_verified;
}

/* Where new blocks are filled with NaN, nothing is saved. */
static bool may_keep(const release_batch *batch, const guarded_block *b)
{
    const guard *g = batch->guard;
    return batch->keeps && !g->options.fills_fresh && b->total <= READY_BLOCK_MOST &&
           !b->is_pooled && !b->has_lost_stream;
}

/* The block's own stream has waited for the fill. False: there are enough. */
static bool keep_ready(guard *g, guarded_block *b)
{
    ready_blocks *ready = &g->devices[b->device].ready;
    if (b->filled) {
        cuda_succeeded(cudaEventDestroy(b->filled));
        b->filled = NULL;
    }
    guard_order_dropped(g, b);
    pthread_mutex_lock(&g->lock);
    bool is_kept =
        ready->bytes + b->total <= g->options.quarantine_bytes && !atomic_load(&g->is_finished);
    if (is_kept) {
        ready_blocks_add(ready, b);
        g->held_bytes += b->total;
        g->figures.verified_blocks++;
    }
    pthread_mutex_unlock(&g->lock);
    return is_kept;
}

void guard_release_ready(guard *g, int device)
{
    for (guarded_block *b = NULL;;) {
        pthread_mutex_lock(&g->lock);
        b = ready_blocks_take_any(&g->devices[device].ready);
        g->held_bytes -= b ? b->total : 0;
        pthread_mutex_unlock(&g->lock);
        if (!b) {
            return;
        }
        guard_give_back(g, b, true);
    }
}

static void give_back_counted(guard *g, guarded_block *b, bool is_verified)
{
    pthread_mutex_lock(&g->lock);
    g->figures.verified_blocks += is_verified;
    g->figures.unwatched_blocks += !is_verified;
    pthread_mutex_unlock(&g->lock);
    guard_give_back(g, b, is_verified);
}

static void flush(release_batch *batch)
{
    bool is_verified = batch->count && verify(batch);
    for (uint32_t i = 0; i < batch->count; i++) {
        guarded_block *b = batch->blocks[i];
        if (!is_verified || !may_keep(batch, b) || !keep_ready(batch->guard, b)) {
            give_back_counted(batch->guard, b, is_verified);
        }
    }
    batch->count = 0;
    batch->range_count = 0;
}

static void add(release_batch *batch, guarded_block *b)
{
    const guarded_block *first = batch->count ? batch->blocks[0] : b;
    if (batch->count == SWEEP_MANY / 3 || first->stream != b->stream ||
        first->device != b->device) {
        flush(batch);
    }
    if (!b->is_filled || b->has_lost_stream) {
        give_back_counted(batch->guard, b, false);
        return;
    }
    uint32_t ticket = guard_watch(batch->guard, b, MOMENT_REUSE, PATTERN_FREED);
    batch->range_count +=
        guard_freed(batch->guard, b, SWEEP_VERIFY, ticket, &batch->ranges[batch->range_count]);
    batch->blocks[batch->count++] = b;
}

static guarded_block *take_oldest(guard *g, int device, uint64_t bytes, uint32_t count)
{
    pthread_mutex_lock(&g->lock);
    guarded_block *b = quarantine_take_beyond(&g->devices[device].held, bytes, count);
    if (b) {
        g->held_bytes -= b->total;
        if (g->keeps_index) {
            block_index_remove(&g->index, b);
        }
    }
    pthread_mutex_unlock(&g->lock);
    return b;
}

static void release_beyond(guard *g, int device, uint64_t bytes, uint32_t count, bool keeps)
{
    release_batch batch;
    batch.guard = g;
    batch.keeps = keeps;
    batch.count = 0;
    batch.range_count = 0;
    for (guarded_block *b; (b = take_oldest(g, device, bytes, count)) != NULL;) {
        add(&batch, b);
    }
    flush(&batch);
}

void guard_release_beyond(guard *g, int device, uint64_t bytes, uint32_t count)
{
    release_beyond(g, device, bytes, count, false);
    guard_release_ready(g, device);
}

void guard_release_when_full(guard *g, int device)
{
    uint64_t bytes = g->options.quarantine_bytes;
    uint32_t count = g->options.quarantine_blocks;
    pthread_mutex_lock(&g->lock);
    const quarantine *held = &g->devices[device].held;
    bool is_full = held->bytes > bytes || held->count > count;
    pthread_mutex_unlock(&g->lock);
    if (is_full) {
        release_beyond(g, device, bytes - bytes / 8, count - count / 8, true);
    }
}
