#include "address_map.h"

#include "gmd_grow.h"
#include "gmd_min.h"
#include "gmd_random.h"

#include <stdlib.h>

static struct {
    allocation *nodes; /* [0] is not used, [1] is the end marker */
    uint32_t count, capacity;
    uint32_t free_list; /* through .left */
    uint32_t root;
    uint64_t insertions;
} map;

static allocation *at(uint32_t index)
{
    return &map.nodes[index];
}

static uint64_t largest_gap(uint32_t index)
{
    return index ? at(index)->largest_gap : 0;
}

static void update(uint32_t index)
{
    allocation *node = at(index);
    uint64_t largest = node->gap;
    uint64_t left = largest_gap(node->left), right = largest_gap(node->right);
    largest = gmd_max(left, largest);
    node->largest_gap = gmd_max(right, largest);
}

static uint32_t new_node(void)
{
    uint32_t index = map.free_list;
    if (index) {
        map.free_list = at(index)->left;
        return index;
    }
    if (!GMD_GROW(&map.nodes, &map.capacity, map.count + 1)) {
        return 0;
    }
    return map.count++;
}

static uint32_t priority_of(uint64_t counter)
{
    return (uint32_t)(gmd_random_mix(gmd_hash_number(counter)) >> 32);
}

bool map_init(void)
{
    return GMD_GROW(&map.nodes, &map.capacity, 2);
}

void map_reset(void)
{
    map.count = 2;
    map.free_list = 0;
    map.root = 1;
    map.insertions = 0;
    map.nodes[1] = (allocation){.address = ADDRESS_SPACE_END,
                                .gap = ADDRESS_SPACE_END,
                                .largest_gap = ADDRESS_SPACE_END,
                                .priority = UINT32_MAX,
                                .device = -1};
}

/* Splits the subtree into the nodes below `address` and the others. */
static void split(uint32_t index, uint64_t address, uint32_t *below, uint32_t *others)
{
    if (!index) {
        *below = *others = 0;
    } else if (at(index)->address < address) {
        split(at(index)->right, address, &at(index)->right, others);
        update(index);
        *below = index;
    } else {
        split(at(index)->left, address, below, &at(index)->left);
        update(index);
        *others = index;
    }
}

static uint32_t merge(uint32_t below, uint32_t above)
{
    if (!below || !above) {
        return below ? below : above;
    }
    if (at(below)->priority > at(above)->priority) {
        at(below)->right = merge(at(below)->right, above);
        update(below);
        return below;
    }
    at(above)->left = merge(below, at(above)->left);
    update(above);
    return above;
}

static void set_gap(uint32_t index, uint64_t address, uint64_t gap)
{
    allocation *node = at(index);
    if (node->address == address) {
        node->gap = gap;
    } else {
        set_gap(node->address < address ? node->right : node->left, address, gap);
    }
    update(index);
}

static uint32_t insert_node(uint32_t root, uint32_t index)
{
    allocation *node = at(index);
    if (!root || node->priority > at(root)->priority) {
        split(root, node->address, &node->left, &node->right);
        update(index);
        return index;
    }
    if (at(root)->address < node->address) {
        at(root)->right = insert_node(at(root)->right, index);
    } else {
        at(root)->left = insert_node(at(root)->left, index);
    }
    update(root);
    return root;
}

static uint32_t remove_node(uint32_t root, uint64_t address, uint32_t *removed)
{
    allocation *node = at(root);
    if (node->address == address) {
        *removed = root;
        return merge(node->left, node->right);
    }
    if (node->address < address) {
        node->right = remove_node(node->right, address, removed);
    } else {
        node->left = remove_node(node->left, address, removed);
    }
    update(root);
    return root;
}

allocation *map_at_or_above(uint64_t address)
{
    uint32_t best = 1;
    for (uint32_t index = map.root; index;) {
        if (at(index)->address >= address) {
            best = index;
            index = at(index)->left;
        } else {
            index = at(index)->right;
        }
    }
    return at(best);
}

bool map_is_free(uint64_t address, uint64_t span)
{
    if (address >= ADDRESS_SPACE_END || span > ADDRESS_SPACE_END - address) {
        return false;
    }
    const allocation *next = map_at_or_above(address);
    return address >= next->address - next->gap && span <= next->address - address;
}

allocation *map_insert(uint64_t address, uint64_t span)
{
    uint32_t index = new_node();
    if (!index) {
        return NULL;
    }
    allocation *next = map_at_or_above(address);
    uint64_t below = next->address - next->gap;
    *at(index) = (allocation){.address = address,
                              .span = span,
                              .gap = address - below,
                              .priority = priority_of(++map.insertions) & ~1u};
    set_gap(map.root, next->address, next->address - (address + span));
    map.root = insert_node(map.root, index);
    return at(index);
}

