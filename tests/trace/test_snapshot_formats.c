/* Snapshots as versions of PyTorch write them: torch/csrc/cuda/memory_snapshot.cpp and Module.cpp,
 * torch/cuda/memory.py and _memory_viz.py of that version. */
#include "pickle_literal.h"
#include "snapshot_taken.h"
#include "snapshot_test.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

static gmd_snapshot seen;

static int free_seen(void **state)
{
    (void)state;
    gmd_snapshot_free(&seen);
    return 0;
}

FIXTURE(formats, NULL, free_seen);

static void see(const char *text)
{
    pickle_text *p = start_snapshot("");
    put_literal(p, text);
    put(p, ".");
    seen = parse_snapshot(p);
}

static gmd_frame innermost(uint32_t origin)
{
    size_t count;
    const uint32_t *frames =
        gmd_origins_stack(&seen.origins, gmd_origins_get(&seen.origins, origin).stack, &count);
    return count ? gmd_origins_frame(&seen.origins, frames[0]) : (gmd_frame){0};
}

#define SEGMENT(more)                                                                              \
    "{'device': 0, 'address': 0x7f0000000000, 'total_size': 2097152, 'allocated_size': 512, "      \
    "'active_size': 512, 'stream': 0, 'segment_type': 'small', " more "}"

/* --- versions ---------------------------------------------------------------------------- */

/* _memory_viz.py: _block_extra_legacy. */
TEST_F(formats, up_to_torch_2_0_a_list_of_segments_whose_blocks_have_a_history)
{
    see("[" SEGMENT("'blocks': ["
                    "{'size': 512, 'state': 'active_allocated', 'history': ["
                    "{'addr': 0x7f0000000000, 'real_size': 300, "
                    "'frames': [{'filename': 'train.py', 'name': 'main', 'line': 9}]}, "
                    "{'addr': 0x7f0000000000, 'real_size': 400, 'frames': []}]}, "
                    "{'size': 512, 'state': 'active_allocated', 'history': [{'real_size': 7}]}, "
                    "{'size': 2096128, 'state': 'inactive', 'history': [{'real_size': 8}]}]") "]");
    assert_int_equal(seen.blocks[0].requested_size, 300);
    assert_int_equal(innermost(seen.blocks[0].origin).line, 9);
    assert_int_equal(seen.blocks[1].requested_size, 7);
    assert_int_equal(seen.blocks[1].address, 0x7f0000000000 + 512);
    assert_int_equal(seen.blocks[2].requested_size, 2096128);
}

TEST(a_history_that_is_wrong_is_refused_with_its_place)
{
    static const char *const cases[][2] = {
        {"7", "key 'history': expected a list, found an integer"},
        {"[7]", "expected a dict, found an integer"},
        {"[{'real_size': 'x'}]", "key 'real_size': expected an integer, found a string"},
        {"[{'frames': 7}]", "key 'frames': expected a list, found an integer"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512], expected[128];
        snprintf(text, sizeof text,
                 "[" SEGMENT("'blocks': [{'size': 512, 'state': 'active_allocated', "
                             "'history': %s}]") "]",
                 cases[i][0]);
        snprintf(expected, sizeof expected, "block 0 of segment 0: %s", cases[i][1]);
        pickle_text *p = start_snapshot("");
        put_literal(p, text);
        put(p, ".");
        assert_snapshot_refused(p, expected);
    }
}

TEST_F(formats, of_torch_2_1_events_have_no_metadata)
{
    see("{'segments': [" SEGMENT(
        "'requested_size': 300, 'segment_pool_id': (0, 0), "
        "'is_expandable': False, 'frames': &1 [], 'blocks': ["
        "{'address': 0x7f0000000000, 'size': 512, 'requested_size': 300, "
        "'state': 'active_allocated', 'frames': *1}]") "], "
                                                       "'device_traces': [["
                                                       "{'action': 'segment_alloc', 'addr': "
                                                       "0x7f0000000000, 'size': 2097152, 'stream': "
                                                       "0}, "
                                                       "{'action': 'alloc', 'addr': "
                                                       "0x7f0000000000, 'size': 512, 'stream': 0, "
                                                       "'frames': [{'name': 'main', 'filename': "
                                                       "'train.py', 'line': 9}]}, "
                                                       "{'action': 'oom', 'device_free': 7340032, "
                                                       "'size': 1073741824, 'stream': 0}]], "
                                                       "'allocator_settings': "
                                                       "{'PYTORCH_CUDA_ALLOC_CONF': '', "
                                                       "'max_split_size': -1, "
                                                       "'garbage_collection_threshold': 0.0, "
                                                       "'expandable_segments': False, "
                                                       "'roundup_power2_divisions': {'1': 0, '2': "
                                                       "0}}}");
    assert_int_equal(seen.event_count, 3);
    assert_int_equal(innermost(seen.events[1].origin).line, 9);
    assert_int_equal(seen.events[2].address, 7340032);
    assert_null(seen.setting);
}

/* What torch/cuda/memory.py of 2026 lists: pool_id, annotate, host_segments and host_traces
 * (pinned memory), frames of the forward pass as text, what torch.fx knows of a frame. */
