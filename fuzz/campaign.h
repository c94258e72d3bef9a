/* campaign.h - what the parts of a search (search.h) share: its state, and how each sequence is run
 * and judged. Thread safety: none. */
#ifndef GMD_CAMPAIGN_H
#define GMD_CAMPAIGN_H

#include "search.h"

#define GMD_BATCH         32 /* sequences that one order to the process that runs them holds */
#define GMD_PROGRESS_RUNS 16 /* between two lines of status */

typedef struct gmd_campaign {
    const gmd_search_options *options;
    gmd_findings *findings;
    gmd_search_result *result;
    gmd_runner runner;
    double start, last_fresh, last_read;
    uint64_t sequences; /* without the minimiser's tries */
    gmd_status status;
    gmd_error *error;
} gmd_campaign;

typedef struct gmd_batch {
    gmd_persistent_input traces[GMD_BATCH];
    size_t count, next; /* next: the first that was not run yet */
    size_t known;       /* of those that were run, how many showed what was found before */
} gmd_batch;

void gmd_campaign_tell(gmd_campaign *campaign, const char *doing);
bool gmd_campaign_is_over(const gmd_campaign *campaign);

/* The allocator or the device does not take what was asked for. */
void gmd_campaign_note_refusal(gmd_campaign *campaign, const char *reason);

/* False: the campaign is over, with its status. The trace is the caller's to free in any case. */
bool gmd_campaign_generate(gmd_campaign *campaign, const gmd_profile *profile, uint64_t seed,
                           gmd_trace *trace);

/* What a sequence shows when it is run by itself. */
void gmd_campaign_add_finding(gmd_campaign *campaign, const gmd_trace *trace,
                              const gmd_violation *violation);

/* Runs what is left of a batch: each suspect ends the process that it ran in. What shows a defect
 * that was found already needs no second look. False: the rest of the round is not worth it. */
bool gmd_campaign_run_batch(gmd_campaign *campaign, bool interleaves, gmd_batch *batch);

/* --- rounds, each in a file of its own ---------------------------------------------------- */

/* search_sweep.c: two short sequences, in which each call that needs memory fails in turn; with
 * `others`, in the second one each other call, of which only that requests come back is asked. */
void gmd_campaign_sweep(gmd_campaign *campaign, gmd_profile *profile, uint64_t seed, bool others);

/* search_repeat.c: sequences that are run by themselves, each again and again (docs/oracles/
 * progress.md, rounds). False: there is no such round here. */
bool gmd_campaign_repeat(gmd_campaign *campaign, gmd_profile *profile, uint64_t seed);

/* search_read.c: what others have put into the corpus's folder since it was last looked at. */
void gmd_campaign_read_corpus(gmd_campaign *campaign);

#endif
