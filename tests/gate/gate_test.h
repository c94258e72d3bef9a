/* gate_test.h - a gate run on an allocator, with a defect switched on by the environment or none.
 */
#ifndef GMD_GATE_TEST_H
#define GMD_GATE_TEST_H

#include "gmd_gate.h"
#include "gmd_size.h"
#include "gmd_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Under sanitizers a process takes ten times as long: there a part of the battery is run. */
#ifdef GMD_TEST_SANITIZED
#define ALL_OR_A_SCENARIO "scenarios/attention_scores leak=true"
#define ALL_OR_AN_ITEM    "random/streams, any completion"
#define RANDOM_OR_AN_ITEM "random/streams, any completion"
#else
#define ALL_OR_A_SCENARIO NULL
#define ALL_OR_AN_ITEM    NULL
#define RANDOM_OR_AN_ITEM "random"
#endif

static inline gmd_run_options run_options_for(const char *allocator)
{
    return (gmd_run_options){.subject.allocator = allocator,
                             .subject.lib_directory = GMD_TEST_LIB_DIR,
                             .device.kind = GMD_DEVICE_SIM,
                             .conditions.device_count = 1,
                             .conditions.capacity_bytes = 140 * GMD_GIB,
                             .process.call_budget_s = 5};
}

/* NULL for `variable`: no defect. */
static inline gmd_gate_result run_gate(const gmd_gate_options *options, const char *variable,
                                       const char *defect)
{
    gmd_gate_result result;
    gmd_error error = {""};
    if (variable) {
        setenv(variable, defect, 1);
    }
    gmd_status status = gmd_gate_run(options, &result, &error);
    if (variable) {
        unsetenv(variable);
    }
    if (status != GMD_OK) {
        fail_msg("%s", error.text);
    }
    return result;
}

static inline void expect_clean(gmd_gate_result *r)
{
    if (r->finding_count) {
        fail_msg("%s: %s", r->findings[0].violation.oracle, r->findings[0].violation.message);
    }
    assert_string_equal(r->ended_early, "");
    gmd_gate_result_free(r);
}

#endif
