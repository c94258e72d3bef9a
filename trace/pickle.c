#include "pickle.h"

#include "pickle_machine.h"
#include "quote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef pickle_value value;

enum { MAX_PROTOCOL = 5 };

/* --- the stack --------------------------------------------------------------------------- */

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
           PM_CUT_OFF(m, "claims %llu bytes, found %zu before the end of the file",
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
    return false;
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
                         m->opcode_at, pm_opcode_name(m), quote_text(full, (size_t)length, quoted));
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

static const pm_opcode opcodes[256] = {
    ['('] = {"MARK", pm_read_mark},
    ['.'] = {"STOP", read_stop},
    ['0'] = {"POP", read_pop},
    ['1'] = {"POP_MARK", read_pop_mark},
    ['2'] = {"DUP", pm_read_dup},
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
    ['g'] = {"GET", pm_read_get},
    ['h'] = {"BINGET", pm_read_binget},
    ['i'] = {"INST", refuse_named},
    ['j'] = {"LONG_BINGET", pm_read_long_binget},
    ['l'] = {"LIST", pm_read_list},
    [']'] = {"EMPTY_LIST", pm_read_empty_list},
    ['o'] = {"OBJ", refuse},
    ['p'] = {"PUT", pm_read_put},
    ['q'] = {"BINPUT", pm_read_binput},
    ['r'] = {"LONG_BINPUT", pm_read_long_binput},
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
    [0x94] = {"MEMOIZE", pm_read_memoize},
    [0x95] = {"FRAME", read_frame},
    [0x96] = {"BYTEARRAY8", pm_read_binbytes8},
    [0x97] = {"NEXT_BUFFER", refuse},
    [0x98] = {"READONLY_BUFFER", refuse},
};

/* Whether there is an opcode; its place is then known, and whatever fails names it. */
static inline bool is_opcode(pickle_machine *m)
{
    m->opcode_at = m->at;
    if (m->at == m->size) {
        return PM_CUT_OFF(m, "expected an opcode: the pickle is truncated");
    }
    return opcodes[m->data[m->at]].name ||
           PM_FAIL(m, "expected one of protocols 0 to %d, found 0x%02x", MAX_PROTOCOL,
                   m->data[m->at]);
}

/* STOP is the one opcode that ends the program without an error. */
static bool run(pickle_machine *m)
{
    /* The stack is there from the start, so that no pointer into it is ever derived from NULL. */
    bool ok = pm_grow_stack(m);
    while (ok && is_opcode(m)) {
        ok = opcodes[m->data[m->at++]].run(m);
    }
    return m->stopped;
}

/* Bytes of containers, texts, the stack and the memo for each byte of a pickle. A pickler needs up
 * to 10, as a name of a key or a number takes some bytes; a file of nothing but empty containers,
 * which take one byte each, would need 100. */
enum { ARENA_PER_BYTE = 24, ARENA_SPARE = 8 << 20 };

/* So that the arena's limit is a number that it has sizes for. */
#define MAX_SIZE (1ull << 40)

gmd_status pickle_read_taking(pickle_document *pickle, const uint8_t *data, size_t size,
                              const char *name, const pickle_taker *taker, gmd_error *error)
{
    *pickle = (pickle_document){0};
    if (size > MAX_SIZE) {
        return gmd_fail(error, GMD_BAD_INPUT, "%s: %zu bytes: expected at most %llu", name, size,
                        MAX_SIZE);
    }
    pickle_machine m = {.data = data,
                        .size = size,
                        .opcodes = opcodes,
                        .taker = taker,
                        .name = name,
                        .error = error,
                        .status = GMD_OK};
    arena_init(&m.arena, size * ARENA_PER_BYTE + ARENA_SPARE);
    if (run(&m)) {
        pickle->root = *pm_top(&m);
        pickle->arena = m.arena;
        arena_charge(&pickle->arena, m.stack_capacity * sizeof *m.stack, 0); /* both go */
        arena_charge(&pickle->arena, m.memo_capacity * sizeof *m.memo, 0);
    } else {
        arena_free(&m.arena);
        pickle->is_cut_off = m.is_cut_off;
    }
    free(m.stack);
    free(m.memo);
    return m.status;
}

gmd_status pickle_read(pickle_document *pickle, const uint8_t *data, size_t size, const char *name,
                       gmd_error *error)
{
    return pickle_read_taking(pickle, data, size, name, NULL, error);
}

void pickle_free(pickle_document *pickle)
{
    arena_free(&pickle->arena);
    *pickle = (pickle_document){0};
}
