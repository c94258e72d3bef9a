/* gmd_cause.h - the verdict that a search or a minimiser is after: the same kind with the same
 * parties. */
#ifndef GMD_CAUSE_H
#define GMD_CAUSE_H

#include "gmd_outcome.h"

/* The first violation of the outcome that has this cause; NULL: none. */
const gmd_violation *gmd_cause_find(const gmd_outcome *outcome, const gmd_identity *cause);

#endif
