#include "snapshot_test.h"

#include "gmd_file.h"
#include "gmd_trace.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* --- real snapshots ---------------------------------------------------------------------- */

static gmd_snapshot read_ok(const char *name)
{
    char path[512];
    gmd_snapshot snapshot;
    gmd_error error = {""};
    snprintf(path, sizeof path, "%s/histories/%s", GMD_TEST_DATA, name);
    if (gmd_snapshot_read(&snapshot, path, &error) != GMD_OK) {
        fail_msg("%s", error.text);
    }
    return snapshot;
}

static size_t count_actions(const gmd_snapshot *s, gmd_action action)
{
    size_t count = 0;
    for (size_t i = 0; i < s->event_count; i++) {
        count += s->events[i].action == action;
    }
    return count;
}

/* What a test makes, freed after it. */
static gmd_snapshot seen;

static int free_seen(void **state)
{
    (void)state;
    gmd_snapshot_free(&seen);
    return 0;
}

FIXTURE(snapshot, NULL, free_seen);

/* The figures are those that Python's own pickle shows for the file. */
TEST_F(snapshot, a_recorded_history_is_read_whole)
{
    seen = read_ok("simple_cycle_leak.pickle.gz");
    assert_int_equal(seen.event_count, 360);
    assert_int_equal(count_actions(&seen, GMD_ACTION_ALLOC), 120);
    assert_int_equal(count_actions(&seen, GMD_ACTION_FREE_REQUESTED), 106);
    assert_int_equal(count_actions(&seen, GMD_ACTION_FREE_COMPLETED), 106);
    assert_int_equal(count_actions(&seen, GMD_ACTION_SEGMENT_ALLOC), 28);
    assert_int_equal(seen.segment_count, 28);
    assert_int_equal(seen.segments[0].address, 140093679468544u);
    assert_int_equal(seen.segments[0].total_size, 64 << 20);
    assert_int_equal(seen.blocks[0].state, GMD_BLOCK_ALLOCATED);
    assert_string_equal(seen.conf, "");
    assert_int_equal(seen.device_count, 1);
    assert_true(seen.has_events);
}

TEST(a_plain_pickle_gives_the_same_as_a_packed_one)
{
    size_t size;
    uint8_t *data = read_test_data("histories/eval_fixed.pickle.gz", &size);
    gmd_snapshot packed = read_ok("eval_fixed.pickle.gz"), plain;
    assert_int_equal(gmd_snapshot_read(&plain, write_temporary(data, size), NULL), GMD_OK);
    remove_temporary();
    assert_int_equal(plain.event_count, packed.event_count);
    for (size_t i = 0; i < plain.event_count; i++) {
        assert_int_equal(plain.events[i].address, packed.events[i].address);
        assert_int_equal(plain.events[i].time_us, packed.events[i].time_us);
    }
    gmd_snapshot_free(&plain);
    gmd_snapshot_free(&packed);
    free(data);
}

TEST(truncated_histories_are_refused)
{
    size_t size;
    uint8_t *data = read_test_data("histories/simple_cycle_leak.pickle.gz", &size);
    enum { FRAME_AT = 2, FRAME_BYTES = 9 }; /* without it, more than the frame's claim is tested */
    assert_int_equal(data[FRAME_AT], 0x95);
    memmove(data + FRAME_AT, data + FRAME_AT + FRAME_BYTES, size - FRAME_AT - FRAME_BYTES);
    size -= FRAME_BYTES;
    for (size_t cut = 0; cut < size; cut += cut < 400 || cut + 400 > size ? 1 : 97) {
        gmd_snapshot snapshot;
        gmd_error error = {""};
        assert_int_equal(gmd_snapshot_parse(&snapshot, data, cut, "x", &error), GMD_BAD_INPUT);
        assert_contains(error.text, cut ? "x: is cut off: byte " : "x: is empty: byte 0: ");
        assert_snapshot_empty(&snapshot);
    }
    free(data);
}

