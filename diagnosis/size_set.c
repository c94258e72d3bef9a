#include "size_set.h"

#include "gmd_keyed_hash.h"

#include <stdlib.h>

/* The slot that has the size, or would. */
static first_request *find_slot(const size_set *set, first_request *slots, unsigned bits,
                                uint64_t size)
{
    gmd_hash_key key = {set->key[0], set->key[1]};
    size_t last = ((size_t)1 << bits) - 1, at = gmd_hash_keyed(key, &size, sizeof size) & last;
    while (slots[at].size && slots[at].size != size) {
        at = (at + 1) & last;
    }
    return &slots[at];
}

static bool grow(size_set *set)
{
    enum { FIRST_BITS = 6 };
    unsigned bits = set->bits ? set->bits + 1 : FIRST_BITS;
    first_request *slots = calloc((size_t)1 << bits, sizeof *slots);
    if (!slots) {
        return false;
    }
    if (!set->bits) {
        gmd_hash_key key = gmd_hash_key_draw();
        set->key[0] = key.first;
        set->key[1] = key.second;
    }
    for (size_t i = 0; set->bits && i < (size_t)1 << set->bits; i++) {
        if (set->slots[i].size) {
            *find_slot(set, slots, bits, set->slots[i].size) = set->slots[i];
        }
    }
    free(set->slots);
    set->slots = slots;
    set->bits = bits;
    return true;
}

bool size_set_add(size_set *set, uint64_t size, uint64_t now, uint64_t *first)
{
    bool is_full = set->bits == 0 || set->count * 2 >= (size_t)1 << set->bits;
    if (is_full && !grow(set)) {
        return false;
    }
    first_request *slot = find_slot(set, set->slots, set->bits, size);
    if (slot->size == 0) {
        *slot = (first_request){size, now};
        set->count++;
    }
    *first = slot->first;
    return true;
}

void size_set_free(size_set *set)
{
    free(set->slots);
    *set = (size_set){0};
}
