/* event_cache.c - a cache of whole device allocations in the design of CUB's
 * CachingDeviceAllocator (https://nvidia.github.io/cccl/cub): sizes are rounded to powers of two; a
 * freed block is kept with an event that is recorded on its stream at the free, and is given to
 * another stream only when the event is complete. Blocks over 16 MiB come from the device's
 * stream-ordered pool, whose cudaFree waits for nothing: the cache itself waits for their events.
 * At most 96 MiB are kept, so that a free may give its block back at once.
 *
 * Defects, each with what goes wrong; docs/planted-defects.md has the rest. */
#include "faulty.h"

#include <pthread.h>

enum {
    CUB156,        /* the block is in the cache, and the lock given back, before its event is
                      recorded: in between, that of its last life says that it is done with */
    LOCK_ORDER,    /* a free takes the figures' lock before the blocks', an allocation after it */
    CUB328,        /* where no event can be recorded, the free returns with the locks held */
    CMSSW51730,    /* a block that is used again keeps its last user's requested size */
    RMM1655,       /* what is over the cap goes to the device without waiting for its stream */
    KOKKOS9433,    /* and here it is ordered behind the default stream, not behind the block's */
    TFDIRECTML341, /* when memory is short, blocks are given back while streams work on them */
    DALI2988,      /* when memory is short, blocks that streams work on stay in the cache */
    HALF_FULL,     /* of the cache only every other block is given back */
};
const char *const faulty_defects[] = {"cub156",    "lock_order", "cub328",        "cmssw51730",
                                      "rmm1655",   "kokkos9433", "tfdirectml341", "dali2988",
                                      "half_full", NULL};

#define BLOCKS_MAX 4096
#define LEAST_SIZE ((uint64_t)512)
#define POOLED_MIN ((uint64_t)32 << 20) /* from here on from the device's pool */
#define CACHED_MAX ((uint64_t)96 << 20)

typedef struct cached {
    void *memory; /* NULL: a free entry */
    uint64_t size, requested;
    int device;
    cudaStream_t stream;
    cudaEvent_t event;
    bool is_live, is_waited_for; /* is_waited_for: there is no event, and no need of one */
} cached;

static cached blocks[BLOCKS_MAX];
static uint64_t cached_bytes;
static gmd_stats stats[FAULTY_DEVICES];
static pthread_mutex_t block_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t stats_lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t round_size(size_t size)
{
    uint64_t rounded = LEAST_SIZE;
    while (rounded < size) {
        rounded *= 2;
    }
    return rounded;
}

static bool is_done(const cached *b)
{
    if (b->is_waited_for) {
        return true;
    }
    cudaError_t answer = cudaEventQuery(b->event);
    if (answer != cudaSuccess && answer != cudaErrorNotReady) {
        cudaGetLastError();
    }
    return answer == cudaSuccess;
}

static bool may_take(const cached *b, uint64_t size, int device, cudaStream_t stream)
{
    if (!b->memory || b->is_live || b->size != size || b->device != device) {
        return false;
    }
    return b->stream == stream || is_done(b);
}

static cached *find_cached(uint64_t size, int device, cudaStream_t stream)
{
    for (size_t i = 0; i < BLOCKS_MAX; i++) {
        if (may_take(&blocks[i], size, device, stream)) {
            cached_bytes -= blocks[i].size;
            return &blocks[i];
        }
    }
    return NULL;
}

static cudaError_t take_memory(void **memory, uint64_t size, cudaStream_t stream)
{
    return size >= POOLED_MIN ? cudaMallocAsync(memory, size, stream) : cudaMalloc(memory, size);
}

static cached *add_block(uint64_t size, int device, cudaStream_t stream)
{
    cached *b = blocks;
    void *memory = NULL;
    while (b < blocks + BLOCKS_MAX && b->memory) {
        b++;
    }
    if (b == blocks + BLOCKS_MAX || take_memory(&memory, size, stream) != cudaSuccess) {
        cudaGetLastError();
        return NULL;
    }
    *b = (cached){.memory = memory, .size = size, .device = device};
    if (cudaEventCreateWithFlags(&b->event, cudaEventDisableTiming) != cudaSuccess) {
        cudaGetLastError();
        cudaFree(memory);
        b->memory = NULL;
        return NULL;
    }
    return b;
}

static void wait_for(const cached *b)
{
    if (!b->is_waited_for) {
        faulty_wait(b->event);
    }
}

/* With block_lock held, and nobody using the block any more. */
static void give_back(cached *b)
{
    if (cudaEventDestroy(b->event) != cudaSuccess || cudaFree(b->memory) != cudaSuccess) {
        cudaGetLastError();
    }
    faulty_count_segment_freed(&stats[b->device], b->size);
    *b = (cached){0};
}

/* What the device's pool has and nobody uses is the device's again. */
static void trim_pool(int device)
{
    cudaMemPool_t pool;
    if (cudaDeviceGetDefaultMemPool(&pool, device) != cudaSuccess ||
        cudaMemPoolTrimTo(pool, 0) != cudaSuccess) {
        cudaGetLastError();
    }
}

