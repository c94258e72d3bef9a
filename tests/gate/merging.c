/* merging.c - a pool that exports nothing but the two functions that every allocator has. Pairs of
 * blocks are cut from one allocation of the device. With GMD_DEFECT=merges_live a pair goes back to
 * the device with the first of its blocks that is freed, as if the other one were free, too: work
 * that is queued on that one touches memory that is not there, and gmd loses its device. */
#include "gmd_cuda.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT void *my_malloc(size_t size, int device, cudaStream_t stream);
EXPORT void my_free(void *ptr, size_t size, int device, cudaStream_t stream);

enum { PAIRS = 4096 };

typedef struct pair {
    char *memory;
    size_t size; /* of each half */
    int device;
    cudaStream_t stream;
    bool is_live[2];
} pair;

static pair pairs[PAIRS]; /* without memory: there is none */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool merges_live(void)
{
    const char *defect = getenv("GMD_DEFECT");
    return defect && strcmp(defect, "merges_live") == 0;
}

/* On its own stream, memory that its owner's work is done with is no news to the next owner. */
static void *take_half(size_t size, int device, cudaStream_t stream)
{
    for (pair *p = pairs; p < pairs + PAIRS; p++) {
        int half = p->is_live[0];
        if (p->memory && p->size == size && p->device == device && p->stream == stream &&
            !p->is_live[half]) {
            p->is_live[half] = true;
            return p->memory + (size_t)half * size;
        }
    }
    return NULL;
}

static void *take_new(size_t size, int device, cudaStream_t stream)
{
    pair *p = pairs;
    void *memory = NULL;
    int current = 0;
    while (p < pairs + PAIRS && p->memory) {
        p++;
    }
    cudaGetDevice(&current);
    cudaSetDevice(device);
    if (p == pairs + PAIRS || cudaMalloc(&memory, 2 * size) != cudaSuccess) {
        cudaGetLastError();
        memory = NULL;
    }
    cudaSetDevice(current);
    if (memory) {
        *p = (pair){memory, size, device, stream, {true, false}};
    }
    return memory;
}

void *my_malloc(size_t size, int device, cudaStream_t stream)
{
    if (size > SIZE_MAX / 4) {
        return NULL;
    }
    size = (size + 511) / 512 * 512;
    pthread_mutex_lock(&lock);
    void *memory = take_half(size, device, stream);
    memory = memory ? memory : take_new(size, device, stream);
    pthread_mutex_unlock(&lock);
    return memory;
}

void my_free(void *ptr, size_t size, int device, cudaStream_t stream)
{
    (void)size;
    (void)device;
    (void)stream;
    pthread_mutex_lock(&lock);
    for (pair *p = pairs; ptr && p < pairs + PAIRS; p++) {
        int half = p->memory && (char *)ptr == p->memory + p->size;
        if (p->memory && (half || (char *)ptr == p->memory)) {
            p->is_live[half] = false;
            if (merges_live() || (!p->is_live[0] && !p->is_live[1])) {
                cudaFree(p->memory);
                *p = (pair){0};
            }
            break;
        }
    }
    pthread_mutex_unlock(&lock);
}
