/* Each out-of-memory of a history: its cause, the change that would have let it pass, how the job
 * went on, and what others held of the device. */
#include "gmd_ooms.h"
#include "planted.h"

#include <string.h>

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

/* All of the history. */
static gmd_ooms find_ooms(planted *p)
{
    gmd_facts facts;
    gmd_ooms ooms;
    gmd_error error;
    assert_int_equal(gmd_facts_make(&facts, planted_snapshot(p), 0, &error), GMD_OK);
    assert_int_equal(gmd_ooms_find(&ooms, &facts, &error), GMD_OK);
    gmd_job_findings findings;
    assert_int_equal(gmd_job_findings_find(&findings, &ooms, &facts, &error), GMD_OK);
    gmd_job_findings_free(&findings);
    gmd_facts_free(&facts);
    return ooms;
}

static void assert_cause(planted *p, gmd_oom_cause cause)
{
    gmd_ooms ooms = find_ooms(p);
    assert_int_equal(ooms.count, 1);
    assert_string_equal(gmd_oom_cause_name(ooms.items[0].cause), gmd_oom_cause_name(cause));
    gmd_ooms_free(&ooms);
}

static void assert_change(planted *p, const char *change)
{
    gmd_ooms ooms = find_ooms(p);
    assert_string_equal(ooms.items[0].change, change);
    gmd_ooms_free(&ooms);
}

/* --- causes ---------------------------------------------------------------------------------- */

static void fill(planted *p)
{
    for (int i = 0; i < 10; i++) {
        planted_alloc(p, 20 * GMD_MIB);
    }
}

/* Each segment has a block of so many bytes, and the rest of it is free. */
static void scatter(planted *p, uint64_t block)
{
    for (int i = 0; i < 10; i++) {
        planted_alloc_in(p, 20 * GMD_MIB, block);
    }
}

TEST_F(history, a_full_device_is_short_of_capacity)
{
    planted *p = *state;
    fill(p);
    planted_refuse(p, 40 * GMD_MIB);
    assert_cause(p, GMD_OOM_CAPACITY);
    assert_change(p, "40.0 MiB more memory on the device, or that much less held");
}

TEST_F(history, a_device_that_has_it_is_under_a_limit)
{
    planted *p = *state;
    fill(p);
    planted_device_has_free(p, GMD_GIB);
    planted_refuse(p, 40 * GMD_MIB);
    assert_cause(p, GMD_OOM_LIMIT);
    assert_change(p,
                  "a memory limit that is up to 40.0 MiB higher (set_per_process_memory_fraction)");
}

TEST_F(history, free_parts_that_would_do_in_one_piece_are_fragmentation)
{
    planted *p = *state;
    scatter(p, 2 * GMD_MIB);
    planted_refuse(p, 40 * GMD_MIB);
    assert_cause(p, GMD_OOM_FRAGMENTATION);
    assert_change(p, "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True: 180.0 MiB are free, in "
                     "several places");
}

TEST_F(history, a_little_that_is_free_between_blocks_is_in_every_full_job)
{
    planted *p = *state;
    scatter(p, 16 * GMD_MIB);
    planted_refuse(p, 30 * GMD_MIB);
    assert_cause(p, GMD_OOM_CAPACITY);
    assert_change(p, "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True: 40.0 MiB are free, in "
                     "several places");
}

TEST_F(history, expandable_segments_are_no_change_for_a_job_that_has_them)
{
    planted *p = *state;
    planted_settings(p)->is_expandable = true;
    scatter(p, 16 * GMD_MIB);
    planted_refuse(p, 30 * GMD_MIB);
    assert_change(p, "30.0 MiB more memory on the device, or that much less held");
}

TEST_F(history, what_private_pools_keep_free_would_be_enough_for_others)
{
    planted *p = *state;
    planted_in_pool(p, 7);
    planted_free_block(
        p, planted_alloc_behind(p, planted_alloc_in(p, 80 * GMD_MIB, 2 * GMD_MIB), 60 * GMD_MIB));
    planted_in_pool(p, 0);
    fill(p);
    planted_device_has_free(p, GMD_GIB);
    planted_refuse(p, 40 * GMD_MIB);
    assert_cause(p, GMD_OOM_LIMIT);
    assert_change(p,
                  "torch.cuda.graph(g, pool=...): 78.0 MiB are free in private pools of CUDA "
                  "graphs; one pool for all of them, or a graph less, leaves more of it to others");
}

