/* What recordings may have: private pools, expandable segments, several devices, no beginning,
 * frames of allocations only. The same mistake is found in each, and nothing where there is none.
 */
#include "planted.h"

FIXTURE(job, planted_open_job, planted_close_job);

enum { ITERATIONS = 12 };

static void train(planted_job *job)
{
    for (int i = 0; i < ITERATIONS; i++) {
        planted_train(job);
    }
}

static void train_and_keep(planted_job *job)
{
    for (int i = 0; i < ITERATIONS; i++) {
        planted_train(job);
        planted_at(job->p, job->call);
        planted_alloc(job->p, 5 * GMD_MIB); /* stays */
    }
}

static gmd_recording read_recording(planted *p)
{
    gmd_recording r;
    gmd_error error;
    assert_int_equal(gmd_recording_make(&r, planted_snapshot(p), 0, &error), GMD_OK);
    return r;
}

/* --- private pools --------------------------------------------------------------------------- */

TEST_F(job, what_a_graphs_pool_keeps_free_is_not_the_caches)
{
    planted_job *job = *state;
    planted_in_pool(job->p, 7);
    planted_free_block(job->p, planted_alloc(job->p, 900 * GMD_MIB)); /* a capture */
    planted_in_pool(job->p, 0);
    train(job);
    assert_healthy(job->p);
}

TEST_F(job, a_leak_in_a_private_pool_is_a_leak)
{
    planted_job *job = *state;
    planted_in_pool(job->p, 7);
    train_and_keep(job);
    assert_found(job->p, GMD_FINDING_RETAINED_GRAPH);
}

/* --- expandable segments --------------------------------------------------------------------- */

TEST_F(job, a_leak_in_expandable_segments_is_a_leak)
{
    planted_job *job = *state;
    planted_settings(job->p)->is_expandable = true;
    train_and_keep(job);
    assert_found(job->p, GMD_FINDING_RETAINED_GRAPH);
}

TEST_F(job, pages_that_are_unmapped_are_not_reserved)
{
    planted_job *job = *state;
    gmd_recording before = read_recording(job->p);
    planted_settings(job->p)->is_expandable = true;
    planted_free_block(job->p, planted_alloc(job->p, 40 * GMD_MIB));
    planted_empty_cache(job->p);
    gmd_recording r = read_recording(job->p);
    assert_int_equal(r.peak.amount.reserved, before.at_end.reserved + 40 * GMD_MIB);
    assert_int_equal(r.at_end.reserved, before.at_end.reserved);
    gmd_recording_free(&before);
    gmd_recording_free(&r);
}

/* --- several devices ------------------------------------------------------------------------- */

static const char *class_on(planted *p, uint8_t device)
{
    gmd_job_findings findings = planted_findings(p, device);
    const char *name = findings.count ? gmd_finding_class_name(findings.items[0].class) : "healthy";
    gmd_job_findings_free(&findings);
    return name;
}

TEST_F(job, a_leak_is_told_of_the_device_that_has_it)
{
    planted_job *job = *state;
    for (int i = 0; i < ITERATIONS; i++) {
        planted_on_device(job->p, 0);
        planted_train(job);
        planted_on_device(job->p, 1);
        planted_at(job->p, job->call);
        planted_alloc(job->p, 5 * GMD_MIB); /* stays */
        planted_free_block(job->p, planted_alloc(job->p, 3 * GMD_MIB));
        planted_free_block(job->p, planted_alloc(job->p, 2 * GMD_MIB));
    }
    assert_string_equal(class_on(job->p, 0), "healthy");
    assert_string_equal(class_on(job->p, 1), "retained_graph");
}

/* --- no beginning ---------------------------------------------------------------------------- */

TEST_F(job, blocks_in_segments_of_before_the_recording_count)
{
    planted_job *job = *state;
    train(job);
    gmd_recording whole = read_recording(job->p);
    planted_begin_late(job->p);
    train(job); /* takes no segment */
    gmd_recording r = read_recording(job->p);
    assert_true(r.begins_late);
    assert_int_equal(r.peak.amount.allocated, whole.peak.amount.allocated);
    assert_int_equal(r.peak.amount.reserved, whole.peak.amount.reserved);
    gmd_recording_free(&whole);
    gmd_recording_free(&r);
}

TEST_F(job, a_leak_of_which_the_beginning_is_missing_is_a_leak)
{
    planted_job *job = *state;
    train_and_keep(job);
    planted_begin_late(job->p);
    train_and_keep(job);
    assert_found(job->p, GMD_FINDING_RETAINED_GRAPH);
}

/* --- frames of allocations only -------------------------------------------------------------- */

TEST_F(job, without_frames_of_frees_a_leak_is_a_leak)
{
    planted_job *job = *state;
    planted_frame_allocs_only(job->p);
    train_and_keep(job);
    assert_found(job->p, GMD_FINDING_RETAINED_GRAPH);
}

TEST_F(job, without_frames_of_frees_a_training_is_healthy)
{
    planted_job *job = *state;
    planted_frame_allocs_only(job->p);
    train(job);
    assert_healthy(job->p);
}

/* Where they are freed is not known, and that they go at uneven moments tells enough. */
TEST_F(job, without_frames_of_frees_the_collector_is_known_by_its_moments)
{
    static const int runs[] = {5, 9, 6, 11, 4};
    planted_job *job = *state;
    size_t pile[16];
    planted_frame_allocs_only(job->p);
    planted_at(job->p, job->loop);
    for (size_t run = 0; run < sizeof runs / sizeof *runs; run++) {
        for (int i = 0; i < runs[run]; i++) {
            pile[i] = planted_alloc(job->p, 16 * GMD_MIB);
            planted_free_block(job->p, planted_alloc(job->p, GMD_MIB));
        }
        for (int i = 0; i < runs[run]; i++) {
            planted_free_block(job->p, pile[i]);
        }
    }
    assert_found(job->p, GMD_FINDING_REFERENCE_CYCLE);
}
