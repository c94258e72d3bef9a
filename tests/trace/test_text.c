#include "trace_test.h"

#include "gmd_names.h"
#include "gmd_size.h"
#include "gmd_trace.h"
#include "quote.h"

#include <stdio.h>
#include <string.h>

/* --- helpers ----------------------------------------------------------------------------- */

/* What a test makes, freed after it. */
static gmd_trace parsed, built;
static char *written, *input;

static int free_made(void **state)
{
    (void)state;
    gmd_trace_free(&parsed);
    gmd_trace_free(&built);
    free(written);
    free(input);
    written = input = NULL;
    return 0;
}

FIXTURE(text, NULL, free_made);

static void parse_ok(const char *text)
{
    gmd_error error = {""};
    gmd_trace_free(&parsed);
    if (gmd_trace_parse(&parsed, text, strlen(text), "x.gmd", &error) != GMD_OK) {
        fail_msg("%s", error.text);
    }
}

/* The body follows the first line, so its lines are numbered from 2. */
static void parse_body(const char *body)
{
    char text[4096];
    snprintf(text, sizeof text, "gmd-trace 1\n%s", body);
    parse_ok(text);
}

static void assert_text_refused(const char *text, size_t length, const char *message)
{
    gmd_trace trace;
    gmd_error error = {""};
    if (gmd_trace_parse(&trace, text, length, "x.gmd", &error) != GMD_BAD_INPUT) {
        fail_msg("was not refused: %s", text);
    }
    assert_string_equal(error.text, message);
    assert_true(!trace.requests && !trace.conditions.conf && !trace.blocks.items &&
                !trace.streams.items);
    assert_int_equal(trace.count, 0);
}

static void assert_body_refused(const char *body, const char *message)
{
    char text[4096];
    snprintf(text, sizeof text, "gmd-trace 1\n%s", body);
    assert_text_refused(text, strlen(text), message);
}

static void write_ok(const gmd_trace *trace)
{
    size_t size = 0;
    gmd_error error = {""};
    free(written);
    written = NULL;
    FILE *out = open_memstream(&written, &size);
    assert_non_null(out);
    gmd_status status = gmd_trace_write(trace, out, &error);
    fclose(out);
    if (status != GMD_OK) {
        fail_msg("%s", error.text);
    }
}

static void assert_rewritten(const char *text, const char *expected)
{
    parse_ok(text);
    write_ok(&parsed);
    assert_string_equal(written, expected);
}

/* --- requests ---------------------------------------------------------------------------- */

TEST_F(text, alloc_has_a_block_a_size_and_a_stream)
{
    parse_body("alloc a 825968 s1\n");
    assert_int_equal(parsed.count, 1);
    assert_int_equal(parsed.requests[0].op, GMD_OP_ALLOC);
    assert_int_equal(parsed.requests[0].bytes, 825968);
    assert_int_equal(parsed.requests[0].stream, 1);
    assert_int_equal(parsed.requests[0].device, 0);
    assert_int_equal(parsed.requests[0].expect, GMD_EXPECT_ANY);
    assert_int_equal(parsed.requests[0].line, 2);
    assert_string_equal(parsed.blocks.items[parsed.requests[0].block], "a");
}

TEST_F(text, s0_is_the_default_stream_whatever_is_named_first)
{
    parse_body("alloc a 1 copies\nalloc b 1 s0\n");
    assert_int_equal(parsed.requests[0].stream, 1);
    assert_int_equal(parsed.requests[1].stream, 0);
    assert_string_equal(parsed.streams.items[1], "copies");
}

TEST_F(text, sizes_reach_the_largest_number)
{
    parse_body("alloc a 18446744073709551615 s0\nalloc b 1.5GiB s0\nalloc c 0 s0\n");
    assert_int_equal(parsed.requests[0].bytes, UINT64_MAX);
    assert_int_equal(parsed.requests[1].bytes, 3 * GMD_GIB / 2);
    assert_int_equal(parsed.requests[2].bytes, 0);
}

TEST_F(text, free_use_and_record_are_on_the_block_s_device)
{
    parse_body("alloc a 1 s1 device 3\nuse a s2 100us\nrecord a s2\nfree a\n");
    assert_int_equal(parsed.requests[1].op, GMD_OP_USE);
    assert_int_equal(parsed.requests[1].duration_ns, 100000);
    assert_int_equal(parsed.requests[1].stream, 2);
    assert_int_equal(parsed.requests[2].op, GMD_OP_RECORD);
    assert_int_equal(parsed.requests[2].stream, 2);
    assert_int_equal(parsed.requests[3].op, GMD_OP_FREE);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(parsed.requests[i].device, 3);
        assert_int_equal(parsed.requests[i].block, 0);
    }
}

TEST_F(text, use_takes_10_us_where_nothing_is_said)
{
    parse_body("alloc a 1 s0\nuse a s0\n");
    assert_int_equal(parsed.requests[1].duration_ns, 10000);
}

TEST_F(text, wait_and_sync_name_streams_and_a_device)
{
    parse_body("wait s1 s2\nwait s1 s2 device 2\nsync s2\nsync\nsync device 1\nsync s1 device 1\n");
    assert_int_equal(parsed.requests[0].op, GMD_OP_WAIT);
    assert_int_equal(parsed.requests[0].stream, 1);
    assert_int_equal(parsed.requests[0].other_stream, 2);
    assert_int_equal(parsed.requests[1].device, 2);
    assert_int_equal(parsed.requests[2].op, GMD_OP_SYNC);
    assert_int_equal(parsed.requests[2].stream, 2);
    assert_int_equal(parsed.requests[3].stream, GMD_ALL_STREAMS);
    assert_int_equal(parsed.requests[4].stream, GMD_ALL_STREAMS);
    assert_int_equal(parsed.requests[4].device, 1);
    assert_int_equal(parsed.requests[5].stream, 1);
    assert_int_equal(parsed.requests[5].device, 1);
}

TEST_F(text, advance_empty_cache_fraction_and_fault_have_their_arguments)
{
    parse_body("advance 50us\nempty_cache\nfraction 0.5\nfraction 1 device 1\n"
               "fault cuMemSetAccess 3 2\n");
    assert_int_equal(parsed.requests[0].op, GMD_OP_ADVANCE);
    assert_int_equal(parsed.requests[0].duration_ns, 50000);
    assert_int_equal(parsed.requests[1].op, GMD_OP_EMPTY_CACHE);
    assert_int_equal(parsed.requests[2].op, GMD_OP_FRACTION);
    assert_true(parsed.requests[2].fraction == 0.5);
    assert_int_equal(parsed.requests[3].device, 1);
    assert_int_equal(parsed.requests[4].op, GMD_OP_FAULT);
    assert_int_equal(parsed.requests[4].count, 3);
    assert_int_equal(parsed.requests[4].error, 2);
    assert_string_equal(parsed.functions.items[parsed.requests[4].function], "cuMemSetAccess");
}

