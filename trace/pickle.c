#include "pickle.h"

#include "quote.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef gmd_pickle_value value;

enum { MAX_MARKS = 256, MAX_PROTOCOL = 5, MAX_NUMBER_TEXT = 512 };

typedef struct reader {
    const uint8_t *data;
    size_t size, at;  /* `at`: the next byte to read */
    size_t opcode_at; /* byte of the opcode that is being executed */
    const char *opcode_name;
    value *stack;
    size_t depth, stack_capacity;
    size_t marks[MAX_MARKS]; /* stack depths */
    size_t mark_count;
    value *memo;
    size_t memo_count, memo_capacity; /* memo_count: entries in use, as MEMOIZE numbers them */
    bool stopped;
    gmd_arena arena;
    const char *name;
    gmd_status status;
    gmd_error *error;
} reader;

__attribute__((format(printf, 2, 3))) static void note_failure(reader *r, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    r->status = gmd_fail(r->error, GMD_BAD_INPUT, "%s: byte %zu: %s: %s", r->name, r->opcode_at,
                         r->opcode_name, text);
}

/* A failing handler ends with `return FAIL(...)`: false where compilers see it, too. */
#define FAIL(...) (note_failure(__VA_ARGS__), false)

static bool fail_memory(reader *r)
{
    r->status =
        gmd_fail(r->error, GMD_NO_MEMORY, "%s: byte %zu: no host memory", r->name, r->opcode_at);
    return false;
}

/* --- memory ------------------------------------------------------------------------------ */

static void *take_memory(reader *r, size_t size)
{
    void *taken = gmd_arena_take(&r->arena, size);
    if (!taken && gmd_arena_is_full(&r->arena, size)) {
        note_failure(r, "needs more memory than a file of %zu bytes can account for", r->size);
    } else if (!taken) {
        fail_memory(r);
    }
    return taken;
}

static bool grow(reader *r, value **values, size_t *capacity, size_t needed)
{
    size_t larger = *capacity ? *capacity : 256;
    while (larger < needed) {
        larger *= 2;
    }
    value *grown = realloc(*values, larger * sizeof *grown);
    if (!grown) {
        return fail_memory(r);
    }
    *values = grown;
    *capacity = larger;
    return true;
}

static bool items_append(reader *r, gmd_pickle_items *items, const value *values, size_t count)
{
    if (count > items->capacity - items->count) {
        size_t needed = items->count + count;
        /* The first batch fits exactly, since most containers are filled by one opcode. */
        size_t capacity =
            items->count && needed < items->capacity * 2 ? items->capacity * 2 : needed;
        value *moved = take_memory(r, capacity * sizeof *moved);
        if (!moved) {
            return false;
        }
        if (items->count) {
            memcpy(moved, items->values, items->count * sizeof *moved);
        }
        items->values = moved;
        items->capacity = capacity;
    }
    if (count) {
        memcpy(items->values + items->count, values, count * sizeof *values);
    }
    items->count += count;
    return true;
}

/* --- the stack --------------------------------------------------------------------------- */

static bool push(reader *r, value v)
{
    if (r->depth == r->stack_capacity && !grow(r, &r->stack, &r->stack_capacity, r->depth + 1)) {
        return false;
    }
    v.at = (uint32_t)r->opcode_at;
    r->stack[r->depth++] = v;
    return true;
}

/* Values above the newest mark: those below belong to a container that is not complete. */
static size_t available(const reader *r)
{
    return r->depth - (r->mark_count ? r->marks[r->mark_count - 1] : 0);
}

static bool need(reader *r, size_t count)
{
    if (available(r) >= count) {
        return true;
    }
    return FAIL(r, "expected %zu value%s on the stack, found %zu", count, count == 1 ? "" : "s",
                available(r));
}

static value *top(reader *r)
{
    return &r->stack[r->depth - 1];
}

/* Ends the newest mark: the `*count` values from `*first` on were above it and stay in place until
 * the next push; the stack ends below them. */
static bool pop_mark(reader *r, value **first, size_t *count)
{
    if (!r->mark_count) {
        return FAIL(r, "expected a MARK on the stack, found none");
    }
    size_t depth = r->marks[--r->mark_count];
    *first = r->stack + depth;
    *count = r->depth - depth;
    r->depth = depth;
    return true;
}

