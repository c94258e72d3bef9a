/* known_conditions.h - what stands behind the bars of a line of a known list: "fault cudaMalloc |
 * destroy". Thread safety: pure functions. */
#ifndef GMD_KNOWN_CONDITIONS_H
#define GMD_KNOWN_CONDITIONS_H

#include "gmd_error.h"
#include "gmd_outcome.h"

/* Behind every bar something stands that is a condition: what was forgotten or misspelt there would
 * hide too much, or nothing. NULL: there are no bars. */
gmd_status conditions_check(const char *conditions, const char *path, size_t number,
                            gmd_error *error);

/* Whether conditions, which were checked, hold an `end`; empty: there are none. */
bool conditions_have_end(const char *conditions);

/* `context`: what the run has had; NULL: nothing. */
bool conditions_are_met(const known_context *context, const char *conditions);

#endif