TEST_F(history, a_free_block_that_fits_is_a_defect_of_the_allocator)
{
    planted *p = *state;
    size_t kept = planted_alloc_in(p, 40 * GMD_MIB, 2 * GMD_MIB);
    planted_free_block(p, planted_alloc_behind(p, kept, 30 * GMD_MIB));
    planted_refuse(p, 30 * GMD_MIB);
    assert_cause(p, GMD_OOM_ALLOCATOR);
}

TEST_F(history, where_events_are_missing_no_free_block_is_known_to_have_fitted)
{
    planted *p = *state;
    gmd_facts facts;
    gmd_ooms ooms;
    gmd_error error;
    planted_alloc_in(p, 40 * GMD_MIB, 2 * GMD_MIB);
    planted_refuse(p, 30 * GMD_MIB);
    gmd_snapshot snapshot = planted_take_snapshot(p);
    snapshot.segment_count = 0; /* it was taken later, when all of it was given back */
    assert_int_equal(gmd_facts_make(&facts, &snapshot, 0, &error), GMD_OK);
    assert_int_equal(gmd_ooms_find(&ooms, &facts, &error), GMD_OK);
    assert_int_not_equal(ooms.items[0].cause, GMD_OOM_ALLOCATOR);
    gmd_ooms_free(&ooms);
    gmd_facts_free(&facts);
    gmd_snapshot_free(&snapshot);
}

TEST_F(history, a_part_that_still_waits_for_its_stream_is_none)
{
    planted *p = *state;
    size_t kept = planted_alloc_in(p, 40 * GMD_MIB, 10 * GMD_MIB);
    planted_request_free(p, planted_alloc_behind(p, kept, 30 * GMD_MIB));
    planted_refuse(p, 30 * GMD_MIB);
    assert_cause(p, GMD_OOM_CAPACITY);
}

/* So much stays in each iteration; the last is refused more. */
static void leak_until(planted_job *job, uint64_t leak, uint64_t refused)
{
    for (int i = 0; i < 12; i++) {
        planted_train(job);
        planted_at(job->p, job->call);
        planted_alloc(job->p, leak);
    }
    planted_refuse(job->p, refused);
}

TEST_F(history, the_last_pages_of_expandable_segments_may_have_been_beyond_the_limit)
{
    planted *p = *state;
    planted_settings(p)->is_expandable = true;
    fill(p);
    planted_free_block(p, planted_alloc(p, 20 * GMD_MIB));
    planted_device_has_free(p, GMD_GIB);
    planted_refuse(p, 20 * GMD_MIB);
    assert_change(p,
                  "a memory limit that is up to 20.0 MiB higher (set_per_process_memory_fraction)");
}

TEST_F(history, what_has_leaked_would_have_been_enough)
{
    planted_job job = planted_job_new(*state);
    leak_until(&job, 20 * GMD_MIB, 40 * GMD_MIB);
    assert_cause(job.p, GMD_OOM_LEAK);
}

TEST_F(history, a_leak_that_is_less_than_what_is_missing_is_not_the_cause)
{
    planted_job job = planted_job_new(*state);
    leak_until(&job, 5 * GMD_MIB, 900 * GMD_MIB);
    assert_cause(job.p, GMD_OOM_CAPACITY);
}

TEST_F(history, the_largest_request_that_would_be_served_is_the_largest_part)
{
    planted *p = *state;
    scatter(p, 2 * GMD_MIB);
    planted_refuse(p, 40 * GMD_MIB);
    gmd_ooms ooms = find_ooms(p);
    assert_int_equal(ooms.items[0].largest, 18 * GMD_MIB);
    gmd_ooms_free(&ooms);
}

/* --- how the job went on --------------------------------------------------------------------- */

static void assert_outcome(planted *p, gmd_oom_outcome outcome)
{
    gmd_ooms ooms = find_ooms(p);
    assert_true(ooms.count >= 1);
    assert_string_equal(gmd_oom_outcome_name(ooms.items[ooms.count - 1].outcome),
                        gmd_oom_outcome_name(outcome));
    gmd_ooms_free(&ooms);
}

/* An iteration in which a library is refused a workspace, and takes less. */
static void train_with_less(planted_job *job)
{
    planted_forward(job);
    planted_refuse(job->p, 200 * GMD_MIB);
    planted_free_block(job->p, planted_alloc(job->p, 8 * GMD_MIB));
    planted_backward(job, false);
    planted_step(job);
    planted_zero_grad(job);
}