TEST_F(text, a_function_has_its_name_also_where_an_index_would_give_it)
{
    parse_body("fault f0 1 2\n");
    assert_string_equal(parsed.functions.items[0], "f0");
}

TEST_F(text, fault_may_hold_for_every_later_call)
{
    parse_body("fault cudaMalloc 1 2\nfault cudaMalloc 1 2 every\n");
    assert_int_equal(parsed.requests[0].every_later, 0);
    assert_int_equal(parsed.requests[1].every_later, 1);
}

TEST_F(text, a_pool_is_for_one_stream_or_for_all)
{
    parse_body("begin_pool p s1 device 1\nbegin_pool q\n");
    assert_int_equal(parsed.pools.count, 2);
    assert_int_equal(parsed.requests[0].op, GMD_OP_BEGIN_POOL);
    assert_int_equal(parsed.requests[0].stream, 1);
    assert_int_equal(parsed.requests[0].device, 1);
    assert_int_equal(parsed.requests[1].pool, 1);
    assert_true(parsed.requests[1].stream == GMD_ALL_STREAMS);
}

TEST_F(text, a_pool_may_be_begun_again_and_released_as_often)
{
    parse_body("begin_pool p\nend_pool p\nbegin_pool p\nrelease_pool p\n"
               "end_pool p\nrelease_pool p\nbegin_pool p s1\n");
    assert_int_equal(parsed.pools.count, 1);
    assert_int_equal(parsed.count, 7);
}

TEST(a_pool_that_cannot_be_there_is_refused)
{
    assert_body_refused("begin_pool p\nbegin_pool q\n",
                        "x.gmd:3: expected end_pool of the device's open pool before another "
                        "begin_pool, found 'q'");
    assert_body_refused("begin_pool p\nend_pool q\n",
                        "x.gmd:3: expected the pool that is open on the device, found 'q'");
    assert_body_refused("begin_pool p\nend_pool p device 1\n",
                        "x.gmd:3: expected the pool that is open on the device, found 'p'");
    assert_body_refused("begin_pool p\nrelease_pool p\n",
                        "x.gmd:3: expected end_pool before the last release_pool of an open pool, "
                        "found 'p'");
    assert_body_refused("release_pool p\n", "x.gmd:2: expected a pool that was begun on the device "
                                            "and is not released yet, found 'p'");
    assert_body_refused("begin_pool device\n", "x.gmd:2: expected a pool, found 'device'");
    assert_body_refused("begin_pool p 7\n", "x.gmd:2: expected a stream such as s1, found '7'");
}

TEST_F(text, a_capture_is_of_one_stream_and_ends_in_its_pool)
{
    parse_body("begin_capture p s1 device 1\nend_capture p device 1\n"
               "launch p s2 device 1\nrelease_pool p device 1\n");
    assert_int_equal(parsed.requests[0].op, GMD_OP_BEGIN_CAPTURE);
    assert_int_equal(parsed.requests[0].stream, 1);
    assert_int_equal(parsed.requests[0].device, 1);
    assert_int_equal(parsed.requests[1].op, GMD_OP_END_CAPTURE);
    assert_int_equal(parsed.requests[2].op, GMD_OP_LAUNCH);
    assert_int_equal(parsed.requests[2].stream, 2);
    assert_int_equal(parsed.pools.count, 1);
}

TEST_F(text, a_pool_is_kept_and_brought_back_while_it_is_held)
{
    parse_body("begin_pool p device 1\ncheckpoint_pool p device 1\nend_pool p device 1\n"
               "restore_pool p device 1\nrestore_pool p device 1\n");
    assert_int_equal(parsed.requests[1].op, GMD_OP_CHECKPOINT_POOL);
    assert_int_equal(parsed.requests[1].device, 1);
    assert_int_equal(parsed.requests[3].op, GMD_OP_RESTORE_POOL);
    assert_body_refused("checkpoint_pool p\n",
                        "x.gmd:2: expected a pool that was begun on the device and is not released "
                        "yet, found 'p'");
    assert_body_refused("begin_pool p\nend_pool p\ncheckpoint_pool p\nrelease_pool p\n"
                        "begin_pool p\nrestore_pool p\n",
                        "x.gmd:7: expected a pool with a checkpoint, by a checkpoint_pool on the "
                        "device, found 'p'");
    assert_body_refused("begin_pool p\ncheckpoint_pool p\nend_pool p\nbegin_capture p s1\n"
                        "restore_pool p\n",
                        "x.gmd:6: expected end_capture before a restore_pool, found 'p'");
}

TEST_F(text, a_pool_is_made_with_its_options)
{
    parse_body("begin_pool p s1 +use_on_oom +no_split device 1\nbegin_pool q +own_memory\n");
    assert_int_equal(parsed.requests[0].pool_options, GMD_POOL_NO_SPLIT | GMD_POOL_USE_ON_OOM);
    assert_int_equal(parsed.requests[0].stream, 1);
    assert_int_equal(parsed.requests[0].device, 1);
    assert_int_equal(parsed.requests[1].pool_options, GMD_POOL_OWN_MEMORY);
    assert_int_equal(parsed.requests[1].stream, GMD_ALL_STREAMS);
    assert_body_refused("begin_pool p +split\n",
                        "x.gmd:2: expected '+no_split', '+use_on_oom' or '+own_memory', each once, "
                        "found '+split'");
    assert_body_refused("begin_pool p +no_split +no_split\n",
                        "x.gmd:2: expected '+no_split', '+use_on_oom' or '+own_memory', each once, "
                        "found '+no_split'");
    assert_body_refused("begin_pool p\nend_pool p\nbegin_pool p +no_split\n",
                        "x.gmd:4: expected the options of a pool in the begin_pool that makes it, "
                        "found 'p'");
    assert_body_refused("begin_pool p +use_on_oom\nend_pool p\nbegin_capture p s1\n",
                        "x.gmd:4: expected a capture into a pool without +use_on_oom, found 'p'");
    assert_body_refused("begin_pool p +use_on_oom\ncheckpoint_pool p\n",
                        "x.gmd:3: expected a pool without +use_on_oom, found 'p'");
    parse_body("begin_pool p +no_split\nend_pool p\nrelease_pool p\nbegin_pool p +use_on_oom\n");
    assert_int_equal(parsed.requests[3].pool_options, GMD_POOL_USE_ON_OOM);
}

TEST_F(text, two_captures_may_share_a_pool)
{
    parse_body("begin_capture p s1\nend_capture p\nbegin_capture p s2\n"
               "end_capture p\nrelease_pool p\nlaunch p s1\nrelease_pool p\n");
    assert_int_equal(parsed.count, 7);
}

