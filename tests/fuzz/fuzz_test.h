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

static inline char *text_of(const gmd_trace *trace)
{
    char *text = NULL;
    size_t size;
    gmd_error error = {""};
    FILE *out = open_memstream(&text, &size);
    if (gmd_trace_write(trace, out, &error) != GMD_OK) {
        fail_msg("%s", error.text);
    }
    fclose(out);
    return text;
}

static inline void demand_ok(gmd_status status, const gmd_error *error)
{
    if (status != GMD_OK) {
        fail_msg("%s", error->text);
    }
}

#endif
