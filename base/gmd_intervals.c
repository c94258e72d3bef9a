/* A B+ tree in which a node goes when it is empty, and not before: nodes are seldom filled by half
 * for long, and no neighbours have to be merged. The least address of a child's intervals may have
 * risen since its `firsts` was written; it never falls below it. */
#include "gmd_intervals.h"

#include "gmd_grow.h"

#include <stdlib.h>
#include <string.h>

enum { LEAF_MAX = 32, INNER_MAX = 32, HEIGHT_MAX = 12 };

struct gmd_interval_leaf {
    uint32_t count; /* of a spare one: the next spare one, as in the pool */
    gmd_interval items[LEAF_MAX];
};

struct gmd_interval_inner {
    uint32_t count; /* likewise */
    uint32_t children[INNER_MAX];
    uint64_t firsts[INNER_MAX];
};

/* The way from the root to a leaf: the inner nodes, and the children that were taken. */
typedef struct path {
    uint32_t nodes[HEIGHT_MAX], slots[HEIGHT_MAX];
} path;

void gmd_intervals_free(gmd_intervals *set)
{
    free(set->leaves);
    free(set->inners);
    *set = (gmd_intervals){0};
}

/* --- nodes -------------------------------------------------------------------------------- */

static bool reserve_leaf(gmd_intervals *set)
{
    return set->leaf_pool.spare ||
           GMD_GROW(&set->leaves, &set->leaf_pool.capacity, set->leaf_pool.used + 1);
}

/* One for each level, and a new root. */
static bool reserve_inners(gmd_intervals *set)
{
    return GMD_GROW(&set->inners, &set->inner_pool.capacity,
                    set->inner_pool.used + set->height + 1);
}

static uint32_t take_leaf(gmd_intervals *set)
{
    uint32_t spare = set->leaf_pool.spare;
    if (spare) {
        set->leaf_pool.spare = set->leaves[spare - 1].count;
        return spare - 1;
    }
    return set->leaf_pool.used++;
}

static uint32_t take_inner(gmd_intervals *set)
{
    uint32_t spare = set->inner_pool.spare;
    if (spare) {
        set->inner_pool.spare = set->inners[spare - 1].count;
        return spare - 1;
    }
    return set->inner_pool.used++;
}

static void give_leaf(gmd_intervals *set, uint32_t leaf)
{
    set->leaves[leaf].count = set->leaf_pool.spare;
    set->leaf_pool.spare = leaf + 1;
}

static void give_inner(gmd_intervals *set, uint32_t inner)
{
    set->inners[inner].count = set->inner_pool.spare;
    set->inner_pool.spare = inner + 1;
}

/* --- searching ---------------------------------------------------------------------------- */

/* The child whose intervals `address` would be among: the last one that starts at or below it.
 * Halving without branches on what is found: they would be mispredicted half the time. */
static uint32_t child_for(const gmd_interval_inner *n, uint64_t address)
{
    const uint64_t *base = n->firsts;
    for (uint32_t left = n->count; left > 1;) {
        uint32_t half = left / 2;
        base = base[half] <= address ? base + half : base;
        left -= half;
    }
    return (uint32_t)(base - n->firsts);
}

/* The first interval of the leaf that ends after `address`; count: none. */
static uint32_t place_in(const gmd_interval_leaf *n, uint64_t address)
{
    const gmd_interval *base = n->items;
    for (uint32_t left = n->count; left > 1;) {
        uint32_t half = left / 2;
        base = base[half - 1].end <= address ? base + half : base;
        left -= half;
    }
    return (uint32_t)(base - n->items) + (n->count && base->end <= address);
}

static uint32_t find_leaf(const gmd_intervals *set, uint64_t address, path *way)
{
    uint32_t at = set->root;
    for (uint32_t level = 0; level < set->height; level++) {
        const gmd_interval_inner *n = &set->inners[at];
        way->nodes[level] = at;
        way->slots[level] = child_for(n, address);
        at = n->children[way->slots[level]];
    }
    return at;
}

/* The first interval of the leaf to the right of the way; NULL: it ends on the right. */
static gmd_interval *first_right_of(const gmd_intervals *set, const path *way)
{
    uint32_t level = set->height;
    do {
        if (level-- == 0) {
            return NULL;
        }
    } while (way->slots[level] + 1 == set->inners[way->nodes[level]].count);
    uint32_t at = set->inners[way->nodes[level]].children[way->slots[level] + 1];
    while (++level < set->height) {
        at = set->inners[at].children[0];
    }
    return &set->leaves[at].items[0];
}

/* The last interval of the leaf to the left of the way; NULL: it begins on the left. */
static gmd_interval *last_left_of(const gmd_intervals *set, const path *way)
{
    uint32_t level = set->height;
    do {
        if (level-- == 0) {
            return NULL;
        }
    } while (way->slots[level] == 0);
    uint32_t at = set->inners[way->nodes[level]].children[way->slots[level] - 1];
    while (++level < set->height) {
        at = set->inners[at].children[set->inners[at].count - 1];
    }
    return &set->leaves[at].items[set->leaves[at].count - 1];
}

/* An interval may reach beyond where the next leaf once began. */
gmd_interval *gmd_intervals_after(const gmd_intervals *set, uint64_t address)
{
    if (!set->count) {
        return NULL;
    }
    path way;
    gmd_interval_leaf *leaf = &set->leaves[find_leaf(set, address, &way)];
    uint32_t place = place_in(leaf, address);
    gmd_interval *before = place == 0 ? last_left_of(set, &way) : NULL;
    if (before && before->end > address) {
        return before;
    }
    return place < leaf->count ? &leaf->items[place] : first_right_of(set, &way);
}

