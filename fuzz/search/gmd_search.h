/* gmd_search.h - a campaign: generated sequences against an allocator, all oracles on, each defect
 * once with a minimised case.
 *
 * A campaign is a series of rounds. A round draws a profile (device, settings, schedule, mix of
 * requests) and runs a number of sequences of it; some rounds sweep faults through a short one. All
 * that a campaign does follows from its seed. */
#ifndef GMD_SEARCH_H
#define GMD_SEARCH_H

#include "gmd_findings.h"
#include "gmd_search_options.h"

/* `run` for a campaign of so many seconds (0: no limit): a library that does not answer must not
 * make it longer than it is to be, so that a request may take a sixth of that, or a second. */
gmd_run_options gmd_search_hurried(const gmd_run_options *run, double seconds);

/* What can be asked of the allocator and the device, found out by asking. */
gmd_status gmd_search_find_space(gmd_profile_space *space, const gmd_run_options *run,
                                 gmd_error *error);

/* Those of gmd_profile_confs that the allocator takes, at most `max`. */
gmd_status gmd_search_taken_confs(const gmd_run_options *run, const char **taken, size_t max,
                                  size_t *count, gmd_error *error);

/* The caller prepares `findings` (where to, how long to minimise) and frees it. */
gmd_status gmd_search(const gmd_search_options *options, gmd_findings *findings,
                      gmd_search_result *result, gmd_error *error);

#endif
