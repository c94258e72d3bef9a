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

/* Where a violation is seen. */
typedef struct violation_place {
    size_t index;   /* of the history of the device that was judged */
    uint32_t event; /* its last one until the request was done */
    uint32_t own;   /* with which the request allocated its block or asked to free it; 0: it did
                       neither on this device */
} violation_place;

/* False: no history has it. */
bool run_history_find(const run_history *h, const gmd_violation *violation, violation_place *place);

/* Adds it to the list of histories. `title`: what the run is called. */
void run_history_write(const run_history *h, const char *title, uint32_t input);
void run_history_close(run_history *h);

#endif
