#include "table.h"

#include "gmd_grow.h"

#include <stdlib.h>
#include <string.h>

const char *const workspace_origin_names[WORKSPACE_ORIGINS] = {"gpu", "cudnn", "torch"};

static uint64_t hash_of(const gmd_workspaces *table, const gmd_workspace_call *call)
{
    return gmd_hash_keyed(table->key, call, sizeof *call);
}

/* The call's slot, or the empty one that it would have. */
static uint32_t *slot_of(const gmd_workspaces *table, const gmd_workspace_call *call)
{
    size_t mask = table->slot_count - 1, at = hash_of(table, call) & mask;
    while (table->slots[at] &&
           memcmp(&table->items[table->slots[at] - 1].call, call, sizeof *call) != 0) {
        at = (at + 1) & mask;
    }
    return &table->slots[at];
}

static bool make_room(gmd_workspaces *table)
{
    if (!GMD_GROW(&table->items, &table->capacity, table->count + 1) || !table->items) {
        return false;
    }
    if (2 * (table->count + 1) <= table->slot_count) {
        return true;
    }
    size_t wanted = table->slot_count ? 2 * table->slot_count : 64;
    uint32_t *slots = calloc(wanted, sizeof *slots);
    if (!slots) {
        return false;
    }
    free(table->slots);
    table->slots = slots;
    table->slot_count = wanted;
    for (size_t i = 0; i < table->count; i++) {
        *slot_of(table, &table->items[i].call) = (uint32_t)(i + 1);
    }
    return true;
}

/* The first batch that is at least as large. */
static size_t place_of(const gmd_workspaces *table, int64_t batch)
{
    size_t low = 0, high = table->batch_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (table->batches[middle] < batch) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* RNNs, which are not interpolated, have their batch elsewhere, and 0 here. */
static bool note_batch(gmd_workspaces *table, int64_t batch)
{
    size_t at = place_of(table, batch);
    if (batch == 0 || (at < table->batch_count && table->batches[at] == batch)) {
        return true;
    }
    if (!GMD_GROW(&table->batches, &table->batch_capacity, table->batch_count + 1)) {
        return false;
    }
    memmove(&table->batches[at + 1], &table->batches[at],
            (table->batch_count - at) * sizeof *table->batches);
    table->batches[at] = batch;
    table->batch_count++;
    return true;
}

bool workspaces_add(gmd_workspaces *table, const gmd_workspace *item, const gmd_workspace **earlier)
{
    *earlier = gmd_workspaces_find(table, &item->call);
    if (*earlier) {
        return true;
    }
    if (!note_batch(table, item->call.input[0]) || !make_room(table)) {
        return false;
    }
    uint32_t *slot = slot_of(table, &item->call);
    table->items[table->count++] = *item;
    *slot = (uint32_t)table->count;
    return true;
}

const gmd_workspace *gmd_workspaces_find(const gmd_workspaces *table,
                                         const gmd_workspace_call *call)
{
    if (!table || table->count == 0) {
        return NULL;
    }
    uint32_t found = *slot_of(table, call);
    return found ? &table->items[found - 1] : NULL;
}

static const gmd_workspace *with_batch(const gmd_workspaces *table, const gmd_workspace_call *call,
                                       size_t index)
{
    gmd_workspace_call other = *call;
    other.input[0] = table->batches[index];
    return gmd_workspaces_find(table, &other);
}

bool gmd_workspaces_interpolate(const gmd_workspaces *table, const gmd_workspace_call *call,
                                uint64_t *bytes)
{
    const gmd_workspace *below = NULL, *above = NULL;
    int64_t batch = call->input[0];
    if (!table || call->benchmark || batch == 0) {
        return false;
    }
    size_t at = place_of(table, batch);
    for (size_t i = at; i > 0 && !below; i--) {
        below = with_batch(table, call, i - 1);
    }
    at += at < table->batch_count && table->batches[at] == batch;
    for (size_t i = at; i < table->batch_count && !above; i++) {
        above = with_batch(table, call, i);
    }
    if (below && above) {
        double from = (double)below->call.input[0], to = (double)above->call.input[0];
        double share = ((double)batch - from) / (to - from);
        *bytes = (uint64_t)((1 - share) * (double)below->bytes + share * (double)above->bytes);
    } else if (below || above) {
        const gmd_workspace *only = below ? below : above;
        *bytes = (uint64_t)((double)only->bytes * (double)batch / (double)only->call.input[0]);
    }
    return below || above;
}

bool gmd_workspaces_note(gmd_workspaces **table, const gmd_workspace_call *call)
{
    const gmd_workspace item = {.call = *call}, *earlier = NULL;
    if (!*table) {
        *table = calloc(1, sizeof **table);
        if (*table) {
            (*table)->key = gmd_hash_key_draw();
        }
    }
    return !*table || !workspaces_add(*table, &item, &earlier) || !earlier;
}

size_t gmd_workspaces_count(const gmd_workspaces *table)
{
    return table->count;
}

const gmd_workspace *gmd_workspaces_at(const gmd_workspaces *table, size_t index)
{
    return &table->items[index];
}

void gmd_workspaces_close(gmd_workspaces *table)
{
    if (!table) {
        return;
    }
    for (int i = 0; i < WORKSPACE_ORIGINS; i++) {
        free(table->origins[i]);
    }
    free(table->batches);
    free(table->items);
    free(table->slots);
    free(table);
}
