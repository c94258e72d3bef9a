/* overlap - no two live blocks share a byte.
 *
 * Live blocks are kept in a treap ordered by address, in an array with a free list: O(log n) a
 * request and no malloc for a node. Addresses of different devices are distinct (unified
 * addressing). */
#include "list.h"

#include <inttypes.h>
#include <stdlib.h>

#define NONE UINT32_MAX

typedef struct node {
    uint64_t address, end; /* end: first byte after it */
    uint64_t born;
    uint32_t left, right, rank;
} node;

typedef struct live_set {
    node *nodes;
    uint32_t used, capacity, spare, root;
} live_set;

static void *create(void)
{
    live_set *s = calloc(1, sizeof *s);
    if (s) {
        s->spare = NONE;
        s->root = NONE;
    }
    return s;
}

static void destroy(void *state)
{
    live_set *s = state;
    if (s) {
        free(s->nodes);
        free(s);
    }
}

static uint32_t take_node(live_set *s)
{
    if (s->spare != NONE) {
        uint32_t at = s->spare;
        s->spare = s->nodes[at].left;
        return at;
    }
    if (s->used == s->capacity) {
        uint32_t capacity = s->capacity ? s->capacity * 2 : 1024;
        node *nodes = realloc(s->nodes, capacity * sizeof *nodes);
        if (!nodes) {
            return NONE;
        }
        s->nodes = nodes;
        s->capacity = capacity;
    }
    return s->used++;
}

/* The first block that ends after `address`: blocks do not overlap, so ends are ordered as starts.
 */
static const node *first_ending_after(const live_set *s, uint64_t address)
{
    const node *found = NULL;
    for (uint32_t at = s->root; at != NONE;) {
        const node *n = &s->nodes[at];
        if (n->end > address) {
            found = n;
            at = n->left;
        } else {
            at = n->right;
        }
    }
    return found;
}

static void insert(live_set *s, uint32_t added)
{
    node *n = &s->nodes[added];
    uint32_t *link = &s->root;
    while (*link != NONE && s->nodes[*link].rank >= n->rank) {
        node *other = &s->nodes[*link];
        link = n->address < other->address ? &other->left : &other->right;
    }
    uint32_t rest = *link;
    *link = added;
    uint32_t *lower = &n->left, *upper = &n->right;
    while (rest != NONE) {
        node *other = &s->nodes[rest];
        if (other->address < n->address) {
            *lower = rest;
            lower = &other->right;
            rest = other->right;
        } else {
            *upper = rest;
            upper = &other->left;
            rest = other->left;
        }
    }
    *lower = NONE;
    *upper = NONE;
}

static void erase(live_set *s, uint64_t address)
{
    uint32_t *link = &s->root;
    while (*link != NONE && s->nodes[*link].address != address) {
        node *n = &s->nodes[*link];
        link = address < n->address ? &n->left : &n->right;
    }
    uint32_t gone = *link;
    if (gone == NONE) {
        return;
    }
    uint32_t lower = s->nodes[gone].left, upper = s->nodes[gone].right;
    while (lower != NONE && upper != NONE) {
        if (s->nodes[lower].rank > s->nodes[upper].rank) {
            *link = lower;
            link = &s->nodes[lower].right;
            lower = *link;
        } else {
            *link = upper;
            link = &s->nodes[upper].left;
            upper = *link;
        }
    }
    *link = lower != NONE ? lower : upper;
    s->nodes[gone].left = s->spare;
    s->spare = gone;
}

static void after_alloc(void *state, const gmd_view *view, gmd_judge *judge)
{
    live_set *s = state;
    const gmd_live_block *b = view->block;
    uint64_t end = b->address + (b->bytes ? b->bytes : 1); /* a block of 0 B still has an address */
    const node *other = first_ending_after(s, b->address);
    if (other && other->address < end) {
        gmd_violation_add(
            judge,
            "block of %" PRIu64 " B at 0x%" PRIx64 " overlaps the live block of %" PRIu64
            " B at 0x%" PRIx64 " (request %" PRIu64 ")",
            b->bytes, b->address, other->end - other->address, other->address, other->born);
        return; /* the set stays free of overlaps, which its search relies on */
    }
    uint32_t added = take_node(s);
    if (added == NONE) {
        gmd_violation_add(judge, "gmd ran out of host memory after %" PRIu64 " live blocks",
                          view->live_count);
        return;
    }
    s->nodes[added] = (node){.address = b->address,
                             .end = end,
                             .born = b->born,
                             .rank = (uint32_t)(b->address * 0x9e3779b97f4a7c15u >> 32)};
    insert(s, added);
}

static void before_free(void *state, const gmd_view *view, gmd_judge *judge)
{
    (void)judge;
    erase(state, view->block->address);
}

const gmd_oracle gmd_oracle_overlap = {
    .name = "overlap",
    .holds_when = "no two live blocks share a byte",
    .create = create,
    .destroy = destroy,
    .after_alloc = after_alloc,
    .before_free = before_free,
};
