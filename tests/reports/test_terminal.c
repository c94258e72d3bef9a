/* What a person sees at the end of a command: whole screens, as they are printed. */
#include "gmd_test.h"
#include "sample.h"

#include <stdlib.h>
#include <string.h>

static const char *show(gmd_terminal terminal, const gmd_outcome *first, const gmd_outcome *second)
{
    sample_text = sample_terminal(sample_report("run", first, second, NULL), terminal);
    assert_non_null(sample_text);
    return sample_text;
}

static const gmd_terminal plain = {0};

#define assert_contains(text, part) assert_non_null(strstr((text), (part)))

TEST_F(sample, a_scenario_shows_its_phases_in_columns_and_what_was_checked)
{
    assert_string_equal(
        show(plain, &sample_passing, NULL),
        "growth  leak=true\n"
        "  phase         allocated    max allocated         reserved     max reserved\n"
        "  model         100.0 MiB        110.0 MiB        120.0 MiB        120.0 MiB\n"
        "  step 1        150.0 MiB      1,200.0 MiB      1,210.0 MiB      1,210.0 MiB\n"
        "  step 2        200.5 MiB      1,250.0 MiB      1,260.0 MiB      1,260.0 MiB\n"
        "  passed: overlap, backing\n"
        "  skipped: leak (--verbose: why)\n"
        "  pass: 2,000 requests in 0.250 s (8,000 requests/s), seed 7\n");
}

static const char *show_bound(gmd_stated_bound bound)
{
    sample_passing.bounds[sample_passing.bound_count++] = bound;
    return show(plain, &sample_passing, NULL);
}

TEST_F(sample, a_bound_that_is_held_is_shown_with_its_peak)
{
    gmd_stated_bound bound = {.bytes = 300 << 20, .peak = 250 << 20};
    assert_contains(show_bound(bound),
                    "\n  bound: allocated at most 300.0 MiB: held; peak 250.0 MiB\n");
}

TEST_F(sample, a_leaking_variant_that_holds_its_bound_says_that_it_should_not)
{
    gmd_stated_bound bound = {.leaks = true, .bytes = 300 << 20, .peak = 250 << 20};
    assert_contains(show_bound(bound), ": held; peak 250.0 MiB (this variant is made to exceed it, "
                                       "and did not here)\n");
}

TEST_F(sample, a_bound_that_is_passed_says_from_which_phase_on)
{
    gmd_stated_bound bound = {.is_reserved = true,
                              .leaks = true,
                              .bytes = 300 << 20,
                              .peak = 350 << 20,
                              .passed_phase = 1};
    assert_contains(show_bound(bound),
                    "\n  bound: reserved at most 300.0 MiB: exceeded; peak 350.0 MiB, "
                    "from phase step 1 on (this variant is made to)\n");
}

TEST_F(sample, a_bound_that_another_allocator_passes_is_said_not_to_be_judged)
{
    gmd_stated_bound bound = {
        .is_told_only = true, .bytes = 300 << 20, .peak = 350 << 20, .passed_phase = GMD_PHASE_MAX};
    assert_contains(show_bound(bound), ": exceeded; peak 350.0 MiB (not judged: the bound is of "
                                       "PyTorch's allocator)\n");
}

TEST_F(sample, a_bound_on_what_nobody_sees_is_not_called_held)
{
    gmd_stated_bound bound = {.is_reserved = true, .bytes = 300 << 20, .peak = GMD_STAT_UNKNOWN};
    assert_contains(show_bound(bound), "\n  bound: reserved at most 300.0 MiB: not seen\n");
}

TEST_F(sample, an_exact_history_has_one_line)
{
    assert_contains(show(plain, &sample_exact, NULL),
                    "  exact: 10,236 of 10,236 requests, 674 device events, 93 blocks at the end, "
                    "24 statistics\n");
}

TEST_F(sample, a_first_difference_shows_both_sides)
{
    sample_differ();
    assert_contains(show(plain, &sample_exact, NULL),
                    "  not exact: 512 of 10,236 requests matched\n"
                    "  first difference at request 512: address\n"
                    "    request   alloc b9 1024 s1\n"
                    "    expected  0x10000\n"
                    "    got       0x20000\n");
}

