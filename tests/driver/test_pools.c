/* Requests on private pools, carried out: which pool a request goes to, what happens at the end of
 * a run, and what an allocator cannot do. */
#include "driver_test.h"

#include <stdlib.h>
#include <string.h>

TEST(what_is_open_and_held_at_the_end_is_ended_and_released)
{
    expect_clean(run_lines("reference", "begin_pool p s1\n"
                                        "alloc a 4MiB s1\n"
                                        "end_pool p\n"
                                        "begin_pool p\n"
                                        "begin_pool q device 1\n"
                                        "alloc b 30MiB s2 device 1\n"));
}

/* The room that the pool's cache takes is not the default pool's. */
TEST(requests_of_the_pools_stream_go_there_and_others_do_not)
{
    expect_clean(run_lines("reference", "begin_pool p s1\n"
                                        "alloc a 20MiB s1\n"
                                        "alloc b 20MiB s2\n"
                                        "free a\n"
                                        "free b\n"
                                        "end_pool p\n"
                                        "alloc c 20MiB s1\n"
                                        "alloc d 20MiB s2\n"
                                        "begin_pool p s1\n"
                                        "expect alloc e 20MiB s1\n"));
}

TEST(a_stream_that_is_made_anew_is_not_the_pools)
{
    expect_clean(run_lines("reference", "begin_pool p s1\n"
                                        "alloc a 4MiB s1\n"
                                        "free a\n"
                                        "destroy s1\n"
                                        "alloc b 4MiB s1\n"
                                        "end_pool p\n"));
}

TEST(a_refusal_in_an_open_pool_is_looked_into)
{
    expect_clean(run_lines("reference", "alloc a 60MiB s1\n"
                                        "free a\n"
                                        "begin_pool p\n"
                                        "alloc b 30MiB s1\n"
                                        "expect oom c 40MiB s1\n"
                                        "end_pool p\n"));
}

TEST(an_allocator_without_pools_is_asked_without_them)
{
    gmd_outcome *o = run_lines("cudamalloc", "begin_pool p\n"
                                             "alloc a 4MiB s1\n"
                                             "end_pool p\n"
                                             "release_pool p\n");
    assert_false(o->has_pools);
    assert_int_equal(o->note_count, 1);
    assert_non_null(strstr(o->notes[0], "exports no gmd_begin_pool"));
    expect_clean(o);
}

TEST(what_makes_no_sense_where_it_stands_is_left_out)
{
    gmd_trace trace;
    gmd_error error = {""};
    static const uint8_t ops[] = {GMD_OP_END_POOL, GMD_OP_RELEASE_POOL, GMD_OP_BEGIN_POOL,
                                  GMD_OP_BEGIN_POOL, GMD_OP_RELEASE_POOL};
    gmd_trace_init(&trace);
    for (size_t i = 0; i < sizeof ops; i++) {
        gmd_request r = {.op = ops[i], .pool = 1, .stream = GMD_ALL_STREAMS};
        assert_int_equal(gmd_trace_append(&trace, &r, &error), GMD_OK);
    }
    gmd_outcome *o = run_trace("reference", &trace);
    gmd_trace_free(&trace);
    expect_clean(o);
}

TEST(pools_are_begun_between_the_threads_requests)
{
    expect_clean(run_lines("reference", "interleave seed 3\n"
                                        "thread t1\n"
                                        "begin_pool p s1\n"
                                        "alloc a 4MiB s1\n"
                                        "thread t2\n"
                                        "alloc b 4MiB s1\n"
                                        "free b\n"
                                        "thread t1\n"
                                        "end_pool p\n"
                                        "thread t2\n"
                                        "alloc c 4MiB s1\n"));
}

/* --- checkpoints ------------------------------------------------------------------------- */

/* `b` takes all of the limit: `expect` tells which blocks are live. */
TEST(a_restored_pool_has_the_blocks_of_its_checkpoint)
{
    expect_clean(run_lines("reference", "begin_pool p s1\n"
                                        "alloc a 40MiB s1\n"
                                        "end_pool p\n"
                                        "checkpoint_pool p\n"
                                        "free a\n"
                                        "restore_pool p\n"
                                        "begin_pool p s1\n"
                                        "expect oom b 40MiB s1\n"));
}

