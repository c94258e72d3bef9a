/* gmd_case_listing.h - a short case as it stands beside its finding: the file's own lines, with
 * what each request was answered, and the failing one marked. */
#ifndef GMD_CASE_LISTING_H
#define GMD_CASE_LISTING_H

#include "gmd_journal.h"
#include "gmd_outcome.h"

#include <stdint.h>
#include <stdio.h>

enum { GMD_CASE_LINES = 15, GMD_CASE_TEXT = 100, GMD_CASE_ANSWER = 40 };

typedef struct gmd_case_line {
    uint32_t line;                /* of the file, from 1 */
    uint64_t request;             /* from 0; UINT64_MAX: none, such as "thread t1" */
    char text[GMD_CASE_TEXT];     /* cut to fit */
    char answer[GMD_CASE_ANSWER]; /* an address, "out of memory", or "" */
    bool is_failing;              /* the violation showed there */
} gmd_case_line;

typedef struct gmd_case_listing {
    uint32_t count; /* 0: there is none */
    gmd_case_line lines[GMD_CASE_LINES];
} gmd_case_listing;

/* Reads the case at `path`, which `outcome` is a run of. `journal`: of that run; NULL: its answers
 * are not known. The listing is empty where the case has more lines than it takes, comments and
 * blank ones aside, or cannot be read. */
void gmd_case_listing_read(gmd_case_listing *listing, const char *path, const gmd_outcome *outcome,
                           const gmd_journal *journal);

/* A line of text for each, after `indent`; nothing of NULL. Write errors are left in ferror(out).
 */
void gmd_case_listing_put(const gmd_case_listing *listing, const char *indent, FILE *out);

#endif
