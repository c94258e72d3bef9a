/* run_history.h - the history of a run as columns of a page. */
#ifndef GMD_REPORTS_PAGE_RUN_HISTORY_H
#define GMD_REPORTS_PAGE_RUN_HISTORY_H

#include "history.h"

#include "gmd_report.h"

typedef struct run_history {
    const char *absent; /* why there is none: the end of a sentence; NULL: there is one */
    const gmd_outcome *outcome;
    const gmd_journal *journal; /* that it was made of */
    bool is_job;                /* a program, which a diagnosis says something about */
    gmd_diagnosis diagnosis;
    history *histories; /* of its devices */
    size_t count;
} run_history;

/* Makes that of outcome number `index`, which has a journal. One that cannot be made is absent: a
 * run whose allocator wrote over its journal has none, and is told of all the same. */
gmd_status run_history_open(run_history *h, document *to, const gmd_report *report, size_t index,
                            gmd_error *error);

/* Where a request's last event is: the number of its history and the event in it. False: it has
 * none. */
bool run_history_find(const run_history *h, uint64_t request, size_t *index, uint32_t *event);

/* Adds it to the list of histories. `title`: what the run is called. */
void run_history_write(const run_history *h, const char *title, uint32_t input);
void run_history_close(run_history *h);

#endif
