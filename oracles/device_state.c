/* device_state - a call of the allocator leaves the thread's current device, last error and capture
 * mode as they were. Where a planted fault kept it from putting one of them right, that one is not
 * judged. */
#include "list.h"

#include <stdbool.h>
#include <string.h>

static bool was_kept_from(const gmd_view *view, const char *function)
{
    for (size_t i = 0; i < GMD_FAULTED_MAX && view->faults.functions[i]; i++) {
        if (strcmp(view->faults.functions[i], function) == 0) {
            return true;
        }
    }
    return false;
}

/* Who clears an error of its own clears the caller's with it: CUDA keeps only the latest. */
static void check_cleared(const gmd_view *view, gmd_judge *judge)
{
    if (view->calls.are_all && !view->calls.has_failed) {
        gmd_violation_add(
            judge, GMD_KIND(device_state, cleared_error), GMD_NO_PARTIES,
            "the thread's last CUDA error was %d, of a call of the caller's, and is "
            "cleared, though no call of the allocator's has failed: the caller's next "
            "check finds nothing",
            view->thread.before->last_error);
    }
}

static void after_request(void *state, const gmd_view *view, gmd_judge *judge)
{
    (void)state;
    const gmd_thread_state *before = view->thread.before, *after = view->thread.after;
    if (!before || !after) {
        return;
    }
    if (after->device != before->device && !was_kept_from(view, "cudaSetDevice")) {
        gmd_violation_add(judge, GMD_KIND(device_state, current_device), GMD_NO_PARTIES,
                          "the thread's current device was %d and is %d: what the caller does "
                          "next goes to another device",
                          before->device, after->device);
    }
    if (before->last_error && !after->last_error) {
        check_cleared(view, judge);
    } else if (after->last_error != before->last_error &&
               !was_kept_from(view, "cudaGetLastError")) {
        gmd_violation_add(judge, GMD_KIND(device_state, last_error), GMD_NO_PARTIES,
                          "the thread's last CUDA error was %d and is %d: the caller's next check "
                          "finds an error that is not its own",
                          before->last_error, after->last_error);
    }
    if (after->capture_mode != before->capture_mode &&
        !was_kept_from(view, "cudaThreadExchangeStreamCaptureMode")) {
        gmd_violation_add(judge, GMD_KIND(device_state, capture_mode), GMD_NO_PARTIES,
                          "the thread's stream capture mode was %d and is %d: the caller's "
                          "captures forbid other calls than it asked for",
                          before->capture_mode, after->capture_mode);
    }
}

const gmd_oracle oracle_device_state = {
    .entry = ORACLE_ENTRY(device_state),
    .after_request = after_request,
    .at_end = after_request,
};
