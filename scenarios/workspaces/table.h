/* table.h - the inside of a table of workspaces. */
#ifndef WORKSPACES_TABLE_H
#define WORKSPACES_TABLE_H

#include "gmd_workspaces.h"

#include "gmd_keyed_hash.h"

/* What a table is of, a line each at its head. */
enum { WORKSPACE_GPU, WORKSPACE_CUDNN, WORKSPACE_TORCH, WORKSPACE_ORIGINS };
extern const char *const workspace_origin_names[WORKSPACE_ORIGINS];

struct gmd_workspaces {
    char *origins[WORKSPACE_ORIGINS];
    gmd_workspace *items;
    size_t count, capacity;
    uint32_t *slots;   /* index of an item + 1, or 0; linear probing */
    size_t slot_count; /* a power of two, at least the double of `count` */
    gmd_hash_key key;
    int64_t *batches; /* of convolutions: each that a line has, the smallest first */
    size_t batch_count, batch_capacity;
};

/* Adds a line; `*earlier` is that of the same call, which then stays alone. False: no memory. */
bool workspaces_add(gmd_workspaces *table, const gmd_workspace *item,
                    const gmd_workspace **earlier);

#endif
