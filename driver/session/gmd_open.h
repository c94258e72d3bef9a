/* gmd_open.h - the start of a run: the device, the allocator under test, its settings. */
#ifndef GMD_OPEN_H
#define GMD_OPEN_H

#include "gmd_session_state.h"

/* Loads the runtime and the allocator under test and looks at the untouched device. */
gmd_status session_open(gmd_session *session, const gmd_run_options *options,
                        const gmd_workload *workload, shared_run *shared, gmd_error *error);

/* After any run, a fresh device and the allocator as just loaded, by these options.
 * The allocator exports gmd_restart, and the device is simulated. Where it fails, only another call
 * or session_close may follow. */
gmd_status session_renew(gmd_session *session, const gmd_run_options *options, gmd_error *error);

#endif
