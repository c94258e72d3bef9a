/* pickle_memo.c - opcodes that give a value a number, and those that fetch it again. */
#include "pickle_machine.h"

#include "gmd_grow.h"

typedef pickle_value value;

/* Makes entries up to the index that hold nothing. */
static bool reach(pickle_machine *m, size_t index)
{
    if (index < m->memo_end) {
        return true;
    }
    size_t before = m->memo_capacity;
    if (!GMD_GROW(&m->memo, &m->memo_capacity, index + 1)) {
        return pm_fail_memory(m);
    }
    if (!pm_count_growth(m, before, m->memo_capacity, sizeof *m->memo)) {
        return false;
    }
    while (m->memo_end <= index) {
        m->memo[m->memo_end++] = (memo_entry){0};
    }
    return true;
}

/* A writer numbers its entries from 0, and each takes a byte at least: a larger index is a claim.
 */
static bool memoize(pickle_machine *m, uint64_t index)
{
    if (!pm_need(m, 1)) {
        return false;
    }
    if (index >= m->size) {
        return PM_FAIL(m, "memo index %llu: expected less than the file's %zu bytes",
                       (unsigned long long)index, m->size);
    }
    if (!reach(m, index)) {
        return false;
    }
    memo_entry *entry = &m->memo[index];
    const value *v = pm_top(m);
    m->memo_count += entry->kind == PICKLE_NOTHING;
    pm_share(entry->kind, pm_items_of(entry)); /* its number is not this index any more */
    if (pickle_is_container(v->kind)) {
        bool is_first = v->items->memo == PM_MEMO_NONE && index < PM_MEMO_SHARED - 1;
        v->items->memo = is_first ? (uint32_t)index + 1 : PM_MEMO_SHARED;
    }
    *entry = (memo_entry){v->kind, v->length, v->number};
    return true;
}

static bool recall(pickle_machine *m, uint64_t index)
{
    if (!pm_has_entry(m, index)) {
        return PM_FAIL(m, "expected a memo entry, found none at index %llu",
                       (unsigned long long)index);
    }
    return pm_push(m, pm_entry_value(m, index, m->opcode_at));
}

void pm_forget(pickle_machine *m, pickle_items *items, value v)
{
    if (items->memo != PM_MEMO_NONE) {
        m->memo[items->memo - 1] = (memo_entry){v.kind, v.length, v.number};
    }
    arena_give(&m->arena, items->values, items->capacity * sizeof *items->values);
    arena_give(&m->arena, items, sizeof *items);
}

/* --- opcodes ------------------------------------------------------------------------------- */

bool pm_read_dup(pickle_machine *m)
{
    if (!pm_need(m, 1)) {
        return false;
    }
    value v = *pm_top(m);
    pm_share(v.kind, v.items);
    return pm_push(m, v);
}

bool pm_read_memoize(pickle_machine *m)
{
    return memoize(m, m->memo_count);
}

bool pm_read_binput(pickle_machine *m)
{
    uint64_t index;
    return pm_take_number(m, 1, &index) && memoize(m, index);
}

bool pm_read_long_binput(pickle_machine *m)
{
    uint64_t index;
    return pm_take_number(m, 4, &index) && memoize(m, index);
}

bool pm_read_binget(pickle_machine *m)
{
    uint64_t index;
    return pm_take_number(m, 1, &index) && recall(m, index);
}

bool pm_read_long_binget(pickle_machine *m)
{
    uint64_t index;
    return pm_take_number(m, 4, &index) && recall(m, index);
}

/* The memo index of protocol 0: a line of digits. */
static bool take_index(pickle_machine *m, uint64_t *index)
{
    const char *line;
    size_t length;
    if (!pm_take_line(m, &line, &length)) {
        return false;
    }
    bool ok = length > 0 && length < 11;
    *index = 0;
    for (size_t i = 0; i < length && ok; i++) {
        ok = line[i] >= '0' && line[i] <= '9';
        *index = *index * 10 + (uint64_t)(line[i] - '0');
    }
    return ok || pm_fail_number(m, "a memo index", line, length);
}

bool pm_read_put(pickle_machine *m)
{
    uint64_t index;
    return take_index(m, &index) && memoize(m, index);
}

bool pm_read_get(pickle_machine *m)
{
    uint64_t index;
    return take_index(m, &index) && recall(m, index);
}
