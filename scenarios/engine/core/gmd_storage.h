/* gmd_storage.h - storages: the memory of tensors, one allocator block each. */
#ifndef GMD_STORAGE_H
#define GMD_STORAGE_H

#include "gmd_category.h"
#include "gmd_engine.h"

/* One block. When its last reference goes, the block is freed at once. */
typedef struct gmd_storage {
    size_t refs;
    uint64_t bytes;
    uint32_t block;
    uint32_t stream;
    bool has_block;           /* false: 0 bytes, or made while the engine had failed */
    gmd_category category;    /* for observers */
    void *seen;               /* an observer's own */
    struct gmd_storage *next; /* of the engine's workspaces */
    uint32_t role;            /* workspaces: whose */
} gmd_storage;

/* Says what the memory is for. */
static inline void gmd_storage_is(gmd_storage *storage, gmd_category category)
{
    if (storage && storage->category < category) {
        storage->category = category;
    }
}

gmd_storage *gmd_storage_new(gmd_engine *engine, uint64_t bytes);
gmd_storage *gmd_storage_keep(gmd_storage *storage);
void gmd_storage_drop(gmd_engine *engine, gmd_storage *storage); /* NULL is fine */

/* Scratch memory of a kernel: allocated and freed again at once. 0 bytes: nothing is asked. */
void gmd_scratch(gmd_engine *engine, uint64_t bytes);

#endif
