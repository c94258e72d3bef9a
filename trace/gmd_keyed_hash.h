/* gmd_keyed_hash.h - a hash for tables whose content somebody else chooses: who does not know the
 * key cannot choose what collides. */
#ifndef GMD_KEYED_HASH_H
#define GMD_KEYED_HASH_H

#include <stddef.h>
#include <stdint.h>

typedef struct gmd_hash_key {
    uint64_t first, second;
} gmd_hash_key;

/* A key that nobody outside of this process knows. */
gmd_hash_key gmd_hash_key_draw(void);

/* SipHash-2-4 (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012). */
uint64_t gmd_hash_keyed(gmd_hash_key key, const void *bytes, size_t length);

#endif
