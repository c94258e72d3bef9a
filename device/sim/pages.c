#define _GNU_SOURCE /* MAP_ANONYMOUS, MAP_NORESERVE */
#include "pages.h"

#include "address_map.h"
#include "gmd_assert.h"
#include "gmd_sim.h"

#include <sys/mman.h>

typedef struct page {
    uint16_t users; /* allocations that touch it: at most 4096, of 512 bytes each */
    uint8_t device; /* meaningful while there are users */
} page;

static page *pages;

bool pages_init(void)
{
    if (!pages) {
        void *table =
            mmap(NULL, ADDRESS_SPACE_END / GMD_SIM_PAGE_BYTES * sizeof(page),
                 PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        pages = table == MAP_FAILED ? NULL : table;
    }
    return pages != NULL;
}

static page *first_page(uint64_t address)
{
    return &pages[address / GMD_SIM_PAGE_BYTES];
}

static page *last_page(uint64_t address, uint64_t size)
{
    return &pages[(address + size - 1) / GMD_SIM_PAGE_BYTES];
}

uint64_t pages_missing(uint64_t address, uint64_t size, int device)
{
    uint64_t count = 0;
    const page *last = last_page(address, size);
    for (const page *p = first_page(address); p <= last; p++) {
        if (p->users == 0) {
            count++;
        } else if (p->device != device) {
            return UINT64_MAX;
        }
    }
    return count * GMD_SIM_PAGE_BYTES;
}

uint64_t pages_take(uint64_t address, uint64_t size, int device)
{
    uint64_t count = 0;
    const page *last = last_page(address, size);
    for (page *p = first_page(address); p <= last; p++) {
        GMD_ASSERT_INTERNAL(!p->users || p->device == device, "a page is of one device");
        count += p->users++ == 0;
        p->device = (uint8_t)device;
    }
    return count * GMD_SIM_PAGE_BYTES;
}

uint64_t pages_release(uint64_t address, uint64_t size)
{
    uint64_t count = 0;
    const page *last = last_page(address, size);
    for (page *p = first_page(address); p <= last; p++) {
        GMD_ASSERT(p->users, "a page that is given back has users");
        count += --p->users == 0;
    }
    return count * GMD_SIM_PAGE_BYTES;
}

bool pages_are(uint64_t address, uint32_t users, int device)
{
    const page *p = first_page(address);
    return p->users == users && p->device == device;
}
