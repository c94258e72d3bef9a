#define _GNU_SOURCE
#include "unmapping.h"

#include "faults.h"
#include "guard_order.h"
#include "order.h"
#include "patterns.h"

#include "gmd_cuda_scope.h"

#include <stdlib.h>

enum { ALIGNMENT = 512 };

/* The unmapped blocks that are known have fewer bytes than mappings.c uses before an address comes
 * again. */
#define GONE_BYTES (UINT64_C(4) << 40)

bool guard_maps(guard *g, size_t size)
{
    return g->mappings && size >= g->options.unmap_bytes && atomic_load(&g->pools) == 0 &&
           !atomic_load(&g->is_finished);
}

static uint64_t round_up(uint64_t bytes, uint64_t to)
{
    return (bytes + to - 1) / to * to;
}

static void count_mapped(guard *g, int device, uint64_t bytes)
{
    device_part *d = &g->devices[device];
    pthread_mutex_lock(&g->lock);
    d->mapped_bytes += bytes;
    if (d->mapped_bytes > d->mapped_peak_bytes) {
        d->mapped_peak_bytes = d->mapped_bytes;
    }
    if (d->mapped_bytes > g->figures.mapped_peak_bytes) {
        g->figures.mapped_peak_bytes = d->mapped_bytes;
    }
    pthread_mutex_unlock(&g->lock);
}

/* The block's end is the mapping's, so that what is read or written behind it is an illegal access,
 * too. */
bool guard_map(guard *g, guarded_block *b)
{
    uint64_t size = round_up(b->size, ALIGNMENT), total = round_up(size, MAPPING_PAGE);
    cuda_scope scope;
    if (!cuda_scope_enter(&scope, b->device)) {
        return false;
    }
    bool is_mapped = mappings_add(g->mappings, b->device, total, &b->mapped);
    cuda_scope_leave(&scope);
    if (is_mapped) {
        b->memory = b->mapped.address;
        b->total = total;
        b->address = b->memory + total - size;
        count_mapped(g, b->device, total);
    }
    return is_mapped;
}

uint64_t guard_mapped_bytes(guard *g, int device, uint64_t *peak, bool resets_peak)
{
    pthread_mutex_lock(&g->lock);
    device_part *d = &g->devices[device];
    d->mapped_peak_bytes = resets_peak ? d->mapped_bytes : d->mapped_peak_bytes;
    uint64_t bytes = d->mapped_bytes;
    *peak = d->mapped_peak_bytes;
    pthread_mutex_unlock(&g->lock);
    return bytes;
}

/* --- frees -------------------------------------------------------------------------------- */

static void verify_zones(guard *g, const guarded_block *b)
{
    cuda_scope scope;
    sweep_range ranges[2];
    if (b->has_lost_stream || !cuda_scope_enter(&scope, b->device)) {
        return;
    }
    if (!cuda_is_capturing(b->stream)) {
        uint32_t ticket = guard_watch(g, b, MOMENT_FREE, PATTERN_ZONE);
        uint32_t count = guard_zones(b, SWEEP_VERIFY, PATTERN_ZONE, ticket, ranges);
        (void)sweeps_run(g->sweeps, b->device, b->stream, ranges, count);
    }
    cuda_scope_leave(&scope);
}

static bool may_wait(guard *g)
{
    return atomic_load(&g->pools) == 0 && !(g->order && order_is_capturing(g->order));
}

static quarantine take_going(guard *g, int device)
{
    pthread_mutex_lock(&g->lock);
    quarantine going = g->devices[device].going;
    g->devices[device].going = (quarantine){NULL};
    pthread_mutex_unlock(&g->lock);
    return going;
}

/* The oldest of which nothing is known any more; NULL: there are not so many. */
static guarded_block *keep_gone(guard *g, guarded_block *b)
{
    quarantine *gone = &g->devices[b->device].gone;
    pthread_mutex_lock(&g->lock);
    g->devices[b->device].mapped_bytes -= b->total;
    quarantine_add(gone, b);
    guarded_block *oldest = quarantine_take_beyond(gone, GONE_BYTES, g->options.quarantine_blocks);
    if (oldest) {
        block_index_remove(&g->index, oldest);
    }
    pthread_mutex_unlock(&g->lock);
    return oldest;
}

static void drop(guard *g, guarded_block *b)
{
    if (b) {
        guard_order_dropped(g, b);
        free(b);
    }
}

/* What the driver does not take away stays as it is until the process ends. */
static void take_away_all(guard *g, int device, quarantine going)
{
    for (guarded_block *b; (b = quarantine_take_beyond(&going, 0, 0)) != NULL;) {
        (void)mappings_take_away(g->mappings, device, &b->mapped);
        drop(g, keep_gone(g, b));
    }
}

static void put_back(guard *g, int device, quarantine going)
{
    pthread_mutex_lock(&g->lock);
    for (guarded_block *b; (b = quarantine_take_beyond(&going, 0, 0)) != NULL;) {
        quarantine_add(&g->devices[device].going, b);
    }
    pthread_mutex_unlock(&g->lock);
}

static void unmap_on(guard *g, int device, uint32_t stack)
{
    cuda_scope scope;
    quarantine going = take_going(g, device);
    if (going.count && cuda_scope_enter(&scope, device)) {
        uint64_t works = guard_works_so_far(g);
        cudaError_t result = cudaDeviceSynchronize();
        cuda_succeeded(result);
        if (result == cudaSuccess) {
            guard_works_are_over(g, works);
            take_away_all(g, device, going);
            going.count = 0;
        }
        cuda_scope_leave(&scope);
        guard_see_result(g, device, result, stack);
    }
    if (going.count) {
        put_back(g, device, going);
    }
}

void guard_unmap_waiting(guard *g, uint32_t stack)
{
    for (int device = 0; g->mappings && may_wait(g) && device < g->device_count; device++) {
        unmap_on(g, device, stack);
    }
}

void guard_unmap(guard *g, guarded_block *b, uint32_t stack)
{
    verify_zones(g, b);
    pthread_mutex_lock(&g->lock);
    quarantine_add(&g->devices[b->device].going, b);
    pthread_mutex_unlock(&g->lock);
    guard_unmap_waiting(g, stack);
}

void guard_release_spares(guard *g, int device)
{
    if (g->mappings) {
        mappings_release_spares(g->mappings, device);
    }
}
