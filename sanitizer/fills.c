#define _GNU_SOURCE
#include "fills.h"

#include "gmd_cuda_scope.h"

static bool is_captured(const guarded_block *b)
{
    bool is = cuda_is_capturing(b->stream);
    for (uint32_t i = 0; i < b->recorded_count && i < GUARDED_STREAMS && !is; i++) {
        is = cuda_is_capturing(b->recorded[i]);
    }
    return is;
}

/* `later` goes on only when all is done that is queued on `stream` now. */
static bool order_after(cudaStream_t later, cudaStream_t stream)
{
    cudaEvent_t event = NULL;
    if (!cuda_succeeded(cudaEventCreateWithFlags(&event, cudaEventDisableTiming))) {
        return false;
    }
    bool is_ordered = cuda_succeeded(cudaEventRecord(event, stream)) &&
                      cuda_succeeded(cudaStreamWaitEvent(later, event, 0));
    cuda_succeeded(cudaEventDestroy(event));
    return is_ordered;
}

static cudaError_t fill_on(guard *g, const guarded_block *b, cudaStream_t stream)
{
    sweep_range ranges[3];
    uint32_t count = guard_freeing(g, b, ranges);
    return sweeps_run(g->sweeps, b->device, stream, ranges, count);
}

/* Work of the recorded streams is waited for on a stream of our own, so that the block's own stream
 * goes on. */
static bool fill_beside(guard *g, guarded_block *b)
{
    cudaStream_t side = g->devices[b->device].side;
    bool is_ordered = order_after(side, b->stream);
    for (uint32_t i = 0; i < b->recorded_count && is_ordered; i++) {
        is_ordered = order_after(side, b->recorded[i]);
    }
    if (!is_ordered || fill_on(g, b, side) != cudaSuccess ||
        !cuda_succeeded(cudaEventCreateWithFlags(&b->filled, cudaEventDisableTiming))) {
        return false;
    }
    return cuda_succeeded(cudaEventRecord(b->filled, side));
}

static void fill_at_once(guard *g, guarded_block *b)
{
    cuda_scope scope;
    if (b->recorded_count > GUARDED_STREAMS || b->has_lost_stream ||
        !cuda_scope_enter(&scope, b->device)) {
        return;
    }
    if (!is_captured(b)) {
        b->is_filled =
            b->recorded_count ? fill_beside(g, b) : fill_on(g, b, b->stream) == cudaSuccess;
    }
    cuda_scope_leave(&scope);
}

static void add_to_quarantine(guard *g, guarded_block *b)
{
    pthread_mutex_lock(&g->lock);
    quarantine_add(&g->devices[b->device].held, b);
    g->held_bytes += b->total;
    if (g->held_bytes > g->figures.quarantine_peak_bytes) {
        g->figures.quarantine_peak_bytes = g->held_bytes;
    }
    pthread_mutex_unlock(&g->lock);
}

/* --- gathered fills ----------------------------------------------------------------------- */

/* Takes what was gathered, unless it is on `but`. Under the lock. */
static freed_batch take_gathered(device_part *d, const cudaStream_t *but)
{
    freed_batch taken = d->gathered;
    if (but && taken.stream == *but) {
        taken.count = 0;
    } else {
        d->gathered.count = 0;
    }
    return taken;
}

/* The ranges of what was gathered; gives their number. */
static uint32_t gathered_ranges(guard *g, const freed_batch *batch, sweep_range *out)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < batch->count; i++) {
        count += guard_freeing(g, batch->blocks[i], &out[count]);
    }
    return count;
}

static void settle(guard *g, const freed_batch *batch, bool is_filled)
{
    for (uint32_t i = 0; i < batch->count; i++) {
        batch->blocks[i]->is_filled = is_filled;
        add_to_quarantine(g, batch->blocks[i]);
    }
}

static bool has_lost_stream(const freed_batch *batch)
{
    bool has = false;
    for (uint32_t i = 0; i < batch->count; i++) {
        has = has || batch->blocks[i]->has_lost_stream;
    }
    return has;
}

static void fill_batch(guard *g, int device, const freed_batch *batch)
{
    cuda_scope scope;
    sweep_range ranges[3 * GATHERED_BLOCKS];
    bool is_filled = false;
    if (batch->count && !has_lost_stream(batch) && cuda_scope_enter(&scope, device)) {
        if (!cuda_is_capturing(batch->stream)) {
            uint32_t count = gathered_ranges(g, batch, ranges);
            is_filled = sweeps_run(g->sweeps, device, batch->stream, ranges, count) == cudaSuccess;
        }
        cuda_scope_leave(&scope);
    }
    settle(g, batch, is_filled);
}

void guard_fill_gathered(guard *g)
{
    for (int device = 0; device < g->device_count; device++) {
        pthread_mutex_lock(&g->lock);
        freed_batch batch = take_gathered(&g->devices[device], NULL);
        pthread_mutex_unlock(&g->lock);
        fill_batch(g, device, &batch);
    }
}

static void gather(guard *g, guarded_block *b)
{
    device_part *d = &g->devices[b->device];
    pthread_mutex_lock(&g->lock);
    freed_batch others = take_gathered(d, &b->stream);
    d->gathered.stream = b->stream;
    d->gathered.blocks[d->gathered.count++] = b;
    freed_batch full = {.count = 0};
    if (d->gathered.count == GATHERED_BLOCKS) {
        full = take_gathered(d, NULL);
    }
    pthread_mutex_unlock(&g->lock);
    int device = b->device;
    fill_batch(g, device, &others);
    fill_batch(g, device, &full);
}

void guard_hold_back(guard *g, guarded_block *b)
{
    if (g->options.gathers && b->recorded_count == 0) {
        gather(g, b);
        return;
    }
    fill_at_once(g, b);
    add_to_quarantine(g, b);
}

/* --- new blocks --------------------------------------------------------------------------- */

static freed_batch take_gathered_on(guard *g, int device, cudaStream_t stream)
{
    freed_batch batch = {.count = 0};
    device_part *d = &g->devices[device];
    pthread_mutex_lock(&g->lock);
    if (d->gathered.count && d->gathered.stream == stream && !has_lost_stream(&d->gathered)) {
        batch = take_gathered(d, NULL);
    }
    pthread_mutex_unlock(&g->lock);
    return batch;
}

void guard_fill_allocated(guard *g, guarded_block *b)
{
    cuda_scope scope;
    sweep_range ranges[3 + 3 * GATHERED_BLOCKS];
    if (b->is_plain) {
        return;
    }
    b->is_plain = true; /* where the device takes no work, there is nothing to watch */
    if (!cuda_scope_enter(&scope, b->device)) {
        return;
    }
    freed_batch batch = take_gathered_on(g, b->device, b->stream);
    uint32_t count = guard_new_ranges(g, b, ranges);
    count += gathered_ranges(g, &batch, &ranges[count]);
    b->is_plain = sweeps_run(g->sweeps, b->device, b->stream, ranges, count) != cudaSuccess;
    cuda_scope_leave(&scope);
    settle(g, &batch, !b->is_plain);
}
