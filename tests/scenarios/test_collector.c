/* Reference cycles wait for the collector, and the collector counts objects. */
#include "gmd_test.h"
#include "scenario_bench.h"

#include <stdio.h>

#define CYCLE                                                                                      \
    "function cycle()\n"                                                                           \
    "  a, b = object(), object()\n"                                                                \
    "  a.other, b.other = b, a\n"                                                                  \
    "  a.data = empty { 256 }\n"                                                                   \
    "  a, b = nil, nil\n"                                                                          \
    "end\n"

TEST_F(bench, a_cycle_is_freed_only_when_the_collector_runs)
{
    bench *run = bench_run(CYCLE "cycle()\nphase 'before'\n"
                                 "assert(gc.collect() == 2)\nphase 'after'");
    bench_assert_ok(run);
    assert_int_equal(bench_at(run, "before"), 1024);
    assert_int_equal(bench_at(run, "after"), 0);
}

TEST_F(bench, an_object_without_a_cycle_needs_no_collector)
{
    bench *run = bench_run("a = object() a.data = empty { 256 } a = nil\nphase 'end'");
    bench_assert_ok(run);
    assert_int_equal(bench_at(run, "end"), 0);
}

TEST_F(bench, an_object_that_holds_itself_is_a_cycle)
{
    bench *run = bench_run("a = object() a.self = a a.data = empty { 256 } a = nil\n"
                           "phase 'before'\ngc.collect()\nphase 'after'");
    bench_assert_ok(run);
    assert_int_equal(bench_at(run, "before"), 1024);
    assert_int_equal(bench_at(run, "after"), 0);
}

TEST_F(bench, a_cycle_through_a_list_is_found)
{
    bench *run = bench_run("l = list() o = object() o.list = l l:append(o)\n"
                           "o.data = empty { 256 } l = nil o = nil\n"
                           "phase 'before'\ngc.collect()\nphase 'after'");
    bench_assert_ok(run);
    assert_int_equal(bench_at(run, "before"), 1024);
    assert_int_equal(bench_at(run, "after"), 0);
}

TEST_F(bench, what_a_variable_still_reaches_survives)
{
    bench *run = bench_run("a, b = object(), object()\n"
                           "a.other, b.other = b, a\n"
                           "b.data = empty { 256 }\n"
                           "b = nil\n"
                           "assert(gc.collect() == 0)\nphase 'end'\n"
                           "assert(a.other.data:size(1) == 256)");
    bench_assert_ok(run);
    assert_int_equal(bench_at(run, "end"), 1024);
}

/* The 701st allocation more than deallocations starts a collection of the youngest. */
TEST_F(bench, the_youngest_generation_is_collected_past_700_allocations)
{
    bench *run = bench_run(CYCLE "for i = 1, 350 do cycle() end\nphase '700'\n"
                                 "cycle()\nphase '702'");
    bench_assert_ok(run);
    assert_int_equal(bench_at(run, "700"), 350 * 1024);
    assert_true(bench_at(run, "702") <= 1024);
}

TEST_F(bench, a_collector_that_is_off_collects_only_when_asked)
{
    bench *run = bench_run(CYCLE "gc.disable()\nfor i = 1, 2000 do cycle() end\nphase 'off'\n"
                                 "gc.collect()\nphase 'asked'");
    bench_assert_ok(run);
    assert_int_equal(bench_at(run, "off"), 2000 * 1024);
    assert_int_equal(bench_at(run, "asked"), 0);
}

/* Reachable during a collection means one generation older: it then waits ten times as long. */
TEST_F(bench, what_survives_a_collection_waits_for_an_older_one)
{
    bench *run = bench_run("a, b = object(), object()\n"
                           "a.other, b.other = b, a\n"
                           "a.data = empty { 256 }\n"
                           "gc.collect(0)\n"
                           "a, b = nil, nil\n"
                           "gc.collect(0)\nphase 'young'\n"
                           "gc.collect(1)\nphase 'middle'");
    bench_assert_ok(run);
    assert_int_equal(bench_at(run, "young"), 1024);
    assert_int_equal(bench_at(run, "middle"), 0);
}

