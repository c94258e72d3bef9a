/* keeps_events.c - straight to the device; a free waits for the block's recorded streams, by an
 * event for each, which are kept and used again, as PyTorch's allocator keeps its own. With
 * ONE_MORE each request makes one that nothing needs. */
#include "gmd_abi.h"
#include "gmd_cuda.h"

#include <stdbool.h>

#define EXPORT __attribute__((visibility("default")))

enum { MOST = 512 };

static cudaEvent_t events[MOST];
static size_t event_count;
static struct {
    void *block;
    cudaStream_t stream;
} recorded[MOST];
static size_t recorded_count;

static bool grow_events(size_t count)
{
    while (event_count < count && event_count < MOST &&
           cudaEventCreateWithFlags(&events[event_count], cudaEventDisableTiming) == cudaSuccess) {
        event_count++;
    }
    return event_count >= count;
}

EXPORT void *gmd_malloc(size_t size, int device, cudaStream_t stream)
{
    (void)stream;
    void *memory = NULL;
#ifdef ONE_MORE
    (void)grow_events(event_count + 1);
#endif
    if (cudaSetDevice(device) != cudaSuccess || cudaMalloc(&memory, size) != cudaSuccess) {
        cudaGetLastError();
        return NULL;
    }
    return memory;
}

EXPORT void gmd_record_stream(void *ptr, cudaStream_t stream)
{
    if (recorded_count < MOST) {
        recorded[recorded_count].block = ptr;
        recorded[recorded_count++].stream = stream;
    }
}

EXPORT void gmd_free(void *ptr, size_t size, int device, cudaStream_t stream)
{
    (void)size;
    (void)device;
    (void)stream;
    size_t used = 0, left = 0;
    for (size_t i = 0; i < recorded_count; i++) {
        if (recorded[i].block != ptr) {
            recorded[left++] = recorded[i];
        } else if (grow_events(used + 1)) {
            (void)cudaEventRecord(events[used++], recorded[i].stream);
        }
    }
    recorded_count = left;
    for (size_t i = 0; i < used; i++) {
        (void)cudaEventSynchronize(events[i]);
    }
    cudaFree(ptr);
}

EXPORT void gmd_empty_cache(void) {}