TEST_F(formats, of_newer_versions_what_is_not_known_is_left_out)
{
    see("{'segments': [" SEGMENT(
        "'segment_pool_id': (0, 2), 'version': 3, 'blocks': []") "], "
                                                                 "'device_traces': [["
                                                                 "{'action': 'alloc', 'addr': "
                                                                 "0x7f0000000000, 'size': 512, "
                                                                 "'stream': 0, 'time_us': 5, "
                                                                 "'compile_context': 'N/A', "
                                                                 "'user_metadata': 'step', "
                                                                 "'pool_id': (0, 2), "
                                                                 "'frames': [{'name': 'forward', "
                                                                 "'filename': '<eval_with_key>.1', "
                                                                 "'line': 7, "
                                                                 "'fx_node_op': 'call_function', "
                                                                 "'fx_node_name': 'relu_1', "
                                                                 "'fx_node_target': 'relu', "
                                                                 "'fx_original_trace': 'File x', "
                                                                 "'fx_node_info': {'a': [1, "
                                                                 "None]}}], "
                                                                 "'forward_frames': ['train.py:3 "
                                                                 "in main', 'model.py:8 in "
                                                                 "forward']}, "
                                                                 "{'action': 'annotate', 'addr': "
                                                                 "0x7f0000000000, 'size': 512, "
                                                                 "'stream': 0, 'time_us': 6, "
                                                                 "'compile_context': 'N/A', "
                                                                 "'user_metadata': 'saved', "
                                                                 "'pool_id': (0, 2)}]], "
                                                                 "'host_segments': [{'address': 1, "
                                                                 "'total_size': 2, 'blocks': []}], "
                                                                 "'host_traces': [{'action': "
                                                                 "'alloc', 'addr': 1, 'size': 2, "
                                                                 "'stream': 0, 'time_us': 1}], "
                                                                 "'external_annotations': [], "
                                                                 "'allocator_settings': "
                                                                 "{'PYTORCH_ALLOC_CONF': "
                                                                 "'expandable_segments:True', "
                                                                 "'graph_capture_record_stream_"
                                                                 "reuse': False, 'a_later_one': "
                                                                 "[None]}}");
    assert_int_equal(seen.event_count, 2);
    assert_int_equal(seen.events[0].time_us, 5);
    assert_int_equal(innermost(seen.events[0].origin).line, 7);
    assert_int_equal(seen.events[1].action, GMD_ACTION_OTHER);
    gmd_origin note = gmd_origins_get(&seen.origins, seen.events[1].origin);
    assert_string_equal(gmd_origins_text(&seen.origins, note.metadata, NULL), "saved");
    assert_int_equal(seen.segments[0].pool_id[1], 2);
    assert_string_equal(seen.conf, "expandable_segments:True");
}

TEST_F(formats, a_snapshot_of_a_pool_alone_has_segments_and_nothing_else)
{
    see("{'segments': [" SEGMENT("'blocks': []") "], 'device_traces': []}");
    assert_int_equal(seen.segment_count, 1);
    assert_int_equal(seen.device_count, 0);
    assert_false(seen.has_events);
}

/* torch::cuda::_memory_snapshot_pickled, which OOM observers call: torch/csrc/jit/serialization/
 * pickler.cpp gives a value its number behind it, in protocol 2, and integers eight bytes. */
TEST_F(formats, of_the_writer_in_cpp)
{
    pickle_text *p = start_snapshot("\x80\x02}(X\x08");
    p->size += 3; /* a length of four bytes */
    memset(p->data + p->size - 3, 0, 3);
    put(p, "segmentsq");
    p->data[p->size++] = 0; /* BINPUT 0 */
    put(p, "](e");
    put(p, "U\x0d"
           "device_traces](](");
    for (int i = 0; i < 2; i++) {
        put(p, "}(");
        put_string_entry(p, "action", "alloc");
        put(p, "U\x04"
               "addr\x8a\x08");
        const uint8_t address[] = {0, 0x10 + (uint8_t)i, 0, 0, 0, 0x7f, 0, 0};
        memcpy(p->data + p->size, address, sizeof address);
        p->size += sizeof address;
        put_number_entry(p, "size", 512);
        put_number_entry(p, "stream", 0);
        put_number_entry(p, "time_us", 7);
        put_string(p, "frames");
        put(p, i ? "h\x03uq\x04"
                 : "](}(U\x04nameU\x01"
                   "fU\x08"
                   "filenameU\x04"
                   "a.pyU\x04lineK\x05uq\x02"
                   "eq\x03uq\x05");
    }
    put(p, "eeu.");
    seen = parse_snapshot(p);
    assert_int_equal(seen.event_count, 2);
    assert_int_equal(seen.events[1].address, 0x7f0000001100);
    assert_int_equal(innermost(seen.events[0].origin).line, 5);
    assert_int_equal(seen.events[1].origin, seen.events[0].origin);
}

/* --- what is taken while the pickle is read ------------------------------------------------ */

static const char *text_at(const gmd_snapshot *s, uint32_t text)
{
    return gmd_origins_text(&s->origins, text, NULL);
}

