/* The classes of memory that is not used or not enough, likewise (test_classes.c). */
#include "planted.h"

#include <stdio.h>

FIXTURE(job, planted_open_job, planted_close_job);
FIXTURE(script, planted_open_script, planted_close_script);

enum { ITERATIONS = 12 };

/* --- fragmentation --------------------------------------------------------------------------- */

/* Before the loop large blocks go, but small ones in the same segments stay if it `keeps` them. */
static void set_up_in_segments(planted_job *job, bool keeps)
{
    enum { SEGMENTS = 4 };
    size_t large[SEGMENTS], small[SEGMENTS];
    planted_at(job->p, job->loop);
    for (int i = 0; i < SEGMENTS; i++) {
        large[i] = planted_alloc_in(job->p, 100 * GMD_MIB, 80 * GMD_MIB);
        small[i] = planted_alloc_behind(job->p, large[i], GMD_MIB);
    }
    for (int i = 0; i < SEGMENTS; i++) {
        planted_free_block(job->p, large[i]);
        if (!keeps) {
            planted_free_block(job->p, small[i]);
        }
    }
    for (int i = 0; i < ITERATIONS; i++) {
        planted_train(job);
    }
}

TEST_F(job, what_is_idle_all_the_time_beside_blocks_that_stay_is_fragmentation)
{
    set_up_in_segments(*state, true);
    assert_found(((planted_job *)*state)->p, GMD_FINDING_FRAGMENTATION);
}

/* Each iteration gathers a block, with far more free beside it. */
static void gather_apart(planted *p, uint32_t line)
{
    uint32_t other = planted_origin(p, "tables.py:12 main tables.py:99 <module>");
    for (int i = 0; i < ITERATIONS; i++) {
        planted_at(p, line);
        size_t kept = planted_alloc_in(p, 64 * GMD_MIB, 8 * GMD_MIB);
        planted_at(p, other);
        planted_free_block(p, planted_alloc_behind(p, kept, 48 * GMD_MIB));
    }
}

TEST_F(script, what_lies_free_beside_what_is_gathered_is_the_greater_loss)
{
    gather_apart(*state, planted_origin(*state, "tables.py:11 main tables.py:99 <module>"));
    gmd_job_findings findings = planted_findings(*state, 0);
    assert_int_equal(findings.items[0].class, GMD_FINDING_FRAGMENTATION);
    gmd_job_findings_free(&findings);
}

/* Each iteration keeps a graph, of three layers, with as much free beside it as there is left of a
 * segment. */
static void keep_graph_apart(planted_job *job, uint64_t segment_bytes)
{
    enum { LAYERS = 3, LAYER_MIB = 3 };
    uint32_t other = planted_origin(job->p, "windows.py:12 scan windows.py:99 <module>");
    char frames[160];
    for (int i = 0; i < ITERATIONS; i++) {
        size_t first = 0;
        for (int k = 0; k < LAYERS; k++) {
            snprintf(frames, sizeof frames,
                     "torch/nn/modules/conv.py:548 forward torch/nn/modules/module.py:1790 "
                     "_call_impl windows.py:%d scan windows.py:99 <module>",
                     20 + k);
            planted_at(job->p, planted_origin(job->p, frames));
            if (k == 0) {
                first = planted_alloc_in(job->p, segment_bytes, LAYER_MIB * GMD_MIB);
            } else {
                planted_alloc_behind(job->p, first, LAYER_MIB * GMD_MIB);
            }
        }
        planted_at(job->p, other);
        planted_free_block(
            job->p, planted_alloc_behind(job->p, first,
                                         segment_bytes - (uint64_t)LAYERS * LAYER_MIB * GMD_MIB));
    }
}

TEST_F(job, what_lies_free_beside_a_graph_goes_with_it)
{
    planted_job *job = *state;
    keep_graph_apart(job, 64 * GMD_MIB);
    gmd_job_findings findings = planted_findings(job->p, 0);
    assert_int_equal(findings.count, 1);
    assert_int_not_equal(findings.items[0].class, GMD_FINDING_FRAGMENTATION);
    gmd_job_findings_free(&findings);
}

/* Each iteration makes something of a temporary block and puts a part of it aside, in the same
 * segment. What is put aside is more than what lies free beside it. */
