/* pickle_containers.c - opcodes of lists, tuples, sets and dicts. */
#include "pickle_machine.h"

#include <string.h>

typedef pickle_value value;

/* --- values in a container ----------------------------------------------------------------- */

static bool reserve(pickle_machine *m, pickle_items *items, uint32_t needed)
{
    /* The first batch fits exactly, since most containers are filled by one opcode. */
    uint64_t twice = items->count ? (uint64_t)items->capacity * 2 : 0;
    uint64_t capacity = twice > needed && twice <= UINT32_MAX ? twice : needed;
    value *moved = pm_take_memory(m, capacity * sizeof *moved);
    if (!moved) {
        return false;
    }
    for (uint32_t i = 0; i < items->count; i++) {
        moved[i] = pickle_item(items, i, m->opcode_at);
    }
    if (items->capacity) {
        arena_give(&m->arena, items->values, items->capacity * sizeof *moved);
    }
    items->values = moved;
    items->capacity = (uint32_t)capacity;
    return true;
}

/* Whether the values are records that were taken one after the other, behind those that are there.
 */
static bool continues_run(const pickle_items *items, const value *values, size_t count)
{
    if (items->capacity || values[0].kind != PICKLE_RECORD) {
        return false;
    }
    uint64_t next = items->count ? items->first + items->count : values[0].number;
    for (size_t i = 0; i < count; i++) {
        if (values[i].kind != PICKLE_RECORD || values[i].number != next + i) {
            return false;
        }
    }
    return true;
}

static bool append(pickle_machine *m, pickle_items *items, const value *values, size_t count)
{
    if (count == 0) {
        return true;
    }
    if (count > UINT32_MAX - items->count) {
        return PM_FAIL(m, "more than %u values in one container", UINT32_MAX);
    }
    if (continues_run(items, values, count)) {
        items->first = items->count ? items->first : values[0].number;
        items->count += (uint32_t)count;
        return true;
    }
    if (count > items->capacity - (items->capacity ? items->count : 0) &&
        !reserve(m, items, items->count + (uint32_t)count)) {
        return false;
    }
    memcpy(items->values + items->count, values, count * sizeof *values);
    items->count += (uint32_t)count;
    return true;
}

bool pm_push_items(pickle_machine *m, pickle_kind kind, const value *values, size_t count)
{
    pickle_items *items = pm_take_memory(m, sizeof *items);
    if (!items) {
        return false;
    }
    *items = (pickle_items){0};
    return append(m, items, values, count) && pm_push(m, (value){.kind = kind, .items = items});
}

/* --- opcodes ------------------------------------------------------------------------------- */

bool pm_read_mark(pickle_machine *m)
{
    if (m->mark_count == PM_MARK_MAX) {
        return PM_FAIL(m, "containers nested deeper than %d", PM_MARK_MAX);
    }
    m->marks[m->mark_count++] = m->depth;
    return true;
}

bool pm_read_empty_dict(pickle_machine *m)
{
    return pm_push_items(m, PICKLE_DICT, NULL, 0);
}

bool pm_read_empty_list(pickle_machine *m)
{
    return pm_push_items(m, PICKLE_LIST, NULL, 0);
}

bool pm_read_empty_tuple(pickle_machine *m)
{
    return pm_push_items(m, PICKLE_TUPLE, NULL, 0);
}

bool pm_read_empty_set(pickle_machine *m)
{
    return pm_push_items(m, PICKLE_SET, NULL, 0);
}

static bool push_marked(pickle_machine *m, pickle_kind kind)
{
    value *first;
    size_t count;
    return pm_pop_mark(m, &first, &count) && pm_push_items(m, kind, first, count);
}

bool pm_read_list(pickle_machine *m)
{
    return push_marked(m, PICKLE_LIST);
}

bool pm_read_tuple(pickle_machine *m)
{
    return push_marked(m, PICKLE_TUPLE);
}

bool pm_read_frozenset(pickle_machine *m)
{
    return push_marked(m, PICKLE_SET);
}

static bool push_short_tuple(pickle_machine *m, size_t count)
{
    if (!pm_need(m, count)) {
        return false;
    }
    m->depth -= count;
    return pm_push_items(m, PICKLE_TUPLE, m->stack + m->depth, count);
}

bool pm_read_tuple1(pickle_machine *m)
{
    return push_short_tuple(m, 1);
}

bool pm_read_tuple2(pickle_machine *m)
{
    return push_short_tuple(m, 2);
}

bool pm_read_tuple3(pickle_machine *m)
{
    return push_short_tuple(m, 3);
}

