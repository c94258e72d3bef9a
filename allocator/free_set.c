#include "free_set.h"

/* The small pool's sizes are the multiples of 512 B up to a 2 MiB segment: one bin each, what is
 * larger (expandable segments merge without end) in the last. The large pool's start at 1 MiB: 128
 * bins for each power of two, what is smaller (rests of expandable segments) in the first.
 *
 * Requests of both kinds come mixed, so that branches on the kind would be mispredicted. */
static inline unsigned bin_of(const free_set *set, uint64_t size)
{
    uint64_t only_large = (uint64_t)set->is_small - 1; /* a mask */
    uint64_t exponent = 63 - (uint64_t)__builtin_clzll(size | (uint64_t)1 << 20);
    uint64_t shift = 9 + ((exponent - 7 - 9) & only_large);
    int64_t first = (int64_t)((exponent - 21) << 7 & only_large) - set->is_small;
    int64_t bin = (int64_t)(size >> shift) + first;
    bin = bin < 0 ? 0 : bin;
    return bin < FREE_SET_BINS ? (unsigned)bin : FREE_SET_BINS - 1;
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

void free_set_insert(free_set *set, block *b)
{
    unsigned bin = bin_of(set, b->size);
    set->block_count++;
    mark_bin(set, bin);
    block_tree_insert(&set->bins[bin], BY_SIZE, b);
}

void free_set_remove(free_set *set, block *b)
{
    unsigned bin = bin_of(set, b->size);
    block_tree_remove(&set->bins[bin], BY_SIZE, b);
    set->block_count--;
    if (!set->bins[bin]) {
        unmark_bin(set, bin);
    }
}

block *free_set_take(free_set *set, block **found)
{
    block *b = *found;
    block_tree_unlink(found);
    set->block_count--;
    uintptr_t bin = ((uintptr_t)found - (uintptr_t)set->bins) / sizeof *set->bins;
    if ((bin < FREE_SET_BINS) & !*found) { /* was the only node: one branch, rarely taken */
        unmark_bin(set, (unsigned)bin);
    }
    return b;
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

/* The last bin before `bin` that holds something; FREE_SET_BINS: none. */
static unsigned previous_bin(const free_set *set, unsigned bin)
{
    unsigned word = bin / 64;
    uint64_t rest = set->bitmap[word] & (((uint64_t)1 << bin % 64) - 1);
    if (rest) {
        return word * 64 + 63 - (unsigned)__builtin_clzll(rest);
    }
    uint64_t words = set->summary & (((uint64_t)1 << word) - 1);
    if (!words) {
        return FREE_SET_BINS;
    }
    word = 63 - (unsigned)__builtin_clzll(words);
    return word * 64 + 63 - (unsigned)__builtin_clzll(set->bitmap[word]);
}

block **free_set_find(free_set *set, uint64_t size, uint64_t address)
{
    unsigned bin = bin_of(set, size);
    block **found = block_tree_find(&set->bins[bin], BY_SIZE, size, address);
    if (found) {
        return found;
    }
    bin = next_bin(set, bin);
    return bin < FREE_SET_BINS ? block_tree_find(&set->bins[bin], BY_SIZE, 0, 0) : NULL;
}

block *free_set_before(const free_set *set, uint64_t size, uint64_t address)
{
    unsigned bin = bin_of(set, size);
    block *found = block_tree_before(set->bins[bin], BY_SIZE, size, address);
    if (found) {
        return found;
    }
    bin = previous_bin(set, bin);
    return bin < FREE_SET_BINS ? block_tree_before(set->bins[bin], BY_SIZE, UINT64_MAX, UINT64_MAX)
                               : NULL;
}

void free_set_each(free_set *set, void (*visit)(void *context, block *b), void *context)
{
    for (block *b = free_set_lower_bound(set, 512, 0); b; b = free_set_after(set, b)) {
        visit(context, b);
    }
}

/* --- validity ---------------------------------------------------------------------------- */

typedef struct tree_check {
    const free_set *set;
    block_order order;
    unsigned bin; /* of each block, where the order is by size */
    uint64_t count;
    free_set_visit *visit;
    void *context;
} tree_check;

static const char *block_violation(const tree_check *t, const block *b)
{
    if (block_set(b) != t->set) {
        return "a block lies in the set that it names";
    }
    if (!block_is_idle(b) || block_is_unmapped(b) != (t->order == BY_ADDRESS)) {
        return "a set has the blocks that are nobody's, apart by whether they have memory";
    }
    return t->order == BY_SIZE && bin_of(t->set, b->size) != t->bin
               ? "a free block lies in the bin of its size"
               : NULL;
}

/* All blocks of the tree come after `low` and before `high`, where these are given. Recursion depth
 * is the treap's height: logarithmic in expectation. */
static const char *tree_violation(tree_check *t, block *tree, const block *low, const block *high)
{
    if (!tree) {
        return NULL;
    }
    if ((low && !block_tree_precedes(t->order, low, tree)) ||
        (high && !block_tree_precedes(t->order, tree, high))) {
        return "a tree of blocks is in order";
    }
    if ((tree->left && block_tree_outranks(tree->left, tree)) ||
        (tree->right && block_tree_outranks(tree->right, tree))) {
        return "a block outranks its children in the tree";
    }
    const char *violation = block_violation(t, tree);
    if (violation) {
        return violation;
    }
    t->count++;
    if (t->visit) {
        t->visit(t->context, tree);
    }
    violation = tree_violation(t, tree->left, low, tree);
    return violation ? violation : tree_violation(t, tree->right, tree, high);
}

static const char *word_violation(tree_check *t, const free_set *set, unsigned word)
{
    for (uint64_t rest = set->bitmap[word]; rest; rest &= rest - 1) {
        t->bin = word * 64 + (unsigned)__builtin_ctzll(rest);
        const char *violation = set->bins[t->bin] ? tree_violation(t, set->bins[t->bin], NULL, NULL)
                                                  : "a marked bin has a block";
        if (violation) {
            return violation;
        }
    }
    return NULL;
}

const char *free_set_violation(const free_set *set, free_set_visit *visit, void *context)
{
    tree_check t = {.set = set, .order = BY_SIZE, .visit = visit, .context = context};
    for (uint64_t rest = set->summary; rest; rest &= rest - 1) {
        unsigned word = (unsigned)__builtin_ctzll(rest);
        const char *violation = set->bitmap[word] ? word_violation(&t, set, word)
                                                  : "a marked word of the bitmap marks a bin";
        if (violation) {
            return violation;
        }
    }
    if (t.count != set->block_count) {
        return "a set counts its free blocks";
    }
    t.order = BY_ADDRESS;
    return tree_violation(&t, set->unmapped, NULL, NULL);
}

bool free_set_is_valid(const free_set *set)
{
    for (unsigned bin = 0; bin < FREE_SET_BINS; bin++) {
        bool is_marked = set->bitmap[bin / 64] >> bin % 64 & 1;
        if ((set->bins[bin] && !is_marked) || (is_marked && !(set->summary >> bin / 64 & 1))) {
            return false;
        }
    }
    return !free_set_violation(set, NULL, NULL);
}
