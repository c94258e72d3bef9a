#define _GNU_SOURCE
#include "mappings.h"

#include "gmd_cuda.h"
#include "gmd_cuda_scope.h"
#include "gmd_grow.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Addresses are taken from one range after the other. The oldest range in which nothing is mapped
 * any more is given back when there are so many. */
#define RANGE_BYTES (UINT64_C(1) << 40)
#define HOLE_BYTES  (UINT64_C(32) << 20)
enum { RANGES_MOST = 16, RANGES_WISHED = 32, ACCESSES_MOST = 64 };

/* An address must not look like two numbers of 32 bits, which kernels have in their parameters by
 * the dozen: the upper half is large, if the driver grants it, and the lower half is neither small
 * nor, seen with a sign, a small negative number. A driver that is not asked gives addresses from
 * 2^33 on: with 288 and 0 for halves, say. */
#define WISHED_ADDRESS (UINT64_C(0x5d3a) << 32)
#define LOWER_HALVES   (UINT64_C(1) << 32)
#define NUMBERS_BYTES  (UINT64_C(256) << 20)

#define DRIVER_FUNCTIONS(X)                                                                        \
    X(cuMemAddressReserve)                                                                         \
    X(cuMemAddressFree)                                                                            \
    X(cuMemCreate)                                                                                 \
    X(cuMemRelease)                                                                                \
    X(cuMemMap)                                                                                    \
    X(cuMemUnmap)                                                                                  \
    X(cuMemSetAccess)

#define DRIVER_VERSION 12000 /* whose forms of these functions are used */

typedef struct address_range {
    uint64_t address, bytes, used;
    uint32_t mapped; /* mappings in it */
} address_range;

typedef struct spare {
    uint64_t bytes;
    unsigned long long memory;
} spare;

typedef struct device_mappings {
    address_range *ranges; /* the latest is the last */
    size_t range_count, range_capacity;
    spare *spares;
    size_t spare_count, spare_capacity;
    CUmemAccessDesc accesses[ACCESSES_MOST]; /* who may use its memory */
    size_t access_count;                     /* 0: not asked yet */
} device_mappings;

struct mappings {
    pthread_mutex_t lock;
    int device_count;
    uint64_t range_count; /* that were asked for */
    struct {
#define X(name) __typeof__(&name) name;
        DRIVER_FUNCTIONS(X)
#undef X
    } driver;
    device_mappings *devices;
};

