/* Reference cycles wait for the collector, and the collector counts objects. */
#include "gmd_test.h"
#include "scenario_bench.h"

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