static void put_aside(planted *p, uint32_t line, uint64_t segment_bytes)
{
    enum { ASIDE_MIB = 10 };
    uint32_t other = planted_origin(p, "windows.py:12 scan windows.py:99 <module>");
    for (int i = 0; i < ITERATIONS; i++) {
        planted_at(p, line);
        size_t kept = planted_alloc_in(p, segment_bytes, ASIDE_MIB * GMD_MIB);
        planted_at(p, other);
        planted_free_block(p, planted_alloc_behind(p, kept, segment_bytes - ASIDE_MIB * GMD_MIB));
    }
}

static gmd_finding_class first_class(planted *p)
{
    gmd_job_findings findings = planted_findings(p, 0);
    gmd_finding_class class = findings.count ? findings.items[0].class : GMD_FINDING_CLASS_COUNT;
    gmd_job_findings_free(&findings);
    return class;
}

TEST_F(script, what_was_never_in_use_at_once_weighs_more_than_what_is_put_aside)
{
    put_aside(*state, planted_origin(*state, "windows.py:11 scan windows.py:99 <module>"),
              16 * GMD_MIB);
    assert_int_equal(first_class(*state), GMD_FINDING_FRAGMENTATION);
}

TEST_F(script, a_small_rest_beside_what_is_put_aside_does_not)
{
    put_aside(*state, planted_origin(*state, "windows.py:11 scan windows.py:99 <module>"),
              12 * GMD_MIB);
    assert_int_equal(first_class(*state), GMD_FINDING_REFERENCE_CYCLE);
}

TEST_F(job, what_was_never_in_use_at_once_goes_with_a_graph_that_it_lies_beside)
{
    planted_job *job = *state;
    keep_graph_apart(job, 16 * GMD_MIB);
    assert_int_not_equal(first_class(job->p), GMD_FINDING_FRAGMENTATION);
}

TEST_F(job, it_weighs_more_than_results_of_a_model_that_one_line_puts_aside)
{
    planted_job *job = *state;
    put_aside(job->p, job->call, 16 * GMD_MIB);
    assert_int_equal(first_class(job->p), GMD_FINDING_FRAGMENTATION);
}

/* Each iteration puts something aside, of a temporary block that is larger each time by as much. */
static void put_aside_of_larger(planted *p, uint64_t more)
{
    uint32_t kept = planted_origin(p, "windows.py:11 scan windows.py:99 <module>");
    uint32_t other = planted_origin(p, "windows.py:12 scan windows.py:99 <module>");
    for (uint64_t i = 0; i < ITERATIONS; i++) {
        planted_at(p, other);
        size_t window = planted_alloc(p, (20 + i * more) * GMD_MIB);
        planted_at(p, kept);
        planted_alloc(p, 4 * GMD_MIB);
        planted_free_block(p, window);
    }
}

TEST_F(script, what_is_taken_for_ever_larger_requests_weighs_more_than_what_is_put_aside)
{
    put_aside_of_larger(*state, 4);
    assert_int_equal(first_class(*state), GMD_FINDING_FRAGMENTATION);
}

TEST_F(script, requests_of_one_size_do_not)
{
    put_aside_of_larger(*state, 0);
    assert_int_equal(first_class(*state), GMD_FINDING_REFERENCE_CYCLE);
}

TEST_F(job, idle_segments_that_nothing_keeps_are_not)
{
    set_up_in_segments(*state, false);
    assert_found(((planted_job *)*state)->p, GMD_FINDING_CACHED_NOT_RELEASED);
}

/* Each shape stays for some iterations. */
TEST_F(job, a_few_sizes_after_one_another_do_not_fragment)
{
    planted_job *job = *state;
    planted_at(job->p, job->loop);
    for (uint64_t i = 0; i < 4; i++) {
        planted_free_block(job->p, planted_alloc(job->p, (100 + i) * GMD_MIB));
    }
    for (uint64_t i = 0; i < 40; i++) {
        uint64_t size = (50 + i / 10) * GMD_MIB;
        planted_free_block(job->p, planted_alloc_in(job->p, 100 * GMD_MIB, size));
    }
    assert_healthy(job->p);
}

static void ask_for_new_sizes(planted_job *job, uint64_t more)
{
    for (uint64_t i = 0; i < 40; i++) {
        planted_at(job->p, job->loop);
        planted_free_block(job->p, planted_alloc(job->p, (100 - i * more) * GMD_MIB));
        planted_free_block(job->p, planted_alloc(job->p, GMD_MIB));
    }
}

TEST_F(job, sizes_that_fit_no_free_block_fragment)
{
    ask_for_new_sizes(*state, 2);
    assert_found(((planted_job *)*state)->p, GMD_FINDING_FRAGMENTATION);
}

