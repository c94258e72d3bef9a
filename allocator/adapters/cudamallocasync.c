/* cudamallocasync.c - libgmd_cudamallocasync.so: cudaMallocAsync and cudaFreeAsync on each device's
 * default pool, with the ABI of gmd_abi.h.
 *
 * The pool keeps what is freed (its release threshold is raised, as PyTorch's own backend for it
 * does), so there is a cache to empty. It has no limit that a memory fraction could set. Streams
 * that were recorded for a block are waited for by its free: on a stream of the adapter's own, so
 * that the caller's streams wait for nothing that they did not ask for. Sync: one lock for the
 * books, one for the records. */
#include "books.h"
#include "gmd_abi.h"
#include "gmd_cuda.h"

#include <pthread.h>
#include <stdlib.h>

#define GMD_EXPORT __attribute__((visibility("default")))

/* Declared here because the ABI is found by name: there is no header for callers to include. */
GMD_EXPORT void gmd_init(int count);
GMD_EXPORT void *gmd_malloc(size_t size, int device, cudaStream_t stream);
GMD_EXPORT void gmd_free(void *ptr, size_t size, int device, cudaStream_t stream);
GMD_EXPORT void gmd_record_stream(void *ptr, cudaStream_t stream);
GMD_EXPORT void gmd_empty_cache(void);
GMD_EXPORT int gmd_get_stats(int device, gmd_stats *out);
GMD_EXPORT void gmd_reset_peak_stats(int device);
GMD_EXPORT const char *gmd_last_error(void);

static int device_count;
static cudaMemPool_t pools[ADAPTER_DEVICES];

/* Remembers the first failure of a call; true when there is none. */
static bool succeeded(const char *function, cudaError_t result)
{
    if (result != cudaSuccess && !adapter_error()) {
        adapter_failed(function, result);
    }
    return result == cudaSuccess;
}

void gmd_init(int count)
{
    adapter_begin();
    device_count = count < ADAPTER_DEVICES ? count : ADAPTER_DEVICES;
    for (int device = 0; device < device_count; device++) {
        uint64_t threshold = UINT64_MAX;
        if (succeeded("cudaDeviceGetDefaultMemPool",
                      cudaDeviceGetDefaultMemPool(&pools[device], device))) {
            succeeded("cudaMemPoolSetAttribute",
                      cudaMemPoolSetAttribute(pools[device], cudaMemPoolAttrReleaseThreshold,
                                              &threshold));
        }
    }
}

void *gmd_malloc(size_t size, int device, cudaStream_t stream)
{
    int previous;
    void *memory = NULL;
    if (size == 0 || !device_enter(device, &previous)) {
        return NULL;
    }
    cudaError_t result = cudaMallocAsync(&memory, size, stream);
    if (result == cudaErrorMemoryAllocation) {
        (void)cudaGetLastError(); /* a refusal is an answer; the thread is left as it was */
    } else {
        succeeded("cudaMallocAsync", result);
    }
    device_leave(device, previous);
    if (result == cudaSuccess || result == cudaErrorMemoryAllocation) {
        books_alloc(device, size, result == cudaSuccess);
    }
    return result == cudaSuccess ? memory : NULL;
}

/* --- recorded streams -------------------------------------------------------------------- */

typedef struct record { /* a block's use on another stream */
    struct record *next;
    void *block;
    cudaStream_t stream;
} record;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static record *records;

void gmd_record_stream(void *ptr, cudaStream_t stream)
{
    adapter_begin();
    record *r = malloc(sizeof *r);
    if (!r) {
        adapter_failed("gmd_record_stream", cudaErrorMemoryAllocation);
        return;
    }
    pthread_mutex_lock(&lock);
    *r = (record){.next = records, .block = ptr, .stream = stream};
    records = r;
    pthread_mutex_unlock(&lock);
}

