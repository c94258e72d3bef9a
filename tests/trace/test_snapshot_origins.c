/* Where events, segments and blocks come from, and what the program noted. */
#include "pickle_literal.h"
#include "snapshot_test.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static gmd_snapshot seen;

static int free_seen(void **state)
{
    (void)state;
    gmd_snapshot_free(&seen);
    return 0;
}

FIXTURE(origins, NULL, free_seen);

static pickle_text *literal(const char *text)
{
    pickle_text *p = start_snapshot("");
    put_literal(p, text);
    put(p, ".");
    return p;
}

static void see(const char *text)
{
    seen = parse_snapshot(literal(text));
}

static void assert_wrong(const char *text, const char *part)
{
    assert_snapshot_refused(literal(text), part);
}

/* "inner.py:1 f|outer.py:2 g": the stack of an origin. */
static const char *stack_of(uint32_t origin)
{
    static char text[256];
    size_t count, at = 0;
    const uint32_t *frames =
        gmd_origins_stack(&seen.origins, gmd_origins_get(&seen.origins, origin).stack, &count);
    text[0] = 0;
    for (size_t i = 0; i < count; i++) {
        gmd_frame f = gmd_origins_frame(&seen.origins, frames[i]);
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s:%u %s", i ? "|" : "",
                               gmd_origins_text(&seen.origins, f.file, NULL), f.line,
                               gmd_origins_text(&seen.origins, f.function, NULL));
    }
    return text;
}

static const char *metadata_of(size_t event)
{
    gmd_origin o = gmd_origins_get(&seen.origins, seen.events[event].origin);
    return gmd_origins_text(&seen.origins, o.metadata, NULL);
}

static const char *compile_context_of(size_t event)
{
    gmd_origin o = gmd_origins_get(&seen.origins, seen.events[event].origin);
    return gmd_origins_text(&seen.origins, o.compile_context, NULL);
}

#define EVENT       "'action': 'alloc', 'addr': 4096, 'size': 512, 'stream': 0, 'time_us': 1"
#define FRAME(n)    "{'name': 'f" #n "', 'filename': 'a.py', 'line': " #n "}"
#define TRACE(text) "{'segments': [], 'device_traces': [[" text "]]}"
#define SEGMENT                                                                                    \
    "'device': 0, 'address': 4096, 'total_size': 4096, 'allocated_size': 0, 'active_size': 0, "    \
    "'stream': 0, 'segment_type': 'small'"

/* --- frames ------------------------------------------------------------------------------ */

TEST_F(origins, the_frames_of_an_event_are_kept_innermost_first)
{
    see(TRACE("{" EVENT ", 'frames': [{'name': 'forward', 'filename': 'model.py', 'line': 12}, "
              "{'name': '<module>', 'filename': 'train.py', 'line': 40}]}"));
    assert_string_equal(stack_of(seen.events[0].origin),
                        "model.py:12 forward|train.py:40 <module>");
}

TEST_F(origins, an_event_without_frames_has_none)
{
    see(TRACE("{" EVENT "}, {" EVENT ", 'frames': []}, {" EVENT ", 'frames': None}"));
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(seen.events[i].origin, 0);
    }
}

TEST_F(origins, segments_and_blocks_have_frames_too)
{
    see("{'segments': [{" SEGMENT ", 'frames': [" FRAME(
        1) "], 'blocks': ["
           "{'address': 4096, 'size': 512, 'state': 'active_allocated', 'frames': [" FRAME(
               2) "]}, "
                  "{'address': 4608, 'size': 3584, 'state': 'inactive', 'frames': []}]}]}");
    assert_string_equal(stack_of(seen.segments[0].origin), "a.py:1 f1");
    assert_string_equal(stack_of(seen.blocks[0].origin), "a.py:2 f2");
    assert_int_equal(seen.blocks[1].origin, 0);
}

TEST_F(origins, a_list_that_events_blocks_and_segments_share_is_one_stack)
{
    see("{'segments': [{" SEGMENT ", 'frames': &1 [" FRAME(
        1) "], 'blocks': ["
           "{'address': 4096, 'size': 4096, 'state': 'active_allocated', 'frames': *1}]}], "
           "'device_traces': [[{" EVENT ", 'frames': *1}, {" EVENT
           ", 'frames': &2 [" FRAME(2) "]}, "
                                       "{" EVENT ", 'frames': *2}]]}");
    assert_string_equal(stack_of(seen.events[0].origin), "a.py:1 f1");
    assert_int_equal(seen.events[0].origin, seen.segments[0].origin);
    assert_int_equal(seen.events[0].origin, seen.blocks[0].origin);
    assert_string_equal(stack_of(seen.events[2].origin), "a.py:2 f2");
    assert_int_equal(seen.events[1].origin, seen.events[2].origin);
}