static bool push_items(reader *r, gmd_pickle_kind kind, const value *values, size_t count)
{
    gmd_pickle_items *items = take_memory(r, sizeof *items);
    if (!items) {
        return false;
    }
    *items = (gmd_pickle_items){0};
    return (count == 0 || items_append(r, items, values, count)) &&
           push(r, (value){.kind = kind, .items = items});
}

/* --- the input --------------------------------------------------------------------------- */

static bool take(reader *r, size_t count, const uint8_t **bytes)
{
    if (count > r->size - r->at) {
        return FAIL(r, "expected %zu bytes more, found %zu before the end of the file", count,
                    r->size - r->at);
    }
    *bytes = r->data + r->at;
    r->at += count;
    return true;
}

/* An unsigned little-endian number of 1 to 8 bytes. */
static bool take_number(reader *r, size_t width, uint64_t *number)
{
    const uint8_t *bytes;
    if (!take(r, width, &bytes)) {
        return false;
    }
    *number = 0;
    for (size_t i = 0; i < width; i++) {
        *number |= (uint64_t)bytes[i] << 8 * i;
    }
    return true;
}

static bool take_line(reader *r, const char **line, size_t *length)
{
    const uint8_t *start = r->data + r->at;
    size_t left = r->size - r->at;
    const uint8_t *end = left ? memchr(start, '\n', left) : NULL;
    if (!end) {
        return FAIL(r, "expected a line, found the end of the file");
    }
    *line = (const char *)start;
    *length = (size_t)(end - start);
    r->at += *length + 1;
    return true;
}

/* --- numbers ----------------------------------------------------------------------------- */

static bool push_natural(reader *r, uint64_t number)
{
    return push(r, (value){.kind = GMD_PICKLE_NATURAL, .number = number});
}

static bool push_signed(reader *r, int64_t number)
{
    return number < 0 ? push(r, (value){.kind = GMD_PICKLE_NEGATIVE, .negative = number})
                      : push_natural(r, (uint64_t)number);
}

static bool push_bool(reader *r, bool truth)
{
    return push(r, (value){.kind = GMD_PICKLE_BOOL, .number = truth});
}

static bool read_binint1(reader *r)
{
    uint64_t number;
    return take_number(r, 1, &number) && push_natural(r, number);
}

static bool read_binint2(reader *r)
{
    uint64_t number;
    return take_number(r, 2, &number) && push_natural(r, number);
}

static bool read_binint(reader *r)
{
    uint64_t number;
    return take_number(r, 4, &number) && push_signed(r, (int32_t)(uint32_t)number);
}

/* Two's complement, little-endian, of any length; bytes over eight may only repeat the sign. */
static bool push_long(reader *r, uint64_t length)
{
    const uint8_t *bytes;
    if (length > r->size) {
        return FAIL(r, "an integer of %llu bytes: expected at most 64 bits",
                    (unsigned long long)length);
    }
    if (!take(r, (size_t)length, &bytes)) {
        return false;
    }
    bool is_negative = length && bytes[length - 1] & 0x80;
    uint64_t number = is_negative ? UINT64_MAX : 0;
    for (size_t i = 0; i < length; i++) {
        uint8_t filler = is_negative ? 0xff : 0;
        if (i < 8) {
            number = (number & ~((uint64_t)0xff << 8 * i)) | (uint64_t)bytes[i] << 8 * i;
        } else if (bytes[i] != filler) {
            return FAIL(r, "an integer of %llu bytes: expected at most 64 bits",
                        (unsigned long long)length);
        }
    }
    if (is_negative && !(number >> 63)) {
        return FAIL(r, "an integer below -2^63: expected at most 64 bits");
    }
    return is_negative ? push_signed(r, (int64_t)number) : push_natural(r, number);
}

static bool read_long1(reader *r)
{
    uint64_t length;
    return take_number(r, 1, &length) && push_long(r, length);
}

static bool read_long4(reader *r)
{
    uint64_t length;
    if (!take_number(r, 4, &length)) {
        return false;
    }
    return length > INT32_MAX ? FAIL(r, "expected a length, found a negative number")
                              : push_long(r, length);
}

static bool fail_number(reader *r, const char *expected, const char *line, size_t length)
{
    char quoted[GMD_QUOTE_BYTES];
    return FAIL(r, "expected %s, found %s", expected, gmd_quote(line, length, quoted));
}