/* Takes the records of a block out of the list. */
static record *take_records(const void *ptr)
{
    record *taken = NULL;
    pthread_mutex_lock(&lock);
    for (record **at = &records; *at;) {
        record *r = *at;
        if (r->block == ptr) {
            *at = r->next;
            r->next = taken;
            taken = r;
        } else {
            at = &r->next;
        }
    }
    pthread_mutex_unlock(&lock);
    return taken;
}

/* `waiter` runs nothing more before all that is queued on `waited` now. */
static bool follow(cudaStream_t waiter, cudaStream_t waited)
{
    cudaEvent_t event = NULL;
    if (!succeeded("cudaEventCreateWithFlags",
                   cudaEventCreateWithFlags(&event, cudaEventDisableTiming))) {
        return false;
    }
    bool done = succeeded("cudaEventRecord", cudaEventRecord(event, waited)) &&
                succeeded("cudaStreamWaitEvent", cudaStreamWaitEvent(waiter, event, 0));
    succeeded("cudaEventDestroy", cudaEventDestroy(event)); /* it lives on until it is complete */
    return done;
}

static void free_after(void *ptr, cudaStream_t stream, record *uses)
{
    cudaStream_t gate = NULL;
    if (!succeeded("cudaStreamCreateWithFlags",
                   cudaStreamCreateWithFlags(&gate, cudaStreamNonBlocking))) {
        return;
    }
    bool waits = follow(gate, stream);
    for (const record *r = uses; r; r = r->next) {
        waits = follow(gate, r->stream) && waits;
    }
    if (waits) { /* else the block is lost, which is better than handed out while it is used */
        succeeded("cudaFreeAsync", cudaFreeAsync(ptr, gate));
    }
    succeeded("cudaStreamDestroy", cudaStreamDestroy(gate));
}

void gmd_free(void *ptr, size_t size, int device, cudaStream_t stream)
{
    int previous;
    if (!ptr || !device_enter(device, &previous)) {
        return;
    }
    record *uses = take_records(ptr);
    if (uses) {
        free_after(ptr, stream, uses);
    } else {
        succeeded("cudaFreeAsync", cudaFreeAsync(ptr, stream));
    }
    while (uses) {
        record *next = uses->next;
        free(uses);
        uses = next;
    }
    device_leave(device, previous);
    if (!adapter_error()) {
        books_free(device, size);
    }
}

/* --- the pools --------------------------------------------------------------------------- */

static void trim(int device)
{
    int previous;
    if (!device_enter(device, &previous)) {
        return;
    }
    if (succeeded("cudaDeviceSynchronize", cudaDeviceSynchronize())) {
        succeeded("cudaMemPoolTrimTo", cudaMemPoolTrimTo(pools[device], 0));
    }
    device_leave(device, previous);
}

void gmd_empty_cache(void)
{
    for (int device = 0; device < device_count && (device == 0 || !adapter_error()); device++) {
        trim(device);
    }
}

/* What is reserved is the pool's: all pages that it holds. */
int gmd_get_stats(int device, gmd_stats *out)
{
    adapter_begin();
    if (device < 0 || device >= device_count || !books_read(device, out)) {
        return -1;
    }
    out->segment_count = GMD_STAT_UNKNOWN;
    out->inactive_split_bytes = GMD_STAT_UNKNOWN;
    return succeeded("cudaMemPoolGetAttribute",
                     cudaMemPoolGetAttribute(pools[device], cudaMemPoolAttrReservedMemCurrent,
                                             &out->reserved_bytes)) &&
                   succeeded("cudaMemPoolGetAttribute",
                             cudaMemPoolGetAttribute(pools[device], cudaMemPoolAttrReservedMemHigh,
                                                     &out->reserved_bytes_peak))
               ? 0
               : -1;
}

void gmd_reset_peak_stats(int device)
{
    uint64_t zero = 0;
    adapter_begin();
    if (device >= 0 && device < device_count) {
        books_reset_peaks(device);
        succeeded("cudaMemPoolSetAttribute",
                  cudaMemPoolSetAttribute(pools[device], cudaMemPoolAttrReservedMemHigh, &zero));
    }
}

const char *gmd_last_error(void)
{
    return adapter_error();
}