TEST_F(origins, equal_lists_of_shared_and_of_equal_frames_are_one_stack)
{
    see(TRACE("{" EVENT ", 'frames': [&1 " FRAME(1) ", &2 " FRAME(
        2) "]}, "
           "{" EVENT ", 'frames': [*1, *2]}, "
           "{" EVENT ", 'frames': [" FRAME(1) ", " FRAME(2) "]}, "
                                                            "{" EVENT ", 'frames': [*2, *1]}"));
    assert_int_equal(seen.events[1].origin, seen.events[0].origin);
    assert_int_equal(seen.events[2].origin, seen.events[0].origin);
    assert_string_equal(stack_of(seen.events[3].origin), "a.py:2 f2|a.py:1 f1");
    assert_int_equal(gmd_origins_stack_count(&seen.origins), 3);
}

TEST_F(origins, what_a_frame_does_not_say_is_not_known)
{
    see(TRACE("{" EVENT ", 'frames': [{'filename': 'a.py', 'line': -1}, {'name': 'f'}, "
              "{'name': 7, 'filename': None, 'line': 'x'}, {}]}"));
    assert_string_equal(stack_of(seen.events[0].origin), "a.py:0 |:0 f|:0 |:0 ");
}

TEST_F(origins, frames_may_be_a_tuple)
{
    see(TRACE("{" EVENT ", 'frames': (" FRAME(1) ", {'name': 'f'})}"));
    assert_string_equal(stack_of(seen.events[0].origin), "a.py:1 f1|:0 f");
}

TEST_F(origins, devices_keep_their_origins_when_they_are_merged)
{
    see("{'segments': [], 'device_traces': ["
        "[{'action': 'alloc', 'addr': 1, 'size': 1, 'stream': 0, 'time_us': 2, "
        "'frames': [" FRAME(
            1) "]}], [], "
               "[{'action': 'alloc', 'addr': 2, 'size': 1, 'stream': 0, 'time_us': 1, "
               "'frames': [" FRAME(2) "]}]]}");
    assert_int_equal(seen.device_count, 3);
    assert_int_equal(seen.events[0].device, 2);
    assert_string_equal(stack_of(seen.events[0].origin), "a.py:2 f2");
    assert_int_equal(seen.events[1].device, 0);
    assert_string_equal(stack_of(seen.events[1].origin), "a.py:1 f1");
}

/* --- what the program noted -------------------------------------------------------------- */

TEST_F(origins, user_metadata_is_kept)
{
    see(TRACE("{" EVENT ", 'user_metadata': 'step 3'}, {" EVENT ", 'user_metadata': ''}"));
    assert_string_equal(metadata_of(0), "step 3");
    assert_int_equal(seen.events[1].origin, 0);
}

TEST_F(origins, user_metadata_that_is_no_text_counts_as_none)
{
    see(TRACE("{" EVENT ", 'user_metadata': 7}, {" EVENT ", 'user_metadata': None}, "
              "{" EVENT ", 'user_metadata': {'action': [1, 2]}}, "
              "{" EVENT ", 'user_metadata': [{" EVENT "}]}"));
    assert_int_equal(seen.event_count, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(seen.events[i].origin, 0);
    }
}

TEST_F(origins, a_compile_context_is_kept_and_not_available_is_none)
{
    see(TRACE("{" EVENT ", 'compile_context': '0/1'}, {" EVENT ", 'compile_context': 'N/A'}"));
    assert_string_equal(compile_context_of(0), "0/1");
    assert_int_equal(seen.events[1].origin, 0);
}

TEST_F(origins, what_differs_in_one_of_them_is_another_origin)
{
    see(TRACE("{" EVENT ", 'frames': [" FRAME(
        1) "], 'user_metadata': 'a'}, "
           "{" EVENT ", 'frames': [" FRAME(1) "], 'user_metadata': 'b'}, "
                                              "{" EVENT
                                              ", 'frames': [" FRAME(1) "], 'user_metadata': 'a'}"));
    assert_int_not_equal(seen.events[1].origin, seen.events[0].origin);
    assert_int_equal(seen.events[2].origin, seen.events[0].origin);
}

