/* taken.h: whatever an allocator has written into the memory that the processes share, what the
 * parent takes over of it is well formed, or none of it counts. */
#include "../raised.h"
#include "case.h"
#include "child.h"

#include "gmd_judge.h"
#include "gmd_known.h"
#include "gmd_random.h"
#include "gmd_size.h"
#include "gmd_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static gmd_run_options options = {.subject.allocator = "any",
                                  .device.kind = GMD_DEVICE_SIM,
                                  .conditions.device_count = 1,
                                  .conditions.capacity_bytes = 64 * GMD_MIB};
static const gmd_workload workload = {.name = "live", .kind = "scenario"};

static shared_run *shared;
static taken_run *taken;

static int map(void **state)
{
    (void)state;
    shared = child_map_shared(&options, &workload, true);
    taken = calloc(1, sizeof *taken);
    return shared && taken ? 0 : -1;
}

static int unmap(void **state)
{
    (void)state;
    child_unmap_shared(shared);
    free(taken);
    return 0;
}

FIXTURE(taken, map, unmap);

/* --- what is written ---------------------------------------------------------------------- */

enum { REQUESTS = 200 };

static void fill(gmd_random *random, void *memory, size_t size)
{
    unsigned char *bytes = memory;
    for (size_t i = 0; i < size; i++) {
        bytes[i] = (unsigned char)gmd_random_next(random);
    }
}

/* Everything but the guards, and so many of the requests. */
static void scribble(gmd_random *random)
{
    fill(random, &shared->outcome, sizeof shared->outcome);
    fill(random, (char *)shared + offsetof(shared_run, beats),
         offsetof(shared_run, requests) - offsetof(shared_run, beats));
    fill(random, shared->requests, REQUESTS * sizeof *shared->requests);
}

/* A count that is mostly within the bound: then what it counts is looked at. */
static uint32_t draw_count(gmd_random *random, uint32_t most)
{
    return (uint32_t)gmd_random_below(random, (uint64_t)most + 1 + most / 8);
}

static void make_numbers_sound(gmd_random *random)
{
    gmd_outcome *o = &shared->outcome;
    o->verdict = (gmd_verdict)draw_count(random, GMD_ERROR);
    o->error_status = (gmd_status)draw_count(random, GMD_FAILED);
    o->seconds = 1;
    o->violation_count = draw_count(random, 1);
    o->oracle_count = draw_count(random, 1);
    o->phase_count = draw_count(random, GMD_PHASE_MAX);
    o->bound_count = draw_count(random, GMD_BOUND_MAX);
    o->note_count = draw_count(random, GMD_NOTE_MAX);
    o->check.quirk_count = draw_count(random, 8);
    o->known_context.fault_count = draw_count(random, 8);
    shared->request_count = draw_count(random, REQUESTS);
    atomic_store(&shared->stage, (int)draw_count(random, GMD_STAGE_UNLOADING));
}

/* Those whose kind is none are refused: these have one, and random texts and parties. */
static void make_verdicts_sound(gmd_random *random)
{
    gmd_violation *v = &shared->outcome.violations[0];
    const gmd_kind_entry *kind = &gmd_kinds[gmd_random_below(random, GMD_KIND_COUNT)];
    snprintf(v->oracle, sizeof v->oracle, "%s", kind->oracle);
    snprintf(v->identity.kind, sizeof v->identity.kind, "%s", kind->name);
    gmd_oracle_result *r = &shared->outcome.oracles[0];
    snprintf(r->name, sizeof r->name, "%s", gmd_judges[0].name);
    r->fate = (gmd_oracle_fate)draw_count(random, GMD_ORACLE_SKIPPED);
}

/* --- what is taken ------------------------------------------------------------------------ */

#define assert_ends(text) assert_true(strnlen((text), sizeof(text)) < sizeof(text))

static void check_bool(const bool *value)
{
    unsigned char byte;
    memcpy(&byte, value, sizeof byte);
    assert_true(byte <= 1);
}