/* One that the program gives up as a request is refused. */
static void give_up(planted_job *job)
{
    planted_forward(job);
    planted_refuse(job->p, 200 * GMD_MIB);
    planted_drop_graph(job);
}

static void train(planted_job *job, int iterations)
{
    for (int i = 0; i < iterations; i++) {
        planted_train(job);
    }
}

TEST_F(history, a_library_that_takes_less_lets_the_job_go_on)
{
    planted_job job = planted_job_new(*state);
    train(&job, 6);
    train_with_less(&job);
    train(&job, 6);
    assert_outcome(job.p, GMD_OOM_SURVIVED);
}

TEST_F(history, what_is_thrown_away_is_lost)
{
    planted_job job = planted_job_new(*state);
    train(&job, 6);
    give_up(&job);
    train(&job, 6);
    assert_outcome(job.p, GMD_OOM_LOST);
}

TEST_F(history, a_job_that_looks_for_its_batch_size_first_loses_nothing)
{
    planted_job job = planted_job_new(*state);
    give_up(&job);
    train(&job, 12);
    assert_outcome(job.p, GMD_OOM_SURVIVED);
}

TEST_F(history, a_job_that_asks_for_nothing_more_has_ended)
{
    planted_job job = planted_job_new(*state);
    train(&job, 12);
    planted_forward(&job);
    planted_refuse(job.p, 200 * GMD_MIB);
    assert_outcome(job.p, GMD_OOM_ENDED);
}

TEST_F(history, a_job_may_work_around_some_and_end_with_the_last)
{
    planted_job job = planted_job_new(*state);
    train(&job, 6);
    train_with_less(&job);
    train(&job, 6);
    planted_forward(&job);
    planted_refuse(job.p, 300 * GMD_MIB);
    assert_outcome(job.p, GMD_OOM_ENDED);
}

TEST_F(history, a_job_that_catches_what_is_raised_does_not_end_with_the_last)
{
    planted_job job = planted_job_new(*state);
    train(&job, 6);
    give_up(&job);
    train(&job, 6);
    give_up(&job);
    assert_outcome(job.p, GMD_OOM_SURVIVED);
}

TEST_F(history, equal_ones_are_told_once_and_counted)
{
    planted_job job = planted_job_new(*state);
    train(&job, 6);
    train_with_less(&job);
    train_with_less(&job);
    train(&job, 6);
    gmd_ooms ooms = find_ooms(job.p);
    assert_int_equal(ooms.count, 1);
    assert_int_equal(ooms.items[0].repeats, 1);
    gmd_ooms_free(&ooms);
}

/* --- beside PyTorch -------------------------------------------------------------------------- */

TEST_F(history, what_others_hold_is_what_is_neither_free_nor_reserved)
{
    planted *p = *state;
    gmd_error error;
    fill(p);
    planted_device_has_free(p, 100 * GMD_MIB);
    planted_refuse(p, 400 * GMD_MIB);
    gmd_ooms ooms = find_ooms(p);
    assert_int_equal(gmd_ooms_know_capacity(&ooms, GMD_GIB, &error), GMD_OK);
    assert_int_equal(ooms.items[0].beside, 724 * GMD_MIB);
    gmd_ooms_free(&ooms);
}

TEST_F(history, without_the_capacity_it_is_not_known)
{
    planted *p = *state;
    fill(p);
    planted_refuse(p, 400 * GMD_MIB);
    gmd_ooms ooms = find_ooms(p);
    assert_true(ooms.items[0].beside == GMD_NOT_KNOWN);
    gmd_ooms_free(&ooms);
}

TEST_F(history, a_capacity_below_what_was_there_is_refused)
{
    planted *p = *state;
    gmd_error error;
    fill(p);
    planted_device_has_free(p, 100 * GMD_MIB);
    planted_refuse(p, 400 * GMD_MIB);
    gmd_ooms ooms = find_ooms(p);
    assert_int_equal(gmd_ooms_know_capacity(&ooms, 299 * GMD_MIB, &error), GMD_BAD_INPUT);
    assert_non_null(strstr(error.text, "100.0 MiB were free on it and 200.0 MiB reserved"));
    gmd_ooms_free(&ooms);
}
