/* gmd_storage.h - storages: the memory of tensors, one allocator block each. */
#ifndef GMD_STORAGE_H
#define GMD_STORAGE_H

#include "gmd_category.h"
#include "gmd_engine.h"

/* One block. When its last reference goes, the block is freed at once. */
struct storage {
    size_t refs;
    uint64_t bytes;
    uint32_t block;
    uint32_t stream;
    bool has_block;  /* false: 0 bytes, emptied, on the CPU, or made after the engine failed */
    bool is_on_host; /* in the memory of the CPU */
    gmd_category category; /* for observers */
    void *seen;            /* an observer's own */
    struct storage *next;  /* of the engine's workspaces */
    uint32_t role;         /* workspaces: whose */
};

/* Marks what the memory is for; a lower category than it has changes nothing. */
static inline void storage_mark(struct storage *storage, gmd_category category)
{
    if (storage && storage->category < category) {
        storage->category = category;
    }
}

struct storage *storage_new(struct engine *engine, uint64_t bytes);
struct storage *storage_keep(struct storage *storage);
void storage_drop(struct engine *engine, struct storage *storage); /* NULL is fine */

/* The block is given back and the storage stays, as after UntypedStorage.resize_(0); and it gets
 * one again, on the current stream. Who shares the storage sees both. */
void storage_empty(struct engine *engine, struct storage *storage);
void storage_refill(struct engine *engine, struct storage *storage);

/* Scratch memory of a kernel: allocated and freed again at once. 0 bytes make no request. */
void storage_scratch(struct engine *engine, uint64_t bytes);

#endif