static bool push_decimal(reader *r, const char *line, size_t length)
{
    bool is_negative = length && line[0] == '-';
    uint64_t number = 0;
    if (length == is_negative) {
        return fail_number(r, "a decimal integer", line, length);
    }
    for (size_t i = is_negative; i < length; i++) {
        if (line[i] < '0' || line[i] > '9') {
            return fail_number(r, "a decimal integer", line, length);
        }
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, (uint64_t)(line[i] - '0'), &number)) {
            return fail_number(r, "an integer of at most 64 bits", line, length);
        }
    }
    if (is_negative && number > (uint64_t)1 << 63) {
        return fail_number(r, "an integer of at most 64 bits", line, length);
    }
    return is_negative ? push_signed(r, (int64_t)(0 - number)) : push_natural(r, number);
}

/* "00" and "01" are how protocols 0 and 1 write False and True. */
static bool read_int(reader *r)
{
    const char *line;
    size_t length;
    if (!take_line(r, &line, &length)) {
        return false;
    }
    if (length == 2 && line[0] == '0' && (line[1] == '0' || line[1] == '1')) {
        return push_bool(r, line[1] == '1');
    }
    return push_decimal(r, line, length);
}

static bool read_long(reader *r)
{
    const char *line;
    size_t length;
    if (!take_line(r, &line, &length)) {
        return false;
    }
    return push_decimal(r, line, length && line[length - 1] == 'L' ? length - 1 : length);
}

static bool read_float(reader *r)
{
    const char *line;
    size_t length;
    if (!take_line(r, &line, &length)) {
        return false;
    }
    char text[MAX_NUMBER_TEXT];
    char *end = text;
    double real = 0;
    bool is_plausible = length && length < sizeof text && !strchr(" \t\v\f\r", line[0]);
    if (is_plausible) {
        memcpy(text, line, length);
        text[length] = 0;
        real = strtod(text, &end);
    }
    if (!is_plausible || end != text + length) {
        return fail_number(r, "a decimal number", line, length);
    }
    return push(r, (value){.kind = GMD_PICKLE_FLOAT, .real = real});
}

static bool read_binfloat(reader *r)
{
    const uint8_t *bytes;
    if (!take(r, 8, &bytes)) {
        return false;
    }
    uint64_t bits = 0;
    for (size_t i = 0; i < 8; i++) { /* the one big-endian number of the format */
        bits = bits << 8 | bytes[i];
    }
    value v = {.kind = GMD_PICKLE_FLOAT};
    memcpy(&v.real, &bits, sizeof v.real);
    return push(r, v);
}

static bool read_none(reader *r)
{
    return push(r, (value){.kind = GMD_PICKLE_NONE});
}

static bool read_newtrue(reader *r)
{
    return push_bool(r, true);
}

static bool read_newfalse(reader *r)
{
    return push_bool(r, false);
}

/* --- strings ----------------------------------------------------------------------------- */

static bool push_text(reader *r, gmd_pickle_kind kind, const char *text, size_t length)
{
    return push(
        r, (value){.kind = kind, .length = (uint32_t)length & GMD_PICKLE_MAX_STRING, .text = text});
}

/* A string whose length stands before it in `width` bytes. The bytes stay where they are. */
static bool read_counted(reader *r, gmd_pickle_kind kind, size_t width)
{
    uint64_t length;
    const uint8_t *bytes;
    if (!take_number(r, width, &length)) {
        return false;
    }
    if (length > r->size - r->at) {
        return FAIL(r, "claims %llu bytes, found %zu before the end of the file",
                    (unsigned long long)length, r->size - r->at);
    }
    if (length > GMD_PICKLE_MAX_STRING) {
        return FAIL(r, "%llu bytes: expected at most %d", (unsigned long long)length,
                    GMD_PICKLE_MAX_STRING);
    }
    return take(r, (size_t)length, &bytes) &&
           push_text(r, kind, (const char *)bytes, (size_t)length);
}

static bool read_short_binunicode(reader *r)
{
    return read_counted(r, GMD_PICKLE_STRING, 1);
}

static bool read_binunicode(reader *r)
{
    return read_counted(r, GMD_PICKLE_STRING, 4);
}

