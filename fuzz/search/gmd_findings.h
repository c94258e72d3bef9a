/* gmd_findings.h - what a campaign or a sweep found: each defect once, with the smallest case. */
#ifndef GMD_FINDINGS_H
#define GMD_FINDINGS_H

#include "gmd_board.h"
#include "gmd_minimize.h"

typedef struct gmd_findings { /* zero-initialised: none; the settings are the caller's */
    gmd_finding *items;
    size_t count, capacity;
    const char *out_directory; /* for the cases; NULL: none are written */
    const char *origin;        /* "gmd fuzz --seed 7": for the case's comment */
    const char *allocator;
    double minimize_seconds; /* for each */
    uint64_t minimize_tries; /* likewise; 0: no limit */
    double hang_seconds; /* while a hang is minimised, each takes so long at most; 0: as always */
    gmd_board *board;    /* of processes that search together; NULL: there is only this one */
    void (*progress)(void *context, size_t requests, uint64_t tries);
    void *context;
    /* Told of each finding as soon as it is new, before a case is made of it, and once more where
     * its case cannot be written (finding->unwritten). NULL: nobody is. */
    void (*tell)(void *listener, const gmd_finding *finding);
    void *listener;
} gmd_findings;

/* Takes note of the `run`th run, which ended with `violation` so many seconds after the beginning.
 * Where its cause is new, the case is minimised and written. A case that cannot be written is no
 * failure: the finding counts, and says why it has none. */
gmd_status gmd_findings_add(gmd_findings *findings, gmd_runner *runner, const gmd_trace *trace,
                            const gmd_violation *violation, uint64_t run, double seconds,
                            gmd_error *error);

/* A request without an answer, rather than a wrong one: as the clock tells, after its time; or seen
 * to wait for ever, at once. */
bool gmd_is_hang(const gmd_violation *violation);
bool gmd_is_without_end(const gmd_violation *violation);

/* Whether it is found already; if so, it counts once more. */
bool gmd_findings_hit(gmd_findings *findings, const gmd_violation *violation);

/* Adds one that another process has made. */
gmd_status gmd_findings_take(gmd_findings *findings, const gmd_finding *finding, gmd_error *error);

void gmd_findings_free(gmd_findings *findings);

/* A trace as a case file: what it shows in comments after the first line. */
gmd_status gmd_case_file_write(const gmd_trace *trace, const gmd_violation *violation,
                               const char *origin, const char *allocator, const char *path,
                               gmd_error *error);

/* The same, and beside it the programs that show it without gmd, where there can be any
 * (reproducer.h). */
gmd_status gmd_case_file_write_all(const gmd_trace *trace, const gmd_violation *violation,
                                   const char *origin, const char *allocator, const char *path,
                                   gmd_error *error);

#endif