TEST(histories_with_flipped_bytes_are_read_or_refused)
{
    size_t size, refused = 0;
    uint8_t *data = read_test_data("histories/simple_cycle_leak.pickle.gz", &size);
    uint64_t random = 2;
    for (int run = 0; run < 10000; run++) {
        size_t at[4], flips = 1 + next_random(&random) % 4;
        uint8_t before[4];
        for (size_t i = 0; i < flips; i++) {
            at[i] = next_random(&random) % size;
            before[i] = data[at[i]];
            data[at[i]] ^= (uint8_t)(1 + next_random(&random) % 255);
        }
        gmd_snapshot snapshot;
        gmd_error error = {""};
        gmd_status status = gmd_snapshot_parse(&snapshot, data, size, "x", &error);
        assert_true(status == GMD_OK || (status == GMD_BAD_INPUT && error.text[0]));
        refused += status != GMD_OK;
        gmd_snapshot_free(&snapshot);
        for (size_t i = flips; i > 0; i--) {
            data[at[i - 1]] = before[i - 1];
        }
    }
    assert_true(refused > 1000 && refused < 10000);
    free(data);
}

/* --- events ------------------------------------------------------------------------------ */

TEST_F(snapshot, every_action_is_known_by_name)
{
    static const char *const names[] = {
        "alloc",       "free_requested", "free_completed", "segment_alloc", "segment_free",
        "segment_map", "segment_unmap",  "snapshot",       "oom",           "user_defined"};
    pickle_text *p = start_events();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        put_event(p, names[i], 4096, 512, 0, i);
    }
    put(p, "eeu.");
    seen = parse_snapshot(p);
    assert_int_equal(seen.event_count, 10);
    for (size_t i = 0; i < seen.event_count; i++) {
        assert_int_equal(seen.events[i].action, i); /* the enumeration is in the same order */
    }
}

TEST_F(snapshot, an_oom_has_the_device_s_free_bytes_as_its_address)
{
    pickle_text *p = start_events();
    put_event(p, "oom", 123456, 1 << 20, 5, 9);
    put(p, "eeu.");
    seen = parse_snapshot(p);
    assert_int_equal(seen.events[0].address, 123456);
    assert_int_equal(seen.events[0].size, 1 << 20);
    assert_int_equal(seen.events[0].stream, 5);
}

TEST_F(snapshot, an_action_that_is_not_known_is_kept_without_its_keys)
{
    pickle_text *p = start_events();
    put(p, "}(");
    put_string_entry(p, "action", "of_a_later_torch");
    put_string_entry(p, "addr", "not a number");
    put(p, "ueeu.");
    seen = parse_snapshot(p);
    assert_int_equal(seen.events[0].action, GMD_ACTION_OTHER);
}

TEST_F(snapshot, a_time_that_is_missing_is_0)
{
    pickle_text *p = start_events();
    put(p, "}(");
    put_string_entry(p, "action", "alloc");
    put_number_entry(p, "addr", 4096);
    put_number_entry(p, "size", 512);
    put_number_entry(p, "stream", 0);
    put(p, "ueeu.");
    seen = parse_snapshot(p);
    assert_int_equal(seen.events[0].time_us, 0);
}

TEST_F(snapshot, keys_that_are_not_known_are_ignored)
{
    pickle_text *p = start_snapshot("}(");
    put_string(p, "categories_of_a_later_torch");
    put(p, "](NNe");
    open_traces(p);
    put(p, "](}(");
    put_string(p, "frames");
    put(p, "](}e");
    put_string_entry(p, "action", "alloc");
    put_number_entry(p, "addr", 4096);
    put_number_entry(p, "size", 512);
    put_number_entry(p, "stream", 0);
    put_string_entry(p, "user_metadata", "");
    put(p, "ueeu.");
    seen = parse_snapshot(p);
    assert_int_equal(seen.event_count, 1);
}