TEST_F(sample, a_violation_names_oracle_request_and_case)
{
    assert_string_equal(show(plain, &sample_failing, NULL),
                        "short.gmd\n"
                        "  passed: size\n"
                        "  overlap, request 17: b3 shares 512 B with b1\n"
                        "    for --known: overlap.shared by=\"b1 and b3\" at=alloc\n"
                        "    case: gmd-cases/overlap.gmd\n"
                        "  fail: 18 requests in 0.001 s (18,000 requests/s), seed 0\n");
}

TEST_F(sample, verbose_says_why_an_oracle_was_skipped)
{
    assert_contains(show((gmd_terminal){.verbose = true}, &sample_passing, NULL),
                    "\n  skipped: leak (no device figures)\n");
}

TEST_F(sample, a_short_case_stands_below_its_finding)
{
    static const gmd_case_listing listing = {
        .count = 3,
        .lines = {{.line = 2, .request = 0, .text = "alloc a 1 s1", .answer = "0x10000"},
                  {.line = 3, .request = UINT64_MAX, .text = "thread t1"},
                  {.line = 4, .request = 1, .text = "free a", .is_failing = true}}};
    const gmd_case_listing *const listings[] = {&listing};
    gmd_report report = *sample_report("run", &sample_failing, NULL, NULL);
    report.listings = listings;
    sample_text = sample_terminal(&report, plain);
    assert_contains(sample_text, "    case: gmd-cases/overlap.gmd\n"
                                 "      line request  case          answer\n"
                                 "         2       0  alloc a 1 s1  0x10000\n"
                                 "         3          thread t1\n"
                                 "    >    4       1  free a\n");
}

TEST_F(sample, a_limit_is_told_apart_from_a_defect)
{
    gmd_violation *v = sample_failing.violations;
    assert_null(strstr(show(plain, &sample_failing, NULL), "limit"));
    free(sample_text);
    snprintf(v->limit, sizeof v->limit, "largest");
    assert_contains(show(plain, &sample_failing, NULL),
                    "    a limit, no defect: only beyond largest of the contract\n");
}

TEST_F(sample, the_line_for_a_known_list_stands_once_for_each_defect)
{
    gmd_violation *v = sample_failing.violations;
    v[1] = v[2] = v[0];
    gmd_identity_make(&v[1].identity, GMD_KIND(size, booked_short), GMD_NO_PARTIES);
    sample_failing.violation_count = 3;
    const char *text = show(plain, &sample_failing, NULL);
    assert_int_equal(sample_count(text, "for --known: overlap.shared "), 1);
    assert_int_equal(sample_count(text, "for --known: size.booked_short -bytes\n"), 1);
}

TEST_F(sample, an_error_says_why)
{
    sample_failing.verdict = GMD_ERROR;
    snprintf(sample_failing.error, sizeof sample_failing.error, "plugin.so: no gmd_malloc");
    assert_contains(show(plain, &sample_failing, NULL), "\n  plugin.so: no gmd_malloc\n");
}

TEST_F(sample, colour_is_there_only_when_asked_for)
{
    assert_contains(show((gmd_terminal){.color = true}, &sample_failing, NULL),
                    "\033[31moverlap, request 17: b3 shares 512 B with b1\033[0m");
    sample_teardown(NULL);
    assert_null(strchr(show(plain, &sample_failing, NULL), '\033'));
}

TEST_F(sample, the_sparkline_rises_with_the_allocated_bytes)
{
    assert_contains(show((gmd_terminal){.utf8 = true}, &sample_passing, NULL),
                    "  allocated \xE2\x96\x84\xE2\x96\x86\xE2\x96\x88\n");
}

TEST_F(sample, a_long_table_shows_both_ends_and_counts_the_rest)
{
    for (uint32_t i = 0; i < 30; i++) {
        snprintf(sample_passing.phases[i].label, sizeof sample_passing.phases[i].label, "row %02u",
                 i);
    }
    sample_passing.phase_count = 30;
    const char *text = show(plain, &sample_passing, NULL);
    assert_contains(text, "  row 07 ");
    assert_null(strstr(text, "  row 08 "));
    assert_contains(text, "  ... 14 phases left out ...\n");
    assert_null(strstr(text, "  row 21 "));
    assert_contains(text, "  row 22 ");
}

static void add_oracle(const char *name, gmd_oracle_fate fate, const char *reason)
{
    gmd_oracle_result *o = &sample_passing.oracles[sample_passing.oracle_count++];
    o->fate = fate;
    snprintf(o->name, sizeof o->name, "%s", name);
    snprintf(o->reason, sizeof o->reason, "%s", reason);
}

