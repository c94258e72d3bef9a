#include "pool_blocks.h"

#include "gmd_grow.h"
#include "gmd_hash.h"

#include <stdlib.h>

static struct {
    block *items; /* [0] is not used */
    uint32_t count, capacity;
    uint32_t free_list;
} table;

/* --- the table ---------------------------------------------------------------------------- */

uint32_t block_new(uint64_t address, uint64_t span, uint32_t pool)
{
    uint32_t slot = table.free_list;
    if (slot) {
        table.free_list = table.items[slot].newer;
    } else if (GMD_GROW(&table.items, &table.capacity, table.count + 1)) {
        slot = table.count++;
    } else {
        return 0;
    }
    table.items[slot] =
        (block){.address = address, .span = span, .pool = pool, .shelf = SHELF_NONE};
    return slot;
}

block *block_at(uint32_t slot)
{
    return &table.items[slot];
}

void block_delete(uint32_t slot)
{
    block *b = block_at(slot);
    point_store(&b->freed_at, (point){.on = NULL});
    b->span = 0;
    b->newer = table.free_list;
    table.free_list = slot;
}

uint32_t block_limit(void)
{
    return table.count;
}

void blocks_reset(void)
{
    for (uint32_t i = 1; i < table.count; i++) {
        point_store(&table.items[i].freed_at, (point){.on = NULL});
    }
    table.count = 1;
    table.free_list = 0;
}

/* --- by size ------------------------------------------------------------------------------ */

static uint32_t priority(const block *b)
{
    return (uint32_t)(gmd_hash_number(b->address) >> 32);
}

static bool outranks(uint32_t slot, uint32_t other)
{
    const block *a = block_at(slot), *b = block_at(other);
    uint32_t pa = priority(a), pb = priority(b);
    return pa != pb ? pa > pb : a->address < b->address;
}

static bool is_before(const block *b, uint64_t span, uint64_t address)
{
    return b->span != span ? b->span < span : b->address < address;
}

static bool precedes(uint32_t slot, uint32_t other)
{
    return is_before(block_at(slot), block_at(other)->span, block_at(other)->address);
}

static void tree_insert(uint32_t *root, uint32_t slot)
{
    uint32_t *link = root;
    while (*link && outranks(*link, slot)) {
        link = precedes(slot, *link) ? &block_at(*link)->left : &block_at(*link)->right;
    }
    uint32_t rest = *link;
    *link = slot;
    uint32_t *lower = &block_at(slot)->left, *upper = &block_at(slot)->right;
    while (rest) { /* what it displaces becomes its children */
        if (precedes(rest, slot)) {
            *lower = rest;
            lower = &block_at(rest)->right;
            rest = *lower;
        } else {
            *upper = rest;
            upper = &block_at(rest)->left;
            rest = *upper;
        }
    }
    *lower = *upper = 0;
}

static void tree_remove(uint32_t *root, uint32_t slot)
{
    uint32_t *link = root;
    while (*link != slot) {
        link = precedes(slot, *link) ? &block_at(*link)->left : &block_at(*link)->right;
    }
    uint32_t lower = block_at(slot)->left, upper = block_at(slot)->right;
    while (lower && upper) {
        if (outranks(lower, upper)) {
            *link = lower;
            link = &block_at(lower)->right;
            lower = *link;
        } else {
            *link = upper;
            link = &block_at(upper)->left;
            upper = *link;
        }
    }
    *link = lower ? lower : upper;
}

uint32_t shelf_lower_bound(const shelf *from, uint64_t span, uint64_t address)
{
    uint32_t found = 0;
    for (uint32_t slot = from->root; slot;) {
        if (is_before(block_at(slot), span, address)) {
            slot = block_at(slot)->right;
        } else {
            found = slot;
            slot = block_at(slot)->left;
        }
    }
    return found;
}

/* --- shelves ------------------------------------------------------------------------------ */

uint32_t shelf_open(shelf_list *list, stream *on)
{
    if (!on) {
        return SHELF_DONE;
    }
    uint32_t empty = SHELF_NONE;
    for (uint32_t i = 1; i <= list->count; i++) {
        if (shelf_at(list, i)->on == on) {
            return i;
        }
        empty = shelf_at(list, i)->root ? empty : i;
    }
    if (empty == SHELF_NONE) {
        if (!GMD_GROW(&list->of_streams, &list->capacity, list->count + 1)) {
            return SHELF_NONE;
        }
        empty = ++list->count;
    }
    *shelf_at(list, empty) = (shelf){.on = on};
    return empty;
}

