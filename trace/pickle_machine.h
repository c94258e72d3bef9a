/* pickle_machine.h - the machine that a pickle is a program of: a stack of values, marks, a memo
 * (pickletools.py of CPython describes it), and the opcodes, which pickle.c's table names. An
 * opcode returns false with the reason in the machine's error. */
#ifndef GMD_PICKLE_MACHINE_H
#define GMD_PICKLE_MACHINE_H

#include "arena.h"
#include "gmd_error.h"
#include "pickle_values.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PM_MARK_MAX = 256 };

/* pickle_items.memo: where the memo refers to a container, for as long as a single entry and a
 * single value (on the stack, or in another container) do; only then can it be taken. */
enum { PM_MEMO_NONE = 0 }; /* else: 1 more than the entry's index */
#define PM_MEMO_SHARED UINT32_MAX

/* A pickle_value without its place: what takes a value out of the memo is its place then. */
typedef struct memo_entry {
    uint32_t kind, length;
    uint64_t number; /* whatever the value holds */
} memo_entry;

typedef struct pickle_machine {
    const uint8_t *data;
    size_t size, at;                 /* `at`: the next byte to read */
    size_t opcode_at;                /* byte of the opcode that is being executed */
    const struct pm_opcode *opcodes; /* 256 of them */
    pickle_value *stack;
    size_t depth, stack_capacity;
    size_t marks[PM_MARK_MAX]; /* stack depths */
    size_t mark_count;
    memo_entry *memo;
    size_t memo_end, memo_capacity; /* memo_end: entries from here on are not there */
    size_t memo_count;              /* of entries that hold a value: what MEMOIZE numbers by */
    bool stopped;
    bool is_cut_off; /* the data end where more is expected */
    memory_arena arena;
    const pickle_taker *taker; /* NULL: there is none */
    const char *name;
    gmd_status status;
    gmd_error *error;
} pickle_machine;

/* False: it failed, or it was STOP. */
typedef struct pm_opcode {
    const char *name; /* NULL: there is no such opcode */
    bool (*run)(pickle_machine *m);
} pm_opcode;

/* The name of the opcode that is being executed. */
const char *pm_opcode_name(const pickle_machine *m);

__attribute__((format(printf, 2, 3))) void pm_fail(pickle_machine *m, const char *format, ...);
bool pm_fail_memory(pickle_machine *m);
/* "expected a number, found 'x'": of a number that is written as text. */
bool pm_fail_number(pickle_machine *m, const char *expected, const char *line, size_t length);

/* A failing opcode ends with `return PM_FAIL(...)`: false where compilers see it, too. */
#define PM_FAIL(...) (pm_fail(__VA_ARGS__), false)
/* The same, where the data end too early. */
#define PM_CUT_OFF(m, ...) ((m)->is_cut_off = true, PM_FAIL(m, __VA_ARGS__))

/* Memory that lives as long as the pickle. NULL: the failure is noted. */
void *pm_take_memory(pickle_machine *m, size_t size);
bool pm_grow_stack(pickle_machine *m);
/* An array of the machine's has grown to `capacity` items: it is counted. */
bool pm_count_growth(pickle_machine *m, size_t before, size_t capacity, size_t item_bytes);

/* --- the stack --------------------------------------------------------------------------- */

static inline bool pm_push(pickle_machine *m, pickle_value v)
{
    if (m->depth == m->stack_capacity && !pm_grow_stack(m)) {
        return false;
    }
    v.at = m->opcode_at;
    m->stack[m->depth++] = v;
    return true;
}

/* Values above the newest mark: those below belong to a container that is not complete. */
static inline size_t pm_available(const pickle_machine *m)
{
    return m->depth - (m->mark_count ? m->marks[m->mark_count - 1] : 0);
}

static inline pickle_value *pm_top(pickle_machine *m)
{
    return &m->stack[m->depth - 1];
}

bool pm_fail_need(pickle_machine *m, size_t count);

/* That so many values are above the newest mark. */
static inline bool pm_need(pickle_machine *m, size_t count)
{
    return pm_available(m) >= count || pm_fail_need(m, count);
}

/* Ends the newest mark: the `*count` values from `*first` on were above it and stay in place until
 * the next push; the stack ends below them. */
bool pm_pop_mark(pickle_machine *m, pickle_value **first, size_t *count);
/* A container that holds a copy of these. */
bool pm_push_items(pickle_machine *m, pickle_kind kind, const pickle_value *values, size_t count);

/* --- the memo: pickle_memo.c --------------------------------------------------------------- */

/* A container is referred to from one place more. */
static inline void pm_share(uint32_t kind, pickle_items *items)
{
    if (pickle_is_container(kind)) {
        items->memo = PM_MEMO_SHARED;
    }
}

