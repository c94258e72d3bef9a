/* virtual_memory.h - the pages of one expandable segment: a range of addresses, reserved once, in
 * which pages of physical memory come and go. A call that fails midway is undone (pytorch#188008).
 * Addresses and sizes are bytes. Sync: the caller has exclusive access
 * to the device. */
#ifndef GMD_VIRTUAL_MEMORY_H
#define GMD_VIRTUAL_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct segment {
    struct segment *next, *previous; /* of the device */
    uint64_t address;                /* as the device gave it */
    uint64_t place;                  /* for the order of blocks, see places.h */
    uint64_t size;                   /* reserved addresses, a multiple of page_bytes */
    uint64_t page_bytes;             /* 2 MiB in the small pool */
    uint64_t mapped_pages;
    struct free_set *set; /* whose blocks lie in it */
    int device;
    unsigned long long *handles; /* of each page's memory; 0: not mapped */
    bool *is_detached;           /* NULL but while memory is lent: by page, not mapped for now */
};

/* Reserves addresses, no memory. NULL: not supported here, or refused. */
struct segment *segment_reserve(int device, uint64_t size, uint64_t page_bytes);
void segment_release(struct segment *s); /* nothing of it is mapped */
void segment_abandon(struct segment *s); /* the device keeps what it has of it */

/* Maps what is not mapped yet of pages [first, first + count). False: refused, nothing changed. */
bool segment_map(struct segment *s, uint64_t first, uint64_t count);

/* Gives the memory of pages back; the caller has waited for the work that uses it. Gives the number
 * of pages from `first` on that are unmapped now: all, unless the driver refused. */
uint64_t segment_unmap(struct segment *s, uint64_t first, uint64_t count);

/* Lending, for all pages that are mapped as far as blocks are concerned. Each is called again, or
 * its opposite is, where it was refused midway; nothing is lost but by segment_drop_memory. In
 * between, segment_unmap drops pages for good; segment_map must not be called. The device is the
 * current one. */
bool segment_detach(struct segment *s);      /* unmaps them; addresses, memory and bytes stay */
bool segment_drop_memory(struct segment *s); /* gives back the memory of detached pages */
bool segment_take_memory(struct segment *s); /* gets memory for those that have none */
bool segment_attach(struct segment *s);      /* maps them where they were; all have memory */

/* Each of the pages has memory, or is lent. */
bool segment_is_mapped(const struct segment *s, uint64_t first, uint64_t count);

/* What does not hold of the pages; NULL: all does. O(pages), mapped or not. */
const char *segment_violation(const struct segment *s);

#endif
