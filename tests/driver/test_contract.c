/* gmd_contract.h: an allocator's contract as text, and a driver that keeps to it. */
#include "contract_duties.h"
#include "driver_test.h"
#include "gmd_abi.h"
#include "gmd_contract.h"

static gmd_error error;

static gmd_status parse(gmd_contract *contract, const char *lines)
{
    char text[1000];
    int length = snprintf(text, sizeof text, "gmd-profile 1\n%s", lines);
    gmd_contract_init(contract);
    return gmd_contract_parse(contract, text, (size_t)length, "here/mine.profile", &error);
}

/* --- the text ---------------------------------------------------------------------------- */

TEST(what_is_not_named_has_its_first_term)
{
    gmd_contract c;
    assert_int_equal(parse(&c, "# nothing\n\n"), GMD_OK);
    for (int i = 0; i < GMD_CLAUSE_COUNT; i++) {
        assert_int_equal(c.terms[i], 0);
    }
    assert_true(c.largest == UINT64_MAX);
    assert_int_equal(gmd_contract_promises(&c), 0);
    assert_string_equal(c.name, "mine.profile");
}

TEST(each_term_that_is_written_is_read_back)
{
    for (int clause = 0; clause < GMD_CLAUSE_COUNT; clause++) {
        for (uint8_t term = 1; term < GMD_TERMS_MAX && gmd_clause_rows[clause].terms[term].name;
             term++) {
            gmd_contract c, read;
            char line[GMD_CONTRACT_LINE];
            gmd_contract_init(&c);
            c.terms[clause] = term;
            assert_int_equal(parse(&read, gmd_contract_line(&c, (gmd_clause)clause, line)), GMD_OK);
            assert_int_equal(read.terms[clause], term);
        }
    }
}

TEST(the_largest_size_is_one_as_anywhere)
{
    gmd_contract c;
    char line[GMD_CONTRACT_LINE];
    assert_int_equal(parse(&c, "largest 1GiB # more throws\n"), GMD_OK);
    assert_true(c.largest == GMD_GIB);
    assert_string_equal(gmd_contract_line(&c, GMD_CLAUSE_LARGEST, line), "largest 1GiB");
}

TEST(terms_and_promises_add_up)
{
    gmd_contract c;
    assert_int_equal(parse(&c, "out_of_memory throws\npromise misuse\npromise prompt\n"), GMD_OK);
    assert_int_equal(gmd_contract_promises(&c),
                     GMD_PROMISE_THROWS | GMD_PROMISE_MISUSE | GMD_PROMISE_PROMPT);
}