static bool read_binunicode8(reader *r)
{
    return read_counted(r, GMD_PICKLE_STRING, 8);
}

static bool read_short_binbytes(reader *r)
{
    return read_counted(r, GMD_PICKLE_BYTES, 1);
}

static bool read_binbytes(reader *r)
{
    return read_counted(r, GMD_PICKLE_BYTES, 4);
}

static bool read_binbytes8(reader *r)
{
    return read_counted(r, GMD_PICKLE_BYTES, 8);
}

static size_t put_utf8(char *out, uint32_t point)
{
    if (point < 0x80) {
        out[0] = (char)point;
        return 1;
    }
    size_t wide = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    for (size_t i = wide - 1; i > 0; i--, point >>= 6) {
        out[i] = (char)(0x80 | (point & 0x3f));
    }
    static const uint8_t lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    out[0] = (char)(lead[wide] | point);
    return wide;
}

/* The number that `digits` hexadecimal digits at `text` make; false if they are not that. */
static bool hex_number(const char *text, size_t left, size_t digits, uint32_t *number)
{
    *number = 0;
    for (size_t i = 0; i < digits; i++) {
        if (i >= left || !text[i]) {
            return false;
        }
        const char *hex = "0123456789abcdef", *found = strchr(hex, text[i] | 0x20);
        if (!found || (text[i] < 'A' && text[i] > '9')) {
            return false;
        }
        *number = *number << 4 | (uint32_t)(found - hex);
    }
    return true;
}

/* Room to decode a line of escapes: a byte becomes at most two (latin-1 as UTF-8). */
static char *take_decode_room(reader *r, size_t length)
{
    if (length > GMD_PICKLE_MAX_STRING / 2) {
        note_failure(r, "%zu bytes: expected at most %d", length, GMD_PICKLE_MAX_STRING / 2);
        return NULL;
    }
    return take_memory(r, length * 2 + 1);
}

/* Protocol 0's raw-unicode-escape: latin-1, and \uXXXX or \UXXXXXXXX. */
static bool read_unicode(reader *r)
{
    const char *line;
    size_t length, size = 0;
    char *text = take_line(r, &line, &length) ? take_decode_room(r, length) : NULL;
    if (!text) {
        return false;
    }
    for (size_t i = 0; i < length;) {
        uint32_t point = (uint8_t)line[i++];
        if (point == '\\' && i < length && (line[i] == 'u' || line[i] == 'U')) {
            size_t digits = line[i++] == 'u' ? 4 : 8;
            if (!hex_number(line + i, length - i, digits, &point) || point > 0x10ffff) {
                return fail_number(r, "\\u and 4 or \\U and 8 hexadecimal digits", line, length);
            }
            i += digits;
        }
        size += put_utf8(text + size, point);
    }
    return push_text(r, GMD_PICKLE_STRING, text, size);
}

/* One escape of a Python 2 string literal, `*i` behind its backslash. */
static bool unescape(const char *line, size_t end, size_t *i, char *out)
{
    static const char names[] = "\\'\"abfnrtv", bytes[] = "\\'\"\a\b\f\n\r\t\v";
    if (*i >= end || !line[*i]) {
        return false;
    }
    char c = line[(*i)++];
    const char *found = strchr(names, c);
    if (found) {
        *out = bytes[found - names];
        return true;
    }
    uint32_t number;
    if (c != 'x' || !hex_number(line + *i, end - *i, 2, &number)) {
        return false;
    }
    *i += 2;
    *out = (char)number;
    return true;
}

/* Protocol 0's str of Python 2: a quoted literal. */
static bool read_string(reader *r)
{
    const char *line;
    size_t length, size = 0;
    char *text = take_line(r, &line, &length) ? take_decode_room(r, length) : NULL;
    if (!text) {
        return false;
    }
    if (length < 2 || (line[0] != '\'' && line[0] != '"') || line[length - 1] != line[0]) {
        return fail_number(r, "a quoted string", line, length);
    }
    for (size_t i = 1; i < length - 1;) {
        char c = line[i++];
        if (c == '\\' && !unescape(line, length - 1, &i, &c)) {
            return fail_number(r, "a string with valid escapes", line, length);
        }
        text[size++] = c;
    }
    return push_text(r, GMD_PICKLE_STRING, text, size);
}

