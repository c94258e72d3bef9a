#include "pickle.h"

#include "pickle_machine.h"
#include "quote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef pickle_value value;

enum { MAX_PROTOCOL = 5 };

/* --- stack and memo ---------------------------------------------------------------------- */

/* As in CPython, POP on a bare mark takes the mark. */
static bool read_pop(pickle_machine *m)
{
    if (pm_available(m) == 0 && m->mark_count) {
        m->mark_count--;
        return true;
    }
    return pm_need(m, 1) && (m->depth--, true);
}

static bool read_pop_mark(pickle_machine *m)
{
    value *first;
    size_t count;
    return pm_pop_mark(m, &first, &count);
}

static bool read_dup(pickle_machine *m)
{
    return pm_need(m, 1) && pm_push(m, *pm_top(m));
}

/* A writer numbers its entries from 0, and each takes a byte at least: a larger index is a claim.
 */
static bool memo_put(pickle_machine *m, uint64_t index)
{
    if (!pm_need(m, 1)) {
        return false;
    }
    if (index >= m->size) {
        return PM_FAIL(m, "memo index %llu: expected less than the file's %zu bytes",
                       (unsigned long long)index, m->size);
    }
    if (index >= m->memo_capacity) {
        size_t old = m->memo_capacity;
        if (!pm_grow(m, &m->memo, &m->memo_capacity, (size_t)index + 1)) {
            return false;
        }
        memset(m->memo + old, 0, (m->memo_capacity - old) * sizeof *m->memo);
    }
    m->memo_count += m->memo[index].kind == PICKLE_NOTHING;
    m->memo[index] = *pm_top(m);
    return true;
}

static bool memo_get(pickle_machine *m, uint64_t index)
{
    if (index >= m->memo_capacity || m->memo[index].kind == PICKLE_NOTHING) {
        return PM_FAIL(m, "expected a memo entry, found none at index %llu",
                       (unsigned long long)index);
    }
    return pm_push(m, m->memo[index]);
}

static bool read_memoize(pickle_machine *m)
{
    return memo_put(m, m->memo_count);
}

static bool read_binput(pickle_machine *m)
{
    uint64_t index;
    return pm_take_number(m, 1, &index) && memo_put(m, index);
}

static bool read_long_binput(pickle_machine *m)
{
    uint64_t index;
    return pm_take_number(m, 4, &index) && memo_put(m, index);
}

static bool read_binget(pickle_machine *m)
{
    uint64_t index;
    return pm_take_number(m, 1, &index) && memo_get(m, index);
}

