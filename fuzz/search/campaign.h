/* campaign.h - what the parts of a search (gmd_search.h) share: its state, and how each sequence is
 * run and judged. Thread safety: none. */
#ifndef GMD_CAMPAIGN_H
#define GMD_CAMPAIGN_H

#include "gmd_fault_sweep.h"
#include "gmd_findings.h"
#include "gmd_runner.h"
#include "gmd_search_options.h"

#define BATCH         32 /* sequences that one order to the process that runs them holds */
#define PROGRESS_RUNS 16 /* between two lines of status */

typedef struct campaign {
    const gmd_search_options *options;
    gmd_findings *findings;
    gmd_search_result *result;
    gmd_runner runner;
    double start, last_fresh, last_read;
    gmd_swept_paths swept_paths; /* of waits */
    uint64_t sequences;          /* without the minimiser's tries */
    gmd_status status;
    gmd_error *error;
} campaign;

typedef struct batch {
    gmd_persistent_input traces[BATCH];
    size_t count, next; /* next: the first that was not run yet */
    size_t known;       /* of those that were run, how many showed what was found before */
} batch;

void campaign_tell(campaign *campaign, const char *doing);
/* It has come to its end; somebody wants it to end; either, or a failure. */
bool campaign_is_done(const campaign *campaign);
bool campaign_is_interrupted(const campaign *campaign);
bool campaign_is_over(const campaign *campaign);

/* A sequence could not be run: GMD_BAD_INPUT, because the allocator or the device does not take
 * what was asked for, which is noted; else for want of what gmd needs, which ends the campaign. */
void campaign_cannot_run(campaign *campaign, gmd_status status, const char *reason);
/* The same of an outcome that is GMD_ERROR; or it was cut off with the campaign, which is noted. */
void campaign_note_error(campaign *campaign, const gmd_outcome *outcome);

/* False: the campaign is over, with its status. The trace is the caller's to free in any case. */
bool campaign_generate(campaign *campaign, const gmd_profile *profile, uint64_t seed,
                       gmd_trace *trace);

/* What a sequence shows when it is run by itself. */
void campaign_add_finding(campaign *campaign, const gmd_trace *trace,
                          const gmd_violation *violation);

/* Runs what is left of a batch: each suspect ends the process that it ran in. What shows a defect
 * that was found already needs no second look. False: the rest of the round is not worth it. */
bool campaign_run_batch(campaign *campaign, bool interleaves, batch *batch);

/* --- rounds, each in a file of its own ---------------------------------------------------- */

/* search_sweep.c: two short sequences, in which each call that needs memory fails in turn; with
 * `others`, in the second one each other call, of which only that requests come back is asked. */
void campaign_sweep(campaign *campaign, gmd_profile *profile, uint64_t seed, bool others);

/* search_sweep.c: sequences in which waits fail, those first that come in rare places. */
void campaign_sweep_waits(campaign *campaign, gmd_profile *profile, uint64_t seed);

/* search_repeat.c: sequences that are run by themselves, each again and again (docs/oracles/
 * progress.md, rounds). False: there is no such round here. */
bool campaign_repeat(campaign *campaign, gmd_profile *profile, uint64_t seed);

/* search_read.c: what others have put into the corpus's folder since it was last looked at. */
void campaign_read_corpus(campaign *campaign);

#endif
