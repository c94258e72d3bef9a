/* text_fields.c - the fields of a request in a text trace, each kind of gmd_field read by itself.
 */
#include "text_parser.h"

#include "gmd_text.h"

#include <stdlib.h>
#include <string.h>

static bool take_own_stream(text_parser *p, gmd_request *r)
{
    text_token t = text_next_token(p);
    return text_token_is(t, "s0") ? UNEXPECTED(p, "a stream other than the default one", t)
                                  : text_stream_index(p, t, &r->stream);
}

/* No name has this sign. */
static bool is_pool_option(text_token t)
{
    return t.length && t.text[0] == '+';
}

/* Nothing, or what begins the field that follows: all streams. */
static bool take_stream_or_all(text_parser *p, gmd_request *r)
{
    const char *before = p->at;
    text_token t = text_next_token(p);
    r->stream = GMD_ALL_STREAMS;
    if (text_token_is(t, GMD_DEVICE_WORD) || is_pool_option(t)) {
        p->at = before;
        return true;
    }
    return !t.length || text_stream_index(p, t, &r->stream);
}

static bool take_pool(text_parser *p, gmd_request *r)
{
    return text_name_index(p, &p->trace->pools, &p->pools, 'p', GMD_MAX_POOLS, "a pool",
                           text_next_token(p), &r->pool);
}

/* What a function is called says which one it is: unlike other names, "f0" is kept, too. */
static bool take_function(text_parser *p, gmd_request *r)
{
    return text_name_index(p, &p->trace->functions, &p->functions, '\0',
                           (uint32_t)GMD_MAX_TRACE_LEN, "the name of a CUDA function",
                           text_next_token(p), &r->function);
}

static bool take_counting_number(text_parser *p, const char *expected, uint32_t *number)
{
    uint64_t taken;
    bool is_one = text_take_number(p, expected, 1, UINT32_MAX, &taken);
    *number = (uint32_t)taken;
    return is_one;
}

static bool take_every(text_parser *p, gmd_request *r)
{
    text_token t = text_next_token(p);
    r->every_later = text_token_is(t, "every");
    return !t.length || r->every_later || UNEXPECTED(p, "'every' or the end of the line", t);
}

static int pool_option_bit(text_token t)
{
    for (int i = 0; i < GMD_POOL_OPTION_COUNT; i++) {
        const text_token word = {t.text + 1, t.length - 1};
        if (text_token_is(word, gmd_pool_option_words[i])) {
            return 1 << i;
        }
    }
    return 0;
}

/* Each at most once, in any order. */
static bool take_pool_options(text_parser *p, gmd_request *r)
{
    for (;;) {
        const char *before = p->at;
        text_token t = text_next_token(p);
        if (!is_pool_option(t)) {
            p->at = before;
            return true;
        }
        int bit = pool_option_bit(t);
        if (!bit || r->pool_options & bit) {
            return UNEXPECTED(p, "'+no_split', '+use_on_oom' or '+own_memory', each once", t);
        }
        r->pool_options |= (uint8_t)bit;
    }
}

static bool take_bytes_or_none(text_parser *p, gmd_request *r)
{
    const char *before = p->at;
    if (text_token_is(text_next_token(p), "none")) {
        r->bytes = GMD_NO_BUDGET;
        return true;
    }
    p->at = before;
    return text_take_size(p, &r->bytes);
}

static bool take_work_duration(text_parser *p, gmd_request *r)
{
    text_token t = text_next_token(p);
    r->duration_ns = GMD_USUAL_WORK_NS;
    return !t.length || text_read_duration(p, t, &r->duration_ns);
}

static bool take_fraction(text_parser *p, gmd_request *r)
{
    char text[64], *end = text;
    text_token t = text_next_token(p);
    bool is_number = t.length && text_copy_token(t, text, sizeof text) &&
                     strspn(text, "0123456789.eE+-") == t.length && text[0] != '-' &&
                     text[0] != '+';
    double fraction = is_number ? strtod(text, &end) : 0;
    if (!is_number || end != text + t.length || !(fraction >= 0 && fraction <= 1)) {
        return UNEXPECTED(p, "a fraction from 0 to 1", t);
    }
    r->fraction = fraction;
    return true;
}

bool text_take_field(text_parser *p, gmd_field field, gmd_request *r)
{
    switch (field) {
    case GMD_FIELD_NEW_BLOCK:
        return text_take_new_block(p, &r->block);
    case GMD_FIELD_BLOCK:
        return text_take_live_block(p, r);
    case GMD_FIELD_STREAM:
        return text_take_stream(p, &r->stream);
    case GMD_FIELD_OWN_STREAM:
        return take_own_stream(p, r);
    case GMD_FIELD_STREAM_OR_ALL:
        return take_stream_or_all(p, r);
    case GMD_FIELD_OTHER_STREAM:
        return text_take_stream(p, &r->other_stream);
    case GMD_FIELD_POOL:
        return take_pool(p, r);
    case GMD_FIELD_FUNCTION:
        return take_function(p, r);
    case GMD_FIELD_COUNT:
        return take_counting_number(p, "which call fails, from 1", &r->count);
    case GMD_FIELD_ERROR:
        return take_counting_number(p, "an error code from 1", &r->error);
    case GMD_FIELD_EVERY:
        return take_every(p, r);
    case GMD_FIELD_POOL_OPTIONS:
        return take_pool_options(p, r);
    case GMD_FIELD_BYTES:
        return text_take_size(p, &r->bytes);
    case GMD_FIELD_BYTES_OR_NONE:
        return take_bytes_or_none(p, r);
    case GMD_FIELD_DURATION:
        return text_read_duration(p, text_next_token(p), &r->duration_ns);
    case GMD_FIELD_WORK_DURATION:
        return take_work_duration(p, r);
    case GMD_FIELD_FRACTION:
        return take_fraction(p, r);
    case GMD_FIELD_DEVICE:
        return text_take_device(p, &r->device);
    case GMD_FIELD_DEVICE_NUMBER:
        return text_take_device_number(p, &r->device);
    case GMD_FIELD_NONE:
    case GMD_FIELD_EXPECT: /* comes before the word of the request */
    case GMD_FIELD_KINDS:
        break;
    }
    return true;
}
