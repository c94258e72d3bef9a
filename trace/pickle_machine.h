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

typedef struct pickle_machine {
    const uint8_t *data;
    size_t size, at;  /* `at`: the next byte to read */
    size_t opcode_at; /* byte of the opcode that is being executed */
    const char *opcode_name;
    pickle_value *stack;
    size_t depth, stack_capacity;
    size_t marks[PM_MARK_MAX]; /* stack depths */
    size_t mark_count;
    pickle_value *memo;
    size_t memo_count, memo_capacity; /* memo_count: entries in use, as MEMOIZE numbers them */
    bool stopped;
    memory_arena arena;
    const char *name;
    gmd_status status;
    gmd_error *error;
} pickle_machine;

__attribute__((format(printf, 2, 3))) void pm_fail(pickle_machine *m, const char *format, ...);
bool pm_fail_memory(pickle_machine *m);
/* "expected a number, found 'x'": of a number that is written as text. */
bool pm_fail_number(pickle_machine *m, const char *expected, const char *line, size_t length);

/* A failing opcode ends with `return PM_FAIL(...)`: false where compilers see it, too. */
#define PM_FAIL(...) (pm_fail(__VA_ARGS__), false)

/* Memory that lives as long as the pickle. NULL: the failure is noted. */
void *pm_take_memory(pickle_machine *m, size_t size);
/* Room for `needed` values in the stack or the memo. */
bool pm_grow(pickle_machine *m, pickle_value **values, size_t *capacity, size_t needed);
bool pm_items_append(pickle_machine *m, pickle_items *items, const pickle_value *values,
                     size_t count);

/* --- the stack --------------------------------------------------------------------------- */

static inline bool pm_push(pickle_machine *m, pickle_value v)
{
    if (m->depth == m->stack_capacity && !pm_grow(m, &m->stack, &m->stack_capacity, m->depth + 1)) {
        return false;
    }
    v.at = (uint32_t)m->opcode_at;
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

/* That so many values are above the newest mark. */
bool pm_need(pickle_machine *m, size_t count);
/* Ends the newest mark: the `*count` values from `*first` on were above it and stay in place until
 * the next push; the stack ends below them. */
bool pm_pop_mark(pickle_machine *m, pickle_value **first, size_t *count);
/* A container that holds a copy of these. */
bool pm_push_items(pickle_machine *m, pickle_kind kind, const pickle_value *values, size_t count);

/* --- the input --------------------------------------------------------------------------- */

static inline bool pm_take(pickle_machine *m, size_t count, const uint8_t **bytes)
{
    if (count > m->size - m->at) {
        return PM_FAIL(m, "expected %zu bytes more, found %zu before the end of the file", count,
                       m->size - m->at);
    }
    *bytes = m->data + m->at;
    m->at += count;
    return true;
}

/* An unsigned little-endian number of 1 to 8 bytes. */
static inline bool pm_take_number(pickle_machine *m, size_t width, uint64_t *number)
{
    const uint8_t *bytes;
    if (!pm_take(m, width, &bytes)) {
        return false;
    }
    *number = 0;
    for (size_t i = 0; i < width; i++) {
        *number |= (uint64_t)bytes[i] << 8 * i;
    }
    return true;
}

bool pm_take_line(pickle_machine *m, const char **line, size_t *length);

/* --- opcodes: pickle_numbers.c, pickle_strings.c, pickle_containers.c --------------------- */

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
