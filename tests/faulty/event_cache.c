/* event_cache.c - a cache of whole device allocations in the design of CUB's
 * CachingDeviceAllocator (https://nvidia.github.io/cccl/cub): sizes are rounded to powers of two; a
 * freed block is kept with an event that is recorded on its stream at the free, and is given to
 * another stream only when the event is complete.
 *
 * Defects, both races of two threads:
 *   cub156       the block is in the cache, and the lock given back, before its event is recorded:
 *                in between, the event of its last life says that it is done with (NVIDIA/cub#156)
 *   lock_order   a free takes the lock of the figures before that of the blocks, an allocation the
 *                other way round */
#include "faulty.h"

#include <pthread.h>

enum { CUB156, LOCK_ORDER };
const char *const faulty_defects[] = {"cub156", "lock_order", NULL};

#define BLOCKS_MAX 4096
#define LEAST_SIZE ((uint64_t)512)

typedef struct cached {
    void *memory; /* NULL: a free entry */
    uint64_t size;
    int device;
    cudaStream_t stream;
    cudaEvent_t event;
    bool is_live;
} cached;

static cached blocks[BLOCKS_MAX];
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

static bool may_take(const cached *b, uint64_t size, int device, cudaStream_t stream)
{
    if (!b->memory || b->is_live || b->size != size || b->device != device) {
        return false;
    }
    return b->stream == stream || cudaEventQuery(b->event) == cudaSuccess;
}

static cached *find_cached(uint64_t size, int device, cudaStream_t stream)
{
    for (size_t i = 0; i < BLOCKS_MAX; i++) {
        if (may_take(&blocks[i], size, device, stream)) {
            return &blocks[i];
        }
    }
    return NULL;
}

static cached *add_block(uint64_t size, int device)
{
    cached *b = blocks;
    while (b < blocks + BLOCKS_MAX && b->memory) {
        b++;
    }
    if (b == blocks + BLOCKS_MAX || cudaMalloc(&b->memory, size) != cudaSuccess) {
        cudaGetLastError();
        return NULL;
    }
    if (cudaEventCreateWithFlags(&b->event, cudaEventDisableTiming) != cudaSuccess) {
        cudaGetLastError();
        cudaFree(b->memory);
        b->memory = NULL;
        return NULL;
    }
    b->size = size;
    b->device = device;
    return b;
}

/* With block_lock held. */
static void release_cached(int device)
{
    for (size_t i = 0; i < BLOCKS_MAX; i++) {
        cached *b = &blocks[i];
        if (b->memory && !b->is_live && b->device == device) {
            faulty_guard guard = faulty_enter_device(device);
            cudaEventSynchronize(b->event);
            cudaEventDestroy(b->event);
            cudaFree(b->memory);
            faulty_leave_device(guard);
            pthread_mutex_lock(&stats_lock);
            faulty_count_segment_freed(&stats[device], b->size);
            pthread_mutex_unlock(&stats_lock);
            *b = (cached){0};
        }
    }
}

static cached *find_block(size_t size, int device, cudaStream_t stream, bool *is_new)
{
    cached *b = find_cached(round_size(size), device, stream);
    *is_new = !b;
    b = b ? b : add_block(round_size(size), device);
    if (!b) {
        release_cached(device);
        b = add_block(round_size(size), device);
    }
    return b;
}

void *gmd_malloc(size_t size, int device, cudaStream_t stream)
{
    bool is_new = false;
    faulty_guard guard = faulty_enter_device(device);
    pthread_mutex_lock(&block_lock);
    cached *b = size <= SIZE_MAX / 2 ? find_block(size, device, stream, &is_new) : NULL;
    void *memory = b ? b->memory : NULL;
    if (b) {
        b->is_live = true;
        b->stream = stream;
    }
    pthread_mutex_lock(&stats_lock);
    if (b && is_new) {
        faulty_count_segment(&stats[device], b->size);
    }
    if (b) {
        faulty_count_alloc(&stats[device], b->size, size);
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

void gmd_free(void *pointer, size_t size, int device, cudaStream_t stream)
{
    faulty_guard guard = faulty_enter_device(device);
    lock_for_free();
    cached *b = find_live(pointer);
    if (b) {
        faulty_count_free(&stats[device], b->size, size);
        if (!faulty_is(CUB156)) {
            cudaEventRecord(b->event, stream);
        }
        b->is_live = false;
    }
    pthread_mutex_unlock(&stats_lock);
    pthread_mutex_unlock(&block_lock);
    if (b && faulty_is(CUB156)) {
        cudaEventRecord(b->event, stream);
    }
    faulty_leave_device(guard);
}

void gmd_empty_cache(void)
{
    pthread_mutex_lock(&block_lock);
    for (int device = 0; device < FAULTY_DEVICES; device++) {
        release_cached(device);
    }
    pthread_mutex_unlock(&block_lock);
}

int gmd_get_stats(int device, gmd_stats *out)
{
    pthread_mutex_lock(&stats_lock);
    int result = faulty_give_stats(&stats[device], out);
    pthread_mutex_unlock(&stats_lock);
    return result;
}