/* --- containers -------------------------------------------------------------------------- */

static bool read_mark(reader *r)
{
    if (r->mark_count == MAX_MARKS) {
        return FAIL(r, "containers nested deeper than %d", MAX_MARKS);
    }
    r->marks[r->mark_count++] = r->depth;
    return true;
}

static bool read_empty_dict(reader *r)
{
    return push_items(r, GMD_PICKLE_DICT, NULL, 0);
}

static bool read_empty_list(reader *r)
{
    return push_items(r, GMD_PICKLE_LIST, NULL, 0);
}

static bool read_empty_tuple(reader *r)
{
    return push_items(r, GMD_PICKLE_TUPLE, NULL, 0);
}

static bool read_empty_set(reader *r)
{
    return push_items(r, GMD_PICKLE_SET, NULL, 0);
}

static bool push_marked(reader *r, gmd_pickle_kind kind)
{
    value *first;
    size_t count;
    return pop_mark(r, &first, &count) && push_items(r, kind, first, count);
}

static bool read_list(reader *r)
{
    return push_marked(r, GMD_PICKLE_LIST);
}

static bool read_tuple(reader *r)
{
    return push_marked(r, GMD_PICKLE_TUPLE);
}

static bool read_frozenset(reader *r)
{
    return push_marked(r, GMD_PICKLE_SET);
}

static bool push_short_tuple(reader *r, size_t count)
{
    if (!need(r, count)) {
        return false;
    }
    r->depth -= count;
    return push_items(r, GMD_PICKLE_TUPLE, r->stack + r->depth, count);
}

static bool read_tuple1(reader *r)
{
    return push_short_tuple(r, 1);
}

static bool read_tuple2(reader *r)
{
    return push_short_tuple(r, 2);
}

static bool read_tuple3(reader *r)
{
    return push_short_tuple(r, 3);
}

/* Adds values to the container that is now on top of the stack. */
static bool add_to_top(reader *r, gmd_pickle_kind kind, const value *values, size_t count)
{
    if (!need(r, 1)) {
        return false;
    }
    if (top(r)->kind != kind) {
        return FAIL(r, "expected %s to add to, found %s", gmd_pickle_kind_name(kind),
                    gmd_pickle_kind_name(top(r)->kind));
    }
    return items_append(r, top(r)->items, values, count);
}

static bool keys_are_hashable(reader *r, const value *pairs, size_t count)
{
    for (size_t i = 0; i < count; i += 2) {
        gmd_pickle_kind kind = pairs[i].kind;
        if (kind == GMD_PICKLE_LIST || kind == GMD_PICKLE_DICT || kind == GMD_PICKLE_SET) {
            return FAIL(r, "expected a key, found %s", gmd_pickle_kind_name(kind));
        }
    }
    return true;
}

static bool are_pairs(reader *r, size_t count)
{
    return count % 2 == 0 || FAIL(r, "expected keys and values in pairs, found %zu values", count);
}

static bool read_dict(reader *r)
{
    value *first;
    size_t count;
    return pop_mark(r, &first, &count) && are_pairs(r, count) &&
           keys_are_hashable(r, first, count) && push_items(r, GMD_PICKLE_DICT, first, count);
}

static bool read_append(reader *r)
{
    return need(r, 2) && (r->depth--, add_to_top(r, GMD_PICKLE_LIST, r->stack + r->depth, 1));
}

static bool read_appends(reader *r)
{
    value *first;
    size_t count;
    return pop_mark(r, &first, &count) && add_to_top(r, GMD_PICKLE_LIST, first, count);
}

static bool read_additems(reader *r)
{
    value *first;
    size_t count;
    return pop_mark(r, &first, &count) && add_to_top(r, GMD_PICKLE_SET, first, count);
}

static bool add_pairs(reader *r, const value *pairs, size_t count)
{
    return are_pairs(r, count) && keys_are_hashable(r, pairs, count) &&
           add_to_top(r, GMD_PICKLE_DICT, pairs, count);
}

static bool read_setitem(reader *r)
{
    return need(r, 3) && (r->depth -= 2, add_pairs(r, r->stack + r->depth, 2));
}

static bool read_setitems(reader *r)
{
    value *first;
    size_t count;
    return pop_mark(r, &first, &count) && add_pairs(r, first, count);
}