TEST(a_capture_that_cannot_be_there_is_refused)
{
    assert_body_refused("begin_capture p\n",
                        "x.gmd:2: expected a stream such as s1, found the end of the line");
    assert_body_refused("begin_capture p s0\n",
                        "x.gmd:2: expected a capture of another stream than "
                        "the default one, found 'p'");
    assert_body_refused("begin_capture p s1\nbegin_capture q s1 device 1\n",
                        "x.gmd:3: expected end_capture before another begin_capture, found 'q'");
    assert_body_refused("begin_pool p\nbegin_capture q s1\n",
                        "x.gmd:3: expected end_pool of the device's open pool before another "
                        "begin_pool, found 'q'");
    assert_body_refused("begin_capture p s1\nend_pool p\n",
                        "x.gmd:3: expected end_capture: a capture works in the pool, found 'p'");
    assert_body_refused("begin_pool p\nend_capture p\n",
                        "x.gmd:3: expected end_pool: no capture works in the pool, found 'p'");
    assert_body_refused("end_capture p\n",
                        "x.gmd:2: expected the pool that is open on the device, found 'p'");
}

TEST(a_graph_that_cannot_be_there_is_refused)
{
    assert_body_refused("begin_pool p\nend_pool p\nlaunch p s1\n",
                        "x.gmd:4: expected a pool with a graph, by an end_capture on the device, "
                        "found 'p'");
    assert_body_refused("begin_capture p s1\nlaunch p s1\n",
                        "x.gmd:3: expected end_capture before a launch, found 'p'");
    assert_body_refused("begin_pool q\nend_pool q\nbegin_capture p s1\nrelease_pool q\n",
                        "x.gmd:5: expected end_capture before a release_pool, found 'q'");
    assert_body_refused("begin_capture p s1\nend_capture p\nrelease_pool p\nlaunch p s1\n",
                        "x.gmd:5: expected a pool with a graph, by an end_capture on the device, "
                        "found 'p'");
}

TEST_F(text, device_destroy_and_budget_have_their_arguments)
{
    parse_body("device 3\ndestroy s2 device 1\nbudget 1MiB device 2\nbudget none\n");
    assert_int_equal(parsed.requests[0].op, GMD_OP_DEVICE);
    assert_int_equal(parsed.requests[0].device, 3);
    assert_int_equal(parsed.requests[1].op, GMD_OP_DESTROY);
    assert_string_equal(parsed.streams.items[parsed.requests[1].stream], "s2");
    assert_int_equal(parsed.requests[1].device, 1);
    assert_int_equal(parsed.requests[2].op, GMD_OP_BUDGET);
    assert_int_equal(parsed.requests[2].bytes, 1 << 20);
    assert_int_equal(parsed.requests[2].device, 2);
    assert_true(parsed.requests[3].bytes == GMD_NO_BUDGET);
}

TEST_F(text, whether_handles_come_again_is_read)
{
    parse_body("handles reused\n");
    assert_true(parsed.conditions.reuses_handles);
    parse_body("handles unique\n");
    assert_false(parsed.conditions.reuses_handles);
}

TEST_F(text, whether_the_clock_follows_the_trace_is_read)
{
    parse_body("clock trace\n");
    assert_true(parsed.conditions.moves_clock);
    parse_body("clock host\n");
    assert_false(parsed.conditions.moves_clock);
}

TEST_F(text, placements_are_read)
{
    parse_body("placement rising\n");
    assert_int_equal(parsed.conditions.placement.kind, GMD_PLACEMENT_RISING);
    parse_body("placement  seed\t18446744073709551615 # the last\n");
    assert_int_equal(parsed.conditions.placement.kind, GMD_PLACEMENT_SEEDED);
    assert_int_equal(parsed.conditions.placement.seed, UINT64_MAX);
}

TEST_F(text, few_switches_of_threads_have_a_number_steps_and_a_seed)
{
    parse_body("interleave bounded 2 steps 500 seed 7\n");
    assert_int_equal(parsed.conditions.interleave.kind, GMD_SCHEDULE_BOUNDED);
    assert_int_equal(parsed.conditions.interleave.depth, 2);
    assert_int_equal(parsed.conditions.interleave.steps, 500);
    assert_int_equal(parsed.conditions.interleave.seed, 7);
}

TEST_F(text, schedules_and_interleavings_are_read)
{
    parse_body("schedule lazy\ninterleave seed 7\n");
    assert_int_equal(parsed.conditions.schedule.kind, GMD_SCHEDULE_LAZY);
    assert_int_equal(parsed.conditions.interleave.kind, GMD_SCHEDULE_SEEDED);
    assert_int_equal(parsed.conditions.interleave.seed, 7);
    parse_body("schedule explicit 0 255\t3 # first, last, fourth\n");
    assert_int_equal(parsed.conditions.schedule.kind, GMD_SCHEDULE_EXPLICIT);
    assert_int_equal(parsed.conditions.schedule.choice_count, 3);
    assert_int_equal(parsed.conditions.schedule.choices[1], 255);
    assert_int_equal(parsed.conditions.interleave.kind, GMD_SCHEDULE_UNSTATED);
}

TEST_F(text, expectations_are_kept)
{
    parse_body("expect oom b 4GiB s1\nexpect alloc b 1 s1\n");
    assert_int_equal(parsed.requests[0].expect, GMD_EXPECT_OOM);
    assert_int_equal(parsed.requests[0].bytes, 4 * GMD_GIB);
    assert_int_equal(parsed.requests[1].expect, GMD_EXPECT_ALLOC);
    assert_int_equal(parsed.requests[1].block, parsed.requests[0].block);
}

TEST_F(text, lines_after_thread_run_on_it)
{
    parse_body("empty_cache\nthread t2\nempty_cache\nthread main\nempty_cache\n");
    assert_int_equal(parsed.requests[0].thread, 0);
    assert_int_equal(parsed.requests[1].thread, 1);
    assert_int_equal(parsed.requests[2].thread, 0);
}

TEST_F(text, an_id_may_be_used_again_after_its_free)
{
    parse_body("alloc a 1 s0\nfree a\nalloc a 2 s0 device 1\nfree a\n");
    assert_int_equal(parsed.blocks.count, 1);
    assert_int_equal(parsed.requests[3].device, 1);
}

TEST_F(text, names_that_an_index_gives_anyway_are_not_kept)
{
    parse_body("alloc b0 1 s1\nalloc b7 1 s1\n");
    assert_null(parsed.blocks.items[0]);
    assert_string_equal(parsed.blocks.items[1], "b7");
    assert_null(parsed.streams.items[1]);
}

/* --- the shape of the text --------------------------------------------------------------- */

TEST_F(text, header_lines_are_read)
{
    parse_body("devices 2\ncapacity 2560MiB\nconf a:1, b:[1,2]  \nstreams s0 x s2\n");
    assert_int_equal(parsed.conditions.device_count, 2);
    assert_int_equal(parsed.conditions.capacity_bytes, 2560 * GMD_MIB);
    assert_string_equal(parsed.conditions.conf, "a:1, b:[1,2]");
    assert_int_equal(parsed.streams.count, 3);
    assert_string_equal(parsed.streams.items[1], "x");
    assert_null(parsed.streams.items[2]);
}

