/* pickle_strings.c - opcodes of text and bytes. */
#include "pickle_machine.h"

#include <string.h>

typedef pickle_value value;

static bool push_text(pickle_machine *m, pickle_kind kind, const char *text, size_t length)
{
    return pm_push(m, (value){.kind = kind, .length = (uint32_t)length, .text = text});
}

/* A string whose length stands before it in `width` bytes. The bytes stay where they are. */
static bool read_counted(pickle_machine *m, pickle_kind kind, size_t width)
{
    uint64_t length;
    const uint8_t *bytes;
    if (!pm_take_number(m, width, &length)) {
        return false;
    }
    if (length > m->size - m->at) {
        return PM_CUT_OFF(m, "claims %llu bytes, found %zu before the end of the file",
                          (unsigned long long)length, m->size - m->at);
    }
    if (length > PICKLE_MAX_STRING) {
        return PM_FAIL(m, "%llu bytes: expected at most %d", (unsigned long long)length,
                       PICKLE_MAX_STRING);
    }
    return pm_take(m, (size_t)length, &bytes) &&
           push_text(m, kind, (const char *)bytes, (size_t)length);
}

bool pm_read_short_binunicode(pickle_machine *m)
{
    return read_counted(m, PICKLE_STRING, 1);
}

bool pm_read_binunicode(pickle_machine *m)
{
    return read_counted(m, PICKLE_STRING, 4);
}

bool pm_read_binunicode8(pickle_machine *m)
{
    return read_counted(m, PICKLE_STRING, 8);
}

bool pm_read_short_binbytes(pickle_machine *m)
{
    return read_counted(m, PICKLE_BYTES, 1);
}

bool pm_read_binbytes(pickle_machine *m)
{
    return read_counted(m, PICKLE_BYTES, 4);
}

bool pm_read_binbytes8(pickle_machine *m)
{
    return read_counted(m, PICKLE_BYTES, 8);
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
static char *take_decode_room(pickle_machine *m, size_t length)
{
    if (length > PICKLE_MAX_STRING / 2) {
        pm_fail(m, "%zu bytes: expected at most %d", length, PICKLE_MAX_STRING / 2);
        return NULL;
    }
    return pm_take_memory(m, length * 2 + 1);
}

/* Protocol 0's raw-unicode-escape: latin-1, and \uXXXX or \UXXXXXXXX. */
bool pm_read_unicode(pickle_machine *m)
{
    const char *line;
    size_t length, size = 0;
    char *text = pm_take_line(m, &line, &length) ? take_decode_room(m, length) : NULL;
    if (!text) {
        return false;
    }
    for (size_t i = 0; i < length;) {
        uint32_t point = (uint8_t)line[i++];
        if (point == '\\' && i < length && (line[i] == 'u' || line[i] == 'U')) {
            size_t digits = line[i++] == 'u' ? 4 : 8;
            if (!hex_number(line + i, length - i, digits, &point) || point > 0x10ffff) {
                return pm_fail_number(m, "\\u and 4 or \\U and 8 hexadecimal digits", line, length);
            }
            i += digits;
        }
        size += put_utf8(text + size, point);
    }
    return push_text(m, PICKLE_STRING, text, size);
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
bool pm_read_string(pickle_machine *m)
{
    const char *line;
    size_t length, size = 0;
    char *text = pm_take_line(m, &line, &length) ? take_decode_room(m, length) : NULL;
    if (!text) {
        return false;
    }
    if (length < 2 || (line[0] != '\'' && line[0] != '"') || line[length - 1] != line[0]) {
        return pm_fail_number(m, "a quoted string", line, length);
    }
    for (size_t i = 1; i < length - 1;) {
        char c = line[i++];
        if (c == '\\' && !unescape(line, length - 1, &i, &c)) {
            return pm_fail_number(m, "a string with valid escapes", line, length);
        }
        text[size++] = c;
    }
    return push_text(m, PICKLE_STRING, text, size);
}
