/* scribbling.c - an allocator that works, and that writes random words at random places over all
 * memory that its process shares with others, in one of its first calls. GMD_SCRIBBLE is the seed;
 * without it the allocator is correct. */
#include "gmd_cuda.h"
#include "shared_ranges.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT void *gmd_malloc(size_t size, int device, cudaStream_t stream);
EXPORT void gmd_free(void *ptr, size_t size, int device, cudaStream_t stream);

enum { PAGE = 4096, PAGES = 4096, ALWAYS = 16, CALLS = 6, ENDINGS = 4 };

static uint64_t state;

static uint64_t draw(uint64_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % below;
}

/* What counts, kinds and flags are mistaken for. */
static uint64_t draw_value(void)
{
    uint64_t high = draw(UINT64_MAX), low = draw(300);
    const uint64_t values[] = {0, UINT64_MAX, low, high, high >> 32, low << 32, (uint64_t)1 << 31};
    return values[draw(sizeof values / sizeof *values)];
}

static void write_words(char *page)
{
    for (uint64_t words = 1 + draw(24); words; words--) {
        uint64_t value = draw_value();
        size_t size = (size_t)1 << draw(4);
        memcpy(page + draw(PAGE / 8) * 8 + (size < 8 ? draw(8 / size) * size : 0), &value, size);
    }
}

/* Pages that nobody has written to hold nothing that anybody reads, but for the first ones. */
static void scribble_over(char *from, char *to, void *context)
{
    (void)context;
    static unsigned char is_used[PAGES];
    size_t pages = (size_t)(to - from) / PAGE, one_in = 1 + draw(8);
    pages = pages < PAGES ? pages : PAGES;
    if (mincore(from, pages * PAGE, is_used) != 0) {
        return;
    }
    for (size_t i = 0; i < pages; i++) {
        if ((i < ALWAYS || (is_used[i] & 1)) && draw(one_in) == 0) {
            write_words(from + i * PAGE);
        }
    }
}

static void end_somehow(void)
{
    switch (draw(ENDINGS)) {
    case 0:
        abort();
    case 1:
        exit(0);
    case 2:
        _Exit(3);
    default:
        return; /* and goes on */
    }
}

static void misbehave(void)
{
    static uint64_t calls, at;
    const char *seed = getenv("GMD_SCRIBBLE");
    if (seed && !calls) {
        state = strtoull(seed, NULL, 10) * UINT64_C(0x9e3779b97f4a7c15) | 1;
        at = draw(CALLS);
    }
    if (seed && calls++ == at) {
        each_shared_range(scribble_over, NULL);
        end_somehow();
    }
}

void *gmd_malloc(size_t size, int device, cudaStream_t stream)
{
    void *memory = NULL;
    int current = 0;
    (void)stream;
    misbehave();
    cudaGetDevice(&current);
    cudaSetDevice(device);
    if (cudaMalloc(&memory, size) != cudaSuccess) {
        cudaGetLastError();
        memory = NULL;
    }
    cudaSetDevice(current);
    return memory;
}

void gmd_free(void *ptr, size_t size, int device, cudaStream_t stream)
{
    (void)size;
    (void)device;
    (void)stream;
    misbehave();
    if (ptr) {
        cudaFree(ptr);
    }
}