void map_remove(uint64_t address)
{
    uint32_t index = 0;
    map.root = remove_node(map.root, address, &index);
    const allocation *next = map_at_or_above(address);
    set_gap(map.root, next->address, next->gap + at(index)->span + at(index)->gap);
    at(index)->left = map.free_list;
    map.free_list = index;
}

allocation *map_split(uint64_t address, uint64_t middle)
{
    uint32_t index = new_node();
    if (!index) {
        return NULL;
    }
    allocation *lower = map_find(address), *upper = at(index);
    uint64_t below = middle - address;
    *upper = *lower;
    upper->address = middle;
    upper->span = lower->span - below;
    upper->size = upper->span;
    upper->data = lower->data ? lower->data + below : NULL;
    upper->gap = upper->left = upper->right = 0;
    upper->priority = priority_of(++map.insertions) & ~1u;
    lower->span = lower->size = below;
    map.root = insert_node(map.root, index);
    return at(index);
}

allocation *map_join(uint64_t address)
{
    uint32_t index = 0;
    allocation *lower = map_find(address);
    uint64_t middle = lower->address + lower->span;
    map.root = remove_node(map.root, middle, &index);
    lower->span += at(index)->span;
    lower->size = lower->span;
    at(index)->left = map.free_list;
    map.free_list = index;
    return lower;
}

allocation *map_find(uint64_t address)
{
    uint32_t best = 0;
    for (uint32_t index = map.root; index;) {
        if (at(index)->address <= address) {
            best = index;
            index = at(index)->right;
        } else {
            index = at(index)->left;
        }
    }
    return best && address - at(best)->address < at(best)->span ? at(best) : NULL;
}

allocation *map_find_range(uint64_t address, uint64_t size)
{
    allocation *a = map_find(address);
    uint64_t offset = a ? address - a->address : 0;
    return a && offset <= a->size && size <= a->size - offset ? a : NULL;
}

static uint32_t next_gap(uint32_t index, uint64_t address, uint64_t size)
{
    if (!index || at(index)->largest_gap < size) {
        return 0;
    }
    if (at(index)->address <= address) {
        return next_gap(at(index)->right, address, size);
    }
    uint32_t found = next_gap(at(index)->left, address, size);
    if (found) {
        return found;
    }
    return at(index)->gap >= size ? index : next_gap(at(index)->right, address, size);
}

allocation *map_next_gap(uint64_t address, uint64_t size)
{
    uint32_t index = next_gap(map.root, address, size);
    return index ? at(index) : NULL;
}

typedef struct map_check {
    uint64_t end;   /* of the node before */
    uint32_t nodes; /* come upon: no more than there are */
    map_visit *visit;
    void *context;
} map_check;

static const char *node_violation(map_check *c, const allocation *node)
{
    if (node->address < c->end || (node->device >= 0 && !node->span)) {
        return "allocations are in order, have a range, and do not overlap";
    }
    if (node->gap != node->address - c->end) {
        return "an allocation knows the gap below it";
    }
    c->end = node->address + node->span;
    if (c->visit && node->device >= 0) {
        c->visit(c->context, node);
    }
    return NULL;
}

/* In the order of addresses. */
static const char *tree_violation(map_check *c, uint32_t index)
{
    if (!index) {
        return NULL;
    }
    const allocation *node = at(index);
    if (index >= map.count || ++c->nodes > map.count ||
        (node->left && at(node->left)->priority > node->priority) ||
        (node->right && at(node->right)->priority > node->priority)) {
        return "a node outranks its children in the map";
    }
    const char *violation = tree_violation(c, node->left);
    violation = violation ? violation : node_violation(c, node);
    violation = violation ? violation : tree_violation(c, node->right);
    uint64_t largest = node->gap;
    uint64_t left = largest_gap(node->left), right = largest_gap(node->right);
    largest = gmd_max(left, largest);
    largest = gmd_max(right, largest);
    bool knows = largest == node->largest_gap;
    return violation || knows ? violation : "a node knows the largest gap of its subtree";
}

const char *map_violation(map_visit *visit, void *context)
{
    map_check c = {.visit = visit, .context = context};
    const char *violation = tree_violation(&c, map.root);
    bool ends = c.end == ADDRESS_SPACE_END;
    return violation || ends ? violation : "the last node is the end of the address space";
}
