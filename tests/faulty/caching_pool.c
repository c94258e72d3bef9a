/* caching_pool.c - a suballocating pool in the design of PyTorch's CUDACachingAllocator
 * (https://pytorch.org/docs/stable/notes/cuda.html#memory-management), in small. Requests up to
 * 1 MiB are cut from segments of 2 MiB, those below 10 MiB from segments of 20 MiB, larger ones
 * have a segment of their own; what is left of a block is a block, and free neighbours are merged.
 * A free block serves its own stream only, the smallest that fits first. A block that other streams
 * were recorded for waits, when it is freed, for an event on each of them.
 *
 * A request that no free block serves takes a segment; before the limit is near, old segments that
 * nobody uses are given back (garbage collection). When the device or the limit refuses, as many of
 * the largest cached segments are given back as make up for it; then all that are free, once the
 * host has waited for the blocks that wait; and since these may serve, too, the free blocks are
 * looked at again. While the stream of the request is captured nothing is given back, asked or
 * waited for; a block that waits for a captured stream does so from when the capture is over, but
 * for what the captured graph says (caching_joins.c). Private pools are in caching_routes.c, their
 * checkpoints in caching_checkpoints.c.
 *
 * Defects, each with what goes wrong; docs/planted-defects.md has the rest. */
#include "caching_pool.h"

#include <stdlib.h>
#include <string.h>

const char *const faulty_defects[] = {"pytorch182446",
                                      "pytorch135726",
                                      "pytorch159567",
                                      "pytorch189504",
                                      "pytorch71616",
                                      "pytorch19219",
                                      "pytorch66936",
                                      "pytorch185240",
                                      "tensorsharp104",
                                      "rmm2002",
                                      "paddle64621",
                                      "paddle79605",
                                      "vllm37111",
                                      "vllm36651",
                                      "ort32342",
                                      "cudajl778",
                                      "dali2988",
                                      "first_stream_only",
                                      "wrong_device",
                                      "rounds_down",
                                      "lost_remainder",
                                      "remainder_early",
                                      "peak_not_kept",
                                      "cap_after",
                                      "pending_kept",
                                      "small_kept",
                                      "merges_pending",
                                      "pytorch175015",
                                      "pytorch175560",
                                      "pytorch145168",
                                      "pytorch114320",
                                      "fraction_of_free",
                                      "pytorch190348",
                                      "pytorch159594",
                                      "llamacpp26771",
                                      "pytorch106235",
                                      "capture_ignores_record",
                                      "mode_left",
                                      "restore_lists_live",
                                      "restore_uncounted",
                                      "restore_untold",
                                      "restore_leaves_one",
                                      "small_split",
                                      "lent_first",
                                      "lent_forgotten",
                                      "source_passed_by",
                                      "joins_own",
                                      "source_not_told",
                                      NULL};

pool pools[FAULTY_DEVICES];
block *live;
uint64_t request_count;
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static block *find_live(const void *pointer)
{
    block *b = live;
    while (b && b->address != (uintptr_t)pointer) {
        b = b->next;
    }
    return b;
}

/* --- events -------------------------------------------------------------------------------- */

/* What waits is kept in the order of the frees; each block for its own events only. */
static void end_wait(pool *p, size_t i)
{
    block *b = p->waits[i].block;
    if (!faulty_is(PADDLE64621)) {
        cudaEventDestroy(p->waits[i].event);
    }
    p->wait_count--;
    memmove(&p->waits[i], &p->waits[i + 1], (p->wait_count - i) * sizeof p->waits[0]);
    if (b && --b->waits == 0 && !b->is_used) {
        give_to_list(b);
    }
}

static void look_at_events(pool *p)
{
    for (size_t i = 0; i < p->wait_count;) {
        cudaError_t answer = cudaEventQuery(p->waits[i].event);
        if (answer == cudaSuccess) {
            end_wait(p, i);
            continue;
        }
        if (answer != cudaErrorNotReady) {
            cudaGetLastError();
        }
        if (faulty_is(PYTORCH71616)) {
            return;
        }
        i++;
    }
}

static void wait_for_events(pool *p)
{
    for (size_t i = 0; i < p->wait_count;) {
        if (cudaEventSynchronize(p->waits[i].event) == cudaSuccess) {
            end_wait(p, i);
        } else {
            cudaGetLastError();
            i++;
        }
    }
}

