#include "gmd_utf8.h"

#include <string.h>

static const struct {
    unsigned char mask, lead;
    int trailing;
    uint32_t smallest; /* a lower value in this form is overlong */
} utf8_forms[] = {
    {0x80, 0x00, 0, 0x00}, {0xE0, 0xC0, 1, 0x80}, {0xF0, 0xE0, 2, 0x800}, {0xF8, 0xF0, 3, 0x10000}};

static bool is_scalar_value(uint32_t character)
{
    return character <= 0x10FFFF && (character < 0xD800 || character > 0xDFFF);
}

uint32_t gmd_utf8_next(const char **text)
{
    const unsigned char *at = (const unsigned char *)*text;
    if (!*at) {
        return 0;
    }
    *text += 1;
    for (size_t i = 0; i < sizeof utf8_forms / sizeof *utf8_forms; i++) {
        if ((*at & utf8_forms[i].mask) != utf8_forms[i].lead) {
            continue;
        }
        uint32_t character = *at & (unsigned char)~utf8_forms[i].mask;
        int trailing = utf8_forms[i].trailing;
        for (int k = 1; k <= trailing; k++) {
            if ((at[k] & 0xC0) != 0x80) { /* the terminator ends it here too */
                return GMD_REPLACEMENT_CHARACTER;
            }
            character = character << 6 | (at[k] & 0x3F);
        }
        if (character < utf8_forms[i].smallest || !is_scalar_value(character)) {
            return GMD_REPLACEMENT_CHARACTER;
        }
        *text += trailing;
        return character;
    }
    return GMD_REPLACEMENT_CHARACTER;
}

/* `bytes` has room for four. */
static size_t encode(uint32_t character, char *bytes)
{
    int trailing = character < 0x80 ? 0 : character < 0x800 ? 1 : character < 0x10000 ? 2 : 3;
    size_t length = 0;
    bytes[length++] = (char)(utf8_forms[trailing].lead | character >> (6 * trailing));
    while (trailing-- > 0) {
        bytes[length++] = (char)(0x80 | (character >> (6 * trailing) & 0x3F));
    }
    return length;
}

void gmd_utf8_put(uint32_t character, FILE *out)
{
    char bytes[4];
    fwrite(bytes, 1, encode(character, bytes), out);
}

bool gmd_utf8_is_control(uint32_t c)
{
    static const struct {
        uint32_t first, last;
    } controls[] = {{0x00, 0x1F},     {0x7F, 0x9F},     {0x61C, 0x61C},  {0x200E, 0x200F},
                    {0x2028, 0x2029}, {0x202A, 0x202E}, {0x2066, 0x2069}};
    bool is_control = false;
    for (size_t i = 0; i < sizeof controls / sizeof *controls; i++) {
        is_control = is_control || (c >= controls[i].first && c <= controls[i].last);
    }
    return is_control;
}

void gmd_utf8_put_line(const char *text, FILE *out)
{
    for (uint32_t c = gmd_utf8_next(&text); c; c = gmd_utf8_next(&text)) {
        gmd_utf8_put(gmd_utf8_is_control(c) ? ' ' : c, out);
    }
}

void gmd_utf8_copy_line(char *to, size_t size, const char *from)
{
    size_t used = 0;
    for (uint32_t c = gmd_utf8_next(&from); c; c = gmd_utf8_next(&from)) {
        char bytes[4];
        size_t length = encode(gmd_utf8_is_control(c) ? ' ' : c, bytes);
        if (used + length >= size) {
            break;
        }
        memcpy(to + used, bytes, length);
        used += length;
    }
    to[used] = '\0';
}

static size_t encoded_length(const char *text)
{
    char bytes[4];
    size_t length = 0;
    for (uint32_t c = gmd_utf8_next(&text); c; c = gmd_utf8_next(&text)) {
        length += encode(c, bytes);
    }
    return length;
}

/* As many characters as fit; how many bytes. */
static size_t copy_fitting(char *to, size_t room, const char **from)
{
    size_t used = 0;
    for (const char *next = *from; *next;) {
        char bytes[4];
        size_t length = encode(gmd_utf8_next(&next), bytes);
        if (used + length > room) {
            break;
        }
        memcpy(to + used, bytes, length);
        used += length;
        *from = next;
    }
    return used;
}

/* The last characters of the text that fit. */
static const char *tail_of(const char *text, size_t room)
{
    char bytes[4];
    size_t left = encoded_length(text);
    while (left > room) {
        left -= encode(gmd_utf8_next(&text), bytes);
    }
    return text;
}

void gmd_utf8_copy_short(char *to, size_t size, const char *from)
{
    static const char ellipsis[] = "\xE2\x80\xA6";
    bool is_whole = encoded_length(from) < size;
    size_t room = size - sizeof ellipsis;
    size_t used = copy_fitting(to, is_whole ? size - 1 : room / 3, &from);
    if (!is_whole) {
        memcpy(to + used, ellipsis, sizeof ellipsis - 1);
        used += sizeof ellipsis - 1;
        from = tail_of(from, room - room / 3);
        used += copy_fitting(to + used, room - room / 3, &from);
    }
    to[used] = '\0';
}