TEST_F(job, sizes_that_are_new_to_the_end_fragment_though_segments_are_taken_early)
{
    planted_job *job = *state;
    planted_at(job->p, job->loop);
    for (uint64_t i = 0; i < 4; i++) {
        planted_free_block(job->p, planted_alloc(job->p, (100 + i) * GMD_MIB));
    }
    for (uint64_t i = 0; i < 40; i++) {
        planted_free_block(job->p, planted_alloc_in(job->p, 100 * GMD_MIB, (50 + i) * GMD_MIB));
    }
    assert_found(job->p, GMD_FINDING_FRAGMENTATION);
}

TEST_F(job, segments_that_are_taken_late_for_known_sizes_are_no_fragmentation)
{
    planted_job *job = *state;
    for (int i = 0; i < ITERATIONS; i++) {
        uint64_t room = i < ITERATIONS / 2 ? 100 : 400;
        planted_at(job->p, job->loop);
        planted_free_block(job->p, planted_alloc_in(job->p, room * GMD_MIB, 100 * GMD_MIB));
        planted_train(job);
    }
    assert_healthy(job->p);
}

TEST_F(job, memory_that_was_given_back_is_no_fragmentation)
{
    planted_job *job = *state;
    for (int i = 0; i < ITERATIONS; i++) {
        planted_train(job);
        if (i == ITERATIONS / 2) {
            ask_for_new_sizes(job, 2);
            planted_empty_cache(job->p);
        }
    }
    assert_healthy(job->p);
}

TEST_F(job, what_was_reserved_before_the_recording_may_have_been_in_use)
{
    planted_job *job = *state;
    for (int i = 0; i < 4; i++) {
        planted_train(job);
    }
    planted_free_block(job->p, planted_alloc_in(job->p, 500 * GMD_MIB, 500 * GMD_MIB));
    planted_begin_late(job->p);
    for (uint64_t i = 0; i < 40; i++) {
        planted_at(job->p, job->loop);
        planted_free_block(job->p, planted_alloc_in(job->p, 500 * GMD_MIB, (300 + i) * GMD_MIB));
    }
    assert_healthy(job->p);
}

TEST_F(job, a_first_pass_asks_for_new_sizes_only_and_fragments_nothing)
{
    planted_job *job = *state;
    size_t activations[6];
    planted_at(job->p, job->call);
    for (uint64_t i = 0; i < 6; i++) {
        activations[i] = planted_alloc(job->p, (100 + i) * GMD_MIB);
    }
    for (uint64_t i = 0; i < 6; i++) {
        planted_free_block(job->p, activations[i]);
        planted_free_block(job->p, planted_alloc(job->p, (90 + i) * GMD_MIB));
    }
    assert_healthy(job->p);
}

TEST_F(job, an_evaluation_that_takes_segments_once_fragments_nothing)
{
    planted_job *job = *state;
    for (int i = 0; i < ITERATIONS; i++) {
        planted_train(job);
        if (i % 4 == 3) {
            planted_at(job->p, job->loop);
            planted_free_block(job->p, planted_alloc(job->p, 150 * GMD_MIB));
            planted_free_block(job->p, planted_alloc(job->p, 149 * GMD_MIB));
            planted_free_block(job->p, planted_alloc(job->p, 148 * GMD_MIB));
        }
    }
    assert_healthy(job->p);
}

TEST_F(job, one_size_does_not)
{
    ask_for_new_sizes(*state, 0);
    assert_healthy(((planted_job *)*state)->p);
}

/* --- cached_not_released --------------------------------------------------------------------- */

static void search_then_train(planted_job *job, uint64_t needed, bool empties)
{
    planted_at(job->p, job->loop);
    planted_free_block(job->p, planted_alloc(job->p, needed));
    if (empties) {
        planted_empty_cache(job->p);
    }
    for (int i = 0; i < ITERATIONS; i++) {
        planted_train(job);
    }
}

TEST_F(job, what_an_early_phase_needed_stays_in_the_cache)
{
    search_then_train(*state, 900 * GMD_MIB, false);
    assert_found(((planted_job *)*state)->p, GMD_FINDING_CACHED_NOT_RELEASED);
}

TEST_F(job, where_it_is_most_of_what_is_reserved_less_is_enough)
{
    search_then_train(*state, 140 * GMD_MIB, false);
    assert_found(((planted_job *)*state)->p, GMD_FINDING_CACHED_NOT_RELEASED);
}

