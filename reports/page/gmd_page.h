/* gmd_page.h - one HTML file that shows recordings and results: what is wrong first, and then the
 * views that show it. It opens from disk and asks nothing of the network.
 *
 * A page is begun, inputs are added to it, and it is written. Thread safety: one page, one thread.
 */
#ifndef GMD_PAGE_H
#define GMD_PAGE_H

#include "gmd_diagnosis.h"
#include "gmd_error.h"
#include "gmd_report.h"

#include <stddef.h>
#include <stdio.h>

typedef struct gmd_page gmd_page;

/* On failure `*page` is NULL. */
gmd_status gmd_page_open(gmd_page **page, gmd_error *error);

/* A recorded job, and how the page names it. Both must stay as long as the page. */
gmd_status gmd_page_add_diagnosis(gmd_page *page, const gmd_diagnosis *diagnosis, const char *name,
                                  gmd_error *error);

/* Runs, with their histories where they kept journals. */
gmd_status gmd_page_add_report(gmd_page *page, const gmd_report *report, gmd_error *error);

/* What a result says that came of the command. */
typedef struct gmd_page_verdict {
    gmd_verdict verdict;
    gmd_status error_status; /* GMD_ERROR: whose fault it is */
} gmd_page_verdict;

/* What a command wrote with --json, and its verdict. `name` is that of the file in messages.
 * GMD_BAD_INPUT: it is no such result. */
gmd_status gmd_page_add_result(gmd_page *page, const char *text, size_t size, const char *name,
                               gmd_page_verdict *verdict, gmd_error *error);

/* Writes the page, to which nothing can be added then. */
gmd_status gmd_page_write(gmd_page *page, const char *version, FILE *out, gmd_error *error);
void gmd_page_free(gmd_page *page); /* accepts NULL */

#endif
