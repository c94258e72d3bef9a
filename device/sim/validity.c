#include "validity.h"

#include "address_map.h"
#include "events.h"
#include "graphs.h"
#include "pages.h"
#include "pool_blocks.h"
#include "pools.h"
#include "state.h"
#include "streams.h"
#include "virtual_memory.h"

/* Things that a check may come upon for each call. */
#define CALL_ALLOWANCE 32
#define PAGES_CHECKED  64 /* of the inner ones of an allocation */

typedef struct memory_check {
    uint64_t page;  /* the last one that an allocation was found to touch, by address / page size */
    uint32_t users; /* found so far */
    int device;
    uint64_t bytes[GMD_SIM_DEVICE_MAX];
    uint64_t allocations[GMD_SIM_DEVICE_MAX], allocated[GMD_SIM_DEVICE_MAX];
    const char *violation;
} memory_check;

static void find(memory_check *m, bool holds, const char *sentence)
{
    if (!holds && !m->violation) {
        m->violation = sentence;
    }
}

static const char *const page_users = "a page counts the allocations that touch it";

static void end_page(memory_check *m)
{
    if (m->users) {
        find(m, pages_are(m->page * GMD_SIM_PAGE_BYTES, m->users, m->device), page_users);
        m->bytes[m->device] += GMD_SIM_PAGE_BYTES;
    }
    m->users = 0;
}

static void begin_page(memory_check *m, uint64_t page, int device)
{
    if (!m->users || m->page != page) {
        end_page(m);
    }
    find(m, !m->users || m->device == device, "a page is of one device");
    m->page = page;
    m->device = device;
    m->users++;
}

static void touch_pages(memory_check *m, uint64_t address, uint64_t span, int device)
{
    uint64_t first = address / GMD_SIM_PAGE_BYTES, last = (address + span - 1) / GMD_SIM_PAGE_BYTES;
    begin_page(m, first, device);
    if (last == first) {
        return;
    }
    end_page(m);
    for (uint64_t page = first + 1; page < last && page <= first + PAGES_CHECKED; page++) {
        find(m, pages_are(page * GMD_SIM_PAGE_BYTES, 1, device), page_users);
    }
    m->bytes[device] += (last - first - 1) * GMD_SIM_PAGE_BYTES;
    begin_page(m, last, device);
}

/* A chunk of a pool takes its pages once, whatever it is cut into. */
static void add_allocation(void *context, const allocation *a)
{
    memory_check *m = context;
    uint64_t span = a->pool_block ? chunk_span(a->pool_block) : a->span;
    find(m, device_exists(a->device), "an allocation is of a device");
    find(m, a->size <= a->span, "an allocation takes what was asked for, or more");
    if (m->violation || a->reservation || !span) {
        return;
    }
    touch_pages(m, a->address, span, a->device);
    m->allocations[a->device]++;
    m->allocated[a->device] += a->pool_block ? span : a->size;
}

static const char *totals_violation(const memory_check *m)
{
    for (uint32_t i = 0; i < sim.config.device_count; i++) {
        const sim_device *d = &sim.devices[i];
        if (d->physical_bytes != m->bytes[i]) {
            return "physical memory in use is the sum over pages and handles";
        }
        if (d->allocation_count != m->allocations[i] || d->allocated_bytes != m->allocated[i]) {
            return "a device counts its allocations and their bytes";
        }
    }
    return NULL;
}

static const char *memory_violation(void)
{
    memory_check m = {0};
    const char *violation = map_violation(add_allocation, &m);
    end_page(&m);
    violation = violation ? violation : m.violation;
    violation = violation ? violation : virtual_violation(m.bytes);
    return violation ? violation : totals_violation(&m);
}

const char *sim_violation(void)
{
    const char *violation = memory_violation();
    violation = violation ? violation : pools_violation();
    violation = violation ? violation : streams_violation();
    violation = violation ? violation : events_violation();
    return violation ? violation : graphs_violation();
}

static uint64_t cost(void)
{
    uint64_t things = 32 + 2 * (uint64_t)streams.stream_structs;
    for (uint32_t i = 0; i < sim.config.device_count; i++) {
        const sim_device *d = &sim.devices[i];
        things += d->allocation_count + d->handle_count + d->event_count + d->reservation_count;
        things += d->mapped_bytes / GMD_SIM_PAGE_BYTES;
    }
    return things;
}

const char *sim_due_violation(void)
{
    static uint64_t unchecked; /* under the lock */
    unchecked += CALL_ALLOWANCE;
    if (sim.running || unchecked < cost()) {
        return NULL;
    }
    unchecked = 0;
    return sim_violation();
}