TEST(a_wrong_line_is_refused_with_its_place_and_changes_nothing)
{
    static const struct {
        const char *lines, *wanted;
    } wrong[] = {
        {"streems may_go\n",
         "here/mine.profile:2: 'streems': there is no such clause (did you mean "
         "streams?)"},
        {"\nstreams forever\n", "here/mine.profile:3: streams 'forever': expected may_go, "
                                "outlive_blocks or outlive_allocator"},
        {"streams\n", "here/mine.profile:2: streams '': expected"},
        {"largest -1\n", "here/mine.profile:2: largest '-1': expected a size"},
        {"largest 0\n", "expected a size"},
        {"pool fixed\npool grows\n", "here/mine.profile:3: pool was stated before"},
        {"promise everything\n", "here/mine.profile:2: promise: 'everything': expected one"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        gmd_contract c;
        assert_int_equal(parse(&c, wrong[i].lines), GMD_BAD_INPUT);
        assert_non_null(strstr(error.text, wrong[i].wanted));
        assert_string_equal(c.name, "");
    }
}

TEST(another_file_is_no_profile)
{
    static const char zero[] = "gmd-profile 1\n\0streams may_go";
    gmd_contract c;
    assert_int_equal(gmd_contract_parse(&c, "gmd-trace 1\n", 12, "x", &error), GMD_BAD_INPUT);
    assert_non_null(strstr(error.text, "x:1: expected 'gmd-profile 1', found 'gmd-trace 1'"));
    assert_int_equal(gmd_contract_parse(&c, zero, sizeof zero - 1, "x", &error), GMD_BAD_INPUT);
    assert_int_equal(gmd_contract_parse(&c, "", 0, "x", &error), GMD_BAD_INPUT);
}

/* --- the caller's side ------------------------------------------------------------------- */

/* The notes of a run of the reference allocator under the contract, one behind the other. */
static void run_under(const gmd_contract *contract, const char *lines, char *notes, size_t size)
{
    gmd_trace trace = parse_lines(lines);
    gmd_run_options options = options_on("reference");
    options.conditions.device_count = 2;
    options.judging.contract = contract;
    gmd_workload workload = {
        .name = "test.gmd", .kind = "trace", .trace = &trace, .body = gmd_play_trace};
    gmd_outcome *o = calloc(1, sizeof *o);
    assert_non_null(o);
    gmd_status status = gmd_run_isolated(&options, &workload, o, &error);
    gmd_trace_free(&trace);
    size_t used = 0;
    notes[0] = '\0';
    for (uint32_t i = 0; i < o->note_count && used < size; i++) {
        used += (size_t)snprintf(notes + used, size - used, "%s\n", o->notes[i]);
    }
    assert_int_equal(status, GMD_OK);
    expect_clean(o);
}

static const struct {
    const char *term, *requests;
} forbidden[] = {
    {"zero_bytes outside", "alloc a 0 s1\n"},
    {"largest 1MiB", "alloc a 1048577 s1\n"},
    {"streams outlive_blocks", "alloc a 1 s1\ndestroy s1\nfree a\n"},
    {"streams outlive_allocator", "alloc a 1 s1\nfree a\ndestroy s1\n"},
    {"other_streams ordered", "alloc a 1 s1\nuse a s2\nrecord a s2\nfree a\n"},
    {"devices one", "alloc a 1 s1 device 1\n"},
    {"pending_errors outside", "leave_error\nalloc a 1 s1\n"},
    {"failing_calls outside", "fault cudaEventCreateWithFlags 1 2\nalloc a 1 s1\n"},
};

TEST(a_request_that_a_clause_forbids_is_left_out_and_told)
{
    for (size_t i = 0; i < sizeof forbidden / sizeof *forbidden; i++) {
        gmd_contract c;
        char notes[2000], wanted[200];
        assert_int_equal(parse(&c, forbidden[i].term), GMD_OK);
        run_under(&c, forbidden[i].requests, notes, sizeof notes);
        snprintf(wanted, sizeof wanted, "1 request was left out: the profile mine.profile has '%s'",
                 forbidden[i].term);
        assert_non_null(strstr(notes, wanted));
    }
}

TEST(beyond_a_clause_it_is_made)
{
    for (size_t i = 0; i < sizeof forbidden / sizeof *forbidden; i++) {
        gmd_contract c;
        char notes[2000], clause[40];
        assert_int_equal(parse(&c, forbidden[i].term), GMD_OK);
        snprintf(clause, sizeof clause, "%.*s", (int)strcspn(forbidden[i].term, " "),
                 forbidden[i].term);
        assert_int_equal(gmd_contract_go_beyond(&c, clause, &error), GMD_OK);
        run_under(&c, forbidden[i].requests, notes, sizeof notes);
        assert_null(strstr(notes, "left out"));
    }
}

TEST(what_no_clause_forbids_is_made)
{
    static const char allowed[] = "capacity 64MiB\nalloc a 1MiB s1\nfree a\ndestroy s1\n"
                                  "fault cudaMalloc 1 2\nalloc b 4MiB s2\n";
    gmd_contract c;
    char notes[2000];
    assert_int_equal(parse(&c, "largest 4MiB\nstreams outlive_blocks\nfailing_calls outside\n"),
                     GMD_OK);
    run_under(&c, allowed, notes, sizeof notes);
    assert_null(strstr(notes, "left out"));
}

TEST(one_thread_makes_the_requests_of_all)
{
    gmd_contract c;
    char notes[2000];
    assert_int_equal(parse(&c, "threads one\n"), GMD_OK);
    run_under(&c, "interleave seed 1\nalloc a 1 s1\nthread t1\nfree a\n", notes, sizeof notes);
    assert_null(strstr(notes, "interleaved"));
}

/* --- the allocator's side ---------------------------------------------------------------- */

TEST(what_a_term_does_not_promise_is_a_line_of_a_known_list)
{
    gmd_contract c;
    gmd_known known = {0};
    const char *line;
    assert_int_equal(parse(&c, "pool fixed\npressure keeps\nfailing_calls basic\n"), GMD_OK);
    for (uint32_t i = 0; (line = gmd_contract_known(&c, i)) != NULL; i++) {
        assert_int_equal(known_add(&known, line, "profile", &error), GMD_OK);
    }
    assert_true(known.count > 3);
    gmd_known_free(&known);
    assert_int_equal(gmd_contract_go_beyond(&c, "all", &error), GMD_OK);
    assert_null(gmd_contract_known(&c, 0));
}

/* What counts of a run of tests/probe/loose.c whose cache may stay; known: how much did not count.
 * The caller frees it. */
static gmd_outcome *run_keeping(const char *loose, const char *lines)
{
    gmd_contract c;
    gmd_known known = {0};
    const char *line;
    assert_int_equal(parse(&c, "pressure keeps\n"), GMD_OK);
    for (uint32_t i = 0; (line = gmd_contract_known(&c, i)) != NULL; i++) {
        assert_int_equal(known_add(&known, line, "profile", &error), GMD_OK);
    }
    gmd_trace trace = parse_lines(lines);
    gmd_run_options options = options_on(GMD_TEST_LOOSE_EMPTYING);
    options.judging.contract = &c;
    options.judging.known = &known;
    gmd_workload workload = {
        .name = "test.gmd", .kind = "trace", .trace = &trace, .body = gmd_play_trace};
    gmd_outcome *o = calloc(1, sizeof *o);
    assert_non_null(o);
    setenv("GMD_LOOSE", loose, 1);
    gmd_status status = gmd_run_isolated(&options, &workload, o, &error);
    unsetenv("GMD_LOOSE");
    gmd_known_free(&known);
    gmd_trace_free(&trace);
    assert_int_equal(status, GMD_OK);
    return o;
}

static void expect_told(const char *loose, const char *lines, const char *part)
{
    gmd_outcome *o = run_keeping(loose, lines);
    assert_true(o->violation_count > 0);
    assert_string_equal(o->violations[0].identity.kind, "oom_retry.served_when_emptied");
    assert_non_null(strstr(o->violations[0].message, part));
    free(o);
}

/* Room for 64 MiB. */
static const char too_large_for_what_is_left[] = "alloc a 20MiB s1\nalloc b 20MiB s1\n"
                                                 "free a\nfree b\nalloc c 50MiB s1\n";
static const char refused_before[] = "alloc a 70MiB s1\nalloc b 1MiB s1\n";
static const char freed_before_a_refusal[] = "alloc a 40MiB s1\nuse a s1 10us\nfree a\n"
                                             "alloc b 70MiB s1\nalloc c 40MiB s1\n";

TEST(a_cache_that_may_stay_excuses_a_refusal_for_want_of_it)
{
    gmd_outcome *o = run_keeping("pressure", too_large_for_what_is_left);
    assert_true(o->known_count > 0);
    expect_clean(o);
}

TEST(it_excuses_no_refusal_with_room_on_the_device)
{
    expect_clean(run_keeping("pressure", refused_before));
    expect_told("pressure_lost_room", refused_before, "and 64MiB were free before");
}

TEST(it_excuses_no_refusal_with_a_freed_block_of_the_stream_and_size)
{
    expect_clean(run_keeping("pressure", freed_before_a_refusal));
    expect_told("pressure_lost_block", freed_before_a_refusal, "was freed on it");
}

TEST(addresses_are_held_against_the_alignment_of_the_contract)
{
    static const struct {
        const char *line;
        uint64_t bytes;
    } rows[] = {
        {"", 512}, {"alignment 256\n", 512}, {"alignment 128\n", 128}, {"alignment 16\n", 16}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        gmd_contract c;
        assert_int_equal(parse(&c, rows[i].line), GMD_OK);
        assert_int_equal(gmd_contract_alignment(&c, 512), rows[i].bytes);
        assert_int_equal(gmd_contract_go_beyond(&c, "alignment", &error), GMD_OK);
        assert_int_equal(gmd_contract_alignment(&c, 512), 512);
    }
    assert_int_equal(gmd_contract_alignment(NULL, 256), 256);
}

TEST(what_is_never_made_need_not_be_drawn)
{
    gmd_contract c;
    char text[GMD_CONTRACT_WITHOUT];
    assert_int_equal(parse(&c, "streams outlive_allocator\nthreads one\nlargest 1GiB\n"
                               "pending_errors outside\n"),
                     GMD_OK);
    assert_string_equal(gmd_contract_without(&c, text), "destroy,threads,huge,leave_error");
    assert_int_equal(gmd_contract_go_beyond(&c, "streams,largest,pending_errors", &error), GMD_OK);
    assert_string_equal(gmd_contract_without(&c, text), "threads");
}

TEST(a_clause_that_is_none_cannot_be_gone_beyond)
{
    static const char *const wrong[] = {"", "streams,", "stream", "ALL", "streams,all"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        gmd_contract c;
        gmd_contract_init(&c);
        assert_int_equal(gmd_contract_go_beyond(&c, wrong[i], &error), GMD_BAD_INPUT);
        assert_non_null(strstr(error.text, "expected some of all, out_of_memory"));
    }
}
