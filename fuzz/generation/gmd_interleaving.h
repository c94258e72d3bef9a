/* gmd_interleaving.h - the interleavings that a search draws. */
#ifndef GMD_INTERLEAVING_H
#define GMD_INTERLEAVING_H

#include "gmd_schedule.h"

/* In which a sequence with that seed runs: half of the seeds switch threads at random, a quarter
 * each do so a bounded number of times and by priorities (PCT), with steps and depths that the seed
 * draws, too. The same seed, the same interleaving. It owns nothing. */
gmd_schedule gmd_interleaving_of(uint64_t seed);

#endif
