/* size_set.h - sizes that were asked for so far, and when they first were. */
#ifndef GMD_DIAGNOSIS_SIZE_SET_H
#define GMD_DIAGNOSIS_SIZE_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct first_request {
    uint64_t size; /* 0: an empty slot */
    uint64_t first;
} first_request;

typedef struct size_set { /* zero-initialised is empty */
    first_request *slots; /* a power of two of them, at most half of them taken */
    unsigned bits;
    size_t count;
    uint64_t key[2]; /* of the hash: drawn, so that nobody can choose sizes that collide */
} size_set;

/* Adds a size, which is not 0, unless it is there: when it was first asked for. False: no host
 * memory. */
bool size_set_add(size_set *set, uint64_t size, uint64_t now, uint64_t *first);
void size_set_free(size_set *set);

#endif
