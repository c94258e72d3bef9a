/* pickle_machine.h - the machine that a pickle is a program of: a stack of values, marks, a memo
 * (pickletools.py of CPython describes it), and the opcodes, which pickle.c's table names. An
 * opcode returns false with the reason in the machine's error. */
#ifndef GMD_PICKLE_MACHINE_H
#define GMD_PICKLE_MACHINE_H

#include "arena.h"
#include "pickle.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GMD_PM_MARK_MAX = 256 };

typedef struct gmd_pickle_machine {
    const uint8_t *data;
    size_t size, at;  /* `at`: the next byte to read */
    size_t opcode_at; /* byte of the opcode that is being executed */
    const char *opcode_name;
    gmd_pickle_value *stack;
    size_t depth, stack_capacity;
    size_t marks[GMD_PM_MARK_MAX]; /* stack depths */
    size_t mark_count;
    gmd_pickle_value *memo;
    size_t memo_count, memo_capacity; /* memo_count: entries in use, as MEMOIZE numbers them */
    bool stopped;
    gmd_arena arena;
    const char *name;
    gmd_status status;
    gmd_error *error;
} gmd_pickle_machine;

__attribute__((format(printf, 2, 3))) void gmd_pm_fail(gmd_pickle_machine *m, const char *format,
                                                       ...);
bool gmd_pm_fail_memory(gmd_pickle_machine *m);
/* "expected a number, found 'x'": of a number that is written as text. */
bool gmd_pm_fail_number(gmd_pickle_machine *m, const char *expected, const char *line,
                        size_t length);

/* A failing opcode ends with `return PM_FAIL(...)`: false where compilers see it, too. */
#define PM_FAIL(...) (gmd_pm_fail(__VA_ARGS__), false)

/* Memory that lives as long as the pickle. NULL: the failure is noted. */
void *gmd_pm_take_memory(gmd_pickle_machine *m, size_t size);
/* Of the stack or the memo: room for `needed` values. */
bool gmd_pm_grow(gmd_pickle_machine *m, gmd_pickle_value **values, size_t *capacity, size_t needed);
bool gmd_pm_items_append(gmd_pickle_machine *m, gmd_pickle_items *items,
                         const gmd_pickle_value *values, size_t count);

/* --- the stack --------------------------------------------------------------------------- */

static inline bool gmd_pm_push(gmd_pickle_machine *m, gmd_pickle_value v)
{
    if (m->depth == m->stack_capacity &&
        !gmd_pm_grow(m, &m->stack, &m->stack_capacity, m->depth + 1)) {
        return false;
    }
    v.at = (uint32_t)m->opcode_at;
    m->stack[m->depth++] = v;
    return true;
}

/* Values above the newest mark: those below belong to a container that is not complete. */
static inline size_t gmd_pm_available(const gmd_pickle_machine *m)
{
    return m->depth - (m->mark_count ? m->marks[m->mark_count - 1] : 0);
}

static inline gmd_pickle_value *gmd_pm_top(gmd_pickle_machine *m)
{
    return &m->stack[m->depth - 1];
}

/* That so many values are above the newest mark. */
bool gmd_pm_need(gmd_pickle_machine *m, size_t count);
/* Ends the newest mark: the `*count` values from `*first` on were above it and stay in place until
 * the next push; the stack ends below them. */
bool gmd_pm_pop_mark(gmd_pickle_machine *m, gmd_pickle_value **first, size_t *count);
/* A container that holds a copy of these. */
bool gmd_pm_push_items(gmd_pickle_machine *m, gmd_pickle_kind kind, const gmd_pickle_value *values,
                       size_t count);

/* --- the input --------------------------------------------------------------------------- */

static inline bool gmd_pm_take(gmd_pickle_machine *m, size_t count, const uint8_t **bytes)
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
static inline bool gmd_pm_take_number(gmd_pickle_machine *m, size_t width, uint64_t *number)
{
    const uint8_t *bytes;
    if (!gmd_pm_take(m, width, &bytes)) {
        return false;
    }
    *number = 0;
    for (size_t i = 0; i < width; i++) {
        *number |= (uint64_t)bytes[i] << 8 * i;
    }
    return true;
}

bool gmd_pm_take_line(gmd_pickle_machine *m, const char **line, size_t *length);

/* --- opcodes: pickle_numbers.c, pickle_strings.c, pickle_containers.c --------------------- */

bool gmd_pm_read_binint1(gmd_pickle_machine *m);
bool gmd_pm_read_binint2(gmd_pickle_machine *m);
bool gmd_pm_read_binint(gmd_pickle_machine *m);
bool gmd_pm_read_long1(gmd_pickle_machine *m);
bool gmd_pm_read_long4(gmd_pickle_machine *m);
bool gmd_pm_read_int(gmd_pickle_machine *m);
bool gmd_pm_read_long(gmd_pickle_machine *m);
bool gmd_pm_read_float(gmd_pickle_machine *m);
bool gmd_pm_read_binfloat(gmd_pickle_machine *m);
bool gmd_pm_read_none(gmd_pickle_machine *m);
bool gmd_pm_read_newtrue(gmd_pickle_machine *m);
bool gmd_pm_read_newfalse(gmd_pickle_machine *m);
bool gmd_pm_read_short_binunicode(gmd_pickle_machine *m);
bool gmd_pm_read_binunicode(gmd_pickle_machine *m);
bool gmd_pm_read_binunicode8(gmd_pickle_machine *m);
bool gmd_pm_read_short_binbytes(gmd_pickle_machine *m);
bool gmd_pm_read_binbytes(gmd_pickle_machine *m);
bool gmd_pm_read_binbytes8(gmd_pickle_machine *m);
bool gmd_pm_read_unicode(gmd_pickle_machine *m);
bool gmd_pm_read_string(gmd_pickle_machine *m);
bool gmd_pm_read_mark(gmd_pickle_machine *m);
bool gmd_pm_read_empty_dict(gmd_pickle_machine *m);
bool gmd_pm_read_empty_list(gmd_pickle_machine *m);
bool gmd_pm_read_empty_tuple(gmd_pickle_machine *m);
bool gmd_pm_read_empty_set(gmd_pickle_machine *m);
bool gmd_pm_read_list(gmd_pickle_machine *m);
bool gmd_pm_read_tuple(gmd_pickle_machine *m);
bool gmd_pm_read_frozenset(gmd_pickle_machine *m);
bool gmd_pm_read_tuple1(gmd_pickle_machine *m);
bool gmd_pm_read_tuple2(gmd_pickle_machine *m);
bool gmd_pm_read_tuple3(gmd_pickle_machine *m);
bool gmd_pm_read_dict(gmd_pickle_machine *m);
bool gmd_pm_read_append(gmd_pickle_machine *m);
bool gmd_pm_read_appends(gmd_pickle_machine *m);
bool gmd_pm_read_additems(gmd_pickle_machine *m);
bool gmd_pm_read_setitem(gmd_pickle_machine *m);
bool gmd_pm_read_setitems(gmd_pickle_machine *m);

#endif
