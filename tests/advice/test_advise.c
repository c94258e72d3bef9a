/* What is advised for recorded jobs, held against what PyTorch itself did. */
#include "gmd_test.h"

#include "gmd_advice.h"
#include "gmd_diagnosis.h"
#include "gmd_size.h"
#include "gmd_truth.h"

#include <stdio.h>
#include <string.h>

/* What a test makes, freed after it. */
static gmd_advice advice;
static gmd_truth truth;

static int free_made(void **state)
{
    (void)state;
    gmd_advice_free(&advice);
    gmd_truth_free(&truth);
    truth = (gmd_truth){0};
    return 0;
}

FIXTURE(advice, NULL, free_made);

static gmd_advice_request request_for(const char *path)
{
    return (gmd_advice_request){
        .path = path, .lib_directory = GMD_LIB_FOLDER, .scale = 1, .processes = 2, .rows = 4};
}

static void advise(const gmd_advice_request *request)
{
    gmd_error error = {""};
    if (gmd_advise(&advice, request, &error) != GMD_OK) {
        fail_msg("%s", error.text);
    }
}

static void advise_under(const char *path, const char *conf)
{
    const char *confs[] = {conf};
    gmd_advice_request request = request_for(path);
    request.confs = confs;
    request.conf_count = 1;
    advise(&request);
}

static const gmd_setting_advice *setting(const char *conf)
{
    for (size_t i = 0; i < advice.count; i++) {
        if (strcmp(advice.settings[i].conf, conf) == 0) {
            return &advice.settings[i];
        }
    }
    fail_msg("'%s' is not told of", conf);
    return NULL;
}

static void expect_stat(const char *name, uint64_t value)
{
    uint64_t recorded;
    assert_true(gmd_truth_stat(&truth, name, &recorded));
    assert_int_equal(value, recorded);
}

/* --- exactness ---------------------------------------------------------------------------------
 */

/* But those whose recorder reset its peaks: left_free_1.2; and those of two devices, of which the
 * recorder's statistics are of the first. */
static const char *const recorded_jobs[] = {
    "varbatch_cap6_default", "raw_mixed_default", "raw_mixed_expand", "limit_and_empty_cache",
    "resnet50_leak",         "seq2seq",           "gpt_frames",       "cross_stream",
    "lstm_expand",           "lstm_gc",           "lstm_split",       "streams_expand",
    "streams_roundup",       "edge_sizes",        "collect_early",    "all_settings",
    "roundup_list",          "expand_edge_sizes"};

static void expect_recorded_figures(const char *name)
{
    char path[400], json[400];
    gmd_error error = {""};
    snprintf(path, sizeof path, HISTORIES "/%s.pickle.gz", name);
    snprintf(json, sizeof json, HISTORIES "/%s.json", name);
    assert_int_equal(gmd_truth_read_json(json, &truth, &error), GMD_OK);
    advise_under(path, truth.conf);
    const gmd_setting_advice *s = &advice.settings[0];
    assert_true(advice.is_reproduced);
    assert_true(s->exact);
    assert_true(s->is_recorded);
    expect_stat("reserved_bytes.all.peak", s->peak_reserved);
    expect_stat("allocated_bytes.all.peak", s->peak_allocated);
    expect_stat("num_alloc_retries", s->retries);
    expect_stat("num_ooms", s->ooms);
}

TEST_F(advice, the_recorded_setting_has_the_recorded_figures)
{
    for (size_t i = 0; i < sizeof recorded_jobs / sizeof *recorded_jobs; i++) {
        expect_recorded_figures(recorded_jobs[i]);
        free_made(NULL);
    }
}

/* The same job was recorded three times. These are the recorder's statistics of the other two. */
TEST_F(advice, another_setting_has_the_figures_that_pytorch_had_with_it)
{
    const char *confs[] = {"expandable_segments:True", "max_split_size_mb:128"};
    gmd_advice_request request = request_for(HISTORIES "/varbatch_cap6_default.pickle.gz");
    request.confs = confs;
    request.conf_count = 2;
    advise(&request);
    const gmd_setting_advice *expand = setting(confs[0]), *split = setting(confs[1]);
    assert_true(expand->exact);
    assert_int_equal(expand->peak_reserved, 6081740800);
    assert_int_equal(expand->peak_allocated, 5954855424);
    assert_int_equal(expand->retries + expand->ooms, 0);
    assert_false(split->exact); /* a request is refused, and the job went on otherwise */
    assert_int_equal(split->peak_reserved, 6440353792);
    assert_int_equal(split->peak_allocated, 5892318208);
    assert_int_equal(split->retries, 6);
    assert_int_equal(split->ooms, 1);
}

/* --- determinism -------------------------------------------------------------------------------
 */

