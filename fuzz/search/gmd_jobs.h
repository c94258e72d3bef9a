/* gmd_jobs.h - a campaign of several processes: each searches by a seed of its own, and they share
 * what they learn, the features seen and the corpus, and what they found. */
#ifndef GMD_JOBS_H
#define GMD_JOBS_H

#include "gmd_search.h"

/* As gmd_search, with `jobs` processes from 2 to GMD_JOBS_MAX. The corpus's folder is what they
 * exchange inputs through; without one, a folder for the time of the campaign.
 * options->run->features must be memory that forks share. With several processes, which one comes
 * upon what is left to the machine: the seed makes each one's choices, not the campaign. */
enum { GMD_JOBS_MAX = 256 };

gmd_status gmd_search_jobs(const gmd_search_options *options, unsigned jobs, gmd_findings *findings,
                           gmd_search_result *result, gmd_error *error);

#endif
