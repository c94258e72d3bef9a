/* pickle_containers.c - opcodes of lists, tuples, sets and dicts. */
#include "pickle_machine.h"

typedef gmd_pickle_value value;

bool gmd_pm_read_mark(gmd_pickle_machine *m)
{
    if (m->mark_count == GMD_PM_MARK_MAX) {
        return PM_FAIL(m, "containers nested deeper than %d", GMD_PM_MARK_MAX);
    }
    m->marks[m->mark_count++] = m->depth;
    return true;
}

bool gmd_pm_read_empty_dict(gmd_pickle_machine *m)
{
    return gmd_pm_push_items(m, GMD_PICKLE_DICT, NULL, 0);
}

bool gmd_pm_read_empty_list(gmd_pickle_machine *m)
{
    return gmd_pm_push_items(m, GMD_PICKLE_LIST, NULL, 0);
}

bool gmd_pm_read_empty_tuple(gmd_pickle_machine *m)
{
    return gmd_pm_push_items(m, GMD_PICKLE_TUPLE, NULL, 0);
}

bool gmd_pm_read_empty_set(gmd_pickle_machine *m)
{
    return gmd_pm_push_items(m, GMD_PICKLE_SET, NULL, 0);
}

static bool push_marked(gmd_pickle_machine *m, gmd_pickle_kind kind)
{
    value *first;
    size_t count;
    return gmd_pm_pop_mark(m, &first, &count) && gmd_pm_push_items(m, kind, first, count);
}

bool gmd_pm_read_list(gmd_pickle_machine *m)
{
    return push_marked(m, GMD_PICKLE_LIST);
}

bool gmd_pm_read_tuple(gmd_pickle_machine *m)
{
    return push_marked(m, GMD_PICKLE_TUPLE);
}

bool gmd_pm_read_frozenset(gmd_pickle_machine *m)
{
    return push_marked(m, GMD_PICKLE_SET);
}

static bool push_short_tuple(gmd_pickle_machine *m, size_t count)
{
    if (!gmd_pm_need(m, count)) {
        return false;
    }
    m->depth -= count;
    return gmd_pm_push_items(m, GMD_PICKLE_TUPLE, m->stack + m->depth, count);
}

bool gmd_pm_read_tuple1(gmd_pickle_machine *m)
{
    return push_short_tuple(m, 1);
}

bool gmd_pm_read_tuple2(gmd_pickle_machine *m)
{
    return push_short_tuple(m, 2);
}

bool gmd_pm_read_tuple3(gmd_pickle_machine *m)
{
    return push_short_tuple(m, 3);
}

/* Adds values to the container that is now on gmd_pm_top of the stack. */
static bool add_to_top(gmd_pickle_machine *m, gmd_pickle_kind kind, const value *values,
                       size_t count)
{
    if (!gmd_pm_need(m, 1)) {
        return false;
    }
    if (gmd_pm_top(m)->kind != kind) {
        return PM_FAIL(m, "expected %s to add to, found %s", gmd_pickle_kind_name(kind),
                       gmd_pickle_kind_name(gmd_pm_top(m)->kind));
    }
    return gmd_pm_items_append(m, gmd_pm_top(m)->items, values, count);
}

static bool keys_are_hashable(gmd_pickle_machine *m, const value *pairs, size_t count)
{
    for (size_t i = 0; i < count; i += 2) {
        gmd_pickle_kind kind = pairs[i].kind;
        if (kind == GMD_PICKLE_LIST || kind == GMD_PICKLE_DICT || kind == GMD_PICKLE_SET) {
            return PM_FAIL(m, "expected a key, found %s", gmd_pickle_kind_name(kind));
        }
    }
    return true;
}

static bool are_pairs(gmd_pickle_machine *m, size_t count)
{
    return count % 2 == 0 ||
           PM_FAIL(m, "expected keys and values in pairs, found %zu values", count);
}

bool gmd_pm_read_dict(gmd_pickle_machine *m)
{
    value *first;
    size_t count;
    return gmd_pm_pop_mark(m, &first, &count) && are_pairs(m, count) &&
           keys_are_hashable(m, first, count) &&
           gmd_pm_push_items(m, GMD_PICKLE_DICT, first, count);
}

bool gmd_pm_read_append(gmd_pickle_machine *m)
{
    return gmd_pm_need(m, 2) &&
           (m->depth--, add_to_top(m, GMD_PICKLE_LIST, m->stack + m->depth, 1));
}

bool gmd_pm_read_appends(gmd_pickle_machine *m)
{
    value *first;
    size_t count;
    return gmd_pm_pop_mark(m, &first, &count) && add_to_top(m, GMD_PICKLE_LIST, first, count);
}

bool gmd_pm_read_additems(gmd_pickle_machine *m)
{
    value *first;
    size_t count;
    return gmd_pm_pop_mark(m, &first, &count) && add_to_top(m, GMD_PICKLE_SET, first, count);
}

static bool add_pairs(gmd_pickle_machine *m, const value *pairs, size_t count)
{
    return are_pairs(m, count) && keys_are_hashable(m, pairs, count) &&
           add_to_top(m, GMD_PICKLE_DICT, pairs, count);
}

bool gmd_pm_read_setitem(gmd_pickle_machine *m)
{
    return gmd_pm_need(m, 3) && (m->depth -= 2, add_pairs(m, m->stack + m->depth, 2));
}

bool gmd_pm_read_setitems(gmd_pickle_machine *m)
{
    value *first;
    size_t count;
    return gmd_pm_pop_mark(m, &first, &count) && add_pairs(m, first, count);
}