static void expect_same(const gmd_setting_advice *x, const gmd_setting_advice *y)
{
    assert_string_equal(x->conf, y->conf);
    assert_int_equal(x->smallest_capacity, y->smallest_capacity);
    assert_int_equal(x->peak_reserved, y->peak_reserved);
    assert_int_equal(x->device_calls, y->device_calls);
    assert_true(x->device_seconds == y->device_seconds);
}

/* What a process replayed before must not matter: with several, that is left to chance. */
TEST_F(advice, a_replay_is_the_same_whatever_was_replayed_before_it)
{
    const char *confs[] = {"expandable_segments:True", "large_segment_size_mb:32"};
    const char *turned[] = {confs[1], confs[0]};
    gmd_advice_request request = request_for(HISTORIES "/limit_and_empty_cache.pickle.gz");
    request.processes = 1;
    request.confs = confs;
    request.conf_count = 2;
    advise(&request);
    const gmd_setting_advice first = *setting(confs[0]), second = *setting(confs[1]);
    gmd_advice_free(&advice);
    request.confs = turned;
    advise(&request);
    expect_same(setting(confs[0]), &first);
    expect_same(setting(confs[1]), &second);
}

TEST_F(advice, the_advice_is_the_same_for_every_number_of_processes)
{
    gmd_advice_request request = request_for(HISTORIES "/limit_and_empty_cache.pickle.gz");
    request.processes = 1;
    advise(&request);
    gmd_advice alone = advice;
    request.processes = 3;
    advise(&request);
    assert_int_equal(advice.count, alone.count);
    assert_int_equal(advice.replays, alone.replays);
    for (size_t i = 0; i < alone.count; i++) {
        expect_same(&advice.settings[i], &alone.settings[i]);
    }
    gmd_advice_free(&alone);
}

/* --- what leaks -------------------------------------------------------------------------------
 */

TEST_F(advice, what_is_diagnosed_to_leak_is_told_of)
{
    gmd_diagnosis diagnosis;
    gmd_snapshot snapshot;
    gmd_error error;
    const char *path = HISTORIES "/resnet50_leak.pickle.gz";
    advise_under(path, "");
    assert_int_equal(gmd_snapshot_read(&snapshot, path, &error), GMD_OK);
    assert_int_equal(gmd_diagnosis_make(&diagnosis, &snapshot, path, &error), GMD_OK);
    assert_int_equal(advice.leak_count, 1);
    assert_int_equal(advice.leaks[0].class, diagnosis.findings[0].finding->class);
    assert_int_equal(advice.leaks[0].bytes, diagnosis.findings[0].finding->bytes);
    assert_int_equal(advice.leaks[0].line, 37);
    gmd_diagnosis_free(&diagnosis);
}

TEST_F(advice, a_healthy_job_has_no_leak)
{
    advise_under(HISTORIES "/eval_fixed.pickle.gz", "");
    assert_int_equal(advice.leak_count, 0);
}

TEST_F(advice, what_is_no_leak_is_for_the_settings_to_mend)
{
    assert_true(gmd_finding_is_leak(GMD_FINDING_RETAINED_GRAPH));
    assert_false(gmd_finding_is_leak(GMD_FINDING_FRAGMENTATION));
}

TEST_F(advice, the_leak_of_a_line_that_is_left_out_is_mended)
{
    const char *confs[] = {""};
    gmd_advice_request request = request_for(HISTORIES "/resnet50_leak.pickle.gz");
    request.confs = confs;
    request.conf_count = 1;
    request.without_line = "train.py:37";
    advise(&request);
    assert_int_equal(advice.leak_count, 0);
}

/* --- memory -------------------------------------------------------------------------------------
 */

TEST_F(advice, a_job_fits_in_its_smallest_capacity)
{
    const char *path = HISTORIES "/resnet50_leak.pickle.gz", *confs[] = {""};
    advise_under(path, "");
    gmd_advice_request request = request_for(path);
    request.confs = confs;
    request.conf_count = 1;
    request.capacity_bytes = advice.settings[0].smallest_capacity;
    gmd_advice_free(&advice);
    advise(&request);
    assert_true(advice.settings[0].fits);
    assert_int_equal(advice.memory_kind, GMD_MEMORY_CAPACITY);
    request.capacity_bytes -= 2 * GMD_MIB;
    gmd_advice_free(&advice);
    advise(&request);
    assert_false(advice.settings[0].fits);
    assert_false(gmd_advice_fits(&advice));
}

TEST_F(advice, no_setting_goes_below_the_lower_bound)
{
    const gmd_advice_request request = request_for(HISTORIES "/lstm_split.pickle.gz");
    advise(&request);
    for (size_t i = 0; i < advice.count; i++) {
        uint64_t smallest = advice.settings[i].smallest_capacity;
        assert_true(!smallest || smallest >= advice.lower_bound);
    }
    assert_true(advice.lower_bound >= advice.peak_live);
}