TEST_F(snapshot, devices_are_merged_by_time_and_each_keeps_its_order)
{
    pickle_text *p = start_snapshot("}(");
    open_traces(p);
    put(p, "](");
    put_event(p, "alloc", 1, 1, 0, 10);
    put_event(p, "alloc", 2, 1, 0, 5); /* a clock that went back */
    put_event(p, "alloc", 3, 1, 0, 30);
    put(p, "e](");
    put_event(p, "alloc", 4, 1, 0, 10);
    put_event(p, "alloc", 5, 1, 0, 20);
    put(p, "e]eu.");
    seen = parse_snapshot(p);
    static const struct {
        uint64_t address;
        uint8_t device;
    } expected[] = {{1, 0}, {2, 0}, {4, 1}, {5, 1}, {3, 0}};
    assert_int_equal(seen.device_count, 3);
    assert_int_equal(seen.event_count, 5);
    for (size_t i = 0; i < seen.event_count; i++) {
        assert_int_equal(seen.events[i].address, expected[i].address);
        assert_int_equal(seen.events[i].device, expected[i].device);
    }
}

TEST_F(snapshot, a_snapshot_without_recording_has_no_events)
{
    pickle_text *p = start_snapshot("}(");
    open_traces(p);
    put(p, "]eu.");
    seen = parse_snapshot(p);
    assert_false(seen.has_events);
    assert_int_equal(seen.device_count, 1);
}

/* One event with one key changed; `opcodes` makes its value. */
static void assert_event_refused(const char *key, const char *opcodes, const char *part)
{
    static const char *const keys[] = {"addr", "size", "stream"};
    pickle_text *p = start_events();
    put_event(p, "alloc", 4096, 512, 0, 1);
    put(p, "}(");
    put_string_entry(p, "action", "alloc");
    for (size_t i = 0; i < 3; i++) {
        bool is_changed = strcmp(keys[i], key) == 0;
        if (is_changed && !opcodes) {
            continue;
        }
        put_string(p, keys[i]);
        is_changed ? put(p, opcodes) : put_integer(p, 4096);
    }
    put(p, "ueeu.");
    assert_snapshot_refused(p, part);
}

TEST(an_event_without_a_size_is_refused_with_its_place)
{
    assert_event_refused("size", NULL, "event 1 of device 0: expected the key 'size'");
}

TEST(an_event_whose_address_is_a_string_is_refused_with_its_place)
{
    assert_event_refused("addr", "U\x01x",
                         "event 1 of device 0: key 'addr': expected an integer, found a string");
}

TEST(a_negative_size_is_refused)
{
    assert_event_refused("size", "J\xff\xff\xff\xff",
                         "key 'size': expected an integer from 0, found a negative integer");
}

TEST(a_range_past_the_end_of_memory_is_refused)
{
    pickle_text *p = start_events();
    put_event(p, "alloc", UINT64_MAX - 10, 512, 0, 1);
    put(p, "eeu.");
    assert_snapshot_refused(p, "expected a range of 64-bit addresses");
}

TEST(the_byte_in_a_message_is_that_of_the_value)
{
    pickle_text *p = start_events();
    put(p, "}(");
    put_string_entry(p, "action", "alloc");
    put_string(p, "addr");
    char expected[32];
    snprintf(expected, sizeof expected, "x: byte %zu: event 0", p->size);
    put(p, "Nueeu.");
    assert_snapshot_refused(p, expected);
}

/* --- segments and blocks ----------------------------------------------------------------- */