void shelves_clear(shelf_list *list)
{
    list->done = (shelf){.on = NULL};
    list->count = 0;
}

static void place_in_time(shelf *s, uint32_t slot, uint32_t older)
{
    block *b = block_at(slot);
    b->older = older;
    b->newer = older ? block_at(older)->newer : s->oldest;
    *(b->older ? &block_at(b->older)->newer : &s->oldest) = slot;
    *(b->newer ? &block_at(b->newer)->older : &s->newest) = slot;
}

void shelf_put(shelf_list *list, uint32_t number, uint32_t slot)
{
    shelf *s = shelf_at(list, number);
    block_at(slot)->shelf = number;
    place_in_time(s, slot, s->newest);
    tree_insert(&s->root, slot);
}

void shelf_put_after(shelf_list *list, uint32_t slot, uint32_t after)
{
    shelf *s = shelf_at(list, block_at(after)->shelf);
    block_at(slot)->shelf = block_at(after)->shelf;
    place_in_time(s, slot, after);
    tree_insert(&s->root, slot);
}

void shelf_take(shelf_list *list, uint32_t slot)
{
    const block *b = block_at(slot);
    shelf *s = shelf_at(list, b->shelf);
    tree_remove(&s->root, slot);
    *(b->older ? &block_at(b->older)->newer : &s->oldest) = b->newer;
    *(b->newer ? &block_at(b->newer)->older : &s->newest) = b->older;
}

/* --- chunks ------------------------------------------------------------------------------- */

uint64_t chunk_span(uint32_t slot)
{
    uint64_t span = 0;
    for (uint32_t at = block_at(slot)->below ? 0 : slot; at; at = block_at(at)->above) {
        span += block_at(at)->span;
    }
    return span;
}

bool chunk_has(uint32_t slot, uint64_t address, uint64_t size)
{
    const block *b = block_at(slot);
    uint64_t left = b->address + b->span - address;
    while (left < size && b->above) {
        b = block_at(b->above);
        left += b->span;
    }
    return left >= size;
}

/* --- validity ----------------------------------------------------------------------------- */

typedef struct shelf_check {
    uint32_t number, count, most;
} shelf_check;

static const char *shelf_tree_violation(shelf_check *c, uint32_t slot, uint32_t low, uint32_t high)
{
    if (!slot) {
        return NULL;
    }
    const block *b = block_at(slot);
    if ((low && !precedes(low, slot)) || (high && !precedes(slot, high)) || ++c->count > c->most) {
        return "the blocks of a shelf are in order";
    }
    if ((b->left && outranks(b->left, slot)) || (b->right && outranks(b->right, slot))) {
        return "a block outranks its children on the shelf";
    }
    if (b->is_live || !b->span || b->shelf != c->number) {
        return "a shelf has free blocks that name it";
    }
    const char *violation = shelf_tree_violation(c, b->left, low, slot);
    return violation ? violation : shelf_tree_violation(c, b->right, slot, high);
}

const char *shelf_violation(shelf_list *list, uint32_t number, uint32_t *count)
{
    const shelf *s = shelf_at(list, number);
    shelf_check c = {.number = number, .most = table.count};
    const char *violation = shelf_tree_violation(&c, s->root, 0, 0);
    uint32_t in_time = 0, older = 0;
    for (uint32_t slot = s->oldest; slot && !violation; slot = block_at(slot)->newer) {
        const block *b = block_at(slot);
        bool is_placed = b->shelf == number && b->older == older && ++in_time <= c.count;
        bool is_theirs = b->freed_at.on == s->on;
        violation = !is_placed   ? "a shelf has its blocks by time, too"
                    : !is_theirs ? "a shelf has what its stream freed"
                                 : NULL;
        older = slot;
    }
    *count += c.count;
    bool is_whole = in_time == c.count && s->newest == older;
    return violation || is_whole ? violation : "a shelf has its blocks by time, too";
}
