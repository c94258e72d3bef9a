/* text_parser.c - messages, words and names of a text trace. */
#include "text_parser.h"

#include "gmd_grow.h"
#include "gmd_size.h"
#include "gmd_text.h"
#include "quote.h"

#include <stdarg.h>
#include <string.h>

/* --- messages ---------------------------------------------------------------------------- */

void gmd_text_note_failure(gmd_parser *p, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    p->status = gmd_fail(p->error, GMD_BAD_INPUT, "%s:%u: %s", p->file, p->line, text);
}

void gmd_text_note_unexpected(gmd_parser *p, const char *expected, gmd_token found)
{
    char quoted[GMD_QUOTE_BYTES];
    gmd_text_note_failure(p, "expected %s, found %s", expected,
                          found.length ? gmd_quote(found.text, found.length, quoted)
                                       : "the end of the line");
}

bool gmd_text_fail_memory(gmd_parser *p)
{
    p->status = gmd_fail(p->error, GMD_NO_MEMORY, "%s:%u: no host memory", p->file, p->line);
    return false;
}

bool gmd_text_adopt(gmd_parser *p, gmd_status status)
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

gmd_token gmd_text_next_token(gmd_parser *p)
{
    while (p->at < p->end && gmd_text_is_space(*p->at)) {
        p->at++;
    }
    gmd_token t = {.text = p->at};
    while (p->at < p->end && !gmd_text_is_space(*p->at)) {
        p->at++;
    }
    t.length = (size_t)(p->at - t.text);
    return t;
}

bool gmd_text_token_is(gmd_token t, const char *word)
{
    return t.length == strlen(word) && memcmp(t.text, word, t.length) == 0;
}

bool gmd_text_end_line(gmd_parser *p)
{
    gmd_token t = gmd_text_next_token(p);
    return !t.length || UNEXPECTED(p, "the end of the line", t);
}

bool gmd_text_copy_token(gmd_token t, char *text, size_t size)
{
    if (t.length >= size) {
        return false;
    }
    memcpy(text, t.text, t.length);
    text[t.length] = 0;
    return true;
}

bool gmd_text_take_size(gmd_parser *p, uint64_t *bytes)
{
    char text[64];
    gmd_token t = gmd_text_next_token(p);
    *bytes = 0;
    return (gmd_text_copy_token(t, text, sizeof text) && gmd_parse_size(text, bytes)) ||
           UNEXPECTED(p, "a size such as 512, 20MiB or 1.5GiB", t);
}

bool gmd_text_read_duration(gmd_parser *p, gmd_token t, uint64_t *ns)
{
    char text[64];
    return (gmd_text_copy_token(t, text, sizeof text) && gmd_parse_duration(text, ns)) ||
           UNEXPECTED(p, "a duration such as 500ns, 10us, 2ms or 1s", t);
}

bool gmd_text_take_number(gmd_parser *p, const char *expected, uint64_t least, uint64_t most,
                          uint64_t *number)
{
    char text[64];
    gmd_token t = gmd_text_next_token(p);
    *number = 0;
    return (gmd_text_copy_token(t, text, sizeof text) && gmd_parse_u64(text, number) &&
            *number >= least && *number <= most) ||
           UNEXPECTED(p, expected, t);
}

/* --- names ------------------------------------------------------------------------------- */

static bool add_name(gmd_parser *p, gmd_names *names, gmd_name_table *table, char letter,
                     gmd_token t, uint32_t *index)
{
    char text[GMD_NAME_BYTES];
    bool is_default = gmd_name_is_default(t.text, t.length, letter, names->count);
    gmd_text_copy_token(t, text, sizeof text);
    return gmd_text_adopt(p, gmd_names_add(names, is_default ? NULL : text, index, p->error)) &&
           (gmd_name_table_add(table, t.text, t.length, *index) || gmd_text_fail_memory(p));
}

bool gmd_text_name_index(gmd_parser *p, gmd_names *names, gmd_name_table *table, char letter,
                         uint32_t most, const char *what, gmd_token t, uint32_t *index)
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
        char quoted[GMD_QUOTE_BYTES];
        return FAIL(p, "expected %s: at most %u are possible, found %s as one more", what, most,
                    gmd_quote(t.text, t.length, quoted));
    }
    return add_name(p, names, table, letter, t, index);
}

bool gmd_text_stream_index(gmd_parser *p, gmd_token t, uint32_t *stream)
{
    return gmd_text_name_index(p, &p->trace->streams, &p->streams, 's', GMD_MAX_STREAMS, "a stream",
                               t, stream);
}

bool gmd_text_take_stream(gmd_parser *p, uint32_t *stream)
{
    return gmd_text_stream_index(p, gmd_text_next_token(p), stream);
}

static bool reserve_states(gmd_parser *p)
{
    size_t needed = (size_t)p->trace->blocks.count + 1;
    if (needed <= p->state_capacity) {
        return true;
    }
    size_t before = p->state_capacity;
    if (!GMD_GROW(&p->states, &p->state_capacity, needed)) {
        return gmd_text_fail_memory(p);
    }
    memset(p->states + before, 0, (p->state_capacity - before) * sizeof *p->states);
    return true;
}

bool gmd_text_take_new_block(gmd_parser *p, uint32_t *block)
{
    gmd_token t = gmd_text_next_token(p);
    if (!reserve_states(p) ||
        !gmd_text_name_index(p, &p->trace->blocks, &p->blocks, 'b', (uint32_t)GMD_MAX_TRACE_LEN,
                             "the id of a block", t, block)) {
        return false;
    }
    return !p->states[*block].is_live ||
           UNEXPECTED(p, "the id of a block that is not allocated", t);
}

bool gmd_text_take_live_block(gmd_parser *p, gmd_request *request)
{
    gmd_token t = gmd_text_next_token(p);
    const gmd_name_slot *slot = gmd_name_table_find(&p->blocks, t.text, t.length);
    if (!slot || !p->states[slot->value].is_live) {
        return UNEXPECTED(p, "the id of an allocated block", t);
    }
    request->block = slot->value;
    request->device = p->states[slot->value].device;
    return true;
}

bool gmd_text_take_device_number(gmd_parser *p, uint8_t *device)
{
    uint64_t number = 0;
    uint32_t count =
        p->trace->conditions.device_count ? p->trace->conditions.device_count : GMD_MAX_DEVICES;
    if (!gmd_text_take_number(p, "the number of a device of this trace, from 0", 0, count - 1,
                              &number)) {
        return false;
    }
    *device = (uint8_t)number;
    return gmd_text_end_line(p);
}

bool gmd_text_take_device(gmd_parser *p, uint8_t *device)
{
    gmd_token t = gmd_text_next_token(p);
    if (!t.length) {
        return true;
    }
    return gmd_text_token_is(t, GMD_DEVICE_WORD)
               ? gmd_text_take_device_number(p, device)
               : UNEXPECTED(p, "'device' or the end of the line", t);
}
