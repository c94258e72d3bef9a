/* Stream captures and graphs, carried out: where requests go meanwhile, what is left out, what a
 * failed capture leaves, and what happens at the end of a run. */
#include "driver_test.h"

#include <stdlib.h>
#include <string.h>

TEST(a_graph_is_launched_as_often_as_one_likes)
{
    expect_clean(run_lines("reference", "begin_capture p s1\n"
                                        "alloc a 4MiB s1\n"
                                        "use a s1\n"
                                        "free a\n"
                                        "end_capture p\n"
                                        "empty_cache\n"
                                        "launch p s1\n"
                                        "launch p s2\n"
                                        "release_pool p\n"));
}

TEST(what_is_under_way_and_held_at_the_end_is_ended_and_released)
{
    expect_clean(run_lines("reference", "begin_capture q s2 device 1\n"
                                        "alloc b 4MiB s2 device 1\n"
                                        "end_capture q device 1\n"
                                        "launch q s1 device 1\n"
                                        "begin_capture p s1\n"
                                        "alloc a 4MiB s1\n"
                                        "use a s1\n"));
}

/* The default pool has the room, and cannot give it back while a stream is captured. */
TEST(streams_that_wait_for_a_captured_one_get_memory_of_its_pool)
{
    expect_clean(run_lines("reference", "alloc x 40MiB s2\n"
                                        "free x\n"
                                        "begin_capture p s1\n"
                                        "wait s2 s1\n"
                                        "expect oom a 40MiB s2\n"
                                        "end_capture p\n"
                                        "expect alloc b 40MiB s2\n"));
}

TEST(an_allocation_on_another_stream_is_left_out)
{
    expect_clean(run_lines("reference", "begin_capture p s1\n"
                                        "alloc a 60MiB s2\n"
                                        "end_capture p\n"
                                        "expect alloc b 60MiB s3\n"));
}

/* The host would wait, or work outside the graph with work in it. */
TEST(what_a_capture_forbids_is_left_out)
{
    expect_clean(run_lines("reference", "alloc x 4MiB s1\n"
                                        "alloc y 4MiB s2\n"
                                        "use x s2\n"
                                        "begin_capture p s1\n"
                                        "alloc a 4MiB s1\n"
                                        "sync\n"
                                        "sync s2\n"
                                        "destroy s2\n"
                                        "empty_cache\n"
                                        "wait s1 s2\n"
                                        "wait s0 s1\n"
                                        "use a s2\n"
                                        "use y s1\n"
                                        "use x s3\n"
                                        "free x\n"
                                        "use a s1\n"
                                        "end_capture p\n"
                                        "launch p s1\n"));
}

TEST(other_streams_work_on)
{
    expect_clean(run_lines("reference", "alloc y 4MiB s2\n"
                                        "alloc z 4MiB s2\n"
                                        "begin_capture p s1\n"
                                        "use y s3\n"
                                        "wait s3 s2\n"
                                        "record y s3\n"
                                        "free y\n"
                                        "use z s3\n"
                                        "free z\n"
                                        "end_capture p\n"));
}

/* Work that was not recorded is waited for before the free, within the graph. */
TEST(streams_of_a_capture_share_blocks)
{
    expect_clean(run_lines("reference", "begin_capture p s1\n"
                                        "alloc a 4MiB s1\n"
                                        "wait s1 s1\n"
                                        "wait s2 s1\n"
                                        "use a s2\n"
                                        "free a\n"
                                        "alloc b 4MiB s1\n"
                                        "use b s1\n"
                                        "use b s2\n"
                                        "record b s2\n"
                                        "free b\n"
                                        "alloc c 4MiB s1\n"
                                        "end_capture p\n"
                                        "launch p s2\n"
                                        "free c\n"));
}

/* As a graph runs one after another of the same pool. */
TEST(two_captures_use_a_pool_in_turn)
{
    expect_clean(run_lines("reference", "begin_capture p s1\n"
                                        "alloc a 30MiB s1\n"
                                        "use a s1\n"
                                        "free a\n"
                                        "end_capture p\n"
                                        "begin_capture p s1\n"
                                        "expect alloc b 30MiB s1\n"
                                        "use b s1\n"
                                        "free b\n"
                                        "end_capture p\n"
                                        "launch p s1\n"
                                        "release_pool p\n"
                                        "launch p s1\n"
                                        "release_pool p\n"
                                        "expect alloc c 60MiB s1\n"));
}

