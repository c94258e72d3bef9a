/* block_table.h - what the adapters for CUDA's own allocators know of their blocks: which are live,
 * which the device could not take back yet, and the statistics that follow.
 *
 * Sync: an adapter holds the table's lock over a call of CUDA and what it writes of it here, so
 * that no thread sees the one without the other. These allocators are the baseline of every
 * comparison: one lock is no loss beside what the device's calls take. */
#ifndef GMD_BLOCK_TABLE_H
#define GMD_BLOCK_TABLE_H

#include "gmd_abi.h"
#include "gmd_cuda.h"

#include <stdbool.h>

enum { ADAPTER_DEVICES = 64 };

typedef struct block_use { /* another stream, recorded */
    struct block_use *next;
    cudaStream_t stream;
} block_use;

typedef struct table_entry {
    struct table_entry *next; /* in its bucket, or among what is kept */
    void *memory;
    size_t size; /* as asked for */
    int device;
    cudaStream_t stream; /* this and below: for an adapter whose frees are ordered by streams */
    block_use *uses;
    bool waits_for_gate;   /* although none of its uses may say so any more */
    bool waits_for_device; /* a stream that used it is gone, and nothing else knows of its work */
} table_entry;

void block_table_lock(void);
void block_table_unlock(void);

/* An entry for a block to come, so that a block that the device gave is never without one. NULL:
 * the host has no memory. */
table_entry *block_table_prepare(size_t size, int device);
void block_table_enter(table_entry *b, void *memory); /* it is live from now on */
void block_table_refuse(table_entry *b); /* out of memory: counted; the entry is gone */
void block_table_drop(table_entry *b);   /* failed in another way: not counted */

table_entry *block_table_find(const void *memory); /* a live block; NULL: none */
table_entry *
block_table_take(const void *memory); /* likewise: it is freed, and its device holds it still */
void block_table_given_back(table_entry *b); /* the device has it again; the entry is gone */

/* Visits the live blocks of a device. True: some visit said so. */
bool block_table_each(int device, bool (*visit)(table_entry *b, void *context), void *context);

/* A freed block that the device did not take back stays in the table. */
void block_table_keep(table_entry *b);
/* Offers what is kept of a device to `give_back` again. True: some of it was given back. */
bool block_table_retry(int device, bool (*give_back)(table_entry *b));

void block_table_reset_peaks(int device);
bool block_table_read(int device, gmd_stats *out); /* reserved: what the device holds for blocks */

#endif
