/* block_tree.h - an ordered set of blocks that lives in the blocks themselves: a treap over
 * block.left and block.right whose priorities are a hash of the address, so that it is
 * deterministic, never allocates, and takes expected O(log n). A block is in one tree at a time.
 *
 * Inline, because the allocator's fast path lives on it and the order is a constant there. */
#ifndef GMD_BLOCK_TREE_H
#define GMD_BLOCK_TREE_H

#include "block.h"
#include "gmd_hash.h"

typedef enum block_order { BY_SIZE, BY_ADDRESS } block_order; /* by size, then by address */

static inline uint32_t block_tree_priority(const block *b)
{
    return (uint32_t)(gmd_hash_number(b->address) >> 32);
}

/* Two blocks never share an address, so hash ties between different addresses need a rule too. */
static inline bool block_tree_outranks(const block *a, const block *b)
{
    uint32_t pa = block_tree_priority(a), pb = block_tree_priority(b);
    return pa != pb ? pa > pb : a->address < b->address;
}

static inline bool block_tree_less(block_order order, uint64_t size_a, uint64_t address_a,
                                   uint64_t size_b, uint64_t address_b)
{
    return order == BY_SIZE && size_a != size_b ? size_a < size_b : address_a < address_b;
}

static inline bool block_tree_precedes(block_order order, const block *a, const block *b)
{
    return block_tree_less(order, a->size, a->address, b->size, b->address);
}

/* Splits the tree into what precedes b and the rest, which become b's children. */
static inline void block_tree_adopt(block_order order, block *tree, block *b)
{
    block **lower = &b->left, **upper = &b->right;
    while (tree) {
        if (block_tree_precedes(order, tree, b)) {
            *lower = tree;
            lower = &tree->right;
            tree = tree->right;
        } else {
            *upper = tree;
            upper = &tree->left;
            tree = tree->left;
        }
    }
    *lower = NULL;
    *upper = NULL;
}

static inline void block_tree_insert(block **root, block_order order, block *b)
{
    block **link = root;
    while (*link && block_tree_outranks(*link, b)) {
        link = block_tree_precedes(order, b, *link) ? &(*link)->left : &(*link)->right;
    }
    block_tree_adopt(order, *link, b);
    *link = b;
}

/* Joins two trees of which every block of `lower` precedes every block of `upper`. */
static inline void block_tree_join(block **link, block *lower, block *upper)
{
    while (lower && upper) {
        if (block_tree_outranks(lower, upper)) {
            *link = lower;
            link = &lower->right;
            lower = lower->right;
        } else {
            *link = upper;
            link = &upper->left;
            upper = upper->left;
        }
    }
    *link = lower ? lower : upper;
}

/* Takes out the block that `link`, a pointer in a tree, points to. */
static inline void block_tree_unlink(block **link)
{
    block_tree_join(link, (*link)->left, (*link)->right);
}

static inline void block_tree_remove(block **root, block_order order, block *b)
{
    block **link = root;
    while (*link != b) {
        GMD_ASSERT_INTERNAL(*link, "a block that is removed is in its tree");
        link = block_tree_precedes(order, b, *link) ? &(*link)->left : &(*link)->right;
    }
    block_tree_unlink(link);
}

/* The pointer to the first block at or after (size, address) in the order; NULL: there is none. It
 * is valid until the tree changes. */
static inline block **block_tree_find(block **root, block_order order, uint64_t size,
                                      uint64_t address)
{
    block **found = NULL;
    for (block **link = root; *link;) {
        block *b = *link;
        if (block_tree_less(order, b->size, b->address, size, address)) {
            link = &b->right;
        } else {
            found = link;
            link = &b->left;
        }
    }
    return found;
}

/* The block itself; NULL: none. */
static inline block *block_tree_lower_bound(block *tree, block_order order, uint64_t size,
                                            uint64_t address)
{
    block **found = block_tree_find(&tree, order, size, address);
    return found ? *found : NULL;
}

/* The last block before (size, address) in the order; NULL: none. */
static inline block *block_tree_before(block *tree, block_order order, uint64_t size,
                                       uint64_t address)
{
    block *found = NULL;
    while (tree) {
        if (block_tree_less(order, tree->size, tree->address, size, address)) {
            found = tree;
            tree = tree->right;
        } else {
            tree = tree->left;
        }
    }
    return found;
}

#endif
