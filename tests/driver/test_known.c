/* gmd_known.h: an entry covers the defect that it names, and no other. */
#include "driver_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static gmd_known known;
static known_context context;
static gmd_error error;

static int reset(void **state)
{
    (void)state;
    known = (gmd_known){.count = 0};
    context = (known_context){.fault_count = 0};
    return 0;
}

static int release(void **state)
{
    (void)state;
    gmd_known_free(&known);
    return 0;
}

FIXTURE(known, reset, release);

static gmd_status take(const char *list)
{
    return read_list(&known, list, &error);
}

/* What covers a violation of some kind of the oracle, with this message. */
static const known_entry *entry_of(const char *oracle, const char *message)
{
    gmd_identity some = {.party_count = 0};
    snprintf(some.kind, sizeof some.kind, "%s.some", oracle);
    return known_find(&known, &context, &some, message);
}

static bool has(const char *oracle, const char *message)
{
    return entry_of(oracle, message) != NULL;
}

static bool has_kind(gmd_kind kind, const gmd_given_party *parties)
{
    gmd_identity identity;
    gmd_identity_make(&identity, kind, parties);
    return known_find(&known, &context, &identity, "any words") != NULL;
}

TEST_F(known, an_entry_is_of_its_oracle_and_cause)
{
    assert_int_equal(take("# a comment\nleak: 2 streams are left\n"), GMD_OK);
    assert_true(has("leak", "device 0: 2 streams are left"));
    assert_false(has("leak", "device 0: 3 streams are left"));
    assert_false(has("data", "device 0: 2 streams are left"));
}

TEST_F(known, a_fault_of_the_function_must_have_been_planted)
{
    assert_int_equal(take("stream_order: nothing makes | fault cudaEventRecord\n"), GMD_OK);
    assert_false(has("stream_order", "nothing makes stream 1 wait"));
    snprintf(context.faults[context.fault_count++], sizeof *context.faults, "cudaMalloc");
    assert_false(has("stream_order", "nothing makes stream 1 wait"));
    snprintf(context.faults[context.fault_count++], sizeof *context.faults, "cudaEventRecord");
    assert_true(has("stream_order", "nothing makes stream 1 wait"));
}

TEST_F(known, all_conditions_must_be_met)
{
    assert_int_equal(take("progress | conf expandable_segments:True | destroy\n"), GMD_OK);
    snprintf(context.conf, sizeof context.conf, "max_split_size_mb:20,expandable_segments:True");
    assert_false(has("progress", "any"));
    context.has_destroyed = true;
    assert_true(has("progress", "any"));
}

/* A capture opens a pool, too; not every pool is a capture's. */
TEST_F(known, a_capture_must_have_been_begun)
{
    assert_int_equal(take("progress: a | begin_capture\nprogress: b | begin_pool\n"), GMD_OK);
    context.has_begun_pool = true;
    assert_false(has("progress", "a"));
    assert_true(has("progress", "b"));
    context.has_captured = true;
    assert_true(has("progress", "a"));
}

TEST_F(known, another_device_must_have_been_asked)
{
    assert_int_equal(take("data | device\n"), GMD_OK);
    assert_false(has("data", "any"));
    context.has_second_device = true;
    assert_true(has("data", "any"));
}

TEST_F(known, an_entry_can_end_the_judging_of_the_run)
{
    assert_int_equal(take("size: 18446744073709 | end\nleak: streams\n"), GMD_OK);
    assert_true(entry_of("size", "18446744073709551615 B")->spoils);
    assert_false(entry_of("leak", "2 streams are left")->spoils);
}

TEST_F(known, a_condition_that_is_none_is_refused_with_its_line)
{
    assert_int_equal(take("leak\nleak: streams | on Mondays\n"), GMD_BAD_INPUT);
    assert_non_null(
        strstr(error.text,
               ":2: expected 'fault FUNCTION', 'conf TEXT', 'destroy', 'device', 'begin_pool', "
               "'begin_capture' or 'end' behind '|', found 'on Mondays'"));
    assert_int_equal(known.count, 0);
}

