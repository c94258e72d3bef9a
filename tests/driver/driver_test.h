/* driver_test.h - what the tests of the driver share: traces from lines, options, known lists. */
#ifndef GMD_DRIVER_TEST_H
#define GMD_DRIVER_TEST_H

#include "gmd_driver.h"
#include "gmd_known.h"
#include "gmd_size.h"
#include "gmd_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline gmd_run_options options_on(const char *allocator)
{
    return (gmd_run_options){.subject.allocator = allocator,
                             .subject.lib_directory = GMD_TEST_LIB_DIR,
                             .device.kind = GMD_DEVICE_SIM,
                             .conditions.device_count = 1,
                             .conditions.capacity_bytes = 64 * GMD_MIB,
                             .process.call_budget_s = 20};
}

/* The lines behind the first one of a trace. The caller frees it. */
static inline gmd_trace parse_lines(const char *lines)
{
    char text[8192];
    gmd_trace trace;
    gmd_error error = {""};
    int length = snprintf(text, sizeof text, "gmd-trace 1\n%s", lines);
    if (gmd_trace_parse(&trace, text, (size_t)length, "test", &error) != GMD_OK) {
        fail_msg("%s", error.text);
    }
    return trace;
}

/* A run in a process of its own, on two devices. The caller frees the outcome. */
static inline gmd_outcome *run_trace(const char *allocator, const gmd_trace *trace)
{
    gmd_error error = {""};
    gmd_run_options options = options_on(allocator);
    options.conditions.device_count = 2;
    options.conditions.schedule = trace->conditions.schedule;
    options.conditions.interleave = trace->conditions.interleave;
    gmd_workload workload = {
        .name = "test.gmd", .kind = "trace", .trace = trace, .body = gmd_play_trace};
    gmd_outcome *o = calloc(1, sizeof *o);
    assert_non_null(o);
    if (gmd_run_isolated(&options, &workload, o, &error) != GMD_OK) {
        free(o);
        o = NULL;
        fail_msg("%s", error.text);
    }
    return o;
}

static inline gmd_outcome *run_lines(const char *allocator, const char *lines)
{
    gmd_trace trace = parse_lines(lines);
    gmd_outcome *o = run_trace(allocator, &trace);
    gmd_trace_free(&trace);
    return o;
}

/* Frees the outcome. */
static inline void expect_clean(gmd_outcome *o)
{
    char found[1024] = "";
    if (o->verdict != GMD_PASS) {
        snprintf(found, sizeof found, "%s %s", o->violation_count ? o->violations[0].oracle : "",
                 o->violation_count ? o->violations[0].message : o->error);
    }
    free(o);
    if (*found) {
        fail_msg("%s", found);
    }
}

/* As gmd_known_read() of a file with this text. */
static inline gmd_status read_list(gmd_known *known, const char *text, gmd_error *error)
{
    char path[] = "/tmp/gmd-known-XXXXXX";
    int file = mkstemp(path);
    ssize_t written = write(file, text, strlen(text));
    close(file);
    gmd_status status = gmd_known_read(known, path, error);
    unlink(path);
    assert_int_equal(written, strlen(text));
    return status;
}

#endif