/* After eleven collections of the youngest, the twelfth takes the middle one, too. */
TEST_F(bench, the_middle_generation_is_collected_at_the_twelfth)
{
    bench *run = bench_run("a, b = object(), object()\n"
                           "a.other, b.other = b, a\n"
                           "a.data = empty { 256 }\n"
                           "gc.collect(0)\n"
                           "a, b = nil, nil\n"
                           "for i = 1, 10 do gc.background { 701 } end\nphase 'eleven'\n"
                           "gc.background { 701 }\nphase 'twelve'");
    bench_assert_ok(run);
    assert_int_equal(bench_at(run, "eleven"), 1024);
    assert_int_equal(bench_at(run, "twelve"), 0);
}

/* CPython skips full collections until a quarter of the long-lived objects is new. */
TEST_F(bench, a_full_collection_waits_for_a_quarter_of_new_objects)
{
    bench *run = bench_run("gc.background { 1000000 }\n"
                           "a, b = object(), object()\n"
                           "a.other, b.other = b, a\n"
                           "a.data = empty { 256 }\n"
                           "gc.collect(2)\n"
                           "a, b = nil, nil\n"
                           "gc.set_count(0, 0, 11)\n"
                           "gc.background { 701 }\nphase 'skipped'\n"
                           "gc.collect(1)\n"
                           "gc.disable() gc.background { 300000 } gc.collect(1)\n"
                           "gc.set_count(0, 0, 11) gc.enable()\n"
                           "gc.background { 701 }\nphase 'due'");
    bench_assert_ok(run);
    assert_int_equal(bench_at(run, "skipped"), 1024);
    assert_int_equal(bench_at(run, "due"), 0);
}

/* --- against CPython --------------------------------------------------------------------- */

/* What CPython 3.12.1 counted (collector_counts.py): pairs that refer to each other are garbage at
 * once, singles are kept. */
static const struct {
    const char *kind;
    int count;
    const char *counts; /* of the youngest generation, the middle one, the oldest one */
} counted[] = {
    {"pairs", 100, "200 0 0"},   {"pairs", 349, "698 0 0"},     {"pairs", 350, "700 0 0"},
    {"pairs", 351, "1 1 0"},     {"pairs", 1000, "598 2 0"},    {"pairs", 4199, "687 11 0"},
    {"pairs", 4210, "8 0 1"},    {"pairs", 20000, "43 9 4"},    {"pairs", 100000, "215 9 23"},
    {"singles", 100, "100 0 0"}, {"singles", 349, "349 0 0"},   {"singles", 350, "350 0 0"},
    {"singles", 351, "351 0 0"}, {"singles", 1000, "299 1 0"},  {"singles", 4199, "694 5 0"},
    {"singles", 4210, "4 6 0"},  {"singles", 20000, "372 4 2"}, {"singles", 100000, "458 9 0"},
};

#define COUNTING                                                                                   \
    "gc.background { 3000 }\nl = list()\ngc.collect()\n" /* what an interpreter begins with */     \
    "for i = 1, %d do\n"                                                                           \
    "  if '%s' == 'pairs' then\n"                                                                  \
    "    a, b = object(), object()\n    a.other, b.other = b, a\n    a, b = nil, nil\n"            \
    "  else\n    l:append(object())\n  end\n"                                                      \
    "end\n"                                                                                        \
    "phase(table.concat({ gc.get_count() }, ' '))"

TEST_F(bench, collections_come_when_they_come_in_cpython)
{
    for (size_t i = 0; i < sizeof counted / sizeof *counted; i++) {
        char text[1024];
        snprintf(text, sizeof text, COUNTING, counted[i].count, counted[i].kind);
        bench *run = bench_run_budget(text, "100000000");
        bench_assert_ok(run);
        assert_string_equal(run->phases[0].label, counted[i].counts);
        bench_free(run);
    }
}

/* CPython 3.12.1 collects at the same steps: tests/scenarios/collector_of_recorder.py without. */
TEST_F(bench, awaitables_alone_are_collected_when_cpython_collects_them)
{
    bench *run = bench_run_named("awaitable_cycle", "objects=0", 0);
    bench_assert_ok(run);
    assert_int_equal(run->phase_count, 60);
    for (size_t i = 0; i < run->phase_count; i++) {
        assert_int_equal(run->phases[i].allocated, (i % 34 + 1) * 4 * (8 << 20));
    }
}