TEST_F(job, a_few_segments_in_the_cache_are_not)
{
    search_then_train(*state, 60 * GMD_MIB, false);
    assert_healthy(((planted_job *)*state)->p);
}

/* After a large block that goes, requests of a server: no two are alike, so that no iterations are
 * found, and much is there all the time. */
static void prepare_then_serve(planted_job *job, uint64_t requests)
{
    uint64_t size = 1;
    planted_at(job->p, job->loop);
    planted_alloc(job->p, 100 * GMD_MIB);
    planted_free_block(job->p, planted_alloc(job->p, 400 * GMD_MIB));
    for (uint64_t i = 0; i < requests; i++) {
        size = size * 75 % 65537;
        planted_at(job->p, size & 1 ? job->loop : job->call);
        planted_free_block(job->p, planted_alloc(job->p, size * 256));
    }
}

TEST_F(job, what_was_needed_before_requests_without_a_pattern_stays_in_the_cache)
{
    prepare_then_serve(*state, 60);
    assert_found(((planted_job *)*state)->p, GMD_FINDING_CACHED_NOT_RELEASED);
}

TEST_F(job, a_few_requests_after_it_tell_nothing_of_the_cache)
{
    prepare_then_serve(*state, 4);
    assert_healthy(((planted_job *)*state)->p);
}

TEST_F(job, an_emptied_cache_does_not)
{
    search_then_train(*state, 900 * GMD_MIB, true);
    assert_healthy(((planted_job *)*state)->p);
}

TEST_F(job, less_than_an_iteration_tells_nothing_of_the_cache)
{
    planted_job *job = *state;
    planted_free_block(job->p, planted_alloc(job->p, 900 * GMD_MIB));
    planted_begin_late(job->p);
    planted_train(job);
    assert_healthy(job->p);
}

/* --- cross_stream_pending -------------------------------------------------------------------- */

/* A second stream works with each batch, and is so many behind. */
static void load_ahead(planted_job *job, int behind)
{
    size_t batches[ITERATIONS];
    for (int i = 0; i < ITERATIONS; i++) {
        planted_at(job->p, job->loop);
        batches[i] = planted_alloc(job->p, 16 * GMD_MIB);
        planted_train(job);
        planted_at(job->p, job->loop);
        planted_request_free(job->p, batches[i]);
        if (i >= behind) {
            planted_complete_free(job->p, batches[i - behind]);
        }
    }
}

TEST_F(job, frees_that_wait_for_a_stream_far_behind_are_pending)
{
    load_ahead(*state, 8);
    assert_found(((planted_job *)*state)->p, GMD_FINDING_CROSS_STREAM_PENDING);
}

TEST_F(job, two_batches_in_flight_are_wanted)
{
    load_ahead(*state, 2);
    assert_healthy(((planted_job *)*state)->p);
}

/* --- true_capacity --------------------------------------------------------------------------- */

TEST_F(job, a_refusal_that_ends_a_job_that_does_not_grow_is_its_capacity)
{
    planted_job *job = *state;
    for (int i = 0; i < ITERATIONS; i++) {
        planted_train(job);
    }
    planted_forward(job);
    planted_refuse(job->p, 200 * GMD_MIB);
    assert_found(job->p, GMD_FINDING_TRUE_CAPACITY);
}

TEST_F(job, a_refusal_that_the_job_survives_is_not)
{
    planted_job *job = *state;
    for (int i = 0; i < ITERATIONS; i++) {
        if (i == 4) {
            planted_refuse(job->p, 200 * GMD_MIB);
        }
        planted_train(job);
    }
    assert_healthy(job->p);
}

TEST_F(job, a_first_pass_that_is_refused_has_layers_and_no_leak)
{
    planted_job *job = *state;
    job->activation = 40 * GMD_MIB;
    planted_forward(job);
    planted_refuse(job->p, 40 * GMD_MIB);
    assert_found(job->p, GMD_FINDING_TRUE_CAPACITY);
}

TEST_F(job, a_leak_that_ends_out_of_memory_is_the_leak)
{
    planted_job *job = *state;
    for (int i = 0; i < ITERATIONS; i++) {
        planted_train(job);
        planted_at(job->p, job->call);
        planted_alloc(job->p, 20 * GMD_MIB);
    }
    planted_refuse(job->p, 20 * GMD_MIB);
    assert_found(job->p, GMD_FINDING_RETAINED_GRAPH);
}
