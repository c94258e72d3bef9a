/* pickle_containers.c - opcodes of lists, tuples, sets and dicts. */
#include "pickle_machine.h"

typedef pickle_value value;

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

/* Adds values to the container that is now on pm_top of the stack. */
static bool add_to_top(pickle_machine *m, pickle_kind kind, const value *values, size_t count)
{
    if (!pm_need(m, 1)) {
        return false;
    }
    if (pm_top(m)->kind != kind) {
        return PM_FAIL(m, "expected %s to add to, found %s", pickle_kind_name(kind),
                       pickle_kind_name(pm_top(m)->kind));
    }
    return pm_items_append(m, pm_top(m)->items, values, count);
}

static bool keys_are_hashable(pickle_machine *m, const value *pairs, size_t count)
{
    for (size_t i = 0; i < count; i += 2) {
        pickle_kind kind = pairs[i].kind;
        if (kind == PICKLE_LIST || kind == PICKLE_DICT || kind == PICKLE_SET) {
            return PM_FAIL(m, "expected a key, found %s", pickle_kind_name(kind));
        }
    }
    return true;
}

static bool are_pairs(pickle_machine *m, size_t count)
{
    return count % 2 == 0 ||
           PM_FAIL(m, "expected keys and values in pairs, found %zu values", count);
}

bool pm_read_dict(pickle_machine *m)
{
    value *first;
    size_t count;
    return pm_pop_mark(m, &first, &count) && are_pairs(m, count) &&
           keys_are_hashable(m, first, count) && pm_push_items(m, PICKLE_DICT, first, count);
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

static bool add_pairs(pickle_machine *m, const value *pairs, size_t count)
{
    return are_pairs(m, count) && keys_are_hashable(m, pairs, count) &&
           add_to_top(m, PICKLE_DICT, pairs, count);
}

bool pm_read_setitem(pickle_machine *m)
{
    return pm_need(m, 3) && (m->depth -= 2, add_pairs(m, m->stack + m->depth, 2));
}

bool pm_read_setitems(pickle_machine *m)
{
    value *first;
    size_t count;
    return pm_pop_mark(m, &first, &count) && add_pairs(m, first, count);
}
