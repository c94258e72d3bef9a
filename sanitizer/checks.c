#define _GNU_SOURCE
#include "checks.h"
#include "faults.h"
#include "fills.h"
#include "guard_state.h"
#include "launches.h"

#include "patterns.h"

#include "gmd_cuda_scope.h"

#include <stdlib.h>

typedef struct batch {
    guard *guard;
    int device;
    cudaStream_t stream;
    sweep_range ranges[SWEEP_MANY];
    uint32_t count;
} batch;

static void run_batch(batch *b)
{
    cuda_scope scope;
    if (b->count && cuda_scope_enter(&scope, b->device)) {
        if (!cuda_is_capturing(b->stream)) {
            (void)sweeps_run(b->guard->sweeps, b->device, b->stream, b->ranges, b->count);
        }
        cuda_scope_leave(&scope);
    }
    b->count = 0;
}

static void begin_stream(batch *b, int device, cudaStream_t stream)
{
    if (b->device != device || b->stream != stream || b->count + 3 > SWEEP_MANY) {
        run_batch(b);
        b->device = device;
        b->stream = stream;
    }
}

static int compare_streams(const void *a, const void *b)
{
    const guarded_block *x = *(guarded_block *const *)a, *y = *(guarded_block *const *)b;
    int by_device = (x->device > y->device) - (x->device < y->device);
    int by_stream = ((uintptr_t)x->stream > (uintptr_t)y->stream) -
                    ((uintptr_t)x->stream < (uintptr_t)y->stream);
    return by_device ? by_device : by_stream;
}

/* What is found is mended, so that it is found once. */
static void check_live(batch *b)
{
    guard *g = b->guard;
    guarded_block **blocks = calloc(g->live.count + 1, sizeof(guarded_block *));
    size_t count = 0;
    for (size_t i = 0; blocks && g->live.slots && i <= g->live.mask; i++) {
        if (g->live.slots[i] && !g->live.slots[i]->is_plain && !g->live.slots[i]->has_lost_stream) {
            blocks[count++] = g->live.slots[i];
        }
    }
    if (count) {
        qsort(blocks, count, sizeof *blocks, compare_streams);
    }
    for (size_t i = 0; i < count; i++) {
        begin_stream(b, blocks[i]->device, blocks[i]->stream);
        uint32_t ticket = guard_watch(g, blocks[i], MOMENT_CHECK, PATTERN_ZONE);
        b->count += guard_zones(blocks[i], SWEEP_VERIFY | SWEEP_WRITE, PATTERN_ZONE, ticket,
                                &b->ranges[b->count]);
    }
    run_batch(b);
    free(blocks);
}

static void check_held(batch *b, int device)
{
    const device_part *d = &b->guard->devices[device];
    for (const guarded_block *h = d->held.oldest; h; h = h->next) {
        if (h->is_filled && !h->has_lost_stream) {
            begin_stream(b, device, h->filled ? d->side : h->stream);
            uint32_t ticket = guard_watch(b->guard, h, MOMENT_CHECK, PATTERN_FREED);
            b->count +=
                guard_freed(b->guard, h, SWEEP_VERIFY | SWEEP_WRITE, ticket, &b->ranges[b->count]);
        }
    }
    run_batch(b);
}

/* Under the lock, so that no block is freed and filled between. */
void guard_launch_checks(guard *g)
{
    batch *b = calloc(1, sizeof *b);
    if (!b) {
        return;
    }
    b->guard = g;
    pthread_mutex_lock(&g->lock);
    check_live(b);
    for (int device = 0; device < g->device_count; device++) {
        check_held(b, device);
    }
    pthread_mutex_unlock(&g->lock);
    free(b);
}

static const char *wait_for_devices(guard *g, uint32_t stack)
{
    const char *failed = NULL;
    for (int device = 0; device < g->device_count; device++) {
        cuda_scope scope;
        if (!g->devices[device].is_ready || !cuda_scope_enter(&scope, device)) {
            continue;
        }
        cudaError_t result = cudaDeviceSynchronize();
        guard_see_result(g, device, result, stack);
        failed = result == cudaSuccess ? failed : cudaGetErrorString(result);
        cuda_succeeded(result);
        cuda_scope_leave(&scope);
    }
    return failed;
}

uint64_t guard_check(guard *g)
{
    uint32_t stack = g->allocator.keep_stack();
    launches_mute();
    guard_fill_gathered(g);
    const char *failed = wait_for_devices(g, stack); /* a late write may still be on its way */
    guard_launch_checks(g);
    failed = failed ? failed : wait_for_devices(g, stack);
    launches_unmute();
    guard_poll(g, stack);
    pthread_mutex_lock(&g->lock);
    g->figures.incomplete = failed;
    pthread_mutex_unlock(&g->lock);
    pthread_mutex_lock(&g->reporting);
    uint64_t count = report_count(g->report);
    pthread_mutex_unlock(&g->reporting);
    return count;
}