static void check_lists(const gmd_outcome *o)
{
    for (uint32_t i = 0; i < o->violation_count; i++) {
        const gmd_violation *v = &o->violations[i];
        assert_ends(v->message);
        assert_ends(v->case_path);
        assert_true(gmd_oracle_is_named(v->oracle));
        assert_true(v->identity.party_count <= GMD_PARTY_MAX);
        assert_memory_equal(v->identity.kind, v->oracle, strlen(v->oracle));
    }
    for (uint32_t i = 0; i < o->oracle_count; i++) {
        assert_true(gmd_oracle_is_named(o->oracles[i].name));
        assert_ends(o->oracles[i].reason);
        assert_in_range(o->oracles[i].fate, GMD_ORACLE_PASSED, GMD_ORACLE_SKIPPED);
    }
    for (uint32_t i = 0; i < o->phase_count; i++) {
        assert_ends(o->phases[i].label);
    }
    for (uint32_t i = 0; i < o->bound_count; i++) {
        check_bool(&o->bounds[i].is_reserved);
        check_bool(&o->bounds[i].leaks);
        check_bool(&o->bounds[i].is_told_only);
    }
    for (uint32_t i = 0; i < o->note_count; i++) {
        assert_ends(o->notes[i]);
    }
}

static void check_values(const gmd_outcome *o)
{
    const known_context *context = &o->known_context;
    assert_in_range(o->verdict, GMD_PASS, GMD_ERROR);
    assert_in_range(o->error_status, GMD_OK, GMD_FAILED);
    assert_ends(o->error);
    assert_ends(context->conf);
    assert_true(context->fault_count <= 8);
    for (uint32_t i = 0; i < context->fault_count; i++) {
        assert_ends(context->faults[i]);
    }
    assert_true(o->check.quirk_count <= 8);
    for (uint32_t i = 0; i < o->check.quirk_count; i++) {
        assert_ends(o->check.quirks[i].name);
    }
    assert_ends(o->check.first_difference.text);
    check_bool(&context->has_destroyed);
    check_bool(&context->is_spoilt);
    check_bool(&o->check.present);
    check_bool(&o->check.first_difference.present);
    check_bool(&o->has_stats);
    assert_string_equal(o->name, "live");
}

/* The case of a live scenario is made of requests that lay there, too. */
static void check_case(void)
{
    gmd_trace cut;
    gmd_error error;
    if (taken->outcome.violation_count && case_cut(&options, &workload, taken, &cut, &error) == 0) {
        for (size_t i = 0; i < cut.count; i++) {
            assert_true(cut.requests[i].op < GMD_OP_COUNT);
        }
    }
    if (taken->outcome.violation_count) {
        gmd_trace_free(&cut);
    }
}

/* True: it was believed. */
static bool judge(gmd_random *random)
{
    const child_end ends[] = {{.wait_status = 0}, {.wait_status = 11}, {.is_hung = true}};
    const child_end *end = &ends[gmd_random_below(random, 3)];
    bool is_believed = child_judge_end(&options, &workload, shared, NULL, end, taken);
    check_values(&taken->outcome);
    check_lists(&taken->outcome);
    check_case();
    return is_believed;
}

/* --- claims ------------------------------------------------------------------------------- */

TEST_F(taken, random_bytes_are_no_run)
{
    for (uint64_t seed = 1; seed <= 50; seed++) {
        gmd_random random = {seed};
        child_set_up_shared(shared, &options, &workload);
        scribble(&random);
        print_message("seed %d\n", (int)seed);
        assert_false(judge(&random));
        assert_string_equal(taken->outcome.violations[0].identity.kind, "progress.overwrote_gmd");
    }
}

TEST_F(taken, a_run_with_random_texts_is_well_formed_or_none)
{
    uint32_t believed = 0;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        gmd_random random = {seed};
        child_set_up_shared(shared, &options, &workload);
        scribble(&random);
        make_numbers_sound(&random);
        make_verdicts_sound(&random);
        print_message("seed %d\n", (int)seed);
        believed += judge(&random);
    }
    assert_in_range(believed, 20, 380); /* both were seen */
}

