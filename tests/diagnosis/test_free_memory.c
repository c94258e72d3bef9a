/* Why reserved memory is more than what is allocated: each cause on a history that has it. */
#include "gmd_unused.h"
#include "planted.h"

static int open_planted(void **state)
{
    *state = planted_new();
    return 0;
}

static int close_planted(void **state)
{
    planted_free(*state);
    return 0;
}

FIXTURE(history, open_planted, close_planted);

static gmd_facts read_facts(planted *p)
{
    gmd_facts facts;
    gmd_error error;
    assert_int_equal(gmd_facts_make(&facts, planted_snapshot(p), 0, &error), GMD_OK);
    return facts;
}

/* At the end. */
static gmd_free_memory find_free(const gmd_facts *facts, const gmd_asked *asked)
{
    gmd_free_memory found;
    gmd_error error;
    assert_int_equal(gmd_free_memory_find(&found, &facts->recording, &facts->places,
                                          facts->recording.last, asked, &error),
                     GMD_OK);
    return found;
}

/* All that is free is of that cause, and so much. */
static void assert_all(planted *p, const gmd_asked *asked, gmd_free_cause cause, uint64_t bytes)
{
    gmd_facts facts = read_facts(p);
    gmd_free_memory found = find_free(&facts, asked);
    for (int i = 0; i < GMD_FREE_CAUSE_COUNT; i++) {
        assert_int_equal(found.by_cause[i], i == (int)cause ? bytes : 0);
    }
    gmd_free_memory_release(&found);
    gmd_facts_free(&facts);
}

/* --- what it is ------------------------------------------------------------------------------ */

TEST_F(history, a_segment_without_a_block_is_cached)
{
    planted *p = *state;
    planted_free_block(p, planted_alloc(p, 20 * GMD_MIB));
    assert_all(p, NULL, GMD_FREE_CACHED, 20 * GMD_MIB);
}

TEST_F(history, what_is_free_beside_a_block_is_split)
{
    planted *p = *state;
    planted_alloc_in(p, 20 * GMD_MIB, 2 * GMD_MIB);
    assert_all(p, NULL, GMD_FREE_SPLIT, 18 * GMD_MIB);
}

TEST_F(history, the_line_of_the_block_keeps_it)
{
    planted *p = *state;
    planted_at(p, planted_origin(p, "train.py:7 train"));
    planted_alloc_in(p, 20 * GMD_MIB, 2 * GMD_MIB);
    gmd_facts facts = read_facts(p);
    gmd_free_memory found = find_free(&facts, NULL);
    assert_int_equal(found.keeper_count, 1);
    assert_int_equal(found.keepers[0].bytes, 18 * GMD_MIB);
    assert_int_equal(gmd_places_get(&facts.places, found.keepers[0].frame).line, 7);
    gmd_free_memory_release(&found);
    gmd_facts_free(&facts);
}

TEST_F(history, pages_of_an_expandable_segment_are_its_own_cause)
{
    planted *p = *state;
    planted_settings(p)->is_expandable = true;
    planted_alloc_in(p, 20 * GMD_MIB, 2 * GMD_MIB);
    assert_all(p, NULL, GMD_FREE_EXPANDABLE, 18 * GMD_MIB);
}

TEST_F(history, what_is_freed_and_waits_for_a_stream_is_pending)
{
    planted *p = *state;
    planted_request_free(p, planted_alloc(p, 20 * GMD_MIB));
    assert_all(p, NULL, GMD_FREE_PENDING, 20 * GMD_MIB);
}

TEST_F(history, a_private_pool_keeps_what_is_free_in_it)
{
    planted *p = *state;
    planted_in_pool(p, 7);
    planted_alloc_in(p, 20 * GMD_MIB, 2 * GMD_MIB);
    assert_all(p, NULL, GMD_FREE_PRIVATE, 18 * GMD_MIB);
}

TEST_F(history, blocks_are_rounded_up)
{
    planted *p = *state;
    planted_alloc(p, 1000);
    gmd_facts facts = read_facts(p);
    gmd_free_memory found = find_free(&facts, NULL);
    assert_int_equal(found.rounding, 24);
    gmd_free_memory_release(&found);
    gmd_facts_free(&facts);
}

/* --- why it does not serve a request --------------------------------------------------------- */

static const gmd_asked large = {.requested = 10 * GMD_MIB}, small = {.requested = 1000};

TEST_F(history, what_another_stream_has_cached_does_not_serve)
{
    planted *p = *state;
    planted_on_stream(p, 1);
    planted_alloc_in(p, 40 * GMD_MIB, 2 * GMD_MIB);
    assert_all(p, &large, GMD_FREE_OTHER_STREAM, 38 * GMD_MIB);
}

TEST_F(history, a_segment_for_small_requests_does_not_serve_a_large_one)
{
    planted *p = *state;
    planted_alloc_in(p, 2 * GMD_MIB, GMD_MIB);
    assert_all(p, &large, GMD_FREE_OTHER_POOL, GMD_MIB);
}