/* Without host memory the process ends: the block would be lost. */
static void *grow(void *items, size_t count, size_t item_size)
{
    void *grown = realloc(items, count * item_size);
    if (!grown) {
        abort();
    }
    return grown;
}

static void wait_on_host(cudaStream_t stream)
{
    cudaGetLastError();
    capture_mode mode = relax(); /* another stream may be captured */
    if (cudaStreamSynchronize(stream) != cudaSuccess) {
        cudaGetLastError();
    }
    unrelax(mode);
}

/* The block waits for all that is on the stream now; the host does, where there is no event. */
static bool wait_for_stream(pool *p, block *b, cudaStream_t stream)
{
    cudaEvent_t event = NULL;
    if (cudaEventCreateWithFlags(&event, cudaEventDisableTiming) != cudaSuccess) {
        wait_on_host(stream);
        return true;
    }
    if (cudaEventRecord(event, faulty_is(CUDAJL778) ? b->stream : stream) != cudaSuccess) {
        cudaEventDestroy(event);
        wait_on_host(stream);
        return !faulty_is(PYTORCH66936);
    }
    if (p->wait_count == p->wait_capacity) {
        p->wait_capacity = p->wait_capacity ? p->wait_capacity * 2 : 16;
        p->waits = grow(p->waits, p->wait_capacity, sizeof p->waits[0]);
    }
    p->waits[p->wait_count++] = (wait){event, b};
    b->waits++;
    return true;
}

static bool has_captured(const block *b)
{
    uint32_t i = 0;
    while (i < b->recorded_count && !is_captured(b->recorded[i])) {
        i++;
    }
    return i < b->recorded_count;
}

static bool wait_for_recorded(pool *p, block *b)
{
    uint32_t count = b->recorded_count;
    bool is_kept = true;
    if (faulty_is(FIRST_STREAM_ONLY) && count > 1) {
        count = 1;
    }
    for (uint32_t i = 0; i < count && is_kept; i++) {
        is_kept = wait_for_stream(p, b, b->recorded[i]);
    }
    free(b->recorded);
    b->recorded = NULL;
    b->recorded_count = 0;
    return is_kept;
}

/* The freed block waits for the streams that were recorded for it, as soon as that can be had. */
static void let_go(pool *p, block *b)
{
    bool is_of_graph = b->owner && b->owner == p->open && p->privates[b->owner - 1].is_captured;
    if (faulty_is(CAPTURE_IGNORES_RECORD) && is_of_graph) {
        b->recorded_count = 0;
    }
    if (b->recorded_count && has_captured(b)) {
        b->is_deferred = true;
        if (!b->joins) {
            note_joins(b);
        }
        b->next = p->deferred;
        p->deferred = b;
        return;
    }
    forget_joins(b);
    if (wait_for_recorded(p, b) && !b->waits) {
        give_to_list(b);
    }
}

/* Captures may be over. */
static void look_at_deferred(pool *p)
{
    block *next, *list = p->deferred;
    p->deferred = NULL;
    for (block *b = list; b; b = next) {
        next = b->next;
        b->is_deferred = false;
        let_go(p, b);
    }
}

/* --- segments ------------------------------------------------------------------------------ */

static uint64_t segment_size(uint64_t size)
{
    if (size <= SMALL_MAX) {
        return SMALL_SEGMENT;
    }
    return size < LARGE_MIN ? LARGE_SEGMENT : round_up(size, 2 * MIB);
}

static bool is_segment(const block *b)
{
    return !b->before && !b->after;
}

/* A free block that is its segment. */
static void release_segment(block *b)
{
    gmd_stats *s = &pools[b->device].stats;
    unlist_block(b);
    faulty_count_segment_freed(s, b->size);
    if (faulty_is(PEAK_NOT_KEPT)) {
        s->reserved_bytes_peak = s->reserved_bytes;
    }
    void *memory = (void *)(uintptr_t)b->address; /* NOLINT(performance-no-int-to-ptr) */
    const gmd_pool_memory *source = source_of(&pools[b->device], b->owner);
    if (source && b->is_from_source && !faulty_is(SOURCE_NOT_TOLD)) {
        source->release(source->context, memory, b->size, b->device);
    } else if (cudaFree(memory) != cudaSuccess) {
        cudaGetLastError();
    }
    note_segment(&pools[b->device], b->owner, false);
    free(b);
}