TEST(what_was_allocated_after_the_checkpoint_is_freed_by_the_restore)
{
    expect_clean(run_lines("reference", "begin_pool p s1\n"
                                        "checkpoint_pool p\n"
                                        "alloc a 40MiB s1\n"
                                        "restore_pool p\n"
                                        "expect alloc b 40MiB s1\n"
                                        "use a s1\n"
                                        "free a\n"));
}

TEST(a_block_of_before_and_after_keeps_its_name_and_its_contents)
{
    expect_clean(run_lines("reference", "begin_pool p s1\n"
                                        "alloc a 4MiB s1\n"
                                        "use a s1\n"
                                        "checkpoint_pool p\n"
                                        "alloc b 4MiB s1\n"
                                        "use b s1\n"
                                        "restore_pool p\n"
                                        "use a s1\n"
                                        "free a\n"
                                        "restore_pool p\n"
                                        "restore_pool p\n"));
}

TEST(a_restore_that_the_allocator_refuses_changes_nothing)
{
    expect_clean(run_lines("reference", "begin_pool p s1\n"
                                        "alloc a 4MiB s1\n"
                                        "checkpoint_pool p\n"
                                        "record a s2\n"
                                        "restore_pool p\n"
                                        "use a s2\n"
                                        "free a\n"
                                        "restore_pool p\n"));
}

TEST(a_checkpoint_is_gone_with_a_stream_of_its_blocks)
{
    expect_clean(run_lines("reference", "begin_pool p s1\n"
                                        "alloc a 4MiB s1\n"
                                        "free a\n"
                                        "alloc a 4MiB s1\n"
                                        "checkpoint_pool p\n"
                                        "free a\n"
                                        "destroy s1\n"
                                        "restore_pool p\n"
                                        "expect alloc b 4MiB s1\n"));
}

TEST(an_allocator_without_checkpoints_is_asked_without_them)
{
    gmd_outcome *o = run_lines("cudamalloc", "begin_pool p\n"
                                             "checkpoint_pool p\n"
                                             "restore_pool p\n");
    assert_false(o->has_checkpoints);
    assert_int_equal(o->note_count, 1);
    expect_clean(o);
}

TEST(no_checkpoint_is_made_of_a_block_whose_stream_is_gone)
{
    expect_clean(run_lines("reference", "begin_pool p s1\n"
                                        "alloc a 4MiB s1\n"
                                        "destroy s1\n"
                                        "checkpoint_pool p\n"
                                        "restore_pool p\n"
                                        "free a\n"));
}

/* --- options ------------------------------------------------------------------------------ */

/* 64 MiB: the limit of the run holds three segments of 20 MiB. */
TEST(a_pool_without_splits_hands_out_whole_segments)
{
    expect_clean(run_lines("reference", "begin_pool p s1 +no_split\n"
                                        "alloc a 2MiB s1\n"
                                        "alloc b 2MiB s1\n"
                                        "expect oom c 30MiB s1\n"
                                        "free a\n"
                                        "expect alloc d 1MiB s1\n"));
}

TEST(a_pool_that_is_for_that_serves_what_would_be_refused)
{
    expect_clean(run_lines("reference", "begin_pool p s1 +use_on_oom\n"
                                        "alloc a 4MiB s1\n"
                                        "alloc b 4MiB s1\n"
                                        "free a\n"
                                        "end_pool p\n"
                                        "alloc c 40MiB s1\n"
                                        "expect alloc d 4MiB s1\n"
                                        "free d\n"));
}

TEST(a_pool_with_memory_of_its_own_goes_with_it)
{
    gmd_outcome *o = run_lines("reference", "begin_pool p s1 +no_split +own_memory\n"
                                            "alloc a 20MiB s1\n"
                                            "use a s1\n"
                                            "free a\n"
                                            "end_pool p\n"
                                            "empty_cache\n"
                                            "expect alloc b 40MiB s1\n"
                                            "free b\n"
                                            "release_pool p\n"
                                            "begin_pool p s1 +own_memory\n"
                                            "alloc c 2MiB s1\n");
    assert_int_equal(o->note_count, 0);
    expect_clean(o);
}

TEST(an_allocator_without_options_is_asked_without_them)
{
    gmd_outcome *o = run_lines("cudamalloc", "begin_pool p +no_split\n"
                                             "alloc a 4MiB s1\n");
    assert_false(o->has_pool_options);
    expect_clean(o);
}
