/* gmd_generate.h - random request sequences that a correct program could make.
 *
 * A generator appends one request after the other to a trace, as a profile says, each valid where
 * it stands; the caller's duties (ordering other streams' work before a free) are the driver's, so
 * any order of requests will do. The same profile and seed give the same requests.
 *
 * Thread safety: none; a generator belongs to one thread. */
#ifndef GMD_GENERATE_H
#define GMD_GENERATE_H

#include "gmd_generator.h"

/* Makes `trace` (which must be initialised and empty) the beginning of a sequence: its header, and
 * the requests that set it up. */
gmd_status gmd_generator_start(gmd_generator *generator, const gmd_profile *profile,
                               const gmd_profile_space *space, uint64_t seed, gmd_trace *trace,
                               gmd_error *error);

/* Appends one request. */
gmd_status gmd_generator_step(gmd_generator *generator, gmd_trace *trace, gmd_error *error);

/* For assertions: the sentence that does not hold of what it knows of its own sequence; NULL: all
 * does. */
const char *gmd_generator_violation(const gmd_generator *generator);

/* A whole sequence. */
gmd_status gmd_generate(const gmd_profile *profile, const gmd_profile_space *space, uint64_t seed,
                        gmd_trace *trace, gmd_error *error);

#endif
