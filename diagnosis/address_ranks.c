#include "address_ranks.h"

#include "gmd_assert.h"

#include <stdlib.h>
#include <string.h>

/* --- ranks ----------------------------------------------------------------------------------- */

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

typedef struct place {
    uint64_t address;
    size_t index;
} place;

/* Moves the places into the order of one digit. */
static void sort_by_digit(const place *from, place *to, size_t count, unsigned shift)
{
    size_t starts[DIGITS] = {0};
    for (size_t i = 0; i < count; i++) {
        starts[from[i].address >> shift & (DIGITS - 1)]++;
    }
    size_t start = 0;
    for (size_t digit = 0; digit < DIGITS; digit++) {
        size_t here = starts[digit];
        starts[digit] = start;
        start += here;
    }
    for (size_t i = 0; i < count; i++) {
        to[starts[from[i].address >> shift & (DIGITS - 1)]++] = from[i];
    }
}

/* The bits in which not all are the same. */
static uint64_t differing_bits(const place *places, size_t count)
{
    uint64_t bits = 0;
    for (size_t i = 1; i < count; i++) {
        bits |= places[i].address ^ places[0].address;
    }
    return bits;
}

/* By address, in linear time. What it returns is one of the two arrays. */
static const place *sort_places(place *places, place *spare, size_t count)
{
    const uint64_t differing = differing_bits(places, count);
    for (unsigned shift = 0; shift < 64; shift += DIGIT_BITS) {
        if (differing >> shift & (DIGITS - 1)) {
            sort_by_digit(places, spare, count, shift);
            place *sorted = spare;
            spare = places;
            places = sorted;
        }
    }
    return places;
}

static bool number_places(address_ranks *r, const place *sorted, uint32_t *ranks, size_t count)
{
    r->addresses = malloc((count + 1) * sizeof *r->addresses);
    if (!r->addresses) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || sorted[i].address != sorted[i - 1].address) {
            r->addresses[r->count++] = sorted[i].address;
        }
        ranks[sorted[i].index] = r->count - 1;
    }
    return true;
}

bool address_ranks_make(address_ranks *r, const uint64_t *addresses, uint32_t *ranks, size_t count)
{
    *r = (address_ranks){0};
    place *places = malloc((count + 1) * sizeof *places);
    place *spare = malloc((count + 1) * sizeof *spare);
    bool ok = places && spare && count < NO_RANK;
    if (ok) {
        for (size_t i = 0; i < count; i++) {
            places[i] = (place){addresses[i], i};
        }
        ok = number_places(r, count ? sort_places(places, spare, count) : places, ranks, count);
    }
    free(places);
    free(spare);
    return ok;
}

void address_ranks_free(address_ranks *r)
{
    free(r->addresses);
    *r = (address_ranks){0};
}

/* --- sets ------------------------------------------------------------------------------------ */

enum { WORD_BITS = 64, WORD_SHIFT = 6 };

static size_t words_for(size_t bits)
{
    return (bits + WORD_BITS - 1) / WORD_BITS;
}

bool rank_set_make(rank_set *set, uint32_t count)
{
    *set = (rank_set){.count = count};
    size_t bits = count ? count : 1;
    do {
        /* A search goes on at the next word of the level above, so one of zeros follows. */
        uint64_t *words = calloc(words_for(bits) + 1, sizeof *words);
        if (!words) {
            rank_set_free(set);
            return false;
        }
        set->levels[set->level_count++] = words;
        bits = words_for(bits);
    } while (bits > 1);
    return true;
}

void rank_set_free(rank_set *set)
{
    for (unsigned level = 0; level < set->level_count; level++) {
        free(set->levels[level]);
    }
    *set = (rank_set){0};
}

void rank_set_add(rank_set *set, uint32_t rank)
{
    GMD_ASSERT_INTERNAL(rank < set->count, "the rank is one of the set's range");
    size_t at = rank;
    for (unsigned level = 0; level < set->level_count; level++, at >>= WORD_SHIFT) {
        set->levels[level][at >> WORD_SHIFT] |= (uint64_t)1 << (at % WORD_BITS);
    }
}

void rank_set_remove(rank_set *set, uint32_t rank)
{
    GMD_ASSERT_INTERNAL(rank < set->count, "the rank is one of the set's range");
    size_t at = rank;
    for (unsigned level = 0; level < set->level_count; level++, at >>= WORD_SHIFT) {
        uint64_t *word = &set->levels[level][at >> WORD_SHIFT];
        *word &= ~((uint64_t)1 << (at % WORD_BITS));
        if (*word) {
            return;
        }
    }
}

/* The least and the greatest rank below a bit of a level. */
static uint32_t descend(const rank_set *set, unsigned level, size_t bit, bool is_least)
{
    while (level-- > 0) {
        uint64_t word = set->levels[level][bit];
        unsigned at = is_least ? (unsigned)__builtin_ctzll(word)
                               : WORD_BITS - 1 - (unsigned)__builtin_clzll(word);
        bit = bit << WORD_SHIFT | at;
    }
    return (uint32_t)bit;
}

uint32_t rank_set_next(const rank_set *set, uint32_t rank)
{
    size_t at = rank;
    if (rank >= set->count) {
        return NO_RANK;
    }
    for (unsigned level = 0; level < set->level_count; level++) {
        uint64_t word = set->levels[level][at >> WORD_SHIFT] >> (at % WORD_BITS);
        if (word) {
            return descend(set, level, at + (unsigned)__builtin_ctzll(word), true);
        }
        at = (at >> WORD_SHIFT) + 1;
    }
    return NO_RANK;
}

uint32_t rank_set_previous(const rank_set *set, uint32_t rank)
{
    if (set->count == 0) {
        return NO_RANK;
    }
    size_t at = rank < set->count ? rank : set->count - 1;
    for (unsigned level = 0; level < set->level_count; level++) {
        uint64_t word = set->levels[level][at >> WORD_SHIFT] << (WORD_BITS - 1 - at % WORD_BITS);
        if (word) {
            return descend(set, level, at - (unsigned)__builtin_clzll(word), false);
        }
        at >>= WORD_SHIFT;
        if (at == 0) {
            return NO_RANK;
        }
        at--;
    }
    return NO_RANK;
}
