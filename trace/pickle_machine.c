#include "pickle_machine.h"

#include "quote.h"

#include "gmd_grow.h"
#include "gmd_min.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef pickle_value value;

void pm_fail(pickle_machine *m, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    m->status = gmd_fail(m->error, GMD_BAD_INPUT, "%s: byte %zu: %s: %s", m->name, m->opcode_at,
                         m->opcode_name, text);
}

bool pm_fail_memory(pickle_machine *m)
{
    m->status =
        gmd_fail(m->error, GMD_NO_MEMORY, "%s: byte %zu: no host memory", m->name, m->opcode_at);
    return false;
}

bool pm_fail_number(pickle_machine *m, const char *expected, const char *line, size_t length)
{
    char quoted[QUOTE_BYTES];
    return PM_FAIL(m, "expected %s, found %s", expected, quote_text(line, length, quoted));
}

/* --- memory ------------------------------------------------------------------------------ */

void *pm_take_memory(pickle_machine *m, size_t size)
{
    void *taken = arena_take(&m->arena, size);
    if (!taken && arena_is_full(&m->arena, size)) {
        pm_fail(m, "needs more memory than a file of %zu bytes can account for", m->size);
    } else if (!taken) {
        pm_fail_memory(m);
    }
    return taken;
}

bool pm_grow(pickle_machine *m, value **values, size_t *capacity, size_t needed)
{
    return GMD_GROW(values, capacity, needed) || pm_fail_memory(m);
}

bool pm_items_append(pickle_machine *m, pickle_items *items, const value *values, size_t count)
{
    if (count > items->capacity - items->count) {
        size_t needed = items->count + count;
        /* The first batch fits exactly, since most containers are filled by one opcode. */
        size_t capacity =
            items->count && needed < items->capacity * 2 ? items->capacity * 2 : needed;
        value *moved = pm_take_memory(m, capacity * sizeof *moved);
        if (!moved) {
            return false;
        }
        if (items->count) {
            memcpy(moved, items->values, items->count * sizeof *moved);
        }
        items->values = moved;
        items->capacity = (uint32_t)gmd_min(capacity, UINT32_MAX);
    }
    if (count) {
        memcpy(items->values + items->count, values, count * sizeof *values);
    }
    items->count += count;
    return true;
}

/* --- the stack --------------------------------------------------------------------------- */

bool pm_need(pickle_machine *m, size_t count)
{
    if (pm_available(m) >= count) {
        return true;
    }
    return PM_FAIL(m, "expected %zu value%s on the stack, found %zu", count, count == 1 ? "" : "s",
                   pm_available(m));
}

bool pm_pop_mark(pickle_machine *m, value **first, size_t *count)
{
    if (!m->mark_count) {
        return PM_FAIL(m, "expected a MARK on the stack, found none");
    }
    size_t depth = m->marks[--m->mark_count];
    *first = m->stack + depth;
    *count = m->depth - depth;
    m->depth = depth;
    return true;
}

bool pm_push_items(pickle_machine *m, pickle_kind kind, const value *values, size_t count)
{
    pickle_items *items = pm_take_memory(m, sizeof *items);
    if (!items) {
        return false;
    }
    *items = (pickle_items){0};
    return (count == 0 || pm_items_append(m, items, values, count)) &&
           pm_push(m, (value){.kind = kind, .items = items});
}

/* --- the input --------------------------------------------------------------------------- */

bool pm_take_line(pickle_machine *m, const char **line, size_t *length)
{
    const uint8_t *start = m->data + m->at;
    size_t left = m->size - m->at;
    const uint8_t *end = left ? memchr(start, '\n', left) : NULL;
    if (!end) {
        return PM_FAIL(m, "expected a line, found the end of the file");
    }
    *line = (const char *)start;
    *length = (size_t)(end - start);
    m->at += *length + 1;
    return true;
}