TEST_F(sample, on_a_terminal_lists_are_wrapped_below_their_first_word)
{
    sample_passing.oracle_count = 0;
    for (int i = 0; i < 3; i++) {
        add_oracle("stream_order", GMD_ORACLE_PASSED, "");
        add_oracle("leak", GMD_ORACLE_SKIPPED, "no empty_cache");
    }
    assert_contains(show((gmd_terminal){.columns = 40, .verbose = true}, &sample_passing, NULL),
                    "\n  passed: stream_order, stream_order,\n"
                    "          stream_order\n"
                    "  skipped: leak (no empty_cache), leak\n"
                    "           (no empty_cache), leak (no\n"
                    "           empty_cache)\n  pass: ");
}

TEST_F(sample, a_list_that_just_fits_is_one_line)
{
    sample_passing.oracle_count = 0;
    add_oracle("stream_order", GMD_ORACLE_PASSED, "");
    add_oracle("leak", GMD_ORACLE_PASSED, "");
    const char *line = "  passed: stream_order, leak";
    assert_contains(show((gmd_terminal){.columns = (int)strlen(line)}, &sample_passing, NULL),
                    "\n  passed: stream_order, leak\n");
    sample_teardown(state);
    assert_contains(show((gmd_terminal){.columns = (int)strlen(line) - 1}, &sample_passing, NULL),
                    "\n  passed: stream_order,\n          leak\n");
}

TEST_F(sample, elsewhere_a_list_is_one_line)
{
    for (int i = 0; i < 20; i++) {
        add_oracle("stream_order", GMD_ORACLE_PASSED, "");
    }
    assert_contains(show(plain, &sample_passing, NULL),
                    "stream_order, stream_order\n  skipped: leak (--verbose: why)\n");
}

TEST_F(sample, quiet_says_nothing_of_what_passed)
{
    assert_string_equal(show((gmd_terminal){.quiet = true}, &sample_passing, NULL), "");
}

TEST_F(sample, quiet_still_shows_what_failed)
{
    const char *text = show((gmd_terminal){.quiet = true}, &sample_passing, &sample_failing);
    assert_null(strstr(text, "growth"));
    assert_contains(text, "overlap, request 17");
}

TEST_F(sample, several_runs_end_in_a_table_of_all_and_one_line_for_the_whole)
{
    sample_passing.stats.allocated_bytes_peak = (uint64_t)1250 << 20;
    sample_passing.stats.reserved_bytes_peak = (uint64_t)1260 << 20;
    assert_contains(
        show(plain, &sample_passing, &sample_failing),
        "\n\n"
        "  run                      allocated    max allocated         reserved     max reserved\n"
        "  growth  leak=true        200.5 MiB      1,250.0 MiB      1,260.0 MiB      1,260.0 MiB\n"
        "  short.gmd                        -                -                -                -\n"
        "fail: 2 runs, 2,018 requests in 0.251 s\n");
}

TEST_F(sample, on_a_narrow_terminal_a_run_stands_above_its_figures)
{
    sample_passing.stats.allocated_bytes_peak = (uint64_t)1250 << 20;
    sample_passing.stats.reserved_bytes_peak = (uint64_t)1260 << 20;
    const char *text = show((gmd_terminal){.columns = 80}, &sample_passing, &sample_failing);
    assert_contains(
        text, "\n  run        allocated    max allocated         reserved     max reserved\n");
    assert_contains(text, "\n  growth  leak=true\n             200.5 MiB ");
}

TEST_F(sample, on_a_terminal_a_finding_is_wrapped_between_words)
{
    assert_contains(show((gmd_terminal){.columns = 32}, &sample_failing, NULL),
                    "\n  overlap, request 17: b3 shares\n    512 B with b1\n");
}

TEST_F(sample, text_from_outside_cannot_move_the_cursor)
{
    snprintf(sample_failing.name, sizeof sample_failing.name,
             "\033[2J\r\xC2\x9B"
             "2Jx\n");
    const char *text = show(plain, &sample_failing, NULL);
    assert_null(strchr(text, '\033'));
    assert_null(strchr(text, '\r'));
    assert_null(strstr(text, "\xC2\x9B"));
}

TEST_F(sample, a_stream_that_is_no_terminal_gets_no_colour)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    assert_false(gmd_terminal_for(file, false).color);
    fclose(file);
}