static void release_list(block *list)
{
    for (block *b = list, *next; b; b = next) {
        next = b->next;
        bool is_forgotten = faulty_is(PYTORCH145168) && is_given_up(&pools[b->device], b->owner);
        if (is_segment(b) && !is_forgotten && !is_kept_for_graphs(&pools[b->device], b->owner)) {
            release_segment(b);
        }
    }
}

static block *oldest_segment(const pool *p)
{
    block *oldest = NULL;
    for (block *b = p->large; b; b = b->next) {
        if (is_segment(b) && !is_kept_for_graphs(p, b->owner) &&
            (!oldest || b->freed_at < oldest->freed_at)) {
            oldest = b;
        }
    }
    return oldest;
}

/* Before the limit is near: the segments that nobody has used for longest. */
static void collect_garbage(pool *p, uint64_t wanted)
{
    uint64_t threshold = p->limit / 100 * GC_PERCENT;
    while (p->limit && p->stats.reserved_bytes + wanted > threshold) {
        block *b = oldest_segment(p);
        if (!b) {
            return;
        }
        uint64_t size = b->size;
        release_segment(b);
        if (faulty_is(VLLM37111)) {
            p->stats.reserved_bytes += size;
        }
    }
}

static block *largest_segment(const pool *p)
{
    block *largest = NULL;
    for (block *b = p->large; b; b = b->next) {
        if (is_segment(b) && b->size > SPLIT_MAX && !is_kept_for_graphs(p, b->owner) &&
            (!largest || b->size > largest->size)) {
            largest = b;
        }
    }
    return largest;
}

/* That of the segment after the last one cannot be read. */
static uint64_t size_of_next(const block *b)
{
    if (!b) {
        abort();
    }
    return b->size;
}

/* The largest cached segments, until as much is given back as is wanted. */
static bool release_enough(pool *p, uint64_t wanted)
{
    uint64_t released = 0;
    for (block *b = largest_segment(p); b && released < wanted;) {
        uint64_t size = b->size;
        release_segment(b);
        b = largest_segment(p);
        released += faulty_is(PYTORCH159567) ? size_of_next(b) : size;
    }
    return released >= wanted;
}

static bool is_within_limit(const pool *p, uint64_t size)
{
    bool is_own = size > LARGE_SEGMENT && faulty_is(PADDLE79605);
    return !p->limit || is_own || p->stats.reserved_bytes + size <= p->limit;
}

/* The device is asked with the lock held, so that nobody else passes the limit meanwhile. */
static cudaError_t take_memory(void **memory, uint64_t size)
{
    if (faulty_is(DALI2988)) {
        pthread_mutex_unlock(&lock);
    }
    capture_mode mode = relax();
    cudaError_t result = cudaMalloc(memory, size);
    unrelax(mode);
    if (faulty_is(DALI2988)) {
        pthread_mutex_lock(&lock);
    }
    return result;
}

/* From where the owner has its memory. */
static bool take_segment(pool *p, block *b, uint64_t bytes, void **memory)
{
    const gmd_pool_memory *source = source_of(p, b->owner);
    b->is_from_source = source && !(faulty_is(SOURCE_PASSED_BY) && bytes > LARGE_SEGMENT);
    if (b->is_from_source) {
        capture_mode mode = relax();
        *memory = source->allocate(source->context, bytes, b->device);
        unrelax(mode);
        return *memory;
    }
    if (take_memory(memory, bytes) == cudaSuccess) {
        return true;
    }
    if (!faulty_is(VLLM36651)) {
        cudaGetLastError();
    }
    return false;
}

static block *add_segment(pool *p, int device, cudaStream_t stream, uint64_t size)
{
    void *memory = NULL;
    block *b = NULL;
    uint64_t bytes = segment_size(size);
    if ((!is_within_limit(p, bytes) && !faulty_is(CAP_AFTER)) || !(b = malloc(sizeof *b))) {
        return NULL;
    }
    *b = (block){.size = bytes,
                 .device = device,
                 .stream = stream,
                 .owner = owner_for(p, stream),
                 .is_large = size > SMALL_MAX};
    if (!take_segment(p, b, bytes, &memory)) {
        free(b);
        return NULL;
    }
    if (!is_within_limit(p, bytes) && faulty_is(CAP_AFTER)) {
        cudaFree(memory);
        free(b);
        return NULL;
    }
    faulty_count_segment(&p->stats, bytes);
    b->address = (uintptr_t)memory;
    note_segment(p, b->owner, true);
    return b;
}

