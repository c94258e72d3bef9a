#include "gmd_interned.h"

#include "gmd_assert.h"
#include "gmd_grow.h"
#include "gmd_keyed_hash.h"

#include <stdlib.h>
#include <string.h>

typedef struct gmd_interned_entry {
    uint64_t hash;
    size_t at; /* in gmd_interned.bytes */
    uint32_t length;
} entry;

enum { FIRST_SLOTS = 64, ALIGNMENT = sizeof(uint32_t) };

static uint32_t slot_of(const gmd_interned *in, uint64_t hash)
{
    return (uint32_t)hash & (in->slot_count - 1);
}

static void place(gmd_interned *in, uint32_t number)
{
    uint32_t slot = slot_of(in, in->entries[number].hash);
    while (in->slots[slot]) {
        slot = (slot + 1) & (in->slot_count - 1);
    }
    in->slots[slot] = number + 1;
}

/* Never more than half full. */
static bool widen(gmd_interned *in)
{
    if (in->count < in->slot_count / 2) {
        return true;
    }
    if (!in->slot_count) {
        gmd_hash_key key = gmd_hash_key_draw();
        in->key[0] = key.first;
        in->key[1] = key.second;
    }
    uint32_t count = in->slot_count ? in->slot_count * 2 : FIRST_SLOTS;
    uint32_t *slots = count > in->slot_count ? calloc(count, sizeof *slots) : NULL;
    if (!slots) {
        return false;
    }
    free(in->slots);
    in->slots = slots;
    in->slot_count = count;
    for (uint32_t number = 0; number < in->count; number++) {
        place(in, number);
    }
    return true;
}

static bool find(const gmd_interned *in, uint64_t hash, const void *bytes, size_t length,
                 uint32_t *number)
{
    for (uint32_t slot = slot_of(in, hash); in->slots[slot];
         slot = (slot + 1) & (in->slot_count - 1)) {
        const entry *e = &in->entries[in->slots[slot] - 1];
        if (e->hash == hash && e->length == length &&
            (length == 0 || memcmp(in->bytes + e->at, bytes, length) == 0)) {
            *number = in->slots[slot] - 1;
            return true;
        }
    }
    return false;
}

/* A zero follows each sequence, and padding up to the next multiple of the alignment. */
static bool append(gmd_interned *in, uint64_t hash, const void *bytes, size_t length)
{
    size_t padded = (length + 1 + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (in->count == UINT32_MAX - 1 || length > UINT32_MAX ||
        !GMD_GROW(&in->bytes, &in->byte_capacity, in->byte_count + padded) ||
        !GMD_GROW(&in->entries, &in->entry_capacity, in->count + 1)) {
        return false;
    }
    if (length) {
        memcpy(in->bytes + in->byte_count, bytes, length);
    }
    memset(in->bytes + in->byte_count + length, 0, padded - length);
    in->entries[in->count] = (entry){hash, in->byte_count, (uint32_t)length};
    in->byte_count += padded;
    return true;
}

bool gmd_interned_add(gmd_interned *in, const void *bytes, size_t length, uint32_t *number)
{
    if (!widen(in)) {
        return false;
    }
    uint64_t hash = gmd_hash_keyed((gmd_hash_key){in->key[0], in->key[1]}, bytes, length);
    if (find(in, hash, bytes, length, number)) {
        return true;
    }
    if (!append(in, hash, bytes, length)) {
        return false;
    }
    *number = in->count++;
    place(in, *number);
    return true;
}

const void *gmd_interned_bytes(const gmd_interned *in, uint32_t number, size_t *length)
{
    GMD_ASSERT(number < in->count, "the number was given by gmd_interned_add");
    *length = in->entries[number].length;
    return in->bytes + in->entries[number].at;
}

void gmd_interned_free(gmd_interned *in)
{
    free(in->bytes);
    free(in->entries);
    free(in->slots);
    *in = (gmd_interned){0};
}
