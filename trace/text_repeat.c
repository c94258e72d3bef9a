/* text_repeat.c - `repeat N {` ... `}`: the lines between are read again for each turn. */
#include "text_parser.h"

#include "gmd_repeats.h"

bool text_parse_repeat(text_parser *p, gmd_request *unused)
{
    (void)unused;
    uint64_t turns;
    if (p->repeat.body) {
        return FAIL(p, "a repeat within the repeat of line %u: expected none", p->repeat.line);
    }
    if (!text_take_number(p, "how often, from 1 to 1048576", 1, GMD_REPEAT_LINES, &turns)) {
        return false;
    }
    text_token brace = text_next_token(p);
    if (!text_token_is(brace, "{")) {
        return UNEXPECTED(p, "'{' at the end of the line", brace);
    }
    if (!text_end_line(p)) {
        return false;
    }
    p->repeat = (text_repeat){.body = p->next, .line = p->line, .turns = (size_t)turns};
    p->words.is_in_repeat = true;
    return true;
}

/* What a few lines can ask for is bounded, as the rest is by the size of the text. */
static bool note_repeated(text_parser *p)
{
    size_t lines = p->line - p->repeat.line - 1, bytes = (size_t)(p->start - p->repeat.body);
    size_t turns = p->repeat.turns;
    p->repeated_lines += lines * turns;
    p->repeated_bytes += bytes * turns;
    return (p->repeated_lines <= GMD_REPEAT_LINES && p->repeated_bytes <= GMD_REPEAT_BYTES) ||
           FAIL(p,
                "the repeats up to that of line %u stand for %zu lines and %zu bytes: expected at "
                "most %d and %d",
                p->repeat.line, p->repeated_lines, p->repeated_bytes, GMD_REPEAT_LINES,
                GMD_REPEAT_BYTES);
}

bool text_parse_repeat_end(text_parser *p, gmd_request *unused)
{
    (void)unused;
    if (!p->repeat.body) {
        return FAIL(p, "expected a 'repeat' before this '}'");
    }
    if (!text_end_line(p) || (p->words.turn == 0 && !note_repeated(p))) {
        return false;
    }
    if (++p->words.turn < p->repeat.turns) {
        p->next = p->repeat.body;
        p->line = p->repeat.line;
    } else {
        p->repeat = (text_repeat){.body = NULL};
        p->words.is_in_repeat = false;
        p->words.turn = 0;
    }
    return true;
}

bool text_repeat_is_over(text_parser *p)
{
    return !p->repeat.body ||
           FAIL(p, "expected '}', which ends the repeat of line %u, before the end of the text",
                p->repeat.line);
}