/* A text is looked at once however often it is referred to: 4 GB otherwise. */
TEST_F(origins, a_long_text_may_be_referred_to_from_every_event)
{
    enum { TEXT = 1 << 18, EVENTS = 1 << 14 };
    pickle_text *p = literal("{'segments': [], 'device_traces': [&9 []]}");
    static const char head[] = "}(X\x08\0\0\0segments]X\x0d\0\0\0device_traces](](";
    size_t size = 0, room = TEXT + (size_t)EVENTS * 128;
    uint8_t *data = malloc(room);
    assert_non_null(data);
    memcpy(data, head, sizeof head - 1);
    size += sizeof head - 1;
    for (size_t i = 0; i < EVENTS; i++) {
        p->size = 0;
        put(p, "}(");
        put_string_entry(p, "action", "alloc");
        put_number_entry(p, "addr", i);
        put_number_entry(p, "size", 1);
        put_number_entry(p, "stream", 0);
        put_string(p, "user_metadata");
        if (i) {
            put(p, "h\x07u");
            memcpy(data + size, p->data, p->size);
            size += p->size;
            continue;
        }
        memcpy(data + size, p->data, p->size);
        size += p->size;
        memcpy(data + size, "X\0\0\x04\0", 5);
        memset(data + size + 5, 'x', TEXT);
        size += 5 + TEXT;
        memcpy(data + size, "q\x07u", 3);
        size += 3;
    }
    memcpy(data + size, "eeu.", 4);
    clock_t begin = clock();
    assert_int_equal(gmd_snapshot_parse(&seen, data, size + 4, "x", NULL), GMD_OK);
    assert_true(clock() - begin < 2 * CLOCKS_PER_SEC);
    free(data);
    assert_int_equal(strlen(metadata_of(EVENTS - 1)), TEXT);
    assert_int_equal(seen.events[EVENTS - 1].origin, seen.events[0].origin);
}

/* --- annotations ------------------------------------------------------------------------- */

#define ANNOTATED(text) "{'segments': [], 'external_annotations': " text "}"

TEST_F(origins, annotations_are_kept_in_the_file_s_order)
{
    see(ANNOTATED("[{'stage': 'START', 'name': 'step', 'device': 1, 'time_us': 7}, "
                  "{'name': 'step', 'stage': 'END', 'time_us': 5, 'device': 0, 'extra': 1}, "
                  "{'stage': 'PAUSE', 'name': 'step'}]"));
    assert_int_equal(seen.annotation_count, 3);
    assert_int_equal(seen.annotations[0].stage, GMD_ANNOTATION_START);
    assert_int_equal(seen.annotations[0].device, 1);
    assert_int_equal(seen.annotations[0].time_us, 7);
    assert_int_equal(seen.annotations[1].stage, GMD_ANNOTATION_END);
    assert_int_equal(seen.annotations[1].name, seen.annotations[0].name);
    assert_int_equal(seen.annotations[2].stage, GMD_ANNOTATION_OTHER);
    assert_string_equal(gmd_origins_text(&seen.origins, seen.annotations[0].name, NULL), "step");
}

TEST_F(origins, there_may_be_no_annotations)
{
    see(ANNOTATED("None"));
    assert_int_equal(seen.annotation_count, 0);
}

TEST(annotations_that_are_wrong_are_refused_with_their_place)
{
    assert_wrong(ANNOTATED("{}"), "key 'external_annotations': expected a list, found a dict");
    assert_wrong(ANNOTATED("[{'name': 'a', 'stage': 'START'}, 7]"),
                 "annotation 1: expected a dict, found an integer");
    assert_wrong(ANNOTATED("[{'name': 'a', 'time_us': 1}]"),
                 "annotation 0: expected the key 'stage'");
    assert_wrong(ANNOTATED("[{'stage': 'START', 'time_us': 1}]"),
                 "annotation 0: expected the key 'name'");
    assert_wrong(ANNOTATED("[{'stage': 'END', 'name': 'a', 'time_us': -1}]"),
                 "annotation 0: key 'time_us': expected an integer from 0");
    assert_wrong(ANNOTATED("[{'stage': 'END', 'name': 'a', 'time_us': 1, 'device': 16}]"),
                 "annotation 0: key 'device': expected less than 16");
}

/* --- what is wrong ----------------------------------------------------------------------- */

TEST(frames_that_are_wrong_are_refused_with_their_place)
{
    assert_wrong(TRACE("{" EVENT "}, {" EVENT ", 'frames': 'x'}"),
                 "event 1 of device 0: key 'frames': expected a list, found a string");
    assert_wrong(TRACE("{" EVENT ", 'frames': [{}, 7]}"),
                 "event 0 of device 0: expected a dict, found an integer");
    assert_wrong("{'segments': [{" SEGMENT ", 'blocks': [{'address': 4096, 'size': 4096, "
                 "'state': 'inactive', 'frames': [None]}]}]}",
                 "block 0 of segment 0: expected a dict, found None");
    assert_wrong("{'segments': [{" SEGMENT ", 'frames': 3, 'blocks': []}]}",
                 "segment 0: key 'frames': expected a list, found an integer");
}

