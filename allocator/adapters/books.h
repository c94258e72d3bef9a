/* books.h - what the adapters for CUDA's own allocators know of their blocks: which are live, which
 * the device could not take back yet, and the statistics that follow.
 *
 * Sync: an adapter holds the books' lock over a call of CUDA and what it writes of it here, so that
 * no thread sees the one without the other. These allocators are the floor of every comparison: one
 * lock is no loss beside what the device's calls take. */
#ifndef GMD_BOOKS_H
#define GMD_BOOKS_H

#include "gmd_abi.h"
#include "gmd_cuda.h"

#include <stdbool.h>

enum { ADAPTER_DEVICES = 64 };

typedef struct block_use { /* another stream, recorded */
    struct block_use *next;
    cudaStream_t stream;
} block_use;

typedef struct booked {
    struct booked *next; /* in its bucket, or among what is kept */
    void *memory;
    size_t size; /* as asked for */
    int device;
    cudaStream_t stream; /* this and below: for an adapter whose frees are ordered by streams */
    block_use *uses;
    bool waits_for_gate;   /* although none of its uses may say so any more */
    bool waits_for_device; /* a stream that used it is gone, and nothing else knows of its work */
} booked;

void books_lock(void);
void books_unlock(void);

/* A page for a block to come, so that a block that the device gave is never without one. NULL: the
 * host has no memory. */
booked *books_prepare(size_t size, int device);
void books_enter(booked *b, void *memory); /* it is live from now on */
void books_refuse(booked *b);              /* out of memory: counted; the page is gone */
void books_drop(booked *b);                /* failed in another way: not counted */

booked *books_find(const void *memory); /* a live block; NULL: none */
booked *books_take(const void *memory); /* likewise: it is freed, and its device holds it still */
void books_given_back(booked *b);       /* the device has it again; the page is gone */

/* Visits the live blocks of a device. True: some visit said so. */
bool books_each(int device, bool (*visit)(booked *b, void *context), void *context);

/* A freed block that the device did not take back stays in the books. */
void books_keep(booked *b);
/* Offers what is kept of a device to `give_back` again. True: some of it was given back. */
bool books_retry(int device, bool (*give_back)(booked *b));

void books_reset_peaks(int device);
bool books_read(int device, gmd_stats *out); /* reserved: what the device holds for blocks */

#endif