/* Adds values to the container that is now on top of the stack. */
static bool add_to_top(pickle_machine *m, pickle_kind kind, const value *values, size_t count)
{
    if (!pm_need(m, 1)) {
        return false;
    }
    if (pm_top(m)->kind != kind) {
        return PM_FAIL(m, "expected %s to add to, found %s", pickle_kind_name(kind),
                       pickle_kind_name(pm_top(m)->kind));
    }
    if (pm_top(m)->items->note) {
        return PM_FAIL(m, "expected %s that is complete, found more of it behind its first use",
                       pickle_kind_name(kind));
    }
    return append(m, pm_top(m)->items, values, count);
}

static bool keys_are_hashable(pickle_machine *m, const value *pairs, size_t count)
{
    const uint32_t unhashable = 1u << PICKLE_LIST | 1u << PICKLE_SET | 1u << PICKLE_DICT |
                                1u << PICKLE_RECORD | 1u << PICKLE_NOTED;
    for (size_t i = 0; i < count; i += 2) {
        if (1u << pairs[i].kind & unhashable) {
            return PM_FAIL(m, "expected a key, found %s", pickle_kind_name(pairs[i].kind));
        }
    }
    return true;
}

static bool are_pairs(pickle_machine *m, size_t count)
{
    return count % 2 == 0 ||
           PM_FAIL(m, "expected keys and values in pairs, found %zu values", count);
}

/* What the dict referred to and nothing else does is known by its note alone. */
static void forget_noted(pickle_machine *m, const value *pairs, size_t count)
{
    for (size_t i = 1; i < count; i += 2) {
        const value *v = &pairs[i];
        if ((v->kind == PICKLE_LIST || v->kind == PICKLE_TUPLE) && v->items->note &&
            !pm_is_shared(v->items)) {
            pm_forget(m, v->items, (value){.kind = PICKLE_NOTED, .number = v->items->note});
        }
    }
}

/* Offers the values of a dict to the taker. */
static bool is_taken(pickle_machine *m, uint64_t at, const value *pairs, size_t count,
                     uint64_t *number)
{
    if (!m->taker || !m->taker->take(m->taker->context, at, pairs, count, number)) {
        return false;
    }
    forget_noted(m, pairs, count);
    return true;
}

bool pm_read_dict(pickle_machine *m)
{
    value *first;
    size_t count;
    uint64_t number;
    if (!pm_pop_mark(m, &first, &count) || !are_pairs(m, count) ||
        !keys_are_hashable(m, first, count)) {
        return false;
    }
    if (is_taken(m, m->opcode_at, first, count, &number)) {
        return pm_push(m, (value){.kind = PICKLE_RECORD, .number = number});
    }
    return pm_push_items(m, PICKLE_DICT, first, count);
}

bool pm_read_append(pickle_machine *m)
{
    return pm_need(m, 2) && (m->depth--, add_to_top(m, PICKLE_LIST, m->stack + m->depth, 1));
}

bool pm_read_appends(pickle_machine *m)
{
    value *first;
    size_t count;
    return pm_pop_mark(m, &first, &count) && add_to_top(m, PICKLE_LIST, first, count);
}

bool pm_read_additems(pickle_machine *m)
{
    value *first;
    size_t count;
    return pm_pop_mark(m, &first, &count) && add_to_top(m, PICKLE_SET, first, count);
}

bool pm_read_setitem(pickle_machine *m)
{
    if (!pm_need(m, 3)) {
        return false;
    }
    m->depth -= 2;
    const value *pair = m->stack + m->depth;
    return keys_are_hashable(m, pair, 2) && add_to_top(m, PICKLE_DICT, pair, 2);
}

bool pm_read_setitems(pickle_machine *m)
{
    value *first, *dict;
    size_t count;
    uint64_t number;
    if (!pm_pop_mark(m, &first, &count) || !are_pairs(m, count) ||
        !keys_are_hashable(m, first, count) || !pm_need(m, 1)) {
        return false;
    }
    dict = pm_top(m);
    bool can_be_taken =
        dict->kind == PICKLE_DICT && dict->items->count == 0 && !pm_is_shared(dict->items);
    if (!can_be_taken || !is_taken(m, dict->at, first, count, &number)) {
        return add_to_top(m, PICKLE_DICT, first, count);
    }
    pickle_items *items = dict->items;
    *dict = (value){.at = dict->at, .kind = PICKLE_RECORD, .number = number};
    pm_forget(m, items, *dict);
    return true;
}