TEST(the_byte_of_a_wrong_frame_is_that_of_the_frame)
{
    pickle_text *p = start_events();
    char expected[64];
    put_literal(p, "{" EVENT ", 'frames': [" FRAME(1) "]}");
    put(p, "}(");
    put_string_entry(p, "action", "alloc");
    put_number_entry(p, "addr", 1);
    put_number_entry(p, "size", 1);
    put_number_entry(p, "stream", 1);
    put_string(p, "frames");
    put(p, "](");
    snprintf(expected, sizeof expected, "x: byte %zu: event 1 of device 0: expected a dict",
             p->size);
    put(p, "Neueeu.");
    assert_snapshot_refused(p, expected);
}

TEST(more_frames_than_any_stack_has_are_refused)
{
    enum { REFERENCES = 65537 };
    pickle_text *p = literal("{'segments': []}");
    size_t head = p->size - 2; /* up to "u." */
    uint8_t *data = malloc(head + 256 + (size_t)REFERENCES * 2);
    assert_non_null(data);
    memcpy(data, p->data, head);
    p->size = 0;
    put_string(p, "device_traces");
    put(p, "](](");
    put(p, "}(");
    put_string_entry(p, "action", "alloc");
    put_number_entry(p, "addr", 1);
    put_number_entry(p, "size", 1);
    put_number_entry(p, "stream", 1);
    put_string(p, "frames");
    put(p, "](}q\x01");
    memcpy(data + head, p->data, p->size);
    size_t size = head + p->size;
    for (int i = 1; i < REFERENCES; i++, size += 2) {
        memcpy(data + size, "h\x01", 2);
    }
    memcpy(data + size, "eueeu.", 6);
    gmd_error error = {""};
    gmd_snapshot s;
    assert_int_equal(gmd_snapshot_parse(&s, data, size + 6, "x", &error), GMD_BAD_INPUT);
    assert_contains(error.text, "key 'frames': expected at most 65536 frames, found 65537");
    free(data);
}

/* Each event refers to one list of 60,000 frames, which is wrong at its end. */
TEST(a_wrong_list_is_looked_at_once_however_many_events_refer_to_it)
{
    enum { FRAMES = 60000, EVENTS = 20000, ROOM = FRAMES * 2 + EVENTS * 100 + 1000 };
    pickle_text *p = start_events();
    uint8_t *data = malloc(ROOM);
    assert_non_null(data);
    size_t size = 0;
    for (int i = 0; i < EVENTS; i++) {
        put(p, "}(");
        put_string_entry(p, "action", "alloc");
        put_number_entry(p, "addr", 1);
        put_number_entry(p, "size", 1);
        put_number_entry(p, "stream", 1);
        put_string(p, "frames");
        put(p, i ? "h\x02u" : "]q\x02(}q\x01");
        memcpy(data + size, p->data, p->size);
        size += p->size;
        p->size = 0;
        for (int k = 0; i == 0 && k < FRAMES; k++, size += 2) {
            memcpy(data + size, "h\x01", 2);
        }
        memcpy(data + size, "Neu", i == 0 ? 3 : 0);
        size += i == 0 ? 3 : 0;
    }
    memcpy(data + size, "eeu.", 4);
    gmd_error error = {""};
    gmd_snapshot s;
    clock_t begin = clock();
    assert_int_equal(gmd_snapshot_parse(&s, data, size + 4, "x", &error), GMD_BAD_INPUT);
    assert_true(clock() - begin < 2 * CLOCKS_PER_SEC);
    assert_contains(error.text, "event 0 of device 0: expected a dict, found None");
    free(data);
}

/* --- references -------------------------------------------------------------------------- */

TEST_F(origins, an_event_may_be_referred_to_twice)
{
    see("{'segments': [], 'device_traces': [[&1 {" EVENT ", 'frames': [" FRAME(1) "]}, *1], "
                                                                                  "[*1]]}");
    assert_int_equal(seen.event_count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(seen.events[i].address, 4096);
        assert_string_equal(stack_of(seen.events[i].origin), "a.py:1 f1");
    }
    assert_int_equal(seen.events[2].device, 1);
}

TEST_F(origins, a_list_of_events_may_be_that_of_two_devices)
{
    see("{'segments': [], 'device_traces': [&1 [{" EVENT "}, {" EVENT "}], *1]}");
    assert_int_equal(seen.event_count, 4);
    assert_int_equal(seen.events[1].device, 0);
    assert_int_equal(seen.events[2].device, 1);
}

