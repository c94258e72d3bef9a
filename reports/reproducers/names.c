/* names.c - identifiers and comments out of a case: names.h. */
#include "names.h"

#include "reproducer.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

static bool is_identifier(const char *text)
{
    size_t length = 0;
    while (isalnum((unsigned char)text[length]) || text[length] == '_') {
        length++;
    }
    return length > 0 && length < 40 && !text[length];
}

/* A letter and digits, which no name of C or of a program is but Bessel's functions. */
static bool is_short(const char *text)
{
    bool is_bessels = strchr("jy", text[0]) && (strchr("01n", text[1]) || !text[1]);
    return islower((unsigned char)text[0]) && strspn(text + 1, "0123456789") == strlen(text + 1) &&
           !is_bessels;
}

void name_block(const gmd_trace *trace, uint32_t block, char text[80])
{
    const char *given = block < trace->blocks.count ? trace->blocks.items[block] : NULL;
    if (given && is_short(given) && given[0] != 's') {
        snprintf(text, 80, "%s", given);
    } else if (given && is_identifier(given)) {
        snprintf(text, 80, "block_%s", given);
    } else {
        snprintf(text, 80, "b%" PRIu32, block);
    }
}

void name_stream(const gmd_trace *trace, uint32_t stream, char text[80])
{
    const char *given = stream < trace->streams.count ? trace->streams.items[stream] : NULL;
    if (given && given[0] == 's' && is_short(given)) {
        snprintf(text, 80, "%s", given);
    } else if (given && is_identifier(given)) {
        snprintf(text, 80, "stream_%s", given);
    } else {
        snprintf(text, 80, "s%" PRIu32, stream);
    }
}

char *request_comment(const gmd_trace *trace, const step *first)
{
    char line[400], *text = NULL;
    size_t size;
    bool is_left_out = first->kind == STEP_LEFT_OUT;
    FILE *out = open_memstream(&text, &size);
    if (out) {
        put_comment_text(
            gmd_request_text(trace, &trace->requests[first->request], line, sizeof line), out);
        fputs(is_left_out ? ": CUDA forbids that while a stream is captured" : "", out);
        fclose(out);
    }
    return text;
}
