#include "text_turn.h"

#include "gmd_size.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NAMES_BYTES ((size_t)1 << 30)

/* `%`, `%K` or either with `-`: the number in this turn. False: it is none, or below 0. */
static bool read_number(const text_words *w, const char *text, size_t length, uint64_t *number)
{
    char digits[16] = "0";
    bool falls = length && text[length - 1] == '-';
    length -= falls;
    if (length >= sizeof digits - 4) {
        return false;
    }
    if (length) {
        memcpy(digits, text, length);
        digits[length] = 0;
    }
    if (!gmd_parse_u64(digits, number) || (falls && *number < w->turn)) {
        return false;
    }
    *number = falls ? *number - w->turn : *number + w->turn;
    return true;
}

text_token text_expand(text_words *w, text_token t)
{
    const char *mark = w->is_in_repeat && t.length ? memchr(t.text, '%', t.length) : NULL;
    size_t before = mark ? (size_t)(mark - t.text) : 0;
    uint64_t number;
    if (!mark || before >= GMD_NAME_BYTES ||
        !read_number(w, mark + 1, t.length - before - 1, &number)) {
        return t;
    }
    char *text = w->expanded[w->expanded_count++ % TEXT_EXPANDED];
    int length = snprintf(text, sizeof w->expanded[0], "%.*s%" PRIu64, (int)before, t.text, number);
    return (text_token){.text = text, .length = (size_t)length};
}

const char *text_keep_name(text_words *w, text_token t)
{
    const char *first = w->expanded[0], *last = w->expanded[TEXT_EXPANDED - 1];
    if (t.text < first || t.text >= last + sizeof w->expanded[0]) {
        return t.text;
    }
    if (!w->names.limit) {
        arena_init(&w->names, NAMES_BYTES);
    }
    char *kept = arena_take(&w->names, t.length);
    if (kept) {
        memcpy(kept, t.text, t.length);
    }
    return kept;
}

void text_free_words(text_words *w)
{
    arena_free(&w->names);
}