TEST_F(text, comments_blank_lines_tabs_and_crlf_are_tolerated)
{
    parse_ok("gmd-trace 1 # first\r\n\r\n# caf\xc3\xa9\r\n\t alloc\ta  1\ts1 # a\r\n  \nfree a#x");
    assert_int_equal(parsed.count, 2);
    assert_int_equal(parsed.requests[0].line, 4);
    assert_int_equal(parsed.requests[1].line, 6);
}

TEST_F(text, a_trace_may_hold_no_requests)
{
    parse_ok("gmd-trace 1");
    assert_int_equal(parsed.count, 0);
    assert_int_equal(parsed.streams.count, 1);
    assert_int_equal(parsed.threads.count, 1);
}

TEST(every_malformed_line_is_refused_with_what_was_expected)
{
    static const char *const cases[][2] = {
        {"aloc a 1 s0",
         "expected a request such as 'alloc' or 'free' (did you mean alloc?), found 'aloc'"},
        {"alloc", "expected the id of a block, found the end of the line"},
        {"alloc 1a 1 s0", "expected the id of a block, found '1a'"},
        {"alloc a/b 1 s0", "expected the id of a block, found 'a/b'"},
        {"alloc a", "expected a size such as 512, 20MiB or 1.5GiB, found the end of the line"},
        {"alloc a -1 s0", "expected a size such as 512, 20MiB or 1.5GiB, found '-1'"},
        {"alloc a 18446744073709551616 s0",
         "expected a size such as 512, 20MiB or 1.5GiB, found '18446744073709551616'"},
        {"alloc a 1", "expected a stream such as s1, found the end of the line"},
        {"alloc a 1 2", "expected a stream such as s1, found '2'"},
        {"alloc a 1 device 1", "expected a stream such as s1, found 'device'"},
        {"alloc a 1 s0 x", "expected 'device' or the end of the line, found 'x'"},
        {"alloc a 1 s0 device",
         "expected the number of a device of this trace, from 0, found the end of the line"},
        {"alloc a 1 s0 device 16",
         "expected the number of a device of this trace, from 0, found '16'"},
        {"alloc a 1 s0 device 1 x", "expected the end of the line, found 'x'"},
        {"expect", "expected 'alloc' or 'oom', found the end of the line"},
        {"expect free a", "expected 'alloc' or 'oom', found 'free'"},
        {"free a", "expected the id of an allocated block, found 'a'"},
        {"use a s0", "expected the id of an allocated block, found 'a'"},
        {"record", "expected the id of an allocated block, found the end of the line"},
        {"wait s1", "expected a stream such as s1, found the end of the line"},
        {"wait s1 s2 s3", "expected 'device' or the end of the line, found 's3'"},
        {"sync 5", "expected a stream such as s1, found '5'"},
        {"advance",
         "expected a duration such as 500ns, 10us, 2ms or 1s, found the end of the line"},
        {"advance 5", "expected a duration such as 500ns, 10us, 2ms or 1s, found '5'"},
        {"empty_cache now", "expected the end of the line, found 'now'"},
        {"fraction 1.5", "expected a fraction from 0 to 1, found '1.5'"},
        {"fraction -0.5", "expected a fraction from 0 to 1, found '-0.5'"},
        {"fraction nan", "expected a fraction from 0 to 1, found 'nan'"},
        {"fraction 0x1p-1", "expected a fraction from 0 to 1, found '0x1p-1'"},
        {"fraction 0.5.5", "expected a fraction from 0 to 1, found '0.5.5'"},
        {"fault 3 2", "expected the name of a CUDA function, found '3'"},
        {"fault cudaMalloc 0 2", "expected which call fails, from 1, found '0'"},
        {"fault cudaMalloc 1 0", "expected an error code from 1, found '0'"},
        {"fault cudaMalloc 4294967296 2", "expected which call fails, from 1, found '4294967296'"},
        {"fault cudaMalloc 1 2 each", "expected 'every' or the end of the line, found 'each'"},
        {"fault cudaMalloc 1 2 every x", "expected the end of the line, found 'x'"},
        {"device x", "expected the number of a device of this trace, from 0, found 'x'"},
        {"destroy s0", "expected a stream other than the default one, found 's0'"},
        {"destroy", "expected a stream such as s1, found the end of the line"},
        {"budget", "expected a size such as 512, 20MiB or 1.5GiB, found the end of the line"},
        {"budget none x", "expected 'device' or the end of the line, found 'x'"},
        {"placement", "expected 'rising' or 'seed N', found the end of the line"},
        {"placement falling", "expected 'rising' or 'seed N', found 'falling'"},
        {"placement rising 1", "expected 'rising' or 'seed N', found 'rising 1'"},
        {"placement seed -1", "expected 'rising' or 'seed N', found 'seed -1'"},
        {"placement seed 1 2", "expected 'rising' or 'seed N', found 'seed 1 2'"},
        {"handles", "expected 'unique' or 'reused', found the end of the line"},
        {"handles new", "expected 'unique' or 'reused', found 'new'"},
        {"handles reused 1", "expected the end of the line, found '1'"},
        {"schedule soon",
         "expected 'timed', 'eager', 'lazy', 'seed N' or 'explicit C...', found 'soon'"},
        {"schedule lazy 1", "expected the end of the line, found '1'"},
        {"schedule seed", "expected a seed, a whole number, found the end of the line"},
        {"schedule seed -1", "expected a seed, a whole number, found '-1'"},
        {"schedule explicit", "expected a choice from 0 to 255, found the end of the line"},
        {"schedule explicit 0 256", "expected a choice from 0 to 255, found '256'"},
        {"interleave timed",
         "expected 'seed N', 'bounded C steps K seed N', 'pct D steps K seed N' or "
         "'explicit C...', found 'timed'"},
        {"interleave pct 0 steps 9 seed 1", "expected a depth from 1 to 16, found '0'"},
        {"interleave bounded 17 steps 9 seed 1",
         "expected a number of preemptions, 1 to 16, found '17'"},
        {"interleave pct 2 seed 1", "expected 'steps', found 'seed'"},
        {"interleave pct 2 steps 0 seed 1", "expected a number of steps, 1 or more, found '0'"},
        {"interleave bounded 2 steps 9", "expected 'seed', found the end of the line"},
        {"thread", "expected a thread, found the end of the line"},
        {"devices 0", "expected a number of devices from 1 to 16, found '0'"},
        {"devices 17", "expected a number of devices from 1 to 16, found '17'"},
        {"capacity 0", "expected a size over 0, found 0"},
        {"conf",
         "expected allocator settings, at most 4096 bytes without control characters, found the "
         "end of the line"},
        {"conf a\rb", "expected allocator settings, at most 4096 bytes without control characters, "
                      "found 'a\\x0db'"},
        {"streams s1", "expected the default stream, s0, as the first, found 's1'"},
        {"streams s0 s1 s1", "expected a stream that is not in the list yet, found 's1'"},
        {"gmd-trace 1", "expected a request such as 'alloc' or 'free', found 'gmd-trace'"},
        {"alloc a\x01 1 s0", "expected the id of a block, found 'a\\x01'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char message[512];
        snprintf(message, sizeof message, "x.gmd:2: %s", cases[i][1]);
        assert_body_refused(cases[i][0], message);
    }
}

TEST(the_first_line_must_name_the_format)
{
    const char *missing = "alloc a 1 s0\n", *newer = "gmd-trace 2\n";
    assert_text_refused(missing, strlen(missing),
                        "x.gmd:1: expected 'gmd-trace 1' as the first line, found 'alloc'");
    assert_text_refused(newer, strlen(newer),
                        "x.gmd:1: expected version 1 of the format, found '2'");
    assert_text_refused(
        "", 0, "x.gmd:1: expected 'gmd-trace 1' as the first line, found the end of the line");
}

TEST(errors_name_the_line_they_are_on)
{
    assert_body_refused("# one\n\nalloc a 1 s0\nfree a\nfree a\n",
                        "x.gmd:6: expected the id of an allocated block, found 'a'");
}

TEST(an_id_cannot_be_allocated_twice)
{
    assert_body_refused("alloc a 1 s0\nalloc a 1 s0\n",
                        "x.gmd:3: expected the id of a block that is not allocated, found 'a'");
}

TEST(a_block_that_must_not_be_served_is_not_allocated)
{
    assert_body_refused("expect oom a 1 s0\nfree a\n",
                        "x.gmd:3: expected the id of an allocated block, found 'a'");
}

TEST(header_lines_come_first_and_once)
{
    assert_body_refused("empty_cache\ndevices 1\n",
                        "x.gmd:3: expected header lines before the first request, found 'devices'");
    assert_body_refused("devices 1\ndevices 1\n",
                        "x.gmd:3: expected one line 'devices', found a second");
}

TEST(devices_are_those_of_the_header)
{
    assert_body_refused(
        "devices 2\nalloc a 1 s0 device 2\n",
        "x.gmd:3: expected the number of a device of this trace, from 0, found '2'");
}

TEST_F(text, names_are_at_most_127_bytes_long)
{
    char name[129], body[256];
    memset(name, 'x', sizeof name);
    name[127] = 0;
    snprintf(body, sizeof body, "alloc %s 1 s0", name);
    parse_body(body);
    name[127] = 'x';
    name[128] = 0;
    char quoted[QUOTE_BYTES], message[256];
    snprintf(body, sizeof body, "alloc %s 1 s0", name);
    snprintf(message, sizeof message, "x.gmd:2: expected the id of a block, found %s",
             quote_text(name, strlen(name), quoted));
    assert_body_refused(body, message);
}

TEST(at_most_64_threads_are_possible)
{
    char text[4096];
    int size = snprintf(text, sizeof text, "gmd-trace 1\n");
    for (int i = 1; i <= GMD_MAX_THREADS; i++) {
        size += snprintf(text + size, sizeof text - (size_t)size, "thread w%d\n", i);
    }
    assert_text_refused(
        text, (size_t)size,
        "x.gmd:65: expected a thread: at most 64 are possible, found 'w64' as one more");
}

TEST(bytes_that_are_no_text_are_refused_by_place)
{
    static const char nul[] = "gmd-trace 1\nfree\0 a\n", latin[] = "gmd-trace 1\n# caf\xe9\n";
    assert_text_refused(nul, sizeof nul - 1,
                        "x.gmd:2: byte 5 of the line is 0x00: expected UTF-8 text without NUL");
    assert_text_refused(latin, sizeof latin - 1,
                        "x.gmd:2: byte 6 of the line is 0xe9: expected UTF-8 text without NUL");
}

TEST(utf8_is_checked_as_the_standard_says)
{
    static const struct {
        const char *text;
        size_t good;
    } cases[] = {
        {"a\xc3\xa9", 3},    {"\xf0\x9f\x98\x80", 4},   {"\xc0\x80", 0},        {"\xe0\x80\x80", 0},
        {"\xed\xa0\x80", 0}, {"\xf4\x90\x80\x80", 0},   {"a\xe2\x82", 1},       {"\x80", 0},
        {"\xf0\x9f\x98", 0}, {"ab\xe2\x82\xac\xff", 5}, {"\xf5\x80\x80\x80", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(utf8_prefix(cases[i].text, strlen(cases[i].text)), cases[i].good);
    }
}

/* --- writing ----------------------------------------------------------------------------- */

TEST_F(text, few_switches_of_threads_are_written_as_they_were_read)
{
    static const char *const lines[] = {"interleave bounded 16 steps 4294967295 seed 1",
                                        "interleave pct 3 steps 500 seed 18446744073709551615"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char whole[200];
        snprintf(whole, sizeof whole, "gmd-trace 1\n%s\nalloc a 1 s1\nthread t\nfree a\n",
                 lines[i]);
        assert_rewritten(whole, whole);
    }
}

TEST_F(text, what_was_read_is_written_the_same)
{
    const char *text = "gmd-trace 1\n"
                       "devices 2\n"
                       "capacity 2560MiB\n"
                       "conf max_split_size_mb:128\n"
                       "placement seed 3\n"
                       "handles reused\n"
                       "schedule explicit 0 3 255\n"
                       "interleave seed 18446744073709551615\n"
                       "alloc a 825968 s1\n"
                       "use a s2 100us\n"
                       "record a s2\n"
                       "free a\n"
                       "wait s1 s2\n"
                       "sync s2\n"
                       "device 1\n"
                       "destroy s2\n"
                       "destroy s3 device 1\n"
                       "budget 1GiB device 1\n"
                       "budget none\n"
                       "begin_pool graph s2 device 1\n"
                       "end_pool graph device 1\n"
                       "release_pool graph device 1\n"
                       "begin_pool p1\n"
                       "sync\n"
                       "sync device 1\n"
                       "advance 50us\n"
                       "empty_cache\n"
                       "fraction 0.5\n"
                       "fraction 0.1 device 1\n"
                       "fault cuMemSetAccess 3 2\n"
                       "fault cuMemSetAccess 3 2 every\n"
                       "expect oom b 4GiB s1\n"
                       "thread t2\n"
                       "expect alloc b 18446744073709551615 s1 device 1\n"
                       "thread main\n"
                       "alloc a 0 s0\n";
    assert_rewritten(text, text);
}

TEST_F(text, streams_are_listed_where_their_order_would_change)
{
    const char *text = "gmd-trace 1\nstreams s0 s1 s2\nalloc a 1 s2\nalloc b 1 s1\n";
    assert_rewritten(text, text);
    assert_rewritten("gmd-trace 1\nstreams s0 s1\nalloc a 1 s1\n", "gmd-trace 1\nalloc a 1 s1\n");
}

TEST_F(text, durations_and_fractions_are_written_short_and_exact)
{
    const char *text =
        "gmd-trace 1\nadvance 0ns\nadvance 1500us\nadvance 2s\nadvance 18446744073709551615ns\n"
        "fraction 0.1\nfraction 0.30000000000000004\nfraction 1\nfraction 1e-09\n";
    assert_rewritten(text, text);
}

TEST_F(text, unnamed_entries_are_written_as_a_letter_and_their_index)
{
    uint32_t index;
    gmd_trace_init(&built);
    gmd_names_add(&built.blocks, NULL, &index, NULL);
    gmd_names_add(&built.blocks, NULL, &index, NULL);
    gmd_names_add(&built.streams, NULL, &index, NULL);
    gmd_trace_append(&built,
                     &(gmd_request){.op = GMD_OP_ALLOC, .block = 1, .bytes = 7, .stream = 1}, NULL);
    write_ok(&built);
    assert_string_equal(written, "gmd-trace 1\nalloc b1 7 s1\n");
}

/* A scenario may call every activation the same; a text trace cannot. */
TEST_F(text, names_are_made_valid_and_unique)
{
    static const char *const names[] = {"loss", "loss", "layer 1/weight", "",      "0",
                                        "b5",   NULL,   "device",         "loss.1"};
    uint32_t index;
    gmd_trace_init(&built);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        gmd_names_add(&built.blocks, names[i], &index, NULL);
        gmd_trace_append(&built, &(gmd_request){.op = GMD_OP_ALLOC, .block = index}, NULL);
    }
    write_ok(&built);
    assert_string_equal(
        written, "gmd-trace 1\nalloc loss 0 s0\nalloc loss.1 0 s0\nalloc layer_1_weight 0 s0\n"
                 "alloc _ 0 s0\nalloc _0 0 s0\nalloc b5 0 s0\nalloc b6 0 s0\n"
                 "alloc device.7 0 s0\nalloc loss.1.8 0 s0\n");
    parse_ok(written);
}

TEST_F(text, a_name_gives_way_to_an_unnamed_entry)
{
    uint32_t index;
    gmd_trace_init(&built);
    gmd_names_add(&built.blocks, "b1", &index, NULL);
    gmd_names_add(&built.blocks, NULL, &index, NULL);
    gmd_trace_append(&built, &(gmd_request){.op = GMD_OP_ALLOC, .block = 0}, NULL);
    gmd_trace_append(&built, &(gmd_request){.op = GMD_OP_ALLOC, .block = 1}, NULL);
    write_ok(&built);
    assert_string_equal(written, "gmd-trace 1\nalloc b1.0 0 s0\nalloc b1 0 s0\n");
}

static gmd_status write_status(const gmd_trace *t, gmd_error *error)
{
    FILE *out = fopen("/dev/null", "w");
    assert_non_null(out);
    gmd_status status = gmd_trace_write(t, out, error);
    fclose(out);
    return status;
}

TEST_F(text, settings_that_are_no_line_cannot_be_written)
{
    static const char *const confs[] = {"a\nb", "a#b", " a", "a ", "a\rb", "a\tb", "\xff"};
    for (size_t i = 0; i < sizeof confs / sizeof *confs; i++) {
        gmd_error error = {""};
        gmd_trace_init(&built);
        built.conditions.conf = strdup(confs[i]);
        assert_int_equal(write_status(&built, &error), GMD_BAD_INPUT);
        assert_contains(error.text, "cannot be written into a trace");
        gmd_trace_free(&built);
    }
}

TEST_F(text, a_request_for_what_the_trace_does_not_have_is_not_written)
{
    static const gmd_request requests[] = {
        {.op = GMD_OP_FREE, .block = 0},         {.op = GMD_OP_SYNC, .stream = 1},
        {.op = GMD_OP_WAIT, .other_stream = 1},  {.op = GMD_OP_FAULT, .function = 0},
        {.op = GMD_OP_EMPTY_CACHE, .thread = 1}, {.op = GMD_OP_COUNT}};
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        gmd_error error = {""};
        gmd_trace_init(&built);
        gmd_trace_append(&built, &requests[i], NULL);
        assert_int_equal(write_status(&built, &error), GMD_FAILED);
        assert_string_equal(error.text, "request 0 refers to what its trace does not have");
        gmd_trace_free(&built);
    }
}

