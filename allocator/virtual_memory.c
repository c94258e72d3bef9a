#include "virtual_memory.h"

#include "gmd_assert.h"
#include "gmd_cuda.h"
#include "gmd_cuda_scope.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* --- the driver's functions -------------------------------------------------------------- */

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

static void find_driver(void)
{
    driver.is_complete = true;
#define X(name)                                                                                    \
    void *address_of_##name = cuda_driver_function(#name, DRIVER_VERSION);                         \
    memcpy(&driver.name, &address_of_##name, sizeof driver.name);                                  \
    driver.is_complete = driver.is_complete && driver.name;
    DRIVER_FUNCTIONS(X)
#undef X
}

/* A lookup that fails may succeed the next time. */
static bool has_driver(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    if (!driver.is_complete) {
        find_driver();
    }
    bool is_complete = driver.is_complete;
    pthread_mutex_unlock(&lock);
    return is_complete;
}

#define NO_MEMORY UINT64_MAX /* in place of a handle: the page's memory is lent */

/* What cannot be given back is lost: it is tried twice. */
static void give_back(unsigned long long handle)
{
    if (driver.cuMemRelease(handle) != CUDA_SUCCESS) {
        (void)driver.cuMemRelease(handle);
    }
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
    GMD_ASSERT(!s->mapped_pages, "addresses that go have no memory");
    GMD_ASSERT_VALID(segment_violation(s));
    if (driver.cuMemAddressFree(s->address, s->size) != CUDA_SUCCESS) {
        (void)driver.cuMemAddressFree(s->address, s->size); /* else they are lost */
    }
    segment_abandon(s);
}

void segment_abandon(struct segment *s)
{
    free(s->handles);
    free(s->is_detached);
    free(s);
}

static uint64_t page_count(const struct segment *s)
{
    return s->size / s->page_bytes;
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

static bool create_page(const struct segment *s, unsigned long long *out)
{
    CUmemAllocationProp properties = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = s->device}};
    CUmemGenericAllocationHandle handle = 0;
    if (driver.cuMemCreate(&handle, s->page_bytes, &properties, 0) != CUDA_SUCCESS) {
        return false;
    }
    *out = handle;
    return true;
}

static bool create_pages(mapping *m)
{
    for (; m->created < m->count; m->created++) {
        if (!m->s->handles[m->first + m->created] && !create_page(m->s, &m->made[m->created])) {
            return false;
        }
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
        give_back(m->made[i]);
    }
}

bool segment_map(struct segment *s, uint64_t first, uint64_t count)
{
    GMD_ASSERT(count && first + count <= page_count(s), "the pages are of the segment");
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

/* False: the driver refuses. A page that is lent is detached already. */
static bool detach_page(struct segment *s, uint64_t page)
{
    bool is_detached = s->is_detached && s->is_detached[page];
    return is_detached || driver.cuMemUnmap(page_address(s, page), s->page_bytes) == CUDA_SUCCESS;
}

uint64_t segment_unmap(struct segment *s, uint64_t first, uint64_t count)
{
    cuda_scope scope;
    uint64_t done = 0;
    GMD_ASSERT(count && first + count <= page_count(s), "the pages are of the segment");
    GMD_ASSERT_INTERNAL(segment_is_mapped(s, first, count), "pages that go have memory");
    if (!cuda_scope_enter(&scope, s->device)) {
        return 0;
    }
    for (; done < count && detach_page(s, first + done); done++) {
        unsigned long long *handle = &s->handles[first + done];
        if (*handle != NO_MEMORY) {
            give_back(*handle);
        }
        *handle = 0;
    }
    s->mapped_pages -= done;
    cuda_scope_leave(&scope);
    return done;
}

/* --- lending ----------------------------------------------------------------------------- */

/* Each function takes up where a call that failed has stopped, in either direction: what is to be
 * done to a page is seen from the page. */

bool segment_detach(struct segment *s)
{
    if (!s->is_detached && !(s->is_detached = calloc(page_count(s), sizeof *s->is_detached))) {
        return false;
    }
    for (uint64_t page = 0; page < page_count(s); page++) {
        if (s->handles[page] && !detach_page(s, page)) {
            return false;
        }
        s->is_detached[page] = s->handles[page] != 0;
    }
    return true;
}

bool segment_drop_memory(struct segment *s)
{
    bool is_dropped = true;
    for (uint64_t page = 0; s->is_detached && page < page_count(s); page++) {
        unsigned long long *handle = &s->handles[page];
        if (!s->is_detached[page] || *handle == NO_MEMORY || !*handle) {
            continue;
        }
        if (driver.cuMemRelease(*handle) == CUDA_SUCCESS) {
            *handle = NO_MEMORY;
        } else {
            is_dropped = false;
        }
    }
    return is_dropped;
}

bool segment_take_memory(struct segment *s)
{
    for (uint64_t page = 0; s->is_detached && page < page_count(s); page++) {
        if (s->handles[page] == NO_MEMORY && !create_page(s, &s->handles[page])) {
            return false;
        }
    }
    return true;
}

/* Access is set for ranges of pages without a gap; more than once does no harm. */
static bool set_access(const struct segment *s)
{
    CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = s->device},
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    uint64_t end;
    for (uint64_t page = 0; page < page_count(s); page = end) {
        end = page;
        while (end < page_count(s) && s->handles[end]) {
            end++;
        }
        if (end > page && driver.cuMemSetAccess(page_address(s, page), (end - page) * s->page_bytes,
                                                &access, 1) != CUDA_SUCCESS) {
            return false;
        }
        end += end == page;
    }
    return true;
}

bool segment_attach(struct segment *s)
{
    for (uint64_t page = 0; s->is_detached && page < page_count(s); page++) {
        if (!s->is_detached[page] || !s->handles[page]) {
            continue;
        }
        if (driver.cuMemMap(page_address(s, page), s->page_bytes, 0, s->handles[page], 0) !=
            CUDA_SUCCESS) {
            return false;
        }
        s->is_detached[page] = false;
    }
    if (s->is_detached && !set_access(s)) {
        return false;
    }
    free(s->is_detached);
    s->is_detached = NULL;
    return true;
}

/* --- validity ---------------------------------------------------------------------------- */

bool segment_is_mapped(const struct segment *s, uint64_t first, uint64_t count)
{
    for (uint64_t page = first; page < first + count; page++) {
        if (page >= page_count(s) || !s->handles[page] ||
            (s->handles[page] == NO_MEMORY && !s->is_detached)) {
            return false;
        }
    }
    return true;
}

const char *segment_violation(const struct segment *s)
{
    uint64_t mapped = 0;
    for (uint64_t page = 0; page < page_count(s); page++) {
        mapped += s->handles[page] != 0;
    }
    return mapped == s->mapped_pages ? NULL : "a segment counts the pages that have memory";
}