TEST_F(snapshot, segments_and_blocks_are_read)
{
    pickle_text *p = start_segments();
    open_segment(p, 1 << 20, 4096);
    put_block(p, 1 << 20, 1024, "active_allocated");
    put_block(p, (1 << 20) + 1024, 1024, "active_pending_free");
    put_block(p, (1 << 20) + 2048, 1024, "active_awaiting_free");
    put_block(p, (1 << 20) + 3072, 1024, "inactive");
    put(p, "eu");
    open_segment(p, 1 << 21, 512);
    put_block(p, 1 << 21, 512, "inactive");
    put(p, "eueu.");
    seen = parse_snapshot(p);
    assert_int_equal(seen.segment_count, 2);
    const gmd_snapshot_segment *g = &seen.segments[0];
    assert_int_equal(g->allocated_size, 1024);
    assert_int_equal(g->active_size, 2048);
    assert_int_equal(g->requested_size, 512);
    assert_int_equal(g->stream, 7);
    assert_int_equal(g->pool_id[0], 1);
    assert_int_equal(g->pool_id[1], 2);
    assert_true(g->is_large && g->is_expandable);
    assert_int_equal(g->block_count, 4);
    assert_int_equal(seen.segments[1].first_block, 4);
    assert_int_equal(seen.blocks[1].state, GMD_BLOCK_PENDING_FREE);
    assert_int_equal(seen.blocks[2].state, GMD_BLOCK_PENDING_FREE);
    assert_int_equal(seen.blocks[3].state, GMD_BLOCK_INACTIVE);
    assert_int_equal(seen.blocks[3].requested_size, 512);
    assert_false(seen.has_events);
}

/* Keys that torch 2.1 did not write yet, and blocks as torch 2.0 did. */
static void put_old_segment(pickle_text *p)
{
    put(p, "}(");
    put_number_entry(p, "device", 0);
    put_number_entry(p, "address", 4096);
    put_number_entry(p, "total_size", 2048);
    put_number_entry(p, "allocated_size", 512);
    put_number_entry(p, "active_size", 512);
    put_number_entry(p, "stream", 0);
    put_string_entry(p, "segment_type", "small");
    put_string(p, "blocks");
    put(p, "](");
    for (int i = 0; i < 2; i++) {
        put(p, "}(");
        put_number_entry(p, "size", 1024);
        put_string_entry(p, "state", i ? "inactive" : "active_allocated");
        put_string(p, "history");
        put(p, "]u");
    }
    put(p, "eu");
}

TEST_F(snapshot, a_bare_list_of_segments_is_a_snapshot)
{
    pickle_text *p = start_snapshot("](");
    put_old_segment(p);
    put(p, "e.");
    seen = parse_snapshot(p);
    assert_int_equal(seen.segment_count, 1);
    assert_int_equal(seen.device_count, 0);
    assert_null(seen.conf);
}

TEST_F(snapshot, addresses_that_old_versions_left_out_are_added_up)
{
    pickle_text *p = start_snapshot("](");
    put_old_segment(p);
    put(p, "e.");
    seen = parse_snapshot(p);
    assert_int_equal(seen.blocks[0].address, 4096);
    assert_int_equal(seen.blocks[1].address, 4096 + 1024);
    assert_int_equal(seen.blocks[1].requested_size, 1024);
}

static void assert_block_refused(uint64_t address, uint64_t size, const char *block_state,
                                 const char *part)
{
    pickle_text *p = start_segments();
    open_segment(p, 4096, 2048);
    put_block(p, 4096, 512, "inactive");
    put_block(p, address, size, block_state);
    put(p, "eueu.");
    assert_snapshot_refused(p, part);
}

TEST(a_block_that_overlaps_the_one_before_is_refused)
{
    assert_block_refused(4096 + 256, 512, "inactive",
                         "block 1 of segment 0: key 'address': expected at least 4608");
}

TEST(a_block_that_passes_its_segment_s_end_is_refused)
{
    assert_block_refused(4608, 1537, "inactive", "expected them to end at or before 6144");
}

TEST(a_block_that_begins_behind_its_segment_is_refused)
{
    assert_block_refused(UINT64_MAX, 1, "inactive", "expected them to end at or before 6144");
}

TEST(a_block_of_no_bytes_is_refused)
{
    assert_block_refused(4608, 0, "inactive", "key 'size': expected over 0");
}

