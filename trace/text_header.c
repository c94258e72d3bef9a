/* text_header.c - the header lines of a text trace. */
#include "text_parser.h"

#include "gmd_text.h"

static bool once(text_parser *p, bool *seen, const char *what)
{
    if (*seen) {
        return FAIL(p, "expected one line '%s', found a second", what);
    }
    *seen = true;
    return true;
}

bool text_parse_devices(text_parser *p, gmd_request *unused)
{
    (void)unused;
    uint64_t count;
    if (!once(p, &p->has_devices, "devices") ||
        !text_take_number(p, "a number of devices from 1 to 16", 1, GMD_MAX_DEVICES, &count)) {
        return false;
    }
    p->trace->conditions.device_count = (uint32_t)count;
    return text_end_line(p);
}

bool text_parse_capacity(text_parser *p, gmd_request *unused)
{
    (void)unused;
    if (!once(p, &p->has_capacity, "capacity") ||
        !text_take_size(p, &p->trace->conditions.capacity_bytes)) {
        return false;
    }
    return p->trace->conditions.capacity_bytes ? text_end_line(p)
                                               : FAIL(p, "expected a size over 0, found 0");
}

/* All of the line: settings may be separated by ", ". */
bool text_parse_conf(text_parser *p, gmd_request *unused)
{
    (void)unused;
    if (!once(p, &p->has_conf, "conf")) {
        return false;
    }
    const char *start = p->at, *end = p->end;
    while (start < end && text_is_space(*start)) {
        start++;
    }
    while (end > start && text_is_space(end[-1])) {
        end--;
    }
    if (!gmd_conf_is_valid(start, (size_t)(end - start))) {
        return UNEXPECTED(p, "allocator settings, at most 4096 bytes without control characters",
                          ((text_token){start, (size_t)(end - start)}));
    }
    p->trace->conditions.conf = gmd_text_copy(start, (size_t)(end - start));
    return p->trace->conditions.conf || text_fail_memory(p);
}

/* All of the line. */
bool text_parse_placement(text_parser *p, gmd_request *unused)
{
    (void)unused;
    const char *start = p->at;
    p->at = p->end;
    return once(p, &p->has_placement, "placement") &&
           text_adopt(p, gmd_placement_parse(&p->trace->conditions.placement, start,
                                             (size_t)(p->end - start), p->error));
}

bool text_parse_handles(text_parser *p, gmd_request *unused)
{
    (void)unused;
    if (!once(p, &p->has_handles, "handles")) {
        return false;
    }
    text_token t = text_next_token(p);
    p->trace->conditions.reuses_handles = text_token_is(t, "reused");
    if (!p->trace->conditions.reuses_handles && !text_token_is(t, "unique")) {
        return UNEXPECTED(p, "'unique' or 'reused'", t);
    }
    return text_end_line(p);
}

bool text_parse_clock(text_parser *p, gmd_request *unused)
{
    (void)unused;
    if (!once(p, &p->has_clock, "clock")) {
        return false;
    }
    text_token t = text_next_token(p);
    p->trace->conditions.moves_clock = text_token_is(t, "trace");
    if (!p->trace->conditions.moves_clock && !text_token_is(t, "host")) {
        return UNEXPECTED(p, "'host' or 'trace'", t);
    }
    return text_end_line(p);
}

typedef gmd_status schedule_reader(gmd_schedule *schedule, const char *text, size_t length,
                                   gmd_error *error);

/* All of the line. */
static bool take_schedule(text_parser *p, gmd_schedule *schedule, schedule_reader *reader)
{
    const char *start = p->at;
    p->at = p->end;
    return text_adopt(p, reader(schedule, start, (size_t)(p->end - start), p->error));
}

bool text_parse_schedule(text_parser *p, gmd_request *unused)
{
    (void)unused;
    return once(p, &p->has_schedule, "schedule") &&
           take_schedule(p, &p->trace->conditions.schedule, gmd_schedule_parse);
}

bool text_parse_interleave(text_parser *p, gmd_request *unused)
{
    (void)unused;
    return once(p, &p->has_interleave, "interleave") &&
           take_schedule(p, &p->trace->conditions.interleave, gmd_interleave_parse);
}

/* Names all streams in the order of their handles; without it that is the order of first mention.
 */
bool text_parse_streams(text_parser *p, gmd_request *unused)
{
    (void)unused;
    if (!once(p, &p->has_streams, "streams")) {
        return false;
    }
    text_token t = text_next_token(p);
    if (!text_token_is(t, "s0")) {
        return UNEXPECTED(p, "the default stream, s0, as the first", t);
    }
    for (t = text_next_token(p); t.length; t = text_next_token(p)) {
        uint32_t stream, count = p->trace->streams.count;
        if (!text_stream_index(p, t, &stream)) {
            return false;
        }
        if (stream != count) {
            return UNEXPECTED(p, "a stream that is not in the list yet", t);
        }
    }
    return true;
}
