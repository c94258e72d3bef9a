/* gmd_known.h: an entry covers the defect that it names, and no other. */
#include "driver_test.h"
#include "gmd_random.h"
#include "gmd_tokens.h"

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

TEST_F(known, an_error_of_the_programs_own_must_have_been_left)
{
    assert_int_equal(take("progress | leave_error\n"), GMD_OK);
    assert_false(has("progress", "any"));
    context.has_left_error = true;
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
    assert_non_null(strstr(
        error.text,
        ":2: expected 'fault', 'fault FUNCTION', 'conf TEXT', 'destroy', 'device', 'begin_pool', "
        "'begin_capture', 'leave_error' or 'end' behind '|', found 'on Mondays'"));
    assert_int_equal(known.count, 0);
}

TEST_F(known, a_bar_with_nothing_behind_it_is_refused)
{
    static const char *const lists[] = {"leak |\n", "leak | # later\n", "leak: a | end |\n",
                                        "leak || end\n"};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        assert_int_equal(take(lists[i]), GMD_BAD_INPUT);
        assert_non_null(strstr(error.text, ":1: expected 'fault', 'fault FUNCTION'"));
    }
}

TEST_F(known, a_fault_without_a_function_is_any)
{
    assert_int_equal(take("progress.failed | fault\n"), GMD_OK);
    assert_false(has_kind(GMD_KIND(progress, failed), GMD_PARTIES({"error", "any"})));
    context.fault_count = 1;
    snprintf(context.faults[0], sizeof context.faults[0], "cudaEventRecord");
    assert_true(has_kind(GMD_KIND(progress, failed), GMD_PARTIES({"error", "any"})));
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

/* The line that gmd prints for a violation, as the only one of the list. */
static void read_line_of(const gmd_identity *identity)
{
    char line[GMD_IDENTITY_TEXT];
    gmd_identity_known_line(identity, line);
    gmd_known_free(&known);
    if (take(line) != GMD_OK) {
        fail_msg("%s: %s", line, error.text);
    }
}

static bool is_covered(const gmd_identity *identity)
{
    return known_find(&known, &context, identity, "any words") != NULL;
}

/* What gmd prints for a violation can be put into a list as it is. */
TEST_F(known, an_identity_is_printed_as_a_line_that_covers_it)
{
    gmd_identity identity;
    char line[GMD_IDENTITY_TEXT];
    gmd_identity_make(&identity, GMD_KIND(progress, failed),
                      GMD_PARTIES({"error", "it said \"no\" | #1"}));
    gmd_identity_known_line(&identity, line);
    assert_string_equal(line, "progress.failed error=\"it said 'no' | #1\" -fault");
    read_line_of(&identity);
    assert_true(is_covered(&identity));
}

TEST_F(known, the_line_of_an_identity_covers_none_with_further_parties)
{
    gmd_identity identity, other;
    gmd_identity_make(&identity, GMD_KIND(progress, deadlock), GMD_PARTIES({"lock", "mutex"}));
    gmd_identity_make(&other, GMD_KIND(progress, deadlock),
                      GMD_PARTIES({"lock", "mutex"}, {"lock2", "other"}));
    read_line_of(&identity);
    assert_true(is_covered(&identity));
    assert_false(is_covered(&other));
    gmd_identity_make(&identity, GMD_KIND(size, booked_short), GMD_NO_PARTIES);
    gmd_identity_make(&other, GMD_KIND(size, booked_short), GMD_PARTIES({"bytes", "near_2^64"}));
    read_line_of(&identity);
    assert_true(is_covered(&identity));
    assert_false(is_covered(&other));
}

/* With each of the parties of its kind there or not: number `which` of all ways. */
static void make_some(gmd_identity *identity, const gmd_kind_entry *kind, uint32_t which)
{
    char name[GMD_PARTY_NAME];
    gmd_identity_make(identity, (gmd_kind)(kind - gmd_kinds), GMD_NO_PARTIES);
    for (const char *at = kind->parties; gmd_kind_next_party(&at, name); which >>= 1) {
        if (which & 1) {
            gmd_identity_add(identity, name, "some value");
        }
    }
}

TEST_F(known, the_line_of_an_identity_covers_it_and_no_other_of_its_kind)
{
    enum { WAYS = 1 << 5 };
    for (size_t kind = 0; kind < GMD_KIND_COUNT; kind++) {
        for (uint32_t i = 0; i < WAYS; i++) {
            gmd_identity identity, other;
            make_some(&identity, &gmd_kinds[kind], i);
            read_line_of(&identity);
            for (uint32_t j = 0; j < WAYS; j++) {
                make_some(&other, &gmd_kinds[kind], j);
                assert_int_equal(is_covered(&other), gmd_identity_equal(&identity, &other));
            }
        }
    }
}

/* What an allocator may say: characters of all lengths, cut anywhere, and bytes that are none. */
static void draw_text(gmd_random *random, char *text, size_t size)
{
    static const char *const parts[] = {"a",
                                        "\xc3\xa9",
                                        "\xe2\x82\xac",
                                        "\xf0\x9f\x98\x80",
                                        "\xff",
                                        "\xe2\x82",
                                        "\xc2\x85",
                                        "\t",
                                        "\"",
                                        "'",
                                        "|",
                                        "#",
                                        "=",
                                        " ",
                                        "-",
                                        "17 MiB",
                                        "\x7f",
                                        "\xef\xbf\xbd",
                                        ":",
                                        "\\"};
    size_t length = 0, wanted = 1 + gmd_random_below(random, size - 9);
    while (length < wanted) {
        const char *part = parts[gmd_random_below(random, sizeof parts / sizeof *parts)];
        memcpy(text + length, part, strlen(part));
        length += strlen(part);
    }
    text[length] = '\0';
}

TEST_F(known, whatever_an_allocator_says_its_line_covers_it)
{
    enum { TEXTS = 2000 };
    gmd_random random = {20261122};
    for (int i = 0; i < TEXTS; i++) {
        char text[200], token[GMD_PARTY_VALUE];
        gmd_identity identity, line_of;
        draw_text(&random, text, sizeof text);
        gmd_error_token(text, token);
        gmd_identity_make(&identity, GMD_KIND(progress, failed), GMD_PARTIES({"error", token}));
        read_line_of(&identity);
        line_of = known.entries[0].wanted;
        if (!gmd_identity_equal(&identity, &line_of) || !is_covered(&identity)) {
            fail_msg("text %d: \"%s\"", i, text);
        }
    }
}

/* As a person would copy it. */
TEST_F(known, a_value_in_a_list_is_cut_as_that_of_a_violation_is)
{
    char text[200], line[300];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    memcpy(text + GMD_PARTY_VALUE - 2, "\xe2\x82\xac", 3); /* one byte of it would fit */
    snprintf(line, sizeof line, "progress.failed error=%s\n", text);
    assert_int_equal(take(line), GMD_OK);
    assert_true(has_kind(GMD_KIND(progress, failed), GMD_PARTIES({"error", text})));
}

TEST_F(known, a_party_that_must_not_be_there_stands_behind_a_minus)
{
    assert_int_equal(take("progress.crash -at signal=SIGSEGV | end # not in a request\n"), GMD_OK);
    assert_true(has_kind(GMD_KIND(progress, crash), GMD_PARTIES({"signal", "SIGSEGV"})));
    assert_false(
        has_kind(GMD_KIND(progress, crash), GMD_PARTIES({"signal", "SIGSEGV"}, {"at", "free"})));
    assert_true(known.entries[0].spoils);
}

TEST_F(known, a_condition_may_be_of_any_length)
{
    char list[700], setting[400];
    memset(setting, 'x', sizeof setting - 1);
    setting[sizeof setting - 1] = '\0';
    snprintf(list, sizeof list, "leak | conf %s:1\n", setting);
    assert_int_equal(take(list), GMD_OK);
    snprintf(context.conf, sizeof context.conf, "%s:2", setting);
    assert_false(has("leak", "any"));
    snprintf(context.conf, sizeof context.conf, "a:b,%s:1", setting);
    assert_true(has("leak", "any"));
}

TEST_F(known, a_function_that_is_none_is_refused_with_the_nearest_one)
{
    assert_int_equal(take("leak\nleak | fault cudaEventRecrod | end\n"), GMD_BAD_INPUT);
    assert_non_null(strstr(error.text, ":2: 'fault cudaEventRecrod'"));
    assert_non_null(strstr(error.text, "nearest name is cudaEventRecord"));
    assert_int_equal(take("leak: words | fault TYPO\n"), GMD_BAD_INPUT);
    assert_int_equal(known.count, 0);
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
                 {"misuse.exit free=\n", "found 'free='"},
                 {"misuse.exit =twice\n", "found '=twice'"},
                 {"misuse.exit free=\"twice\n", "found 'free=\"twice'"},
                 {"misuse free=a free=b\n", "found 'free=b'"},
                 {"misuse free=a -free\n", "found '-free'"},
                 {"misuse -\n", "found '-'"},
                 {"misuse -free=a\n", "found '-free=a'"},
                 {"progress signal=1 at=2 lock=3 lock2=4 lock3=5\n", "found 'lock3=5'"},
                 {"progress.crash sginal=SIGSEGV\n",
                  ":1: progress.crash has no party 'sginal': its parties are signal, at"},
                 {"size -byte\n", ":1: size has no party 'byte': its parties are bytes"},
                 {"leak.streams at=free\n", "leak.streams has no party 'at': it has none"},
                 {"leak.streams: 2 streams are left\n",
                  ":1: a kind goes without words of the message: expected 'leak.streams', or "
                  "'leak: WORDS'"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(take(wrong[i].list), GMD_BAD_INPUT);
        if (!strstr(error.text, wrong[i].message)) {
            fail_msg("%s", error.text);
        }
        assert_int_equal(known.count, 0);
    }
}
