/* progress - no crash, no assertion, no deadlock, no call slower than its budget. These end the
 * child process in which the requests run, so it is its parent, the driver, that sees them and
 * speaks in this oracle's name (driver/isolate.c). */
#include "list.h"

const gmd_oracle gmd_oracle_progress = {
    .name = "progress",
    .holds_when = "no crash, no hang, no call slower than its budget",
};