TEST_F(taken, a_violation_with_a_kind_of_another_oracle_is_none)
{
    gmd_outcome *o = &shared->outcome;
    o->violation_count = 1;
    snprintf(o->violations[0].oracle, sizeof o->violations[0].oracle, "../../leak");
    snprintf(o->violations[0].identity.kind, sizeof o->violations[0].identity.kind, "leak.streams");
    assert_false(take_run(taken, shared));
    snprintf(o->violations[0].oracle, sizeof o->violations[0].oracle, "leak");
    assert_true(take_run(taken, shared));
}

TEST_F(taken, a_fate_that_is_none_is_refused)
{
    gmd_outcome *o = &shared->outcome;
    o->oracle_count = 1;
    snprintf(o->oracles[0].name, sizeof o->oracles[0].name, "leak");
    o->oracles[0].fate = (gmd_oracle_fate)7;
    assert_false(take_run(taken, shared));
    o->oracles[0].fate = GMD_ORACLE_SKIPPED;
    assert_true(take_run(taken, shared));
}

TEST_F(taken, a_time_that_is_none_is_not_told)
{
    gmd_oracle_result *overlap = &shared->outcome.oracles[0];
    shared->outcome.oracle_count = 1;
    *overlap = (gmd_oracle_result){.name = "overlap", .asked = 3, .seconds = NAN};
    assert_true(take_run(taken, shared));
    assert_true(taken->outcome.oracles[0].seconds >= 0);
}

TEST_F(taken, a_guard_that_is_gone_refuses_all)
{
    shared->last_guard++;
    assert_false(take_run(taken, shared));
}

TEST_F(taken, a_request_under_way_that_is_none_is_not_told)
{
    atomic_store(&shared->stage, GMD_STAGE_REQUESTS);
    atomic_store(&shared->is_in_request, 1);
    memset(&shared->current, 0xff, sizeof shared->current);
    const child_end crash = {.wait_status = 11};
    assert_true(child_judge_end(&options, &workload, shared, NULL, &crash, taken));
    assert_string_equal(gmd_identity_party(&taken->outcome.violations[0].identity, "at"),
                        "between");
}

/* --- every place, one at a time ----------------------------------------------------------------
 */

/* A run that has something of everything. */
static void make_valid(void)
{
    gmd_outcome *o = &shared->outcome;
    memset((char *)shared, 0, offsetof(shared_run, requests) + REQUESTS * sizeof(gmd_request));
    child_set_up_shared(shared, &options, &workload);
    o->requests = shared->request_count = REQUESTS;
    outcome_violation(o, NULL, GMD_KIND(leak, streams), GMD_NO_PARTIES, 3, "2 streams are left");
    outcome_violation(o, NULL, GMD_KIND(progress, hang), GMD_PARTIES({"at", "alloc"}), 5, "hangs");
    o->phase_count = o->bound_count = o->note_count = 2;
    o->check.quirk_count = o->known_context.fault_count = 2;
    o->verdict = GMD_FAIL;
    atomic_store(&shared->stage, GMD_STAGE_REQUESTS);
    atomic_store(&shared->is_in_request, 1);
}

/* What counts and kinds are mistaken for; anything else, now and then. */
static uint64_t draw_word(gmd_random *random)
{
    const uint64_t any = gmd_random_next(random);
    const uint64_t words[] = {0,         UINT64_MAX,        any % 300, any,
                              any >> 32, (uint64_t)1 << 31, any << 32};
    return words[gmd_random_below(random, sizeof words / sizeof *words)];
}

