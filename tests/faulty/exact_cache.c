/* exact_cache.c - a cache of blocks by their exact size: sizes are rounded to 256 bytes, a freed
 * block goes into the bin of its size with an event, and serves that size again, on its own stream
 * at once, on another one when the event is complete. Blocks up to 16 KiB are cut from slabs of
 * equal ones, larger ones have a device allocation of their own. More than 64 MiB of those are not
 * kept: the oldest go back to the device first. When memory is short, the host waits, and all that
 * is free goes back.
 *
 * Built twice: exact_cache_bare (FAULTY_BARE) exports no more than the allocating and the freeing,
 * so that nothing about it is known from inside.
 *
 * Defects, each with what goes wrong; docs/planted-defects.md has the rest. */
#include "faulty.h"

#include <pthread.h>
#include <stdlib.h>

enum {
    NO_EVENT,      /* the event of a freed block is that of its last free, or none */
    NOT_READY,     /* an event that is not complete is taken for one that is */
    DEAD_STREAM,   /* a block's stream is waited for instead of its event, gone or not */
    WRONG_BIN,     /* of two sizes that share a bin the one serves the other */
    SLAB_TOO_LONG, /* a slab has one more block than there is room for */
    SLAB_TOO_SOON, /* a slab goes back with one block still in use */
    DALI4898,      /* slabs are cut at multiples of 128 bytes (NVIDIA/DALI#4898) */
    ANY_DEVICE,    /* a cached block serves a request for another device */
    EVICTS_LIVE,   /* the oldest block is given back, in use or not */
    VLLM36651,     /* the error of a cudaMalloc that was made up for stays the last error */
    CUB705,        /* giving back goes on from the entry that was just removed (NVIDIA/cub#705) */
    MLX2099, /* giving back calls into the allocator with the lock held (ml-explore/mlx#2099) */
    OOM_KEEPS_LOCK, /* a request that is refused does not give the lock back */
    DALI2988,       /* when memory is short, what waits for events is not waited for */
    HIPEP1068,      /* what is over the cap is taken out of the bins and given to nobody */
    /* from here on not in exact_cache_bare, which promises nothing and keeps no figures */
    CUB329,  /* the free of a block that is free gives it to the device, and the bin keeps it */
    RMM2404, /* the free of what was never handed out lowers the counters */
    RMM2316, /* a request for nothing gets nothing and is counted as a block */
    RMM1966, /* a free reads the size from the entry that it has already removed */
    CAP_UNBOOKED, /* what goes over the cap to the device stays in the figures */
};
const char *const faulty_defects[] = {"no_event",
                                      "not_ready",
                                      "dead_stream",
                                      "wrong_bin",
                                      "slab_too_long",
                                      "slab_too_soon",
                                      "dali4898",
                                      "any_device",
                                      "evicts_live",
                                      "vllm36651",
                                      "cub705",
                                      "mlx2099",
                                      "oom_keeps_lock",
                                      "dali2988",
                                      "hipep1068",
#ifndef FAULTY_BARE

                                      "cub329",
                                      "rmm2404",
                                      "rmm2316",
                                      "rmm1966",
                                      "cap_unbooked",
#endif
                                      NULL};

#define UNIT       ((uint64_t)256)
#define SLAB_MAX   ((uint64_t)16 << 10) /* the largest block of a slab */
#define SLAB_COUNT 16
#define CACHED_MAX ((uint64_t)64 << 20)
#define BINS       64

typedef struct slab {
    void *memory;
    uint64_t size;
    uint32_t live, count;
} slab;

typedef struct item item;
struct item {
    uint64_t address, size, requested;
    slab *slab; /* NULL: a device allocation of its own */
    int device;
    bool has_event;
    uint64_t since; /* which request made it live, or free */
    cudaStream_t stream;
    cudaEvent_t event;  /* the block's work came before it */
    item *next, **link; /* in its bin, or among the live ones; the latest first */
};

