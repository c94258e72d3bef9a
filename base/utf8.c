#include "gmd_utf8.h"

#include <stdbool.h>
#include <stddef.h>

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

void gmd_utf8_put(uint32_t character, FILE *out)
{
    int trailing = character < 0x80 ? 0 : character < 0x800 ? 1 : character < 0x10000 ? 2 : 3;
    putc((int)(utf8_forms[trailing].lead | character >> (6 * trailing)), out);
    while (trailing-- > 0) {
        putc((int)(0x80 | (character >> (6 * trailing) & 0x3F)), out);
    }
}
