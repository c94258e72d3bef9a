/* loose.c - cudaMalloc and cudaFree behind a contract that is looser in one clause: GMD_LOOSE names
 * it. What the contract leaves out ends the process, as it may. Compiled with EMPTIES it can give
 * its cache back. */
#define GMD_ABI_EXPORT __attribute__((visibility("default")))
#include "gmd_abi.h"
#include "gmd_cuda.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { STREAMS = 64, BLOCKS = 4096 };
static const uint64_t largest = (uint64_t)1 << 30, pool_bytes = (uint64_t)256 << 20;

static _Atomic uint64_t taken;
static atomic_int inside;
static cudaStream_t streams[STREAMS];
static int devices[STREAMS];
static size_t stream_count;

static bool is_loose(const char *clause)
{
    const char *loose = getenv("GMD_LOOSE");
    return loose && strcmp(loose, clause) == 0;
}

static void demand(bool holds)
{
    if (!holds) {
        abort();
    }
}

/* It keeps its cache until it is told to give it back; two forms have a defect beside. */
static bool keeps_cache(void)
{
    return is_loose("pressure") || is_loose("pressure_lost_room") ||
           is_loose("pressure_lost_block");
}

/* Another thread is in here while this one makes its calls of CUDA. */
static void enter(void)
{
    demand(atomic_fetch_add(&inside, 1) == 0 || !is_loose("threads"));
}

static void leave(void)
{
    atomic_fetch_sub(&inside, 1);
}

/* The streams that live blocks were allocated on. */
static struct {
    void *memory;
    cudaStream_t stream;
} blocks[BLOCKS];

static void swap_block(void *from, void *to, cudaStream_t *stream)
{
    size_t i = 0;
    while (i < BLOCKS && blocks[i].memory != from) {
        i++;
    }
    demand(i < BLOCKS);
    cudaStream_t before = blocks[i].stream;
    blocks[i].memory = to;
    blocks[i].stream = *stream;
    *stream = before;
}

static void use_event(cudaStream_t stream, int device)
{
    cudaEvent_t event;
    int before;
    cudaGetDevice(&before);
    cudaSetDevice(device);
    if (cudaEventCreateWithFlags(&event, cudaEventDisableTiming) == cudaSuccess) {
        demand(cudaEventRecord(event, stream) == cudaSuccess);
        cudaEventDestroy(event);
    } else {
        demand(!is_loose("failing_calls"));
        cudaGetLastError();
    }
    cudaSetDevice(before);
}

/* All streams that were ever seen must be there. */
static void use_all_streams(cudaStream_t stream, int device)
{
    size_t i = 0;
    while (i < stream_count && (streams[i] != stream || devices[i] != device)) {
        i++;
    }
    if (i == stream_count && i < STREAMS) {
        devices[stream_count] = device;
        streams[stream_count++] = stream;
    }
    for (i = 0; i < stream_count; i++) {
        use_event(streams[i], devices[i]);
    }
}

/* Freed blocks, which serve requests of their size and never go back. */
static struct {
    void *memory;
    size_t size;
    int device;
} cache[BLOCKS];

static void *take_cached(size_t size, int device)
{
    for (size_t i = 0; i < BLOCKS; i++) {
        if (cache[i].memory && cache[i].size == size && cache[i].device == device) {
            void *memory = cache[i].memory;
            cache[i].memory = NULL;
            return memory;
        }
    }
    return NULL;
}

static bool keep(void *memory, size_t size, int device)
{
    size_t i = 0;
    while (i < BLOCKS && cache[i].memory) {
        i++;
    }
    if (i == BLOCKS) {
        return false;
    }
    cudaDeviceSynchronize(); /* whoever gets it next need not wait */
    cache[i].memory = memory;
    cache[i].size = size;
    cache[i].device = device;
    return true;
}

/* A refusal is remembered until the cache is emptied: planted defects. */
static atomic_bool has_refused;

static bool loses_room(void)
{
    return is_loose("pressure_lost_room") && has_refused;
}

static bool loses_block(void)
{
    return is_loose("pressure_lost_block") && has_refused;
}

#ifdef EMPTIES /* leaks are judged then, too */
void gmd_empty_cache(void)
{
    for (size_t i = 0; i < BLOCKS; i++) {
        void *memory = cache[i].memory;
        cache[i].memory = NULL;
        if (memory) {
            cudaFree(memory);
        }
    }
    has_refused = false;
}
#endif

/* A block begins so far into its memory. */
static size_t offset(void)
{
    return is_loose("alignment") ? 16 : is_loose("alignment128") ? 128 : 0;
}

static void *serve(size_t size, int device)
{
    void *memory = keeps_cache() && !loses_block() ? take_cached(size, device) : NULL;
    int before;
    if (memory) {
        return memory;
    }
    if (size > SIZE_MAX - offset()) {
        return NULL;
    }
    if (loses_room()) {
        return NULL;
    }
    if (is_loose("pool") && atomic_load(&taken) + size > pool_bytes) {
        return NULL;
    }
    cudaGetDevice(&before);
    cudaSetDevice(device);
    if (cudaMalloc(&memory, size + offset()) != cudaSuccess) {
        if (!is_loose("error_behind")) {
            cudaGetLastError();
        }
        memory = NULL;
        has_refused = true;
    }
    cudaSetDevice(before);
    atomic_fetch_add(&taken, memory ? size : 0);
    return memory ? (char *)memory + offset() : NULL;
}

void *gmd_malloc(size_t size, int device, cudaStream_t stream)
{
    demand(size || !is_loose("zero_bytes"));
    demand(size <= largest || !is_loose("largest"));
    demand(device == 0 || !is_loose("devices"));
    demand(cudaPeekAtLastError() == cudaSuccess || !is_loose("pending_errors"));
    enter();
    if (is_loose("failing_calls")) {
        use_event(stream, device);
    }
    if (is_loose("allocator")) {
        use_all_streams(stream, device);
    }
    void *memory = size ? serve(size, device) : NULL;
    if (memory && is_loose("blocks")) {
        swap_block(NULL, memory, &stream);
    }
    leave();
    return memory;
}

void gmd_free(void *memory, size_t size, int device, cudaStream_t stream)
{
    int before;
    if (!memory) {
        return;
    }
    enter();
    if (is_loose("blocks")) {
        swap_block(memory, NULL, &stream);
        use_event(stream, device);
    }
    cudaGetDevice(&before);
    cudaSetDevice(device);
    if (!keeps_cache() || !keep(memory, size, device)) {
        cudaFree((char *)memory - offset());
    }
    cudaSetDevice(before);
    atomic_fetch_sub(&taken, size);
    leave();
}
