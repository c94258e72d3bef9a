/* keyed_hash.h - a hash for tables whose content somebody else chooses: who does not know the key
 * cannot choose what collides. */
#ifndef GMD_TRACE_KEYED_HASH_H
#define GMD_TRACE_KEYED_HASH_H

#include <stddef.h>
#include <stdint.h>

typedef struct hash_key {
    uint64_t first, second;
} hash_key;

/* A key that nobody outside of this process knows. */
hash_key hash_key_draw(void);

/* SipHash-2-4 (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012). */
uint64_t hash_keyed(hash_key key, const void *bytes, size_t length);

#endif
