#include "arena.h"

#include <stdlib.h>
#include <string.h>

#define SUPERBLOCK ((uint64_t)4 << 20) /* the least, if there is room */
#define GRANULE    ((uint64_t)2 << 20)

/* --- chunks ------------------------------------------------------------------------------- */

/* Without host memory the process ends: a chunk that is in no list would be lost. */
static chunk *new_chunk(uint64_t address, uint64_t size, chunk *next)
{
    chunk *c = malloc(sizeof *c);
    if (!c) {
        abort();
    }
    *c = (chunk){.next = next, .address = address, .size = size};
    return c;
}

static void drop_next(chunk **link)
{
    chunk *gone = *link;
    *link = gone->next;
    free(gone);
}

/* The first that fits. */
uint64_t superblock_take(superblock *s, uint64_t size)
{
    for (chunk **link = &s->free; *link; link = &(*link)->next) {
        chunk *c = *link;
        if (c->size < size) {
            continue;
        }
        uint64_t address = c->address, step = size;
        if (faulty_is(SPLIT_TOO_EARLY) && size > UNIT && c->size > size) {
            step = size - UNIT;
        }
        c->address += step;
        c->size -= step;
        if (!c->size) {
            drop_next(link);
        }
        return address;
    }
    return 0;
}

void superblock_put(superblock *s, uint64_t address, uint64_t size)
{
    chunk **link = &s->free, *last = NULL;
    while (*link && (*link)->address < address) {
        last = *link;
        link = &last->next;
    }
    chunk *next = *link;
    bool joins_last = last && last->address + last->size == address;
    bool joins_next = next && address + size == next->address;
    if (faulty_is(RMM2039)) {
        joins_last = joins_next = false;
    }
    if (joins_last) {
        last->size += size + (joins_next ? next->size : 0);
        if (joins_next) {
            drop_next(link);
        }
    } else if (joins_next) {
        next->address = address;
        next->size += size;
    } else {
        *link = new_chunk(address, size, next);
    }
}

bool superblock_is_free(const superblock *s)
{
    const chunk *c = s->free;
    if (faulty_is(RELEASED_IN_USE)) {
        return c && c->address == s->address;
    }
    return c && c->size == s->size;
}

bool superblock_has(const superblock *s, uint64_t address)
{
    return address >= s->address && address - s->address < s->size;
}

superblock *superblock_find(superblock *list, uint64_t address)
{
    while (list && !superblock_has(list, address)) {
        list = list->next;
    }
    return list;
}

/* --- the global arena --------------------------------------------------------------------- */

static size_t find_bin(const global *g, uint64_t size)
{
    size_t i = 0;
    while (i < g->bin_count && g->bins[i].size < size) {
        i++;
    }
    return i;
}

static bin *bin_of(global *g, uint64_t size)
{
    size_t i = find_bin(g, size);
    if (i < g->bin_count && g->bins[i].size == size) {
        return &g->bins[i];
    }
    if (g->bin_count == g->bin_capacity) {
        size_t capacity = g->bin_capacity ? 2 * g->bin_capacity : 16;
        bin *grown = realloc(g->bins, capacity * sizeof *grown);
        if (!grown) {
            abort();
        }
        g->bins = grown;
        g->bin_capacity = capacity;
    }
    memmove(&g->bins[i + 1], &g->bins[i], (g->bin_count - i) * sizeof g->bins[0]);
    g->bins[i] = (bin){.size = size};
    g->bin_count++;
    return &g->bins[i];
}

superblock *global_take(global *g, uint64_t size)
{
    for (size_t i = find_bin(g, size); i < g->bin_count; i++) {
        for (superblock **link = &g->bins[i].superblocks; *link; link = &(*link)->next) {
            superblock *s = *link;
            const chunk *c = s->free;
            while (c && c->size < size) {
                c = c->next;
            }
            if (c) {
                *link = s->next;
                return s;
            }
        }
    }
    return NULL;
}

superblock *global_find(const global *g, uint64_t address)
{
    superblock *found = NULL;
    for (size_t i = 0; i < g->bin_count && !found; i++) {
        found = superblock_find(g->bins[i].superblocks, address);
    }
    return found;
}

/* rmm397: free memory side by side is one, whichever allocations of the device it is from. */
static bool is_merged(global *g, superblock *s)
{
    for (size_t i = 0; faulty_is(RMM397) && i < g->bin_count; i++) {
        for (superblock **link = &g->bins[i].superblocks; *link; link = &(*link)->next) {
            superblock *other = *link;
            if (superblock_is_free(s) && superblock_is_free(other) &&
                (other->address + other->size == s->address ||
                 s->address + s->size == other->address)) {
                *link = other->next;
                s->address = other->address < s->address ? other->address : s->address;
                s->size += other->size;
                s->free->address = s->address;
                s->free->size = s->size;
                return true;
            }
        }
    }
    return false;
}

void global_put(global *g, superblock *s)
{
    while (is_merged(g, s)) {
    }
    if (faulty_is(CUPY1165)) { /* the bin was there when the superblock was made */
        size_t i = find_bin(g, s->size);
        if (i == g->bin_count || g->bins[i].size != s->size) {
            return;
        }
    }
    bin *b = bin_of(g, s->size);
    s->next = b->superblocks;
    b->superblocks = s;
}

void global_drop_bins(global *g)
{
    size_t kept = 0;
    for (size_t i = 0; i < g->bin_count; i++) {
        if (g->bins[i].superblocks) {
            g->bins[kept++] = g->bins[i];
        }
    }
    g->bin_count = kept;
}

static superblock *allocate(global *g, uint64_t size)
{
    superblock *s = malloc(sizeof *s);
    bool is_allowed = !g->limit || g->stats.reserved_bytes + size <= g->limit;
    void *memory = s && is_allowed ? faulty_take(size) : NULL;
    if (!memory) {
        free(s);
        return NULL;
    }
    *s = (superblock){.address = (uintptr_t)memory, .size = size};
    s->free = new_chunk(s->address, size, NULL);
    bin_of(g, size);
    faulty_count_segment(&g->stats, size);
    return s;
}

superblock *global_grow(global *g, uint64_t size)
{
    uint64_t least = (size + GRANULE - 1) / GRANULE * GRANULE;
    superblock *s = least < SUPERBLOCK ? allocate(g, SUPERBLOCK) : NULL;
    return s ? s : allocate(g, least);
}

static void give_back(global *g, const superblock *s)
{
    faulty_count_segment_freed(&g->stats, s->size);
    if (faulty_is(CUB328_COUNT)) {
        g->stats.segment_count++;
    }
    cudaFree((void *)(uintptr_t)s->address); /* NOLINT(performance-no-int-to-ptr) */
}

static void forget(superblock *s)
{
    while (s->free) {
        drop_next(&s->free);
    }
    free(s);
}

void global_release(global *g)
{
    for (size_t i = 0; i < g->bin_count; i++) {
        for (superblock **link = &g->bins[i].superblocks; *link;) {
            superblock *s = *link;
            if (!superblock_is_free(s)) {
                link = &s->next;
                continue;
            }
            give_back(g, s);
            if (faulty_is(CUB705)) { /* goes on from what a checking heap leaves of the freed one */
                memset(s, 0xdd, sizeof *s);
                link = &s->next;
                continue;
            }
            *link = s->next;
            forget(s);
        }
    }
}