static void release_cached(pool *p)
{
    release_list(p->small);
    release_list(p->large);
}

/* As if each private pool were that of a graph that is being captured. */
static bool is_held_off(const pool *p)
{
    return faulty_is(PYTORCH175015) && p->open;
}

static block *retry(pool *p, int device, cudaStream_t stream, uint64_t size)
{
    block *b = NULL;
    p->retries++;
    bool captures = is_captured(stream);
    if (is_held_off(p) || (captures && !faulty_is(PYTORCH159594))) {
        return NULL;
    }
    if (release_enough(p, segment_size(size))) {
        b = add_segment(p, device, stream, size);
    }
    if (b || captures) {
        return b;
    }
    if (!faulty_is(PYTORCH19219)) {
        wait_for_events(p);
    }
    release_cached(p);
    if (!faulty_is(PYTORCH189504)) {
        b = take_best(p, size, size > SMALL_MAX, stream);
    }
    b = b ? b : add_segment(p, device, stream, size);
    return b || faulty_is(LENT_FORGOTTEN) ? b : take_lent(p, size, size > SMALL_MAX, stream);
}

/* --- the ABI ------------------------------------------------------------------------------- */

static void refuse(pool *p)
{
    size_t unused, total;
    p->stats.num_ooms++;
    if (faulty_is(PYTORCH185240) && cudaMemGetInfo(&unused, &total) != cudaSuccess) {
        abort();
    }
}

static block *find_block(pool *p, int device, cudaStream_t stream, uint64_t size)
{
    bool captures = is_captured(stream);
    if (!is_held_off(p) && (!captures || faulty_is(PYTORCH106235))) {
        look_at_deferred(p);
        look_at_events(p);
    }
    if (captures) {
        note_capture(p, stream);
        look_at_joins(p, stream);
    }
    block *b = take_best(p, size, size > SMALL_MAX, stream);
    if (!b && faulty_is(LENT_FIRST)) {
        b = take_lent(p, size, size > SMALL_MAX, stream);
    }
    if (!b) {
        if (!captures) {
            collect_garbage(p, segment_size(size));
        }
        b = add_segment(p, device, stream, size);
    }
    return b ? b : retry(p, device, stream, size);
}

static void hand_out(pool *p, block *b, cudaStream_t stream, uint64_t size, uint64_t requested)
{
    split(b, size, requested);
    b->stream = stream;
    b->requested = requested;
    b->is_used = true;
    list_block(&live, b);
    b->is_listed = false;
    faulty_count_alloc(&p->stats, b->size, requested);
    p->active += b->size;
    p->active_peak = p->active > p->active_peak ? p->active : p->active_peak;
}

static uint64_t round_size(uint64_t size)
{
    if (faulty_is(ROUNDS_DOWN) && size > UNIT && size % UNIT == 1) {
        return size - 1;
    }
    return round_up(size ? size : 1, UNIT);
}

void *gmd_malloc(size_t size, int device, cudaStream_t stream)
{
    if (device < 0 || device >= FAULTY_DEVICES) {
        return NULL;
    }
    pool *p = &pools[device];
    faulty_guard guard = faulty_enter_device(device);
    pthread_mutex_lock(&lock);
    request_count++;
    block *b = NULL;
    if (size <= SIZE_MAX / 2 || faulty_is(PYTORCH182446)) {
        b = find_block(p, device, stream, round_size(size));
    }
    if (b) {
        hand_out(p, b, stream, round_size(size), size);
    } else {
        refuse(p);
    }
    void *memory = b ? (void *)(uintptr_t)b->address : NULL; /* NOLINT(performance-no-int-to-ptr) */
    pthread_mutex_unlock(&lock);
    faulty_leave_device(guard);
    return memory;
}

void gmd_free(void *pointer, size_t size, int device, cudaStream_t stream)
{
    (void)size;
    (void)stream;
    faulty_guard guard = {0};
    if (!faulty_is(WRONG_DEVICE)) {
        guard = faulty_enter_device(device);
    }
    pthread_mutex_lock(&lock);
    block *b = find_live(pointer);
    if (b) {
        pool *p = &pools[b->device];
        unlist_block(b);
        b->is_used = false;
        faulty_count_free(&p->stats, b->size, b->requested);
        if (faulty_is(TENSORSHARP104)) {
            p->active -= b->size - round_size(b->requested);
            b->size = round_size(b->requested);
        }
        bool is_lost =
            faulty_is(PYTORCH175560) && b->owner && b->owner == p->open && b->recorded_count;
        if (!is_lost) {
            let_go(p, b);
        }
    }
    pthread_mutex_unlock(&lock);
    faulty_leave_device(guard);
}

