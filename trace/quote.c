#include "quote.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

const char *quote_text(const char *text, size_t length, char out[QUOTE_BYTES])
{
    enum { TAIL = sizeof "...'" };
    size_t at = 0;
    out[at++] = '\'';
    for (size_t i = 0; i < length; i++) {
        if (at + 4 + TAIL > QUOTE_BYTES) {
            memcpy(out + at, "...", 3);
            at += 3;
            break;
        }
        unsigned char c = (unsigned char)text[i];
        if (c >= 0x20 && c < 0x7f) {
            out[at++] = (char)c;
        } else {
            at += (size_t)snprintf(out + at, QUOTE_BYTES - at, "\\x%02x", c);
        }
    }
    out[at++] = '\'';
    out[at] = 0;
    return out;
}

/* Length of the sequence that `lead` starts, with the range of its second byte, which is what rules
 * out overlong forms, surrogates and numbers over U+10FFFF (Unicode 15, table 3-7). 0: no lead
 * byte. */
static size_t sequence_length(unsigned char lead, unsigned char *low, unsigned char *high)
{
    *low = 0x80;
    *high = 0xbf;
    if (lead >= 0xc2 && lead <= 0xdf) {
        return 2;
    }
    if (lead >= 0xe0 && lead <= 0xef) {
        *low = lead == 0xe0 ? 0xa0 : 0x80;
        *high = lead == 0xed ? 0x9f : 0xbf;
        return 3;
    }
    if (lead >= 0xf0 && lead <= 0xf4) {
        *low = lead == 0xf0 ? 0x90 : 0x80;
        *high = lead == 0xf4 ? 0x8f : 0xbf;
        return 4;
    }
    return 0;
}

size_t utf8_prefix(const char *text, size_t length)
{
    const unsigned char *bytes = (const unsigned char *)text;
    size_t at = 0;
    while (at < length) {
        if (bytes[at] && bytes[at] < 0x80) {
            at++;
            continue;
        }
        unsigned char low, high;
        size_t wide = sequence_length(bytes[at], &low, &high);
        if (!wide || wide > length - at || bytes[at + 1] < low || bytes[at + 1] > high) {
            return at;
        }
        for (size_t i = 2; i < wide; i++) {
            if ((bytes[at + i] & 0xc0) != 0x80) {
                return at;
            }
        }
        at += wide;
    }
    return at;
}
