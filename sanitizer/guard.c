#define _GNU_SOURCE
#include "guard.h"

#include "block_index.h"
#include "block_set.h"
#include "patterns.h"
#include "quarantine.h"

#include "gmd_cuda_scope.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ALIGNMENT = 512, WATCHES = 1 << 16, GATHERED = 32, SETTLE_US = 2000 };

/* What a verification was about, kept until its ticket comes round again. */
typedef struct watch {
    guarded_block block;
    finding_moment moment;
    uint64_t expected;
    uint32_t stack; /* of a read */
    bool is_reported;
} watch;

typedef struct device_part {
    quarantine held;
    cudaStream_t
        side; /* for blocks that several streams use: their fills wait there for all of them */
    bool is_ready;
} device_part;

struct guard {
    sanitizer_options options;
    guard_allocator allocator;
    sweeps *sweeps;
    report *report;
    int device_count;
    device_part *devices;
    watch *watches;
    _Atomic uint32_t next_ticket;
    _Atomic uint64_t next_check_ns;
    _Atomic bool is_finished;
    _Atomic uint64_t raised; /* findings */
    pthread_mutex_t preparing;
    pthread_mutex_t lock; /* this and below */
    block_set live;
    block_index index; /* of live blocks and those held back */
    uint64_t block_count, zone_bytes, held_bytes;
    report_figures figures;
    pthread_mutex_t reporting; /* the report, and reading finds; taken before `lock` */
};

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