TEST_F(text, a_full_disk_is_reported)
{
    gmd_error error = {""};
    FILE *full = fopen("/dev/full", "w");
    if (!full) {
        skip();
    }
    parse_body("empty_cache\n");
    gmd_status status = gmd_trace_write(&parsed, full, &error);
    fclose(full);
    assert_int_equal(status, GMD_FAILED);
    assert_contains(error.text, "cannot be written");
}

TEST_F(text, a_request_is_shown_as_its_line)
{
    char text[64], small[8];
    parse_body("alloc act 20MiB s1 device 1\nuse act s2\n");
    assert_string_equal(gmd_request_text(&parsed, &parsed.requests[0], text, sizeof text),
                        "alloc act 20MiB s1 device 1");
    assert_string_equal(gmd_request_text(&parsed, &parsed.requests[1], text, sizeof text),
                        "use act s2 10us");
    assert_string_equal(gmd_request_text(&parsed, &parsed.requests[0], small, sizeof small),
                        "alloc a");
}

/* --- any trace --------------------------------------------------------------------------- */

typedef struct generator {
    uint64_t random;
    gmd_trace *trace;
    uint32_t live[64];
    size_t live_count;
} generator;

static uint64_t below(generator *g, uint64_t bound)
{
    return next_random(&g->random) % bound;
}

