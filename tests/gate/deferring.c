/* deferring.c - a black box of two functions: cudaMalloc, and a free that puts memory aside and
 * gives it back a thousand blocks at a time. What it holds grows for many rounds and comes to an
 * end: it is correct.
 *
 * GMD_DEFECT=lost: every fifth free forgets its block. With no gmd_empty_cache and no statistics,
 * nobody sees that at the end; only what a device holds after more and more rounds tells. */
#include "gmd_cuda.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT    __attribute__((visibility("default")))
#define ASIDE_MAX 1000

EXPORT void *gmd_malloc(size_t size, int device, cudaStream_t stream);
EXPORT void gmd_free(void *pointer, size_t size, int device, cudaStream_t stream);

static void *aside[ASIDE_MAX];
static size_t aside_count, frees;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void give_back(void)
{
    while (aside_count) {
        cudaFree(aside[--aside_count]);
    }
}

static void *take(size_t size, int device)
{
    void *memory = NULL;
    int previous = 0;
    cudaGetDevice(&previous);
    cudaSetDevice(device);
    if (cudaMalloc(&memory, size) != cudaSuccess) {
        cudaGetLastError();
        give_back();
        if (cudaMalloc(&memory, size) != cudaSuccess) {
            cudaGetLastError();
            memory = NULL;
        }
    }
    cudaSetDevice(previous);
    return memory;
}

void *gmd_malloc(size_t size, int device, cudaStream_t stream)
{
    (void)stream;
    pthread_mutex_lock(&lock);
    void *memory = size ? take(size, device) : NULL;
    pthread_mutex_unlock(&lock);
    return memory;
}

void gmd_free(void *pointer, size_t size, int device, cudaStream_t stream)
{
    (void)size;
    (void)device;
    (void)stream;
    const char *defect = getenv("GMD_DEFECT");
    pthread_mutex_lock(&lock);
    bool is_lost = defect && strcmp(defect, "lost") == 0 && ++frees % 5 == 0;
    if (pointer && !is_lost) {
        if (aside_count == ASIDE_MAX) {
            give_back();
        }
        aside[aside_count++] = pointer;
    }
    pthread_mutex_unlock(&lock);
}
