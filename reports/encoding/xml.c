#include "gmd_xml.h"

#include "gmd_report_text.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>

/* XML 1.0 has no way at all to write the other control characters and U+FFFE, U+FFFF. */
static bool is_xml_character(uint32_t c)
{
    return c == '\t' || c == '\n' || c == '\r' || (c >= 0x20 && c != 0xFFFE && c != 0xFFFF);
}

void gmd_put_xml(const char *text, FILE *out)
{
    for (uint32_t c = gmd_utf8_next(&text); c; c = gmd_utf8_next(&text)) {
        switch (c) {
        case '&':
            fputs("&amp;", out);
            break;
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '"':
            fputs("&quot;", out);
            break;
        case '\t':
        case '\n':
        case '\r': /* literal ones would be turned into spaces in an attribute */
            fprintf(out, "&#%" PRIu32 ";", c);
            break;
        default:
            if (is_xml_character(c)) {
                gmd_utf8_put(c, out);
            }
        }
    }
}

void gmd_put_attribute(const char *name, const char *value, FILE *out)
{
    fprintf(out, " %s=\"", name);
    gmd_put_xml(value, out);
    putc('"', out);
}
