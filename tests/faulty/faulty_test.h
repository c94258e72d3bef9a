/* faulty_test.h - a case of tests/faulty/cases run on an allocator of this folder, with a defect
 * switched on or none. */
#ifndef FAULTY_TEST_H
#define FAULTY_TEST_H

#include "../raised.h"
#include "gmd_driver.h"
#include "gmd_interpose.h"
#include "gmd_size.h"
#include "gmd_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline void read_trace(gmd_trace *trace, const char *path)
{
    gmd_error error = {""};
    if (gmd_trace_read(trace, path, &error) != GMD_OK) {
        fail_msg("%s", error.text);
    }
}

/* `interleave` NULL: as the trace says; `seeds` over 0: that many seeds, from interleave's on;
 * `cases`: where a case goes, or NULL. The outcome is the caller's to free. */
static inline gmd_outcome *run_trace(const char *allocator, const char *defect,
                                     const gmd_trace *trace, const gmd_schedule *interleave,
                                     uint64_t seeds, const char *cases)
{
    gmd_error error = {""};
    gmd_run_options options = {
        .subject.allocator = allocator,
        .subject.lib_directory = GMD_TEST_LIB_DIR,
        .cases.directory = cases,
        .device.kind = GMD_DEVICE_SIM,
        .conditions.device_count =
            trace->conditions.device_count ? trace->conditions.device_count : 1,
        .conditions.capacity_bytes =
            trace->conditions.capacity_bytes ? trace->conditions.capacity_bytes : GMD_GIB,
        .conditions.placement = trace->conditions.placement,
        .conditions.reuses_handles = trace->conditions.reuses_handles,
        .conditions.moves_clock = trace->conditions.moves_clock,
        .conditions.schedule = trace->conditions.schedule,
        .conditions.interleave = interleave ? *interleave : (gmd_schedule){0},
        .interleave_seeds = seeds,
        .process.call_budget_s = defect ? 3 : 20};
    gmd_workload workload = {
        .name = "case", .kind = "trace", .trace = trace, .body = gmd_play_trace};
    gmd_outcome *outcome = calloc(1, sizeof *outcome);
    assert_non_null(outcome);
    setenv("GMD_DEFECT", defect ? defect : "", 1);
    gmd_status status = seeds ? gmd_run_interleavings(&options, &workload, outcome, &error)
                              : gmd_run_isolated(&options, &workload, outcome, &error);
    unsetenv("GMD_DEFECT");
    if (status != GMD_OK) {
        fail_msg("%s", error.text);
    }
    return outcome;
}

static inline gmd_outcome *run_case(const char *allocator, const char *defect, const char *name,
                                    const gmd_schedule *interleave, uint64_t seeds)
{
    char path[500];
    gmd_trace trace = {0};
    snprintf(path, sizeof path, "%s/%s.gmd", GMD_TEST_CASES, name);
    read_trace(&trace, path);
    gmd_outcome *outcome = run_trace(allocator, defect, &trace, interleave, seeds, NULL);
    gmd_trace_free(&trace);
    return outcome;
}

static inline const char *path_of(const char *allocator)
{
    static char path[500];
    snprintf(path, sizeof path, "%s/lib%s.so", GMD_TEST_ALLOCATORS, allocator);
    return path;
}

/* A race that needs threads to be switched in few places says so: few seeds do that in those. */
static inline uint64_t seeds_of(const gmd_trace *trace, uint64_t usual)
{
    return gmd_schedule_is_stated(&trace->conditions.interleave) ? 10 * usual : usual;
}

/* A case with threads is tried in many interleavings, any other as it stands. */
static inline gmd_outcome *try_case(const char *allocator, const char *defect, const char *name,
                                    uint64_t seeds)
{
    char path[500];
    gmd_trace trace = {0};
    gmd_schedule first = {.kind = GMD_SCHEDULE_SEEDED};
    snprintf(path, sizeof path, "%s/%s.gmd", GMD_TEST_CASES, name);
    read_trace(&trace, path);
    bool has_threads = trace.threads.count > 1;
    if (gmd_schedule_is_stated(&trace.conditions.interleave)) {
        first = trace.conditions.interleave; /* a view */
    }
    gmd_outcome *outcome =
        run_trace(path_of(allocator), defect, &trace, has_threads ? &first : NULL,
                  has_threads ? seeds_of(&trace, seeds) : 0, NULL);
    gmd_trace_free(&trace);
    return outcome;
}

/* Where blocking is only seen by the watchdog (ThreadSanitizer), each time takes a while. */
static inline uint64_t seed_count(uint64_t usual)
{
    return interpose_is_on() ? usual : 1 + usual / 50;
}

/* Under sanitizers a process takes ten times as long: there every fourth thing is done, a different
 * one for each `turn`. */
static inline bool is_skipped(size_t index, size_t turn)
{
#ifdef GMD_TEST_SANITIZED
    return (index + turn) % 4 != 0;
#else
    (void)index;
    (void)turn;
    return false;
#endif
}

static inline void expect_nothing(gmd_outcome *o)
{
    assert_string_equal(o->violation_count ? o->violations[0].message : o->error, "");
    assert_int_equal(o->verdict, GMD_PASS);
    free(o);
}

static inline void expect_found(const gmd_outcome *o, const char *oracle)
{
    assert_string_equal(o->error, "");
    assert_int_equal(o->verdict, GMD_FAIL);
    note_raised(&o->violations[0].identity);
    if (strcmp(o->violations[0].oracle, oracle) != 0) {
        fail_msg("%s: %s", o->violations[0].oracle, o->violations[0].message);
    }
}

#endif
