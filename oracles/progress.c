/* progress - no crash, no assertion, no deadlock, no call slower than its budget. Crashes and hangs
 * end the child process in which the requests run, so the driver, its parent, sees them and speaks
 * in this oracle's name (driver/process/child.c). What the allocator itself tells of
 * (gmd_last_error) is judged here: a planted fault may make a request fail in any way except by an
 * assertion. */
#include "list.h"

#include <string.h>

static void after_request(void *state, const gmd_view *view, gmd_judge *judge)
{
    (void)state;
    const char *text = view->thread.error_text;
    if (text && (!view->faults.hit || strstr(text, "INTERNAL ASSERT"))) {
        gmd_violation_add(judge, GMD_KIND(progress, failed),
                          GMD_PARTIES({"error", view->thread.error_token},
                                      {"fault", view->faults.hit ? "hit" : NULL}),
                          "the request failed other than for want of memory%s: %.400s",
                          view->faults.hit ? " when a planted fault hit" : "", text);
    }
}

const gmd_oracle oracle_progress = {
    .entry = ORACLE_ENTRY(progress),
    .after_request = after_request,
    .at_end = after_request,
};
