/* fuzz_test.h - what the tests of the search share. */
#ifndef GMD_FUZZ_TEST_H
#define GMD_FUZZ_TEST_H

#include "gmd_driver.h"
#include "gmd_size.h"
#include "gmd_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline gmd_run_options options_for(const char *allocator)
{
    return (gmd_run_options){.subject.allocator = allocator,
                             .subject.lib_directory = GMD_TEST_LIB_DIR,
                             .device.kind = GMD_DEVICE_SIM,
                             .conditions.device_count = 1,
                             .conditions.capacity_bytes = GMD_GIB,
                             .process.call_budget_s = 120};
}

static inline gmd_trace parse_or_fail(const char *text)
{
    gmd_trace trace;
    gmd_error error = {""};
    if (gmd_trace_parse(&trace, text, strlen(text), "test", &error) != GMD_OK) {
        fail_msg("%s", error.text);
    }
    return trace;
}

/* --- what a test makes ------------------------------------------------------------------ */

/* What TEST_F(made, ...) makes by these is freed after it. */
static struct {
    gmd_trace traces[4];
    char *texts[4];
    size_t trace_count, text_count;
} owned;

static inline gmd_trace *make_trace(const char *text)
{
    assert_true(owned.trace_count < sizeof owned.traces / sizeof *owned.traces);
    owned.traces[owned.trace_count] = parse_or_fail(text);
    return &owned.traces[owned.trace_count++];
}

static inline char *text_of(const gmd_trace *trace)
{
    char *text = NULL;
    size_t size;
    gmd_error error = {""};
    FILE *out = open_memstream(&text, &size);
    gmd_status status = gmd_trace_write(trace, out, &error);
    fclose(out);
    if (status != GMD_OK) {
        free(text);
        text = NULL;
        fail_msg("%s", error.text);
    }
    return text;
}

static inline const char *make_text(const gmd_trace *trace)
{
    assert_true(owned.text_count < sizeof owned.texts / sizeof *owned.texts);
    return owned.texts[owned.text_count++] = text_of(trace);
}

static inline int free_made(void **state)
{
    (void)state;
    while (owned.trace_count) {
        gmd_trace_free(&owned.traces[--owned.trace_count]);
    }
    while (owned.text_count) {
        free(owned.texts[--owned.text_count]);
    }
    return 0;
}

FIXTURE(made, NULL, free_made);

static inline void demand_ok(gmd_status status, const gmd_error *error)
{
    if (status != GMD_OK) {
        fail_msg("%s", error->text);
    }
}

#endif