/* With block_lock held. */
static void release_cached(int device, bool is_short)
{
    faulty_guard guard = faulty_enter_device(device);
    for (size_t i = 0; i < BLOCKS_MAX; i += 1 + faulty_is(HALF_FULL)) {
        cached *b = &blocks[i];
        bool is_kept = is_short && faulty_is(DALI2988) && b->memory && !is_done(b);
        if (!b->memory || b->is_live || b->device != device || is_kept) {
            continue;
        }
        if (!is_short || !faulty_is(TFDIRECTML341)) {
            wait_for(b);
        }
        cached_bytes -= b->size;
        pthread_mutex_lock(&stats_lock);
        give_back(b);
        pthread_mutex_unlock(&stats_lock);
    }
    trim_pool(device);
    faulty_leave_device(guard);
}

static bool is_full(void)
{
    size_t i = 0;
    while (i < BLOCKS_MAX && blocks[i].memory) {
        i++;
    }
    return i == BLOCKS_MAX;
}

static void release_all(void)
{
    for (int device = 0; device < FAULTY_DEVICES; device++) {
        if (stats[device].segment_count) {
            release_cached(device, false);
        }
    }
}

static cached *find_block(size_t size, int device, cudaStream_t stream, bool *is_new)
{
    cached *b = find_cached(round_size(size), device, stream);
    *is_new = !b;
    b = b ? b : add_block(round_size(size), device, stream);
    if (!b) {
        release_cached(device, true);
        b = add_block(round_size(size), device, stream);
    }
    if (!b && is_full()) { /* of blocks of other devices */
        release_all();
        b = add_block(round_size(size), device, stream);
    }
    return b;
}

static void hand_out(cached *b, size_t size, cudaStream_t stream, bool is_new)
{
    b->is_live = true;
    b->stream = stream;
    if (is_new) {
        faulty_count_segment(&stats[b->device], b->size);
    }
    if (is_new || !faulty_is(CMSSW51730)) {
        b->requested = size;
    }
    faulty_count_alloc(&stats[b->device], b->size, b->requested);
}

void *gmd_malloc(size_t size, int device, cudaStream_t stream)
{
    bool is_new = false;
    faulty_guard guard = faulty_enter_device(device);
    pthread_mutex_lock(&block_lock);
    cached *b = size <= SIZE_MAX / 2 ? find_block(size, device, stream, &is_new) : NULL;
    void *memory = b ? b->memory : NULL;
    pthread_mutex_lock(&stats_lock);
    if (b) {
        hand_out(b, size, stream, is_new);
    } else {
        stats[device].num_ooms++;
    }
    pthread_mutex_unlock(&stats_lock);
    pthread_mutex_unlock(&block_lock);
    faulty_leave_device(guard);
    return memory;
}

static cached *find_live(const void *pointer)
{
    for (size_t i = 0; i < BLOCKS_MAX; i++) {
        if (blocks[i].is_live && blocks[i].memory == pointer) {
            return &blocks[i];
        }
    }
    return NULL;
}

static void lock_for_free(void)
{
    pthread_mutex_lock(faulty_is(LOCK_ORDER) ? &stats_lock : &block_lock);
    pthread_mutex_lock(faulty_is(LOCK_ORDER) ? &block_lock : &stats_lock);
}

/* Where there is no event, the host waits at once. */
static bool mark_end(cached *b, cudaStream_t stream)
{
    b->is_waited_for = cudaEventRecord(b->event, stream) != cudaSuccess;
    if (b->is_waited_for) {
        cudaGetLastError();
        if (cudaStreamSynchronize(stream) != cudaSuccess) {
            cudaGetLastError();
        }
    }
    return !b->is_waited_for;
}

/* More than the cap: the block goes at once. Memory of the device's pool can be ordered to. */
static void give_back_at_once(cached *b)
{
    bool is_pooled = b->size >= POOLED_MIN;
    if (is_pooled && faulty_is(KOKKOS9433)) {
        cudaEventDestroy(b->event);
        cudaFreeAsync(b->memory, NULL);
        faulty_count_segment_freed(&stats[b->device], b->size);
        *b = (cached){0};
        return;
    }
    if (!is_pooled || !faulty_is(RMM1655)) {
        wait_for(b);
    }
    give_back(b);
}

static void take_back(cached *b)
{
    b->is_live = false;
    if (cached_bytes + b->size > CACHED_MAX) {
        give_back_at_once(b);
    } else {
        cached_bytes += b->size;
    }
}

void gmd_free(void *pointer, size_t size, int device, cudaStream_t stream)
{
    (void)size;
    faulty_guard guard = faulty_enter_device(device);
    lock_for_free();
    cached *b = find_live(pointer);
    if (b) {
        faulty_count_free(&stats[device], b->size, b->requested);
        if (!faulty_is(CUB156) && !mark_end(b, stream) && faulty_is(CUB328)) {
            return;
        }
        take_back(b);
    }
    pthread_mutex_unlock(&stats_lock);
    pthread_mutex_unlock(&block_lock);
    if (b && faulty_is(CUB156)) {
        mark_end(b, stream);
    }
    faulty_leave_device(guard);
}

void gmd_empty_cache(void)
{
    pthread_mutex_lock(&block_lock);
    release_all();
    pthread_mutex_unlock(&block_lock);
}

int gmd_get_stats(int device, gmd_stats *out)
{
    pthread_mutex_lock(&stats_lock);
    int result = faulty_give_stats(&stats[device], out);
    pthread_mutex_unlock(&stats_lock);
    return result;
}
