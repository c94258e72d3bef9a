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
