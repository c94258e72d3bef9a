/* gmd_session.h - one run against one allocator: carries out requests, keeps the caller's duties
 * (design: a block's other streams are recorded or ordered before its free), asks the oracles after
 * each request.
 *
 * A session lives in one process with the allocator under test; gmd_run_isolated (gmd_driver.h)
 * makes that a child process. Not thread safe. */
#ifndef GMD_SESSION_H
#define GMD_SESSION_H

#include "gmd_oracle.h"
#include "gmd_outcome.h"
#include "gmd_run_options.h"
#include "gmd_runtime.h"
#include "gmd_sink.h"
#include "gmd_subject.h"
#include "gmd_trace.h"

typedef struct gmd_session gmd_session;

/* Carries out one request of `request`'s trace and judges it. GMD_OUT_OF_MEMORY is an answer, not a
 * failure. GMD_STOP: the run is over (a violation, or the session cannot go on); later requests do
 * nothing. Requests on a block that was not served, or is not live, are left out, as a program
 * would whose allocation failed. */
gmd_served gmd_session_request(gmd_session *session, const gmd_request *request);

/* Adds a row to the table of phases: the allocator's figures now. */
void gmd_session_phase(gmd_session *session, const char *label);

/* From here on the run is held to it: passing it is a violation of peak_bound, unless it `leaks`.
 */
void gmd_session_bound(gmd_session *session, const gmd_bound *bound);

/* Where the workspaces of the run's libraries came from, for its outcome. */
void gmd_session_workspaces(gmd_session *session, const gmd_workspace_use *use);

/* The workload is at this place of a script. A run that is stopped because it makes no requests
 * names the place. */
void gmd_session_place(gmd_session *session, const char *file, int line);

/* Whether this run only repeats another one, for the oracles that compare the two. */
bool gmd_session_is_repetition(const gmd_session *session);
/* The allocator's own figures where it exports them, else what the live set and the device tell. */
bool gmd_session_memory(gmd_session *session, gmd_sink_memory *memory);

/* reset_peak_memory_stats() of `device`; false: the allocator exports no gmd_reset_peak_stats. */
bool gmd_session_reset_peaks(gmd_session *session, int device);

/* Where a live block is; 0 when it is not live. */
uint64_t session_address(const gmd_session *session, uint32_t block);

/* What the device was asked by the last request, in order. Simulated device only. */
const gmd_device_call *session_device_calls(const gmd_session *session, size_t *count);

/* How many calls of the CUDA API the allocator has made since the session began, of any kind.
 * Simulated device only. */
uint64_t gmd_session_api_calls(const gmd_session *session);

const gmd_subject *gmd_session_subject(const gmd_session *session);
const gmd_runtime *gmd_session_runtime(const gmd_session *session);
gmd_outcome *session_outcome(gmd_session *session);

/* Ends the run with a violation of this kind: for what a workload itself demands. */
void gmd_session_fail(gmd_session *session, gmd_kind kind, const gmd_given_party *parties,
                      uint64_t request, const char *message);

/* Index of the latest request that was refused for want of memory. */
uint64_t gmd_session_last_refused(const gmd_session *session);

/* Adds a note for the reader of the report. */
__attribute__((format(printf, 2, 3))) void gmd_session_note(gmd_session *session,
                                                            const char *format, ...);

#endif
