/* An out-of-memory that cost the job something is a finding, of what its cause is; one that it
 * worked around is none. */
#include "gmd_diagnosis.h"
#include "planted.h"

#include <string.h>

FIXTURE(job, planted_open_job, planted_close_job);

static void train(planted_job *job, int iterations)
{
    for (int i = 0; i < iterations; i++) {
        planted_train(job);
    }
}

static void give_up(planted_job *job)
{
    planted_forward(job);
    planted_refuse(job->p, 200 * GMD_MIB);
    planted_drop_graph(job);
}

TEST_F(job, a_request_that_ends_the_job_and_would_fit_in_one_piece_is_fragmentation)
{
    planted_job *job = *state;
    train(job, 6);
    for (int i = 0; i < 10; i++) {
        planted_alloc_in(job->p, 20 * GMD_MIB, 2 * GMD_MIB);
    }
    planted_refuse(job->p, 40 * GMD_MIB);
    assert_found(job->p, GMD_FINDING_FRAGMENTATION);
}

/* What is free would not have been enough in one piece either. */
TEST_F(job, a_request_that_nothing_could_have_served_is_no_fragmentation)
{
    planted_job *job = *state;
    for (int i = 0; i < 5; i++) {
        planted_free_block(job->p, planted_alloc(job->p, 300 * GMD_MIB));
        train(job, 1);
    }
    planted_empty_cache(job->p);
    for (int i = 0; i < 10; i++) {
        planted_alloc_in(job->p, 20 * GMD_MIB, 2 * GMD_MIB);
    }
    planted_refuse(job->p, 8 * GMD_GIB);
    assert_found(job->p, GMD_FINDING_TRUE_CAPACITY);
}

TEST_F(job, a_free_block_that_is_not_looked_at_is_fragmentation)
{
    planted_job *job = *state;
    train(job, 6);
    size_t kept = planted_alloc_in(job->p, 40 * GMD_MIB, 2 * GMD_MIB);
    planted_free_block(job->p, planted_alloc_behind(job->p, kept, 30 * GMD_MIB));
    planted_refuse(job->p, 30 * GMD_MIB);
    assert_found(job->p, GMD_FINDING_FRAGMENTATION);
}

TEST_F(job, a_limit_that_ends_the_job_is_its_capacity)
{
    planted_job *job = *state;
    train(job, 12);
    planted_forward(job);
    planted_device_has_free(job->p, GMD_GIB);
    planted_refuse(job->p, 200 * GMD_MIB);
    gmd_job_findings findings = planted_findings(job->p, 0);
    assert_int_equal(findings.count, 1);
    assert_int_equal(findings.items[0].class, GMD_FINDING_TRUE_CAPACITY);
    assert_non_null(strstr(findings.items[0].evidence, "the device has 1.00 GiB free"));
    gmd_job_findings_free(&findings);
}

TEST(a_refused_request_for_nothing_is_not_to_be_done_in_parts)
{
    planted *p = planted_new();
    planted_refuse(p, 0);
    gmd_job_findings findings = planted_findings(p, 0);
    assert_int_equal(findings.count, 1);
    assert_null(strstr(findings.items[0].fix, "x.split(n)"));
    gmd_job_findings_free(&findings);
    planted_free(p);
}

TEST_F(job, iterations_that_are_given_up_are_a_finding)
{
    planted_job *job = *state;
    train(job, 6);
    give_up(job);
    train(job, 2);
    give_up(job);
    train(job, 6);
    assert_found(job->p, GMD_FINDING_TRUE_CAPACITY);
}

TEST_F(job, a_single_one_is_not)
{
    planted_job *job = *state;
    train(job, 6);
    give_up(job);
    train(job, 6);
    assert_healthy(job->p);
}

TEST_F(job, refusals_that_a_library_works_around_are_not)
{
    planted_job *job = *state;
    for (int i = 0; i < 12; i++) {
        planted_forward(job);
        planted_refuse(job->p, 200 * GMD_MIB);
        planted_refuse(job->p, 100 * GMD_MIB);
        planted_free_block(job->p, planted_alloc(job->p, 8 * GMD_MIB));
        planted_backward(job, false);
        planted_step(job);
        planted_zero_grad(job);
    }
    assert_healthy(job->p);
}

static bool names_line(const gmd_job_finding *finding, uint32_t frame)
{
    for (size_t i = 0; i < finding->where_count; i++) {
        if (finding->where[i].frame == frame) {
            return true;
        }
    }
    return false;
}

TEST_F(job, beside_a_leak_that_is_too_small_to_be_the_cause_the_line_of_the_leak_is_told_once)
{
    planted_job *job = *state;
    uint32_t leak = planted_origin(job->p, "torch/nn/modules/module.py:1790 _call_impl "
                                           "train.py:30 train train.py:99 <module>");
    for (int i = 0; i < 12; i++) {
        planted_train(job);
        planted_at(job->p, leak);
        planted_alloc(job->p, 5 * GMD_MIB); /* stays */
    }
    planted_at(job->p, job->loop);
    planted_refuse(job->p, 900 * GMD_MIB);
    gmd_job_findings findings = planted_findings(job->p, 0);
    assert_int_equal(findings.count, 2);
    assert_int_equal(findings.items[0].class, GMD_FINDING_RETAINED_GRAPH);
    assert_int_equal(findings.items[1].class, GMD_FINDING_TRUE_CAPACITY);
    assert_false(names_line(&findings.items[1], findings.items[0].where[0].frame));
    gmd_job_findings_free(&findings);
}

TEST(findings_of_all_devices_are_told_by_bytes)
{
    planted *p = planted_new();
    gmd_diagnosis d;
    gmd_error error;
    planted_alloc(p, 300 * GMD_MIB);
    planted_refuse(p, 40 * GMD_MIB);
    planted_on_device(p, 1);
    for (int i = 0; i < 10; i++) {
        planted_alloc_in(p, 64 * GMD_MIB, 2 * GMD_MIB);
    }
    planted_refuse(p, 80 * GMD_MIB);
    gmd_snapshot snapshot = planted_take_snapshot(p);
    assert_int_equal(gmd_diagnosis_make(&d, &snapshot, "planted", &error), GMD_OK);
    assert_int_equal(d.devices[0].facts.recording.device, 0);
    assert_int_equal(d.finding_count, 2);
    assert_int_equal(d.findings[0].device->facts.recording.device, 1);
    assert_int_equal(d.findings[0].finding->bytes, 620 * GMD_MIB);
    assert_int_equal(d.findings[1].device->facts.recording.device, 0);
    gmd_diagnosis_free(&d);
    planted_free(p);
}
