#include "pickle_machine.h"

#include "quote.h"

#include "gmd_grow.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef pickle_value value;

const char *pm_opcode_name(const pickle_machine *m)
{
    if (m->opcode_at == m->size) {
        return "end of the file";
    }
    const char *name = m->opcodes[m->data[m->opcode_at]].name;
    return name ? name : "not a pickle opcode";
}

void pm_fail(pickle_machine *m, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    m->status = gmd_fail(m->error, GMD_BAD_INPUT, "%s: byte %zu: %s: %s", m->name, m->opcode_at,
                         pm_opcode_name(m), text);
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

static bool fail_over_limit(pickle_machine *m)
{
    return PM_FAIL(m, "needs more memory than a file of %zu bytes can account for", m->size);
}

void *pm_take_memory(pickle_machine *m, size_t size)
{
    void *taken = arena_take(&m->arena, size);
    if (!taken && arena_is_full(&m->arena, size)) {
        fail_over_limit(m);
    } else if (!taken) {
        pm_fail_memory(m);
    }
    return taken;
}

bool pm_count_growth(pickle_machine *m, size_t before, size_t capacity, size_t item_bytes)
{
    return arena_charge(&m->arena, before * item_bytes, capacity * item_bytes) ||
           fail_over_limit(m);
}

bool pm_grow_stack(pickle_machine *m)
{
    size_t before = m->stack_capacity;
    return (GMD_GROW(&m->stack, &m->stack_capacity, m->depth + 1) || pm_fail_memory(m)) &&
           pm_count_growth(m, before, m->stack_capacity, sizeof *m->stack);
}

/* --- the stack --------------------------------------------------------------------------- */

bool pm_fail_need(pickle_machine *m, size_t count)
{
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

/* --- the input --------------------------------------------------------------------------- */

bool pm_take_line(pickle_machine *m, const char **line, size_t *length)
{
    const uint8_t *start = m->data + m->at;
    size_t left = m->size - m->at;
    const uint8_t *end = left ? memchr(start, '\n', left) : NULL;
    if (!end) {
        return PM_CUT_OFF(m, "expected a line, found the end of the file");
    }
    *line = (const char *)start;
    *length = (size_t)(end - start);
    m->at += *length + 1;
    return true;
}
