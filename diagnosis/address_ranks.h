/* address_ranks.h - the addresses that a recording names, in ascending order, each once: its place
 * in that order, its rank, stands for it. Sets of ranks answer what lies next to an address.
 *
 * Nothing is hashed, so that no choice of addresses makes it slow. */
#ifndef GMD_DIAGNOSIS_ADDRESS_RANKS_H
#define GMD_DIAGNOSIS_ADDRESS_RANKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NO_RANK UINT32_MAX

typedef struct address_ranks {
    uint64_t *addresses; /* by rank */
    uint32_t count;
} address_ranks;

/* Ranks of the addresses given: `ranks[i]` is that of `addresses[i]`. False: no host memory. */
bool address_ranks_make(address_ranks *r, const uint64_t *addresses, uint32_t *ranks, size_t count);
void address_ranks_free(address_ranks *r);

enum { RANK_SET_LEVELS = 6 };

/* A set of ranks below `count`: bits, over them a bit for each word that has any, and so on, so
 * that a search looks at a few words whatever the size. */
typedef struct rank_set {
    uint64_t *levels[RANK_SET_LEVELS]; /* of the first one, the bits themselves */
    unsigned level_count;
    uint32_t count;
} rank_set;

bool rank_set_make(rank_set *set, uint32_t count);
void rank_set_free(rank_set *set);
void rank_set_add(rank_set *set, uint32_t rank);
void rank_set_remove(rank_set *set, uint32_t rank);

/* The least member from `rank` on, and the greatest up to `rank`; NO_RANK: none. */
uint32_t rank_set_next(const rank_set *set, uint32_t rank);
uint32_t rank_set_previous(const rank_set *set, uint32_t rank);

#endif