static void add_names(generator *g, gmd_names *names, uint64_t count)
{
    static const char *const odd[] = {"x",     "loss", "b3", "s2",         "t1",
                                      "a.b-c", "_",    "9",  "caf\xc3\xa9"};
    uint32_t index;
    for (uint64_t i = 0; i < count; i++) {
        const char *name = below(g, 2) ? NULL : odd[below(g, sizeof odd / sizeof *odd)];
        assert_int_equal(gmd_names_add(names, name, &index, NULL), GMD_OK);
    }
}

static void add_alloc(generator *g)
{
    uint64_t shift = below(g, 64);
    gmd_request r = {.op = GMD_OP_ALLOC,
                     .expect = (uint8_t)below(g, 3),
                     .device = (uint8_t)below(g, 2),
                     .thread = (uint8_t)below(g, g->trace->threads.count),
                     .stream = (uint32_t)below(g, g->trace->streams.count),
                     .bytes = next_random(&g->random) >> shift};
    r.block = g->trace->blocks.count;
    add_names(g, &g->trace->blocks, 1);
    if (r.expect != GMD_EXPECT_OOM && g->live_count < 64) {
        g->live[g->live_count++] = (uint32_t)g->trace->count;
    } else {
        r.expect = GMD_EXPECT_OOM;
    }
    assert_int_equal(gmd_trace_append(g->trace, &r, NULL), GMD_OK);
}