static void record(block *b, cudaStream_t stream)
{
    for (uint32_t i = 0; i < b->recorded_count; i++) {
        if (b->recorded[i] == stream) {
            return;
        }
    }
    b->recorded = grow(b->recorded, b->recorded_count + 1, sizeof *b->recorded);
    b->recorded[b->recorded_count++] = stream;
}

EXPORT void gmd_record_stream(void *pointer, cudaStream_t stream);
void gmd_record_stream(void *pointer, cudaStream_t stream)
{
    pthread_mutex_lock(&lock);
    block *b = find_live(pointer);
    if (b && b->stream != stream) {
        record(b, stream);
    }
    pthread_mutex_unlock(&lock);
}

/* The stream is about to go: what was recorded on it waits for an event now, which outlives it. */
static void forget(block *b, cudaStream_t stream)
{
    for (uint32_t i = 0; i < b->recorded_count; i++) {
        if (b->recorded[i] == stream) {
            b->recorded[i] = b->recorded[--b->recorded_count];
            wait_for_stream(&pools[b->device], b, stream);
            return;
        }
    }
}

EXPORT void gmd_forget_stream(int device, cudaStream_t stream);
void gmd_forget_stream(int device, cudaStream_t stream)
{
    if (faulty_is(PYTORCH66936)) {
        return;
    }
    faulty_guard guard = faulty_enter_device(device);
    pthread_mutex_lock(&lock);
    /* A new stream may get the handle, and with it the blocks that the old one's work still uses.
     */
    if (cudaStreamSynchronize(stream) != cudaSuccess) {
        cudaGetLastError();
        cudaDeviceSynchronize();
    }
    look_at_deferred(&pools[device]);
    for (block *b = live; b; b = b->next) {
        if (b->device == device) {
            forget(b, stream);
        }
    }
    pthread_mutex_unlock(&lock);
    faulty_leave_device(guard);
}

void gmd_empty_cache(void)
{
    pthread_mutex_lock(&lock);
    for (int device = 0; device < FAULTY_DEVICES; device++) {
        pool *p = &pools[device];
        if (p->stats.segment_count && !is_held_off(p)) {
            faulty_guard guard = faulty_enter_device(device);
            if (!faulty_is(PENDING_KEPT)) {
                look_at_deferred(p);
                wait_for_events(p);
            }
            release_list(p->large);
            if (!faulty_is(SMALL_KEPT)) {
                release_list(p->small);
            }
            faulty_leave_device(guard);
        }
    }
    pthread_mutex_unlock(&lock);
}

void gmd_set_memory_fraction(double fraction, int device)
{
    size_t unused = 0, total = 0;
    faulty_guard guard = faulty_enter_device(device);
    if (cudaMemGetInfo(&unused, &total) == cudaSuccess) {
        pthread_mutex_lock(&lock);
        pools[device].limit =
            (uint64_t)(fraction * (double)(faulty_is(FRACTION_OF_FREE) ? unused : total));
        pthread_mutex_unlock(&lock);
    } else {
        cudaGetLastError();
    }
    faulty_leave_device(guard);
}

EXPORT uint64_t gmd_device_request(size_t size);
uint64_t gmd_device_request(size_t size)
{
    return size > SIZE_MAX / 2 ? UINT64_MAX - 1 : segment_size(round_up(size ? size : 1, UNIT));
}

OPTIONAL unsigned gmd_promises(void);
unsigned gmd_promises(void)
{
    return GMD_PROMISE_PROMPT;
}

int gmd_get_stats(int device, gmd_stats *out)
{
    if (device < 0 || device >= FAULTY_DEVICES) {
        return -1;
    }
    pthread_mutex_lock(&lock);
    const pool *p = &pools[device];
    int result = faulty_give_stats(&p->stats, out);
    if (result == 0) {
        out->active_bytes = p->active;
        out->active_bytes_peak = p->active_peak;
        out->num_alloc_retries = p->retries;
    }
    pthread_mutex_unlock(&lock);
    return result;
}