/* Words and bytes where something lies: before the lists, in them, behind them. */
static void corrupt(gmd_random *random)
{
    const size_t ends[] = {offsetof(gmd_outcome, violations), sizeof(gmd_outcome),
                           offsetof(shared_run, requests),
                           offsetof(shared_run, requests) + REQUESTS * sizeof(gmd_request)};
    for (uint64_t left = 1 + gmd_random_below(random, 6); left; left--) {
        size_t end = ends[gmd_random_below(random, sizeof ends / sizeof *ends)];
        size_t size = (size_t)1 << gmd_random_below(random, 4);
        size_t at = (size_t)gmd_random_below(random, end / size) * size;
        uint64_t word = draw_word(random);
        memcpy((char *)shared + at, &word, size);
    }
}

TEST_F(taken, whatever_word_is_written_over_the_run_is_well_formed_or_none)
{
    enum { CORRUPTIONS = 10000 };
    uint32_t believed = 0;
    for (uint64_t seed = 1; seed <= CORRUPTIONS; seed++) {
        gmd_random random = {seed};
        make_valid();
        corrupt(&random);
        believed += judge(&random);
    }
    assert_in_range(believed, 1, CORRUPTIONS - 1); /* both were seen */
}

/* --- control that left a call ------------------------------------------------------------------
 */

TEST_F(taken, an_error_without_words_is_control_that_left_a_call)
{
    make_valid();
    shared->outcome.violation_count = 0;
    shared->outcome.verdict = GMD_ERROR;
    atomic_store(&shared->is_finished, 1);
    assert_true(child_judge_end(&options, &workload, shared, NULL, NULL, taken));
    assert_int_equal(taken->outcome.verdict, GMD_FAIL);
    assert_string_equal(taken->outcome.violations[0].identity.kind, "progress.left_call");
    assert_non_null(strstr(taken->outcome.violations[0].message, "longjmp"));
    note_raised(&taken->outcome.violations[0].identity);
}

TEST_F(taken, a_run_that_is_over_within_a_request_has_left_its_call)
{
    make_valid();
    shared->outcome.violation_count = 0;
    shared->outcome.verdict = GMD_PASS;
    atomic_store(&shared->is_finished, 1);
    assert_true(child_judge_end(&options, &workload, shared, NULL, NULL, taken));
    assert_string_equal(taken->outcome.violations[0].identity.kind, "progress.left_call");
}

/* --- what is kept beside the outcome -----------------------------------------------------------
 */

TEST(a_timeline_is_cut_where_an_entry_cannot_be)
{
    gmd_error error;
    gmd_timeline *t = gmd_timeline_open(&error);
    assert_non_null(t);
    t->count = UINT64_MAX;
    t->entries[3].block = UINT32_MAX;
    take_timeline(t);
    uint64_t count = t->count;
    gmd_timeline_close(t);
    assert_int_equal(count, 3);
}

TEST(a_journal_counts_no_more_than_it_holds)
{
    gmd_error error;
    gmd_journal *j = gmd_journal_open(&error);
    assert_non_null(j);
    j->count = 5;
    j->block_count = UINT64_MAX;
    memset(j->conf, 'x', sizeof j->conf);
    memset(&j->events[2], 0xff, sizeof j->events[2]);
    take_journal(j);
    gmd_journal_event event = j->events[2];
    bool ends = strnlen(j->conf, sizeof j->conf) < sizeof j->conf;
    uint64_t blocks = j->block_count;
    gmd_journal_close(j);
    assert_true(ends);
    assert_int_equal(blocks, GMD_JOURNAL_BLOCK_MAX);
    assert_int_equal(event.action, 0);
    assert_true(strnlen(event.name, sizeof event.name) < sizeof event.name);
}

TEST(what_was_taken_is_nobody_elses)
{
    gmd_error error;
    gmd_timeline *t = gmd_timeline_open(&error);
    assert_non_null(t);
    t->count = 1;
    take_timeline(t);
    if (fork() == 0) {
        t->count = 7;
        _exit(EXIT_SUCCESS);
    }
    wait(NULL);
    uint64_t count = t->count;
    gmd_timeline_close(t);
    assert_int_equal(count, 1);
}