static uint64_t round_up(uint64_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* --- findings ----------------------------------------------------------------------------- */

static finding_kind kind_of(const watch *w, const sweep_find *find)
{
    uint64_t changed = find->first;
    if (w->moment == MOMENT_READ) {
        return find->word == PATTERN_FREED ? FINDING_READ_AFTER_FREE : FINDING_UNINITIALISED_READ;
    }
    return w->expected == PATTERN_FREED ? FINDING_WRITE_AFTER_FREE
           : changed < w->block.address ? FINDING_WRITE_BEFORE_START
                                        : FINDING_WRITE_PAST_END;
}

/* Who has the memory now: a live block, or one that was freed later. */
static void find_owner(guard *g, finding *f)
{
    pthread_mutex_lock(&g->lock);
    const guarded_block *owner = block_index_find(&g->index, f->changed.first);
    if (owner && owner->number != f->block.number) {
        f->owner = *owner;
    }
    pthread_mutex_unlock(&g->lock);
}

/* The block was live when its read was queued: by now its free may be known. */
static void find_freed(guard *g, guarded_block *block)
{
    pthread_mutex_lock(&g->lock);
    const guarded_block *held = block_index_find(&g->index, block->address);
    if (held && held->number == block->number) {
        *block = *held;
    }
    pthread_mutex_unlock(&g->lock);
}

static void report_change(guard *g, const sweep_find *find, uint32_t current_stack)
{
    watch *w = &g->watches[find->ticket % WATCHES];
    if (w->is_reported) {
        return;
    }
    w->is_reported = true;
    finding f = {.kind = kind_of(w, find),
                 .moment = w->moment,
                 .block = w->block,
                 .changed = *find,
                 .expected = w->expected,
                 .current_stack = w->moment == MOMENT_READ ? w->stack : current_stack,
                 .now_ns = now_ns()};
    if (w->moment == MOMENT_READ) {
        find_freed(g, &f.block);
    } else {
        find_owner(g, &f);
    }
    report_finding(g->report, &f);
}

/* The parts of one change, which thread blocks found each. */
static void merge_find(sweep_find *all, const sweep_find *part)
{
    if (part->first < all->first) {
        all->first = part->first;
        all->word = part->word;
    }
    all->last = part->last > all->last ? part->last : all->last;
    all->changed += part->changed;
}

static size_t gather_finds(guard *g, int device, sweep_find gathered[GATHERED])
{
    size_t count = 0;
    sweep_find part;
    while (count < GATHERED && sweeps_next(g->sweeps, device, &part)) {
        size_t at = 0;
        while (at < count && gathered[at].ticket != part.ticket) {
            at++;
        }
        if (at < count) {
            merge_find(&gathered[at], &part);
        } else {
            gathered[count++] = part;
        }
    }
    return count;
}

/* The first find may come while the kernel still runs. */
static void read_finds(guard *g, int device, uint32_t current_stack)
{
    sweep_find gathered[GATHERED];
    size_t count;
    pthread_mutex_lock(&g->reporting);
    (void)usleep(SETTLE_US);
    while ((count = gather_finds(g, device, gathered)) > 0) {
        for (size_t i = 0; i < count; i++) {
            report_change(g, &gathered[i], current_stack);
        }
    }
    pthread_mutex_unlock(&g->reporting);
}

static void poll(guard *g, uint32_t current_stack)
{
    for (int device = 0; device < g->device_count; device++) {
        if (g->devices[device].is_ready && sweeps_have_news(g->sweeps, device)) {
            read_finds(g, device, current_stack);
        }
    }
}

/* --- verifying ---------------------------------------------------------------------------- */

static uint32_t watch_block(guard *g, const guarded_block *block, finding_moment moment,
                            uint64_t expected)
{
    uint32_t ticket = atomic_fetch_add(&g->next_ticket, 1);
    g->watches[ticket % WATCHES] = (watch){.block = *block, .moment = moment, .expected = expected};
    return ticket;
}

static sweep_range part_of(uint64_t from, uint64_t to, uint32_t flags, uint64_t expected,
                           uint64_t written, uint32_t ticket)
{
    return (sweep_range){.address = from,
                         .bytes = to - from,
                         .expected = expected,
                         .written = written,
                         .flags = flags,
                         .ticket = ticket};
}

/* Both zones are verified, written, or both. Gives the number of ranges. */
static uint32_t zones_of(const guarded_block *b, uint32_t flags, uint64_t written, uint32_t ticket,
                         sweep_range *out)
{
    uint64_t end = b->address + b->size;
    out[0] = part_of(b->memory, b->address, flags, PATTERN_ZONE, written, ticket);
    out[1] = part_of(end, b->memory + b->total, flags, PATTERN_ZONE, written, ticket);
    return 2;
}

static cudaError_t fill_new(guard *g, const guarded_block *b)
{
    sweep_range ranges[3];
    uint32_t count = zones_of(b, SWEEP_WRITE, PATTERN_ZONE, 0, ranges);
    if (g->options.fills_fresh) {
        ranges[count++] =
            part_of(b->address, b->address + b->size, SWEEP_WRITE, 0, PATTERN_FRESH, 0);
    }
    return sweeps_run(g->sweeps, b->device, b->stream, ranges, count);
}

static cudaError_t fill_freed(guard *g, const guarded_block *b, cudaStream_t stream)
{
    sweep_range ranges[3];
    uint32_t ticket = watch_block(g, b, MOMENT_FREE, PATTERN_ZONE);
    uint32_t count = zones_of(b, SWEEP_VERIFY | SWEEP_WRITE, PATTERN_FREED, ticket, ranges);
    ranges[count++] = part_of(b->address, b->address + b->size, SWEEP_WRITE, 0, PATTERN_FREED, 0);
    return sweeps_run(g->sweeps, b->device, stream, ranges, count);
}

static cudaError_t verify_freed(guard *g, const guarded_block *b)
{
    uint32_t ticket = watch_block(g, b, MOMENT_REUSE, PATTERN_FREED);
    sweep_range range =
        part_of(b->memory, b->memory + b->total, SWEEP_VERIFY, PATTERN_FREED, 0, ticket);
    return sweeps_run(g->sweeps, b->device, b->stream, &range, 1);
}

/* --- free --------------------------------------------------------------------------------- */

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

/* Work of the recorded streams is waited for on a stream of our own, so that the block's own stream
 * goes on. */
static bool fill_beside(guard *g, guarded_block *b)
{
    cudaStream_t side = g->devices[b->device].side;
    bool is_ordered = order_after(side, b->stream);
    for (uint32_t i = 0; i < b->recorded_count && is_ordered; i++) {
        is_ordered = order_after(side, b->recorded[i]);
    }
    if (!is_ordered || fill_freed(g, b, side) != cudaSuccess ||
        !cuda_succeeded(cudaEventCreateWithFlags(&b->filled, cudaEventDisableTiming))) {
        return false;
    }
    return cuda_succeeded(cudaEventRecord(b->filled, side));
}

static void fill(guard *g, guarded_block *b)
{
    cuda_scope scope;
    if (b->recorded_count > GUARDED_STREAMS || !cuda_scope_enter(&scope, b->device)) {
        return;
    }
    if (!is_captured(b)) {
        b->is_filled =
            b->recorded_count ? fill_beside(g, b) : fill_freed(g, b, b->stream) == cudaSuccess;
    }
    cuda_scope_leave(&scope);
}

/* What was not filled, or not to the end, waits for its streams as without a sanitizer. */
static void give_back(guard *g, guarded_block *b, bool is_ordered)
{
    void *memory = (void *)(uintptr_t)b->memory;
    for (uint32_t i = 0; i < b->recorded_count && i < GUARDED_STREAMS && !is_ordered; i++) {
        g->allocator.record_stream(memory, b->recorded[i]);
    }
    if (b->filled) {
        cuda_succeeded(cudaEventDestroy(b->filled));
    }
    g->allocator.free(memory, b->total, b->device, b->stream);
    free(b);
}

static void release_block(guard *g, guarded_block *b)
{
    cuda_scope scope;
    bool is_ordered = false;
    if (b->is_filled && cuda_scope_enter(&scope, b->device)) {
        if (!cuda_is_capturing(b->stream)) {
            is_ordered = !b->filled || cuda_succeeded(cudaStreamWaitEvent(b->stream, b->filled, 0));
            is_ordered = is_ordered && verify_freed(g, b) == cudaSuccess;
        }
        cuda_scope_leave(&scope);
    }
    pthread_mutex_lock(&g->lock);
    g->figures.verified_blocks += is_ordered;
    g->figures.unwatched_blocks += !is_ordered;
    pthread_mutex_unlock(&g->lock);
    give_back(g, b, is_ordered);
}

static void release_beyond(guard *g, int device, uint64_t bytes, uint32_t count)
{
    guarded_block *b;
    do {
        pthread_mutex_lock(&g->lock);
        b = quarantine_take_beyond(&g->devices[device].held, bytes, count);
        if (b) {
            g->held_bytes -= b->total;
            block_index_remove(&g->index, b);
        }
        pthread_mutex_unlock(&g->lock);
        if (b) {
            release_block(g, b);
        }
    } while (b);
}

void guard_release_all(guard *g)
{
    for (int device = 0; device < g->device_count; device++) {
        release_beyond(g, device, 0, 0);
    }
    g->allocator.empty_cache();
}

static void hold_back(guard *g, guarded_block *b)
{
    pthread_mutex_lock(&g->lock);
    quarantine_add(&g->devices[b->device].held, b);
    g->held_bytes += b->total;
    if (g->held_bytes > g->figures.quarantine_peak_bytes) {
        g->figures.quarantine_peak_bytes = g->held_bytes;
    }
    pthread_mutex_unlock(&g->lock);
}

static guarded_block *take_live(guard *g, const void *ptr)
{
    pthread_mutex_lock(&g->lock);
    guarded_block *b = block_set_take(&g->live, (uintptr_t)ptr);
    if (b) {
        g->figures.frees++;
        g->zone_bytes -= b->total - b->size;
        if (b->is_plain || atomic_load(&g->is_finished)) {
            block_index_remove(&g->index, b);
        }
    }
    pthread_mutex_unlock(&g->lock);
    return b;
}

static void refuse_free(guard *g, const void *ptr, uint32_t stack)
{
    finding f = {.kind = FINDING_BAD_FREE,
                 .block = {.address = (uintptr_t)ptr},
                 .current_stack = stack,
                 .now_ns = now_ns()};
    pthread_mutex_lock(&g->reporting);
    report_finding(g->report, &f);
    pthread_mutex_unlock(&g->reporting);
}

static void launch_checks(guard *g);

void guard_free(guard *g, void *ptr)
{
    bool is_finished = atomic_load(&g->is_finished);
    uint32_t stack = is_finished ? 0 : g->allocator.keep_stack();
    guarded_block *b = take_live(g, ptr);
    if (!b) {
        refuse_free(g, ptr, stack);
        return;
    }
    int device = b->device;
    if (b->is_plain || is_finished) { /* take_live has taken it out of the index, too */
        give_back(g, b, false);
        return;
    }
    b->freed_stack = stack;
    b->freed_ns = now_ns();
    fill(g, b);
    uint64_t due = atomic_load(&g->next_check_ns);
    bool is_due = due && b->freed_ns >= due &&
                  atomic_compare_exchange_strong(&g->next_check_ns, &due,
                                                 b->freed_ns + g->options.interval_ns);
    hold_back(g, b);
    release_beyond(g, device, g->options.quarantine_bytes, g->options.quarantine_blocks);
    if (is_due) {
        launch_checks(g);
    }
    poll(g, stack);
}

/* --- malloc ------------------------------------------------------------------------------- */

static bool prepare(guard *g, int device, gmd_error *error)
{
    cuda_scope scope;
    device_part *d = &g->devices[device];
    if (__atomic_load_n(&d->is_ready, __ATOMIC_ACQUIRE)) {
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
        __atomic_store_n(&d->is_ready, is_ready, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&g->preparing);
    cuda_scope_leave(&scope);
    return is_ready;
}

/* What is held back goes first when memory is short. */
static void *request(guard *g, uint64_t bytes, int device, cudaStream_t stream)
{
    void *memory = g->allocator.malloc(bytes, device, stream);
    if (!memory && g->devices[device].held.count) {
        release_beyond(g, device, 0, 0);
        memory = g->allocator.malloc(bytes, device, stream);
    }
    return memory;
}

/* False: no host memory. */
static bool enter_live(guard *g, guarded_block *b)
{
    pthread_mutex_lock(&g->lock);
    b->number = ++g->block_count;
    if (!block_index_add(&g->index, b)) {
        pthread_mutex_unlock(&g->lock);
        return false;
    }
    if (!block_set_add(&g->live, b)) {
        block_index_remove(&g->index, b);
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

static bool is_in_capture(guard *g, int device, cudaStream_t stream)
{
    cuda_scope scope;
    if (!cuda_scope_enter(&scope, device)) {
        return true;
    }
    bool is = cuda_is_capturing(stream);
    cuda_scope_leave(&scope);
    (void)g;
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

static void guard_new(guard *g, guarded_block *b)
{
    cuda_scope scope;
    if (b->is_plain) {
        return;
    }
    b->is_plain = true; /* where the device takes no work, there is nothing to watch */
    if (cuda_scope_enter(&scope, b->device)) {
        b->is_plain = fill_new(g, b) != cudaSuccess;
        cuda_scope_leave(&scope);
    }
}

void *guard_malloc(guard *g, size_t size, int device, cudaStream_t stream, gmd_error *error)
{
    bool is_finished = atomic_load(&g->is_finished);
    uint32_t stack = is_finished ? 0 : g->allocator.keep_stack();
    poll(g, stack);
    if (device < 0 || device >= g->device_count || size > UINT64_MAX / 2 ||
        raise_finding(g, error)) {
        return NULL;
    }
    bool is_plain = is_finished || is_in_capture(g, device, stream);
    if (!is_plain && !prepare(g, device, error)) {
        return NULL;
    }
    guarded_block *b = malloc(sizeof *b);
    if (!b) {
        gmd_fail(error, GMD_NO_MEMORY, "sanitizer: no host memory");
        return NULL;
    }
    *b = (guarded_block){.size = size,
                         .device = device,
                         .stream = stream,
                         .allocated_stack = stack,
                         .is_plain = is_plain};
    place_block(g, b);
    void *memory = request(g, b->total, device, stream);
    if (!memory) {
        free(b);
        return NULL;
    }
    b->memory = (uintptr_t)memory;
    b->address += b->memory;
    void *address = (void *)(uintptr_t)b->address;
    guard_new(g, b);
    if (!enter_live(g, b)) {
        give_back(g, b, true);
        gmd_fail(error, GMD_NO_MEMORY, "sanitizer: no host memory");
        return NULL;
    }
    return address;
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
    pthread_mutex_unlock(&g->lock);
    if (memory) {
        g->allocator.record_stream(memory, stream);
    }
}

uint64_t guard_block_size(guard *g, const void *ptr)
{
    pthread_mutex_lock(&g->lock);
    const guarded_block *b = block_set_find(&g->live, (uintptr_t)ptr);
    uint64_t size = b ? b->size : 0;
    pthread_mutex_unlock(&g->lock);
    return size;
}

/* --- reads -------------------------------------------------------------------------------- */

/* The block was freed before the read was queued: no kernel has to look. */
static void report_stale_read(guard *g, const guarded_block *b, uint64_t address, size_t size,
                              uint32_t stack)
{
    finding f = {.kind = FINDING_READ_AFTER_FREE,
                 .moment = MOMENT_READ,
                 .block = *b,
                 .changed = {.first = address,
                             .last = address + size - 1,
                             .changed = size,
                             .word = PATTERN_FREED},
                 .expected = PATTERN_FREED,
                 .current_stack = stack,
                 .now_ns = now_ns()};
    pthread_mutex_lock(&g->reporting);
    report_finding(g->report, &f);
    pthread_mutex_unlock(&g->reporting);
}

/* False: it is none of ours. */
static bool find_read(guard *g, uint64_t address, guarded_block *out)
{
    pthread_mutex_lock(&g->lock);
    const guarded_block *b = block_index_find(&g->index, address);
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
        report_stale_read(g, &b, address, size, stack);
        return;
    }
    uint32_t ticket = watch_block(g, &b, MOMENT_READ, PATTERN_FREED);
    g->watches[ticket % WATCHES].stack = stack;
    uint64_t also = seeks_fresh && g->options.fills_fresh ? PATTERN_FRESH : PATTERN_FREED;
    sweep_range range = part_of(address, address + size, SWEEP_SEEK, PATTERN_FREED, also, ticket);
    if (cuda_scope_enter(&scope, b.device)) {
        if (!cuda_is_capturing(stream)) {
            (void)sweeps_run(g->sweeps, b.device, stream, &range, 1);
        }
        cuda_scope_leave(&scope);
    }
    poll(g, stack);
}

/* --- checks ------------------------------------------------------------------------------- */

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
    if (b->device != device || b->stream != stream || b->count + 2 > SWEEP_MANY) {
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
        if (g->live.slots[i] && !g->live.slots[i]->is_plain) {
            blocks[count++] = g->live.slots[i];
        }
    }
    if (count) {
        qsort(blocks, count, sizeof *blocks, compare_streams);
    }
    for (size_t i = 0; i < count; i++) {
        begin_stream(b, blocks[i]->device, blocks[i]->stream);
        uint32_t ticket = watch_block(g, blocks[i], MOMENT_CHECK, PATTERN_ZONE);
        b->count += zones_of(blocks[i], SWEEP_VERIFY | SWEEP_WRITE, PATTERN_ZONE, ticket,
                             &b->ranges[b->count]);
    }
    run_batch(b);
    free(blocks);
}

static void check_held(batch *b, int device)
{
    const device_part *d = &b->guard->devices[device];
    for (const guarded_block *h = d->held.oldest; h; h = h->next) {
        if (h->is_filled) {
            begin_stream(b, device, h->filled ? d->side : h->stream);
            uint32_t ticket = watch_block(b->guard, h, MOMENT_CHECK, PATTERN_FREED);
            b->ranges[b->count++] =
                part_of(h->memory, h->memory + h->total, SWEEP_VERIFY | SWEEP_WRITE, PATTERN_FREED,
                        PATTERN_FREED, ticket);
        }
    }
    run_batch(b);
}

/* Under the lock, so that no block is freed and filled between. */
static void launch_checks(guard *g)
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

static const char *wait_for_devices(guard *g)
{
    const char *failed = NULL;
    for (int device = 0; device < g->device_count; device++) {
        cuda_scope scope;
        if (!g->devices[device].is_ready || !cuda_scope_enter(&scope, device)) {
            continue;
        }
        cudaError_t result = cudaDeviceSynchronize();
        failed = result == cudaSuccess ? failed : cudaGetErrorString(result);
        cuda_succeeded(result);
        cuda_scope_leave(&scope);
    }
    return failed;
}

uint64_t guard_check(guard *g)
{
    uint32_t stack = g->allocator.keep_stack();
    launch_checks(g);
    const char *failed = wait_for_devices(g);
    poll(g, stack);
    pthread_mutex_lock(&g->lock);
    g->figures.incomplete = failed;
    pthread_mutex_unlock(&g->lock);
    pthread_mutex_lock(&g->reporting);
    uint64_t count = report_count(g->report);
    pthread_mutex_unlock(&g->reporting);
    return count;
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
    g->devices = devices;
    g->watches = watches;
    g->next_check_ns = options->interval_ns ? now_ns() + options->interval_ns : 0;
    pthread_mutex_init(&g->preparing, NULL);
    pthread_mutex_init(&g->lock, NULL);
    pthread_mutex_init(&g->reporting, NULL);
    *made = g;
    return GMD_OK;
}

void guard_destroy(guard *g)
{
    if (!g) {
        return;
    }
    for (size_t i = 0; g->live.slots && i <= g->live.mask; i++) {
        free(g->live.slots[i]);
    }
    block_set_release(&g->live);
    block_index_release(&g->index);
    for (int device = 0; device < g->device_count; device++) {
        for (guarded_block *b; (b = quarantine_take_beyond(&g->devices[device].held, 0, 0));) {
            free(b);
        }
        if (g->devices[device].side) {
            cuda_succeeded(cudaStreamDestroy(g->devices[device].side));
        }
    }
    sweeps_close(g->sweeps);
    report_destroy(g->report);
    pthread_mutex_destroy(&g->preparing);
    pthread_mutex_destroy(&g->lock);
    pthread_mutex_destroy(&g->reporting);
    free(g->devices);
    free(g->watches);
    free(g);
}
