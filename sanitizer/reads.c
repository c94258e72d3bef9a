#define _GNU_SOURCE
#include "reads.h"
#include "guard_order.h"
#include "guard_state.h"
#include "launches.h"

#include "patterns.h"

#include "gmd_cuda_scope.h"

/* False: it is none of ours. */
static bool find_read(guard *g, uint64_t address, guarded_block *out)
{
    pthread_mutex_lock(&g->lock);
    const guarded_block *b = guard_find(g, address);
    if (b) {
        *out = *b;
    }
    pthread_mutex_unlock(&g->lock);
    return b != NULL;
}

void guard_watch_read(guard *g, const void *ptr, size_t size, cudaStream_t stream, bool seeks_fresh)
{
    guarded_block b;
    cuda_scope scope;
    uint64_t address = (uintptr_t)ptr;
    if (size < sizeof(float) || atomic_load(&g->is_finished) || !find_read(g, address, &b) ||
        b.is_plain) {
        return;
    }
    uint32_t stack = g->allocator.keep_stack();
    if (b.freed_ns) {
        guard_report_stale_read(g, &b, address, size, stack);
        return;
    }
    uint32_t ticket = guard_watch(g, &b, MOMENT_READ, PATTERN_FREED);
    g->watches[ticket % WATCHES].stack = stack;
    uint64_t also = seeks_fresh && g->options.fills_fresh ? PATTERN_FRESH : PATTERN_FREED;
    sweep_range range =
        guard_range(address, address + size, SWEEP_SEEK, PATTERN_FREED, also, ticket);
    launches_mute();
    if (cuda_scope_enter(&scope, b.device)) {
        if (!cuda_is_capturing(stream)) {
            (void)sweeps_run(g->sweeps, b.device, stream, &range, 1);
        }
        cuda_scope_leave(&scope);
    }
    launches_unmute();
    guard_poll(g, stack);
}

void guard_watch_use(guard *g, const void *ptr, cudaStream_t stream)
{
    if (!atomic_load(&g->is_finished)) {
        guard_order_used(g, (uintptr_t)ptr, "an operator of PyTorch", stream);
    }
}
