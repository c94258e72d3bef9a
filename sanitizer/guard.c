#define _GNU_SOURCE
#include "guard.h"

#include "checks.h"
#include "faults.h"
#include "fills.h"
#include "guard_order.h"
#include "guard_state.h"
#include "launches.h"
#include "releases.h"
#include "unmapping.h"

#include "gmd_cuda_scope.h"

#include <stdlib.h>

enum { ALIGNMENT = 512 };

static uint64_t round_up(uint64_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* --- free --------------------------------------------------------------------------------- */

void guard_release_all(guard *g)
{
    launches_mute();
    guard_fill_gathered(g);
    for (int device = 0; device < g->device_count; device++) {
        guard_release_beyond(g, device, 0, 0);
        guard_release_spares(g, device);
    }
    g->allocator.empty_cache();
    launches_unmute();
}

static guarded_block *take_live(guard *g, const void *ptr)
{
    pthread_mutex_lock(&g->lock);
    guarded_block *b = block_set_take(&g->live, (uintptr_t)ptr);
    if (b) {
        g->figures.frees++;
        g->zone_bytes -= b->total - b->size;
        if (g->keeps_index && (b->is_plain || atomic_load(&g->is_finished))) {
            block_index_remove(&g->index, b);
        }
    }
    pthread_mutex_unlock(&g->lock);
    return b;
}

static bool is_check_due(guard *g, uint64_t now)
{
    uint64_t due = atomic_load(&g->next_check_ns);
    return due && now >= due &&
           atomic_compare_exchange_strong(&g->next_check_ns, &due, now + g->options.interval_ns);
}

static void free_block(guard *g, void *ptr)
{
    bool is_finished = atomic_load(&g->is_finished);
    uint32_t stack = is_finished ? 0 : g->allocator.keep_stack();
    guarded_block *b = take_live(g, ptr);
    if (!b) {
        guard_report_bad_free(g, ptr, stack);
        return;
    }
    int device = b->device;
    if (b->is_plain || is_finished) { /* take_live has taken it out of the index, too */
        guard_order_freed(g, b);
        guard_give_back(g, b, false);
        guard_unmap_waiting(g, stack);
        return;
    }
    b->freed_stack = stack;
    b->freed_ns = guard_now_ns();
    guard_order_freed(g, b);
    uint64_t now = b->freed_ns;
    if (b->mapped.memory) {
        guard_unmap(g, b, stack);
    } else {
        guard_hold_back(g, b);
        guard_release_when_full(g, device);
    }
    if (is_check_due(g, now)) {
        guard_fill_gathered(g);
        guard_launch_checks(g);
    }
    guard_poll(g, stack);
}

void guard_free(guard *g, void *ptr)
{
    launches_mute();
    free_block(g, ptr);
    launches_unmute();
}

/* --- malloc ------------------------------------------------------------------------------- */

static bool prepare(guard *g, int device, gmd_error *error)
{
    cuda_scope scope;
    device_part *d = &g->devices[device];
    if (atomic_load(&d->is_ready)) {
        return true;
    }
    if (!cuda_scope_enter(&scope, device)) {
        gmd_fail(error, GMD_FAILED, "sanitizer: CUDA refuses device %d", device);
        return false;
    }
    pthread_mutex_lock(&g->preparing);
    bool is_ready = d->is_ready;
    if (!is_ready && sweeps_prepare(g->sweeps, device, error) == GMD_OK) {
        is_ready = cuda_succeeded(cudaStreamCreateWithFlags(&d->side, cudaStreamNonBlocking));
        if (!is_ready) {
            gmd_fail(error, GMD_FAILED, "sanitizer: no stream for device %d", device);
        }
        atomic_store(&d->is_ready, is_ready);
    }
    pthread_mutex_unlock(&g->preparing);
    cuda_scope_leave(&scope);
    return is_ready;
}

/* What is held back goes first when memory is short. */
static void make_room(guard *g, int device)
{
    guard_fill_gathered(g);
    guard_release_beyond(g, device, 0, 0);
    guard_release_spares(g, device);
}

static bool request_mapped(guard *g, guarded_block *b)
{
    if (guard_map(g, b)) {
        return true;
    }
    make_room(g, b->device);
    g->allocator.empty_cache();
    return guard_map(g, b);
}

static bool request(guard *g, guarded_block *b)
{
    void *memory = g->allocator.malloc(b->total, b->device, b->stream);
    if (!memory) {
        make_room(g, b->device);
        memory = g->allocator.malloc(b->total, b->device, b->stream);
    }
    b->memory = (uintptr_t)memory;
    b->address += b->memory;
    return memory != NULL;
}

/* False: no host memory. */
static bool enter_live(guard *g, guarded_block *b)
{
    pthread_mutex_lock(&g->lock);
    b->number = ++g->block_count;
    if (g->keeps_index && !block_index_add(&g->index, b)) {
        pthread_mutex_unlock(&g->lock);
        return false;
    }
    if (!block_set_add(&g->live, b)) {
        if (g->keeps_index) {
            block_index_remove(&g->index, b);
        }
        pthread_mutex_unlock(&g->lock);
        return false;
    }
    g->figures.allocations++;
    g->figures.unwatched_blocks += b->is_plain;
    g->zone_bytes += b->total - b->size;
    if (g->zone_bytes > g->figures.zone_peak_bytes) {
        g->figures.zone_peak_bytes = g->zone_bytes;
    }
    pthread_mutex_unlock(&g->lock);
    return true;
}

/* Asked with each request: in a capture it is allowed, so no mode has to be changed. The default
 * streams are the current device's. */
static bool is_in_capture(int device, cudaStream_t stream)
{
    enum { DEFAULT_STREAMS = 2 }; /* handles up to this */
    cuda_scope scope;
    int current = device;
    if ((uintptr_t)stream > DEFAULT_STREAMS ||
        (cuda_succeeded(cudaGetDevice(&current)) && current == device)) {
        return cuda_is_capturing(stream);
    }
    if (!cuda_scope_enter(&scope, device)) {
        return true;
    }
    bool is = cuda_is_capturing(stream);
    cuda_scope_leave(&scope);
    return is;
}

static bool raise_finding(guard *g, gmd_error *error)
{
    bool is_new = false;
    if (g->options.raises) {
        pthread_mutex_lock(&g->reporting);
        uint64_t count = report_count(g->report);
        is_new = atomic_exchange(&g->raised, count) < count;
        if (is_new) {
            gmd_fail(error, GMD_FAILED, "sanitizer: %s", report_latest(g->report));
        }
        pthread_mutex_unlock(&g->reporting);
    }
    return is_new;
}

static void place_block(const guard *g, guarded_block *b)
{
    uint64_t front = b->is_plain ? 0 : round_up(g->options.zone_bytes);
    b->total = b->is_plain ? b->size : front + round_up(b->size + g->options.zone_bytes);
    b->address = front; /* the memory's own address comes to it */
}

/* One with zones, of which nothing else is known any more; NULL: there is none. */
static guarded_block *take_ready(guard *g, size_t size, int device, cudaStream_t stream)
{
    if (atomic_load(&g->pools) || size >= g->options.unmap_bytes) {
        return NULL;
    }
    pthread_mutex_lock(&g->lock);
    guarded_block *b = ready_blocks_take(&g->devices[device].ready, size, stream);
    if (b) {
        g->held_bytes -= b->total;
        *b = (guarded_block){.size = b->size,
                             .address = b->address,
                             .memory = b->memory,
                             .total = b->total,
                             .device = device,
                             .stream = stream};
    }
    pthread_mutex_unlock(&g->lock);
    return b;
}

/* NULL: no memory, and `error` says so if it is the host's. */
static guarded_block *make_block(guard *g, size_t size, int device, cudaStream_t stream,
                                 bool is_plain, gmd_error *error)
{
    guarded_block *b = malloc(sizeof *b);
    if (!b) {
        gmd_fail(error, GMD_NO_MEMORY, "sanitizer: no host memory");
        return NULL;
    }
    *b = (guarded_block){.size = size,
                         .device = device,
                         .stream = stream,
                         .is_plain = is_plain,
                         .is_pooled = atomic_load(&g->pools) != 0};
    place_block(g, b);
    if (is_plain || !guard_maps(g, size) ? !request(g, b) : !request_mapped(g, b)) {
        free(b);
        return NULL;
    }
    return b;
}

static void *allocate(guard *g, size_t size, int device, cudaStream_t stream, gmd_error *error)
{
    bool is_finished = atomic_load(&g->is_finished);
    uint32_t stack = is_finished ? 0 : g->allocator.keep_stack();
    guard_poll(g, stack);
    guard_unmap_waiting(g, stack);
    if (device < 0 || device >= g->device_count || size > UINT64_MAX / 2 ||
        raise_finding(g, error)) {
        return NULL;
    }
    bool is_plain = is_finished || is_in_capture(device, stream);
    if (!is_plain && !prepare(g, device, error)) {
        return NULL;
    }
    guarded_block *b = is_plain ? NULL : take_ready(g, size, device, stream);
    if (b) {
        b->allocated_stack = stack;
    } else {
        b = make_block(g, size, device, stream, is_plain, error);
        if (!b) {
            return NULL;
        }
        b->allocated_stack = stack;
        guard_fill_allocated(g, b);
    }
    void *address = (void *)(uintptr_t)b->address;
    guard_order_allocated(g, b);
    if (!enter_live(g, b)) {
        guard_give_back(g, b, true);
        gmd_fail(error, GMD_NO_MEMORY, "sanitizer: no host memory");
        return NULL;
    }
    return address;
}

void *guard_malloc(guard *g, size_t size, int device, cudaStream_t stream, gmd_error *error)
{
    launches_mute();
    void *memory = allocate(g, size, device, stream, error);
    launches_unmute();
    return memory;
}

/* --- other requests ----------------------------------------------------------------------- */

void guard_record_stream(guard *g, void *ptr, cudaStream_t stream)
{
    bool is_known = false;
    pthread_mutex_lock(&g->lock);
    guarded_block *b = block_set_find(&g->live, (uintptr_t)ptr);
    if (b && stream != b->stream) {
        for (uint32_t i = 0; i < b->recorded_count && i < GUARDED_STREAMS; i++) {
            is_known = is_known || b->recorded[i] == stream;
        }
        if (!is_known && b->recorded_count < GUARDED_STREAMS) {
            b->recorded[b->recorded_count] = stream;
        }
        b->recorded_count += !is_known;
    }
    void *memory = b && (b->is_plain || b->recorded_count > GUARDED_STREAMS)
                       ? (void *)(uintptr_t)b->memory
                       : NULL;
    order_block *ordered = b ? order_block_keep(b->order) : NULL;
    pthread_mutex_unlock(&g->lock);
    guard_order_recorded(g, ordered, stream);
    if (memory) {
        g->allocator.record_stream(memory, stream);
    }
}

void guard_pools_changed(guard *g, int change)
{
    atomic_fetch_add(&g->pools, change);
}

uint64_t guard_block_size(guard *g, const void *ptr)
{
    pthread_mutex_lock(&g->lock);
    const guarded_block *b = block_set_find(&g->live, (uintptr_t)ptr);
    uint64_t size = b ? b->size : 0;
    pthread_mutex_unlock(&g->lock);
    return size;
}

uint64_t guard_finish(guard *g)
{
    uint64_t count = guard_check(g);
    atomic_store(&g->is_finished, true);
    pthread_mutex_lock(&g->reporting);
    report_figures figures = g->figures;
    for (int device = 0; device < g->device_count; device++) {
        if (g->devices[device].is_ready) {
            figures.lost_finds += sweeps_lost(g->sweeps, device);
        }
    }
    report_summary(g->report, &figures);
    pthread_mutex_unlock(&g->reporting);
    return count;
}

/* --- the guard itself --------------------------------------------------------------------- */

static gmd_status start_unmapping(guard *g, gmd_error *error)
{
    if (g->options.unmap_bytes == UNMAP_NEVER) {
        return GMD_OK;
    }
    g->recent = recent_works_create();
    return g->recent ? mappings_create(&g->mappings, g->device_count, error)
                     : gmd_fail(error, GMD_NO_MEMORY, "sanitizer: no host memory");
}

gmd_status guard_create(guard **made, const sanitizer_options *options,
                        const guard_allocator *allocator, sweeps *s, int device_count,
                        gmd_error *error)
{
    guard *g = calloc(1, sizeof *g);
    device_part *devices = calloc((size_t)device_count, sizeof *devices);
    watch *watches = calloc(WATCHES, sizeof *watches);
    report *r = report_create(options, allocator->stack_text);
    if (!g || !devices || !watches || !r) {
        free(g);
        free(devices);
        free(watches);
        report_destroy(r);
        return gmd_fail(error, GMD_NO_MEMORY, "sanitizer: no host memory");
    }
    g->options = *options;
    g->allocator = *allocator;
    g->sweeps = s;
    g->report = r;
    g->device_count = device_count;
    g->keeps_index =
        options->watches_order || options->watches_reads || options->unmap_bytes != UNMAP_NEVER;
    g->devices = devices;
    g->watches = watches;
    g->next_check_ns = options->interval_ns ? guard_now_ns() + options->interval_ns : 0;
    pthread_mutex_init(&g->preparing, NULL);
    pthread_mutex_init(&g->lock, NULL);
    pthread_mutex_init(&g->reporting, NULL);
    g->lowest = UINT64_MAX;
    gmd_status status = start_unmapping(g, error);
    if (status != GMD_OK) {
        g->sweeps = NULL; /* still the caller's */
        guard_destroy(g);
        return status;
    }
    guard_order_start(g);
    *made = g;
    return GMD_OK;
}

static void forget(guard *g, guarded_block *b)
{
    if (b) {
        guard_order_dropped(g, b);
        free(b);
    }
}

static void forget_blocks(guard *g, int device)
{
    device_part *d = &g->devices[device];
    for (uint32_t i = 0; i < d->gathered.count; i++) {
        forget(g, d->gathered.blocks[i]);
    }
    for (guarded_block *b; (b = ready_blocks_take_any(&d->ready)) != NULL;) {
        forget(g, b);
    }
    quarantine *const parts[] = {&d->held, &d->going, &d->gone};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        for (guarded_block *b; (b = quarantine_take_beyond(parts[i], 0, 0)) != NULL;) {
            forget(g, b);
        }
    }
}

static void forget_all_blocks(guard *g)
{
    for (size_t i = 0; g->live.slots && i <= g->live.mask; i++) {
        forget(g, g->live.slots[i]);
    }
    for (int device = 0; device < g->device_count; device++) {
        forget_blocks(g, device);
    }
    block_set_release(&g->live);
    block_index_release(&g->index);
}

void guard_destroy(guard *g)
{
    if (!g) {
        return;
    }
    guard_order_mute(g);
    forget_all_blocks(g);
    guard_order_stop(g);
    for (int device = 0; device < g->device_count; device++) {
        if (g->devices[device].side) {
            cuda_succeeded(cudaStreamDestroy(g->devices[device].side));
        }
    }
    sweeps_close(g->sweeps);
    mappings_destroy(g->mappings);
    recent_works_destroy(g->recent);
    report_destroy(g->report);
    pthread_mutex_destroy(&g->preparing);
    pthread_mutex_destroy(&g->lock);
    pthread_mutex_destroy(&g->reporting);
    free(g->devices);
    free(g->watches);
    free(g);
}