static bool read_long_binget(pickle_machine *m)
{
    uint64_t index;
    return pm_take_number(m, 4, &index) && memo_get(m, index);
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

static bool read_put(pickle_machine *m)
{
    uint64_t index;
    return take_index(m, &index) && memo_put(m, index);
}

static bool read_get(pickle_machine *m)
{
    uint64_t index;
    return take_index(m, &index) && memo_get(m, index);
}

/* --- framing ----------------------------------------------------------------------------- */

static bool read_proto(pickle_machine *m)
{
    uint64_t protocol;
    if (m->opcode_at != 0) {
        return PM_FAIL(m, "expected it as the first opcode only");
    }
    if (!pm_take_number(m, 1, &protocol)) {
        return false;
    }
    return protocol <= MAX_PROTOCOL ||
           PM_FAIL(m, "protocol %u: expected at most %d", (unsigned)protocol, MAX_PROTOCOL);
}

static bool read_frame(pickle_machine *m)
{
    uint64_t length;
    if (!pm_take_number(m, 8, &length)) {
        return false;
    }
    return length <= m->size - m->at ||
           PM_FAIL(m, "claims %llu bytes, found %zu before the end of the file",
                   (unsigned long long)length, m->size - m->at);
}

static bool read_stop(pickle_machine *m)
{
    if (m->depth != 1 || m->mark_count) {
        return PM_FAIL(m, "expected one value on the stack, found %zu and %zu open containers",
                       m->depth, m->mark_count);
    }
    if (m->at != m->size) {
        return PM_FAIL(m, "expected the end of the file, found %zu bytes more", m->size - m->at);
    }
    m->stopped = true;
    return true;
}

/* --- what is refused --------------------------------------------------------------------- */

static bool refuse(pickle_machine *m)
{
    return PM_FAIL(m, "snapshots hold plain data only; refused");
}

static bool refuse_global(pickle_machine *m, const char *module, size_t module_length,
                          const char *name, size_t name_length)
{
    char full[QUOTE_BYTES * 2], quoted[QUOTE_BYTES];
    int length =
        snprintf(full, sizeof full, "%.*s.%.*s", module_length < 90 ? (int)module_length : 90,
                 module, name_length < 90 ? (int)name_length : 90, name);
    m->status = gmd_fail(m->error, GMD_BAD_INPUT,
                         "%s: byte %zu: %s %s: snapshots hold plain data only; refused", m->name,
                         m->opcode_at, m->opcode_name, quote_text(full, (size_t)length, quoted));
    return false;
}

/* GLOBAL and INST: the module and the name are lines. */
static bool refuse_named(pickle_machine *m)
{
    const char *module, *name;
    size_t module_length, name_length;
    return pm_take_line(m, &module, &module_length) && pm_take_line(m, &name, &name_length) &&
           refuse_global(m, module, module_length, name, name_length);
}

static bool refuse_stack_global(pickle_machine *m)
{
    if (pm_available(m) < 2 || pm_top(m)->kind != PICKLE_STRING ||
        pm_top(m)[-1].kind != PICKLE_STRING) {
        return refuse(m);
    }
    const value *module = pm_top(m) - 1, *name = pm_top(m);
    return refuse_global(m, module->text, module->length, name->text, name->length);
}

/* --- the table --------------------------------------------------------------------------- */

typedef struct opcode {
    const char *name; /* NULL: there is no such opcode */
    bool (*run)(pickle_machine *m);
} opcode;

static const opcode opcodes[256] = {
    ['('] = {"MARK", pm_read_mark},
    ['.'] = {"STOP", read_stop},
    ['0'] = {"POP", read_pop},
    ['1'] = {"POP_MARK", read_pop_mark},
    ['2'] = {"DUP", read_dup},
    ['F'] = {"FLOAT", pm_read_float},
    ['I'] = {"INT", pm_read_int},
    ['J'] = {"BININT", pm_read_binint},
    ['K'] = {"BININT1", pm_read_binint1},
    ['L'] = {"LONG", pm_read_long},
    ['M'] = {"BININT2", pm_read_binint2},
    ['N'] = {"NONE", pm_read_none},
    ['P'] = {"PERSID", refuse},
    ['Q'] = {"BINPERSID", refuse},
    ['R'] = {"REDUCE", refuse},
    ['S'] = {"STRING", pm_read_string},
    ['T'] = {"BINSTRING", pm_read_binunicode},
    ['U'] = {"SHORT_BINSTRING", pm_read_short_binunicode},
    ['V'] = {"UNICODE", pm_read_unicode},
    ['X'] = {"BINUNICODE", pm_read_binunicode},
    ['a'] = {"APPEND", pm_read_append},
    ['b'] = {"BUILD", refuse},
    ['c'] = {"GLOBAL", refuse_named},
    ['d'] = {"DICT", pm_read_dict},
    ['}'] = {"EMPTY_DICT", pm_read_empty_dict},
    ['e'] = {"APPENDS", pm_read_appends},
    ['g'] = {"GET", read_get},
    ['h'] = {"BINGET", read_binget},
    ['i'] = {"INST", refuse_named},
    ['j'] = {"LONG_BINGET", read_long_binget},
    ['l'] = {"LIST", pm_read_list},
    [']'] = {"EMPTY_LIST", pm_read_empty_list},
    ['o'] = {"OBJ", refuse},
    ['p'] = {"PUT", read_put},
    ['q'] = {"BINPUT", read_binput},
    ['r'] = {"LONG_BINPUT", read_long_binput},
    ['s'] = {"SETITEM", pm_read_setitem},
    ['t'] = {"TUPLE", pm_read_tuple},
    [')'] = {"EMPTY_TUPLE", pm_read_empty_tuple},
    ['u'] = {"SETITEMS", pm_read_setitems},
    ['G'] = {"BINFLOAT", pm_read_binfloat},
    ['B'] = {"BINBYTES", pm_read_binbytes},
    ['C'] = {"SHORT_BINBYTES", pm_read_short_binbytes},
    [0x80] = {"PROTO", read_proto},
    [0x81] = {"NEWOBJ", refuse},
    [0x82] = {"EXT1", refuse},
    [0x83] = {"EXT2", refuse},
    [0x84] = {"EXT4", refuse},
    [0x85] = {"TUPLE1", pm_read_tuple1},
    [0x86] = {"TUPLE2", pm_read_tuple2},
    [0x87] = {"TUPLE3", pm_read_tuple3},
    [0x88] = {"NEWTRUE", pm_read_newtrue},
    [0x89] = {"NEWFALSE", pm_read_newfalse},
    [0x8a] = {"LONG1", pm_read_long1},
    [0x8b] = {"LONG4", pm_read_long4},
    [0x8c] = {"SHORT_BINUNICODE", pm_read_short_binunicode},
    [0x8d] = {"BINUNICODE8", pm_read_binunicode8},
    [0x8e] = {"BINBYTES8", pm_read_binbytes8},
    [0x8f] = {"EMPTY_SET", pm_read_empty_set},
    [0x90] = {"ADDITEMS", pm_read_additems},
    [0x91] = {"FROZENSET", pm_read_frozenset},
    [0x92] = {"NEWOBJ_EX", refuse},
    [0x93] = {"STACK_GLOBAL", refuse_stack_global},
    [0x94] = {"MEMOIZE", read_memoize},
    [0x95] = {"FRAME", read_frame},
    [0x96] = {"BYTEARRAY8", pm_read_binbytes8},
    [0x97] = {"NEXT_BUFFER", refuse},
    [0x98] = {"READONLY_BUFFER", refuse},
};

static bool read_opcode(pickle_machine *m)
{
    m->opcode_at = m->at;
    m->opcode_name = "end of the file";
    if (m->at == m->size) {
        return PM_FAIL(m, "expected an opcode: the pickle is truncated");
    }
    uint8_t code = m->data[m->at++];
    const opcode *op = &opcodes[code];
    if (!op->name) {
        m->opcode_name = "not a pickle opcode";
        return PM_FAIL(m, "expected one of protocols 0 to %d, found 0x%02x", MAX_PROTOCOL, code);
    }
    m->opcode_name = op->name;
    return op->run(m);
}

/* Bytes of containers and text that one byte of a pickle can cost: an empty container is one
 * opcode, 24 bytes here and 16 in the list that holds it, which may be doubled. */
enum { ARENA_PER_BYTE = 128, ARENA_SPARE = 64 << 10 };

gmd_status pickle_read(pickle_document *pickle, const uint8_t *data, size_t size, const char *name,
                       gmd_error *error)
{
    *pickle = (pickle_document){0};
    if (size > UINT32_MAX) {
        return gmd_fail(error, GMD_BAD_INPUT, "%s: %zu bytes: expected less than 4 GiB", name,
                        size);
    }
    pickle_machine m = {.data = data, .size = size, .name = name, .error = error, .status = GMD_OK};
    arena_init(&m.arena, size * ARENA_PER_BYTE + ARENA_SPARE);
    /* The stack is there from the start, so that no pointer into it is ever derived from NULL. */
    bool ok = pm_grow(&m, &m.stack, &m.stack_capacity, 1);
    while (ok && !m.stopped) {
        ok = read_opcode(&m);
    }
    if (m.status == GMD_OK) {
        pickle->root = *pm_top(&m);
        pickle->arena = m.arena;
    } else {
        arena_free(&m.arena);
    }
    free(m.stack);
    free(m.memo);
    return m.status;
}

void pickle_free(pickle_document *pickle)
{
    arena_free(&pickle->arena);
    *pickle = (pickle_document){0};
}