static void add_use_of_live_block(generator *g)
{
    static const uint8_t ops[] = {GMD_OP_FREE, GMD_OP_USE, GMD_OP_RECORD};
    size_t which = below(g, g->live_count);
    const gmd_request *alloc = &g->trace->requests[g->live[which]];
    gmd_request r = {.op = ops[below(g, 3)], .block = alloc->block, .device = alloc->device};
    if (r.op == GMD_OP_FREE) {
        g->live[which] = g->live[--g->live_count];
    } else {
        r.stream = (uint32_t)below(g, g->trace->streams.count);
    }
    if (r.op == GMD_OP_USE) {
        r.duration_ns = below(g, 5) * (below(g, 2) ? 1000 : 77);
    }
    assert_int_equal(gmd_trace_append(g->trace, &r, NULL), GMD_OK);
}

static void add_other(generator *g)
{
    static const uint8_t ops[] = {GMD_OP_WAIT,        GMD_OP_SYNC,     GMD_OP_ADVANCE,
                                  GMD_OP_EMPTY_CACHE, GMD_OP_FRACTION, GMD_OP_FAULT,
                                  GMD_OP_DEVICE,      GMD_OP_DESTROY,  GMD_OP_BUDGET};
    gmd_request r = {.op = ops[below(g, 9)]};
    if (r.op == GMD_OP_DESTROY && g->trace->streams.count == 1) {
        r.op = GMD_OP_DEVICE;
    }
    switch (r.op) {
    case GMD_OP_WAIT:
        r.other_stream = (uint32_t)below(g, g->trace->streams.count);
        r.stream = (uint32_t)below(g, g->trace->streams.count);
        r.device = (uint8_t)below(g, 2);
        break;
    case GMD_OP_SYNC:
        r.stream = below(g, 2) ? GMD_ALL_STREAMS : (uint32_t)below(g, g->trace->streams.count);
        r.device = (uint8_t)below(g, 2);
        break;
    case GMD_OP_ADVANCE:
        r.duration_ns = next_random(&g->random) >> below(g, 64);
        break;
    case GMD_OP_FRACTION:
        r.fraction = (double)(next_random(&g->random) >> 11) / 9007199254740992.0;
        break;
    case GMD_OP_FAULT:
        r.function = (uint32_t)below(g, g->trace->functions.count);
        r.count = 1 + (uint32_t)below(g, 100);
        r.error = 1 + (uint32_t)below(g, 100);
        r.every_later = (uint8_t)below(g, 2);
        break;
    case GMD_OP_DEVICE:
        r.device = (uint8_t)below(g, 2);
        break;
    case GMD_OP_DESTROY:
        r.stream = 1 + (uint32_t)below(g, g->trace->streams.count - 1);
        r.device = (uint8_t)below(g, 2);
        break;
    case GMD_OP_BUDGET:
        r.bytes = below(g, 4) ? next_random(&g->random) >> below(g, 64) : GMD_NO_BUDGET;
        r.device = (uint8_t)below(g, 2);
        break;
    default:
        break;
    }
    assert_int_equal(gmd_trace_append(g->trace, &r, NULL), GMD_OK);
}

static void build_random(uint64_t seed)
{
    generator g = {.random = seed, .trace = &built};
    gmd_trace_free(&built);
    gmd_trace_init(&built);
    built.conditions.device_count = below(&g, 2) ? 2 : 0;
    built.conditions.capacity_bytes = below(&g, 2) * (1 + below(&g, 1 << 30));
    built.conditions.conf = below(&g, 2) ? strdup("a:1, b:2") : NULL;
    built.conditions.reuses_handles = below(&g, 2);
    built.conditions.moves_clock = below(&g, 2);
    built.conditions.placement =
        below(&g, 2) ? (gmd_placement){.kind = GMD_PLACEMENT_SEEDED, .seed = below(&g, 9)}
                     : (gmd_placement){.kind = (gmd_placement_kind)below(&g, 2)};
    built.conditions.schedule = (gmd_schedule){.kind = (gmd_schedule_kind)below(&g, 5), .seed = 0};
    if (below(&g, 2)) {
        built.conditions.interleave =
            (gmd_schedule){.kind = GMD_SCHEDULE_SEEDED, .seed = below(&g, 9)};
    }
    add_names(&g, &built.streams, below(&g, 4));
    add_names(&g, &built.threads, below(&g, 3));
    add_names(&g, &built.functions, 2);
    for (uint64_t left = below(&g, 60); left > 0; left--) {
        switch (below(&g, 3)) {
        case 0:
            add_alloc(&g);
            break;
        case 1:
            g.live_count ? add_use_of_live_block(&g) : add_alloc(&g);
            break;
        default:
            add_other(&g);
        }
    }
}

static void assert_same_requests(const gmd_trace *a, const gmd_trace *b)
{
    assert_int_equal(a->count, b->count);
    assert_int_equal(a->conditions.device_count, b->conditions.device_count);
    assert_int_equal(a->conditions.capacity_bytes, b->conditions.capacity_bytes);
    assert_true(gmd_placement_equal(&a->conditions.placement, &b->conditions.placement));
    assert_int_equal(a->conditions.schedule.kind, b->conditions.schedule.kind);
    assert_int_equal(a->conditions.interleave.kind, b->conditions.interleave.kind);
    assert_int_equal(a->conditions.interleave.seed, b->conditions.interleave.seed);
    for (size_t i = 0; i < a->count; i++) {
        const gmd_request *x = &a->requests[i], *y = &b->requests[i];
        assert_int_equal(x->op, y->op);
        assert_int_equal(x->expect, y->expect);
        assert_int_equal(x->device, y->device);
        assert_int_equal(x->stream, y->stream);
        if (x->op == GMD_OP_WAIT) {
            assert_int_equal(x->other_stream, y->other_stream);
        }
        assert_int_equal(x->bytes, y->bytes); /* or whatever shares its place */
    }
}

TEST_F(text, a_written_trace_reads_back_as_the_same_requests)
{
    for (uint64_t seed = 1; seed <= 500; seed++) {
        build_random(seed);
        write_ok(&built);
        parse_ok(written);
        assert_same_requests(&built, &parsed);
        free(input);
        input = strdup(written);
        write_ok(&parsed);
        assert_string_equal(input, written);
    }
}

TEST_F(text, every_truncation_is_read_or_refused)
{
    build_random(3);
    write_ok(&built);
    for (size_t cut = 0; cut <= strlen(written); cut++) {
        gmd_error error = {""};
        free(input);
        input = malloc(cut ? cut : 1); /* no longer: a sanitizer sees what is read behind it */
        assert_non_null(input);
        memcpy(input, written, cut);
        gmd_trace_free(&parsed);
        gmd_status status = gmd_trace_parse(&parsed, input, cut, "x", &error);
        assert_true(status == GMD_OK || (status == GMD_BAD_INPUT && error.text[0]));
    }
}