TEST_F(history, the_pool_that_does_not_serve_is_named)
{
    planted *p = *state;
    planted_alloc_in(p, 2 * GMD_MIB, GMD_MIB);
    planted_alloc_in(p, 40 * GMD_MIB, 2 * GMD_MIB);
    gmd_facts facts = read_facts(p);
    gmd_free_memory of_large = find_free(&facts, &large), of_small = find_free(&facts, &small);
    assert_string_equal(gmd_free_cause_sentence(&of_large, GMD_FREE_OTHER_POOL),
                        "in segments for small requests; this one is large");
    assert_string_equal(gmd_free_cause_sentence(&of_small, GMD_FREE_OTHER_POOL),
                        "in segments for large requests; this one is small");
    gmd_free_memory_release(&of_large);
    gmd_free_memory_release(&of_small);
    gmd_facts_free(&facts);
}

TEST_F(history, small_blocks_of_an_expandable_segment_tell_its_pool)
{
    planted *p = *state;
    planted_settings(p)->is_expandable = true;
    planted_alloc_in(p, 20 * GMD_MIB, GMD_MIB);
    assert_all(p, &large, GMD_FREE_OTHER_POOL, 19 * GMD_MIB);
}

TEST_F(history, large_blocks_of_an_expandable_segment_tell_its_pool)
{
    planted *p = *state;
    planted_settings(p)->is_expandable = true;
    planted_alloc_in(p, 40 * GMD_MIB, 2 * GMD_MIB);
    assert_all(p, &small, GMD_FREE_OTHER_POOL, 38 * GMD_MIB);
}

TEST_F(history, parts_may_be_too_small)
{
    planted *p = *state;
    planted_alloc_in(p, 10 * GMD_MIB, 2 * GMD_MIB);
    assert_all(p, &large, GMD_FREE_TOO_SMALL, 8 * GMD_MIB);
}

TEST_F(history, a_block_above_max_split_size_is_kept_whole)
{
    planted *p = *state;
    planted_settings(p)->max_split_bytes = 20 * GMD_MIB;
    planted_free_block(p, planted_alloc(p, 100 * GMD_MIB));
    assert_all(p, &large, GMD_FREE_OVERSIZE, 100 * GMD_MIB);
}

TEST_F(history, a_part_that_is_large_enough_fits)
{
    planted *p = *state;
    planted_alloc_in(p, 40 * GMD_MIB, 2 * GMD_MIB);
    assert_all(p, &large, GMD_FREE_FITTING, 38 * GMD_MIB);
}

/* --- what memory was taken for --------------------------------------------------------------- */

static gmd_unused find_unused(const gmd_facts *facts)
{
    gmd_unused unused;
    gmd_error error;
    assert_int_equal(gmd_unused_find(&unused, facts, &error), GMD_OK);
    return unused;
}

TEST_F(history, what_memory_was_taken_for_lies_in_it)
{
    planted *p = *state;
    planted_alloc_in(p, 20 * GMD_MIB, 12 * GMD_MIB);
    gmd_facts facts = read_facts(p);
    gmd_unused unused = find_unused(&facts);
    assert_int_equal(unused.free.by_cause[GMD_FREE_CACHED], 0);
    assert_int_equal(unused.free.by_cause[GMD_FREE_SPLIT], 8 * GMD_MIB);
    gmd_unused_release(&unused);
    gmd_facts_free(&facts);
}

TEST_F(history, memory_that_serves_nothing_is_cached)
{
    planted *p = *state;
    gmd_error error;
    gmd_facts facts;
    planted_alloc_in(p, 20 * GMD_MIB, 12 * GMD_MIB);
    planted_free_block(p, planted_alloc(p, 30 * GMD_MIB));
    gmd_snapshot snapshot = planted_take_snapshot(p);
    snapshot.events[3].action =
        GMD_ACTION_OOM; /* the request for 30 MiB; its frees are not there */
    snapshot.event_count = 4;
    assert_int_equal(gmd_facts_make(&facts, &snapshot, 0, &error), GMD_OK);
    gmd_unused unused = find_unused(&facts);
    assert_int_equal(unused.free.by_cause[GMD_FREE_CACHED], 30 * GMD_MIB);
    assert_false(unused.has_request);
    gmd_unused_release(&unused);
    gmd_facts_free(&facts);
    gmd_snapshot_free(&snapshot);
}

TEST_F(history, the_last_request_that_took_memory_found_none_of_its_stream)
{
    planted *p = *state;
    planted_on_stream(p, 1);
    planted_free_block(p, planted_alloc(p, 64 * GMD_MIB));
    planted_on_stream(p, 0);
    planted_alloc(p, 50 * GMD_MIB);
    gmd_facts facts = read_facts(p);
    gmd_unused unused = find_unused(&facts);
    assert_int_equal(unused.requested, 50 * GMD_MIB);
    assert_int_equal(unused.refused.by_cause[GMD_FREE_OTHER_STREAM], 64 * GMD_MIB);
    gmd_unused_release(&unused);
    gmd_facts_free(&facts);
}