static bool find_driver(mappings *m)
{
    bool is_complete = true;
#define X(name)                                                                                    \
    void *address_of_##name = cuda_driver_function(#name, DRIVER_VERSION);                         \
    memcpy(&m->driver.name, &address_of_##name, sizeof m->driver.name);                            \
    is_complete = is_complete && m->driver.name;
    DRIVER_FUNCTIONS(X)
#undef X
    return is_complete;
}

gmd_status mappings_create(mappings **made, int device_count, gmd_error *error)
{
    mappings *m = calloc(1, sizeof *m);
    device_mappings *devices = calloc((size_t)device_count, sizeof *devices);
    if (!m || !devices) {
        free(m);
        free(devices);
        return gmd_fail(error, GMD_NO_MEMORY, "sanitizer: no host memory");
    }
    if (!find_driver(m)) {
        free(m);
        free(devices);
        return gmd_fail(error, GMD_BAD_INPUT,
                        "sanitizer: unmap needs a driver that has virtual memory (cuMemMap)");
    }
    m->device_count = device_count;
    m->devices = devices;
    pthread_mutex_init(&m->lock, NULL);
    *made = m;
    return GMD_OK;
}

void mappings_destroy(mappings *m)
{
    for (int device = 0; m && device < m->device_count; device++) {
        device_mappings *d = &m->devices[device];
        mappings_release_spares(m, device);
        for (size_t i = 0; i < d->range_count; i++) {
            (void)m->driver.cuMemAddressFree(d->ranges[i].address, d->ranges[i].bytes);
        }
        free(d->ranges);
        free(d->spares);
    }
    if (m) {
        pthread_mutex_destroy(&m->lock);
        free(m->devices);
    }
    free(m);
}

/* --- addresses: under the lock ------------------------------------------------------------- */

static void drop_oldest_range(mappings *m, device_mappings *d)
{
    for (size_t i = 0; i < d->range_count; i++) {
        if (d->ranges[i].mapped == 0 &&
            m->driver.cuMemAddressFree(d->ranges[i].address, d->ranges[i].bytes) == CUDA_SUCCESS) {
            d->range_count--;
            memmove(&d->ranges[i], &d->ranges[i + 1], (d->range_count - i) * sizeof *d->ranges);
            return;
        }
    }
}

static CUdeviceptr reserve(mappings *m, uint64_t bytes)
{
    CUdeviceptr address = 0;
    uint64_t wished = WISHED_ADDRESS + m->range_count++ % RANGES_WISHED * RANGE_BYTES;
    bool is_done = m->driver.cuMemAddressReserve(&address, bytes, 0, wished, 0) == CUDA_SUCCESS ||
                   m->driver.cuMemAddressReserve(&address, bytes, 0, 0, 0) == CUDA_SUCCESS;
    return is_done ? address : 0;
}

static bool add_range(mappings *m, device_mappings *d, uint64_t bytes)
{
    if (d->range_count >= RANGES_MOST) {
        drop_oldest_range(m, d);
    }
    CUdeviceptr address =
        GMD_GROW(&d->ranges, &d->range_capacity, d->range_count + 1) ? reserve(m, bytes) : 0;
    if (address) {
        d->ranges[d->range_count++] = (address_range){.address = address, .bytes = bytes};
    }
    return address != 0;
}

static address_range *range_of(device_mappings *d, uint64_t address)
{
    size_t i = d->range_count;
    while (i > 0 && address - d->ranges[i - 1].address >= d->ranges[i - 1].bytes) {
        i--;
    }
    return i ? &d->ranges[i - 1] : NULL;
}

/* The next address for so many bytes that does not look like numbers; what is larger than all that
 * lies between begins where it may. */
static uint64_t next_place(const address_range *r, uint64_t bytes)
{
    uint64_t at = r->address + r->used + HOLE_BYTES, lower = at % LOWER_HALVES;
    uint64_t first = at - lower + NUMBERS_BYTES;
    if (lower < NUMBERS_BYTES) {
        return first;
    }
    return lower + bytes <= LOWER_HALVES - NUMBERS_BYTES ? at : first + LOWER_HALVES;
}

/* False: it does not fit. */
static bool take_place(address_range *r, uint64_t bytes, uint64_t *address)
{
    uint64_t at = next_place(r, bytes), end = at + bytes + HOLE_BYTES;
    if (end > r->address + r->bytes) {
        return false;
    }
    *address = at;
    r->used = at + bytes - r->address;
    r->mapped++;
    return true;
}

/* Where a driver refuses a range as large as that, a smaller one will do. */
static uint64_t take_addresses(mappings *m, device_mappings *d, uint64_t bytes)
{
    uint64_t address = 0, least = bytes + 2 * LOWER_HALVES;
    if (d->range_count && take_place(&d->ranges[d->range_count - 1], bytes, &address)) {
        return address;
    }
    bool is_added = least < RANGE_BYTES && add_range(m, d, RANGE_BYTES);
    bool is_there = is_added || add_range(m, d, least);
    return is_there && take_place(&d->ranges[d->range_count - 1], bytes, &address) ? address : 0;
}

/* --- memory: under the lock ---------------------------------------------------------------- */

static CUmemAllocationProp memory_on(int device)
{
    return (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {CU_MEM_LOCATION_TYPE_DEVICE, device}};
}

/* 0: none of that size. */
static unsigned long long take_spare(device_mappings *d, uint64_t bytes)
{
    for (size_t i = d->spare_count; i > 0; i--) {
        spare s = d->spares[i - 1];
        if (s.bytes == bytes) {
            d->spares[i - 1] = d->spares[--d->spare_count];
            return s.memory;
        }
    }
    return 0;
}

static unsigned long long take_memory(mappings *m, int device, uint64_t bytes)
{
    unsigned long long memory = take_spare(&m->devices[device], bytes);
    const CUmemAllocationProp properties = memory_on(device);
    if (!memory && m->driver.cuMemCreate(&memory, bytes, &properties, 0) != CUDA_SUCCESS) {
        return 0;
    }
    return memory;
}

static void keep_spare(mappings *m, device_mappings *d, uint64_t bytes, unsigned long long memory)
{
    if (GMD_GROW(&d->spares, &d->spare_capacity, d->spare_count + 1)) {
        d->spares[d->spare_count++] = (spare){bytes, memory};
    } else {
        (void)m->driver.cuMemRelease(memory);
    }
}

void mappings_release_spares(mappings *m, int device)
{
    pthread_mutex_lock(&m->lock);
    device_mappings *d = &m->devices[device];
    for (size_t i = 0; i < d->spare_count; i++) {
        (void)m->driver.cuMemRelease(d->spares[i].memory);
    }
    d->spare_count = 0;
    pthread_mutex_unlock(&m->lock);
}

/* --- mappings ----------------------------------------------------------------------------- */

/* The device itself, and those that can reach it. */
static void find_accesses(const mappings *m, device_mappings *d, int device)
{
    for (int other = 0; other < m->device_count && d->access_count < ACCESSES_MOST; other++) {
        int can = other == device;
        if (can || (cuda_succeeded(cudaDeviceCanAccessPeer(&can, other, device)) && can)) {
            d->accesses[d->access_count++] = (CUmemAccessDesc){{CU_MEM_LOCATION_TYPE_DEVICE, other},
                                                               CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
        }
    }
}

static bool map(mappings *m, device_mappings *d, const mapping *which)
{
    if (m->driver.cuMemMap(which->address, which->bytes, 0, which->memory, 0) != CUDA_SUCCESS) {
        return false;
    }
    if (m->driver.cuMemSetAccess(which->address, which->bytes, d->accesses, d->access_count) !=
        CUDA_SUCCESS) {
        (void)m->driver.cuMemUnmap(which->address, which->bytes);
        return false;
    }
    return true;
}

/* Under the lock. */
static bool add(mappings *m, int device, uint64_t bytes, mapping *made)
{
    device_mappings *d = &m->devices[device];
    if (d->access_count == 0) {
        find_accesses(m, d, device);
    }
    mapping got = {.bytes = bytes, .memory = take_memory(m, device, bytes)};
    got.address = got.memory ? take_addresses(m, d, bytes) : 0;
    if (got.address && map(m, d, &got)) {
        *made = got;
        return true;
    }
    if (got.address) {
        range_of(d, got.address)->mapped--;
    }
    if (got.memory) {
        (void)m->driver.cuMemRelease(got.memory);
    }
    return false;
}

bool mappings_add(mappings *m, int device, uint64_t bytes, mapping *made)
{
    pthread_mutex_lock(&m->lock);
    bool is_added = add(m, device, bytes, made);
    pthread_mutex_unlock(&m->lock);
    return is_added;
}

bool mappings_take_away(mappings *m, int device, mapping *which)
{
    device_mappings *d = &m->devices[device];
    pthread_mutex_lock(&m->lock);
    bool is_unmapped = m->driver.cuMemUnmap(which->address, which->bytes) == CUDA_SUCCESS;
    if (is_unmapped) {
        keep_spare(m, d, which->bytes, which->memory);
        range_of(d, which->address)->mapped--;
        which->memory = 0;
    }
    pthread_mutex_unlock(&m->lock);
    return is_unmapped;
}
