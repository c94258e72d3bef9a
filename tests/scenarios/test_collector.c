/* Reference cycles wait for the collector, and the collector counts objects. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scenario_bench.h"

#define CYCLE                                                                                      \
    "function cycle()\n"                                                                           \
    "  a, b = object(), object()\n"                                                                \
    "  a.other, b.other = b, a\n"                                                                  \
    "  a.data = empty { 256 }\n"                                                                   \
    "  a, b = nil, nil\n"                                                                          \
    "end\n"

static void a_cycle_is_freed_only_when_the_collector_runs(void **state)
{
    (void)state;
    bench *run = bench_run(CYCLE "cycle()\nphase 'before'\n"
                                 "assert(gc.collect() == 2)\nphase 'after'");
    bench_assert_ok(run);
    assert_int_equal(bench_at(run, "before"), 1024);
    assert_int_equal(bench_at(run, "after"), 0);
    bench_free(run);
}

static void an_object_without_a_cycle_needs_no_collector(void **state)
{
    (void)state;
    bench *run = bench_run("a = object() a.data = empty { 256 } a = nil\nphase 'end'");
    bench_assert_ok(run);
    assert_int_equal(bench_at(run, "end"), 0);
    bench_free(run);
}

static void an_object_that_holds_itself_is_a_cycle(void **state)
{
    (void)state;
    bench *run = bench_run("a = object() a.self = a a.data = empty { 256 } a = nil\n"
                           "phase 'before'\ngc.collect()\nphase 'after'");
    bench_assert_ok(run);
    assert_int_equal(bench_at(run, "before"), 1024);
    assert_int_equal(bench_at(run, "after"), 0);
    bench_free(run);
}

static void a_cycle_through_a_list_is_found(void **state)
{
    (void)state;
    bench *run = bench_run("l = list() o = object() o.list = l l:append(o)\n"
                           "o.data = empty { 256 } l = nil o = nil\n"
                           "phase 'before'\ngc.collect()\nphase 'after'");
    bench_assert_ok(run);
    assert_int_equal(bench_at(run, "before"), 1024);
    assert_int_equal(bench_at(run, "after"), 0);
    bench_free(run);
}

static void what_a_variable_still_reaches_survives(void **state)
{
    (void)state;
    bench *run = bench_run("a, b = object(), object()\n"
                           "a.other, b.other = b, a\n"
                           "b.data = empty { 256 }\n"
                           "b = nil\n"
                           "assert(gc.collect() == 0)\nphase 'end'\n"
                           "assert(a.other.data:size(1) == 256)");
    bench_assert_ok(run);
    assert_int_equal(bench_at(run, "end"), 1024);
    bench_free(run);
}

/* The 701st allocation more than deallocations starts a collection of the youngest. */
static void the_youngest_generation_is_collected_past_700_allocations(void **state)
{
    (void)state;
    bench *run = bench_run(CYCLE "for i = 1, 350 do cycle() end\nphase '700'\n"
                                 "cycle()\nphase '702'");
    bench_assert_ok(run);
    assert_int_equal(bench_at(run, "700"), 350 * 1024);
    assert_true(bench_at(run, "702") <= 1024);
    bench_free(run);
}

static void a_collector_that_is_off_collects_only_when_asked(void **state)
{
    (void)state;
    bench *run = bench_run(CYCLE "gc.disable()\nfor i = 1, 2000 do cycle() end\nphase 'off'\n"
                                 "gc.collect()\nphase 'asked'");
    bench_assert_ok(run);
    assert_int_equal(bench_at(run, "off"), 2000 * 1024);
    assert_int_equal(bench_at(run, "asked"), 0);
    bench_free(run);
}

/* Reachable during a collection means one generation older: it then waits ten times as long. */
static void what_survives_a_collection_waits_for_an_older_one(void **state)
{
    (void)state;
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
    bench_free(run);
}

/* After eleven collections of the youngest, the twelfth takes the middle one, too. */
static void the_middle_generation_is_collected_at_the_twelfth(void **state)
{
    (void)state;
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
    bench_free(run);
}

/* CPython skips full collections until a quarter of the long-lived objects is new. */
static void a_full_collection_waits_for_a_quarter_of_new_objects(void **state)
{
    (void)state;
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
    bench_free(run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cycle_is_freed_only_when_the_collector_runs),
        cmocka_unit_test(an_object_without_a_cycle_needs_no_collector),
        cmocka_unit_test(an_object_that_holds_itself_is_a_cycle),
        cmocka_unit_test(a_cycle_through_a_list_is_found),
        cmocka_unit_test(what_a_variable_still_reaches_survives),
        cmocka_unit_test(the_youngest_generation_is_collected_past_700_allocations),
        cmocka_unit_test(a_collector_that_is_off_collects_only_when_asked),
        cmocka_unit_test(what_survives_a_collection_waits_for_an_older_one),
        cmocka_unit_test(the_middle_generation_is_collected_at_the_twelfth),
        cmocka_unit_test(a_full_collection_waits_for_a_quarter_of_new_objects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