/* --- stack and memo ---------------------------------------------------------------------- */

/* As in CPython, POP on a bare mark takes the mark. */
static bool read_pop(reader *r)
{
    if (available(r) == 0 && r->mark_count) {
        r->mark_count--;
        return true;
    }
    return need(r, 1) && (r->depth--, true);
}

static bool read_pop_mark(reader *r)
{
    value *first;
    size_t count;
    return pop_mark(r, &first, &count);
}

static bool read_dup(reader *r)
{
    return need(r, 1) && push(r, *top(r));
}

/* A writer numbers its entries from 0, and each takes a byte at least: a larger index is a claim.
 */
static bool memo_put(reader *r, uint64_t index)
{
    if (!need(r, 1)) {
        return false;
    }
    if (index >= r->size) {
        return FAIL(r, "memo index %llu: expected less than the file's %zu bytes",
                    (unsigned long long)index, r->size);
    }
    if (index >= r->memo_capacity) {
        size_t old = r->memo_capacity;
        if (!grow(r, &r->memo, &r->memo_capacity, (size_t)index + 1)) {
            return false;
        }
        memset(r->memo + old, 0, (r->memo_capacity - old) * sizeof *r->memo);
    }
    r->memo_count += r->memo[index].kind == GMD_PICKLE_NOTHING;
    r->memo[index] = *top(r);
    return true;
}

static bool memo_get(reader *r, uint64_t index)
{
    if (index >= r->memo_capacity || r->memo[index].kind == GMD_PICKLE_NOTHING) {
        return FAIL(r, "expected a memo entry, found none at index %llu",
                    (unsigned long long)index);
    }
    return push(r, r->memo[index]);
}

static bool read_memoize(reader *r)
{
    return memo_put(r, r->memo_count);
}

static bool read_binput(reader *r)
{
    uint64_t index;
    return take_number(r, 1, &index) && memo_put(r, index);
}

static bool read_long_binput(reader *r)
{
    uint64_t index;
    return take_number(r, 4, &index) && memo_put(r, index);
}

static bool read_binget(reader *r)
{
    uint64_t index;
    return take_number(r, 1, &index) && memo_get(r, index);
}

static bool read_long_binget(reader *r)
{
    uint64_t index;
    return take_number(r, 4, &index) && memo_get(r, index);
}

/* The memo index of protocol 0: a line of digits. */
static bool take_index(reader *r, uint64_t *index)
{
    const char *line;
    size_t length;
    if (!take_line(r, &line, &length)) {
        return false;
    }
    bool ok = length > 0 && length < 11;
    *index = 0;
    for (size_t i = 0; i < length && ok; i++) {
        ok = line[i] >= '0' && line[i] <= '9';
        *index = *index * 10 + (uint64_t)(line[i] - '0');
    }
    return ok || fail_number(r, "a memo index", line, length);
}

static bool read_put(reader *r)
{
    uint64_t index;
    return take_index(r, &index) && memo_put(r, index);
}

static bool read_get(reader *r)
{
    uint64_t index;
    return take_index(r, &index) && memo_get(r, index);
}

/* --- framing ----------------------------------------------------------------------------- */

static bool read_proto(reader *r)
{
    uint64_t protocol;
    if (r->opcode_at != 0) {
        return FAIL(r, "expected it as the first opcode only");
    }
    if (!take_number(r, 1, &protocol)) {
        return false;
    }
    return protocol <= MAX_PROTOCOL ||
           FAIL(r, "protocol %u: expected at most %d", (unsigned)protocol, MAX_PROTOCOL);
}

static bool read_frame(reader *r)
{
    uint64_t length;
    if (!take_number(r, 8, &length)) {
        return false;
    }
    return length <= r->size - r->at ||
           FAIL(r, "claims %llu bytes, found %zu before the end of the file",
                (unsigned long long)length, r->size - r->at);
}

static bool read_stop(reader *r)
{
    if (r->depth != 1 || r->mark_count) {
        return FAIL(r, "expected one value on the stack, found %zu and %zu open containers",
                    r->depth, r->mark_count);
    }
    if (r->at != r->size) {
        return FAIL(r, "expected the end of the file, found %zu bytes more", r->size - r->at);
    }
    r->stopped = true;
    return true;
}

