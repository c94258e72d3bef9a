#include "uses.h"

#include "gmd_grow.h"

#include <stdlib.h>

static uint32_t take_node(block_uses *uses)
{
    if (uses->spare) {
        uint32_t at = uses->spare;
        uses->spare = uses->nodes[at].next;
        return at;
    }
    return GMD_GROW(&uses->nodes, &uses->capacity, uses->used + 2) ? ++uses->used : 0;
}

bool uses_note(block_uses *uses, uint32_t *head, const gmd_use *use)
{
    for (uint32_t at = *head; at; at = uses->nodes[at].next) {
        gmd_use *earlier = &uses->nodes[at].use;
        if (earlier->stream == use->stream && earlier->place == use->place) {
            *earlier = *use;
            return true;
        }
    }
    uint32_t added = take_node(uses);
    if (added) {
        uses->nodes[added] = (use_node){.use = *use, .next = *head};
        *head = added;
    }
    return added != 0;
}

bool uses_take(block_uses *uses, uint32_t *head, const gmd_use **taken, size_t *count)
{
    *count = 0;
    for (uint32_t at = *head, next; at; at = next) {
        if (!GMD_GROW(&uses->taken, &uses->taken_capacity, *count + 1)) {
            return false;
        }
        next = uses->nodes[at].next;
        uses->taken[(*count)++] = uses->nodes[at].use;
        uses->nodes[at].next = uses->spare;
        uses->spare = at;
        *head = next;
    }
    *taken = uses->taken;
    return true;
}

void uses_clear(block_uses *uses)
{
    uses->used = uses->spare = 0;
}

void uses_free(block_uses *uses)
{
    free(uses->nodes);
    free(uses->taken);
    *uses = (block_uses){0};
}

const char *uses_list_violation(const block_uses *uses, uint32_t head, uses_walk *walk)
{
    for (uint32_t at = head; at; at = uses->nodes[at].next) {
        if (at > uses->used) {
            return "a list of uses is in the array";
        }
        if (++walk->count > uses->used) {
            return "lists of uses end, and share no node";
        }
        walk->sum += at;
    }
    return NULL;
}

const char *uses_violation(const block_uses *uses, uses_walk walk)
{
    uint64_t used = uses->used;
    if (used && used >= uses->capacity) {
        return "the array has room for all uses";
    }
    const char *violation = uses_list_violation(uses, uses->spare, &walk);
    if (violation) {
        return violation;
    }
    return walk.count != used || walk.sum != used * (used + 1) / 2
               ? "each use is in the list of a live block, or spare"
               : NULL;
}
