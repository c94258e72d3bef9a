#include "gmd_placement.h"

#include "gmd_size.h"
#include "quote.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool is_space(char c)
{
    return c == ' ' || c == '\t';
}

/* "seed" and a number, with spaces between them. */
static bool read_seed(const char *text, uint64_t *seed)
{
    static const char word[] = "seed";
    const char *after = text + strlen(word);
    return strncmp(text, word, strlen(word)) == 0 && is_space(*after) &&
           gmd_parse_u64(after + strspn(after, " \t"), seed);
}

gmd_status gmd_placement_parse(gmd_placement *placement, const char *text, size_t length,
                               gmd_error *error)
{
    char copy[64], quoted[QUOTE_BYTES];
    *placement = (gmd_placement){0};
    for (; length && is_space(*text); length--) {
        text++;
    }
    while (length && is_space(text[length - 1])) {
        length--;
    }
    bool fits = length < sizeof copy && !memchr(text, '\0', length);
    snprintf(copy, sizeof copy, "%.*s", fits ? (int)length : 0, text);
    if (strcmp(copy, "rising") == 0) {
        placement->kind = GMD_PLACEMENT_RISING;
    } else if (read_seed(copy, &placement->seed)) {
        placement->kind = GMD_PLACEMENT_SEEDED;
    } else {
        return gmd_fail(error, GMD_BAD_INPUT, "expected 'rising' or 'seed N', found %s",
                        length ? quote_text(text, length, quoted) : "the end of the line");
    }
    return GMD_OK;
}

const char *gmd_placement_write(const gmd_placement *placement, char text[GMD_PLACEMENT_TEXT])
{
    text[0] = '\0';
    if (placement->kind == GMD_PLACEMENT_RISING) {
        snprintf(text, GMD_PLACEMENT_TEXT, "rising");
    } else if (placement->kind == GMD_PLACEMENT_SEEDED) {
        snprintf(text, GMD_PLACEMENT_TEXT, "seed %" PRIu64, placement->seed);
    }
    return text;
}