TEST_F(known, a_bar_with_nothing_behind_it_is_refused)
{
    static const char *const lists[] = {"leak |\n", "leak | # later\n", "leak: a | end |\n",
                                        "leak || end\n"};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        assert_int_equal(take(lists[i]), GMD_BAD_INPUT);
        assert_non_null(strstr(error.text, ":1: expected 'fault FUNCTION'"));
    }
}

TEST_F(known, an_entry_of_a_kind_covers_the_kind_whatever_the_words)
{
    assert_int_equal(take("leak.streams\n"), GMD_OK);
    assert_true(has_kind(GMD_KIND(leak, streams), GMD_NO_PARTIES));
    assert_false(has_kind(GMD_KIND(leak, events), GMD_NO_PARTIES));
}

TEST_F(known, parties_that_an_entry_names_must_be_these_and_others_may_be_any)
{
    assert_int_equal(take("progress.crash signal=SIGSEGV # at: wherever\n"), GMD_OK);
    assert_true(
        has_kind(GMD_KIND(progress, crash), GMD_PARTIES({"signal", "SIGSEGV"}, {"at", "free"})));
    assert_false(
        has_kind(GMD_KIND(progress, crash), GMD_PARTIES({"signal", "SIGABRT"}, {"at", "free"})));
    assert_false(has_kind(GMD_KIND(progress, crash), GMD_PARTIES({"at", "free"})));
}

TEST_F(known, a_party_of_several_words_stands_in_quotation_marks)
{
    assert_int_equal(take("progress.failed error=\"a | b # c\" fault=hit | destroy\n"), GMD_OK);
    const gmd_given_party *parties = GMD_PARTIES({"error", "a | b # c"}, {"fault", "hit"});
    assert_false(has_kind(GMD_KIND(progress, failed), parties));
    context.has_destroyed = true;
    assert_true(has_kind(GMD_KIND(progress, failed), parties));
}

TEST_F(known, an_oracle_can_be_known_by_a_party)
{
    assert_int_equal(take("peak_bound bound=limit|end"), GMD_OK);
    assert_true(has_kind(GMD_KIND(peak_bound, reserved), GMD_PARTIES({"bound", "limit"})));
    assert_true(has_kind(GMD_KIND(peak_bound, handed_out), GMD_PARTIES({"bound", "limit"})));
    assert_false(has_kind(GMD_KIND(peak_bound, handed_out), GMD_PARTIES({"bound", "device"})));
    assert_true(known.entries[0].spoils);
}

/* What gmd prints for a violation can be put into a list as it is. */
TEST_F(known, an_identity_is_printed_as_a_line_that_covers_it)
{
    gmd_identity identity;
    char line[GMD_IDENTITY_TEXT];
    gmd_identity_make(&identity, GMD_KIND(progress, failed),
                      GMD_PARTIES({"error", "it said \"no\" | #1"}, {"fault", "hit"}));
    gmd_identity_print(&identity, line);
    assert_string_equal(line, "progress.failed error=\"it said 'no' | #1\" fault=hit");
    assert_int_equal(take(line), GMD_OK);
    assert_non_null(known_find(&known, &context, &identity, ""));
}

TEST_F(known, entries_that_go_by_words_are_counted)
{
    assert_int_equal(take("leak: streams\nleak\nleak.streams\nsize: : 184 | end\n"), GMD_OK);
    assert_int_equal(gmd_known_count_words(&known), 2);
}

TEST_F(known, what_is_no_kind_and_no_party_is_refused_with_its_line)
{
    static const struct {
        const char *list, *message;
    } wrong[] = {{"leak.everything\n", ":1: expected a kind that"},
                 {"\nleaks\n", ":2: expected 'ORACLE', 'ORACLE.KIND' or 'ORACLE: WORDS', found"},
                 {"leak streams\n", "found 'streams'"},
                 {"leak.streams at=\n", "found 'at='"},
                 {"leak.streams =free\n", "found '=free'"},
                 {"leak.streams at=\"free\n", "found 'at=\"free'"},
                 {"leak a=1 b=2 c=3 d=4 e=5\n", "found 'e=5'"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(take(wrong[i].list), GMD_BAD_INPUT);
        if (!strstr(error.text, wrong[i].message)) {
            fail_msg("%s", error.text);
        }
        assert_int_equal(known.count, 0);
    }
}
