/* violations.h - what a run found, as findings of a page: with the case that shows it again, and
 * where the run's history is known, the blocks that it is about. */
#ifndef GMD_REPORTS_PAGE_VIOLATIONS_H
#define GMD_REPORTS_PAGE_VIOLATIONS_H

#include "history.h"

#include "gmd_gate_result.h"
#include "gmd_journal.h"
#include "gmd_outcome.h"

/* The history of a run; NULL in its place: none is known. */
typedef struct run_history {
    const gmd_journal *journal; /* that it was made of */
    history *histories;         /* of its devices */
    size_t count;
} run_history;

/* Where a request's last event is: the number of its history and the event in it. False: it has
 * none. */
bool run_history_find(const run_history *of, uint64_t request, size_t *index, uint32_t *event);

/* All that an outcome says is wrong: its violations, a history that was not reproduced, an error.
 * `title`: what the run is called. */
void violations_of_outcome(document *to, const gmd_outcome *outcome, const char *title,
                           uint32_t input, const run_history *of);

void violations_of_gate(document *to, const gmd_gate_result *gate, uint32_t input);

#endif
