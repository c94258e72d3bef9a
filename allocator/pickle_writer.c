#include "pickle_writer.h"

#include "gmd_min.h"

#include <string.h>

enum { BATCH = 1000 }; /* as Python's own pickler has it */

enum opcode {
    PROTO = 0x80,
    STOP = '.',
    MARK = '(',
    EMPTY_DICT = '}',
    SETITEMS = 'u',
    EMPTY_LIST = ']',
    APPENDS = 'e',
    TUPLE2 = 0x86,
    NEWTRUE = 0x88,
    NEWFALSE = 0x89,
    BININT = 'J',
    BININT1 = 'K',
    BININT2 = 'M',
    LONG1 = 0x8a,
    BINFLOAT = 'G',
    SHORT_BINUNICODE = 0x8c,
    BINUNICODE = 'X',
    MEMOIZE = 0x94,
    BINGET = 'h',
    LONG_BINGET = 'j',
};

static void put_op(pickle_writer *w, enum opcode op)
{
    new_file_put_byte(w->out, (unsigned char)op);
}

/* The lowest `size` bytes, the lowest first. */
static void put_number(pickle_writer *w, uint64_t value, unsigned size)
{
    for (unsigned i = 0; i < size; i++) {
        new_file_put_byte(w->out, (unsigned char)(value >> 8 * i));
    }
}

void pickle_begin(pickle_writer *w, new_file *out)
{
    *w = (pickle_writer){.out = out};
    put_op(w, PROTO);
    put_number(w, 4, 1);
}

void pickle_end(pickle_writer *w)
{
    put_op(w, STOP);
}

/* --- numbers ------------------------------------------------------------------------------ */

/* Numbers that a length is written before are signed: the highest bit must stay clear. */
static void put_long(pickle_writer *w, uint64_t value)
{
    unsigned size = (64 - (unsigned)__builtin_clzll(value)) / 8 + 1;
    put_op(w, LONG1);
    put_number(w, size, 1);
    put_number(w, value, size < 8 ? size : 8);
    if (size > 8) {
        put_number(w, 0, 1);
    }
}

void pickle_natural(pickle_writer *w, uint64_t value)
{
    if (value <= UINT8_MAX) {
        put_op(w, BININT1);
        put_number(w, value, 1);
    } else if (value <= UINT16_MAX) {
        put_op(w, BININT2);
        put_number(w, value, 2);
    } else if (value <= INT32_MAX) {
        put_op(w, BININT);
        put_number(w, value, 4);
    } else {
        put_long(w, value);
    }
}

void pickle_integer(pickle_writer *w, int64_t value)
{
    if (value >= 0) {
        pickle_natural(w, (uint64_t)value);
    } else {
        put_op(w, LONG1);
        put_number(w, 8, 1);
        put_number(w, (uint64_t)value, 8);
    }
}

void pickle_real(pickle_writer *w, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_op(w, BINFLOAT);
    put_number(w, __builtin_bswap64(bits), 8);
}

void pickle_bool(pickle_writer *w, bool value)
{
    put_op(w, value ? NEWTRUE : NEWFALSE);
}

/* --- text --------------------------------------------------------------------------------- */

/* Bytes of the UTF-8 character that text begins with; 0: it begins with none. */
static size_t character(const unsigned char *text, size_t length)
{
    static const struct {
        unsigned char least, most; /* of the first byte */
        unsigned char second_least, second_most;
        size_t bytes;
    } forms[] = {
        {0x00, 0x7f, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
        {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
        {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (text[0] < forms[i].least || text[0] > forms[i].most || forms[i].bytes > length) {
            continue;
        }
        bool is_whole = forms[i].bytes == 1 ||
                        (text[1] >= forms[i].second_least && text[1] <= forms[i].second_most);
        for (size_t k = 2; k < forms[i].bytes; k++) {
            is_whole = is_whole && (text[k] & 0xc0) == 0x80;
        }
        return is_whole ? forms[i].bytes : 0;
    }
    return 0;
}

void pickle_text(pickle_writer *w, const char *text, size_t length)
{
    if (length <= UINT8_MAX) {
        put_op(w, SHORT_BINUNICODE);
        put_number(w, length, 1);
    } else {
        length = gmd_min(length, UINT32_MAX);
        put_op(w, BINUNICODE);
        put_number(w, length, 4);
    }
    const unsigned char *at = (const unsigned char *)text;
    while (length) {
        size_t bytes = character(at, length);
        new_file_put(w->out, bytes ? (const void *)at : "?", bytes ? bytes : 1);
        at += bytes ? bytes : 1;
        length -= bytes ? bytes : 1;
    }
}

/* --- containers --------------------------------------------------------------------------- */

void pickle_end_pair(pickle_writer *w)
{
    put_op(w, TUPLE2);
}

void pickle_begin_dict(pickle_writer *w)
{
    put_op(w, EMPTY_DICT);
    put_op(w, MARK);
}

void pickle_end_dict(pickle_writer *w)
{
    put_op(w, SETITEMS);
}

void pickle_begin_list(pickle_writer *w, pickle_list *list)
{
    list->count = 0;
    put_op(w, EMPTY_LIST);
}

void pickle_next(pickle_writer *w, pickle_list *list)
{
    if (list->count == BATCH) {
        put_op(w, APPENDS);
        list->count = 0;
    }
    if (!list->count++) {
        put_op(w, MARK);
    }
}

void pickle_end_list(pickle_writer *w, pickle_list *list)
{
    if (list->count) {
        put_op(w, APPENDS);
    }
}

uint32_t pickle_remember(pickle_writer *w)
{
    put_op(w, MEMOIZE);
    return w->memo_count++;
}

void pickle_again(pickle_writer *w, uint32_t number)
{
    if (number <= UINT8_MAX) {
        put_op(w, BINGET);
        put_number(w, number, 1);
    } else {
        put_op(w, LONG_BINGET);
        put_number(w, number, 4);
    }
}