static void assert_same_origin(const gmd_snapshot *a, uint32_t x, const gmd_snapshot *b, uint32_t y)
{
    gmd_origin p = gmd_origins_get(&a->origins, x), q = gmd_origins_get(&b->origins, y);
    size_t m, n;
    const uint32_t *f = gmd_origins_stack(&a->origins, p.stack, &m);
    const uint32_t *g = gmd_origins_stack(&b->origins, q.stack, &n);
    assert_string_equal(text_at(a, p.metadata), text_at(b, q.metadata));
    assert_string_equal(text_at(a, p.compile_context), text_at(b, q.compile_context));
    assert_int_equal(m, n);
    for (size_t i = 0; i < n; i++) {
        gmd_frame u = gmd_origins_frame(&a->origins, f[i]);
        gmd_frame v = gmd_origins_frame(&b->origins, g[i]);
        assert_int_equal(u.line, v.line);
        assert_string_equal(text_at(a, u.file), text_at(b, v.file));
        assert_string_equal(text_at(a, u.function), text_at(b, v.function));
    }
}

static void assert_same_event(const gmd_snapshot *a, const gmd_snapshot *b, size_t i)
{
    const gmd_snapshot_event *e = &a->events[i], *f = &b->events[i];
    assert_true(e->action == f->action && e->device == f->device && e->address == f->address &&
                e->size == f->size && e->stream == f->stream && e->time_us == f->time_us);
    assert_same_origin(a, e->origin, b, f->origin);
}

static void assert_same(const gmd_snapshot *a, const gmd_snapshot *b)
{
    assert_int_equal(a->event_count, b->event_count);
    assert_int_equal(a->segment_count, b->segment_count);
    assert_int_equal(a->block_count, b->block_count);
    assert_int_equal(a->annotation_count, b->annotation_count);
    assert_int_equal(a->device_count, b->device_count);
    for (size_t i = 0; i < a->event_count; i++) {
        assert_same_event(a, b, i);
    }
    for (size_t i = 0; i < a->segment_count; i++) {
        assert_int_equal(a->segments[i].first_block, b->segments[i].first_block);
        assert_same_origin(a, a->segments[i].origin, b, b->segments[i].origin);
    }
    for (size_t i = 0; i < a->block_count; i++) {
        const gmd_snapshot_block *e = &a->blocks[i], *f = &b->blocks[i];
        assert_true(e->address == f->address && e->size == f->size &&
                    e->requested_size == f->requested_size && e->state == f->state);
        assert_same_origin(a, e->origin, b, f->origin);
    }
    for (size_t i = 0; i < a->annotation_count; i++) {
        const gmd_annotation *e = &a->annotations[i], *f = &b->annotations[i];
        assert_true(e->time_us == f->time_us && e->stage == f->stage && e->device == f->device);
        assert_string_equal(text_at(a, e->name), text_at(b, f->name));
    }
}

static void assert_same_either_way(const char *name)
{
    size_t size;
    uint8_t *data = read_test_data(name, &size);
    gmd_snapshot taken, tree;
    gmd_error error = {""};
    gmd_status status = snapshot_parse_as(&taken, data, size, name, true, &error);
    assert_int_equal(snapshot_parse_as(&tree, data, size, name, false, &error), status);
    if (status == GMD_OK) {
        assert_same(&taken, &tree);
    }
    gmd_snapshot_free(&taken);
    gmd_snapshot_free(&tree);
    free(data);
}

static size_t compare_folder(const char *folder, const char *suffix)
{
    char path[512];
    size_t compared = 0;
    snprintf(path, sizeof path, "%s/%s", GMD_TEST_DATA, folder);
    DIR *entries = opendir(path);
    assert_non_null(entries);
    for (const struct dirent *e = readdir(entries); e; e = readdir(entries)) {
        if (e->d_name[0] != '.' && strstr(e->d_name, suffix)) {
            snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
            assert_same_either_way(path);
            compared++;
        }
    }
    closedir(entries);
    return compared;
}

TEST(a_snapshot_is_the_same_whether_or_not_its_records_are_taken_early)
{
    assert_true(compare_folder("histories", ".pickle.gz") > 10);
    assert_true(compare_folder("../../fuzz/corpus/snapshot", "") > 5);
}

/* By each protocol that Python has; see fuzz/corpus/snapshot. */
TEST(every_protocol_gives_the_same_snapshot)
{
    static const char *const names[] = {"protocol0", "protocol2", "protocol4"};
    gmd_snapshot first, other;
    size_t size;
    uint8_t *data = read_test_data("../../fuzz/corpus/snapshot/protocol5", &size);
    assert_int_equal(gmd_snapshot_parse(&first, data, size, "x", NULL), GMD_OK);
    free(data);
    assert_true(first.event_count > 3);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[128];
        snprintf(path, sizeof path, "../../fuzz/corpus/snapshot/%s", names[i]);
        data = read_test_data(path, &size);
        assert_int_equal(gmd_snapshot_parse(&other, data, size, "x", NULL), GMD_OK);
        assert_same(&first, &other);
        gmd_snapshot_free(&other);
        free(data);
    }
    gmd_snapshot_free(&first);
}