static item *bins[BINS], *live;
static uint64_t request_count;
static uint64_t cached; /* bytes of free blocks outside of slabs */
static gmd_stats stats[FAULTY_DEVICES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t round_size(uint64_t size)
{
    return (size ? size + UNIT - 1 : UNIT) / UNIT * UNIT;
}

/* --- lists --------------------------------------------------------------------------------- */

static void link_item(item **list, item *i)
{
    i->next = *list;
    i->link = list;
    if (*list) {
        (*list)->link = &i->next;
    }
    *list = i;
}

static void unlink_item(item *i)
{
    *i->link = i->next;
    if (i->next) {
        i->next->link = i->link;
    }
    i->next = NULL;
}

static item **bin_of(uint64_t size)
{
    return &bins[size / UNIT % BINS];
}

static item *find(item *list, uint64_t address)
{
    while (list && list->address != address) {
        list = list->next;
    }
    return list;
}

/* --- what is free -------------------------------------------------------------------------- */

static void wait_on_host(cudaStream_t stream)
{
    if (cudaStreamSynchronize(stream) != cudaSuccess) {
        cudaGetLastError();
    }
}

/* Without an event the host waits at once, and the block is safe for everyone. */
static void mark_end(item *i)
{
    if (faulty_is(NO_EVENT) && i->event) {
        return;
    }
    if (!i->event && cudaEventCreateWithFlags(&i->event, cudaEventDisableTiming) != cudaSuccess) {
        cudaGetLastError();
        i->event = NULL;
    }
    i->has_event = i->event && cudaEventRecord(i->event, i->stream) == cudaSuccess;
    if (!i->has_event) {
        cudaGetLastError();
        wait_on_host(i->stream);
    }
}

static bool is_done(const item *i)
{
    if (!i->has_event) {
        return true;
    }
    cudaError_t answer = cudaEventQuery(i->event);
    if (answer != cudaSuccess && answer != cudaErrorNotReady) {
        cudaGetLastError();
    }
    return answer == cudaSuccess || (faulty_is(NOT_READY) && answer == cudaErrorNotReady);
}

static void wait_for(const item *i)
{
    if (faulty_is(DEAD_STREAM)) {
        wait_on_host(i->stream);
    } else if (i->has_event && cudaEventSynchronize(i->event) != cudaSuccess) {
        cudaGetLastError();
    }
}

static item *take_cached(uint64_t size, int device, cudaStream_t stream)
{
    for (item *i = *bin_of(size); i; i = i->next) {
        bool fits = i->size == size || faulty_is(WRONG_BIN);
        bool is_here = i->device == device || faulty_is(ANY_DEVICE);
        if (fits && is_here && (i->stream == stream || is_done(i))) {
            unlink_item(i);
            cached -= i->slab ? 0 : i->size;
            return i;
        }
    }
    return NULL;
}

/* --- device memory ------------------------------------------------------------------------- */

static void *take_memory(uint64_t size, int device)
{
    void *memory = NULL;
    if (cudaMalloc(&memory, size) != cudaSuccess) {
        if (!faulty_is(VLLM36651)) {
            cudaGetLastError();
        }
        return NULL;
    }
    faulty_count_segment(&stats[device], size);
    return memory;
}

static void give_memory(uint64_t address, uint64_t size, int device)
{
    faulty_guard guard = faulty_enter_device(device);
    faulty_count_segment_freed(&stats[device], size);
    if (cudaFree((void *)(uintptr_t)address) !=
        cudaSuccess) { /* NOLINT(performance-no-int-to-ptr) */
        cudaGetLastError();
    }
    faulty_leave_device(guard);
}

static item *new_item(uint64_t address, uint64_t size, slab *s, int device, cudaStream_t stream)
{
    item *i = calloc(1, sizeof *i);
    if (!i) { /* the block would be lost */
        abort();
    }
    *i = (item){.address = address, .size = size, .slab = s, .device = device, .stream = stream};
    return i;
}

/* A slab of `count` blocks, all but one of which go into the bin. */
static item *add_slab(uint64_t size, uint32_t count, int device, cudaStream_t stream)
{
    void *memory = take_memory(size * count, device);
    slab *s = memory ? malloc(sizeof *s) : NULL;
    if (!s) {
        if (memory) {
            give_memory((uintptr_t)memory, size * count, device);
        }
        return NULL;
    }
    uint64_t step = faulty_is(DALI4898) && size > UNIT ? size - UNIT / 2 : size;
    *s = (slab){.memory = memory, .size = size * count, .count = count};
    s->count += faulty_is(SLAB_TOO_LONG);
    item *first = new_item((uintptr_t)memory, size, s, device, stream);
    for (uint32_t k = 1; k < s->count; k++) {
        link_item(bin_of(size), new_item(first->address + k * step, size, s, device, stream));
    }
    return first;
}

static item *add_block(uint64_t size, int device, cudaStream_t stream)
{
    if (size <= SLAB_MAX) {
        item *i = add_slab(size, SLAB_COUNT, device, stream);
        return i ? i : add_slab(size, 1, device, stream);
    }
    void *memory = take_memory(size, device);
    return memory ? new_item((uintptr_t)memory, size, NULL, device, stream) : NULL;
}

static void drop(item *i)
{
    unlink_item(i);
    if (i->event && cudaEventDestroy(i->event) != cudaSuccess) {
        cudaGetLastError();
    }
    free(i);
}

static void release(item *i)
{
    wait_for(i);
    cached -= i->size;
    give_memory(i->address, i->size, i->device);
    drop(i);
}

static void release_slab(slab *s)
{
    int device = 0;
    for (int bin = 0; bin < BINS; bin++) {
        for (item *i = bins[bin], *next; i; i = next) {
            next = i->next;
            if (i->slab == s) {
                wait_for(i);
                device = i->device;
                drop(i);
            }
        }
    }
    give_memory((uintptr_t)s->memory, s->size, device);
    if (!s->live) {
        free(s);
    }
}

/* The list ends there: what comes behind the entry that was removed cannot be read. */
static item *next_of_removed(void)
{
    abort();
}

static bool may_release(const item *i)
{
    return !faulty_is(DALI2988) || is_done(i);
}

static void release_bin(item **bin)
{
    for (item *i = *bin, *next; i; i = next) {
        next = i->next;
        slab *s = i->slab;
        if (s && s->live <= (faulty_is(SLAB_TOO_SOON) && s->count > 1)) {
            release_slab(s);
            next = *bin; /* many are gone */
        } else if (!s && may_release(i)) {
            release(i);
            next = faulty_is(CUB705) ? next_of_removed() : next;
        }
    }
}

static void release_all(void)
{
    for (int bin = 0; bin < BINS; bin++) {
        release_bin(&bins[bin]);
    }
}

static void release_all_locked(void)
{
    pthread_mutex_lock(&lock);
    release_all();
    pthread_mutex_unlock(&lock);
}

/* --- the cap ------------------------------------------------------------------------------- */

static item *oldest_of(item *list, item *oldest)
{
    for (item *i = list; i; i = i->next) {
        if (!i->slab && (!oldest || i->since < oldest->since)) {
            oldest = i;
        }
    }
    return oldest;
}

static item *oldest_cached(void)
{
    item *oldest = NULL;
    for (int bin = 0; bin < BINS; bin++) {
        oldest = oldest_of(bins[bin], oldest);
    }
    return oldest;
}

static void keep_cap(void)
{
    while (cached > CACHED_MAX) {
        item *i = oldest_cached();
        if (faulty_is(EVICTS_LIVE) && oldest_of(live, NULL)) {
            i = oldest_of(live, NULL);
            cached += i->size;
            release(i);
            return;
        }
        if (faulty_is(CAP_UNBOOKED)) {
            faulty_count_segment(&stats[i->device], i->size);
        }
        if (faulty_is(HIPEP1068)) {
            cached -= i->size;
            drop(i);
        } else {
            release(i);
        }
    }
}

/* --- the ABI ------------------------------------------------------------------------------- */

static item *find_block(uint64_t size, int device, cudaStream_t stream)
{
    item *i = take_cached(size, device, stream);
    i = i ? i : add_block(size, device, stream);
    if (i) {
        return i;
    }
    if (faulty_is(MLX2099)) {
        release_all_locked();
    } else {
        release_all();
    }
    return add_block(size, device, stream);
}

static void hand_out(item *i, size_t requested, cudaStream_t stream)
{
    i->since = request_count;
    i->stream = stream;
    i->requested = requested;
    if (i->slab) {
        i->slab->live++;
    }
    link_item(&live, i);
    faulty_count_alloc(&stats[i->device], i->size, requested);
}

void *gmd_malloc(size_t size, int device, cudaStream_t stream)
{
    faulty_guard guard = faulty_enter_device(device);
    pthread_mutex_lock(&lock);
    request_count++;
    bool is_nothing = size == 0 && faulty_is(RMM2316);
    item *i = NULL;
    if (size <= SIZE_MAX / 2 && !is_nothing) {
        i = find_block(round_size(size), device, stream);
    }
    if (i) {
        hand_out(i, size, stream);
    } else if (is_nothing) {
        stats[device].allocation_count++;
    } else {
        stats[device].num_ooms++;
    }
    void *memory = i ? (void *)(uintptr_t)i->address : NULL; /* NOLINT(performance-no-int-to-ptr) */
    if (i || !faulty_is(OOM_KEEPS_LOCK)) {
        pthread_mutex_unlock(&lock);
    }
    faulty_leave_device(guard);
    return memory;
}

/* The block's stream may be another one by now, with the handle that the caller names. */
static void take_back(item *i, cudaStream_t stream)
{
    const item *behind = i->next;
    unlink_item(i);
    const item *entry = faulty_is(RMM1966) && behind ? behind : i;
    faulty_count_free(&stats[i->device], entry->size, entry->requested);
    if (i->slab) {
        i->slab->live--;
    }
    i->since = request_count;
    i->stream = stream;
    mark_end(i);
    link_item(bin_of(i->size), i);
    cached += i->slab ? 0 : i->size;
    keep_cap();
}

/* No block of anybody's. */
static void take_unknown(void *pointer, size_t size, int device)
{
    const item *i = find(*bin_of(round_size(size)), (uintptr_t)pointer);
    if (faulty_is(CUB329) && i && !i->slab) {
        cudaFree(pointer);
    }
    if (faulty_is(RMM2404)) {
        faulty_count_free(&stats[device], size, size);
    }
}

void gmd_free(void *pointer, size_t size, int device, cudaStream_t stream)
{
    faulty_guard guard = faulty_enter_device(device);
    pthread_mutex_lock(&lock);
    request_count++;
    item *i = find(live, (uintptr_t)pointer);
    if (i) {
        take_back(i, stream);
    } else {
        take_unknown(pointer, size, device);
    }
    pthread_mutex_unlock(&lock);
    faulty_leave_device(guard);
}

void gmd_empty_cache(void)
{
    release_all_locked();
}

OPTIONAL unsigned gmd_promises(void);
unsigned gmd_promises(void)
{
    return GMD_PROMISE_MISUSE;
}

int gmd_get_stats(int device, gmd_stats *out)
{
    if (device < 0 || device >= FAULTY_DEVICES) {
        return -1;
    }
    pthread_mutex_lock(&lock);
    int result = faulty_give_stats(&stats[device], out);
    pthread_mutex_unlock(&lock);
    return result;
}
