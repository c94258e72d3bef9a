/* limited.c - cudaMalloc with a limit in front of it, in the design of RMM's
 * limiting_resource_adaptor (https://docs.rapids.ai/api/rmm): a counter of the bytes handed out,
 * which nothing but atomic operations guards.
 *
 * Defects:
 *   rmm868   the counter is looked at before the memory is taken and raised after it: two threads
 *            find room for one (rapidsai/rmm#868) */
#include "faulty.h"

#include <stdatomic.h>
#include <stdlib.h>

enum { RMM868 };
const char *const faulty_defects[] = {"rmm868", NULL};

typedef struct counters {
    atomic_uint_fast64_t claimed; /* what the limit is held against; more than is held at times */
    atomic_uint_fast64_t bytes, peak;        /* held */
    atomic_uint_fast64_t count, ooms, limit; /* limit 0: none */
} counters;

static counters devices[FAULTY_DEVICES];

static void raise_peak(counters *c, uint64_t bytes)
{
    uint64_t peak = atomic_load(&c->peak);
    while (bytes > peak && !atomic_compare_exchange_weak(&c->peak, &peak, bytes)) {
    }
}

static bool fits(const counters *c, uint64_t bytes)
{
    uint64_t limit = atomic_load(&c->limit);
    return !limit || bytes <= limit;
}

static void *take(counters *c, size_t size)
{
    void *memory = NULL;
    uint64_t before =
        faulty_is(RMM868) ? atomic_load(&c->claimed) : atomic_fetch_add(&c->claimed, size);
    if (!fits(c, before + size) || cudaMalloc(&memory, size) != cudaSuccess) {
        cudaGetLastError();
        if (!faulty_is(RMM868)) {
            atomic_fetch_sub(&c->claimed, size);
        }
        return NULL;
    }
    if (faulty_is(RMM868)) {
        atomic_fetch_add(&c->claimed, size);
    }
    raise_peak(c, atomic_fetch_add(&c->bytes, size) + size);
    return memory;
}

void *gmd_malloc(size_t size, int device, cudaStream_t stream)
{
    (void)stream;
    counters *c = &devices[device];
    faulty_guard guard = faulty_enter_device(device);
    void *memory = size && size <= SIZE_MAX / 2 ? take(c, size) : NULL;
    faulty_leave_device(guard);
    if (memory) {
        atomic_fetch_add(&c->count, 1);
    } else if (size) {
        atomic_fetch_add(&c->ooms, 1);
    }
    return memory;
}

void gmd_free(void *pointer, size_t size, int device, cudaStream_t stream)
{
    (void)stream;
    atomic_fetch_sub(&devices[device].bytes, size); /* never more than the device has */
    if (cudaFree(pointer) != cudaSuccess) {
        cudaGetLastError();
    }
    atomic_fetch_sub(&devices[device].claimed, size);
    atomic_fetch_sub(&devices[device].count, 1);
}

void gmd_empty_cache(void) {}

void gmd_set_memory_fraction(double fraction, int device)
{
    size_t unused, total = 0;
    faulty_guard guard = faulty_enter_device(device);
    if (cudaMemGetInfo(&unused, &total) == cudaSuccess) {
        atomic_store(&devices[device].limit, (uint64_t)(fraction * (double)total));
    }
    faulty_leave_device(guard);
}

int gmd_get_stats(int device, gmd_stats *out)
{
    counters *c = &devices[device];
    uint64_t bytes = atomic_load(&c->bytes), count = atomic_load(&c->count);
    gmd_stats s = {.allocated_bytes = bytes,
                   .allocated_bytes_peak = atomic_load(&c->peak),
                   .reserved_bytes = bytes,
                   .reserved_bytes_peak = atomic_load(&c->peak),
                   .requested_bytes = bytes,
                   .allocation_count = count,
                   .segment_count = count,
                   .num_ooms = atomic_load(&c->ooms)};
    return faulty_give_stats(&s, out);
}