TEST_F(text, two_hundred_thousand_blocks_are_found_in_linear_time)
{
    enum { BLOCKS = 200000 };
    input = malloc((size_t)BLOCKS * 64);
    assert_non_null(input);
    char *at = input;
    at += sprintf(at, "gmd-trace 1\n");
    for (int i = 0; i < BLOCKS; i++) {
        at += sprintf(at, "alloc block_%d 512 s1\n", i);
    }
    for (int i = 0; i < BLOCKS; i++) {
        at += sprintf(at, "free block_%d\n", i);
    }
    assert_int_equal(gmd_trace_parse(&parsed, input, (size_t)(at - input), "x", NULL), GMD_OK);
    assert_int_equal(parsed.blocks.count, BLOCKS);
}

/* --- repeats ----------------------------------------------------------------------------- */

static void assert_reads_as(const char *body, const char *other)
{
    parse_body(body);
    gmd_trace first = parsed;
    parsed = (gmd_trace){0};
    parse_body(other);
    assert_int_equal(first.count, parsed.count);
    for (size_t i = 0; i < first.count; i++) {
        char x[200], y[200];
        assert_string_equal(gmd_request_text(&first, &first.requests[i], x, sizeof x),
                            gmd_request_text(&parsed, &parsed.requests[i], y, sizeof y));
        assert_int_equal(first.requests[i].thread, parsed.requests[i].thread);
    }
    gmd_trace_free(&first);
}

TEST_F(text, a_repeat_stands_for_its_lines_as_often_as_it_says)
{
    assert_reads_as("repeat 3 {\n  alloc a 1 s1 # a\n  free a\n}\nsync\n",
                    "alloc a 1 s1\nfree a\nalloc a 1 s1\nfree a\nalloc a 1 s1\nfree a\nsync\n");
}

TEST_F(text, a_percent_sign_is_the_number_of_the_turn)
{
    assert_reads_as("repeat 2 {\nthread t%1\nalloc b% 1 s%7 device %\n}\n"
                    "repeat 2 {\nfree b%1-\n}\n",
                    "thread t1\nalloc b0 1 s7\nthread t2\nalloc b1 1 s8 device 1\n"
                    "free b1\nfree b0\n");
}

TEST(a_repeat_that_cannot_be_there_is_refused)
{
    assert_body_refused("repeat 0 {\n}\n",
                        "x.gmd:2: expected how often, from 1 to 1048576, found '0'");
    assert_body_refused("repeat 2\nsync\n}\n",
                        "x.gmd:2: expected '{' at the end of the line, found the end of the line");
    assert_body_refused("repeat 2 {\nrepeat 2 {\n}\n}\n",
                        "x.gmd:3: a repeat within the repeat of line 2: expected none");
    assert_body_refused("sync\n}\n", "x.gmd:3: expected a 'repeat' before this '}'");
    assert_body_refused("repeat 2 {\nsync\n",
                        "x.gmd:3: expected '}', which ends the repeat of line 2, before the end of "
                        "the text");
    assert_body_refused("repeat 2 {\ndevices 2\n}\n",
                        "x.gmd:3: expected header lines before the first request, found 'devices'");
    assert_body_refused("alloc b% 1 s1\n", "x.gmd:2: expected the id of a block, found 'b%'");
}

TEST(what_is_wrong_in_a_later_turn_says_in_which)
{
    assert_body_refused("repeat 9 {\nalloc a 1 s1\n}\n",
                        "x.gmd:3: expected the id of a block that is not allocated, found 'a' (in "
                        "turn 2 of the repeat)");
    assert_body_refused("alloc b1 1 s1\nalloc b0 1 s1\nrepeat 3 {\nfree b%1-\n}\n",
                        "x.gmd:5: expected the id of an allocated block, found 'b%1-' (in turn 3 "
                        "of the repeat)");
}

/* However short the text is. */
TEST(what_repeats_stand_for_is_bounded)
{
    assert_body_refused("repeat 1048576 {\nsync\nsync\n}\n",
                        "x.gmd:5: the repeats up to that of line 2 stand for 2097152 lines and "
                        "10485760 bytes: expected at most 1048576 and 67108864");
    assert_body_refused("repeat 1048576 {\n}\nrepeat 1048576 {\nsync\n}\nrepeat 2 {\nsync\n}\n",
                        "x.gmd:9: the repeats up to that of line 7 stand for 1048578 lines and "
                        "5242890 bytes: expected at most 1048576 and 67108864");
}

static void assert_written_as(const char *body)
{
    char text[4096];
    size_t size;
    gmd_error error = {""};
    parse_body(body);
    free(written);
    written = NULL;
    FILE *out = open_memstream(&written, &size);
    assert_int_equal(gmd_trace_write(&parsed, out, &error), GMD_OK);
    fclose(out);
    snprintf(text, sizeof text, "gmd-trace 1\n%s", body);
    assert_string_equal(written, text);
}

TEST_F(text, runs_of_eight_turns_are_written_as_a_repeat)
{
    assert_written_as("repeat 300 {\n  alloc b% 2MiB s%1\n}\n"
                      "alloc a 3MiB s1\n"
                      "repeat 70 {\n  use a s% 1us\n  record a s%\n}\n"
                      "repeat 300 {\n  free b%299-\n}\n"
                      "repeat 12 {\n  device %\n  alloc x% 1MiB s1 device %\n}\n"
                      "repeat 11 {\n  thread t%1\n  alloc y% 1MiB s1\n  thread t%2\n  free y%\n}\n"
                      "thread main\n"
                      "repeat 8 {\n  begin_pool p%\n  end_pool p%\n}\n"
                      "repeat 70000 {\n  alloc z 1 s1\n  free z\n}\n");
}

TEST_F(text, fewer_turns_and_other_names_are_written_out)
{
    assert_written_as("alloc b0 1 s1\nalloc b1 1 s1\nalloc b2 1 s1\nalloc b3 1 s1\n"
                      "alloc b4 1 s1\nalloc b5 1 s1\nalloc b6 1 s1\n");
    assert_written_as("alloc a 1 s1\nalloc b 1 s1\nalloc c 1 s1\nalloc d 1 s1\n"
                      "alloc e 1 s1\nalloc f 1 s1\nalloc g 1 s1\nalloc h 1 s1\n");
}

/* Threads are numbered by their first mention, which is not the order in which they come here. */
TEST_F(text, what_is_written_as_a_repeat_is_written_so_again)
{
    gmd_error error = {""};
    size_t size;
    parse_body("repeat 60 {\nthread t%1\nthread t%\nalloc b% 1MiB s1\nfree b%\n}\n");
    for (int i = 0; i < 2; i++) {
        free(written);
        FILE *out = open_memstream(&written, &size);
        assert_int_equal(gmd_trace_write(&parsed, out, &error), GMD_OK);
        fclose(out);
        assert_string_equal(written, "gmd-trace 1\nrepeat 60 {\n  thread t%\n  alloc b% 1MiB s1\n"
                                     "  free b%\n}\n");
        parse_ok(written);
    }
}
