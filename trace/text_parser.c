/* text_parser.c - messages, words and names of a text trace. */
#include "text_parser.h"

#include "gmd_grow.h"
#include "gmd_size.h"
#include "gmd_text.h"
#include "quote.h"

#include <stdarg.h>
#include <string.h>

/* --- messages ---------------------------------------------------------------------------- */

void text_note_failure(text_parser *p, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    p->status = gmd_fail(p->error, GMD_BAD_INPUT, "%s:%u: %s", p->file, p->line, text);
    if (p->words.turn) {
        p->status = gmd_fail(p->error, GMD_BAD_INPUT, "%s:%u: %s (in turn %zu of the repeat)",
                             p->file, p->line, text, p->words.turn + 1);
    }
}

void text_note_unexpected(text_parser *p, const char *expected, text_token found)
{
    char quoted[QUOTE_BYTES];
    text_note_failure(p, "expected %s, found %s", expected,
                      found.length ? quote_text(found.text, found.length, quoted)
                                   : "the end of the line");
}

bool text_fail_memory(text_parser *p)
{
    p->status = gmd_fail(p->error, GMD_NO_MEMORY, "%s:%u: no host memory", p->file, p->line);
    return false;
}

bool text_adopt(text_parser *p, gmd_status status)
{
    if (status == GMD_OK) {
        return true;
    }
    char place[256];
    snprintf(place, sizeof place, "%.200s:%u", p->file, p->line);
    gmd_error_prefix(p->error, place);
    p->status = status;
    return false;
}

/* --- tokens ------------------------------------------------------------------------------ */

text_token text_next_token(text_parser *p)
{
    while (p->at < p->end && text_is_space(*p->at)) {
        p->at++;
    }
    text_token t = {.text = p->at};
    while (p->at < p->end && !text_is_space(*p->at)) {
        p->at++;
    }
    t.length = (size_t)(p->at - t.text);
    return text_expand(&p->words, t);
}

bool text_token_is(text_token t, const char *word)
{
    return t.length == strlen(word) && memcmp(t.text, word, t.length) == 0;
}

bool text_end_line(text_parser *p)
{
    text_token t = text_next_token(p);
    return !t.length || UNEXPECTED(p, "the end of the line", t);
}

bool text_copy_token(text_token t, char *text, size_t size)
{
    if (t.length >= size) {
        return false;
    }
    memcpy(text, t.text, t.length);
    text[t.length] = 0;
    return true;
}

bool text_take_size(text_parser *p, uint64_t *bytes)
{
    char text[64];
    text_token t = text_next_token(p);
    *bytes = 0;
    return (text_copy_token(t, text, sizeof text) && gmd_parse_size(text, bytes)) ||
           UNEXPECTED(p, "a size such as 512, 20MiB or 1.5GiB", t);
}

bool text_read_duration(text_parser *p, text_token t, uint64_t *ns)
{
    char text[64];
    return (text_copy_token(t, text, sizeof text) && gmd_parse_duration(text, ns)) ||
           UNEXPECTED(p, "a duration such as 500ns, 10us, 2ms or 1s", t);
}

bool text_take_number(text_parser *p, const char *expected, uint64_t least, uint64_t most,
                      uint64_t *number)
{
    char text[64];
    text_token t = text_next_token(p);
    *number = 0;
    return (text_copy_token(t, text, sizeof text) && gmd_parse_u64(text, number) &&
            *number >= least && *number <= most) ||
           UNEXPECTED(p, expected, t);
}

/* --- names ------------------------------------------------------------------------------- */

static bool add_name(text_parser *p, gmd_names *names, gmd_name_table *table, char letter,
                     text_token t, uint32_t *index)
{
    char text[GMD_NAME_BYTES];
    bool is_default = gmd_name_is_default(t.text, t.length, letter, names->count);
    text_copy_token(t, text, sizeof text);
    if (!text_adopt(p, gmd_names_add(names, is_default ? NULL : text, index, p->error))) {
        return false;
    }
    const char *kept = text_keep_name(&p->words, t);
    return (kept && gmd_name_table_add(table, kept, t.length, *index)) || text_fail_memory(p);
}

bool text_name_index(text_parser *p, gmd_names *names, gmd_name_table *table, char letter,
                     uint32_t most, const char *what, text_token t, uint32_t *index)
{
    const gmd_name_slot *slot = gmd_name_table_find(table, t.text, t.length);
    if (slot) {
        *index = slot->value;
        return true;
    }
    *index = 0;
    if (!gmd_name_is_valid(t.text, t.length)) {
        return UNEXPECTED(p, what, t);
    }
    if (names->count >= most) {
        char quoted[QUOTE_BYTES];
        return FAIL(p, "expected %s: at most %u are possible, found %s as one more", what, most,
                    quote_text(t.text, t.length, quoted));
    }
    return add_name(p, names, table, letter, t, index);
}

bool text_stream_index(text_parser *p, text_token t, uint32_t *stream)
{
    return text_name_index(p, &p->trace->streams, &p->streams, 's', GMD_MAX_STREAMS,
                           "a stream such as s1", t, stream);
}

bool text_take_stream(text_parser *p, uint32_t *stream)
{
    return text_stream_index(p, text_next_token(p), stream);
}

static bool reserve_states(text_parser *p)
{
    size_t needed = (size_t)p->trace->blocks.count + 1;
    if (needed <= p->state_capacity) {
        return true;
    }
    size_t before = p->state_capacity;
    if (!GMD_GROW(&p->states, &p->state_capacity, needed)) {
        return text_fail_memory(p);
    }
    memset(p->states + before, 0, (p->state_capacity - before) * sizeof *p->states);
    return true;
}

bool text_take_new_block(text_parser *p, uint32_t *block)
{
    text_token t = text_next_token(p);
    if (!reserve_states(p) ||
        !text_name_index(p, &p->trace->blocks, &p->blocks, 'b', (uint32_t)GMD_MAX_TRACE_LEN,
                         "the id of a block", t, block)) {
        return false;
    }
    return !p->states[*block].is_live ||
           UNEXPECTED(p, "the id of a block that is not allocated", t);
}

bool text_take_live_block(text_parser *p, gmd_request *request)
{
    text_token t = text_next_token(p);
    const gmd_name_slot *slot = gmd_name_table_find(&p->blocks, t.text, t.length);
    if (!slot || !p->states[slot->value].is_live) {
        return UNEXPECTED(p, "the id of an allocated block", t);
    }
    request->block = slot->value;
    request->device = p->states[slot->value].device;
    return true;
}

bool text_take_device_number(text_parser *p, uint8_t *device)
{
    uint64_t number = 0;
    uint32_t count =
        p->trace->conditions.device_count ? p->trace->conditions.device_count : GMD_MAX_DEVICES;
    if (!text_take_number(p, "the number of a device of this trace, from 0", 0, count - 1,
                          &number)) {
        return false;
    }
    *device = (uint8_t)number;
    return text_end_line(p);
}

bool text_take_device(text_parser *p, uint8_t *device)
{
    text_token t = text_next_token(p);
    if (!t.length) {
        return true;
    }
    return text_token_is(t, GMD_DEVICE_WORD) ? text_take_device_number(p, device)
                                             : UNEXPECTED(p, "'device' or the end of the line", t);
}
