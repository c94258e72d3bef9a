/* gmd_interned.h - sequences of bytes, each kept once and numbered in the order in which they came.
 * Whose bytes they are does not matter: chosen ones take no longer than others.
 *
 * Thread safety: none; share them read-only. */
#ifndef GMD_INTERNED_H
#define GMD_INTERNED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct gmd_interned { /* zero-initialised is empty */
    uint8_t *bytes;           /* one after the other, each at a multiple of four */
    size_t byte_count, byte_capacity;
    struct gmd_interned_entry *entries;
    uint32_t count, entry_capacity;
    uint32_t *slots; /* of a hash table: numbers, and 1 more; 0: free */
    uint32_t slot_count;
    uint64_t key[2]; /* of the hash: drawn, so that nobody can choose bytes that collide */
} gmd_interned;

/* Adds what is not there yet and gives its number. False: no host memory, or 2^32 of them. */
bool gmd_interned_add(gmd_interned *in, const void *bytes, size_t length, uint32_t *number);

/* A sequence that is there, with a zero behind it; valid until something is added. */
const void *gmd_interned_bytes(const gmd_interned *in, uint32_t number, size_t *length);

void gmd_interned_free(gmd_interned *in);

#endif
