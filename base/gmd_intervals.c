/* A treap over an array: the rank of a node is a hash of its address. */
#include "gmd_intervals.h"

#include <stdlib.h>

void gmd_intervals_init(gmd_intervals *set)
{
    *set = (gmd_intervals){.spare = GMD_INTERVAL_NONE, .root = GMD_INTERVAL_NONE};
}

void gmd_intervals_free(gmd_intervals *set)
{
    free(set->nodes);
    gmd_intervals_init(set);
}

static uint32_t take_node(gmd_intervals *set)
{
    if (set->spare != GMD_INTERVAL_NONE) {
        uint32_t at = set->spare;
        set->spare = set->nodes[at].left;
        return at;
    }
    if (set->used == set->capacity) {
        uint32_t capacity = set->capacity ? set->capacity * 2 : 1024;
        gmd_interval *nodes = realloc(set->nodes, capacity * sizeof *nodes);
        if (!nodes) {
            return GMD_INTERVAL_NONE;
        }
        set->nodes = nodes;
        set->capacity = capacity;
    }
    return set->used++;
}

/* Intervals are disjoint, so their ends are ordered as their starts. */
gmd_interval *gmd_intervals_after(const gmd_intervals *set, uint64_t address)
{
    gmd_interval *found = NULL;
    for (uint32_t at = set->root; at != GMD_INTERVAL_NONE;) {
        gmd_interval *n = &set->nodes[at];
        if (n->end > address) {
            found = n;
            at = n->left;
        } else {
            at = n->right;
        }
    }
    return found;
}

static void link_node(gmd_intervals *set, uint32_t added)
{
    gmd_interval *n = &set->nodes[added];
    uint32_t *link = &set->root;
    while (*link != GMD_INTERVAL_NONE && set->nodes[*link].rank >= n->rank) {
        gmd_interval *other = &set->nodes[*link];
        link = n->address < other->address ? &other->left : &other->right;
    }
    uint32_t rest = *link;
    *link = added;
    uint32_t *lower = &n->left, *upper = &n->right;
    while (rest != GMD_INTERVAL_NONE) {
        gmd_interval *other = &set->nodes[rest];
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
    *lower = GMD_INTERVAL_NONE;
    *upper = GMD_INTERVAL_NONE;
}

bool gmd_intervals_insert(gmd_intervals *set, uint64_t address, uint64_t end, uint64_t value)
{
    uint32_t added = take_node(set);
    if (added == GMD_INTERVAL_NONE) {
        return false;
    }
    set->nodes[added] = (gmd_interval){.address = address,
                                       .end = end,
                                       .value = value,
                                       .rank = (uint32_t)(address * 0x9e3779b97f4a7c15u >> 32)};
    link_node(set, added);
    set->count++;
    return true;
}

void gmd_intervals_remove(gmd_intervals *set, uint64_t address)
{
    uint32_t *link = &set->root;
    while (*link != GMD_INTERVAL_NONE && set->nodes[*link].address != address) {
        gmd_interval *n = &set->nodes[*link];
        link = address < n->address ? &n->left : &n->right;
    }
    uint32_t gone = *link;
    if (gone == GMD_INTERVAL_NONE) {
        return;
    }
    uint32_t lower = set->nodes[gone].left, upper = set->nodes[gone].right;
    while (lower != GMD_INTERVAL_NONE && upper != GMD_INTERVAL_NONE) {
        if (set->nodes[lower].rank > set->nodes[upper].rank) {
            *link = lower;
            link = &set->nodes[lower].right;
            lower = *link;
        } else {
            *link = upper;
            link = &set->nodes[upper].left;
            upper = *link;
        }
    }
    *link = lower != GMD_INTERVAL_NONE ? lower : upper;
    set->nodes[gone].left = set->spare;
    set->spare = gone;
    set->count--;
}