TEST_F(origins, events_that_are_in_no_trace_are_none)
{
    see("{'last': {" EVENT "}, 'segments': [], 'device_traces': [[{'action': 'free_completed', "
        "'addr': 8192, 'size': 512, 'stream': 0, 'time_us': 1}]], 'first': [{" EVENT "}]}");
    assert_int_equal(seen.event_count, 1);
    assert_int_equal(seen.events[0].address, 8192);
}

TEST_F(origins, events_in_another_order_than_in_the_file_have_that_order)
{
    see("{'kept': [&1 {'action': 'alloc', 'addr': 1, 'size': 1, 'stream': 0, 'time_us': 1}, "
        "&2 {'action': 'alloc', 'addr': 2, 'size': 1, 'stream': 0, 'time_us': 1}], "
        "'segments': [], 'device_traces': [[*2, *1]]}");
    assert_int_equal(seen.event_count, 2);
    assert_int_equal(seen.events[0].address, 2);
    assert_int_equal(seen.events[1].address, 1);
}

TEST_F(origins, one_empty_list_may_be_that_of_everything)
{
    see("{'segments': [{" SEGMENT ", 'frames': &1 [], 'blocks': *1}], "
        "'device_traces': [[{" EVENT ", 'frames': &2 []}], *2], 'external_annotations': *2}");
    assert_int_equal(seen.event_count, 1);
    assert_int_equal(seen.device_count, 2);
    assert_int_equal(seen.segments[0].block_count, 0);
    assert_int_equal(seen.annotation_count, 0);
}

TEST(a_record_in_the_place_of_another_is_refused)
{
    assert_wrong("{'kept': &1 {" EVENT "}, 'segments': [*1]}",
                 "segment 0: expected a dict, found another record");
    assert_wrong("{'segments': [{" SEGMENT ", 'blocks': [{" EVENT "}]}]}",
                 "block 0 of segment 0: expected a dict, found another record");
    assert_wrong(TRACE(FRAME(1)), "event 0 of device 0: expected a dict, found another record");
    assert_wrong(TRACE("{" EVENT ", 'frames': [{" EVENT "}]}"),
                 "event 0 of device 0: expected a dict, found another record");
    assert_wrong("{'segments': &1 [{" EVENT "}], 'device_traces': [*1]}",
                 "segment 0: expected a dict, found another record");
}

/* No writer does that: containers are complete before something else is written. */
TEST(a_list_that_grows_behind_its_use_is_refused)
{
    pickle_text *p = start_events();
    put_literal(p, "{" EVENT ", 'frames': &1 [" FRAME(1) "]}");
    put(p, "h\x01}a0eeu.");
    assert_snapshot_refused(p, "APPEND: expected a list to add to, found another record's list");
}

TEST(a_shared_list_that_grows_behind_its_use_is_refused)
{
    pickle_text *p = start_snapshot("}(");
    put_literal(p, "'kept'");
    put_literal(p, "&1 [" FRAME(1) "]");
    open_traces(p);
    put(p, "](");
    put_literal(p, "{" EVENT ", 'frames': *1}");
    put(p, "h\x01}a0eeu.");
    assert_snapshot_refused(
        p, "APPEND: expected a list that is complete, found more of it behind its first use");
}

TEST(an_event_that_grows_behind_its_use_is_refused)
{
    pickle_text *p = start_events();
    put_literal(p, "&1 {" EVENT "}");
    put(p, "h\x01");
    put_literal(p, "'size'");
    put(p, "K\x01s0eeu.");
    assert_snapshot_refused(p, "SETITEM: expected a dict to add to, found another record");
}

/* Whoever has the number of an entry that another value got has the other value. */
TEST_F(origins, a_memo_entry_may_be_used_again)
{
    see(TRACE("{" EVENT ", 'frames': &1 [" FRAME(1) "], 'user_metadata': &1 'x'}, "
                                                    "{" EVENT
                                                    ", 'user_metadata': *1, 'frames': []}"));
    assert_string_equal(metadata_of(1), "x");
    assert_string_equal(stack_of(seen.events[0].origin), "a.py:1 f1");
}

TEST_F(origins, a_dict_that_is_referred_to_while_it_is_open_is_read_as_well)
{
    see(TRACE("&1 {'self': *1, " EVENT ", 'frames': [" FRAME(1) "]}"));
    assert_int_equal(seen.event_count, 1);
    assert_string_equal(stack_of(seen.events[0].origin), "a.py:1 f1");
}
