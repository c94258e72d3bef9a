/* origins.c - texts, frames, stacks and origins, each kept once: all four are sequences of bytes.
 */
#include "gmd_origins.h"

#include "gmd_assert.h"
#include "gmd_grow.h"
#include "gmd_hash.h"

#include <stdlib.h>
#include <string.h>

typedef struct gmd_interned_entry {
    uint64_t hash;
    size_t at; /* in gmd_interned.bytes */
    uint32_t length;
} entry;

enum { FIRST_SLOTS = 64, ALIGNMENT = sizeof(uint32_t) };

/* --- sequences of bytes -------------------------------------------------------------------- */

static uint32_t slot_of(const gmd_interned *in, uint64_t hash)
{
    return (uint32_t)(gmd_hash_number(hash) >> 32) & (in->slot_count - 1);
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

static bool intern_more(gmd_interned *in, const void *bytes, size_t length, uint32_t *number)
{
    uint64_t hash = gmd_hash_bytes(GMD_HASH_OF_NOTHING, bytes, length);
    if (!widen(in)) {
        return false;
    }
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

/* `empty` is what number 0 is. */
static bool intern(gmd_interned *in, const void *empty, size_t empty_length, const void *bytes,
                   size_t length, uint32_t *number)
{
    uint32_t zero;
    if (in->count == 0 && !intern_more(in, empty, empty_length, &zero)) {
        return false;
    }
    return intern_more(in, bytes, length, number);
}

static const void *bytes_of(const gmd_interned *in, uint32_t number, size_t *length)
{
    *length = 0;
    if (number == 0 && in->count == 0) {
        return NULL;
    }
    GMD_ASSERT(number < in->count, "the number was given by gmd_origins_add");
    *length = in->entries[number].length;
    return in->bytes + in->entries[number].at;
}

static void free_interned(gmd_interned *in)
{
    free(in->bytes);
    free(in->entries);
    free(in->slots);
    *in = (gmd_interned){0};
}

/* --- what they are ------------------------------------------------------------------------- */

static const gmd_frame no_frame;
static const gmd_origin no_origin;

void gmd_origins_free(gmd_origins *origins)
{
    free_interned(&origins->texts);
    free_interned(&origins->frames);
    free_interned(&origins->stacks);
    free_interned(&origins->origins);
}

bool gmd_origins_add_text(gmd_origins *origins, const char *text, size_t length, uint32_t *number)
{
    return intern(&origins->texts, NULL, 0, text, length, number);
}

bool gmd_origins_add_frame(gmd_origins *origins, const gmd_frame *frame, uint32_t *number)
{
    return intern(&origins->frames, &no_frame, sizeof no_frame, frame, sizeof *frame, number);
}

bool gmd_origins_add_stack(gmd_origins *origins, const uint32_t *frames, size_t count,
                           uint32_t *number)
{
    return intern(&origins->stacks, NULL, 0, frames, count * sizeof *frames, number);
}

bool gmd_origins_add(gmd_origins *origins, const gmd_origin *origin, uint32_t *number)
{
    return intern(&origins->origins, &no_origin, sizeof no_origin, origin, sizeof *origin, number);
}

const char *gmd_origins_text(const gmd_origins *origins, uint32_t number, size_t *length)
{
    size_t unused;
    const char *text = bytes_of(&origins->texts, number, length ? length : &unused);
    return text ? text : "";
}

gmd_frame gmd_origins_frame(const gmd_origins *origins, uint32_t number)
{
    size_t length;
    const void *bytes = bytes_of(&origins->frames, number, &length);
    gmd_frame frame = no_frame;
    if (bytes) {
        memcpy(&frame, bytes, sizeof frame);
    }
    return frame;
}

const uint32_t *gmd_origins_stack(const gmd_origins *origins, uint32_t number, size_t *count)
{
    const uint32_t *frames = bytes_of(&origins->stacks, number, count);
    *count /= sizeof *frames;
    return frames;
}

gmd_origin gmd_origins_get(const gmd_origins *origins, uint32_t number)
{
    size_t length;
    const void *bytes = bytes_of(&origins->origins, number, &length);
    gmd_origin origin = no_origin;
    if (bytes) {
        memcpy(&origin, bytes, sizeof origin);
    }
    return origin;
}

static uint32_t count_of(const gmd_interned *in)
{
    return in->count ? in->count : 1;
}

uint32_t gmd_origins_count(const gmd_origins *origins)
{
    return count_of(&origins->origins);
}

uint32_t gmd_origins_stack_count(const gmd_origins *origins)
{
    return count_of(&origins->stacks);
}

uint32_t gmd_origins_frame_count(const gmd_origins *origins)
{
    return count_of(&origins->frames);
}

uint32_t gmd_origins_text_count(const gmd_origins *origins)
{
    return count_of(&origins->texts);
}
