#include "virtual_memory.h"

#include "cuda_scope.h"
#include "gmd_cuda.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* --- the driver's functions: found through the runtime, so that no other library is needed ---- */

#define DRIVER_FUNCTIONS(X)                                                                        \
    X(cuMemAddressReserve)                                                                         \
    X(cuMemAddressFree)                                                                            \
    X(cuMemCreate)                                                                                 \
    X(cuMemRelease)                                                                                \
    X(cuMemMap)                                                                                    \
    X(cuMemUnmap)                                                                                  \
    X(cuMemSetAccess)

#define DRIVER_VERSION 12000 /* whose forms of these functions are used */

static struct {
#define X(name) __typeof__(&name) name;
    DRIVER_FUNCTIONS(X)
#undef X
    bool is_complete;
} driver;

static void *entry_point(const char *name)
{
    void *function = NULL;
    enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    bool is_asked = cuda_succeeded(
        cudaGetDriverEntryPointByVersion(name, &function, DRIVER_VERSION, 0, &found));
    return is_asked && found == cudaDriverEntryPointSuccess ? function : NULL;
}

static void find_driver(void)
{
    driver.is_complete = true;
#define X(name)                                                                                    \
    void *address_of_##name = entry_point(#name);                                                  \
    memcpy(&driver.name, &address_of_##name, sizeof driver.name);                                  \
    driver.is_complete = driver.is_complete && driver.name;
    DRIVER_FUNCTIONS(X)
#undef X
}

static bool has_driver(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_driver);
    return driver.is_complete;
}

/* --- segments ---------------------------------------------------------------------------- */

struct segment *segment_reserve(int device, uint64_t size, uint64_t page_bytes)
{
    uint64_t pages = size / page_bytes + (size % page_bytes != 0);
    struct segment *s = has_driver() ? calloc(1, sizeof *s) : NULL;
    unsigned long long *handles = s ? calloc(pages, sizeof *handles) : NULL;
    CUdeviceptr address = 0;
    if (!handles ||
        driver.cuMemAddressReserve(&address, pages * page_bytes, 0, 0, 0) != CUDA_SUCCESS) {
        free(handles);
        free(s);
        return NULL;
    }
    *s = (struct segment){.address = address,
                          .place = address,
                          .size = pages * page_bytes,
                          .page_bytes = page_bytes,
                          .device = device,
                          .handles = handles};
    return s;
}

void segment_release(struct segment *s)
{
    (void)driver.cuMemAddressFree(s->address, s->size);
    free(s->handles);
    free(s);
}

static uint64_t page_address(const struct segment *s, uint64_t page)
{
    return s->address + page * s->page_bytes;
}

/* --- mapping ----------------------------------------------------------------------------- */

typedef struct mapping { /* what a call has done so far, to be undone where it fails */
    struct segment *s;
    uint64_t first, count;
    uint64_t created, mapped; /* pages of the range that were looked at */
    unsigned long long *made; /* handles by page of the range; 0: the page was mapped before */
} mapping;

static bool create_pages(mapping *m)
{
    CUmemAllocationProp properties = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = m->s->device}};
    for (; m->created < m->count; m->created++) {
        if (m->s->handles[m->first + m->created]) {
            continue;
        }
        CUmemGenericAllocationHandle handle = 0;
        if (driver.cuMemCreate(&handle, m->s->page_bytes, &properties, 0) != CUDA_SUCCESS) {
            return false;
        }
        m->made[m->created] = handle;
    }
    return true;
}

static bool map_pages(mapping *m)
{
    for (; m->mapped < m->count; m->mapped++) {
        unsigned long long handle = m->made[m->mapped];
        if (handle && driver.cuMemMap(page_address(m->s, m->first + m->mapped), m->s->page_bytes, 0,
                                      handle, 0) != CUDA_SUCCESS) {
            return false;
        }
    }
    CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = m->s->device},
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    return driver.cuMemSetAccess(page_address(m->s, m->first), m->count * m->s->page_bytes, &access,
                                 1) == CUDA_SUCCESS;
}

/* A page that cannot be unmapped again keeps its memory, and is used when it is asked for next. */
static void undo(mapping *m)
{
    for (uint64_t i = 0; i < m->created; i++) {
        if (!m->made[i]) {
            continue;
        }
        uint64_t page = m->first + i;
        if (i < m->mapped &&
            driver.cuMemUnmap(page_address(m->s, page), m->s->page_bytes) != CUDA_SUCCESS) {
            m->s->handles[page] = m->made[i];
            m->s->mapped_pages++;
            continue;
        }
        (void)driver.cuMemRelease(m->made[i]);
    }
}

bool segment_map(struct segment *s, uint64_t first, uint64_t count)
{
    mapping m = {.s = s, .first = first, .count = count, .made = calloc(count, sizeof *m.made)};
    cuda_scope scope;
    if (!m.made || !cuda_scope_enter(&scope, s->device)) {
        free(m.made);
        return false;
    }
    bool is_mapped = create_pages(&m) && map_pages(&m);
    if (!is_mapped) {
        undo(&m);
    }
    for (uint64_t i = 0; is_mapped && i < count; i++) {
        s->handles[first + i] = m.made[i] ? m.made[i] : s->handles[first + i];
        s->mapped_pages += m.made[i] != 0;
    }
    cuda_scope_leave(&scope);
    free(m.made);
    return is_mapped;
}

uint64_t segment_unmap(struct segment *s, uint64_t first, uint64_t count)
{
    cuda_scope scope;
    uint64_t done = 0;
    if (!cuda_scope_enter(&scope, s->device)) {
        return 0;
    }
    for (; done < count; done++) {
        if (driver.cuMemUnmap(page_address(s, first + done), s->page_bytes) != CUDA_SUCCESS) {
            break;
        }
        (void)driver.cuMemRelease(s->handles[first + done]);
        s->handles[first + done] = 0;
    }
    s->mapped_pages -= done;
    cuda_scope_leave(&scope);
    return done;
}
