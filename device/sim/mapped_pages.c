#define _GNU_SOURCE /* MAP_ANONYMOUS, MAP_NORESERVE */
#include "mapped_pages.h"

#include <stddef.h>
#include <sys/mman.h>

enum { SMALLEST_LOG2 = 12, LARGEST_LOG2 = 20, CLASSES = LARGEST_LOG2 - SMALLEST_LOG2 + 1 };
enum { KEPT_MAX = 64 };

typedef struct shelf { /* of tables of one size, a power of two */
    mapped_page *tables[KEPT_MAX];
    unsigned count;
} shelf;

static shelf shelves[CLASSES];

/* CLASSES: too large to be kept. */
static unsigned class_of(uint64_t bytes)
{
    unsigned index = 0;
    while (index < CLASSES && bytes > UINT64_C(1) << (SMALLEST_LOG2 + index)) {
        index++;
    }
    return index;
}

static uint64_t mapped_bytes(uint64_t count, unsigned class)
{
    return class < CLASSES ? UINT64_C(1) << (SMALLEST_LOG2 + class) : count * sizeof(mapped_page);
}

mapped_page *mapped_pages_take(uint64_t count)
{
    unsigned class = class_of(count * sizeof(mapped_page));
    if (class < CLASSES && shelves[class].count) {
        return shelves[class].tables[--shelves[class].count];
    }
    void *pages = mmap(NULL, mapped_bytes(count, class), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return pages == MAP_FAILED ? NULL : pages;
}

void mapped_pages_give_back(mapped_page *pages, uint64_t count)
{
    unsigned class = class_of(count * sizeof(mapped_page));
    if (class < CLASSES && shelves[class].count < KEPT_MAX) {
        shelves[class].tables[shelves[class].count++] = pages;
    } else {
        munmap(pages, mapped_bytes(count, class));
    }
}
