#include "virtual_memory.h"

#include <stdlib.h>
#include <string.h>

#define DRIVER_FUNCTIONS(X)                                                                        \
    X(cuMemAddressReserve)                                                                         \
    X(cuMemAddressFree)                                                                            \
    X(cuMemCreate)                                                                                 \
    X(cuMemRelease)                                                                                \
    X(cuMemMap)                                                                                    \
    X(cuMemUnmap)                                                                                  \
    X(cuMemSetAccess)

#define DRIVER_VERSION 12000

static struct {
#define X(name) __typeof__(&name) name;
    DRIVER_FUNCTIONS(X)
#undef X
    bool is_complete;
} driver;

static CUresult error_code; /* vllm36651: of any call, and never cleared */

static void *find(const char *name)
{
    void *function = NULL;
    enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    if (cudaGetDriverEntryPointByVersion(name, &function, DRIVER_VERSION, 0, &found) !=
        cudaSuccess) {
        cudaGetLastError();
        return NULL;
    }
    return found == cudaDriverEntryPointSuccess ? function : NULL;
}

static bool has_driver(void)
{
    if (!driver.is_complete) {
        driver.is_complete = true;
#define X(name)                                                                                    \
    void *address_of_##name = find(#name);                                                         \
    memcpy(&driver.name, &address_of_##name, sizeof driver.name);                                  \
    driver.is_complete = driver.is_complete && driver.name;
        DRIVER_FUNCTIONS(X)
#undef X
    }
    return driver.is_complete;
}

static CUdeviceptr address_of(const range *r, size_t page)
{
    return r->address + page * PAGE;
}

bool range_reserve(range *r, uint64_t size, int device, gmd_stats *stats)
{
    size_t pages = (size_t)((size + PAGE - 1) / PAGE);
    *r = (range){.pages = pages, .device = device, .stats = stats};
    r->states = calloc(pages, sizeof *r->states);
    r->handles = calloc(pages, sizeof *r->handles);
    CUdeviceptr address = 0;
    if (!has_driver() || !r->states || !r->handles ||
        driver.cuMemAddressReserve(&address, pages * PAGE, 0, 0, 0) != CUDA_SUCCESS) {
        free(r->states);
        free(r->handles);
        return false;
    }
    r->address = address;
    return true;
}

/* What cannot be given back is lost: it is tried twice. */
void range_free(range *r)
{
    if (!faulty_is(RESERVATION_LEAKED) &&
        driver.cuMemAddressFree(r->address, r->pages * PAGE) != CUDA_SUCCESS) {
        driver.cuMemAddressFree(r->address, r->pages * PAGE);
    }
    free(r->states);
    free(r->handles);
}

bool range_is_empty(const range *r)
{
    for (size_t page = 0; page < r->end; page++) {
        if (r->states[page] != PAGE_EMPTY) {
            return false;
        }
    }
    return true;
}

static bool release(CUmemGenericAllocationHandle handle)
{
    if (faulty_is(RELEASED_TWICE)) {
        driver.cuMemRelease(handle);
    }
    bool is_released = driver.cuMemRelease(handle) == CUDA_SUCCESS;
    if (!is_released) {
        is_released = driver.cuMemRelease(handle) == CUDA_SUCCESS;
    }
    return is_released;
}

static bool unmap(const range *r, size_t page)
{
    bool is_unmapped = driver.cuMemUnmap(address_of(r, page), PAGE) == CUDA_SUCCESS;
    if (!is_unmapped) {
        is_unmapped = driver.cuMemUnmap(address_of(r, page), PAGE) == CUDA_SUCCESS;
    }
    return is_unmapped;
}

void victims_release(victims *v)
{
    for (size_t i = 0; i < v->count; i++) {
        release(v->handles[i]);
    }
    free(v->handles);
    *v = (victims){0};
}

static bool keep(victims *v, CUmemGenericAllocationHandle handle)
{
    if (v->count == v->capacity) {
        size_t capacity = v->capacity ? 2 * v->capacity : 64;
        CUmemGenericAllocationHandle *grown = realloc(v->handles, capacity * sizeof *grown);
        if (!grown) {
            return false;
        }
        v->handles = grown;
        v->capacity = capacity;
    }
    v->handles[v->count++] = handle;
    return true;
}

/* A page that the driver does not unmap stays as it is, and one day is used again. */
void range_unmap(range *r, size_t page, victims *v)
{
    if (r->states[page] == PAGE_MAPPED || r->states[page] == PAGE_READY) {
        if (!unmap(r, page)) {
            return;
        }
        r->states[page] = PAGE_CREATED;
        r->stats->reserved_bytes -= faulty_is(VLLM37111) ? 0 : PAGE;
    }
    if (r->states[page] == PAGE_CREATED &&
        (keep(v, r->handles[page]) || release(r->handles[page]))) {
        r->states[page] = PAGE_EMPTY;
    }
}

/* --- mapping ------------------------------------------------------------------------------ */

static bool succeeds(CUresult result)
{
    if (result != CUDA_SUCCESS) {
        error_code = result;
    }
    return result == CUDA_SUCCESS;
}

static bool create(range *r, size_t page)
{
    int device = r->device;
    if (faulty_is(MEMORY_OF_CURRENT)) { /* which is the caller's: nobody has made another one so */
        cudaGetDevice(&device);
    }
    const CUmemAllocationProp properties = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
    if (!succeeds(driver.cuMemCreate(&r->handles[page], PAGE, &properties, 0))) {
        return false;
    }
    r->states[page] = PAGE_CREATED;
    return true;
}

static bool map(range *r, size_t page)
{
    if (!succeeds(driver.cuMemMap(address_of(r, page), PAGE, 0, r->handles[page], 0))) {
        return false;
    }
    r->states[page] = PAGE_MAPPED;
    r->end = page >= r->end ? page + 1 : r->end;
    r->stats->reserved_bytes += PAGE;
    if (r->stats->reserved_bytes > r->stats->reserved_bytes_peak) {
        r->stats->reserved_bytes_peak = r->stats->reserved_bytes;
    }
    return true;
}

/* The pages from `page` on that are mapped and cannot be used yet. */
static bool allow_run(range *r, size_t page, size_t count)
{
    const CUmemAccessDesc access = {
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = r->device},
        .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    size_t allowed = faulty_is(ACCESS_NOT_SET) ? 1 : count;
    if (!succeeds(driver.cuMemSetAccess(address_of(r, page), allowed * PAGE, &access, 1))) {
        return false;
    }
    memset(&r->states[page], PAGE_READY, count);
    return true;
}

static bool allow(range *r, size_t first, size_t last)
{
    for (size_t page = first; page <= last; page++) {
        size_t count = 0;
        while (page + count <= last && r->states[page + count] == PAGE_MAPPED) {
            count++;
        }
        if (count && !allow_run(r, page, count)) {
            return false;
        }
    }
    return true;
}

/* What this call has made is taken down again. */
static void roll_back(range *r, size_t first, size_t last)
{
    victims v = {0};
    for (size_t page = first; page <= last; page++) {
        if (faulty_is(PYTORCH188008) && r->states[page] != PAGE_EMPTY) {
            r->states[page] = PAGE_READY; /* as if all of it had been mapped */
        } else if (faulty_is(VLLM34602) && r->states[page] == PAGE_MAPPED) {
            r->states[page] = PAGE_EMPTY; /* stays mapped, and nobody knows */
            r->stats->reserved_bytes -= PAGE;
        } else if (faulty_is(HANDLE_LEAKED) && r->states[page] == PAGE_CREATED) {
            r->states[page] = PAGE_EMPTY;
        } else if (r->states[page] != PAGE_READY) {
            range_unmap(r, page, &v);
        }
    }
    victims_release(&v);
}

static bool map_all(range *r, size_t first, size_t last)
{
    for (size_t page = first; page <= last; page++) {
        if (r->states[page] == PAGE_EMPTY && !create(r, page)) {
            return false;
        }
    }
    for (size_t page = first; page <= last; page++) {
        if (r->states[page] == PAGE_CREATED && !map(r, page)) {
            return false;
        }
    }
    return allow(r, first, last);
}

bool range_map(range *r, size_t first, size_t last)
{
    if (faulty_is(VLLM36651) && error_code != CUDA_SUCCESS) {
        create(r, first); /* and then stops for an error that is not its own */
        r->states[first] = PAGE_EMPTY;
        return false;
    }
    if (map_all(r, first, last)) {
        return true;
    }
    roll_back(r, first, last);
    return false;
}