TEST(a_state_that_is_not_known_is_refused)
{
    assert_block_refused(4608, 512, "dozing",
                         "expected active_allocated, active_pending_free or inactive, "
                         "found 'dozing'");
}

TEST(a_segment_past_the_end_of_memory_is_refused)
{
    pickle_text *p = start_segments();
    open_segment(p, UINT64_MAX - 100, 2048);
    put(p, "eueu.");
    assert_snapshot_refused(p, "segment 0: 2048 bytes at address 18446744073709551515");
}

TEST(a_device_that_gmd_cannot_number_is_refused)
{
    pickle_text *p = start_segments();
    put(p, "}(");
    put_number_entry(p, "device", GMD_MAX_DEVICES);
    put(p, "ueu.");
    assert_snapshot_refused(p, "segment 0: key 'device': expected less than 16, found 16");
}

/* `value`: opcodes of one value. */
static const char *setting_of(const char *key, const char *value)
{
    pickle_text *p = start_snapshot("}(");
    put_empty_segments(p);
    put_string(p, "allocator_settings");
    put(p, "}(");
    put_string_entry(p, "PYTORCH_CUDA_ALLOC_CONF", "");
    put_string(p, key);
    put(p, value);
    put(p, "uu.");
    gmd_snapshot s = parse_snapshot(p);
    const char *setting = s.setting; /* static text */
    gmd_snapshot_free(&s);
    return setting;
}

TEST(a_setting_in_force_is_named_also_without_its_string)
{
    assert_string_equal(setting_of("expandable_segments", "\x88"), "expandable_segments");
    assert_string_equal(setting_of("max_split_size", "K\x40"), "max_split_size");
    assert_string_equal(setting_of("garbage_collection_threshold", "F0.8\n"),
                        "garbage_collection_threshold");
    assert_string_equal(setting_of("roundup_power2_divisions", "}(U\x01"
                                                               "2K\x04u"),
                        "roundup_power2_divisions");
}

TEST(the_defaults_are_no_settings)
{
    assert_null(setting_of("expandable_segments", "\x89"));
    assert_null(setting_of("max_split_size", "I-1\n"));
    assert_null(setting_of("garbage_collection_threshold", "F0.0\n"));
    assert_null(setting_of("roundup_power2_divisions", "}(U\x01"
                                                       "2I0\nu"));
}

/* --- the rest ---------------------------------------------------------------------------- */

static gmd_snapshot parse_with_settings(const char *key, const char *conf)
{
    pickle_text *p = start_snapshot("}(");
    put_empty_segments(p);
    put_string(p, "allocator_settings");
    put(p, "}(");
    put_string_entry(p, key, conf);
    put(p, "uu.");
    return parse_snapshot(p);
}

TEST_F(snapshot, the_settings_are_kept)
{
    seen = parse_with_settings("PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:128");
    assert_string_equal(seen.conf, "max_split_size_mb:128");
}

TEST_F(snapshot, the_settings_are_kept_under_their_newer_name)
{
    seen = parse_with_settings("PYTORCH_ALLOC_CONF", "expandable_segments:True");
    assert_string_equal(seen.conf, "expandable_segments:True");
}

TEST(settings_with_a_nul_are_refused)
{
    static const char data[] = "}(U\x08segments]U\x12"
                               "allocator_settings}(U\x17PYTORCH_CUDA_ALLOC_CONFU\x03"
                               "a\0buu.";
    pickle_text *p = start_snapshot("");
    memcpy(p->data, data, sizeof data - 1);
    p->size = sizeof data - 1;
    assert_snapshot_refused(
        p, "allocator_settings: key 'PYTORCH_CUDA_ALLOC_CONF': expected at most 4096 bytes");
}

static void assert_told_to_be(const char *data, size_t size, const char *what)
{
    gmd_snapshot snapshot;
    gmd_error error = {""};
    assert_int_equal(gmd_snapshot_parse(&snapshot, (const uint8_t *)data, size, "x", &error),
                     GMD_BAD_INPUT);
    assert_contains(error.text, what);
}

