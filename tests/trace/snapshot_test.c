#include "snapshot_test.h"

#include <stdio.h>
#include <string.h>

pickle_text *start_snapshot(const char *opcodes)
{
    static pickle_text text; /* one test at a time */
    text.size = 0;
    put(&text, opcodes);
    return &text;
}

void put_event(pickle_text *p, const char *action, uint64_t address, uint64_t size, uint64_t stream,
               uint64_t time_us)
{
    put(p, "}(");
    put_string_entry(p, "action", action);
    put_number_entry(p, strcmp(action, "oom") == 0 ? "device_free" : "addr", address);
    put_number_entry(p, "size", size);
    put_number_entry(p, "stream", stream);
    put_number_entry(p, "time_us", time_us);
    put(p, "u");
}

void put_block(pickle_text *p, uint64_t address, uint64_t size, const char *state)
{
    put(p, "}(");
    put_number_entry(p, "address", address);
    put_number_entry(p, "size", size);
    put_number_entry(p, "requested_size", size / 2);
    put_string_entry(p, "state", state);
    put(p, "u");
}

/* A segment up to its list of blocks, which the caller puts and ends with "eu". */
void open_segment(pickle_text *p, uint64_t address, uint64_t size)
{
    put(p, "}(");
    put_number_entry(p, "device", 0);
    put_number_entry(p, "address", address);
    put_number_entry(p, "total_size", size);
    put_number_entry(p, "allocated_size", size / 4);
    put_number_entry(p, "active_size", size / 2);
    put_number_entry(p, "requested_size", size / 8);
    put_number_entry(p, "stream", 7);
    put_string_entry(p, "segment_type", "large");
    put_string(p, "segment_pool_id");
    put(p, "(K\x01K\x02t");
    put_string(p, "is_expandable");
    put(p, "\x88");
    put_string(p, "blocks");
    put(p, "](");
}

void put_empty_segments(pickle_text *p)
{
    put_string(p, "segments");
    put(p, "]");
}

void open_traces(pickle_text *p)
{
    put_empty_segments(p);
    put_string(p, "device_traces");
    put(p, "](");
}

/* A snapshot of one device up to its events, which the caller puts and ends with "eeu.". */
pickle_text *start_events(void)
{
    pickle_text *p = start_snapshot("}(");
    open_traces(p);
    put(p, "](");
    return p;
}

/* A snapshot of segments only, which the caller puts and ends with "eu.". */
pickle_text *start_segments(void)
{
    pickle_text *p = start_snapshot("}(");
    put_string(p, "segments");
    put(p, "](");
    return p;
}

gmd_snapshot parse_snapshot(const pickle_text *p)
{
    gmd_snapshot snapshot;
    gmd_error error = {""};
    if (gmd_snapshot_parse(&snapshot, p->data, p->size, "x", &error) != GMD_OK) {
        fail_msg("%s", error.text);
    }
    return snapshot;
}

void assert_snapshot_empty(const gmd_snapshot *s)
{
    assert_true(!s->events && !s->segments && !s->blocks && !s->conf);
    assert_int_equal(s->event_count + s->segment_count + s->block_count + s->device_count, 0);
}

void assert_snapshot_refused(const pickle_text *p, const char *part)
{
    gmd_snapshot snapshot;
    gmd_error error = {""};
    assert_int_equal(gmd_snapshot_parse(&snapshot, p->data, p->size, "x", &error), GMD_BAD_INPUT);
    assert_snapshot_empty(&snapshot);
    assert_contains(error.text, ": byte ");
    assert_contains(error.text, part);
}
