/* gmd_hash.h - hashes of numbers and bytes, for tables and fingerprints of what gmd itself made:
 * none of them resists somebody who chooses what is hashed. */
#ifndef GMD_HASH_H
#define GMD_HASH_H

#include <stddef.h>
#include <stdint.h>

/* 2^64 divided by the golden ratio, odd: multiples of it lie far apart (Knuth, The Art of Computer
 * Programming, volume 3, section 6.4). */
#define GMD_HASH_MULTIPLIER UINT64_C(0x9e3779b97f4a7c15)

/* The upper bits depend on all bits of the number; the lower ones do not. */
static inline uint64_t gmd_hash_number(uint64_t number)
{
    return number * GMD_HASH_MULTIPLIER;
}

static inline uint64_t gmd_hash_pointer(const void *pointer)
{
    return gmd_hash_number((uint64_t)(uintptr_t)pointer);
}

/* The hash of a sequence of numbers, one after the other. */
static inline uint64_t gmd_hash_add(uint64_t hash, uint64_t number)
{
    return gmd_hash_number(hash ^ number);
}

/* FNV-1a (http://www.isthe.com/chongo/tech/comp/fnv): the hash of no bytes. */
#define GMD_HASH_OF_NOTHING UINT64_C(0xcbf29ce484222325)

static inline uint64_t gmd_hash_byte(uint64_t hash, unsigned char byte)
{
    return (hash ^ byte) * UINT64_C(0x100000001b3);
}

/* Goes on from `hash` by further bytes. */
static inline uint64_t gmd_hash_bytes(uint64_t hash, const void *data, size_t count)
{
    const unsigned char *next = data;
    for (size_t i = 0; i < count; i++) {
        hash = gmd_hash_byte(hash, next[i]);
    }
    return hash;
}

#endif