/* --- what is refused --------------------------------------------------------------------- */

static bool refuse(reader *r)
{
    return FAIL(r, "snapshots hold plain data only; refused");
}

static bool refuse_global(reader *r, const char *module, size_t module_length, const char *name,
                          size_t name_length)
{
    char full[GMD_QUOTE_BYTES * 2], quoted[GMD_QUOTE_BYTES];
    int length =
        snprintf(full, sizeof full, "%.*s.%.*s", module_length < 90 ? (int)module_length : 90,
                 module, name_length < 90 ? (int)name_length : 90, name);
    r->status = gmd_fail(r->error, GMD_BAD_INPUT,
                         "%s: byte %zu: %s %s: snapshots hold plain data only; refused", r->name,
                         r->opcode_at, r->opcode_name, gmd_quote(full, (size_t)length, quoted));
    return false;
}

/* GLOBAL and INST: the module and the name are lines. */
static bool refuse_named(reader *r)
{
    const char *module, *name;
    size_t module_length, name_length;
    return take_line(r, &module, &module_length) && take_line(r, &name, &name_length) &&
           refuse_global(r, module, module_length, name, name_length);
}

static bool refuse_stack_global(reader *r)
{
    if (available(r) < 2 || top(r)->kind != GMD_PICKLE_STRING ||
        top(r)[-1].kind != GMD_PICKLE_STRING) {
        return refuse(r);
    }
    const value *module = top(r) - 1, *name = top(r);
    return refuse_global(r, module->text, module->length, name->text, name->length);
}

/* --- the table --------------------------------------------------------------------------- */

typedef struct opcode {
    const char *name; /* NULL: there is no such opcode */
    bool (*run)(reader *r);
} opcode;

static const opcode opcodes[256] = {
    ['('] = {"MARK", read_mark},
    ['.'] = {"STOP", read_stop},
    ['0'] = {"POP", read_pop},
    ['1'] = {"POP_MARK", read_pop_mark},
    ['2'] = {"DUP", read_dup},
    ['F'] = {"FLOAT", read_float},
    ['I'] = {"INT", read_int},
    ['J'] = {"BININT", read_binint},
    ['K'] = {"BININT1", read_binint1},
    ['L'] = {"LONG", read_long},
    ['M'] = {"BININT2", read_binint2},
    ['N'] = {"NONE", read_none},
    ['P'] = {"PERSID", refuse},
    ['Q'] = {"BINPERSID", refuse},
    ['R'] = {"REDUCE", refuse},
    ['S'] = {"STRING", read_string},
    ['T'] = {"BINSTRING", read_binunicode},
    ['U'] = {"SHORT_BINSTRING", read_short_binunicode},
    ['V'] = {"UNICODE", read_unicode},
    ['X'] = {"BINUNICODE", read_binunicode},
    ['a'] = {"APPEND", read_append},
    ['b'] = {"BUILD", refuse},
    ['c'] = {"GLOBAL", refuse_named},
    ['d'] = {"DICT", read_dict},
    ['}'] = {"EMPTY_DICT", read_empty_dict},
    ['e'] = {"APPENDS", read_appends},
    ['g'] = {"GET", read_get},
    ['h'] = {"BINGET", read_binget},
    ['i'] = {"INST", refuse_named},
    ['j'] = {"LONG_BINGET", read_long_binget},
    ['l'] = {"LIST", read_list},
    [']'] = {"EMPTY_LIST", read_empty_list},
    ['o'] = {"OBJ", refuse},
    ['p'] = {"PUT", read_put},
    ['q'] = {"BINPUT", read_binput},
    ['r'] = {"LONG_BINPUT", read_long_binput},
    ['s'] = {"SETITEM", read_setitem},
    ['t'] = {"TUPLE", read_tuple},
    [')'] = {"EMPTY_TUPLE", read_empty_tuple},
    ['u'] = {"SETITEMS", read_setitems},
    ['G'] = {"BINFLOAT", read_binfloat},
    ['B'] = {"BINBYTES", read_binbytes},
    ['C'] = {"SHORT_BINBYTES", read_short_binbytes},
    [0x80] = {"PROTO", read_proto},
    [0x81] = {"NEWOBJ", refuse},
    [0x82] = {"EXT1", refuse},
    [0x83] = {"EXT2", refuse},
    [0x84] = {"EXT4", refuse},
    [0x85] = {"TUPLE1", read_tuple1},
    [0x86] = {"TUPLE2", read_tuple2},
    [0x87] = {"TUPLE3", read_tuple3},
    [0x88] = {"NEWTRUE", read_newtrue},
    [0x89] = {"NEWFALSE", read_newfalse},
    [0x8a] = {"LONG1", read_long1},
    [0x8b] = {"LONG4", read_long4},
    [0x8c] = {"SHORT_BINUNICODE", read_short_binunicode},
    [0x8d] = {"BINUNICODE8", read_binunicode8},
    [0x8e] = {"BINBYTES8", read_binbytes8},
    [0x8f] = {"EMPTY_SET", read_empty_set},
    [0x90] = {"ADDITEMS", read_additems},
    [0x91] = {"FROZENSET", read_frozenset},
    [0x92] = {"NEWOBJ_EX", refuse},
    [0x93] = {"STACK_GLOBAL", refuse_stack_global},
    [0x94] = {"MEMOIZE", read_memoize},
    [0x95] = {"FRAME", read_frame},
    [0x96] = {"BYTEARRAY8", read_binbytes8},
    [0x97] = {"NEXT_BUFFER", refuse},
    [0x98] = {"READONLY_BUFFER", refuse},
};