TEST_F(advice, the_best_needs_no_more_than_the_recorded_and_the_default_settings)
{
    const gmd_advice_request request = request_for(HISTORIES "/varbatch_cap6_default.pickle.gz");
    advise(&request);
    assert_true(advice.settings[0].fits);
    assert_true(advice.settings[0].smallest_capacity <= setting("")->smallest_capacity);
    assert_true(advice.tried > 10);
}

/* A small gain in what is refused is none for a job that does not fit all the same. */
TEST_F(advice, what_is_advised_is_never_worse_than_doing_nothing)
{
    gmd_advice_request request = request_for(HISTORIES "/lstm_expand.pickle.gz");
    request.capacity_bytes = 229 * GMD_MIB;
    advise(&request);
    const gmd_setting_advice *now = gmd_advice_baseline(&advice);
    assert_true(now->is_recorded);
    assert_true(advice.settings[0].smallest_capacity <= now->smallest_capacity);
}

TEST(a_setting_that_changes_nothing_is_not_worth_a_change)
{
    gmd_setting_advice now = {.fits = true, .smallest_capacity = 4000 * GMD_MIB}, other = now;
    assert_false(gmd_is_worth_a_change(&other, &now));
    other.smallest_capacity = 3998 * GMD_MIB;
    assert_false(gmd_is_worth_a_change(&other, &now));
    other.smallest_capacity = 3900 * GMD_MIB;
    assert_true(gmd_is_worth_a_change(&other, &now));
    now.fits = false;
    other.smallest_capacity = 4000 * GMD_MIB;
    assert_true(gmd_is_worth_a_change(&other, &now));
}

static uint64_t least_memory(const gmd_advice_request *request)
{
    uint64_t least = UINT64_MAX;
    advise(request);
    for (size_t i = 0; i < advice.count; i++) {
        uint64_t smallest = advice.settings[i].smallest_capacity;
        least = smallest && smallest < least ? smallest : least;
    }
    gmd_advice_free(&advice);
    return least;
}

TEST_F(advice, what_a_job_needs_does_not_depend_on_how_much_there_is)
{
    gmd_advice_request request = request_for(HISTORIES "/lstm_gc.pickle.gz");
    const uint64_t least = least_memory(&request);
    request.capacity_bytes = 186 * GMD_MIB;
    assert_int_equal(least_memory(&request), least);
    request.capacity_bytes = 100 * GMD_MIB;
    assert_int_equal(least_memory(&request), least);
}

/* --- the job is another --------------------------------------------------------------------------
 */

TEST_F(advice, without_the_line_that_leaks_the_job_needs_less)
{
    gmd_advice_request request = request_for(HISTORIES "/resnet50_leak.pickle.gz");
    const char *confs[] = {""};
    request.confs = confs;
    request.conf_count = 1;
    advise(&request);
    uint64_t before = advice.peak_live;
    request.without_line = "train.py:37";
    gmd_advice_free(&advice);
    advise(&request);
    assert_true(advice.left_out > 0);
    assert_true(advice.peak_live < before);
    assert_false(advice.settings[0].exact);
}

TEST_F(advice, a_larger_batch_does_not_make_the_model_larger)
{
    const char *confs[] = {""};
    gmd_advice_request request = request_for(HISTORIES "/resnet50_leak.pickle.gz");
    request.confs = confs;
    request.conf_count = 1;
    advise(&request);
    uint64_t before = advice.peak_live;
    request.scale = 4;
    gmd_advice_free(&advice);
    advise(&request);
    assert_true(advice.peak_live > before);
    assert_true(advice.peak_live < 4 * before);
    assert_false(advice.settings[0].exact);
}

/* --- recordings that are not whole
 * ---------------------------------------------------------------- */

TEST_F(advice, blocks_from_before_the_recording_count)
{
    advise_under(RECORDINGS "/job_001.pickle.gz", "");
    assert_true(advice.begins_late);
    assert_true(advice.peak_live >= advice.recorded_peak_allocated);
    assert_false(advice.settings[0].exact);
}

/* --- what is refused
 * ------------------------------------------------------------------------------ */

static void expect_refusal(const gmd_advice_request *request, const char *part)
{
    gmd_error error = {""};
    assert_int_equal(gmd_advise(&advice, request, &error), GMD_BAD_INPUT);
    if (!strstr(error.text, part)) {
        fail_msg("'%s' does not contain '%s'", error.text, part);
    }
}

TEST_F(advice, what_cannot_be_replayed_is_told)
{
    const char *confs[] = {"max_split_size_mb:3"};
    gmd_advice_request request = request_for("nosuch.pickle");
    expect_refusal(&request, "nosuch.pickle");
    request.path = HISTORIES "/resnet50_leak.pickle.gz";
    request.without_line = "train.py";
    expect_refusal(&request, "expected a file and a line");
    request.without_line = "train.py:4000";
    expect_refusal(&request, "no request is of train.py:4000");
    request.without_line = NULL;
    request.confs = confs;
    request.conf_count = 1;
    expect_refusal(&request, "a size in MiB of at least 20");
}
