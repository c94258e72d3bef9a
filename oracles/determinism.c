/* determinism - where the allocator promises it: the same requests on the same device and schedule
 * get the same answers. The driver makes a second run in another process, whose heap lies elsewhere
 * and is not zero, and speaks in this oracle's name (driver/process/second_run.c). */
#include "list.h"

static const char *blind_spot(const gmd_view *view)
{
    if (!(view->allocator.promises & GMD_PROMISE_DETERMINISM)) {
        return "the allocator does not promise it (gmd_promises, --promise determinism)";
    }
    return view->workload.no_second_run;
}

const gmd_oracle oracle_determinism = {
    .entry = ORACLE_ENTRY(determinism),
    .blind_spot = blind_spot,
};
