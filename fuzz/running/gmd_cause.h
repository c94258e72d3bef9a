/* gmd_cause.h - what makes two violations the same defect: the oracle, and its message without what
 * differs from run to run. */
#ifndef GMD_CAUSE_H
#define GMD_CAUSE_H

#include "gmd_outcome.h"

#include <stdbool.h>

typedef struct gmd_cause { /* plain data, compared as text */
    char oracle[24];
    char text[256];
} gmd_cause;

/* Numbers, sizes and the names of blocks, streams and threads become '#'; of a request only its
 * first word stays. */
void gmd_cause_normalise(const char *message, char *out, size_t size);

void gmd_cause_of(const gmd_violation *violation, gmd_cause *cause);
bool gmd_cause_equal(const gmd_cause *a, const gmd_cause *b);

/* The first violation of the outcome that has this cause; NULL: none. */
const gmd_violation *gmd_cause_find(const gmd_outcome *outcome, const gmd_cause *cause);

#endif
