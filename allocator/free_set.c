#include "free_set.h"

/* The small pool's sizes are the multiples of 512 B up to a 2 MiB segment: one bin each. The large
 * pool's start at 1 MiB: 128 bins for each power of two. */
static unsigned bin_of(const free_set *set, uint64_t size)
{
    if (set->is_small) {
        uint64_t index = (size >> 9) - 1;
        return index < FREE_SET_BINS ? (unsigned)index : FREE_SET_BINS - 1;
    }
    if (size < (uint64_t)1 << 20) {
        return 0;
    }
    unsigned exponent = 63 - (unsigned)__builtin_clzll(size);
    unsigned bin = (exponent - 20) << 7 | (unsigned)(size >> (exponent - 7) & 127);
    return bin < FREE_SET_BINS ? bin : FREE_SET_BINS - 1;
}

static uint32_t priority(const block *b)
{
    return (uint32_t)(b->address * 0x9e3779b97f4a7c15u >> 32);
}

/* Two blocks never share an address, so hash ties between different addresses need a rule too. */
static bool outranks(const block *a, const block *b)
{
    uint32_t pa = priority(a), pb = priority(b);
    return pa != pb ? pa > pb : a->address < b->address;
}

static bool key_less(uint64_t size_a, uint64_t address_a, uint64_t size_b, uint64_t address_b)
{
    return size_a != size_b ? size_a < size_b : address_a < address_b;
}

static bool precedes(const block *a, const block *b)
{
    return key_less(a->size, a->address, b->size, b->address);
}

static void mark_bin(free_set *set, unsigned bin)
{
    set->bitmap[bin / 64] |= (uint64_t)1 << bin % 64;
    set->summary |= (uint64_t)1 << bin / 64;
}

static void unmark_bin(free_set *set, unsigned bin)
{
    set->bitmap[bin / 64] &= ~((uint64_t)1 << bin % 64);
    if (!set->bitmap[bin / 64]) {
        set->summary &= ~((uint64_t)1 << bin / 64);
    }
}

/* Splits the tree into what precedes b and the rest, which become b's children. */
static void adopt_subtrees(block *tree, block *b)
{
    block **lower = &b->left, **upper = &b->right;
    while (tree) {
        if (precedes(tree, b)) {
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

void free_set_insert(free_set *set, block *b)
{
    unsigned bin = bin_of(set, b->size);
    set->block_count++;
    block **link = &set->bins[bin];
    if (!*link) {
        b->left = NULL;
        b->right = NULL;
        *link = b;
        mark_bin(set, bin);
        return;
    }
    while (*link && outranks(*link, b)) {
        link = precedes(b, *link) ? &(*link)->left : &(*link)->right;
    }
    adopt_subtrees(*link, b);
    *link = b;
}

/* Joins two trees of which every block of `lower` precedes every block of `upper`. */
static void join(block **link, block *lower, block *upper)
{
    while (lower && upper) {
        if (outranks(lower, upper)) {
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

void free_set_remove(free_set *set, block *b)
{
    unsigned bin = bin_of(set, b->size);
    block **link = &set->bins[bin];
    while (*link != b) {
        link = precedes(b, *link) ? &(*link)->left : &(*link)->right;
    }
    join(link, b->left, b->right);
    set->block_count--;
    if (!set->bins[bin]) {
        unmark_bin(set, bin);
    }
}

static block *tree_lower_bound(block *tree, uint64_t size, uint64_t address)
{
    block *found = NULL;
    while (tree) {
        if (key_less(tree->size, tree->address, size, address)) {
            tree = tree->right;
        } else {
            found = tree;
            tree = tree->left;
        }
    }
    return found;
}

/* The first bin after `bin` that holds something; FREE_SET_BINS: none. */
static unsigned next_bin(const free_set *set, unsigned bin)
{
    unsigned word = bin / 64;
    uint64_t rest = bin % 64 == 63 ? 0 : set->bitmap[word] >> (bin % 64 + 1) << (bin % 64 + 1);
    if (rest) {
        return word * 64 + (unsigned)__builtin_ctzll(rest);
    }
    uint64_t words = word == 63 ? 0 : set->summary >> (word + 1) << (word + 1);
    if (!words) {
        return FREE_SET_BINS;
    }
    word = (unsigned)__builtin_ctzll(words);
    return word * 64 + (unsigned)__builtin_ctzll(set->bitmap[word]);
}

block *free_set_lower_bound(const free_set *set, uint64_t size, uint64_t address)
{
    unsigned bin = bin_of(set, size);
    block *found = tree_lower_bound(set->bins[bin], size, address);
    if (found) {
        return found;
    }
    bin = next_bin(set, bin);
    return bin < FREE_SET_BINS ? tree_lower_bound(set->bins[bin], 0, 0) : NULL;
}

void free_set_each(const free_set *set, void (*visit)(void *context, block *b), void *context)
{
    uint64_t size = 512, address = 0;
    for (block *b; (b = free_set_lower_bound(set, size, address)) != NULL;) {
        size = b->size;
        address = b->address + 1;
        visit(context, b);
    }
}

/* Recursion depth is the treap's height: logarithmic in expectation. */
static bool tree_is_valid(const free_set *set, unsigned bin, const block *tree, uint64_t *count)
{
    if (!tree) {
        return true;
    }
    if (bin_of(set, tree->size) != bin || block_is_allocated(tree) || block_set(tree) != set) {
        return false;
    }
    if ((tree->left && (!precedes(tree->left, tree) || outranks(tree->left, tree))) ||
        (tree->right && (!precedes(tree, tree->right) || outranks(tree->right, tree)))) {
        return false;
    }
    (*count)++;
    return tree_is_valid(set, bin, tree->left, count) &&
           tree_is_valid(set, bin, tree->right, count);
}

bool free_set_is_valid(const free_set *set)
{
    uint64_t count = 0;
    for (unsigned bin = 0; bin < FREE_SET_BINS; bin++) {
        bool marked = set->bitmap[bin / 64] >> bin % 64 & 1;
        if (marked != (set->bins[bin] != NULL) ||
            !tree_is_valid(set, bin, set->bins[bin], &count)) {
            return false;
        }
    }
    for (unsigned word = 0; word < 64; word++) {
        if ((set->summary >> word & 1) != (set->bitmap[word] != 0)) {
            return false;
        }
    }
    return count == set->block_count;
}