TEST(a_message_begins_with_what_the_file_is)
{
    assert_told_to_be("", 0, "x: is empty: byte 0: ");
    assert_told_to_be("\x80\x04\x95\x09\0\0\0\0\0\0\0}", 12, "x: is cut off: byte 2: FRAME: ");
    assert_told_to_be("PK\3\4archive", 11, "x: is a zip file, as torch.save() writes");
    assert_told_to_be("\x80\x04}.", 4, "x: is no memory snapshot");
    assert_told_to_be("hello", 5, "x: is no memory snapshot");
}

TEST(what_is_no_snapshot_is_refused)
{
    assert_snapshot_refused(start_snapshot("K\x07."),
                            "expected a snapshot's dict, found an integer");
    assert_snapshot_refused(start_snapshot("}."), "expected the key 'segments'");
    assert_snapshot_refused(start_snapshot("(U\x08segments}d."),
                            "key 'segments': expected a list, found a dict");
    assert_snapshot_refused(start_snapshot("(U\x08segments]U\x0d"
                                           "device_tracesKid."),
                            "key 'device_traces': expected a list, found an integer");
    assert_snapshot_refused(start_snapshot("](K\x01"
                                           "e."),
                            "segment 0: expected a dict, found an integer");
}

TEST(more_devices_than_gmd_can_number_are_refused)
{
    pickle_text *p = start_snapshot("}(");
    open_traces(p);
    put(p, "]]]]]]]]]]]]]]]]]eu.");
    assert_snapshot_refused(p, "device_traces: expected at most 16 devices, found 17");
}

/* Each reference costs two bytes, each event that it stands for dozens. */
TEST(a_list_that_is_referred_to_again_and_again_is_refused)
{
    pickle_text *p = start_snapshot("}(");
    open_traces(p);
    put(p, "](");
    put_event(p, "alloc", 4096, 512, 0, 1);
    put(p, "q\x01"); /* one event, then 8,000 references to it */
    for (int i = 0; i < 8000; i++) {
        put(p, "h\x01");
    }
    put(p, "eeu.");
    assert_snapshot_refused(p, "more events, segments and blocks than the file has room for");
}

TEST(a_record_with_very_many_keys_is_refused)
{
    pickle_text *p = start_events();
    put(p, "}(");
    for (int i = 0; i < 65; i++) {
        put_number_entry(p, "key", 1);
    }
    put(p, "ueeu.");
    assert_snapshot_refused(p, "event 0 of device 0: expected at most 64 keys, found 65");
}

TEST(a_list_that_holds_itself_is_refused)
{
    assert_snapshot_refused(start_snapshot("]q\x01h\x01"
                                           "a."),
                            "segment 0: expected a dict, found a list");
}

/* The bound of the design is 150 ms for 60,000 events in an optimised build; sanitizers cost more.
 */
TEST(sixty_thousand_events_load_in_time)
{
    enum { EVENTS = 60000 };
    pickle_text *p = start_snapshot("}(");
    open_traces(p);
    put(p, "](");
    size_t head = p->size, event_size;
    put_event(p, "alloc", 4096, 512, 0, 1);
    event_size = p->size - head;
    uint8_t *data = malloc(head + EVENTS * event_size + 4);
    assert_non_null(data);
    memcpy(data, p->data, head);
    for (size_t i = 0; i < EVENTS; i++) {
        memcpy(data + head + i * event_size, p->data + head, event_size);
    }
    memcpy(data + head + EVENTS * event_size, "eeu.", 4);
    gmd_snapshot s;
    clock_t begin = clock();
    assert_int_equal(gmd_snapshot_parse(&s, data, head + EVENTS * event_size + 4, "x", NULL),
                     GMD_OK);
    clock_t end = clock();
    assert_int_equal(s.event_count, EVENTS);
    assert_true(end - begin < 2 * CLOCKS_PER_SEC);
    gmd_snapshot_free(&s);
    free(data);
}