TEST(the_host_s_wait_for_a_captured_stream_fails_the_capture)
{
    expect_clean(run_lines("reference", "begin_capture p s1\n"
                                        "alloc a 30MiB s1\n"
                                        "use a s1\n"
                                        "sync s1\n"
                                        "use a s1\n"
                                        "wait s2 s1\n"
                                        "free a\n"
                                        "end_capture p\n"
                                        "launch p s1\n"
                                        "release_pool p\n"
                                        "expect alloc b 60MiB s1\n"));
}

/* The free's wait for stream 2 is refused, and so is all that would be launched: memory that is
 * served again is in no graph. */
TEST(work_of_a_capture_that_has_failed_needs_no_order)
{
    expect_clean(run_lines("reference", "begin_capture p s1\n"
                                        "wait s2 s1\n"
                                        "alloc a 1 s1\n"
                                        "use a s2 10us\n"
                                        "sync s1\n"
                                        "free a\n"
                                        "alloc b 1 s1\n"));
}

/* Work on stream 0 may end at any moment, and with it the wait of the freed block, which nobody may
 * wait for while a stream is captured. */
TEST(what_is_refused_in_a_capture_may_be_served_when_work_has_ended)
{
    for (unsigned seed = 0; seed < 50; seed++) {
        char text[300];
        snprintf(text, sizeof text,
                 "capacity 20MiB\n"
                 "schedule seed %u\n"
                 "begin_pool p\n"
                 "alloc a 12MiB s1\n"
                 "alloc b 1 s0\n"
                 "end_pool p\n"
                 "use a s0 10us\n"
                 "record a s0\n"
                 "free a\n"
                 "begin_capture p s1\n"
                 "alloc c 12MiB s1\n",
                 seed);
        expect_clean(run_lines("reference", text));
    }
}

TEST(a_capture_that_another_thread_ends_fails)
{
    expect_clean(run_lines("reference", "thread t1\n"
                                        "begin_capture p s1\n"
                                        "alloc a 4MiB s1\n"
                                        "use a s1\n"
                                        "thread t2\n"
                                        "end_capture p\n"
                                        "launch p s1\n"
                                        "begin_capture p s1\n"
                                        "alloc b 4MiB s1\n"
                                        "end_capture p\n"
                                        "launch p s1\n"));
}

TEST(a_refusal_in_a_capture_is_asked_about_once)
{
    expect_clean(run_lines("reference", "alloc x 40MiB s2\n"
                                        "begin_capture p s1\n"
                                        "expect oom a 40MiB s1\n"
                                        "alloc b 4MiB s1\n"
                                        "use b s1\n"
                                        "end_capture p\n"
                                        "launch p s1\n"));
}

TEST(allocators_without_pools_are_asked_without_captures)
{
    gmd_outcome *o = run_lines("cudamalloc", "begin_capture p s1\n"
                                             "alloc a 4MiB s1\n"
                                             "use a s1\n"
                                             "end_capture p\n"
                                             "launch p s1\n");
    assert_int_equal(o->note_count, 1);
    assert_non_null(strstr(o->notes[0], "exports no gmd_begin_pool"));
    expect_clean(o);
}

TEST(captures_are_left_out_where_threads_are_interleaved)
{
    gmd_outcome *o = run_lines("reference", "interleave seed 3\n"
                                            "thread t1\n"
                                            "begin_capture p s1\n"
                                            "alloc a 4MiB s1\n"
                                            "thread t2\n"
                                            "alloc b 4MiB s1\n"
                                            "thread t1\n"
                                            "end_capture p\n"
                                            "launch p s1\n");
    assert_non_null(strstr(o->notes[0], "captures are left out: threads are interleaved"));
    expect_clean(o);
}

/* The order of its work could not be followed. */
TEST(of_a_stream_of_a_high_number_only_the_pool_is_opened)
{
    char body[2048] = "streams s0";
    for (int i = 1; i <= 70; i++) {
        size_t used = strlen(body);
        snprintf(body + used, sizeof body - used, " s%d", i);
    }
    size_t used = strlen(body);
    snprintf(body + used, sizeof body - used,
             "\nbegin_capture p s70\nalloc a 4MiB s70\nuse a s70\nalloc b 60MiB s1\n"
             "end_capture p\nlaunch p s1\n");
    expect_clean(run_lines("reference", body));
}

TEST(a_capture_may_have_many_uses)
{
    char body[8000] = "begin_capture p s1\nalloc a 4MiB s1\nwait s2 s1\n";
    for (int i = 0; i < 300; i++) {
        size_t used = strlen(body);
        snprintf(body + used, sizeof body - used, "use a s%d 1ns\n", 1 + i % 2);
    }
    size_t used = strlen(body);
    snprintf(body + used, sizeof body - used,
             "free a\nalloc b 4MiB s1\nend_capture p\nlaunch p s1\n");
    expect_clean(run_lines("reference", body));
}