static inline pickle_items *pm_items_of(const memo_entry *entry)
{
    return ((pickle_value){.number = entry->number}).items;
}

static inline bool pm_has_entry(const pickle_machine *m, uint64_t index)
{
    return index < m->memo_end && m->memo[index].kind != PICKLE_NOTHING;
}

/* The value of an entry that is there, for a place on the stack. */
static inline pickle_value pm_entry_value(pickle_machine *m, uint64_t index, uint64_t at)
{
    const memo_entry *entry = &m->memo[index];
    pm_share(entry->kind, pm_items_of(entry));
    return (pickle_value){
        .at = at, .kind = entry->kind, .length = entry->length, .number = entry->number};
}

/* The container becomes `v` where the memo refers to it, and its memory is used again: the value
 * that the caller has is the only one. */
void pm_forget(pickle_machine *m, pickle_items *items, pickle_value v);

static inline bool pm_is_shared(const pickle_items *items)
{
    return items->memo == PM_MEMO_SHARED;
}

/* --- the input --------------------------------------------------------------------------- */

static inline bool pm_take(pickle_machine *m, size_t count, const uint8_t **bytes)
{
    if (count > m->size - m->at) {
        return PM_CUT_OFF(m, "expected %zu bytes more, found %zu before the end of the file", count,
                          m->size - m->at);
    }
    *bytes = m->data + m->at;
    m->at += count;
    return true;
}

/* An unsigned little-endian number of up to 8 bytes. */
static inline uint64_t pm_number_of(const uint8_t *bytes, size_t width)
{
    uint64_t number = 0;
    for (size_t i = 0; i < width; i++) {
        number |= (uint64_t)bytes[i] << 8 * i;
    }
    return number;
}

static inline bool pm_take_number(pickle_machine *m, size_t width, uint64_t *number)
{
    const uint8_t *bytes;
    if (!pm_take(m, width, &bytes)) {
        return false;
    }
    *number = pm_number_of(bytes, width);
    return true;
}

bool pm_take_line(pickle_machine *m, const char **line, size_t *length);

/* --- opcodes: pickle_numbers.c, pickle_strings.c, pickle_containers.c, pickle_memo.c ------- */

bool pm_read_dup(pickle_machine *m);
bool pm_read_memoize(pickle_machine *m);
bool pm_read_binput(pickle_machine *m);
bool pm_read_long_binput(pickle_machine *m);
bool pm_read_put(pickle_machine *m);
bool pm_read_binget(pickle_machine *m);
bool pm_read_long_binget(pickle_machine *m);
bool pm_read_get(pickle_machine *m);

bool pm_read_binint1(pickle_machine *m);
bool pm_read_binint2(pickle_machine *m);
bool pm_read_binint(pickle_machine *m);
bool pm_read_long1(pickle_machine *m);
bool pm_read_long4(pickle_machine *m);
bool pm_read_int(pickle_machine *m);
bool pm_read_long(pickle_machine *m);
bool pm_read_float(pickle_machine *m);
bool pm_read_binfloat(pickle_machine *m);
bool pm_read_none(pickle_machine *m);
bool pm_read_newtrue(pickle_machine *m);
bool pm_read_newfalse(pickle_machine *m);
bool pm_read_short_binunicode(pickle_machine *m);
bool pm_read_binunicode(pickle_machine *m);
bool pm_read_binunicode8(pickle_machine *m);
bool pm_read_short_binbytes(pickle_machine *m);
bool pm_read_binbytes(pickle_machine *m);
bool pm_read_binbytes8(pickle_machine *m);
bool pm_read_unicode(pickle_machine *m);
bool pm_read_string(pickle_machine *m);
bool pm_read_mark(pickle_machine *m);
bool pm_read_empty_dict(pickle_machine *m);
bool pm_read_empty_list(pickle_machine *m);
bool pm_read_empty_tuple(pickle_machine *m);
bool pm_read_empty_set(pickle_machine *m);
bool pm_read_list(pickle_machine *m);
bool pm_read_tuple(pickle_machine *m);
bool pm_read_frozenset(pickle_machine *m);
bool pm_read_tuple1(pickle_machine *m);
bool pm_read_tuple2(pickle_machine *m);
bool pm_read_tuple3(pickle_machine *m);
bool pm_read_dict(pickle_machine *m);
bool pm_read_append(pickle_machine *m);
bool pm_read_appends(pickle_machine *m);
bool pm_read_additems(pickle_machine *m);
bool pm_read_setitem(pickle_machine *m);
bool pm_read_setitems(pickle_machine *m);

#endif