gmd_interval *gmd_intervals_before(const gmd_intervals *set, uint64_t address)
{
    if (!set->count) {
        return NULL;
    }
    path way;
    gmd_interval_leaf *leaf = &set->leaves[find_leaf(set, address, &way)];
    uint32_t place = place_in(leaf, address);
    if (place < leaf->count && leaf->items[place].address < address) {
        return &leaf->items[place];
    }
    return place > 0 ? &leaf->items[place - 1] : last_left_of(set, &way);
}

/* --- inserting ---------------------------------------------------------------------------- */

static void put_child(gmd_interval_inner *n, uint32_t slot, uint32_t child, uint64_t first)
{
    memmove(&n->children[slot + 1], &n->children[slot], (n->count - slot) * sizeof *n->children);
    memmove(&n->firsts[slot + 1], &n->firsts[slot], (n->count - slot) * sizeof *n->firsts);
    n->children[slot] = child;
    n->firsts[slot] = first;
    n->count++;
}

/* The upper half of a full node moves into a new one; gives that. */
static uint32_t split_inner(gmd_intervals *set, uint32_t full)
{
    uint32_t added = take_inner(set);
    gmd_interval_inner *from = &set->inners[full], *to = &set->inners[added];
    to->count = INNER_MAX / 2;
    from->count -= to->count;
    memcpy(to->children, &from->children[from->count], to->count * sizeof *to->children);
    memcpy(to->firsts, &from->firsts[from->count], to->count * sizeof *to->firsts);
    return added;
}

static void add_root(gmd_intervals *set, uint32_t right, uint64_t first)
{
    uint32_t root = take_inner(set);
    set->inners[root] =
        (gmd_interval_inner){.count = 2, .children = {set->root, right}, .firsts = {0, first}};
    set->root = root;
    set->height++;
}

/* `child` was split off to the right of where the way goes, below `level`. */
static void add_child(gmd_intervals *set, const path *way, uint32_t child, uint64_t first)
{
    for (uint32_t level = set->height; level-- > 0;) {
        uint32_t at = way->nodes[level], slot = way->slots[level] + 1;
        if (set->inners[at].count < INNER_MAX) {
            put_child(&set->inners[at], slot, child, first);
            return;
        }
        uint32_t right = split_inner(set, at);
        uint32_t kept = set->inners[at].count;
        if (slot <= kept) {
            put_child(&set->inners[at], slot, child, first);
        } else {
            put_child(&set->inners[right], slot - kept, child, first);
        }
        child = right;
        first = set->inners[right].firsts[0];
    }
    add_root(set, child, first);
}

static uint32_t split_leaf(gmd_intervals *set, uint32_t full, const path *way)
{
    uint32_t added = take_leaf(set);
    gmd_interval_leaf *from = &set->leaves[full], *to = &set->leaves[added];
    to->count = LEAF_MAX / 2;
    from->count -= to->count;
    memcpy(to->items, &from->items[from->count], to->count * sizeof *to->items);
    add_child(set, way, added, to->items[0].address);
    return added;
}

bool gmd_intervals_reserve(gmd_intervals *set)
{
    return reserve_leaf(set) && reserve_inners(set);
}

bool gmd_intervals_insert(gmd_intervals *set, uint64_t address, uint64_t end, uint64_t value)
{
    if (!gmd_intervals_reserve(set)) {
        return false;
    }
    if (!set->leaf_pool.used) {
        set->root = take_leaf(set);
        set->leaves[set->root].count = 0;
    }
    path way;
    uint32_t at = find_leaf(set, address, &way);
    uint32_t place = place_in(&set->leaves[at], address);
    if (set->leaves[at].count == LEAF_MAX) {
        uint32_t right = split_leaf(set, at, &way), kept = set->leaves[at].count;
        at = place > kept ? right : at;
        place = place > kept ? place - kept : place;
    }
    gmd_interval_leaf *leaf = &set->leaves[at];
    memmove(&leaf->items[place + 1], &leaf->items[place],
            (leaf->count - place) * sizeof *leaf->items);
    leaf->items[place] = (gmd_interval){.address = address, .end = end, .value = value};
    leaf->count++;
    set->count++;
    return true;
}

/* --- removing ----------------------------------------------------------------------------- */

/* The node that the way leads to is empty; so may be those above it, then. */
static void remove_node(gmd_intervals *set, const path *way, uint32_t leaf)
{
    if (!set->height) {
        return; /* an empty set has a leaf for its root */
    }
    give_leaf(set, leaf);
    uint32_t level = set->height - 1;
    while (level && set->inners[way->nodes[level]].count == 1) {
        give_inner(set, way->nodes[level--]);
    }
    gmd_interval_inner *n = &set->inners[way->nodes[level]];
    uint32_t slot = way->slots[level], after = --n->count - slot;
    memmove(&n->children[slot], &n->children[slot + 1], after * sizeof *n->children);
    memmove(&n->firsts[slot], &n->firsts[slot + 1], after * sizeof *n->firsts);
    while (set->height && set->inners[set->root].count == 1) {
        uint32_t root = set->root;
        set->root = set->inners[root].children[0];
        set->height--;
        give_inner(set, root);
    }
}

void gmd_intervals_remove(gmd_intervals *set, uint64_t address)
{
    if (!set->count) {
        return;
    }
    path way;
    uint32_t at = find_leaf(set, address, &way);
    gmd_interval_leaf *leaf = &set->leaves[at];
    uint32_t place = place_in(leaf, address);
    if (place == leaf->count || leaf->items[place].address != address) {
        return;
    }
    leaf->count--;
    set->count--;
    memmove(&leaf->items[place], &leaf->items[place + 1],
            (leaf->count - place) * sizeof *leaf->items);
    if (!leaf->count) {
        remove_node(set, &way, at);
    }
}
