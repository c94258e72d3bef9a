/* input_live.h - which blocks are live, by age: the k-th youngest, and how many are younger, each
 * in O(log n). A Fenwick tree over the allocations in their order, so that a history with a million
 * live blocks is as good as a short input. */
#ifndef GMD_INPUT_LIVE_H
#define GMD_INPUT_LIVE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { INPUT_LIVE_SMALL = 512 }; /* allocations for which no memory is asked */

typedef struct input_live {
    uint32_t *tree;    /* 1-based: live blocks below each node */
    uint32_t *request; /* of each block: the one that allocates it */
    uint32_t size;     /* a power of two */
    uint32_t made;     /* allocations so far */
    uint32_t count;    /* of them live */
    uint32_t small[2 * INPUT_LIVE_SMALL + 1];
} input_live;

/* For up to `most` allocations. False: no host memory. */
static inline bool input_live_open(input_live *l, size_t most)
{
    l->size = 1;
    l->made = l->count = 0;
    while (l->size < most) {
        l->size *= 2;
    }
    if (l->size <= INPUT_LIVE_SMALL) {
        l->tree = l->small;
        memset(l->small, 0, (l->size + 1) * sizeof *l->small);
    } else {
        l->tree = calloc(2 * (size_t)l->size + 1, sizeof *l->tree);
    }
    l->request = l->tree ? l->tree + l->size + 1 : NULL;
    return l->tree;
}

static inline void input_live_close(input_live *l)
{
    if (l->tree != l->small) {
        free(l->tree);
    }
}

/* One more block, the youngest; its index. */
static inline uint32_t input_live_add(input_live *l, size_t request)
{
    uint32_t index = l->made++;
    l->request[index] = (uint32_t)request;
    for (uint32_t i = index + 1; i <= l->size; i += i & -i) {
        l->tree[i]++;
    }
    l->count++;
    return index;
}

static inline void input_live_remove(input_live *l, uint32_t index)
{
    for (uint32_t i = index + 1; i <= l->size; i += i & -i) {
        l->tree[i]--;
    }
    l->count--;
}

/* The index of the k-th youngest, k below the count. */
static inline uint32_t input_live_at(const input_live *l, uint32_t k)
{
    uint32_t older = l->count - 1 - k, at = 0;
    for (uint32_t step = l->size; step; step /= 2) {
        if (at + step <= l->size && l->tree[at + step] <= older) {
            at += step;
            older -= l->tree[at];
        }
    }
    return at;
}

/* How many live ones are younger than a live one. */
static inline uint32_t input_live_age(const input_live *l, uint32_t index)
{
    uint32_t not_younger = 0;
    for (uint32_t i = index + 1; i; i -= i & -i) {
        not_younger += l->tree[i];
    }
    return l->count - not_younger;
}

#endif