static bool read_opcode(reader *r)
{
    r->opcode_at = r->at;
    r->opcode_name = "end of the file";
    if (r->at == r->size) {
        return FAIL(r, "expected an opcode: the pickle is truncated");
    }
    uint8_t code = r->data[r->at++];
    const opcode *op = &opcodes[code];
    if (!op->name) {
        r->opcode_name = "not a pickle opcode";
        return FAIL(r, "expected one of protocols 0 to %d, found 0x%02x", MAX_PROTOCOL, code);
    }
    r->opcode_name = op->name;
    return op->run(r);
}

/* Bytes of containers and text that one byte of a pickle can cost: an empty container is one
 * opcode, 24 bytes here and 16 in the list that holds it, which may be doubled. */
enum { ARENA_PER_BYTE = 128, ARENA_SPARE = 64 << 10 };

gmd_status gmd_pickle_read(gmd_pickle *pickle, const uint8_t *data, size_t size, const char *name,
                           gmd_error *error)
{
    *pickle = (gmd_pickle){0};
    if (size > UINT32_MAX) {
        return gmd_fail(error, GMD_BAD_INPUT, "%s: %zu bytes: expected less than 4 GiB", name,
                        size);
    }
    reader r = {.data = data, .size = size, .name = name, .error = error, .status = GMD_OK};
    gmd_arena_init(&r.arena, size * ARENA_PER_BYTE + ARENA_SPARE);
    /* The stack is there from the start, so that no pointer into it is ever derived from NULL. */
    bool ok = grow(&r, &r.stack, &r.stack_capacity, 1);
    while (ok && !r.stopped) {
        ok = read_opcode(&r);
    }
    if (r.status == GMD_OK) {
        pickle->root = *top(&r);
        pickle->arena = r.arena;
    } else {
        gmd_arena_free(&r.arena);
    }
    free(r.stack);
    free(r.memo);
    return r.status;
}

void gmd_pickle_free(gmd_pickle *pickle)
{
    gmd_arena_free(&pickle->arena);
    *pickle = (gmd_pickle){0};
}

const char *gmd_pickle_kind_name(gmd_pickle_kind kind)
{
    static const char *const names[] = {
        [GMD_PICKLE_NOTHING] = "nothing",
        [GMD_PICKLE_NONE] = "None",
        [GMD_PICKLE_BOOL] = "a boolean",
        [GMD_PICKLE_NATURAL] = "an integer",
        [GMD_PICKLE_NEGATIVE] = "a negative integer",
        [GMD_PICKLE_FLOAT] = "a float",
        [GMD_PICKLE_STRING] = "a string",
        [GMD_PICKLE_BYTES] = "bytes",
        [GMD_PICKLE_LIST] = "a list",
        [GMD_PICKLE_TUPLE] = "a tuple",
        [GMD_PICKLE_SET] = "a set",
        [GMD_PICKLE_DICT] = "a dict",
    };
    return names[kind];
}
